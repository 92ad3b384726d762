//! Brings a history up to date with a trace that has grown.
//!
//! New packets may belong to times that the history covers already: CPUs write their packets at
//! different times. So the history is cut at the start of a slice that precedes all new packets
//! ([`cut`]). The part up to there stays and yields the values of attributes ([`crate::resume`]);
//! packets that reach past the cut, and all later ones, are read as in a build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, first_reaching};
use tracebraid_follow::{NotRecorded, Recorded};

use crate::build::Built;
use crate::checkpoint::{self, Knowledge};
use crate::file::{Analysis, HistoryError, Index, Meta, Source};
use crate::ground::{Asked, BuildError, Ground};
use crate::history_analysis::{HistoryAnalysis, Output};
use crate::marks::{self, Growth, StreamMark};
use crate::resume::resume;
use crate::slices::Slices;
use crate::user::{Definition, DefinitionError};

/// Result of appending.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The history after appending.
    pub built: Built,
    /// Number of new packets: 0 if the trace has not grown; the file is then unchanged.
    pub packets: u64,
    /// Bytes of the packets that were read.
    pub read: u64,
}

/// Errors of appending. The history is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The history or the trace cannot be read, or the history cannot be written.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The history is not of an earlier state of this trace.
    #[error("{}: is a history of another trace: {what}; build a new one with `tracebraid history build`", path.display())]
    Other {
        /// The history.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// The history contains an analysis whose definition this version cannot read.
    #[error(
        "{}: contains the analysis {name}, whose definition this version cannot read: {error}; rebuild \
         it with `tracebraid history build --analysis FILE`",
        path.display()
    )]
    Analysis {
        /// Path of the history.
        path: PathBuf,
        /// Name of the analysis.
        name: String,
        /// Error in the stored definition.
        error: DefinitionError,
    },
    /// The history does not record how far the trace was read.
    #[error("{}: does not record how far the trace was read, so it cannot be appended to; rebuild it with `tracebraid history build`", path.display())]
    Old {
        /// Path of the history.
        path: PathBuf,
    },
    /// Another process is appending to the history.
    #[error("{}: another process is appending to this history; try again once it has finished", path.display())]
    Busy {
        /// Path of the history.
        path: PathBuf,
    },
}

impl From<HistoryError> for AppendError {
    fn from(error: HistoryError) -> AppendError {
        AppendError::Build(error.into())
    }
}

/// Appends the growth of a trace set to its history; `paths` are its present paths. Concurrent
/// readers see the old or the new state; if appending fails or is interrupted, the old state
/// remains.
///
/// # Errors
/// If the history or the trace cannot be read, the history is of another trace, cannot be continued
/// or written, another process is appending to it, or `control` cancels.
pub fn append(
    set: &TraceSet,
    paths: &[PathBuf],
    file: &Path,
    options: Options,
    control: &Control,
) -> Result<Appended, AppendError> {
    let _lock = Lock::take(file)?;
    let (source, index) = Source::open(file)?;
    let asked = asked(file, &index.meta)?;
    let growth = marks::growth(&index.meta.streams, set);
    let growth = growth.map_err(|what| AppendError::Other {
        path: file.to_owned(),
        what,
    })?;
    let Some(growth) = growth else {
        // Nothing else reads the blocks in this case, so verify them here.
        let mut blocks = index.blocks.iter();
        blocks.try_for_each(|place| source.block(place).map(drop))?;
        return Ok(nothing(source, index, paths)?);
    };
    let meta = Meta {
        paths: paths.to_vec(),
        analysis: index.meta.analysis.clone(),
        files: asked.files,
        streams: StreamMark::of(set),
        ..Meta::default()
    };
    let recorded = Arc::new(Recorded::of(set));
    let slices = Slices::of(set, &recorded);
    let times = checkpoint::times(&slices);
    let ground = Ground::of(set, &recorded, asked, &times)?;
    // If other CPUs turn out to be missing, other values are unknown from the start on, so the
    // whole trace must be read.
    let is_known = begins(&index.meta.not_recorded) == begins(&ground.not_recorded());
    let cut = is_known.then(|| cut(set, &slices, &index, (growth, &ground)));
    let cut = seeded(&source, &ground, &index, cut.flatten());
    let (cut, knowledge) = cut.unzip();
    let options = Options {
        since: cut.map(Timestamp),
        ..options
    };
    let slices = match cut {
        Some(cut) => slices.behind(cut),
        None => slices,
    };
    let is_behind = |time: &i64| cut.is_none_or(|cut| *time > cut);
    let times = times.into_iter().filter(is_behind).collect();
    let resumed = resume(&source, index, cut, ground.levels(), &meta)?;
    let analysis = HistoryAnalysis {
        known: resumed.values,
        knowledge: knowledge.unwrap_or_default(),
        output: Output::new(
            slices,
            times,
            ground.grid,
            (resumed.settling, resumed.writer),
        ),
        ground,
    };
    let meta = Meta {
        losses: resumed.losses,
        ..meta
    };
    let built = analysis.run(set, meta, options, control)?;
    Ok(Appended {
        built,
        packets: growth.packets,
        read: control.total(),
    })
}

