//! Names and processes of threads, from the events that contain them.

use tracebraid_kernel_model::{Body, Comm, EventModel, Exec, IntField, KernelEvent, Switch};

use crate::frame::Event;
use crate::people::{People, ThreadKey};
use crate::sources::CpuKey;

/// Learns names and processes from an event other than a switch.
pub fn learn(
    people: &mut People,
    model: &EventModel,
    cpu: CpuKey,
    time: i64,
    body: &mut Body<'_, '_>,
) {
    let thread = |tid: i64| ThreadKey {
        trace: cpu.trace,
        tid: tid as i32,
    };
    let get = |field: &Option<IntField>, body: &mut Body<'_, '_>| {
        field.as_ref().and_then(|field| field.get(body))
    };
    match &model.event {
        KernelEvent::Fork(fork) => {
            let Some(child) = fork.child_tid.get(body) else {
                return;
            };
            let name = fork.child_name.as_ref().and_then(|name| name.comm(body));
            let child = people.get(thread(child));
            name.into_iter()
                .for_each(|name| child.learn_name(time, cpu, name));
            if let Some(pid) = get(&fork.child_pid, body) {
                child.learn_pid(time, cpu, pid as i32);
            }
            if let (Some(parent), Some(pid)) =
                (get(&fork.parent_tid, body), get(&fork.parent_pid, body))
            {
                people.get(thread(parent)).learn_pid(time, cpu, pid as i32);
            }
        }
        KernelEvent::Exec(exec) => {
            let path = exec.path.as_ref().and_then(|path| path.bytes(body));
            if let (Some(tid), Some(path)) = (get(&exec.tid, body), path) {
                people
                    .get(thread(tid))
                    .learn_name(time, cpu, Comm::of_program(path));
            }
        }
        KernelEvent::Rename(tid, name) => {
            if let (Some(tid), Some(name)) = (tid.get(body), name.comm(body)) {
                people.get(thread(tid)).learn_name(time, cpu, name);
            }
        }
        KernelEvent::ProcessState(state) => {
            let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) else {
                return;
            };
            let name = state.name.as_ref().and_then(|name| name.comm(body));
            let person = people.get(thread(tid));
            person.learn_pid(time, cpu, pid as i32);
            name.into_iter()
                .for_each(|name| person.learn_name(time, cpu, name));
        }
        _ => {}
    }
}

/// Learns names and processes from a switch, and returns the previous and the next thread. `near`
/// is the position in `people` of the thread last switched to, most often the previous thread.
#[inline(always)]
pub fn learn_switch(
    people: &mut People,
    near: &mut usize,
    event: &Event<'_>,
    switch: &Switch,
    body: &mut Body<'_, '_>,
) -> Option<(i32, i32)> {
    learn_named_switch(people, near, event, switch, body).map(|(threads, _)| threads)
}

/// Like [`learn_switch`], and returns the names of both threads, as far as recorded.
#[inline(always)]
pub fn learn_named_switch(
    people: &mut People,
    near: &mut usize,
    event: &Event<'_>,
    switch: &Switch,
    body: &mut Body<'_, '_>,
) -> Option<((i32, i32), [Comm; 2])> {
    let Event {
        model, cpu, time, ..
    } = *event;
    let (prev, next) = (
        switch.prev_tid.get(body)? as i32,
        switch.next_tid.get(body)? as i32,
    );
    let mut names = [Comm::default(); 2];
    let fields = [(prev, &switch.prev_name), (next, &switch.next_name)];
    for ((tid, field), told) in fields.into_iter().zip(&mut names) {
        if tid == 0 {
            continue;
        }
        let trace = cpu.trace;
        let person = people.get_near(ThreadKey { trace, tid }, near);
        if let Some(name) = field.as_ref().and_then(|name| name.comm(body)) {
            person.learn_name(time, cpu, name);
            *told = name;
        }
        if tid == prev
            && let Some(pid) = model.pid(body)
        {
            person.learn_pid(time, cpu, pid);
        }
    }
    Some(((prev, next), names))
}

/// The old and the new id of a thread that executes a program, if it takes over the id of the first
/// thread of its process.
pub fn taken_over(exec: &Exec, body: &mut Body<'_, '_>) -> Option<(i32, i32)> {
    let tid = exec.tid.as_ref()?.get(body)? as i32;
    let old = exec.old_tid.as_ref()?.get(body)? as i32;
    (tid != old).then_some((old, tid))
}
