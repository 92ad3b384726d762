//! The plain state machine: one pass over all events in the order of time; fields are looked up by
//! name.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_models::events::{Entry, ModelEvent, Record, by_cpu, merged};

/// Values by path, without nulls.
pub(crate) type Values = BTreeMap<String, String>;

/// State of the machine.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) values: Values,
    running: HashMap<u32, i64>,
}

/// All events in the order of time.
pub(crate) fn entries(set: &TraceSet) -> Vec<Entry> {
    merged(by_cpu(set, |_| true))
}

impl Model {
    /// All values, with the states of CPUs.
    pub(crate) fn with_cpu_states(&self) -> Values {
        let mut all = self.values.clone();
        all.extend(self.cpu_states());
        all
    }

    /// The states of CPUs, which follow from the other values.
    pub(crate) fn cpu_states(&self) -> Values {
        let mut all = Values::new();
        let get = |path: String| self.values.get(&path).map(String::as_str);
        for cpu in 0..4 {
            let thread = get(format!("cpu/{cpu}/thread"));
            let call = thread.and_then(|tid| get(format!("thread/{tid}/syscall")));
            let parent = thread.and_then(|tid| get(format!("thread/{tid}/parent")));
            let parts = (
                get(format!("cpu/{cpu}/irq")),
                get(format!("cpu/{cpu}/softirq")),
                thread,
                call,
                parent,
            );
            let state = match parts {
                (Some(_), ..) => "irq",
                (_, Some(_), ..) => "softirq",
                (_, _, Some("0"), ..) => "idle",
                (_, _, None, ..) => continue,
                (_, _, _, Some(_), _) | (_, _, Some("2"), ..) | (_, _, _, _, Some("2")) => "system",
                // Possibly a kernel thread.
                (.., None) => continue,
                _ => "user",
            };
            all.insert(format!("cpu/{cpu}/state"), state.to_owned());
        }
        all
    }

    pub(crate) fn step(&mut self, entry: &Entry) {
        match &entry.what {
            ModelEvent::Packet { lost: true, .. } | ModelEvent::Cut => self.lost(entry.cpu),
            ModelEvent::Packet { .. } => {}
            ModelEvent::Event(event) => self.event(entry.cpu, event),
        }
    }

    fn set(&mut self, path: String, value: impl ToString) {
        self.values.insert(path, value.to_string());
    }

    fn thread(&mut self, tid: i64, name: &str, value: impl ToString) {
        if tid != 0 {
            self.set(format!("thread/{tid}/{name}"), value);
        }
    }

    fn cpu(&mut self, cpu: u32, name: &str, value: impl ToString) {
        self.set(format!("cpu/{cpu}/{name}"), value);
    }

    fn unset(&mut self, path: &str) {
        self.values.remove(path);
    }

    fn lost(&mut self, cpu: u32) {
        for name in ["thread", "irq", "softirq"] {
            self.unset(&format!("cpu/{cpu}/{name}"));
        }
        if let Some(tid) = self.running.remove(&cpu) {
            self.unset(&format!("thread/{tid}/state"));
        }
    }

    fn gone(&mut self, tid: i64) {
        let prefix = format!("thread/{tid}/");
        self.values.retain(|path, _| !path.starts_with(&prefix));
    }

    fn switch(&mut self, cpu: u32, event: &Record) {
        let int = |name: &str| event.int(name).unwrap();
        let (prev, next) = (int("prev_tid"), int("next_tid"));
        let state = match int("prev_state") {
            0 | 0x100 | 0x800 | 0x1000 => "preempted",
            1 => "sleeping",
            2 => "disk-sleep",
            4 | 8 => "stopped",
            0x10 | 0x20 => "dead",
            0x40 | 0x80 => "idle",
            _ => "other",
        };
        self.cpu(cpu, "thread", next);
        self.thread(prev, "state", state);
        self.thread(next, "state", "running");
        self.thread(next, "cpu", cpu);
        for (tid, side) in [(prev, "prev"), (next, "next")] {
            self.thread(tid, "name", event.text(&format!("{side}_comm")).unwrap());
            self.thread(tid, "priority", int(&format!("{side}_prio")) + 100);
        }
        self.running.insert(cpu, next);
    }

    fn wake(&mut self, event: &Record) {
        let tid = event.int("tid").unwrap();
        let waits = ["sleeping", "disk-sleep", "stopped", "new", "idle", "other"];
        let now = self.values.get(&format!("thread/{tid}/state"));
        if event.name == "sched_wakeup_new" || now.is_none_or(|now| waits.contains(&now.as_str())) {
            self.thread(tid, "state", "woken");
        }
        if event.name != "sched_waking" {
            self.thread(tid, "cpu", event.int("target_cpu").unwrap());
        }
    }

