//! Floating-point numbers of all widths as `f64`.

/// The lowest 16, 32 or 64 bits as a floating-point number.
pub(crate) fn float(raw: u64, length: u8) -> f64 {
    match length {
        32 => f64::from(f32::from_bits(raw as u32)),
        16 => binary16(raw as u16),
        _ => f64::from_bits(raw),
    }
}

/// IEEE 754 binary16 to `f64`, exactly.
fn binary16(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

/// IEEE 754 binary128 to `f64`, rounded towards zero.
pub(crate) fn binary128(bits: u128) -> f64 {
    let sign = (bits >> 127) as u64;
    let exponent = (bits >> 112 & 0x7fff) as i32 - 16383;
    let fraction = (bits >> 60) as u64 & ((1 << 52) - 1);
    let magnitude = if exponent == 16384 {
        let nan = bits << 16 != 0;
        return if nan {
            f64::NAN
        } else {
            f64::from_bits(sign << 63 | 0x7ff << 52)
        };
    } else if exponent > 1023 {
        0x7ff << 52
    } else if exponent >= -1022 {
        ((exponent + 1023) as u64) << 52 | fraction
    } else if exponent >= -1074 {
        (fraction | 1 << 52) >> (-1022 - exponent)
    } else {
        0
    };
    f64::from_bits(sign << 63 | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_and_quadruple_precision() {
        assert_eq!(binary16(0x3c00), 1.0);
        assert_eq!(binary16(0xc000), -2.0);
        assert_eq!(binary16(0x0001), 2f64.powi(-24));
        assert_eq!(binary16(0x7bff), 65504.0);
        assert!(binary16(0x7e00).is_nan());
        assert_eq!(binary128(0x3fff_0000_0000_0000_0000_0000_0000_0000), 1.0);
        assert_eq!(binary128(0xc000_8000_0000_0000_0000_0000_0000_0000), -3.0);
        assert_eq!(
            binary128(0x7fff_0000_0000_0000_0000_0000_0000_0000),
            f64::INFINITY
        );
        assert_eq!(binary128(1), 0.0);
    }
}
