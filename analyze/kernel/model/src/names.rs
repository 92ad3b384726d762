//! Naming tables: the meaning of an event class by its name. No other module compares names.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::events::gpu::{JobSource, JobStep};
use crate::meaning::Meaning;
use crate::plain::PLAIN;
use crate::syscall::Syscall;

/// Plain names by the part after the colon.
static BY_NAME: LazyLock<HashMap<&str, &(&str, &[&str], Meaning)>> =
    LazyLock::new(|| PLAIN.iter().map(|plain| (plain.0, plain)).collect());

/// Prefixes of system call entries and exits; the first matching prefix applies.
const ENTRIES: &[&str] = &[
    "syscall_entry_",
    "compat_syscall_entry_",
    "syscalls:sys_enter_",
    "sys_enter_",
];
const EXITS: &[&str] = &[
    "syscall_exit_",
    "compat_syscall_exit_",
    "syscalls:sys_exit_",
    "sys_exit_",
];
/// The prefixes above that only a call's name can follow.
const SURE_ENTRIES: &[&str] = &[
    "syscall_entry_",
    "compat_syscall_entry_",
    "syscalls:sys_enter_",
];
const SURE_EXITS: &[&str] = &[
    "syscall_exit_",
    "compat_syscall_exit_",
    "syscalls:sys_exit_",
];
/// Entries of tracers whose exits do not name the call. All such entries must be known, or exits of
/// unknown calls would be mistaken for those of other calls.
const OLD_ENTRIES: &[&str] = &["compat_sys_", "sys_"];

/// True for the name of an event class of a program, in a trace of several levels.
pub(crate) fn is_of_program(name: &str) -> bool {
    name.contains(':') && !name.starts_with("tracebraid_levels:")
}

/// Meanings of all event classes of a stream class, by their names.
pub(crate) fn meanings<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<Option<Meaning>> {
    // If exits do not name their calls, `sys_exit` is the entry of `exit`; otherwise it is the exit
    // that contains the number of a call.
    let old = names
        .clone()
        .any(|name| meaning(name, false) == Some(Meaning::AnyExit));
    let mut all: Vec<_> = names.clone().map(|name| meaning(name, old)).collect();
    if !old {
        pairs(names, &mut all);
    }
    let has = |meaning| all.contains(&Some(meaning));
    // If calls were recorded both by name and by number, each counts once.
    let all_by_number = has(Meaning::RawEntry) && has(Meaning::RawExit);
    for meaning in &mut all {
        if all_by_number && matches!(meaning, Some(Meaning::Entry(_) | Meaning::Exit(_))) {
            *meaning = None;
        }
    }
    count_jobs_once(&mut all);
    all
}

/// Drops the events of GPU jobs that other events of the trace describe too: a driver's own if the
/// kernel's scheduler recorded its jobs, and those of fences if any scheduler did.
fn count_jobs_once(all: &mut [Option<Meaning>]) {
    let begins = |meaning: &Option<Meaning>, of: &[JobSource]| matches!(meaning, Some(Meaning::GpuJob(step, source)) if step.begins() && of.contains(source));
    use JobSource::{Driver, Fence, OwnScheduler, Scheduler};
    let has_scheduler = all.iter().any(|meaning| begins(meaning, &[Scheduler]));
    let has_jobs =
        has_scheduler || (all.iter()).any(|meaning| begins(meaning, &[Driver, OwnScheduler]));
    for meaning in all {
        let is_double = match meaning {
            Some(Meaning::GpuJob(_, Driver)) => has_scheduler,
            Some(Meaning::GpuJob(JobStep::Submit, Fence)) => has_jobs,
            _ => false,
        };
        if is_double {
            *meaning = None;
        }
    }
}

/// Meaning of an event class by its name, if it is modelled; `old` if the tracer's exits do not
/// name the call.
fn meaning(name: &str, old: bool) -> Option<Meaning> {
    if let Some(meaning) = plain(name) {
        return Some(meaning);
    }
    match name {
        "raw_syscalls:sys_enter" => return Some(Meaning::RawEntry),
        "raw_syscalls:sys_exit" => return Some(Meaning::RawExit),
        "sys_enter" if !old => return Some(Meaning::RawEntry),
        "sys_exit" if !old => return Some(Meaning::RawExit),
        "syscall_entry_unknown" => return Some(Meaning::Fallback { compat: false }),
        "compat_syscall_entry_unknown" => return Some(Meaning::Fallback { compat: true }),
        "syscall_exit_unknown" => return Some(Meaning::FallbackExit { compat: false }),
        "compat_syscall_exit_unknown" => return Some(Meaning::FallbackExit { compat: true }),
        _ => {}
    }
    let after = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    let known = |prefixes: &[&str]| after(prefixes).and_then(Syscall::of_table);
    if let Some(call) = known(ENTRIES) {
        return Some(Meaning::Entry(call));
    }
    if let Some(call) = known(EXITS) {
        return Some(Meaning::Exit(call));
    }
    // Calls of a single architecture, and calls that are newer than this program.
    if let Some(call) = after(SURE_ENTRIES) {
        return Some(Meaning::Entry(Syscall::named(call)));
    }
    if let Some(call) = after(SURE_EXITS) {
        return Some(Meaning::Exit(Syscall::named(call)));
    }
    // The waits of user-level threads in traces of several levels.
    if name.starts_with(Syscall::USER_WAIT_ENTRY) {
        return Syscall::of_user_wait(name, Syscall::USER_WAIT_ENTRY).map(Meaning::UserWait);
    }
    if name.starts_with(Syscall::USER_WAIT_EXIT) {
        return Syscall::of_user_wait(name, Syscall::USER_WAIT_EXIT).map(Meaning::UserWaitEnd);
    }
    let call = after(OLD_ENTRIES)?;
    match old {
        true => Some(Meaning::OldEntry(Syscall::named(call))),
        false => Syscall::of_table(call).map(Meaning::Entry),
    }
}

