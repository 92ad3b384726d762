//! One time for the traces of several machines.

use std::path::Path;

use tracebraid_clocks::{Machines, Matches, PacketAnalysis, Synchronization, Transformations};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{KernelAnalysis, Selection};

use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::warnings::Warnings;

/// What stands for finding the relations out, instead of a file.
const AUTO: &str = "auto";

/// Whether the relations are to be found out.
pub(crate) fn is_auto(from: &Path) -> bool {
    from == Path::new(AUTO)
}

/// Relates the clocks of the traces' machines, by the packets that they sent to each other.
///
/// # Errors
/// When the user interrupted it, or no machine has the reference's name.
pub(crate) fn relate(
    set: &TraceSet,
    reference: Option<&str>,
    args: &FoldArgs,
    warnings: &mut Warnings,
) -> Result<Synchronization, Failure> {
    let analysis = PacketAnalysis::new(set, Selection::default());
    let machines = Machines::of(set);
    if let Some(lack) = analysis.lacks().filter(|_| machines.all().len() > 1) {
        warnings.note(lack);
    }
    let packets = fold::run(set, &analysis, args, None, warnings)?;
    let matches = Matches::of(&packets, &machines);
    Synchronization::of(machines, &matches, reference)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Lets the traces have one time: as a file says, or, for `auto`, as can be found out.
///
/// # Errors
/// When there is no such file, or it says what cannot be, or the user interrupted it.
pub(crate) fn apply(from: &Path, set: &mut TraceSet) -> Result<(), Failure> {
    let named = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--sync {}: {error}", from.display()))
    };
    let transformations = if is_auto(from) {
        // What is damaged is told when the traces are read for what was asked for.
        let synchronization = relate(set, None, &FoldArgs::default(), &mut Warnings::quiet())?;
        synchronization.transformations()
    } else {
        let text = std::fs::read(from).map_err(|error| named(&error))?;
        Transformations::parse(&text).map_err(|error| named(&error))?
    };
    // Machines that are not related show by their traces, and are told of when others are.
    transformations.apply(set).map_err(|error| named(&error))?;
    match set.traces.iter().any(|trace| trace.is_synchronized) {
        true => Ok(()),
        false => Err(named(&"none of the traces is of a host of that file")),
    }
}
