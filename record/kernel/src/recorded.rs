//! Event classes that a recording with given options can contain.

use crate::calls::calls;
use crate::chosen::did_you_mean;
use crate::contexts::ContextLayout;
use crate::groups::Group;
use crate::options::Options;
use crate::schema::schema_with;
use crate::shared::{FIRST_CHOSEN, kinds};

/// System calls that do not return, and so have neither an exit event nor a duration.
const WITHOUT_EXIT: [&str; 2] = ["exit", "exit_group"];

/// The reason why an event class, or the duration of a call, is not recorded, with the option that
/// adds it.
pub type NotRecorded = String;

impl Options {
    /// Checks that events of a class can be recorded. The name may end with `*`; a single recorded
    /// class with the prefix suffices.
    ///
    /// # Errors
    /// If no class has the name, or no class with the prefix is recorded: the reason for the first.
    pub fn records(&self, pattern: &str) -> Result<(), NotRecorded> {
        let mut class = schema_with(&calls(), &ContextLayout::default());
        self.events.add_to(&mut class);
        let classes = class.streams.iter().flat_map(|stream| &stream.events);
        let is_meant = |name: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        let mut why = None;
        for class in classes.filter(|class| is_meant(&class.name)) {
            match self.records_class(&class.name, class.id) {
                Ok(()) => return Ok(()),
                Err(reason) => _ = why.get_or_insert(reason),
            }
        }
        Err(why.unwrap_or_else(|| {
            let names = class.streams.iter().flat_map(|stream| &stream.events);
            let near = did_you_mean(pattern, names.map(|class| &*class.name));
            format!("no event of the kernel is named `{pattern}`{near}")
        }))
    }

    /// Checks that the durations of a system call are recorded.
    ///
    /// # Errors
    /// If they are not recorded, with the reason.
    pub fn records_duration(&self, call: &str) -> Result<(), NotRecorded> {
        self.records_exit(call)?;
        self.records_call(call)
    }

    fn records_exit(&self, call: &str) -> Result<(), NotRecorded> {
        match WITHOUT_EXIT.contains(&call) {
            true => Err(format!("the system call `{call}` does not return")),
            false => Ok(()),
        }
    }

    fn records_call(&self, call: &str) -> Result<(), NotRecorded> {
        match self.syscalls.wants(call) {
            true => Ok(()),
            false => Err(format!(
                "the system call `{call}` is not recorded: add it to --syscalls"
            )),
        }
    }

    fn records_class(&self, name: &str, id: u64) -> Result<(), NotRecorded> {
        // An event of `--event`.
        if id >= FIRST_CHOSEN as u64 {
            return Ok(());
        }
        let plain = name.strip_prefix("compat_").unwrap_or(name);
        if let Some(call) = plain.strip_prefix("syscall_entry_") {
            return self.records_call(call);
        }
        if let Some(call) = plain.strip_prefix("syscall_exit_") {
            return self.records_duration(call);
        }
        let is_one = |kinds: &[u16]| kinds.iter().any(|kind| u64::from(*kind) == id);
        let of_stacks = [kinds::TRACEBRAID_CPU_STACK, kinds::TRACEBRAID_SYSCALL_STACK];
        let of_memory = [
            kinds::TRACEBRAID_STACKS_STATE,
            kinds::TRACEBRAID_KERNEL_SYMBOL,
            kinds::TRACEBRAID_MAP_LOAD,
            kinds::TRACEBRAID_MAP_FORK,
            kinds::TRACEBRAID_MAP_EXEC,
            kinds::TRACEBRAID_MAP_FILE,
            kinds::TRACEBRAID_CODE_SYMBOL,
        ];
        match group_of_class(name) {
            Some(group) => self.records_group(name, group),
            None if is_one(&of_stacks) => self.records_stacks(name, id),
            None if is_one(&of_memory) && self.stacks.is_none() => {
                Err(format!("`{name}` is recorded only with --stacks"))
            }
            None if name.starts_with("lttng_statedump_") && !self.state_dump => {
                Err(format!("`{name}` is left out by --no-state-dump"))
            }
            None if is_one(&[kinds::TRACEBRAID_END, kinds::TRACEBRAID_TRIGGER]) => {
                Err(format!("`{name}` is an event of the recorder itself"))
            }
            None => Ok(()),
        }
    }

    fn records_group(&self, name: &str, group: Group) -> Result<(), NotRecorded> {
        let is_chosen = |tracepoint: &str| self.events.has_own(tracepoint);
        let tracepoint = tracepoint_of_class(name);
        if self.groups.contains(&group) || is_chosen(tracepoint) {
            return Ok(());
        }
        Err(format!(
            "`{name}` is not recorded: add the group {group} to --kernel"
        ))
    }

