//! Common time for the traces of several hosts.

use std::path::Path;

use tracebraid_clocks::{Machines, Matches, PacketAnalysis, Synchronization, Transformations};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{KernelAnalysis, Selection};

use crate::failure::Failure;
use crate::fold::{self, FoldArgs};
use crate::warnings::Warnings;

/// Value of `--sync` that infers the relations of the clocks instead of reading a file.
const AUTO: &str = "auto";

/// Whether the relations of the clocks must be inferred.
pub(crate) fn is_auto(from: &Path) -> bool {
    from == Path::new(AUTO)
}

/// Relates the clocks of the traces' hosts by the packets that they exchanged.
///
/// # Errors
/// When the user interrupts it, or no host has the name of the reference.
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

/// Aligns the clocks of the traces, by a file or, for `auto`, by the packets of the hosts.
///
/// # Errors
/// When the file is missing or wrong, or the user interrupts the command.
pub(crate) fn apply(from: &Path, set: &mut TraceSet) -> Result<(), Failure> {
    let named = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--sync {}: {error}", from.display()))
    };
    let transformations = if is_auto(from) {
        // Damage is reported when the command itself reads the traces.
        let synchronization = relate(set, None, &FoldArgs::default(), &mut Warnings::quiet())?;
        synchronization.transformations()
    } else {
        let text = std::fs::read(from).map_err(|error| named(&error))?;
        Transformations::parse(&text).map_err(|error| named(&error))?
    };
    // Hosts without a relation are visible in their traces, and reported if other hosts have one.
    transformations.apply(set).map_err(|error| named(&error))?;
    match set.traces.iter().any(|trace| trace.is_synchronized) {
        true => Ok(()),
        false => Err(named(&"the file contains none of the hosts of the traces")),
    }
}