/// Resolves names without another meaning: ftrace's calls that the table lacks, which have both an
/// entry and an exit.
fn pairs<'a>(names: impl Iterator<Item = &'a str> + Clone, all: &mut [Option<Meaning>]) {
    let unknown = || {
        names
            .clone()
            .zip(all.iter())
            .filter(|(_, meaning)| meaning.is_none())
    };
    let calls = |prefix| -> HashSet<&str> {
        let calls = unknown().filter_map(|(name, _)| name.strip_prefix(prefix));
        calls.collect()
    };
    let (entries, exits) = (calls("sys_enter_"), calls("sys_exit_"));
    for (name, meaning) in names.zip(all) {
        if meaning.is_some() {
            continue;
        }
        let entry = name
            .strip_prefix("sys_enter_")
            .filter(|call| exits.contains(call));
        let exit = name
            .strip_prefix("sys_exit_")
            .filter(|call| entries.contains(call));
        let entry = entry.map(|call| Meaning::Entry(Syscall::named(call)));
        *meaning = entry.or_else(|| exit.map(|call| Meaning::Exit(Syscall::named(call))));
    }
}

/// Meaning of an event class by the table of plain names.
fn plain(name: &str) -> Option<Meaning> {
    let (subsystem, rest) = match name.split_once(':') {
        Some((subsystem, rest)) => (Some(subsystem), rest),
        None => (None, name),
    };
    let (_, subsystems, meaning) = BY_NAME.get(rest)?;
    let fits = subsystem.is_none_or(|subsystem| subsystems.contains(&subsystem));
    fits.then_some(*meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::category::Category;

    fn call(name: &str) -> Syscall {
        Syscall::by_name(name).unwrap()
    }

    /// Meaning of an event class without other classes in its stream class.
    fn alone(name: &str) -> Option<Meaning> {
        meanings([name].into_iter())[0]
    }

    #[test]
    fn every_naming_is_known() {
        let read = call("read");
        for name in [
            "syscall_entry_read",
            "compat_syscall_entry_read",
            "sys_read",
            "compat_sys_read",
            "syscalls:sys_enter_read",
            "sys_enter_read",
        ] {
            assert_eq!(alone(name), Some(Meaning::Entry(read)), "{name}");
        }
        for name in [
            "syscall_exit_read",
            "compat_syscall_exit_read",
            "syscalls:sys_exit_read",
            "sys_exit_read",
        ] {
            assert_eq!(alone(name), Some(Meaning::Exit(read)), "{name}");
        }
        for name in ["raw_syscalls:sys_enter", "sys_enter"] {
            assert_eq!(alone(name), Some(Meaning::RawEntry), "{name}");
        }
        for name in ["raw_syscalls:sys_exit", "sys_exit"] {
            assert_eq!(alone(name), Some(Meaning::RawExit), "{name}");
        }
        assert_eq!(alone("exit_syscall"), Some(Meaning::AnyExit));
        for name in ["sched_switch", "sched:sched_switch"] {
            assert_eq!(alone(name), Some(Meaning::Switch), "{name}");
        }
    }

    /// Reports on system calls do not count them.
    #[test]
    fn waits_of_user_level_threads_are_no_system_calls() {
        let wait = Syscall::named("ult_wait_mutex");
        assert_eq!(alone("ult_wait_entry_mutex"), Some(Meaning::UserWait(wait)));
        assert_eq!(
            alone("ult_wait_exit_mutex"),
            Some(Meaning::UserWaitEnd(wait))
        );
        assert_eq!(wait.category(), Category::UserLevel);
        assert_eq!(alone("ult_wait_mutex"), None);
    }

    #[test]
    fn the_entries_of_exit_are_no_exits() {
        let old = [
            "exit_syscall",
            "sys_futex",
            "sys_exit",
            "sys_exit_group",
            "sys_enter",
        ];
        let entry = |name| Some(Meaning::OldEntry(Syscall::named(name)));
        assert_eq!(
            meanings(old.into_iter()),
            [
                Some(Meaning::AnyExit),
                entry("futex"),
                entry("exit"),
                entry("exit_group"),
                entry("enter")
            ]
        );
        assert_eq!(
            alone("sys_exit_group"),
            Some(Meaning::Entry(call("exit_group")))
        );
        assert_eq!(alone("sys_never_heard_of"), None);
    }

    #[test]
    fn calls_that_the_table_lacks_are_known_by_name_or_number() {
        for (name, expected) in [
            ("syscall_entry_unknown", Meaning::Fallback { compat: false }),
            (
                "compat_syscall_exit_unknown",
                Meaning::FallbackExit { compat: true },
            ),
            (
                "syscall_entry_never_heard_of",
                Meaning::Entry(Syscall::named("never_heard_of")),
            ),
            (
                "syscalls:sys_exit_never_heard_of",
                Meaning::Exit(Syscall::named("never_heard_of")),
            ),
        ] {
            assert_eq!(alone(name), Some(expected), "{name}");
        }
        let both = [
            "sys_enter_riscv_hwprobe",
            "sys_exit_riscv_hwprobe",
            "sys_exit_of_mine",
        ];
        let call = Syscall::named("riscv_hwprobe");
        let expected = [Some(Meaning::Entry(call)), Some(Meaning::Exit(call)), None];
        assert_eq!(meanings(both.into_iter()), expected);
    }

    #[test]
    fn plain_names_occur_once() {
        assert_eq!(BY_NAME.len(), PLAIN.len());
        for (name, subsystems, _) in PLAIN {
            assert!(
                !name.contains(':') && subsystems.iter().all(|subsystem| !subsystem.contains(':')),
                "{name}"
            );
        }
    }

    #[test]
    fn one_event_has_a_name_with_each_tracer() {
        for names in [
            &["sched_wakeup", "sched:sched_wakeup"][..],
            &["irq_softirq_entry", "softirq_entry", "irq:softirq_entry"],
            &[
                "timer_hrtimer_start",
                "hrtimer_start",
                "timer:hrtimer_start",
            ],
            &["block_rq_issue", "block:block_rq_issue"],
            &[
                "net_if_receive_skb",
                "netif_receive_skb",
                "net:netif_receive_skb",
            ],
            &["kmem_mm_page_alloc", "mm_page_alloc", "kmem:mm_page_alloc"],
            &["kmem_kmalloc", "kmalloc", "kmem:kmalloc"],
            &[
                "x86_exceptions_page_fault_user",
                "page_fault_user",
                "exceptions:page_fault_user",
            ],
            &[
                "x86_irq_vectors_local_timer_entry",
                "local_timer_entry",
                "irq_vectors:local_timer_entry",
            ],
            &[
                "power_cpu_frequency",
                "cpu_frequency",
                "power:cpu_frequency",
            ],
            &["skb_kfree", "kfree_skb", "skb:kfree_skb"],
            &["drm_sched_job_run", "gpu_scheduler:drm_sched_job_run"],
        ] {
            let all: Vec<_> = names.iter().map(|name| alone(name)).collect();
            assert!(
                all[0].is_some() && all.iter().all(|meaning| *meaning == all[0]),
                "{names:?}: {all:?}"
            );
        }
    }

    #[test]
    fn calls_that_are_told_twice_count_once() {
        let both = [
            "raw_syscalls:sys_enter",
            "syscalls:sys_enter_read",
            "raw_syscalls:sys_exit",
            "syscalls:sys_exit_read",
        ];
        let numbers = [Some(Meaning::RawEntry), None, Some(Meaning::RawExit), None];
        assert_eq!(meanings(both.into_iter()), numbers);
        // Entries alone do not show calls.
        assert_eq!(
            meanings(both.into_iter().take(2)),
            [Some(Meaning::RawEntry), Some(Meaning::Entry(call("read")))]
        );
    }

    #[test]
    fn jobs_of_several_sources_count_once() {
        let both = [
            "gpu_scheduler:drm_sched_job_queue",
            "amdgpu:amdgpu_cs_ioctl",
            "i915:i915_request_add",
            "dma_fence:dma_fence_emit",
            "dma_fence:dma_fence_signaled",
        ];
        let of = |names: &[&'static str]| -> Vec<bool> {
            let all = meanings(names.iter().copied());
            all.iter().map(Option::is_some).collect()
        };
        assert_eq!(of(&both), [true, false, true, false, true]);
        assert_eq!(of(&both[1..]), [true, true, false, true]);
        assert_eq!(of(&both[3..]), [true, true]);
    }

    #[test]
    fn other_domains_are_not_the_kernel() {
        assert_eq!(alone("my_app:sched_switch"), None);
        assert_eq!(alone("my_app:sys_read"), None);
        assert_eq!(alone("syscalls:sched_switch"), None);
    }
}
