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

/// What the event classes of those names, all of one stream class, are to the model.
pub(crate) fn meanings<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<Option<Meaning>> {
    // With exits that close any call `sys_exit` is the entry of `exit`; with all others it is the
    // exit that gives a number, and entries of calls outside the table say nothing.
    let old = names
        .clone()
        .any(|name| meaning(name, false) == Some(Meaning::AnyExit));
    let mut all: Vec<_> = names.map(|name| meaning(name, old)).collect();
    let has = |meaning| all.contains(&Some(meaning));
    // Each call once, if both ways to tell of it were recorded.
    let all_by_number = has(Meaning::RawEntry) && has(Meaning::RawExit);
    for meaning in &mut all {
        let is_nothing = match meaning {
            Some(Meaning::Entry(call)) => all_by_number || (*call == Syscall::OTHER && !old),
            Some(Meaning::Exit(_)) => all_by_number,
            _ => false,
        };
        if is_nothing {
            *meaning = None;
        }
    }
    all
}

/// What the event class of that name is, if it is anything to the model; `old` if the tracer's
/// exits do not name the call.
fn meaning(name: &str, old: bool) -> Option<Meaning> {
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
        "sys_enter" if !old => return Some(Meaning::RawEntry),
        "sys_exit" if !old => return Some(Meaning::RawExit),
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
    let call = OLD_ENTRIES.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    Some(Meaning::Entry(Syscall::by_name(call).unwrap_or(Syscall::OTHER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Syscall {
        Syscall::by_name(name).unwrap()
    }

    /// What an event class is that stands alone.
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

    #[test]
    fn other_calls_matter_only_where_exits_do_not_name_them() {
        let other = Some(Meaning::Entry(Syscall::OTHER));
        let old = [
            "exit_syscall",
            "sys_futex",
            "sys_exit",
            "sys_exit_group",
            "sys_enter",
        ];
        // The entries of exit and exit_group, not the exits of a call named group or of any.
        assert_eq!(
            meanings(old.into_iter()),
            [Some(Meaning::AnyExit), other, other, other, other]
        );
        for name in [
            "sys_futex",
            "sys_exit_group",
            "syscall_entry_futex",
            "syscall_exit_futex",
            "syscalls:sys_enter_futex",
        ] {
            assert_eq!(alone(name), None, "{name}");
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
        // Entries alone tell of no call.
        assert_eq!(
            meanings(both.into_iter().take(2)),
            [Some(Meaning::RawEntry), Some(Meaning::Entry(call("read")))]
        );
    }

    #[test]
    fn other_domains_are_not_the_kernel() {
        assert_eq!(alone("my_app:sched_switch"), None);
        assert_eq!(alone("my_app:sys_read"), None);
        assert_eq!(alone("irq_handler_entry"), None);
    }
}
