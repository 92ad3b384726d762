//! Conditions on system calls and page faults, as evaluated by BPF programs: see `bpf/where.h`.

use crate::shared::WHERE_SIZE;

/// Values from `least` to `most`, or, if inverted, all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Inclusive lower bound.
    pub least: i64,
    /// Inclusive upper bound.
    pub most: i64,
    /// Selects the values outside the bounds instead.
    pub is_inverted: bool,
}

/// Name of a thread, or a prefix of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadName {
    /// At most 15 bytes, the maximum that the kernel stores.
    pub text: String,
    /// Selects all names that begin with the text.
    pub is_prefix: bool,
    /// Selects all other names instead.
    pub is_inverted: bool,
}

/// Conditions that must all hold. Other system calls are left out, both entry and exit; page faults
/// have neither duration nor result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Nanoseconds from the entry of a call to its exit.
    pub duration: Option<Bounds>,
    /// Return value of a call.
    pub result: Option<Bounds>,
    /// Thread id in the initial PID namespace.
    pub tid: Option<Bounds>,
    /// Process id in the initial PID namespace.
    pub pid: Option<Bounds>,
    /// Priority, with the numbers of the context `prio`.
    pub prio: Option<Bounds>,
    /// Name of the thread.
    pub procname: Option<ThreadName>,
}

/// Maximum time for which a call is undecided if its result is compared: a longer call is recorded
/// whatever its result.
const LONGEST_UNDECIDED_NS: u64 = 1_000_000_000;

/// Upper bound for the delay of entries, in nanoseconds: the period of the clock that finds calls
/// which compute.
pub(crate) const TICK_NS: u64 = 10_000_000;
/// The same with other causes of delay.
const MOST_LATE_NS: u64 = 5 * TICK_NS;

impl Conditions {
    /// Maximum duration with which calls can be compared: events of that time are kept in memory.
    pub const LONGEST_NS: i64 = 10_000_000_000;

    pub(crate) fn is_used(&self) -> bool {
        *self != Conditions::default()
    }

    /// True if the duration or the result is compared, which only the exit of a call shows.
    pub(crate) fn has_outcome(&self) -> bool {
        self.duration.is_some() || self.result.is_some()
    }

    /// Maximum time for which a call is undecided, and whether a longer call is recorded.
    fn hold(&self) -> (u64, bool) {
        let duration = self.duration.unwrap_or(ANY);
        let least = duration.least.max(0) as u64;
        match (duration.most, self.result) {
            (i64::MAX, None) => (least, true),
            (i64::MAX, Some(_)) => (least.max(LONGEST_UNDECIDED_NS), true),
            (most, _) => (most.max(0) as u64 + 1, false),
        }
    }

    /// How undecided entries are treated.
    pub(crate) fn undecided(&self) -> Undecided {
        let (hold_ns, is_kept) = self.hold();
        match self.has_outcome() {
            true => Undecided {
                hold_ns,
                is_kept,
                delay_ns: hold_ns + MOST_LATE_NS,
            },
            false => Undecided::default(),
        }
    }

    /// Encodes as `struct where`.
    pub(crate) fn encode(&self) -> [u8; WHERE_SIZE] {
        let (hold_ns, hold_keeps) = self.hold();
        let mut bytes = hold_ns.to_ne_bytes().to_vec();
        let (name, mask) = self
            .procname
            .as_ref()
            .map_or(([0; 16], [0; 16]), ThreadName::encode);
        bytes.extend_from_slice(&name);
        bytes.extend_from_slice(&mask);
        for bounds in [self.duration, self.result, self.tid, self.pid, self.prio] {
            let used = u32::from(bounds.is_some());
            let bounds = bounds.unwrap_or(ANY);
            bytes.extend_from_slice(&bounds.least.to_ne_bytes());
            bytes.extend_from_slice(&bounds.most.to_ne_bytes());
            bytes.extend_from_slice(&used.to_ne_bytes());
            bytes.extend_from_slice(&u32::from(bounds.is_inverted).to_ne_bytes());
        }
        let is_inverted = self.procname.as_ref().is_some_and(|name| name.is_inverted);
        let flags = [
            self.is_used(),
            self.has_outcome(),
            hold_keeps,
            self.procname.is_some(),
            is_inverted,
        ];
        bytes.extend(flags.map(u8::from));
        let mut encoded = [0; WHERE_SIZE];
        encoded
            .iter_mut()
            .zip(bytes)
            .for_each(|(place, byte)| *place = byte);
        encoded
    }
}

