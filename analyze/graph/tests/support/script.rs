//! Kernel traces of hand-written events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tracebraid_engine::Options;
use tracebraid_follow::Selection;
use tracebraid_graph::{ActorId, Graph};

use crate::support::traces;

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Int(i64),
    Text(&'static str),
}

type Fields = Vec<(&'static str, Value)>;

/// Events by CPU and time, in the order of time on each CPU.
#[derive(Default)]
pub(crate) struct Script {
    events: Vec<(u32, u64, String, Fields)>,
    /// CPU and time before which some events were lost.
    lost: Option<(u32, u64)>,
}

/// A segment of a path: start, end, thread, reason and detail.
pub(crate) type Part = (i64, i64, i32, &'static str, String);

const HEAD: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { u32 magic; u32 stream_id; };
};
env { hostname = "box"; domain = "kernel"; sysname = "Linux"; tracer_name = "lttng-modules"; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := stamp;
stream {
	id = 0;
	packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u64 events_discarded; u32 cpu_id; };
	event.header := struct { u32 id; stamp timestamp; };
};
"#;

/// Events of a packet: few, so that chunks can be small.
const PACKET: usize = 3;

impl Script {
    pub(crate) fn event(&mut self, cpu: u32, time: u64, name: &str, fields: Fields) -> &mut Script {
        self.events.push((cpu, time, name.to_owned(), fields));
        self
    }

    /// An event with integer fields only.
    pub(crate) fn is(
        &mut self,
        cpu: u32,
        time: u64,
        name: &str,
        fields: &[(&'static str, i64)],
    ) -> &mut Script {
        let fields = fields.iter().map(|of| (of.0, Value::Int(of.1))).collect();
        self.event(cpu, time, name, fields)
    }

    /// A switch from a thread, in that state, to another.
    pub(crate) fn switch(
        &mut self,
        cpu: u32,
        time: u64,
        (prev, state): (i64, i64),
        next: i64,
    ) -> &mut Script {
        let fields = [
            ("prev_tid", prev),
            ("prev_state", state),
            ("next_tid", next),
        ];
        self.is(cpu, time, "sched_switch", &fields)
    }

    pub(crate) fn wakes(&mut self, cpu: u32, time: u64, tid: i64) -> &mut Script {
        let fields = [("tid", tid), ("target_cpu", i64::from(cpu))];
        self.is(cpu, time, "sched_waking", &fields)
    }

    /// Writes the trace. Returns its directory.
    fn write(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("critical-path-script-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        let mut classes: BTreeMap<&str, (u32, &Fields)> = BTreeMap::new();
        for (_, _, name, fields) in &self.events {
            let id = classes.len() as u32;
            classes.entry(name).or_insert((id, fields));
        }
        let mut metadata = HEAD.to_owned();
        for (name, (id, fields)) in &classes {
            let field = |(name, value): &(&str, Value)| match value {
                Value::Int(_) => format!("i64 _{name}; "),
                Value::Text(_) => format!("string _{name}; "),
            };
            let fields: String = fields.iter().map(field).collect();
            let class = format!(
                "event {{ id = {id}; name = \"{name}\"; stream_id = 0; fields := struct {{ {fields}}}; }};\n"
            );
            metadata.push_str(&class);
        }
        std::fs::write(directory.join("metadata"), metadata).expect("a file");
        let mut cpus: BTreeMap<u32, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
        for (cpu, time, name, fields) in &self.events {
            let mut bytes = classes[name.as_str()].0.to_le_bytes().to_vec();
            bytes.extend(time.to_le_bytes());
            for (_, value) in fields {
                match value {
                    Value::Int(value) => bytes.extend(value.to_le_bytes()),
                    Value::Text(text) => bytes.extend(text.bytes().chain([0])),
                }
            }
            cpus.entry(*cpu).or_default().push((*time, bytes));
        }
        for (cpu, records) in cpus {
            let is_lost = |record: &(u64, Vec<u8>)| {
                self.lost
                    .is_some_and(|lost| lost.0 == cpu && lost.1 <= record.0)
            };
            let (before, after) =
                records.split_at(records.partition_point(|record| !is_lost(record)));
            let packets = |lost, records: &[(u64, Vec<u8>)]| -> Vec<Vec<u8>> {
                let packets = records.chunks(PACKET);
                packets.map(|records| packet(cpu, lost, records)).collect()
            };
            let packets = [packets(0, before), packets(1, after)].concat();
            std::fs::write(directory.join(format!("cpu_{cpu}")), packets.concat()).expect("a file");
        }
        directory
    }

    /// The graph, which must be the same for all chunk sizes and numbers of threads.
    pub(crate) fn graph(&self, selection: &Selection) -> Graph {
        let directory = self.write();
        let graph = same_in_every_way(&directory, selection);
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
        graph
    }

    /// The path of a thread.
    pub(crate) fn path(&self, tid: i32, (begin, end): (i64, i64)) -> Vec<Part> {
        let graph = self.graph(&Selection::default());
        parts(&graph, tid, (begin, end))
    }
}

fn same_in_every_way(directory: &Path, selection: &Selection) -> Graph {
    let set = traces::open(&[directory.to_owned()]);
    let graph = |threads, chunk_bytes| {
        let options = Options {
            threads,
            chunk_bytes,
            until: selection.read_until().filter(|_| chunk_bytes < 500),
            ..Options::default()
        };
        traces::graph(&set, selection.clone(), options)
    };
    let json = |graph: &Graph| serde_json::to_string(graph).expect("a graph can be serialized");
    let whole = graph(1, 1 << 20);
    for (threads, bytes) in [(1, 1), (2, 1), (2, 300), (1, 700)] {
        assert_eq!(
            json(&graph(threads, bytes)),
            json(&whole),
            "{threads} threads, {bytes} bytes"
        );
    }
    whole
}

/// The path of a thread through a graph.
pub(crate) fn parts(graph: &Graph, tid: i32, (begin, end): (i64, i64)) -> Vec<Part> {
    let (actor, _): (ActorId, _) = graph.with_tid(tid).next().expect("the thread is there");
    let path = graph.path(actor, begin, end);
    assert!(path.tiles(begin, end), "{:?}", path.segments);
    let part = |segment: &tracebraid_graph::Segment| {
        let hop = path.hops[segment.hop as usize];
        let tid = graph.actor(hop.actor).map_or(0, |actor| actor.key.tid);
        let reason = graph.reason(&path, segment).name();
        (
            segment.begin,
            segment.end,
            tid,
            reason,
            graph.detail(&path, segment),
        )
    };
    path.segments.iter().map(part).collect()
}

fn packet(cpu: u32, lost: u64, records: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let times = [records.first(), records.last()].map(|record| record.map_or(0, |record| record.0));
    let size = 8 + 44 + records.iter().map(|record| record.1.len()).sum::<usize>();
    let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
    bytes.extend(0u32.to_le_bytes());
    for value in [times[0], times[1], size as u64 * 8, size as u64 * 8, lost] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(cpu.to_le_bytes());
    bytes.extend(records.iter().flat_map(|record| &record.1));
    bytes
}

impl Script {
    /// Events of a CPU are lost at that time.
    pub(crate) fn loses(&mut self, cpu: u32, time: u64) {
        self.lost = Some((cpu, time));
    }

    /// Removes the events of a name.
    pub(crate) fn without(&mut self, name: &str) {
        self.events.retain(|event| event.2 != name);
    }
}
