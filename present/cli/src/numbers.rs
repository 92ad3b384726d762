//! Numbers in options: a single number or a range.

use std::collections::BTreeSet;

/// An inclusive range; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers<T> {
    first: T,
    last: T,
}

/// Maximum number of CPUs in a range. No machine has more.
const CPUS: u64 = 1 << 14;
/// Priorities as the kernel counts them: -1 for deadline threads, 0 to 99 for real-time threads,
/// and 100 to 139 for all others.
const PRIORITIES: std::ops::RangeInclusive<i32> = -1..=139;

/// CPUs: `3` or `0-3`.
///
/// # Errors
/// When the text is neither, or a range of more CPUs than machines have.
pub(crate) fn cpus(text: &str) -> Result<Numbers<u64>, String> {
    let numbers: Numbers<u64> =
        parse(text).ok_or("expected a CPU number or a range such as 0-3")?;
    match numbers.last - numbers.first < CPUS {
        true => Ok(numbers),
        false => Err(format!("the range has more than {CPUS} CPUs")),
    }
}

/// Priorities: `120` or `0-99`.
///
/// # Errors
/// When the text is neither, or the kernel has no such priorities.
pub(crate) fn priorities(text: &str) -> Result<Numbers<i32>, String> {
    let known = |priority: &i32| PRIORITIES.contains(priority);
    let numbers =
        parse(text).filter(|numbers: &Numbers<i32>| known(&numbers.first) && known(&numbers.last));
    numbers.ok_or_else(|| "expected a priority from -1 to 139 or a range such as 0-99".to_owned())
}

impl Numbers<u64> {
    /// Whether the range contains one of these numbers.
    pub(crate) fn meets(&self, others: &BTreeSet<u64>) -> bool {
        others.range(self.first..=self.last).next().is_some()
    }
}

impl<T: std::fmt::Display + PartialEq> std::fmt::Display for Numbers<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// All numbers of the ranges, without duplicates.
pub(crate) fn all<T: Ord + Copy>(ranges: &[Numbers<T>]) -> BTreeSet<T>
where
    std::ops::RangeInclusive<T>: Iterator<Item = T>,
{
    let numbers = ranges.iter().flat_map(|range| range.first..=range.last);
    numbers.collect()
}

fn parse<T: std::str::FromStr + Ord + Copy>(text: &str) -> Option<Numbers<T>> {
    let text = text.trim();
    // A leading minus sign belongs to the number.
    let dash = text
        .char_indices()
        .skip(1)
        .find(|&(_, letter)| letter == '-');
    let (first, last) = match dash {
        Some((at, _)) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, text),
    };
    let number = |text: &str| text.parse().ok().filter(|_: &T| !text.starts_with('+'));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(Numbers { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_alone_or_in_ranges() {
        let of =
            |text: &str| cpus(text).map(|numbers| all(&[numbers]).into_iter().collect::<Vec<_>>());
        assert_eq!(of("3"), Ok(vec![3]));
        assert_eq!(of("0-3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(of("18446744073709551615"), Ok(vec![u64::MAX]));
        for wrong in [
            "",
            "-",
            "-1",
            "1-",
            "3-0",
            "0-1-2",
            "+1",
            "x",
            "0-18446744073709551615",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let of = |text: &str| priorities(text).map(|numbers| all(&[numbers]));
        assert_eq!(of("-1"), Ok([-1].into()));
        assert_eq!(of("-1-1"), Ok([-1, 0, 1].into()));
        assert_eq!(of("0-99").map(|numbers| numbers.len()), Ok(100));
        for wrong in ["140", "-2-3", "99-0", "0-2147483647", "--1"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            all(&[cpus("0-2").unwrap(), cpus("2-3").unwrap()]),
            [0, 1, 2, 3].into()
        );
    }
}
