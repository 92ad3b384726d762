//! Scheduling for Perfetto: switches and wake-ups, made from the execution graph.

use tracebraid_graph::{Actor, ActorId, Graph, Occupant, State, Wake};

use crate::perfetto::{Switch, Thread, Trace, Waking};

/// States in `sched_switch`: the thread can run, sleeps, has ended, or is a kernel thread without
/// work.
const CAN_RUN: u64 = 0;
const SLEEPS: u64 = 1;
const ENDED: u64 = 16;
const NO_WORK: u64 = 0x80;

/// Adds the threads of a machine, switches and wake-ups. Of several machines, the first is shown:
/// Perfetto knows one.
pub(crate) fn scheduling(trace: &mut Trace, graph: &Graph) {
    let Some(machine) = graph.cpus.first().map(|(cpu, _)| cpu.trace) else {
        return;
    };
    let is_here = |actor: &&Actor| actor.key.trace == machine;
    let threads = graph.actors.iter().filter(is_here);
    trace.threads(threads.map(|actor| Thread {
        pid: actor.pid,
        tid: actor.key.tid,
        name: actor.name.as_deref().unwrap_or("?"),
    }));
    for (cpu, line) in graph.cpus.iter().filter(|(cpu, _)| cpu.trace == machine) {
        let mut before = Occupant::Unknown;
        for occupied in line {
            if occupied.by != Occupant::Unknown {
                trace.switch(&Switch {
                    cpu: cpu.cpu,
                    time: occupied.begin,
                    from: thread(graph, before),
                    state: state(graph, before, occupied.begin),
                    to: thread(graph, occupied.by),
                });
            }
            before = occupied.by;
        }
    }
    for actor in graph.actors.iter().filter(is_here) {
        wakings(trace, graph, actor);
    }
}

fn actor(graph: &Graph, occupant: Occupant) -> Option<&Actor> {
    match occupant {
        Occupant::Thread(id) => graph.actor(id),
        _ => None,
    }
}

/// Id and name of an occupant; the idle task has the id 0.
fn thread(graph: &Graph, occupant: Occupant) -> (i32, &str) {
    actor(graph, occupant).map_or((0, "swapper"), named)
}

fn named(actor: &Actor) -> (i32, &str) {
    (actor.key.tid, actor.name.as_deref().unwrap_or("?"))
}

/// State of a thread that leaves its CPU.
fn state(graph: &Graph, occupant: Occupant, time: i64) -> u64 {
    let state = actor(graph, occupant).and_then(|actor| {
        let stretch = actor.line.get(actor.place(time)?)?;
        Some(stretch.state)
    });
    match state {
        Some(State::Blocked { is_idle: true, .. }) => NO_WORK,
        Some(State::Blocked { .. }) => SLEEPS,
        Some(State::Ended) => ENDED,
        _ => CAN_RUN,
    }
}

/// The wake-ups of a thread.
fn wakings(trace: &mut Trace, graph: &Graph, actor: &Actor) {
    for pair in actor.line.windows(2) {
        let [before, after] = pair else {
            continue;
        };
        let (State::Blocked { wake, .. }, State::Runnable(cpu)) = (before.state, after.state)
        else {
            continue;
        };
        let waker: Option<ActorId> = match wake {
            Wake::Thread(id) => Some(id),
            _ => None,
        };
        let waker = waker.and_then(|id| graph.actor(id));
        trace.waking(&Waking {
            cpu: u32::from(cpu),
            time: after.begin,
            by: waker.map_or(0, |waker| waker.key.tid),
            woken: named(actor),
        });
    }
}
