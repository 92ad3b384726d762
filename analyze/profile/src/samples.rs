//! All stacks of a trace set, one by one.

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

/// All stacks of a trace set.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Names of functions.
    pub names: Vec<String>,
    /// The stacks; those of a process or a machine in the order of time.
    pub stacks: Vec<SampledStack>,
    /// What could not be recorded.
    pub missing: Vec<Missing>,
    /// How many stacks are whole.
    pub quality: Quality,
}

/// A stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledStack {
    /// Index of its trace in the set.
    pub trace: u32,
    /// When it was taken: of a wait, at its end.
    pub time: Timestamp,
    /// The thread, if that is known.
    pub tid: Option<i64>,
    /// Indices of the functions in the table of names, the outermost first. Those of the kernel are
    /// left out if there are functions of the program.
    pub functions: Vec<u32>,
    /// It is of a wait of so many nanoseconds; else of CPU time.
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
                // The kernel's way through a wait differs from one to the next and would divide
                // what belongs together.
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
