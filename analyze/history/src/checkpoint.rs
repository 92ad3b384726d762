//! The part of the state at the start of a slice that values of attributes do not contain: stacks,
//! start times of values and open segments of a user analysis, descriptors, and open calls. It is
//! stored at some times, from which an append can continue.

use serde::{Deserialize, Serialize};

use crate::files;
use crate::slices::Slices;
use crate::user::{Follows, UserMachine};

/// Ratio of the distances from the end of the trace, in slices, of successive checkpoints.
const STEP: usize = 4;
/// Maximum number of checkpoints of a build.
const MOST: u32 = 4;
/// Maximum number of checkpoints in a file.
const MOST_KEPT: usize = 12;
/// Checkpoints take at most one `SHARE`th of the size of the blocks, or `FEW_BYTES`.
const SHARE: u64 = 2;
const FEW_BYTES: u64 = 1 << 20;

/// The stored state at the start of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(crate) time: i64,
    pub(crate) bytes: Vec<u8>,
}

/// The position of a checkpoint in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckpointRef {
    pub(crate) time: i64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// CRC-32 of its bytes.
    pub(crate) sum: u32,
}

/// The content of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The version that wrote it; other versions may evaluate event records differently.
    program: String,
    follows: Follows,
    machine: UserMachine,
    #[serde(default)]
    files: Option<files::Kept>,
}

/// The state at the start of reading, besides the values of attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// State of a user analysis.
    pub(crate) machine: UserMachine,
    /// State of descriptors, if they are followed.
    pub(crate) files: Option<files::Kept>,
}

#[derive(Serialize)]
struct Kept<'s> {
    program: &'s str,
    follows: Follows,
    machine: &'s UserMachine,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<files::Kept>,
}

const PROGRAM: &str = concat!("tracebraid ", env!("CARGO_PKG_VERSION"));

/// Stores the state at a time; `None` if it cannot be serialized.
pub(crate) fn keep(
    time: i64,
    follows: Follows,
    machine: &UserMachine,
    files: Option<files::Kept>,
) -> Option<Checkpoint> {
    let kept = Kept {
        program: PROGRAM,
        follows,
        machine,
        files,
    };
    let bytes = serde_json::to_vec(&kept).ok()?;
    Some(Checkpoint { time, bytes })
}

/// Reads a stored state, if an append can continue from it; with descriptors, if they are followed.
pub(crate) fn parse(bytes: &[u8], follows: Follows, follows_files: bool) -> Option<Knowledge> {
    let State {
        program,
        follows: followed,
        machine,
        files,
    } = serde_json::from_slice(bytes).ok()?;
    let fits = program == PROGRAM && followed == follows && machine.is_sound();
    let files_fit = files.is_some() == follows_files && files.iter().all(files::Kept::is_sound);
    (fits && files_fit).then_some(Knowledge { machine, files })
}

/// Times of checkpoints: starts of slices, denser towards the end, where a trace grows.
pub(crate) fn times(slices: &Slices) -> Vec<i64> {
    let distances = (0..MOST).map(|power| STEP.pow(power));
    let mut times: Vec<i64> = distances
        .filter_map(|distance| {
            Some(slices.begin(slices.len().checked_sub(distance).filter(|&at| at > 0)?))
        })
        .collect();
    times.reverse();
    times
}

/// Number of checkpoints worth their space beside `blocks` bytes of blocks, of those with these
/// lengths in the order of time: the latest ones.
pub(crate) fn worth_keeping(lengths: &[u64], blocks: u64) -> usize {
    let room = (blocks / SHARE).max(FEW_BYTES);
    let mut sum: u64 = 0;
    let fits = |length: &&u64| {
        sum = sum.saturating_add(**length);
        sum <= room
    };
    lengths
        .iter()
        .rev()
        .take(MOST_KEPT)
        .take_while(fits)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No bytes can exceed a bound later.
    #[test]
    fn what_cannot_have_been_kept_is_refused() {
        let follows = Follows::default();
        let whole = keep(5, follows, &UserMachine::default(), None)
            .unwrap()
            .bytes;
        assert!(parse(&whole, follows, false).is_some());
        let text = String::from_utf8(whole).unwrap();
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}: {text}");
            text.replace(from, to)
        };
        let height = changed("\"stacks\":[]", "\"stacks\":[[\"a\",4294967295]]");
        let place = changed(
            "\"kept\":[]",
            "\"kept\":[[\"a\",[\"b\",18446744073709551615]]]",
        );
        let number = changed("\"numbers\":[]", "\"numbers\":[[\"a\",7]]");
        let program = changed(PROGRAM, "tracebraid 0.0.0");
        for other in [
            height,
            place,
            number,
            program,
            text[1..].to_owned(),
            String::new(),
        ] {
            assert!(parse(other.as_bytes(), follows, false).is_none(), "{other}");
        }
    }

    /// The same for the state of descriptors.
    #[test]
    fn descriptors_that_cannot_have_been_kept_are_refused() {
        let follows = Follows::default();
        let files = Some(files::Kept::default());
        let whole = keep(5, follows, &UserMachine::default(), files)
            .unwrap()
            .bytes;
        assert!(parse(&whole, follows, true).is_some());
        assert!(parse(&whole, follows, false).is_none());
        let without = keep(5, follows, &UserMachine::default(), None)
            .unwrap()
            .bytes;
        assert!(parse(&without, follows, true).is_none());
        let text = String::from_utf8(whole).unwrap();
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}: {text}");
            text.replace(from, to)
        };
        let thread = r#"[{"trace":0,"tid":7},null]"#;
        for other in [
            changed(r#""texts":{"texts":[]"#, r#""texts":{"texts":["a","a"]"#),
            changed(r#""shown":[]"#, r#""shown":[true]"#),
            changed(r#""numbered":0"#, r#""numbered":-3"#),
            changed(r#""entries":0"#, r#""entries":18446744073709551615"#),
            changed(
                r#""directories":{"entries":[]"#,
                &format!(r#""directories":{{"entries":[{thread},{thread}]"#),
            ),
        ] {
            assert!(parse(other.as_bytes(), follows, true).is_none(), "{other}");
        }
        let one = changed(
            r#""directories":{"entries":[]"#,
            &format!(r#""directories":{{"entries":[{thread}]"#),
        );
        assert!(parse(one.as_bytes(), follows, true).is_some(), "{one}");
    }

    #[test]
    fn the_latest_are_kept() {
        assert_eq!(worth_keeping(&[5, 6, 7], 0), 3);
        assert_eq!(worth_keeping(&[1, FEW_BYTES, 7, 8], 0), 2);
        assert_eq!(worth_keeping(&[FEW_BYTES, 8], 4 * FEW_BYTES), 2);
        assert_eq!(worth_keeping(&[1; 40], 0), MOST_KEPT);
        assert_eq!(worth_keeping(&[], 0), 0);
    }
}