/// Missing CPUs without `after_ns`: ends of CPUs move when the trace grows, the rest stays.
fn begins(missing: &[NotRecorded]) -> Vec<NotRecorded> {
    let without_end = missing
        .iter()
        .filter(|of| of.is_never() || of.before_ns.is_some());
    let begin = |of: &NotRecorded| NotRecorded {
        after_ns: None,
        ..*of
    };
    without_end.map(begin).collect()
}

/// Ends of CPUs: trace and CPU; time in nanoseconds from the origin.
fn ends(missing: &[NotRecorded]) -> BTreeSet<((u32, u32), i64)> {
    let ended = missing
        .iter()
        .filter_map(|of| Some(((of.trace, of.cpu), of.after_ns?)));
    ended.collect()
}

/// The options of the build, if the history can be appended to at all.
fn asked(file: &Path, meta: &Meta) -> Result<Asked, AppendError> {
    let path = || file.to_owned();
    if meta.streams.is_empty() {
        return Err(AppendError::Old { path: path() });
    }
    let parse = |own: &Analysis| {
        Definition::parse(&own.text).map_err(|error| AppendError::Analysis {
            path: path(),
            name: own.name.clone(),
            error,
        })
    };
    Ok(Asked {
        definition: meta.analysis.as_ref().map(parse).transpose()?,
        files: meta.files,
    })
}

/// The time to continue from, with the state at that time. `None` if the state cannot be restored:
/// then the whole trace is read.
fn seeded(
    source: &Source,
    ground: &Ground,
    index: &Index,
    cut: Option<i64>,
) -> Option<(i64, Knowledge)> {
    let cut = cut?;
    if !ground.needs_checkpoints() {
        return Some((cut, Knowledge::default()));
    }
    let kept = index.checkpoints.iter().find(|kept| kept.time == cut)?;
    let bytes = source.checkpoint(kept).ok()?;
    let knowledge = checkpoint::parse(&bytes, ground.follows(), ground.follows_files())?;
    Some((cut, knowledge))
}

/// Handles a trace without new packets; the paths of the traces may have changed.
fn nothing(
    mut source: Source,
    mut index: Index,
    paths: &[PathBuf],
) -> Result<Appended, HistoryError> {
    if index.meta.paths != paths {
        index.meta.paths = paths.to_vec();
        source.put_index(&index)?;
    }
    let built = Built {
        meta: index.meta,
        bytes: source.end,
        damage: Vec::new(),
        doubts: Vec::new(),
    };
    Ok(Appended {
        built,
        packets: 0,
        read: 0,
    })
}

/// The time from which the history is rebuilt: the start of a slice that precedes all new packets
/// and that no block spans; if there is a user analysis, the time of a checkpoint. `None` to
/// rebuild the whole history.
fn cut(
    set: &TraceSet,
    slices: &Slices,
    index: &Index,
    (growth, ground): (Growth, &Ground),
) -> Option<i64> {
    let kept = |until: i64| {
        let mut kept = index.checkpoints.iter().rev().map(|kept| kept.time);
        kept.find(|&time| time <= until && slices.last_begin(time) == Some(time))
    };
    // Values after the end of a CPU change where that end moves.
    let [before, now] =
        [&index.meta.not_recorded, &ground.not_recorded()].map(|missing| ends(missing));
    let moved = before.symmetric_difference(&now).map(|&(_, end)| end);
    let mut until = moved.fold(growth.since, i64::min);
    loop {
        let cut = match ground.needs_checkpoints() {
            true => kept(until)?,
            false => slices.last_begin(until)?,
        };
        let blocks = index.blocks.iter().filter(|block| block.level == 0);
        let mut over = blocks.filter(|block| block.begin < cut && block.end > cut);
        match over
            .next()
            .map(|block| block.begin)
            .or_else(|| held(set, cut))
        {
            Some(earlier) => until = earlier.min(cut.checked_sub(1)?),
            None => return Some(cut),
        }
    }
}

/// Packets that begin earlier than the end of a preceding packet have held times, so all such
/// packets must be read. Returns the start of such a packet, if it precedes a time that the
/// preceding packets reach.
fn held(set: &TraceSet, cut: i64) -> Option<i64> {
    let of_trace = set.traces.iter().flat_map(|trace| {
        trace.streams.iter().filter_map(move |stream| {
            let clock = trace.clock(stream);
            let first = first_reaching(trace, stream, Timestamp(cut));
            let later = stream.packets.get(first.saturating_add(1)..)?;
            later
                .iter()
                .map(|packet| marks::time(clock, packet.begin))
                .min()
        })
    });
    of_trace.min().filter(|&begin| begin < cut)
}

/// An exclusive lock: only one process may append at a time.
struct Lock(#[expect(dead_code, reason = "it is held as long as it is open")] std::fs::File);

impl Lock {
    fn take(path: &Path) -> Result<Lock, AppendError> {
        let io = |error| HistoryError::Io {
            path: path.to_owned(),
            error,
        };
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(io)?;
        let busy = || AppendError::Busy {
            path: path.to_owned(),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(busy()),
            Err(error) => return Err(io(error.into()).into()),
        }
        // The previous owner may have replaced the file.
        let now = std::fs::metadata(path).map_err(io)?;
        let own = file.metadata().map_err(io)?;
        let number = |meta: &std::fs::Metadata| {
            use std::os::unix::fs::MetadataExt;
            (meta.dev(), meta.ino())
        };
        match number(&now) == number(&own) {
            true => Ok(Lock(file)),
            false => Err(busy()),
        }
    }
}
