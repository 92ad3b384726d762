//! Whether the recorder of a trace ended it.
//!
//! tracebraid's recorder ends a kernel trace with the event `tracebraid_end`, in the last packet of
//! a stream, and announces that by `tracebraid_end_mark` in the environment. A trace without the
//! mark is still growing, or the recorder was killed, or the trace was cut afterwards. Only the
//! last packet of each stream is read, up to the first mark.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::schema::{EnvValue, IntClass};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_ctf::walk::{Visitor, walk};

/// Environment key of traces that end with a mark.
const EXPECTED: &str = "tracebraid_end_mark";
const MARK: &str = "tracebraid_end";
const REASON: &str = "reason";
/// Reason in the mark of a chunk whose recording continues in the next chunk.
const ROTATED: &str = "rotated";

/// End of a trace whose recorder writes a mark at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// The recorder ended the trace; with the reason in the mark, if it is readable.
    Ended(Option<String>),
    /// The recorder still writes to the trace.
    Growing,
    /// The recorder was killed, or the trace was cut.
    Unfinished,
}

/// A trace that its recorder did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unended {
    /// Index of the trace in its set.
    pub trace: u32,
    /// End of the last packet in nanoseconds from the origin: later events are missing. `None` for
    /// a trace without packets.
    pub recorded_until_ns: Option<i64>,
}

impl TraceEnd {
    /// Reads the last packets; `None` if the recorder of the trace writes no mark, or the newest
    /// files have been removed.
    pub fn of(trace: &Trace) -> Option<TraceEnd> {
        match trace.layout.class.env(EXPECTED) {
            Some(EnvValue::Int(1..)) => {}
            _ => return None,
        }
        let is_mark = |stream: &Stream| {
            let layout = trace.layout.streams.get(stream.class)?;
            layout.events.iter().position(|event| *event.name == *MARK)
        };
        // The recorder describes all event classes in advance: a trace without this class was
        // written by another program, from a part of the event records.
        let mut has_class = trace.streams.is_empty();
        for stream in &trace.streams {
            let Some(class) = is_mark(stream) else {
                continue;
            };
            has_class = true;
            if let Some(reason) = mark(trace, stream, class)
                && !(reason.as_deref() == Some(ROTATED) && goes_on(trace, stream))
            {
                return Some(TraceEnd::Ended(reason));
            }
        }
        // The end of a chunk that was removed while it was read cannot be determined.
        if is_removed(trace) {
            return None;
        }
        let end = match is_growing(trace) {
            true => TraceEnd::Growing,
            false => TraceEnd::Unfinished,
        };
        has_class.then_some(end)
    }
}

/// Whether the newest directory of a trace no longer exists, as after a recording with `--keep` has
/// removed a chunk.
fn is_removed(trace: &Trace) -> bool {
    trace
        .paths
        .iter()
        .max()
        .is_some_and(|newest| !newest.exists())
}

/// Traces that their recorders did not end, among those whose recorders write a mark.
pub fn unended(set: &TraceSet) -> Vec<Unended> {
    let of = |(trace, index): (&Trace, u32)| {
        (TraceEnd::of(trace) == Some(TraceEnd::Unfinished)).then(|| Unended {
            trace: index,
            recorded_until_ns: recorded_until(trace),
        })
    };
    set.traces.iter().zip(0..).filter_map(of).collect()
}

fn recorded_until(trace: &Trace) -> Option<i64> {
    let of = |stream: &Stream| {
        let end = stream.packets.last()?.end?;
        Some(trace.clock(stream)?.timestamp(end).0)
    };
    trace.streams.iter().filter_map(of).max()
}

/// The reason in the mark in the last packet of a stream, if there is a mark.
fn mark(trace: &Trace, stream: &Stream, class: usize) -> Option<Option<String>> {
    let layout = trace.layout.streams.get(stream.class)?;
    let table = Arc::new(ScanTable::new(layout, |of| of == class));
    let last = stream.packets.len().checked_sub(1)?;
    let mut scanner = Scanner::new(trace, stream, table, last..last + 1)?;
    scanner.next_packet()?;
    let mut found = None;
    loop {
        let progress = scanner.scan_up_to(1);
        scanner.batch().for_each(|_, _, mut cursor, slots| {
            let mut reason = Reason(None);
            if let Some(payload) = layout
                .events
                .get(class)
                .and_then(|event| event.payload.root())
            {
                // A mark without a reason still counts.
                let _ = walk(payload, &mut cursor, slots, &mut reason);
            }
            found = Some(reason.0);
        });
        if found.is_some() || progress == Progress::PacketEnd {
            return found;
        }
    }
}

/// Extracts the label of the reason.
struct Reason(Option<String>);

impl Visitor for Reason {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if *node.name == *REASON {
            let raw = i128::from(raw);
            let has = |range: &tracebraid_ctf::schema::IntRange| range.contains(raw);
            let mut labels = class.mappings.iter();
            let label = labels.find(|mapping| mapping.ranges.iter().any(has));
            self.0 = label.map(|mapping| mapping.label.clone());
        }
    }
}

/// Whether the trace has a chunk after the last packet of the stream, in which the stream has no
/// packet yet.
fn goes_on(trace: &Trace, stream: &Stream) -> bool {
    let last = stream.packets.last();
    let last = last.and_then(|packet| stream.files.get(packet.file as usize));
    let directory = last.and_then(|file| file.path.parent());
    // Names of chunks begin with their numbers.
    let newest = trace.paths.iter().max();
    newest.map(PathBuf::as_path) > directory
}

/// Whether the recorder holds the lock of the trace's directory, or has written since the trace was
/// opened. The lock is free once the recorder has ended, whatever the cause.
fn is_growing(trace: &Trace) -> bool {
    let is_locked = |path: &PathBuf| {
        let locked = File::open(path).map(|directory| directory.try_lock_shared());
        matches!(locked, Ok(Err(std::fs::TryLockError::WouldBlock)))
    };
    // A chunk that was being written when the trace was opened may have ended since.
    let mut files = trace.streams.iter().flat_map(|stream| &stream.files);
    let has_grown =
        files.any(|file| std::fs::metadata(&file.path).is_ok_and(|now| now.len() > file.bytes));
    trace.paths.iter().any(is_locked) || has_grown
}
