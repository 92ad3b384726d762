//! Glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that stands for itself.

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Byte(u8),
    Any,
    Many,
    Class {
        negated: bool,
        ranges: Vec<(u8, u8)>,
    },
}

impl Glob {
    /// Every text is a valid pattern: an unclosed bracket stands for itself.
    pub fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match byte {
                b'*' if parts.last() == Some(&Part::Many) => {}
                b'*' => parts.push(Part::Many),
                b'?' => parts.push(Part::Any),
                b'\\' => match rest.split_first() {
                    Some((&escaped, behind)) => {
                        parts.push(Part::Byte(escaped));
                        rest = behind;
                    }
                    None => parts.push(Part::Byte(b'\\')),
                },
                b'[' => match class(rest) {
                    Some((part, behind)) => {
                        parts.push(part);
                        rest = behind;
                    }
                    None => parts.push(Part::Byte(b'[')),
                },
                byte => parts.push(Part::Byte(byte)),
            }
        }
        Glob {
            text: text.to_owned(),
            parts,
        }
    }

    /// A pattern that only `text` matches.
    pub fn literal(text: &str) -> Self {
        Glob {
            text: text.to_owned(),
            parts: text.bytes().map(Part::Byte).collect(),
        }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether all of `bytes` matches. Time is at most the product of both lengths.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let (mut part, mut at) = (0, 0);
        // Backtracking point of the last `*`: the part after it, and the number of bytes it ends
        // at.
        let mut again: Option<(usize, usize)> = None;
        loop {
            let matched = match (self.parts.get(part), bytes.get(at)) {
                (None, None) => return true,
                (Some(Part::Many), _) => {
                    part += 1;
                    again = Some((part, at));
                    continue;
                }
                (Some(part), Some(&byte)) => part.takes(byte),
                _ => false,
            };
            if matched {
                (part, at) = (part + 1, at + 1);
                continue;
            }
            let Some((next, taken)) = again.filter(|&(_, taken)| taken < bytes.len()) else {
                return false;
            };
            (part, at) = (next, taken + 1);
            again = Some((next, taken + 1));
        }
    }
}

impl Glob {
    /// Number of edits (insert, delete or replace a byte, swap two neighbours) that turn `text`
    /// into a text that the pattern matches; the optimal string alignment distance if the pattern
    /// has no wildcard. Case is ignored. Time is the product of both lengths.
    pub(crate) fn distance(&self, text: &[u8]) -> usize {
        // Three rows of the usual table: [i][j] is the distance of `i` parts to `j` bytes.
        let mut last_but_one = Vec::new();
        let mut last: Vec<usize> = (0..=text.len()).collect();
        let mut previous: Option<&Part> = None;
        for part in &self.parts {
            let is_many = *part == Part::Many;
            let mut row = Vec::with_capacity(last.len());
            row.push(last[0] + usize::from(!is_many));
            for (at, &byte) in text.iter().enumerate() {
                let best = if is_many {
                    last[at + 1].min(row[at])
                } else {
                    let replaced = last[at] + usize::from(!part.takes_any_case(byte));
                    replaced.min(last[at + 1] + 1).min(row[at] + 1)
                };
                let swapped = at.checked_sub(1).and_then(|before| {
                    let is_swapped =
                        part.takes_any_case(text[before]) && previous?.takes_any_case(byte);
                    is_swapped.then(|| last_but_one[before] + 1)
                });
                row.push(swapped.map_or(best, |swapped: usize| best.min(swapped)));
            }
            last_but_one = std::mem::replace(&mut last, row);
            previous = Some(part);
        }
        last.last().copied().unwrap_or_default()
    }

    /// Number of characters and bracket expressions, which match few characters each.
    pub(crate) fn literals(&self) -> usize {
        let is_literal = |part: &&Part| matches!(part, Part::Byte(_) | Part::Class { .. });
        self.parts.iter().filter(is_literal).count()
    }

    /// True if the pattern contains no wildcard.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Byte(_)))
    }

    /// Length in bytes of every text that the pattern matches; `None` if it varies.
    pub(crate) fn length(&self) -> Option<usize> {
        (!self.parts.contains(&Part::Many)).then_some(self.parts.len())
    }
}

impl Part {
    /// [`Part::takes`] without regard to case; false for `*`.
    fn takes_any_case(&self, byte: u8) -> bool {
        self.takes(byte.to_ascii_lowercase()) || self.takes(byte.to_ascii_uppercase())
    }

    fn takes(&self, byte: u8) -> bool {
        match self {
            Part::Byte(own) => *own == byte,
            Part::Any => true,
            Part::Many => false,
            Part::Class { negated, ranges } => {
                ranges
                    .iter()
                    .any(|&(low, high)| low <= byte && byte <= high)
                    != *negated
            }
        }
    }
}

/// Parses a bracket expression after its opening bracket; returns it and the rest.
fn class(bytes: &[u8]) -> Option<(Part, &[u8])> {
    let (negated, mut rest) = match bytes.split_first() {
        Some((b'!' | b'^', behind)) => (true, behind),
        _ => (false, bytes),
    };
    let mut ranges = Vec::new();
    loop {
        rest = match rest {
            // A bracket in the first position is a member.
            [b']', behind @ ..] if !ranges.is_empty() => {
                return Some((Part::Class { negated, ranges }, behind));
            }
            [low, b'-', high, behind @ ..] if *high != b']' => {
                ranges.push((*low, *high));
                behind
            }
            [byte, behind @ ..] => {
                ranges.push((*byte, *byte));
                behind
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn patterns() {
        let cases = [
            ("syscall_*", "syscall_entry_read", true),
            ("syscall_*", "exit_syscall", false),
            ("*.so", "libc.so", true),
            ("*.so", "libc.so.6", false),
            ("*.so*", "libc.so.6", true),
            ("a*b*c", "aXXbYYbZZc", true),
            ("a*b*c", "aXXbYYbZZ", false),
            ("?", "", false),
            ("??", "ab", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[", "[", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "", true),
            ("*", "", true),
            ("**", "x", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                Glob::new(pattern).matches(text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
        assert!(!Glob::literal("a*").matches(b"ab"));
    }

    /// Without wildcards the distance equals that of the strsim crate; where a pattern matches, it
    /// is 0.
    #[test]
    fn distances_are_those_of_edits() {
        let names = [
            "",
            "a",
            "ab",
            "ba",
            "sched_switch",
            "sched_swich",
            "sched_swithc",
            "sched_wakeup",
            "shced_switch",
            "irq_handler_entry",
            "irq_handler_exit",
            "next_tid",
            "nxt_tid",
            "xnext_ti",
        ];
        for one in names {
            for other in names {
                let distance = Glob::literal(one).distance(other.as_bytes());
                assert_eq!(distance, strsim::osa_distance(one, other), "{one} {other}");
            }
        }
        for (pattern, text, distance) in [
            ("sched_*", "sched_switch", 0),
            ("sched_swich*", "sched_switch_x", 1),
            ("*_swich", "sched_switch", 1),
            ("net_dve_*", "net_dev_xmit", 1),
            ("SCHED_?witch", "sched_switch", 0),
            ("*", "", 0),
            ("[a-c]*x", "dx", 1),
        ] {
            assert_eq!(
                Glob::new(pattern).distance(text.as_bytes()),
                distance,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!Glob::new(&format!("{}b", "a*".repeat(30))).matches(&b"a".repeat(5_000)));
    }
}
