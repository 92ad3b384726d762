//! All stacks of a trace set, individually.

use std::path::PathBuf;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, FoldError, Options};
use tracebraid_symbols::Symbols;

use crate::Missing;
use crate::how::{CALL_STACKS, How};
use crate::naming::Naming;
use crate::profile::each;
use crate::quality::{Quality, QualityCounts};

/// Every stack of a trace set with its time and thread, for reports that select stacks.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Names of functions.
    pub names: Vec<String>,
    /// The stacks; those of one process or machine in the order of time.
    pub stacks: Vec<SampledStack>,
    /// Kinds of stacks that could not be recorded.
    pub missing: Vec<Missing>,
    /// Completeness of the stacks.
    pub quality: Quality,
}

/// A sample of CPU time, or a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledStack {
    /// Index of its trace in the set.
    pub trace: u32,
    /// Time of the sample, or the end of the wait.
    pub time: Timestamp,
    /// Thread id, if known.
    pub tid: Option<i64>,
    /// Indices into `Samples::names`, the outermost first. Kernel functions are left out if the
    /// stack contains functions of the program.
    pub functions: Vec<u32>,
    /// Duration of the wait in nanoseconds, 0 if the stack is that of a moment; `None` for a sample
    /// of CPU time.
    pub wait_ns: Option<u64>,
}

impl Samples {
    /// Reads the stacks of all processes of the traces; `maps` as for [`crate::Profile::new`].
    ///
    /// # Errors
    /// If the pass is cancelled.
    pub fn new(
        set: &TraceSet,
        symbols: &mut Symbols,
        maps: &[PathBuf],
        (options, control): (Options, &Control),
    ) -> Result<Samples, FoldError> {
        control.serially(CALL_STACKS, || {
            Samples::read(set, symbols, maps, (options, control))
        })
    }

    fn read(
        set: &TraceSet,
        symbols: &mut Symbols,
        maps: &[PathBuf],
        how: How<'_>,
    ) -> Result<Samples, FoldError> {
        let mut naming = Naming::new(symbols);
        let mut stacks = Vec::new();
        let mut counts = QualityCounts::default();
        let lacks = each(
            (set, how),
            maps,
            &mut naming,
            &mut |trace, place, mut sample| {
                if let Some((shape, runtime)) = sample.shape {
                    counts.add(shape, runtime, &sample.process);
                }
                // The kernel functions of similar waits differ and would split stacks that belong
                // together.
                if sample.functions.len() > sample.kernel {
                    sample.functions.drain(..sample.kernel);
                }
                sample.functions.reverse();
                stacks.push(SampledStack {
                    trace,
                    time: place.time,
                    tid: sample.tid.or(place.tid),
                    functions: sample.functions,
                    wait_ns: sample.wait_ns,
                });
            },
        )?;
        counts.reaches(lacks.limits);
        Ok(Samples {
            quality: counts.finish(naming.take_nameless()),
            names: naming.into_names(),
            stacks,
            missing: lacks.missing.into_iter().collect(),
        })
    }
}
