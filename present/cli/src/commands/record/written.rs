//! What a recording holds, as those who read it will find it.

use std::path::Path;

use serde::Serialize;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Control, Options, fold};
use tracebraid_reports::count::Count;
use tracebraid_reports::kernel::{CpuSet, Window};

use crate::table::{bytes, grouped};

/// What traces hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Written {
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) bytes: u64,
}

impl Written {
    /// Of the traces below a directory; nothing, if there are none.
    pub(crate) fn below(directory: &Path) -> Option<Written> {
        let set = TraceSet::open(&[directory.to_owned()]).ok()?;
        let count = Count::new(&set, Window::default(), CpuSet::default(), 1);
        let report = fold(&set, &count, Options::default(), &Control::default())
            .ok()?
            .report;
        Some(Written {
            events: report.events,
            lost: report.discarded_events,
            bytes: crate::options::total_bytes(&set),
        })
    }
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Written { events, lost, .. } = *self;
        write!(
            f,
            "{} events, {} lost, {}",
            grouped(events),
            grouped(lost),
            bytes(self.bytes)
        )
    }
}

/// Whether there are call stacks that programs took themselves.
fn has_stacks(directory: &Path) -> bool {
    let Ok(set) = TraceSet::open(&[directory.to_owned()]) else {
        return false;
    };
    let streams = set.traces.iter().flat_map(|trace| &trace.layout.streams);
    let mut names = streams
        .flat_map(|stream| &stream.events)
        .map(|event| event.name.as_bytes());
    names.any(|name| STACKS.iter().any(|stack| name == stack.as_bytes()))
}

/// Event classes of call stacks.
const STACKS: [&str; 2] = ["tracebraid:cpu_stack", "tracebraid:syscall_stack"];

/// The command that shows what stands in a directory best.
pub(crate) fn see_it(directory: &Path) -> String {
    let has = |name: &str| directory.join(name).is_dir();
    let shown = directory.display();
    match (has("kernel"), has("ust")) {
        (true, _) => format!("See it by: tracebraid report {shown}"),
        (false, true) if has_stacks(directory) => {
            format!("See it by: tracebraid print --symbols {shown}, or tracebraid stacks {shown}")
        }
        (false, true) => format!("See it by: tracebraid print --symbols {shown}"),
        (false, false) if directory.exists() => format!("Nothing was recorded in {shown}"),
        (false, false) => format!("Nothing was recorded: there is no {shown}"),
    }
}
