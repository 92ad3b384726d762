//! Builds the graph at the end of the fold.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::net::SocketAddr;
use std::sync::Arc;

use tracebraid_engine::parallel;
use tracebraid_follow::{CpuKey, Input, KeyHasher, People, ThreadKey};

use crate::graph::{Actor, Graph, Occupied};
use crate::graph_machine::GraphMachine;
use crate::names::Names;
use crate::numbers::Numbers;
use crate::rules::{GraphPartial, GraphRules};

/// Number of time lines per task.
const SOME: usize = 64;

pub(crate) fn graph(rules: &GraphRules, input: &Input, partial: GraphPartial) -> Graph {
    let GraphPartial {
        people,
        names: Names { connections, .. },
        mut calls,
        mut machine,
        ..
    } = partial;
    let end = input.known_until().unwrap_or(i64::MIN);
    machine.catch_up_beside(&rules.classes);
    // Freeing this memory takes longer than any other step here, so it is done in parallel.
    parallel::map(machine.packets.take_flows(), drop);
    machine.ends_waiting(&input.recorded, None, end);
    let ends = ends(input);
    for &(trace, end) in &ends {
        machine.ends_knowing(trace, end);
    }
    if rules.from > i64::MIN {
        machine.forget_before(rules.from);
    }
    let GraphMachine {
        mut lines,
        cpus,
        requests,
        packets,
        rings,
        futexes,
        held,
        names,
        calls: of_several,
        ..
    } = machine;
    calls.merge(of_several, &rules.wanted);
    let (numbers, addresses) = Numbers::new(&rules.classes, &packets.unused, &futexes);
    finish_lines(&mut lines, &numbers, &people);
    let text =
        |(hash, (from, to)): (u64, (SocketAddr, SocketAddr))| (hash, format!("{from} > {to}"));
    Graph {
        head: input.head(),
        known_from: rules.from,
        known_until: end,
        ends,
        by_key: held.into_iter().collect(),
        actors: lines,
        cpus: cpus.into_iter().collect::<Vec<(CpuKey, Vec<Occupied>)>>(),
        longest_request: requests.longest,
        requests: requests.done,
        packets: packets.packets.without(&packets.unused),
        ring_requests: rings.done,
        queues: names.queues.into_entries(),
        futexes: addresses,
        irqs: names.irqs.into_entries(),
        disks: names.disks.into_entries(),
        user_threads: names.threads.into_entries(),
        connections: parallel::map(connections.into_entries(), text),
        devices: Arc::default(),
        calls: calls.into_calls(&rules.wanted),
    }
}

/// Sets the final names and processes of threads, and the final numbers in their time lines.
fn finish_lines(lines: &mut [Actor], numbers: &Numbers<'_>, people: &People) {
    let mut last: HashMap<ThreadKey, usize, BuildHasherDefault<KeyHasher>> = HashMap::default();
    for (place, line) in lines.iter().enumerate() {
        last.insert(line.key, place);
    }
    let last = |place: usize, key: ThreadKey| last.get(&key) == Some(&place);
    let actor = |(place, actor): (usize, &mut Actor)| {
        numbers.renumber(actor);
        actor.line.shrink_to_fit();
        // Names and processes are known by thread id, and belong to the last thread with that id.
        if last(place, actor.key) {
            let known = people.thread(actor.key);
            actor.pid = actor.pid.or(known.pid);
            actor.name = known.name.or(actor.name.take());
        }
    };
    let pieces = (0..).step_by(SOME).zip(lines.chunks_mut(SOME));
    parallel::map_large(pieces.collect(), |(first, lines): (usize, &mut [Actor])| {
        (first..).zip(lines).for_each(actor);
    });
}

/// Traces that end before the last one does, with these times.
pub(crate) fn ends(input: &Input) -> Vec<(u32, i64)> {
    let last = input.known_until();
    let end = |trace: u32| Some((trace, input.known_until_of(trace)?));
    let ends = input
        .head()
        .hosts
        .into_iter()
        .filter_map(|host| end(host.trace));
    ends.filter(|end| Some(end.1) < last).collect()
}
