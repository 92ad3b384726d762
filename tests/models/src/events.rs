//! Events in the plainest form: every field by name, without layouts and without a model of the
//! kernel.

use std::collections::HashMap;

use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::{Encoding, IntClass, Scope};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::walk::Visitor;

/// An item of a stream, with its position.
#[derive(Clone, Debug)]
pub struct Entry {
    pub time: i64,
    pub trace: u32,
    pub cpu: u32,
    pub what: ModelEvent,
}

#[derive(Clone, Debug)]
pub enum ModelEvent {
    /// A packet that ends at `end` begins; events may have been lost before it.
    Packet {
        lost: bool,
        end: Option<i64>,
    },
    Event(Record),
    /// The rest of the packet cannot be decoded.
    Cut,
}

/// An event with its fields.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub name: String,
    pub ints: HashMap<String, i64>,
    pub texts: HashMap<String, String>,
    pub lists: HashMap<String, Vec<i64>>,
    array: Option<String>,
}

impl Record {
    pub fn int(&self, name: &str) -> Option<i64> {
        self.ints.get(name).copied()
    }
    pub fn id(&self, name: &str) -> Option<i32> {
        self.int(name).map(|id| id as i32)
    }
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }
}

/// All events of each CPU in the order of its stream.
pub fn by_cpu(set: &TraceSet, wanted: impl Fn(&str) -> bool) -> Vec<Vec<Entry>> {
    let mut cpus: std::collections::BTreeMap<(u32, u32), Vec<Entry>> =
        std::collections::BTreeMap::new();
    for (trace_index, trace) in set.traces.iter().enumerate() {
        for stream in &trace.streams {
            let layout = &trace.layout.streams[stream.class];
            let cpu = stream
                .head
                .value(layout, "cpu_id")
                .expect("a kernel trace records the CPU") as u32;
            let trace_number = trace_index as u32;
            let entries = cpus.entry((trace_number, cpu)).or_default();
            assert!(entries.is_empty(), "one stream for each CPU");
            let clock = trace.clock(stream).expect("a clock");
            for (index, packet) in stream.packets.iter().enumerate() {
                let begin = clock.timestamp(packet.begin.expect("a beginning")).0;
                let end = packet.end.map(|end| clock.timestamp(end).0);
                let lost = stream.lost_before(index);
                entries.push(Entry {
                    time: begin,
                    trace: trace_number,
                    cpu,
                    what: ModelEvent::Packet { lost, end },
                });
                let mut reader = StreamReader::new(trace, stream, index..index + 1, 1 << 17);
                let mut held = begin;
                while let Some(time) = reader.peek() {
                    held = held.max(time.expect("a time").0);
                    let mut event = reader.event().expect("an event");
                    if wanted(&event.class.name) {
                        let record = record(&mut event);
                        entries.push(Entry {
                            time: held,
                            trace: trace_number,
                            cpu,
                            what: ModelEvent::Event(record),
                        });
                    }
                    reader.advance();
                }
                let damage = reader.take_damage();
                if damage.iter().any(|damage| damage.skipped.is_some()) {
                    entries.push(Entry {
                        time: held,
                        trace: trace_number,
                        cpu,
                        what: ModelEvent::Cut,
                    });
                }
            }
        }
    }
    cpus.into_values().collect()
}

/// Times of the first and the last event of all.
pub fn extent(set: &TraceSet) -> (i64, i64) {
    let mut range = (i64::MAX, i64::MIN);
    for trace in &set.traces {
        for stream in &trace.streams {
            let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
            while let Some(time) = reader.peek() {
                let time = time.expect("a time").0;
                range = (range.0.min(time), range.1.max(time));
                reader.advance();
            }
        }
    }
    range
}

/// Merges by time, then by CPU. The order within each CPU's stream is kept.
pub fn merged(cpus: Vec<Vec<Entry>>) -> Vec<Entry> {
    let mut queues: Vec<_> = cpus
        .into_iter()
        .map(|entries| entries.into_iter().peekable())
        .collect();
    let mut all = Vec::new();
    loop {
        let heads = queues
            .iter_mut()
            .enumerate()
            .filter_map(|(at, queue)| queue.peek().map(|entry| (entry.time, at)));
        let Some((_, at)) = heads.min() else {
            return all;
        };
        all.extend(queues[at].next());
    }
}

fn record(event: &mut Event<'_>) -> Record {
    let mut record = Record {
        name: event.class.name.to_string(),
        ..Record::default()
    };
    event
        .walk_body(&mut record, |_, _| {})
        .expect("a sound event");
    record
}

/// The contexts and the payload of an event record.
pub(crate) fn parts(event: &mut Event<'_>) -> (Record, Record) {
    let mut contexts = Record::default();
    let mut payload = Record {
        name: event.class.name.to_string(),
        ..Record::default()
    };
    event
        .walk_body(&mut payload, |visited, scope| {
            if scope == Scope::Payload {
                contexts = std::mem::take(visited);
            }
        })
        .expect("a sound event");
    payload.name = event.class.name.to_string();
    (contexts, payload)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Visitor for Record {
    fn integer(&mut self, node: &Node, _: &IntClass, raw: u64) {
        match &self.array {
            Some(array) => self
                .lists
                .entry(array.clone())
                .or_default()
                .push(raw as i64),
            None => {
                self.ints.insert(node.name.to_string(), raw as i64);
            }
        }
    }
    fn wide_integer(&mut self, _: &Node, _: &IntClass, _: &[u8]) {}
    fn boolean(&mut self, _: &Node, _: bool) {}
    fn bits(&mut self, _: &Node, _: &IntClass, _: u64) {}
    fn float(&mut self, _: &Node, _: u32, _: f64) {}
    fn string(&mut self, node: &Node, _: Encoding, bytes: &[u8]) {
        self.texts.insert(node.name.to_string(), text(bytes));
    }
    fn blob(&mut self, _: &Node, _: &[u8]) {}
    fn begin_struct(&mut self, _: &Node, _: usize) {}
    fn end_struct(&mut self, _: &Node) {}
    fn begin_array(&mut self, node: &Node, _: u64) {
        self.array = Some(node.name.to_string());
    }
    fn end_array(&mut self, _: &Node) {
        self.array = None;
    }
    fn begin_variant(&mut self, _: &Node, _: usize) {}
    fn end_variant(&mut self, _: &Node) {}
    fn optional(&mut self, _: &Node, _: bool) {}
}
