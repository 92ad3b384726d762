//! Numbers, sizes and times as text, with suitable units.

use crate::glyphs::glyphs;

/// A number with thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 call`, `2 calls`.
pub(crate) fn number_of(number: u64, one: &str, more: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { more }
    )
}

/// The first names of a list, at most three, and the number of the others: `a, b, c and 2 other
/// files`.
pub(crate) fn first_of(
    names: impl ExactSizeIterator<Item = String>,
    other: &str,
    others: &str,
) -> String {
    const MOST_NAMED: usize = 3;
    let more = names.len().saturating_sub(MOST_NAMED);
    let named = names.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    match more {
        0 => named,
        more => format!("{named} and {}", number_of(more as u64, other, others)),
    }
}

/// A part of a whole in percent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.2} %", part as f64 * 100.0 / whole as f64)
    }
}

/// A number of bytes in a suitable unit.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = number as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "B" {
        format!("{number} B")
    } else {
        format!("{value:.2} {unit}")
    }
}

/// A number of nanoseconds in a suitable unit.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.3} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", value / 1e6),
        _ => format!("{:.6} s", value / 1e9),
    }
}

/// One bar of eight possible heights for each number; a space for 0.
pub(crate) fn sparkline(numbers: &[u64]) -> String {
    let heights = glyphs().heights;
    let most = numbers.iter().copied().max().unwrap_or(0);
    let bar = |&number: &u64| match number {
        0 => ' ',
        number => {
            heights[((u128::from(number) * 8).div_ceil(u128::from(most)) as usize).clamp(1, 8) - 1]
        }
    };
    numbers.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_500_000), "1.500 ms");
        assert_eq!(percent(1, 0), "-");
        assert_eq!(sparkline(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▁");
    }
}