    fn block(&mut self, event: &Record) {
        let sectors = event.int("nr_sector").unwrap();
        if sectors == 0 {
            return;
        }
        let dev = event.int("dev").unwrap();
        let disk = format!("disk/{},{}", dev >> 20, dev & 0xfffff);
        let values = &mut self.values;
        let mut add = |name: &str, more: i64| {
            let value = values
                .entry(format!("{disk}/{name}"))
                .or_insert_with(|| "0".into());
            *value = (value.parse::<i64>().unwrap() + more).max(0).to_string();
        };
        add(
            "depth",
            if event.name == "block_rq_issue" {
                1
            } else {
                -1
            },
        );
        if event.name == "block_rq_complete" {
            add("requests", 1);
            let is_write = event.int("rwbs").unwrap() & 1 != 0;
            add(if is_write { "written" } else { "read" }, sectors * 512);
        }
    }

    fn fork(&mut self, event: &Record) {
        let child = event.int("child_tid").unwrap();
        self.unset(&format!("thread/{child}/syscall"));
        self.thread(child, "state", "new");
        self.thread(child, "name", event.text("child_comm").unwrap());
        self.thread(child, "parent", event.int("parent_pid").unwrap());
        self.thread(child, "process", event.int("child_pid").unwrap());
    }

    fn event(&mut self, cpu: u32, event: &Record) {
        let running = self.running.get(&cpu).copied();
        match event.name.as_str() {
            "sched_switch" => self.switch(cpu, event),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => self.wake(event),
            "sched_migrate_task" => self.thread(
                event.int("tid").unwrap(),
                "cpu",
                event.int("dest_cpu").unwrap(),
            ),
            "sched_pi_setprio" => self.thread(
                event.int("tid").unwrap(),
                "priority",
                event.int("newprio").unwrap() + 100,
            ),
            "sched_process_fork" => self.fork(event),
            "sched_process_free" => self.gone(event.int("tid").unwrap()),
            "sched_process_exec" => {
                let (tid, old) = (event.int("tid").unwrap(), event.int("old_tid").unwrap());
                assert_eq!(tid, old, "no such trace is at hand");
                let path = event.text("filename").unwrap();
                let name = path.rsplit('/').next().unwrap();
                self.thread(tid, "name", &name[..name.len().min(15)]);
            }
            "irq_handler_entry" => self.cpu(cpu, "irq", event.int("irq").unwrap()),
            "irq_handler_exit" => self.unset(&format!("cpu/{cpu}/irq")),
            "irq_softirq_entry" => {
                let names = tracebraid_kernel_model::SOFTIRQS;
                self.cpu(cpu, "softirq", names[event.int("vec").unwrap() as usize]);
            }
            "irq_softirq_exit" => self.unset(&format!("cpu/{cpu}/softirq")),
            "block_rq_issue" | "block_rq_complete" | "block_rq_requeue" => self.block(event),
            "lttng_statedump_process_state" => {
                let tid = event.int("tid").unwrap();
                self.thread(tid, "name", event.text("name").unwrap());
                self.thread(tid, "process", event.int("pid").unwrap());
                self.thread(tid, "parent", event.int("ppid").unwrap());
            }
            name => {
                let Some(tid) = running.filter(|&tid| tid != 0) else {
                    return;
                };
                if let Some(call) = name.strip_prefix("syscall_entry_") {
                    let call = if call == "unknown" {
                        by_number(event)
                    } else {
                        call
                    };
                    self.thread(tid, "syscall", call);
                } else if name.starts_with("syscall_exit_") {
                    self.unset(&format!("thread/{tid}/syscall"));
                }
            }
        }
    }
}

/// Calls that this tracer does not name, by number in `asm/unistd_64.h`.
fn by_number(event: &Record) -> &'static str {
    match event.int("id").unwrap() {
        15 => "rt_sigreturn",
        56 => "clone",
        57 => "fork",
        58 => "vfork",
        59 => "execve",
        158 => "arch_prctl",
        302 => "prlimit64",
        318 => "getrandom",
        324 => "membarrier",
        332 => "statx",
        334 => "rseq",
        435 => "clone3",
        439 => "faccessat2",
        449 => "futex_waitv",
        number => panic!("what is system call {number}?"),
    }
}
