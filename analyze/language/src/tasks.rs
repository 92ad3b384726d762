//! Which thread an event record of a kernel trace belongs to: the one that its CPU runs.
//!
//! Kernel traces seldom say it in every event record. `sched_switch` says who runs from then on;
//! before the first one nobody knows. Process and name come from the state dump, from forks and
//! from switches.

use std::collections::HashMap;

use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
struct Task {
    pid: Option<i64>,
    name: Vec<u8>,
}

/// What an event class says of threads.
#[derive(Debug)]
enum Says {
    Nothing,
    /// Who ran, who runs, and their names.
    Switch {
        tids: [FieldRef; 2],
        names: [Option<FieldRef>; 2],
    },
    /// A thread, its process and its name.
    Task {
        tid: FieldRef,
        pid: Option<FieldRef>,
        name: Option<FieldRef>,
    },
}

/// Follows the threads of one trace. Must see all its event records in the order of time.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By stream class and event class.
    classes: HashMap<(usize, usize), Says>,
    running: HashMap<u64, i64>,
    tasks: HashMap<i64, Task>,
}

/// The thread that runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running<'a> {
    /// Its id.
    pub tid: Option<i64>,
    /// Its process.
    pub pid: Option<i64>,
    /// Its name.
    pub name: Option<&'a [u8]>,
}

impl Tasks {
    /// The thread that the event record belongs to: a switch belongs to the one that it ends.
    pub fn see(&mut self, stream_class: usize, event: &mut Event<'_>, cpu: Option<u64>) -> Running<'_> {
        let key = (stream_class, event.class_index);
        let says = self
            .classes
            .entry(key)
            .or_insert_with(|| Says::of(event.stream, event.class_index));
        let mut tid = cpu.and_then(|cpu| self.running.get(&cpu).copied());
        match says {
            Says::Nothing => {}
            Says::Switch { tids, names } => {
                let [before, after] = [0, 1].map(|index| {
                    let tid = tids.get(index)?.integer(event.body, event.slots).ok()? as i64;
                    let name = names.get(index).and_then(Option::as_ref);
                    if let Some(name) = name.and_then(|name| name.bytes(event.body, event.slots).ok()) {
                        name.clone_into(&mut self.tasks.entry(tid).or_default().name);
                    }
                    Some(tid)
                });
                tid = before.or(tid);
                if let (Some(cpu), Some(after)) = (cpu, after) {
                    self.running.insert(cpu, after);
                }
            }
            Says::Task { tid, pid, name } => {
                if let Ok(tid) = tid.integer(event.body, event.slots) {
                    let task = self.tasks.entry(tid as i64).or_default();
                    let pid = pid
                        .as_ref()
                        .and_then(|pid| pid.integer(event.body, event.slots).ok());
                    task.pid = pid.map(|pid| pid as i64).or(task.pid);
                    if let Some(name) = name
                        .as_ref()
                        .and_then(|name| name.bytes(event.body, event.slots).ok())
                    {
                        name.clone_into(&mut task.name);
                    }
                }
            }
        }
        let task = tid.and_then(|tid| self.tasks.get(&tid));
        Running {
            tid,
            pid: task.and_then(|task| task.pid),
            name: task
                .map(|task| task.name.as_slice())
                .filter(|name| !name.is_empty()),
        }
    }
}

impl Says {
    fn of(stream: &StreamLayout, event: usize) -> Says {
        let name = stream.events.get(event).map_or("", |event| &event.name);
        let field = |name: &str| stream.field(event, Scope::Payload, &[name]);
        // perf puts a subsystem before the name; it and ftrace call a thread's id `pid`.
        let says = match name.strip_prefix("sched:").unwrap_or(name) {
            "sched_switch" => field("prev_tid")
                .or_else(|| field("prev_pid"))
                .zip(field("next_tid").or_else(|| field("next_pid")))
                .map(|(prev, next)| Says::Switch {
                    tids: [prev, next],
                    names: [field("prev_comm"), field("next_comm")],
                }),
            "sched_process_fork" => {
                let (lttng, other) = (field("child_tid"), field("child_pid"));
                let pid = lttng.is_some().then(|| other.clone()).flatten();
                lttng.or(other).map(|tid| Says::Task {
                    tid,
                    pid,
                    name: field("child_comm"),
                })
            }
            "lttng_statedump_process_state" => field("tid").map(|tid| Says::Task {
                tid,
                pid: field("pid"),
                name: field("name"),
            }),
            _ => None,
        };
        says.unwrap_or(Says::Nothing)
    }
}
