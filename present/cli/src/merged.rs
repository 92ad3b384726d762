//! Super-traces: merging, and what a merge did, in words.

use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_levels::{MergeError, Merged, Options, ViolationKind, is_super_trace, merge};

use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::imported;
use crate::origins;
use crate::output::say;
use crate::time;
use crate::units::number_of;

/// Parses `--bound`, to nanoseconds. A unit is required, since other options take plain numbers as seconds.
pub(crate) fn bound(text: &str) -> Result<u64, String> {
    let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
    let bound = time::duration(text).filter(|_| has_unit);
    bound
        .and_then(|bound| u64::try_from(bound).ok())
        .ok_or_else(|| format!("{text}: expected a time with a unit, such as 500ns or 10us"))
}

/// Merges traces into super-traces at `to`.
///
/// # Errors
/// If the user interrupts the merge, an index is wrong, nothing can be merged, or a write fails.
pub(crate) fn merge_into(
    set: &TraceSet,
    to: &Path,
    bound: Option<u64>,
    args: &FoldArgs,
) -> Result<Vec<Merged>, Failure> {
    let options = args.options(None);
    let options = Options {
        threads: options.threads,
        chunk_bytes: options.chunk_bytes,
        bound,
        ..Options::default()
    };
    let merged = fold::watched(args, |control| merge(set, to, options, control));
    merged.map_err(|error| match error {
        MergeError::Fold(error) => Failure::from(error),
        MergeError::Write(error) => Failure::output(error.to_string()),
        error @ MergeError::Nothing(_) => Failure::nothing_readable(error.to_string()),
    })
}

/// A set of traces with the super-traces in place of all traces, in a temporary directory.
///
/// # Errors
/// As [`merge_into`]; also if there is no room for the temporary directory.
pub(crate) fn in_place_of(
    set: TraceSet,
    paths: &[PathBuf],
    fold: &FoldArgs,
) -> Result<TraceSet, Failure> {
    if set.traces.iter().all(is_super_trace) {
        return Ok(set);
    }
    let first = paths.first().map_or(Path::new("traces"), PathBuf::as_path);
    let name = first.file_name().unwrap_or(first.as_os_str());
    let to = imported::temporary()?.join(name);
    let merged = merge_into(&set, &to, None, &fold.without_timings())?;
    for own in &merged {
        say!("{}", said(own, &origins::shown(first)));
        for note in notes(own) {
            say!("note: {note}");
        }
    }
    if let [only] = paths {
        origins::add(&to, only);
    }
    let mut opened =
        TraceSet::open(&[&to]).map_err(|error| Failure::nothing_readable(error.to_string()))?;
    opened.failed = set.failed;
    origins::note(&mut opened);
    Ok(opened)
}

/// Points out `--levels` if the traces contain both levels of scheduling.
pub(crate) fn hint(set: &TraceSet) {
    let has = |name: &str| {
        let streams = set.traces.iter().filter(|trace| !is_super_trace(trace));
        let mut streams = streams.flat_map(|trace| &trace.layout.streams);
        streams.any(|stream| stream.events.iter().any(|event| *event.name == *name))
    };
    let is_kernel = |trace: &Trace| trace.layout.class.env_str("domain") == Some("kernel");
    if has("tracebraid:ult_switch") && set.traces.iter().any(is_kernel) {
        say!("note: the traces contain user-level threads: --levels shows them as threads");
    }
}

/// A merge in one line, about the traces at `path`.
pub(crate) fn said(merged: &Merged, path: &str) -> String {
    format!(
        "{path}: {} and {} of {}: {} merged, {} added",
        number_of(
            merged.threads as u64,
            "user-level thread",
            "user-level threads"
        ),
        number_of(merged.lwps as u64, "LWP", "LWPs"),
        number_of(merged.processes.len() as u64, "process", "processes"),
        number_of(merged.counts.copied, "event record", "event records"),
        number_of(merged.counts.derived, "derived record", "derived records"),
    )
}

/// Notes on records and traces that were moved or left out.
pub(crate) fn notes(merged: &Merged) -> Vec<String> {
    let counts = &merged.counts;
    let mut notes = merged.notes.clone();
    notes.extend(merged.left_out.iter().map(|one| format!("left out: {one}")));
    let mut note = |count: u64, text: &str| {
        if count > 0 {
            notes.push(format!(
                "{} {text}",
                number_of(count, "event record", "event records")
            ));
        }
    };
    note(
        counts.moved,
        &format!(
            "of programs moved by at most {} ns, to where the thread ran",
            counts.largest_move
        ),
    );
    note(
        counts.without_thread,
        "of programs without a thread: no CPU is known",
    );
    note(
        counts.not_covered,
        "of programs before or after the kernel trace: no CPU is known",
    );
    note(
        counts.near_losses,
        "of programs without a CPU, since the kernel's tracer lost event records",
    );
    note(counts.without_cpu, "of the kernel without a CPU left out");
    note(
        counts.refused,
        "left out: too large for a packet, or damaged",
    );
    for (kind, count) in &counts.violations {
        notes.push(violation(*kind, *count));
    }
    if merged.lost.0 + merged.lost.1 > 0 {
        notes.push(format!(
            "event records were lost while recording: {} of the kernel, {} of programs",
            merged.lost.0, merged.lost.1
        ));
    }
    if !merged.has_kernel {
        notes.push("no kernel trace: each LWP takes the place of a CPU".to_owned());
    }
    if merged.threads == 0 {
        notes.push("the traces contain no user-level threads".to_owned());
    }
    notes
}

fn violation(kind: ViolationKind, count: u64) -> String {
    let times = number_of(count, "time", "times");
    match kind {
        ViolationKind::AnotherThread => {
            format!("{times} an LWP switched from a user-level thread other than the one it ran")
        }
        ViolationKind::TwoLwps => format!("{times} a user-level thread ran on two LWPs at once"),
        ViolationKind::NoCpu => {
            format!("{times} an LWP recorded an event while the kernel ran it on no CPU")
        }
        ViolationKind::Suspended => format!(
            "{times} an LWP recorded an event within an interrupt or a system call of its own"
        ),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bounds_have_units() {
        assert_eq!(super::bound("500ns"), Ok(500));
        assert_eq!(super::bound("1.5us"), Ok(1_500));
        assert_eq!(super::bound("10us"), Ok(10_000));
        assert_eq!(super::bound("1ms"), Ok(1_000_000));
        for wrong in ["", "us", "-1us", "500", "1x"] {
            assert!(super::bound(wrong).is_err(), "{wrong}");
        }
    }
}