const ANY: Bounds = Bounds {
    least: i64::MIN,
    most: i64::MAX,
    is_inverted: false,
};

impl ThreadName {
    /// The name and the mask of the compared bytes, which include the terminating null of a whole
    /// name.
    fn encode(&self) -> ([u8; 16], [u8; 16]) {
        let (mut name, mut mask) = ([0; 16], [0; 16]);
        let text = self.text.as_bytes();
        name.iter_mut()
            .zip(text)
            .for_each(|(place, &byte)| *place = byte);
        let count = text.len() + usize::from(!self.is_prefix);
        mask.iter_mut()
            .take(count)
            .for_each(|place| *place = u8::MAX);
        (name, mask)
    }
}

/// Treatment of entries of calls whose exits decide whether they are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undecided {
    /// A call that takes longer is recorded, or not, whatever its result.
    pub(crate) hold_ns: u64,
    pub(crate) is_kept: bool,
    /// How long events are kept in memory, in nanoseconds.
    pub(crate) delay_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_least(least: i64) -> Option<Bounds> {
        Some(Bounds { least, ..ANY })
    }

    #[test]
    fn undecided_calls_wait_no_longer_than_needed() {
        let of = |duration, result| {
            let conditions = Conditions {
                duration,
                result,
                ..Conditions::default()
            };
            conditions.hold()
        };
        assert_eq!(of(at_least(1000), None), (1000, true));
        assert_eq!(
            of(at_least(1000), at_least(0)),
            (LONGEST_UNDECIDED_NS, true)
        );
        assert_eq!(of(None, at_least(0)), (LONGEST_UNDECIDED_NS, true));
        let short = Some(Bounds { most: 5, ..ANY });
        assert_eq!(of(short, None), (6, false));
        assert_eq!(of(short, at_least(0)), (6, false));
        let by_thread = Conditions {
            tid: at_least(7),
            ..Conditions::default()
        };
        assert!(by_thread.is_used() && !by_thread.has_outcome());
        assert_eq!(by_thread.undecided().delay_ns, 0);
    }

    #[test]
    fn names_are_compared_up_to_their_ends() {
        let name = |text: &str, is_prefix| ThreadName {
            text: text.into(),
            is_prefix,
            is_inverted: false,
        };
        let (text, mask) = name("cat", false).encode();
        assert_eq!(
            (&text[..4], &mask[..5]),
            (&b"cat\0"[..], &[255, 255, 255, 255, 0][..])
        );
        assert_eq!(name("cat", true).encode().1[..4], [255, 255, 255, 0]);
        assert_eq!(name("fifteen letters", false).encode().1, [255; 16]);
    }

    #[test]
    fn conditions_are_encoded_as_programs_have_them() {
        let conditions = Conditions {
            duration: at_least(1_000_001),
            procname: Some(ThreadName {
                text: "x".into(),
                is_prefix: true,
                is_inverted: true,
            }),
            ..Conditions::default()
        };
        let bytes = conditions.encode();
        assert_eq!(bytes[..8], 1_000_001u64.to_ne_bytes());
        assert_eq!(bytes[40..48], 1_000_001i64.to_ne_bytes());
        assert_eq!(bytes[48..56], i64::MAX.to_ne_bytes());
        assert_eq!(bytes[56..64], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[160..], [1, 1, 1, 1, 1, 0, 0, 0]);
        assert_eq!(
            Conditions::default().encode()[160..],
            [0, 0, 1, 0, 0, 0, 0, 0]
        );
    }
}
