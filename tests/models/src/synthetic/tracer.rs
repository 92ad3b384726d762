//! A simulated tracer: encodes events as records, packets and streams, and loses some events.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tracebraid_ctf::trace::TraceSet;

use crate::naming::{Field, Maker, TEXT, Value};
use crate::synthetic::random::Random;
use crate::synthetic::shape::Shape;

/// An event class: name and fields (name, bits, elements of a list).
#[derive(PartialEq)]
struct Class {
    name: String,
    fields: Vec<(&'static str, u32, usize)>,
}

/// Field in which a trace records the CPU of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPlace {
    /// A stream for each CPU: the CPU is in its packet contexts.
    Packets,
    /// One stream for all CPUs: the CPU is in a context of all events.
    Context(&'static str),
    /// One stream for all CPUs: the CPU is in a field before those of the payload.
    Payload(&'static str),
}

/// Writes events like a tracer, and loses some events.
pub(super) struct Tracer {
    classes: Vec<Class>,
    pub(super) shape: Shape,
    pub(super) place: CpuPlace,
    streams: Vec<Stream>,
    /// Separate generator for losses.
    random: Random,
}

#[derive(Default)]
struct Stream {
    cpu: u64,
    bytes: Vec<u8>,
    body: Vec<u8>,
    begin: u64,
    last: u64,
    sequence: u64,
    discarded: u64,
}

const HEAD: usize = 4 + 8 * 6 + 4;

impl Tracer {
    pub(super) fn new(shape: Shape, seed: u64) -> Self {
        let per_cpu = if shape.two_streams { 2 } else { 1 };
        let streams = (0..shape.cpus * per_cpu)
            .map(|at| Stream {
                cpu: at % shape.cpus,
                begin: 1000,
                last: 1000,
                ..Stream::default()
            })
            .collect();
        Tracer {
            classes: Vec::new(),
            shape,
            place: CpuPlace::Packets,
            streams,
            random: Random::new(seed + 1_000_003),
        }
    }

    fn class(&mut self, name: String, fields: &[Field<'_>]) -> usize {
        let field = |(name, bits, value): &Field<'_>| match value {
            Value::List(list) => (*name, *bits, list.len()),
            _ => (*name, *bits, 0),
        };
        let class = Class {
            name,
            fields: fields.iter().map(field).collect(),
        };
        match self.classes.iter().position(|known| *known == class) {
            Some(at) => at,
            None => {
                self.classes.push(class);
                self.classes.len() - 1
            }
        }
    }

    /// `fields` are LTTng's.
    pub(super) fn write(
        &mut self,
        cpu: u64,
        time: u64,
        maker: Maker,
        name: &str,
        fields: Vec<Field<'_>>,
    ) {
        let (name, mut fields) = self.shape.naming.event(maker, name, fields);
        if let CpuPlace::Payload(field) = self.place {
            fields.insert(0, (field, 32, Value::Int(cpu as i64)));
        }
        let is_call = name.contains("sys");
        let class = self.class(name, &fields);
        if self.random.chance(self.shape.silent_losses) {
            return;
        }
        let mut record = Vec::new();
        record.extend((class as u16).to_le_bytes());
        record.extend(time.to_le_bytes());
        if let CpuPlace::Context(_) = self.place {
            record.extend((cpu as u32).to_le_bytes());
        }
        if self.shape.tid_context {
            record.extend(maker.tid.to_le_bytes());
        }
        if self.shape.pid_context {
            record.extend(maker.pid.to_le_bytes());
            // `vpid` and `vtid`: each thread is the first of its namespace.
            record.extend([1i32.to_le_bytes(), 1i32.to_le_bytes()].concat());
        }
        for (_, bits, value) in &fields {
            let bytes = *bits as usize / 8;
            match value {
                Value::Int(value) => record.extend(&value.to_le_bytes()[..bytes]),
                Value::List(list) => {
                    list.iter()
                        .for_each(|value| record.extend(&value.to_le_bytes()[..bytes]));
                }
                Value::Text(text) => {
                    let mut bytes = [0u8; 16];
                    bytes[..text.len().min(15)]
                        .copy_from_slice(&text.as_bytes()[..text.len().min(15)]);
                    record.extend(bytes);
                }
            }
        }
        let calls = self.shape.two_streams && is_call;
        let own = if self.place == CpuPlace::Packets {
            cpu
        } else {
            0
        };
        let at = own + if calls { self.shape.cpus } else { 0 };
        let (packet, lost) = (
            self.shape.packet,
            (self.shape.lost_packets, self.shape.counted_losses),
        );
        let stream = &mut self.streams[at as usize];
        if HEAD + stream.body.len() + record.len() > packet {
            stream.close(packet, &mut self.random, lost);
            stream.begin = time;
        }
        stream.last = time;
        stream.body.extend(record);
    }

    fn metadata(&self) -> String {
        let mut text = String::from(
            "/* CTF 1.8 */\n\
             typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n\
             typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n\
             typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n\
             trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; }; };\n\
             env { domain = \"kernel\"; hostname = \"nowhere\"; };\n\
             clock { name = \"monotonic\"; freq = 1000000000; offset = 5000; };\n\
             typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := clock_t;\n\
             stream { packet.context := struct { clock_t timestamp_begin; clock_t timestamp_end;\n\
             uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded;\n\
             uint32_t CPU; };\n\
             event.header := struct { uint16_t id; clock_t timestamp; };\n",
        );
        // Without a role where events record the CPU.
        text = match self.place {
            CpuPlace::Packets => text.replace("CPU", "cpu_id"),
            _ => text.replace("CPU", "number"),
        };
        let own = match self.place {
            CpuPlace::Context(name) => vec![name],
            _ => Vec::new(),
        };
        let contexts = [
            (!own.is_empty(), &own[..]),
            (self.shape.tid_context, &["_tid"][..]),
            (self.shape.pid_context, &["_pid", "_vtid", "_vpid"]),
        ];
        let contexts = contexts.iter().filter(|(has, _)| *has);
        let contexts: Vec<_> = contexts.flat_map(|(_, names)| *names).collect();
        if !contexts.is_empty() {
            text += "event.context := struct {\n";
            for name in contexts {
                text += &format!("integer {{ size = 32; align = 8; signed = true; }} {name};\n");
            }
            text += "};\n";
        }
        text += "};\n";
        for (id, class) in self.classes.iter().enumerate() {
            text += &format!(
                "event {{ name = \"{}\"; id = {id}; fields := struct {{\n",
                class.name
            );
            for (name, bits, length) in &class.fields {
                let list = if *length > 0 {
                    format!("[{length}]")
                } else {
                    String::new()
                };
                text += &match *bits {
                    TEXT => format!(
                        "integer {{ size = 8; align = 8; signed = true; encoding = UTF8; }} _{name}[16];\n"
                    ),
                    bits => {
                        format!(
                            "integer {{ size = {bits}; align = 8; signed = true; }} _{name}{list};\n"
                        )
                    }
                };
            }
            text += "}; };\n";
        }
        text
    }

    pub(super) fn open(self) -> (PathBuf, TraceSet) {
        static TRACES: AtomicU64 = AtomicU64::new(0);
        let number = TRACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("synthetic-{}-{number}", std::process::id());
        let directory = tracebraid_testkit::recorded::temporary().join(name);
        self.save(&directory);
        let set = TraceSet::open(&[&directory]).expect("the trace can be opened");
        (directory, set)
    }

    fn save(mut self, directory: &Path) {
        let lost = (self.shape.lost_packets, self.shape.counted_losses);
        let packet = self.shape.packet;
        // The classes exist even if all events are lost.
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(directory.join("metadata"), self.metadata())
            .expect("the metadata can be written");
        let is_shared = self.place != CpuPlace::Packets;
        for (at, stream) in self.streams.iter_mut().enumerate() {
            if is_shared && stream.body.is_empty() && stream.bytes.is_empty() {
                continue;
            }
            stream.close(packet, &mut self.random, lost);
            std::fs::write(directory.join(format!("channel_{at}")), &stream.bytes)
                .expect("a stream can be written");
        }
    }
}

impl Stream {
    fn close(&mut self, size: usize, random: &mut Random, (lost_packets, counted): (u64, u64)) {
        let body = std::mem::take(&mut self.body);
        let content = HEAD + body.len();
        let size = size.max(content);
        self.sequence += 1;
        if random.chance(lost_packets) && !self.bytes.is_empty() {
            return;
        }
        if random.chance(counted) {
            // The counted events were lost before this packet: they would have been its first
            // events.
            self.discarded += 1 + random.below(5);
        }
        self.bytes.extend(0xC1FC_1FC1u32.to_le_bytes());
        for word in [
            self.begin,
            self.last,
            content as u64 * 8,
            size as u64 * 8,
            self.sequence,
            self.discarded,
        ] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend((self.cpu as u32).to_le_bytes());
        self.bytes.extend(&body);
        self.bytes.resize(self.bytes.len() + size - content, 0);
        self.begin = self.last;
    }
}

/// CPU, time, thread, name and fields (LTTng's) of an event.
pub type Scripted<'a> = (u64, u64, Maker, &'a str, Vec<Field<'a>>);

/// Writes a trace with these events and opens it.
pub fn scripted(shape: Shape, events: Vec<Scripted<'_>>) -> (PathBuf, TraceSet) {
    let mut tracer = Tracer::new(shape, 0);
    for (cpu, time, maker, name, fields) in events {
        tracer.write(cpu, time, maker, name, fields);
    }
    tracer.open()
}
