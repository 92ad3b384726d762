//! Opened traces and their properties.

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
    /// Directories of the trace; several if archives of a rotated session were joined.
    pub paths: Vec<PathBuf>,
    /// Path of the user's file, if the trace was unpacked or imported into a temporary directory:
    /// the file, or the archive followed by the path in it. Set by the program that unpacked it.
    pub origin: Option<PathBuf>,
    /// Compiled metadata.
    pub layout: Arc<TraceLayout>,
    /// Size of the metadata files in bytes.
    pub metadata_bytes: u64,
    /// The metadata file as it was read. Shared, since it may be large.
    pub(crate) metadata: Arc<Vec<u8>>,
    /// Data streams, ordered by file name.
    pub streams: Vec<Stream>,
    /// Damage that was found when the trace was opened.
    pub damage: Vec<Damage>,
    /// Findings that are not damage, such as files without packets.
    pub notes: Vec<Damage>,
    /// Correction of the times, if clocks were synchronized. It lives as long as the program, so
    /// that conversions can be copied in the loops over event records.
    pub correction: Option<&'static Correction>,
    /// True if the times are those of the synchronized clock, whether corrected or not.
    pub is_synchronized: bool,
    /// The CPUs of event records in streams that several CPUs share, once an analysis has
    /// determined them.
    pub mixed_cpus: OnceLock<Vec<u32>>,
    /// The check of indexes, needed when the trace is opened again with more metadata.
    pub(crate) index_check: IndexCheck,
}

/// The reason why a directory could not be opened as a trace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file could not be read.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file that could not be read.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The metadata is invalid.
    #[error("{path}:{error}", path = path.display())]
    Metadata {
        /// The metadata file.
        path: PathBuf,
        /// Position and reason.
        error: Box<MetadataError>,
    },
    /// A file instead of the directory of a trace.
    #[error("{path}: this is a file, but a trace is a directory{hint}", path = path.display(), hint = hint(path))]
    NotDirectory {
        /// Path of the file.
        path: PathBuf,
    },
    /// Neither a file nor a directory.
    #[error("{path}: this is {what}, but traces are read from files and directories", path = path.display())]
    Special {
        /// Path that was opened.
        path: PathBuf,
        /// Kind of the file, with an article.
        what: &'static str,
    },
    /// No trace was found.
    #[error("{path}: no trace found: neither this directory nor any below it contains a file named `metadata`", path = path.display())]
    NoTrace {
        /// Path that was searched.
        path: PathBuf,
    },
}

/// The directory to use instead, for a file of a trace.
fn hint(path: &Path) -> String {
    let directory = match path.parent() {
        Some(parent) if parent == Path::new("") => Path::new("."),
        Some(parent) => parent,
        None => return String::new(),
    };
    if path.file_name().is_some_and(|name| name == "metadata")
        || directory.join("metadata").is_file()
    {
        format!("; use the directory of this file: {}", directory.display())
    } else {
        " with a file named `metadata`".to_owned()
    }
}

impl Trace {
    /// The path to show to users: the origin of the trace, or else its first directory.
    pub fn known_path(&self) -> Option<&Path> {
        self.origin
            .as_ref()
            .or(self.paths.first())
            .map(PathBuf::as_path)
    }

    /// Conversion for the clock of a stream, with the trace's correction.
    pub fn clock(&self, stream: &Stream) -> Option<ClockConversion> {
        let clock = self.layout.streams.get(stream.class)?.clock?;
        let conversion = ClockConversion::new(self.layout.class.clocks.get(clock)?);
        Some(match self.correction {
            Some(correction) => conversion.corrected(correction),
            None => conversion,
        })
    }

    /// UUID of the trace, if the metadata contains one.
    pub fn uuid(&self) -> Option<Uuid> {
        self.layout.class.uuid
    }
}

impl Stream {
    /// True if event records were lost shortly before the packet with this index, according to the
    /// counters of its neighbours. Tracers differ in when they count losses between two packets.
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

    /// Size of all packets in bytes.
    pub fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| packet.bytes).sum()
    }
}

/// Traces that are read together: a session of kernel and user-space traces, or all traces below a
/// directory.
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
