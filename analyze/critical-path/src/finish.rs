//! The graph of what is known in the end.

use tracebraid_kernel_fold::{CpuKey, Input};

use crate::cause::ActorId;
use crate::graph::{Actor, Graph, Occupied};
use crate::line::Line;
use crate::machine::Machine;
use crate::rules::{GraphPartial, GraphRules};

/// Makes the graph.
pub(crate) fn graph(rules: &GraphRules, input: &Input, partial: GraphPartial) -> Graph {
    let GraphPartial {
        people,
        names,
        mut calls,
        mut machine,
        ..
    } = partial;
    machine.ends_waiting();
    let ends = ends(input);
    for &(trace, end) in &ends {
        machine.ends_knowing(trace, end);
    }
    let Machine {
        lines,
        cpus,
        requests,
        packets,
        rings,
        futexes,
        calls: of_several,
        ..
    } = machine;
    calls.merge(of_several, &rules.wanted);
    let mut last = std::collections::HashMap::new();
    for (place, line) in lines.iter().enumerate() {
        last.insert(line.key, place);
    }
    let actor = |(place, line): (usize, Line)| {
        let mut actor = actor(line);
        // What is known of an id is known of the last thread that had it.
        if last.get(&actor.key) == Some(&place) {
            let known = people.thread(actor.key);
            actor.pid = actor.pid.or(known.pid);
            actor.name = known.name.or(actor.name);
        }
        actor
    };
    let text = |(hash, (from, to))| (hash, format!("{from} > {to}"));
    let actors: Vec<Actor> = lines.into_iter().enumerate().map(actor).collect();
    Graph {
        head: input.head(),
        known_from: rules.from,
        known_until: input.known_until().unwrap_or(i64::MIN),
        ends,
        by_key: by_key(&actors),
        actors,
        cpus: cpus.into_iter().collect::<Vec<(CpuKey, Vec<Occupied>)>>(),
        longest_request: requests.longest,
        requests: requests.done,
        packets: packets.packets,
        ring_requests: rings.done,
        queues: names.queues.into_entries(),
        futexes: in_places(futexes),
        irqs: names.irqs.into_entries(),
        disks: names.disks.into_entries(),
        connections: names.connections.into_entries().into_iter().map(text).collect(),
        calls: calls.into_calls(&rules.wanted),
    }
}

/// Traces that end before others do: when.
fn ends(input: &Input) -> Vec<(u32, i64)> {
    let last = input.known_until();
    let end = |trace: u32| Some((trace, input.known_until_of(trace)?));
    let ends = input.head().hosts.into_iter().filter_map(|host| end(host.trace));
    ends.filter(|end| Some(end.1) < last).collect()
}

/// Threads by machine and id; those of one id in the order in which they were met.
fn by_key(actors: &[Actor]) -> Vec<ActorId> {
    let mut ids: Vec<ActorId> = (0..).map(ActorId).take(actors.len()).collect();
    ids.sort_by_key(|id| {
        let key = actors.get(id.0 as usize).map(|actor| actor.key);
        key.map(|key| (key.trace, key.tid))
    });
    ids
}

fn actor(line: Line) -> Actor {
    let mut stretches = line.stretches;
    stretches.shrink_to_fit();
    Actor {
        key: line.key,
        pid: line.pid,
        name: line.name.map(|name| name.text()).filter(|name| !name.is_empty()),
        creator: line.creator,
        line: stretches,
        works: line.works,
    }
}

/// Addresses by their places.
fn in_places(mut futexes: Vec<(i64, u32)>) -> Vec<i64> {
    futexes.sort_unstable_by_key(|of| of.1);
    futexes.into_iter().map(|of| of.0).collect()
}
