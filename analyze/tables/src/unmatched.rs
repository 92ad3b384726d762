//! Patterns that match nothing, with existing names as suggestions.

use std::cmp::Reverse;

use tracebraid_language::glob::Glob;
use tracebraid_language::near::nearest;

/// Maximum number of names in a trace that are listed; further names are counted.
const MOST: usize = 8;

/// The same for names that do not depend on the trace, such as wait reasons: all are listed.
const MOST_KNOWN: usize = 30;

/// True if a pattern matches the name, or if there are no patterns.
pub fn is_named(patterns: &[Glob], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|glob| glob.matches(name.as_bytes()))
}

/// A sentence for each pattern that was given with `option` and matches none of the `things`. A
/// pattern may match any name of an item; an item is shown by its first name, unless that is empty.
pub fn unmatched(option: &str, patterns: &[Glob], things: &[Vec<String>]) -> Vec<String> {
    let matches = |glob: &Glob| {
        let mut names = things.iter().flatten();
        names.any(|name| glob.matches(name.as_bytes()))
    };
    let missing = patterns.iter().filter(|glob| !matches(glob));
    missing
        .map(|glob| {
            let names = things.iter().filter_map(|names| names.first());
            format!(
                "{option} {} matches nothing{}",
                glob.text(),
                instead(glob, names.map(String::as_str), ("the trace has", MOST))
            )
        })
        .collect()
}

/// A sentence for each of the patterns that were given with `option` and that match none of the
/// `met` names. `known` are all possible names; `no_match` is the end of the sentence for
/// patterns that match only names that were not met.
pub fn unmatched_known(
    option: &str,
    patterns: &[Glob],
    (met, known): (&[&str], &[&str]),
    no_match: &str,
) -> Vec<String> {
    let matches = |glob: &Glob, names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| glob.matches(name.as_bytes()))
    };
    let missing = patterns.iter().filter(|glob| !matches(glob, met));
    missing
        .map(|glob| match matches(glob, known) {
            true => format!("{option} {} matches {no_match}", glob.text()),
            false => format!(
                "{option} {} matches nothing{}",
                glob.text(),
                instead(glob, known.iter().copied(), ("known are", MOST_KNOWN))
            ),
        })
        .collect()
}

/// At most `most` existing names: the nearest ones first, then those with the longest common prefix.
/// `whose` introduces the list.
fn instead<'n>(
    pattern: &Glob,
    names: impl Iterator<Item = &'n str>,
    (whose, most): (&str, usize),
) -> String {
    let alike = |name: &str| {
        let letters = name.chars().zip(pattern.text().chars());
        letters.take_while(|(own, other)| own == other).count()
    };
    let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let near = nearest(pattern, names.iter().copied());
    let place = |name: &str| {
        near.iter()
            .position(|other| *other == name)
            .unwrap_or(near.len())
    };
    names.sort_by_key(|&name| (place(name), Reverse(alike(name)), name));
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(": {whose} {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(patterns: &[&str], names: &[&str]) -> Vec<String> {
        let globs: Vec<Glob> = patterns.iter().map(|text| Glob::new(text)).collect();
        let things: Vec<Vec<String>> = names
            .iter()
            .map(|names| names.split('|').map(str::to_owned).collect())
            .collect();
        unmatched("--disk", &globs, &things)
    }

    #[test]
    fn each_pattern_that_matches_nothing_is_named() {
        assert_eq!(
            of(&["sd*", "nvme*"], &["vda", "sda"]),
            ["--disk nvme* matches nothing: the trace has sda, vda"]
        );
        assert_eq!(
            of(&["eht0"], &["ens3", "eth0", "lo"]),
            ["--disk eht0 matches nothing: the trace has eth0, ens3, lo"]
        );
        assert_eq!(of(&["26", "virtio"], &["26 virtio|26|virtio"]), [""; 0]);
        assert_eq!(of(&["x"], &[]), ["--disk x matches nothing"]);
        assert_eq!(of(&[], &["vda"]), [""; 0]);
    }

    #[test]
    fn names_that_cannot_be_are_told_from_those_that_were_not_met() {
        let globs = ["pipe", "soket", "f*"].map(Glob::new);
        let known = ["file", "pipe", "socket"];
        let told = unmatched_known("--type", &globs, (&["file"], &known), "no file");
        let expected = [
            "--type pipe matches no file",
            "--type soket matches nothing: known are socket, file, pipe",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn the_most_alike_come_first_and_many_are_counted() {
        let names: Vec<String> = (0..20)
            .map(|number| format!("/usr/lib/{number:02}"))
            .collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("/var/lib/mysql/x");
        let told = of(&["/var/lib/mysq/*"], &names);
        let all = "/var/lib/mysql/x, /usr/lib/00, /usr/lib/01, /usr/lib/02, /usr/lib/03, /usr/lib/04, \
                   /usr/lib/05, /usr/lib/06 and 13 more";
        assert_eq!(
            told,
            [format!(
                "--disk /var/lib/mysq/* matches nothing: the trace has {all}"
            )]
        );
    }
}
