//! The contents of a recording.

use std::path::Path;

use serde::Serialize;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{CpuSet, Window};
use tracebraid_reports::count::Count;
use tracebraid_session::{records_gpu, records_levels};

use crate::units::{bytes, grouped, number_of};

/// Sums over traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Written {
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) bytes: u64,
}

impl Written {
    /// Sums over the traces below a directory; `None` without traces.
    pub(crate) fn below(directory: &Path) -> Option<Written> {
        let set = TraceSet::open(&[directory.to_owned()]).ok()?;
        let count = Count::new(&set, Window::default(), CpuSet::default(), 1);
        // Packet times do not affect the number of event records.
        let options = Options {
            accepts_wrong_indexes: true,
            ..Options::default()
        };
        let report = fold(&set, &count, options, &Control::default())
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
            "{}, {} lost, {}",
            number_of(events, "event", "events"),
            grouped(lost),
            bytes(self.bytes)
        )
    }
}

/// A message with the most useful command for a recording.
pub(crate) fn see_it(directory: &Path) -> String {
    let has = |name: &str| directory.join(name).is_dir();
    let shown = directory.display();
    let options = crate::unfinished::options(directory);
    if has("ust") && options.as_ref().is_some_and(|options| records_gpu(options)) {
        return format!("See it with: tracebraid gpu {shown}");
    }
    if has("ust") && options.is_some_and(|options| records_levels(&options)) {
        return format!("See it with: tracebraid levels {shown}");
    }
    let has_kernel = has("kernel") || !super::chunks_below(directory).is_empty();
    match (has_kernel, has("ust")) {
        (true, _) => format!("See it with: tracebraid report {shown}"),
        (false, true) => format!("See it with: tracebraid print --symbols {shown}"),
        (false, false) if directory.exists() => format!("Nothing was recorded in {shown}"),
        (false, false) => format!("Nothing was recorded: {shown} does not exist"),
    }
}
