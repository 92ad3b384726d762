//! Groups of kernel events that are selected together.

use std::fmt;
use std::str::FromStr;

/// A group of kernel events, as selected by `--kernel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Context switches, wake-ups, and the creation and exit of threads.
    Sched,
    /// Interrupts and softirqs.
    Irq,
    /// High-resolution timers and the timer wheel.
    Timer,
    /// Interrupts of the processor itself: local timer, reschedule, function calls (x86 only).
    Vector,
    /// Requests to block devices.
    Block,
    /// Packets and TCP connections.
    Net,
    /// Page faults (x86 only).
    Fault,
    /// Contended locks of the kernel.
    Lock,
    /// Work queues of the kernel, and io_uring requests.
    Work,
    /// Jobs of GPUs and their fences. They have no programs of their own:
    /// [`ChosenEvents::add_gpu`](crate::ChosenEvents::add_gpu) adds them.
    Gpu,
}

/// All groups, in the order of the help text.
pub const GROUPS: &[Group] = &[
    Group::Sched,
    Group::Irq,
    Group::Timer,
    Group::Vector,
    Group::Block,
    Group::Net,
    Group::Fault,
    Group::Lock,
    Group::Work,
    Group::Gpu,
];

/// Default groups: needed by most reports, at low cost.
pub const USUAL: &[Group] = &[
    Group::Sched,
    Group::Irq,
    Group::Timer,
    Group::Block,
    Group::Net,
];

impl Group {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Group::Sched => "sched",
            Group::Irq => "irq",
            Group::Timer => "timer",
            Group::Vector => "vector",
            Group::Block => "block",
            Group::Net => "net",
            Group::Fault => "fault",
            Group::Lock => "lock",
            Group::Work => "work",
            Group::Gpu => "gpu",
        }
    }

    /// The group of the BPF program at a tracepoint; `None` for system calls.
    pub(crate) fn of_tracepoint(tracepoint: &str) -> Option<Group> {
        let begins = |with: &[&str]| with.iter().any(|start| tracepoint.starts_with(start));
        Some(match tracepoint {
            _ if begins(&["sched_"]) => Group::Sched,
            _ if begins(&["irq_handler_", "softirq_"]) => Group::Irq,
            _ if begins(&["hrtimer_", "timer_"]) => Group::Timer,
            _ if begins(&["local_timer_", "reschedule_", "call_function_", "irq_work_"]) => {
                Group::Vector
            }
            _ if begins(&["block_"]) => Group::Block,
            _ if begins(&["net_", "netif_", "inet_", "tcp_"]) => Group::Net,
            _ if begins(&["page_fault_"]) => Group::Fault,
            _ if begins(&["contention_"]) => Group::Lock,
            _ if begins(&["workqueue_", "io_uring_"]) => Group::Work,
            _ => return None,
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Group, String> {
        let found = GROUPS.iter().find(|group| group.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = GROUPS.iter().map(|group| group.name()).collect();
            format!(
                "unknown group of events `{text}`; the groups are {}",
                names.join(", ")
            )
        })
    }
}
