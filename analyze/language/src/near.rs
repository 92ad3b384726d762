//! Suggestions for unknown names: one rule for events, fields, threads, system calls, devices.

use std::collections::BTreeSet;

use crate::glob::Glob;

/// Maximum number of suggestions in a message: a longer list is no help.
const MOST: usize = 3;

/// Maximum length of a name considered: the time of the distance is the product of both lengths.
const LONGEST: usize = 256;

/// Maximum number of names compared: the user most likely misspelt one of the first, not the
/// millionth.
const MOST_NAMES: usize = 100_000;

/// The names nearest to a text that the pattern matches, and those at most one edit further away,
/// nearest first; at most three. Names are ignored if more than a third of the pattern's characters
/// would have to change.
pub fn nearest<'n>(pattern: &Glob, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let literals = pattern.literals();
    let limit = if literals < 3 {
        0
    } else {
        (literals / 3).max(1)
    };
    let has_length = |name: &str| {
        pattern
            .length()
            .is_none_or(|length| name.len().abs_diff(length) <= limit)
    };
    let may_be_near = |name: &&str| name.len() <= LONGEST && has_length(name);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .take(MOST_NAMES)
        .filter(may_be_near)
        .map(|name| (pattern.distance(name.as_bytes()), name))
        .filter(|&(distance, _)| distance <= limit)
        .collect();
    near.sort_unstable();
    near.dedup();
    // Next to a name that is one letter off, names that are five letters off are noise.
    let least = near.first().map_or(0, |(distance, _)| *distance);
    near.retain(|(distance, _)| *distance <= least + 1);
    near.truncate(MOST);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Suggestion for a pattern that matches none of the names: `; did you mean 'a' or 'b'?`. If no
/// name is near but some contain the text, the suggestion is a pattern that matches these. Empty
/// without a suggestion.
pub fn did_you_mean<'n>(pattern: &Glob, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: BTreeSet<&str> = names.into_iter().take(MOST_NAMES).collect();
    let near = nearest(pattern, names.iter().copied());
    if !near.is_empty() {
        return phrase(&near);
    }
    let text = pattern.text();
    let is_long = text.chars().count() >= 3;
    if !is_long || !pattern.is_literal() || !names.iter().any(|name| name.contains(text)) {
        return String::new();
    }
    let all = |is_so: &dyn Fn(&str) -> bool| {
        names
            .iter()
            .filter(|name| name.contains(text))
            .all(|name| is_so(name))
    };
    let wider = match (
        all(&|name| name.starts_with(text)),
        all(&|name| name.ends_with(text)),
    ) {
        (true, _) => format!("{text}*"),
        (_, true) => format!("*{text}"),
        _ => format!("*{text}*"),
    };
    phrase(&[wider.as_str()])
}

/// Suggestion for an unknown name where patterns are not accepted: the nearest names, or else those
/// that contain it; at most three. Empty without a suggestion.
pub fn did_you_mean_name<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: BTreeSet<&str> = names.into_iter().take(MOST_NAMES).collect();
    let near = nearest(&Glob::literal(name), names.iter().copied());
    if !near.is_empty() || name.chars().count() < 3 {
        return phrase(&near);
    }
    let containing = names.iter().copied().filter(|other| other.contains(name));
    phrase(&containing.take(3).collect::<Vec<_>>())
}

fn phrase(suggestions: &[&str]) -> String {
    let quoted: Vec<String> = suggestions.iter().map(|text| format!("'{text}'")).collect();
    let list = match quoted.as_slice() {
        [] => return String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    };
    format!("; did you mean {list}?")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 9] = [
        "sched_switch",
        "sched_wakeup",
        "sched_waking",
        "irq_handler_entry",
        "net_dev_queue",
        "net_dev_xmit",
        "syscall_entry_openat",
        "syscall_exit_openat",
        "redis-server",
    ];

    fn of(asked: &str) -> String {
        did_you_mean(&Glob::new(asked), NAMES)
    }

    #[test]
    fn the_nearest_names_are_suggested() {
        assert_eq!(of("sched_swich"), "; did you mean 'sched_switch'?");
        assert_eq!(of("Sched_Switch"), "; did you mean 'sched_switch'?");
        assert_eq!(of("shced_switch"), "; did you mean 'sched_switch'?");
        assert_eq!(of("sched_wakin"), "; did you mean 'sched_waking'?");
        assert_eq!(
            of("sched_wakeng"),
            "; did you mean 'sched_waking' or 'sched_wakeup'?"
        );
        assert_eq!(
            of("net_dve_*"),
            "; did you mean 'net_dev_queue' or 'net_dev_xmit'?"
        );
    }

    #[test]
    fn a_part_of_names_becomes_a_pattern() {
        assert_eq!(of("redis"), "; did you mean 'redis*'?");
        assert_eq!(of("openat"), "; did you mean '*openat'?");
        assert_eq!(of("handler"), "; did you mean '*handler*'?");
    }

    #[test]
    fn what_is_like_nothing_gets_no_suggestion() {
        for asked in ["", "x", "zz", "postgres", "*zzz*", "re"] {
            assert_eq!(of(asked), "", "{asked}");
        }
    }
}
