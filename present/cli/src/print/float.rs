//! Floating-point numbers as C's `%g` prints them.

/// Significant digits of `%g` without a precision.
const PRECISION: i32 = 6;

/// Formats a number like `%g`.
pub(crate) fn percent_g(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() {
        return format!("{sign}nan");
    }
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let scientific = format!("{:.*e}", PRECISION as usize - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..PRECISION).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
    } else {
        let digits = (PRECISION - 1 - exponent).max(0) as usize;
        without_zeros(&format!("{value:.digits$}")).to_owned()
    }
}

/// Removes zeros at the end of the fraction, and the point if no digit is left after it.
fn without_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::percent_g;

    #[test]
    fn as_in_c() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (999_999.5, "1e+06"),
            (123_456_789.0, "1.23457e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.000_123_456_789, "0.000123457"),
            (2.345_678_912, "2.34568"),
            (1e300, "1e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(percent_g(value), text);
        }
    }
}
