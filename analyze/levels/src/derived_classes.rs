//! The event classes of derived records: the kernel's own, with LTTng's names and fields, so that
//! every reader of kernel traces knows them.

use std::sync::Arc;

use tracebraid_ctf::schema::build::{Align, Fields, event};
use tracebraid_ctf::schema::{ByteOrder, EventClass, Scope};
use tracebraid_ctf::write::EventPlan;
use tracebraid_kernel_model::Syscall;

/// Derived event classes.
#[derive(Clone, Debug)]
pub(crate) struct DerivedPlans {
    pub(crate) switch: Arc<EventPlan>,
    pub(crate) wakeup: Arc<EventPlan>,
    pub(crate) fork: Arc<EventPlan>,
    pub(crate) exit: Arc<EventPlan>,
    pub(crate) state: Arc<EventPlan>,
    pub(crate) thread: Arc<EventPlan>,
    pub(crate) violation: Arc<EventPlan>,
    /// By reason.
    pub(crate) wait_entries: Vec<Arc<EventPlan>>,
    pub(crate) wait_exits: Vec<Arc<EventPlan>>,
}

impl DerivedPlans {
    /// The plans of [`derived_classes`], in their order.
    pub(crate) fn of(mut plans: Vec<Arc<EventPlan>>) -> Option<DerivedPlans> {
        let waits = plans.split_off(NAMED.min(plans.len()));
        let mut plans = plans.into_iter();
        let (entries, exits) = waits.split_at(waits.len() / 2);
        Some(DerivedPlans {
            switch: plans.next()?,
            wakeup: plans.next()?,
            fork: plans.next()?,
            exit: plans.next()?,
            state: plans.next()?,
            thread: plans.next()?,
            violation: plans.next()?,
            wait_entries: entries.to_vec(),
            wait_exits: exits.to_vec(),
        })
    }
}

/// `prev_state` of derived switches from threads that wait and that have ended, as the kernel reports
/// them; that of ready threads is [`TaskState::READY`](tracebraid_kernel_model::TaskState::READY).
pub(crate) const BLOCKED: i64 = 1;
pub(crate) const ENDED: i64 = 16;

/// Place of the class of violations among the derived ones.
pub(crate) const VIOLATION: usize = 6;
/// Number of derived classes besides the waits.
const NAMED: usize = 7;

/// The derived classes, in the order of [`DerivedPlans`].
pub(crate) fn derived_classes(first: u64, reasons: &[String]) -> Vec<EventClass> {
    let payload = || Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes);
    let mut classes = vec![
        (
            "sched_switch".to_owned(),
            payload()
                .text("prev_comm", 16)
                .int("prev_tid", 32)
                .int("prev_prio", 32)
                .int("prev_state", 64)
                .text("next_comm", 16)
                .int("next_tid", 32)
                .int("next_prio", 32)
                .uint("level", 8),
        ),
        (
            "sched_wakeup".to_owned(),
            payload()
                .text("comm", 16)
                .int("tid", 32)
                .int("prio", 32)
                .int("target_cpu", 32)
                .uint("level", 8)
                .string("reason"),
        ),
        (
            "sched_process_fork".to_owned(),
            payload()
                .text("parent_comm", 16)
                .int("parent_tid", 32)
                .int("parent_pid", 32)
                .text("child_comm", 16)
                .int("child_tid", 32)
                .int("child_pid", 32)
                .uint("level", 8),
        ),
        (
            "sched_process_exit".to_owned(),
            payload()
                .text("comm", 16)
                .int("tid", 32)
                .int("prio", 32)
                .uint("level", 8),
        ),
        (
            "lttng_statedump_process_state".to_owned(),
            payload()
                .int("tid", 32)
                .int("vtid", 32)
                .int("pid", 32)
                .int("vpid", 32)
                .int("ppid", 32)
                .int("vppid", 32)
                .text("name", 16)
                .int("type", 32)
                .int("mode", 32)
                .int("submode", 32)
                .int("status", 32)
                .int("ns_level", 32)
                .uint("level", 8),
        ),
        (
            "tracebraid_levels:thread".to_owned(),
            payload()
                .int("tid", 32)
                .int("pid", 32)
                .uint("ult", 64)
                .string("name")
                .string("runtime"),
        ),
        (
            "tracebraid_levels:violation".to_owned(),
            payload()
                .string("kind")
                .int("lwp", 32)
                .int("pid", 32)
                .uint("ult", 64)
                .uint("other", 64),
        ),
    ];
    for reason in reasons {
        let name = format!("{}{reason}", Syscall::USER_WAIT_ENTRY);
        classes.push((name, payload()));
    }
    for reason in reasons {
        let name = format!("{}{reason}", Syscall::USER_WAIT_EXIT);
        classes.push((name, payload().int("ret", 64)));
    }
    let classes = (first..).zip(classes);
    classes
        .map(|(id, (name, fields))| event(id, &name, fields))
        .collect()
}
