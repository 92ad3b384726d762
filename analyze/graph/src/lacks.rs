//! Notes on events that the graph needs and that were not recorded.

use tracebraid_kernel_model::KernelEvent;

/// Shown if no scheduling event was recorded: there are no critical paths at all.
pub const NO_SWITCHES: &str =
    "the trace has no scheduling events, so critical paths are unknown: enable sched_switch";

/// The most important lack of the graph, as a message; `has` checks whether an event was recorded.
pub(crate) fn lacks(has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
    use KernelEvent::*;
    let lacks = |kind: &dyn Fn(&KernelEvent) -> bool| !has(kind);
    if lacks(&|event| matches!(event, Switch(_))) {
        return Some(NO_SWITCHES);
    }
    if lacks(&|event| matches!(event, Wakeup(_))) {
        return Some(
            "wait reasons are unknown, because wake-ups were not recorded: enable sched_waking",
        );
    }
    if lacks(&|event| matches!(event, Softirq(_) | IrqEntry(_) | Vector(_))) {
        return Some(
            "wake-ups by interrupts cannot be distinguished from those by the threads that they interrupt: enable \
             irq_handler_* and irq_softirq_entry and irq_softirq_exit",
        );
    }
    if lacks(&|event| matches!(event, Entry(_) | Exit(_))) {
        return Some(
            "the system calls in which threads waited are unknown: enable system calls (lttng enable-event --kernel --syscall --all)",
        );
    }
    if lacks(&|event| matches!(event, Hrtimer(_) | Timer(_))) {
        return Some(
            "waits for timers are shown as waits for interrupts: enable timer_hrtimer_expire_*",
        );
    }
    if lacks(&|event| matches!(event, Block(_))) {
        return Some(
            "waits for disks are shown as waits for interrupts: enable block_rq_issue and block_rq_complete",
        );
    }
    lacks(&|event| matches!(event, Packet(packet) if packet.headers.is_some())).then_some(
        "the senders of received packets are unknown: enable net_dev_queue and net_if_receive_skb (tracebraid record \
         --kernel net)",
    )
}
