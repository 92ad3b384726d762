//! Contexts: fields that a tracer adds to each event of a class.

use tracebraid_ctf::schema::Scope;

use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// Context fields of an event class: CPU, thread and process of an event.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Number of the CPU.
    pub cpu: Option<IntField>,
    /// Id of the thread.
    pub tid: Option<IntField>,
    /// Id of the process.
    pub pid: Option<IntField>,
    /// Id of the thread in the namespace of `pid`: `pid` is valid only if this equals `tid`.
    pub pid_goes_with: Option<IntField>,
    /// Id of the thread in the kernel, in traces of several levels: `tid` is that of the user-level
    /// thread.
    pub lwp: Option<IntField>,
    /// Name of the thread.
    pub name: Option<TextField>,
}

impl Context {
    /// True if the class has no context.
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.tid.is_none() && self.pid.is_none() && self.name.is_none()
    }

    /// Finds the context of an event class. perf and ftrace have no contexts, and put such fields
    /// before the event's own. perf records two thread ids: `common_pid` as in `sched_switch`, and
    /// `perf_tid` in the namespace of the recorder.
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
            lwp: context(&["lwp"]),
            name: scopes
                .iter()
                .find_map(|scope| finder.find(*scope, &["procname"], TextField::new)),
        }
    }
}