    fn records_stacks(&self, name: &str, id: u64) -> Result<(), NotRecorded> {
        let Some(stacks) = &self.stacks else {
            return Err(format!("`{name}` is recorded only with --stacks"));
        };
        let is_wait = id == u64::from(kinds::TRACEBRAID_SYSCALL_STACK);
        match (is_wait, stacks.threshold_ns, stacks.period_ns) {
            (true, 0, _) => Err(format!("`{name}` is left out by --stacks=waits=off")),
            (false, _, 0) => Err(format!("`{name}` is left out by --stacks=period_us=0")),
            _ => Ok(()),
        }
    }
}

/// Prefixes that LTTng adds to tracepoint names.
const PREFIXES: [&str; 4] = [
    "x86_irq_vectors_",
    "x86_exceptions_",
    "timer_hrtimer_",
    "irq_softirq_",
];

/// The kernel's name of the tracepoint that a class records.
fn tracepoint_of_class(name: &str) -> &str {
    match name {
        "net_if_receive_skb" => return "netif_receive_skb",
        "net_dev_queue" => return "net_dev_queue",
        _ => {}
    }
    let prefix = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
    match prefix {
        // LTTng adds only the first word: `hrtimer_` and `softirq_` belong to the tracepoint's
        // name.
        Some(&("timer_hrtimer_" | "irq_softirq_")) => {
            name.split_once('_').map_or(name, |(_, rest)| rest)
        }
        Some(prefix) => name.strip_prefix(prefix).unwrap_or(name),
        None => name,
    }
}

/// The group of a class; `None` if it belongs to no group.
fn group_of_class(name: &str) -> Option<Group> {
    Group::of_tracepoint(tracepoint_of_class(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::GROUPS;
    use crate::plan::Syscalls;
    use crate::stacks::Stacks;

    fn nothing() -> Options {
        Options {
            groups: Vec::new(),
            ..Options::default()
        }
    }

    #[test]
    fn each_class_of_a_group_needs_it() {
        let all = Options {
            groups: GROUPS.to_vec(),
            ..nothing()
        };
        for (name, group) in [
            ("sched_switch", "sched"),
            ("irq_handler_entry", "irq"),
            ("irq_softirq_raise", "irq"),
            ("timer_hrtimer_start", "timer"),
            ("timer_expire_entry", "timer"),
            ("x86_irq_vectors_irq_work_exit", "vector"),
            ("x86_irq_vectors_local_timer_entry", "vector"),
            ("block_rq_issue", "block"),
            ("net_if_receive_skb", "net"),
            ("net_dev_queue", "net"),
            ("tcp_retransmit_skb", "net"),
            ("x86_exceptions_page_fault_user", "fault"),
            ("contention_begin", "lock"),
            ("io_uring_complete", "work"),
        ] {
            let why = nothing().records(name).unwrap_err();
            assert!(
                why.ends_with(&format!("add the group {group} to --kernel")),
                "{why}"
            );
            assert_eq!(all.records(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn calls_must_be_recorded_and_return() {
        let mut options = nothing();
        assert!(options.records("syscall_entry_*").is_err());
        options.syscalls = Syscalls::Only(vec!["read".into(), "exit".into()]);
        for name in [
            "syscall_entry_read",
            "syscall_exit_read",
            "syscall_entry_*",
            "syscall_entry_exit",
        ] {
            assert_eq!(options.records(name), Ok(()), "{name}");
        }
        let of = |name: &str| options.records(name).unwrap_err();
        assert!(of("syscall_exit_write").contains("add it to --syscalls"));
        assert!(of("syscall_exit_exit").contains("does not return"));
        assert!(
            options
                .records_duration("exit")
                .unwrap_err()
                .contains("does not return")
        );
        assert_eq!(options.records_duration("read"), Ok(()));
        assert!(of("none_such").contains("no event of the kernel is named"));
    }

    #[test]
    fn stacks_and_state_are_recorded_if_they_are_wanted() {
        let mut options = nothing();
        assert!(
            options
                .records("tracebraid_cpu_stack")
                .unwrap_err()
                .contains("--stacks")
        );
        assert!(
            options
                .records("tracebraid_map_load")
                .unwrap_err()
                .contains("--stacks")
        );
        assert!(options.records("tracebraid_end").is_err());
        assert_eq!(options.records("lttng_statedump_process_state"), Ok(()));
        options.state_dump = false;
        assert!(
            options
                .records("lttng_statedump_*")
                .unwrap_err()
                .contains("--no-state-dump")
        );
        options.stacks = Some(Stacks {
            threshold_ns: 0,
            ..Stacks::default()
        });
        assert_eq!(options.records("tracebraid_cpu_stack"), Ok(()));
        assert!(
            options
                .records("tracebraid_syscall_stack")
                .unwrap_err()
                .contains("waits=off")
        );
    }
}
