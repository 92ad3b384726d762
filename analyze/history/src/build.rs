//! Builds a history of a trace set, in parallel.
//!
//! Chunks of each CPU are folded into changes of attributes by slice of time ([`crate::kernel`]). A slice that is complete becomes a
//! piece of work: whoever is between two chunks encodes it ([`crate::encode`]). Encoded slices are written in their order
//! ([`crate::writer`]).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Chunk, Control, FoldError, Options, Record, StreamPlace, StreamRef, fold};
use tracebraid_kernel_fold::{Input, Selection};

use crate::encode::{Encoded, encode};
use crate::file::{HistoryError, Meta};
use crate::kernel::{Partial, wants};
use crate::levels::{self, Levels};
use crate::piece::Piece;
use crate::slices::Slices;
use crate::writer::Writer;

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// What the history is of.
    pub meta: Meta,
    /// Bytes of the file.
    pub bytes: u64,
    /// Damage that was met on the way.
    pub damage: Vec<Damage>,
}

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] HistoryError),
    /// It was cancelled.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// There is nothing to tell.
    #[error("no kernel events that tell of CPUs, threads or disks: a history needs sched_switch at least")]
    Nothing,
}

/// Builds the history of a trace set, of which `paths` tells where it is, and writes it to a file.
///
/// # Errors
/// When the file cannot be written, `control` was told to cancel, or there are no kernel events. Then there is no file.
pub fn build(
    set: &TraceSet,
    paths: &[PathBuf],
    file: &Path,
    options: Options,
    control: &Control,
) -> Result<Built, BuildError> {
    let input = Input::new(set, Selection::default(), wants);
    let head = input.head();
    let (Some(begin), Some(end)) = (head.begin, head.end) else {
        return Err(BuildError::Nothing);
    };
    let bytes = set.traces.iter().flat_map(|trace| &trace.streams);
    let bytes: u64 = bytes
        .flat_map(|stream| stream.packets.iter())
        .map(|packet| packet.bytes)
        .sum();
    let grid = levels::finest(head.duration_ns, bytes);
    let mut cpus: Vec<(u32, u32)> = input.sources.cpus().map(|cpu| (cpu.trace, cpu.cpu)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let writer = Writer::create(file, Levels::new(grid, head.duration_ns))?;
    let analysis = HistoryAnalysis {
        input,
        output: Output::new(set, writer, grid),
    };
    let outcome = fold(set, &analysis, options, control)?;
    let meta = Meta {
        program: concat!("tracebraid ", env!("CARGO_PKG_VERSION")).to_owned(),
        paths: paths.to_vec(),
        hosts: (0..set.traces.len())
            .map(|trace| name_of_host(&head, trace))
            .collect(),
        cpus,
        begin: begin.0,
        end: end.0,
        bytes,
        losses: outcome.report,
    };
    let bytes = analysis.output.finish(file, meta.clone())?;
    let damage = outcome.damage;
    Ok(Built { meta, bytes, damage })
}

fn name_of_host(head: &tracebraid_kernel_fold::Head, trace: usize) -> Option<String> {
    let host = head.hosts.iter().find(|host| host.trace as usize == trace)?;
    Some(host.name.clone().unwrap_or_else(|| format!("trace-{trace}")))
}

/// The analysis whose report is a file.
#[derive(Debug)]
struct HistoryAnalysis {
    input: Input,
    output: Output,
}

impl Analysis for HistoryAnalysis {
    type Partial = Partial;
    /// How often events were lost.
    type Report = u64;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.input.groups()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> Partial {
        // Between two chunks there is time for what merging has left.
        while self.output.work() {}
        Partial::new(chunk.index == 0)
    }

    fn packet(&self, partial: &mut Partial, packet: &StreamPlace<'_>) {
        if let Some(packet) = self.input.any_packet(packet) {
            partial.packet(&self.output.slices, &packet);
        }
    }

    fn cut(&self, partial: &mut Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        if let Some(packet) = self.input.any_packet(packet) {
            partial.packet(&self.output.slices, &packet.cut(time.0));
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut Partial, record: &mut Record<'_>) {
        let slices = &self.output.slices;
        self.input
            .event(record, |event, body| partial.event(slices, event, body));
    }

    fn end(&self, _: &mut Partial, _: &Chunk) {}

    fn merge(&self, earlier: &mut Partial, later: Partial) {
        earlier.merge(&self.output.slices, later);
    }

    fn settle(&self, partial: &mut Partial, watermark: Timestamp) {
        partial.hand_on(&self.output.slices, Some(watermark.0), |slice, pieces| {
            self.output.take(slice, pieces);
        });
    }

    fn finish(&self, mut partial: Partial) -> u64 {
        partial.hand_on(&self.output.slices, None, |slice, pieces| {
            self.output.take(slice, pieces)
        });
        while self.output.work() {}
        partial.losses
    }
}

/// From complete slices to the file.
#[derive(Debug)]
struct Output {
    slices: Slices,
    grid: i64,
    /// Slices that wait to be encoded.
    waiting: Mutex<VecDeque<(usize, Vec<Piece>)>>,
    /// Slices that wait for those before them to be written.
    encoded: Mutex<BTreeMap<usize, Encoded>>,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    writer: Writer,
    next: usize,
    error: Option<io::Error>,
}

impl Output {
    fn new(set: &TraceSet, writer: Writer, grid: i64) -> Output {
        Output {
            slices: Slices::of(set),
            grid,
            waiting: Mutex::default(),
            encoded: Mutex::default(),
            written: Mutex::new(Written {
                writer,
                next: 0,
                error: None,
            }),
        }
    }

    /// A slice is complete.
    fn take(&self, slice: usize, pieces: Vec<Piece>) {
        lock(&self.waiting).push_back((slice, pieces));
    }

    /// Encodes a slice that waits, and writes what can be; false if none waits.
    fn work(&self) -> bool {
        let Some((slice, pieces)) = lock(&self.waiting).pop_front() else {
            return false;
        };
        let encoded = encode(pieces, self.grid);
        lock(&self.encoded).insert(slice, encoded);
        // Whoever is writing takes it along, or whoever comes next.
        if let Ok(mut written) = self.written.try_lock() {
            self.write(&mut written);
        }
        true
    }

    fn write(&self, written: &mut Written) {
        while let Some(encoded) = lock(&self.encoded).remove(&written.next) {
            let slice = written.next;
            written.next += 1;
            if written.error.is_none() {
                let begin = slice
                    .checked_sub(1)
                    .map_or(i64::MIN, |before| self.slices.end(before));
                let added = written.writer.add(encoded, begin, self.slices.end(slice));
                written.error = added.err();
            }
        }
    }

    fn finish(self, path: &Path, meta: Meta) -> Result<u64, HistoryError> {
        {
            let mut written = lock(&self.written);
            self.write(&mut written);
        }
        let written = self.written.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = written.error {
            let path = path.to_owned();
            return Err(HistoryError::Io { path, error });
        }
        written.writer.finish(meta)
    }
}

/// Whoever panicked is reported by the scope of threads; what is behind the lock is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
