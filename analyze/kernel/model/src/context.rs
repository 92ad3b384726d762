//! Contexts: what a tracer adds to each event of a class.

use tracebraid_ctf::schema::Scope;

use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// Contexts of an event class: what the tracer adds about where an event happened.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// CPU.
    pub cpu: Option<IntField>,
    /// Thread.
    pub tid: Option<IntField>,
    /// Process.
    pub pid: Option<IntField>,
    /// Thread as numbered where the process is: `pid` counts only where this is `tid`.
    pub pid_goes_with: Option<IntField>,
    /// Name of the thread.
    pub name: Option<TextField>,
}

impl Context {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.tid.is_none() && self.pid.is_none() && self.name.is_none()
    }

    /// What comes with the event. perf and ftrace know no contexts: they put such fields before
    /// the event's own. Of perf's two `common_pid` is the thread's number as `sched_switch` gives
    /// it, `perf_tid` that in the namespace of the one who records.
    pub(crate) fn find(finder: &Finder<'_>, cpu: Option<IntField>) -> Context {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        let context = |names: &[&str]| scopes.iter().find_map(|scope| finder.ints(*scope, names));
        let perf_tid = finder.int(&["perf_tid"]);
        Context {
            cpu,
            tid: context(&["tid"]).or_else(|| finder.int(&["common_pid", "perf_tid"])),
            pid: context(&["pid"])
                .or_else(|| finder.int(&["perf_pid"]).filter(|_| perf_tid.is_some())),
            pid_goes_with: perf_tid,
            name: scopes
                .iter()
                .find_map(|scope| finder.find(*scope, &["procname"], TextField::new)),
        }
    }
}
