//! Numberings that differ between traces.

use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::Trace;

use crate::drop_reason::unspecified;
use crate::numbers::Numbers;
use crate::state_numbers::{StateNumbers, release_numbers, release_of};
use crate::state_sample::state_numbers;

/// Numbering of system calls, thread states and drop reasons in a trace, from its environment.
#[derive(Debug)]
pub(crate) struct TraceNumbers {
    pub(crate) calls: Numbers,
    /// System calls of 32-bit programs.
    pub(crate) compat_calls: Numbers,
    pub(crate) states: StateNumbers,
    /// See [`DropReason`].
    pub(crate) no_drop_reason: i64,
    /// Priorities of `sched_wakeup` are on the kernel's scale though others are not, as in
    /// lttng-modules 2.1 but not 2.8.
    pub(crate) plain_wakeups: bool,
}

impl TraceNumbers {
    pub(crate) fn new(trace: &Trace) -> TraceNumbers {
        let class = &trace.layout.class;
        let machine = class.env_str("machine");
        let release = release_of(class).and_then(release_numbers);
        TraceNumbers {
            calls: Numbers::new(machine, false),
            compat_calls: Numbers::new(machine, true),
            states: state_numbers(trace),
            no_drop_reason: unspecified(release.map(|(major, minor, _)| (major, minor))),
            plain_wakeups: matches!(
                (class.env("tracer_major"), class.env("tracer_minor")),
                (Some(EnvValue::Int(2)), Some(EnvValue::Int(0 | 1)))
            ),
        }
    }
}
