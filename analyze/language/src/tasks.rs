//! The thread of each event record of a kernel trace: the thread that runs on its CPU.
//!
//! Few kernel traces record the thread in every event record. `sched_switch` records the thread
//! that runs from then on; until the first switch the thread is unknown. Process and name come from
//! the state dump, from forks and from switches.

use std::collections::HashMap;

use tracebraid_ctf::event::Event;
use tracebraid_kernel_model::ThreadNews;

#[derive(Clone, Debug, Default)]
struct Task {
    pid: Option<i64>,
    name: Vec<u8>,
}

/// Follows the threads of one trace. Requires all its event records in the order of time.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By stream class and event class.
    classes: HashMap<(usize, usize), ThreadNews>,
    running: HashMap<u64, i64>,
    tasks: HashMap<i64, Task>,
}

/// The running thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running<'a> {
    /// Thread id.
    pub tid: Option<i64>,
    /// Process id.
    pub pid: Option<i64>,
    /// Thread name.
    pub name: Option<&'a [u8]>,
}

impl Tasks {
    /// The thread of the event record. A switch belongs to the thread that it switches away from.
    pub fn see(
        &mut self,
        stream_class: usize,
        event: &mut Event<'_>,
        cpu: Option<u64>,
    ) -> Running<'_> {
        let key = (stream_class, event.class_index);
        let news = self
            .classes
            .entry(key)
            .or_insert_with(|| ThreadNews::of(event.stream, event.class_index));
        let mut tid = cpu.and_then(|cpu| self.running.get(&cpu).copied());
        match news {
            ThreadNews::Nothing => {}
            ThreadNews::Switch { tids, names } => {
                let [before, after] = [0, 1].map(|index| {
                    let tid = tids.get(index)?.integer(event.body, event.slots).ok()? as i64;
                    let name = names.get(index).and_then(Option::as_ref);
                    if let Some(name) =
                        name.and_then(|name| name.bytes(event.body, event.slots).ok())
                    {
                        name.clone_into(&mut self.tasks.entry(tid).or_default().name);
                    }
                    Some(tid)
                });
                tid = before.or(tid);
                if let (Some(cpu), Some(after)) = (cpu, after) {
                    self.running.insert(cpu, after);
                }
            }
            ThreadNews::Thread { tid, pid, name } => {
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
