//! CPUs that were not recorded, and the note on them for users.

use serde::{Deserialize, Serialize};

/// A CPU that was not recorded, or not all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRecorded {
    /// Index of the trace.
    pub trace: u32,
    /// Number of the CPU.
    pub cpu: u32,
    /// Not recorded before this time, in nanoseconds from the origin. With `after_ns`, the CPU was
    /// recorded in between; without either, it was not recorded at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<i64>,
    /// Not recorded after this time, in nanoseconds from the origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
}

impl NotRecorded {
    /// True if the CPU was not recorded at all.
    pub fn is_never(&self) -> bool {
        self.before_ns.or(self.after_ns).is_none()
    }
}

/// Note for users on missing CPUs; `None` if none is missing. Times count from `begin`.
pub(crate) fn note(
    missing: &[NotRecorded],
    begin: Option<i64>,
    of_host: impl Fn(u32, String) -> String,
) -> Option<String> {
    let parts = parts(missing, begin, of_host);
    (!parts.is_empty()).then(|| {
        format!(
            "not recorded: {}. Waits and requests that may have ended there are left out",
            parts.join("; ")
        )
    })
}

/// CPUs and times as text: `CPUs 1-3; CPU 5 before +0.500 s`.
pub fn not_recorded(missing: &[NotRecorded], begin: Option<i64>) -> String {
    parts(missing, begin, |_, text| text).join("; ")
}

fn parts(
    missing: &[NotRecorded],
    begin: Option<i64>,
    of_host: impl Fn(u32, String) -> String,
) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = missing;
    while let Some(first) = rest.first() {
        let is_like =
            |of: &&NotRecorded| of.trace == first.trace && of.is_never() == first.is_never();
        let like = match first.is_never() {
            true => rest.iter().take_while(is_like).count(),
            false => 1,
        };
        let (group, others) = rest.split_at(like);
        rest = others;
        parts.push(of_host(first.trace, part(group, begin)));
    }
    parts
}

/// CPUs that were never recorded, or a single partly recorded CPU.
fn part(group: &[NotRecorded], begin: Option<i64>) -> String {
    if let [one] = group
        && !one.is_never()
    {
        let at = |time: i64| match begin {
            Some(begin) => format!("+{:.3} s", time.saturating_sub(begin) as f64 / 1e9),
            None => format!("{time} ns"),
        };
        let before = one.before_ns.map(|time| format!("before {}", at(time)));
        let after = one.after_ns.map(|time| format!("after {}", at(time)));
        let times: Vec<String> = before.into_iter().chain(after).collect();
        return format!("CPU {} {}", one.cpu, times.join(" and "));
    }
    let cpus = if group.len() == 1 { "CPU" } else { "CPUs" };
    format!("{cpus} {}", ranges(group.iter().map(|of| of.cpu.into())))
}

/// Ascending numbers, with consecutive numbers as ranges: `1-3, 7`.
pub fn ranges(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => found.push((number, number)),
        }
    }
    let texts = found.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(cpu: u32) -> NotRecorded {
        NotRecorded {
            trace: 0,
            cpu,
            before_ns: None,
            after_ns: None,
        }
    }

    #[test]
    fn the_note_names_cpus_and_times() {
        let text = |missing: &[NotRecorded]| note(missing, Some(1_000_000_000), |_, text| text);
        assert_eq!(text(&[]), None);
        let is = |missing: &[NotRecorded], expected: &str| {
            let text = text(missing).expect("a note");
            assert!(
                text.starts_with(&format!("not recorded: {expected}. ")),
                "{text}"
            );
        };
        is(&[never(3)], "CPU 3");
        is(&[1, 2, 3, 7].map(never), "CPUs 1-3, 7");
        let partly = NotRecorded {
            before_ns: Some(1_500_000_000),
            after_ns: Some(3_000_000_000),
            ..never(2)
        };
        is(
            &[never(1), partly, never(4)],
            "CPU 1; CPU 2 before +0.500 s and after +2.000 s; CPU 4",
        );
    }
}
