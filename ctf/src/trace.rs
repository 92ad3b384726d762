//! Traces: what is known of them once they are open.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::clock::ClockConversion;
use crate::correction::Correction;
use crate::damage::Damage;
use crate::error::MetadataError;
use crate::index::IndexCheck;
use crate::layout::TraceLayout;
use crate::schema::Uuid;
use crate::stream::Stream;

/// An opened trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its directories: several where archives of a rotated session were joined.
    pub paths: Vec<PathBuf>,
    /// Its compiled metadata.
    pub layout: Arc<TraceLayout>,
    /// Bytes of the metadata files.
    pub metadata_bytes: u64,
    /// Its metadata file, as it was read: it may be large, and is not copied.
    pub(crate) metadata: Arc<Vec<u8>>,
    /// Its data streams, ordered by file name.
    pub streams: Vec<Stream>,
    /// What was found to be wrong while opening it.
    pub damage: Vec<Damage>,
    /// What is no damage, but worth knowing: files without a single packet.
    pub notes: Vec<Damage>,
    /// What its times are corrected by, if clocks were synchronized. It lives as long as the
    /// program, so that conversions can be copied in the loops over event records.
    pub correction: Option<&'static Correction>,
    /// True if its times are those of the synchronized clock, corrected or not.
    pub is_synchronized: bool,
    /// The CPUs of its events in streams that several CPUs share, once an analysis has looked for
    /// them.
    pub mixed_cpus: OnceLock<Vec<u32>>,
    /// The check of indexes, repeated when the trace is opened again with more metadata.
    pub(crate) index_check: IndexCheck,
}

/// Why a directory could not be opened as a trace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file could not be read.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The metadata is not acceptable.
    #[error("{path}:{error}", path = path.display())]
    Metadata {
        /// The metadata file.
        path: PathBuf,
        /// Place and reason.
        error: Box<MetadataError>,
    },
    /// A file, not the directory of a trace.
    #[error("{path}: this is a file: a trace is a directory{hint}", path = path.display(), hint = hint(path))]
    NotDirectory {
        /// The file.
        path: PathBuf,
    },
    /// Neither a file nor a directory.
    #[error("{path}: this is {what}: traces are read from files and directories", path = path.display())]
    Special {
        /// Where it is.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// No trace is there.
    #[error("{path}: no trace here: no directory below it has a file named `metadata`", path = path.display())]
    NoTrace {
        /// Where it was looked for.
        path: PathBuf,
    },
}

/// Which directory to give for a file of a trace.
fn hint(path: &Path) -> String {
    let directory = match path.parent() {
        Some(parent) if parent == Path::new("") => Path::new("."),
        Some(parent) => parent,
        None => return String::new(),
    };
    if path.file_name().is_some_and(|name| name == "metadata")
        || directory.join("metadata").is_file()
    {
        format!(
            "; give the one that this file is in: {}",
            directory.display()
        )
    } else {
        " with a file named `metadata`".to_owned()
    }
}

impl Trace {
    /// Conversion for the clock of a stream, with the trace's correction.
    pub fn clock(&self, stream: &Stream) -> Option<ClockConversion> {
        let clock = self.layout.streams.get(stream.class)?.clock?;
        let conversion = ClockConversion::new(self.layout.class.clocks.get(clock)?);
        Some(match self.correction {
            Some(correction) => conversion.corrected(correction),
            None => conversion,
        })
    }

    /// Its UUID.
    pub fn uuid(&self) -> Option<Uuid> {
        self.layout.class.uuid
    }
}

impl Stream {
    /// True if event records were lost close before the packet of that index, as far as the
    /// counters of its neighbours tell: tracers count at different moments what they lose between
    /// two packets.
    pub fn lost_before(&self, index: usize) -> bool {
        let discarded = |index: usize| self.packets.get(index).and_then(|packet| packet.discarded);
        let grew = |index: usize| match index.checked_sub(1) {
            Some(before) => discarded(index) != discarded(before),
            None => discarded(index).is_some_and(|count| count > 0),
        };
        let gap = |index: usize| match (
            index.checked_sub(1).and_then(|i| self.packets.get(i)),
            self.packets.get(index),
        ) {
            (Some(before), Some(packet)) => match (before.sequence, packet.sequence) {
                (Some(before), Some(now)) => now != before.wrapping_add(1),
                _ => false,
            },
            _ => false,
        };
        index > 0 && (grew(index) || grew(index - 1) || gap(index))
    }

    /// Bytes of all its packets.
    pub fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| packet.bytes).sum()
    }
}

/// Several traces that are read as one: a session of kernel and user-space traces, or all that
/// lies below a directory.
#[derive(Clone, Debug, Default)]
pub struct TraceSet {
    /// The traces, ordered by path.
    pub traces: Vec<Trace>,
    /// Traces that could not be opened, with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

impl TraceSet {
    /// The streams of all traces, each with its trace.
    pub fn streams(&self) -> impl Iterator<Item = (&Trace, &Stream)> {
        let traces = self.traces.iter();
        traces.flat_map(|trace| trace.streams.iter().map(move |stream| (trace, stream)))
    }

    /// All damage found so far.
    pub fn damage(&self) -> impl Iterator<Item = &Damage> {
        self.traces.iter().flat_map(|trace| &trace.damage)
    }
}
