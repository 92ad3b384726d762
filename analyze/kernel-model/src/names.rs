//! The naming tables: what an event class is, by its name. The only place that compares names.

use crate::syscall::Syscall;

/// What an event class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Switch,
    Fork,
    Exec,
    ThreadExit,
    Rename,
    ProcessState,
    FileDescriptor,
    /// Entry of a system call.
    Entry(Syscall),
    /// Exit of a system call.
    Exit(Syscall),
    /// Exit of whatever system call is open (lttng-modules before 2.6).
    AnyExit,
    /// Entry and exit that give a number.
    RawEntry,
    RawExit,
}

/// Events that have one name with every tracer, and the subsystems that perf and ftrace put
/// before it.
const PLAIN: &[(&str, &[&str], Meaning)] = &[
    ("sched_switch", &["sched"], Meaning::Switch),
    ("sched_process_fork", &["sched"], Meaning::Fork),
    ("sched_process_exec", &["sched"], Meaning::Exec),
    ("sched_process_exit", &["sched"], Meaning::ThreadExit),
    ("task_rename", &["task"], Meaning::Rename),
    ("lttng_statedump_process_state", &[], Meaning::ProcessState),
    ("lttng_statedump_file_descriptor", &[], Meaning::FileDescriptor),
    ("exit_syscall", &[], Meaning::AnyExit),
];

/// Prefixes of system calls' entries and exits; the longest that fits counts.
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
/// Entries of tracers whose exits do not name the call: all must be known, or the exits of those
/// that do no I/O would be taken for others'.
const OLD_ENTRIES: &[&str] = &["compat_sys_", "sys_"];

/// What the event class of that name is, if it is anything to the model.
pub(crate) fn meaning(name: &str) -> Option<Meaning> {
    let plain = PLAIN
        .iter()
        .find(|(plain, subsystems, _)| match name.split_once(':') {
            Some((subsystem, rest)) => rest == *plain && subsystems.contains(&subsystem),
            None => name == *plain,
        });
    if let Some((_, _, meaning)) = plain {
        return Some(*meaning);
    }
    match name {
        "raw_syscalls:sys_enter" => return Some(Meaning::RawEntry),
        "raw_syscalls:sys_exit" => return Some(Meaning::RawExit),
        _ => {}
    }
    let known = |prefixes: &[&str]| {
        prefixes
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix).and_then(Syscall::by_name))
    };
    if let Some(call) = known(ENTRIES) {
        return Some(Meaning::Entry(call));
    }
    if let Some(call) = known(EXITS) {
        return Some(Meaning::Exit(call));
    }
    let old = OLD_ENTRIES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    Some(Meaning::Entry(Syscall::by_name(old).unwrap_or(Syscall::OTHER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Syscall {
        Syscall::by_name(name).unwrap()
    }

    #[test]
    fn every_naming_is_known() {
        let read = call("read");
        for name in [
            "syscall_entry_read",
            "compat_syscall_entry_read",
            "sys_read",
            "compat_sys_read",
        ] {
            assert_eq!(meaning(name), Some(Meaning::Entry(read)), "{name}");
        }
        for name in ["syscalls:sys_enter_read", "sys_enter_read"] {
            assert_eq!(meaning(name), Some(Meaning::Entry(read)), "{name}");
        }
        for name in [
            "syscall_exit_read",
            "compat_syscall_exit_read",
            "syscalls:sys_exit_read",
            "sys_exit_read",
        ] {
            assert_eq!(meaning(name), Some(Meaning::Exit(read)), "{name}");
        }
        assert_eq!(meaning("exit_syscall"), Some(Meaning::AnyExit));
        assert_eq!(meaning("sched_switch"), Some(Meaning::Switch));
        assert_eq!(meaning("sched:sched_switch"), Some(Meaning::Switch));
        assert_eq!(meaning("raw_syscalls:sys_enter"), Some(Meaning::RawEntry));
    }

    #[test]
    fn other_calls_matter_only_where_exits_do_not_name_them() {
        assert_eq!(meaning("sys_futex"), Some(Meaning::Entry(Syscall::OTHER)));
        // The entry of exit_group, not the exit of a call named group.
        assert_eq!(meaning("sys_exit_group"), Some(Meaning::Entry(Syscall::OTHER)));
        assert_eq!(meaning("syscall_entry_futex"), None);
        assert_eq!(meaning("syscall_exit_futex"), None);
        assert_eq!(meaning("syscalls:sys_enter_futex"), None);
    }

    #[test]
    fn other_domains_are_not_the_kernel() {
        assert_eq!(meaning("my_app:sched_switch"), None);
        assert_eq!(meaning("my_app:sys_read"), None);
        assert_eq!(meaning("irq_handler_entry"), None);
    }
}
