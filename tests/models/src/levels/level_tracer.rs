//! Encodes event records of one CTF trace, in packets of which some are lost.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::synthetic::Random;

/// A field's value.
#[derive(Clone, Debug)]
pub(super) enum LevelField {
    I32(i32),
    I64(i64),
    U64(u64),
    U8(u8),
    Text(String),
    /// Name of a thread as kernel tracers write it: 16 bytes.
    Comm(String),
}

impl LevelField {
    fn tsdl(&self, name: &str) -> String {
        let integer = |size: u32, signed: bool| {
            format!("integer {{ size = {size}; align = 8; signed = {signed}; }} _{name};")
        };
        match self {
            LevelField::I32(_) => integer(32, true),
            LevelField::I64(_) => integer(64, true),
            LevelField::U64(_) => integer(64, false),
            LevelField::U8(_) => integer(8, false),
            LevelField::Text(_) => format!("string _{name};"),
            LevelField::Comm(_) => format!(
                "integer {{ size = 8; align = 8; signed = true; encoding = UTF8; }} _{name}[16];"
            ),
        }
    }

    fn encode(&self, record: &mut Vec<u8>) {
        match self {
            LevelField::I32(value) => record.extend(value.to_le_bytes()),
            LevelField::I64(value) => record.extend(value.to_le_bytes()),
            LevelField::U64(value) => record.extend(value.to_le_bytes()),
            LevelField::U8(value) => record.push(*value),
            LevelField::Text(text) => {
                record.extend(text.as_bytes());
                record.push(0);
            }
            LevelField::Comm(text) => {
                let mut bytes = [0; 16];
                let length = text.len().min(15);
                bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
                record.extend(bytes);
            }
        }
    }
}

pub(super) type LevelFields = Vec<(&'static str, LevelField)>;

/// A trace, and its streams by the number of their CPU or thread.
pub(super) struct LevelTracer {
    environment: String,
    /// Name of the stream's number in packet contexts.
    number: &'static str,
    packet: usize,
    lost_packets: u64,
    /// Contexts of every record, as TSDL.
    contexts: &'static str,
    /// All streams are one, whose records have the number of theirs.
    is_one_stream: bool,
    /// Name, and fields as TSDL.
    classes: Vec<(String, String)>,
    streams: BTreeMap<i32, LevelStream>,
    random: Random,
}

#[derive(Default)]
struct LevelStream {
    bytes: Vec<u8>,
    body: Vec<u8>,
    serials: Vec<u64>,
    begin: u64,
    last: u64,
    sequence: u64,
    discarded: u64,
}

const SUPER_CONTEXTS: &str = "event.context := struct { \
    integer { size = 32; align = 8; signed = true; } _tid; \
    integer { size = 32; align = 8; signed = true; } _lwp; \
    integer { size = 64; align = 8; signed = false; } _ult; };";

const THREAD_CONTEXT: &str = "event.context := struct { \
    integer { size = 32; align = 8; signed = true; } _vtid; };";

const HEAD: usize = 4 + 8 * 6 + 4;

impl LevelTracer {
    pub(super) fn new(
        environment: String,
        number: &'static str,
        packet: usize,
        lost_packets: u64,
        seed: u64,
    ) -> Self {
        LevelTracer {
            environment,
            number,
            packet,
            lost_packets,
            contexts: "",
            is_one_stream: false,
            classes: Vec::new(),
            streams: BTreeMap::new(),
            random: Random::new(seed),
        }
    }

    /// A tracer of super-traces.
    pub(super) fn of_super(environment: String, packet: usize, lost_packets: u64) -> Self {
        LevelTracer {
            contexts: SUPER_CONTEXTS,
            ..LevelTracer::new(environment, "cpu_id", packet, lost_packets, 0)
        }
    }

    /// The same tracer with one stream, whose records have the ids of their threads.
    pub(super) fn with_one_stream(self) -> Self {
        LevelTracer {
            number: "cpu_id",
            contexts: THREAD_CONTEXT,
            is_one_stream: true,
            ..self
        }
    }

    /// Appends a record with the contexts of a super-trace: `tid`, `lwp` and `ult`.
    pub(super) fn write_super(
        &mut self,
        cpu: i32,
        time: u64,
        context: (i32, i32, u64),
        name: &str,
        fields: LevelFields,
    ) {
        let (tid, lwp, ult) = context;
        let contexts = [
            LevelField::I32(tid),
            LevelField::I32(lwp),
            LevelField::U64(ult),
        ];
        self.append(cpu, time, name, &contexts, fields, 0);
    }

    /// Opens a stream, even if it gets no records.
    pub(super) fn open(&mut self, stream: i32, time: u64) {
        let opened = self.streams.entry(stream).or_default();
        (opened.begin, opened.last) = (time, time);
    }

    /// Appends a record; its last field is its serial number. Returns the serial numbers of records
    /// that are lost.
    pub(super) fn write(
        &mut self,
        stream: i32,
        time: u64,
        name: &str,
        mut fields: LevelFields,
        serial: u64,
    ) -> Vec<u64> {
        fields.push(("serial", LevelField::U64(serial)));
        match self.is_one_stream {
            true => self.append(0, time, name, &[LevelField::I32(stream)], fields, serial),
            false => self.append(stream, time, name, &[], fields, serial),
        }
    }

    fn append(
        &mut self,
        stream: i32,
        time: u64,
        name: &str,
        contexts: &[LevelField],
        fields: LevelFields,
        serial: u64,
    ) -> Vec<u64> {
        let class = self.class(name, &fields);
        let mut record = Vec::new();
        record.extend((class as u16).to_le_bytes());
        record.extend(time.to_le_bytes());
        contexts.iter().for_each(|field| field.encode(&mut record));
        fields
            .iter()
            .for_each(|(_, field)| field.encode(&mut record));
        if !self.streams.contains_key(&stream) {
            self.open(stream, time);
        }
        let target = self.streams.get_mut(&stream).expect("an open stream");
        let mut lost = Vec::new();
        if HEAD + target.body.len() + record.len() > self.packet {
            lost = target.close(stream, self.packet, self.random.chance(self.lost_packets));
            target.begin = time;
        }
        target.last = time;
        target.body.extend(record);
        target.serials.push(serial);
        lost
    }

    fn class(&mut self, name: &str, fields: &LevelFields) -> usize {
        if let Some(at) = self.classes.iter().position(|(known, _)| known == name) {
            return at;
        }
        let tsdl = fields
            .iter()
            .map(|(name, field)| field.tsdl(name))
            .collect();
        self.classes.push((name.to_owned(), tsdl));
        self.classes.len() - 1
    }

    fn metadata(&self) -> String {
        let mut text = format!(
            "/* CTF 1.8 */\n\
             typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;\n\
             typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;\n\
             typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;\n\
             trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ uint32_t magic; }}; }};\n\
             env {{ {environment} }};\n\
             clock {{ name = \"monotonic\"; uuid = \"5d8a3f10-0000-4000-8000-000000000025\"; \
             freq = 1000000000; offset = 5000; }};\n\
             typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := clock_t;\n\
             stream {{ packet.context := struct {{ clock_t timestamp_begin; clock_t timestamp_end;\n\
             uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded;\n\
             uint32_t {number}; }};\n\
             event.header := struct {{ uint16_t id; clock_t timestamp; }}; {contexts} }};\n",
            environment = self.environment,
            number = self.number,
            contexts = self.contexts,
        );
        for (id, (name, fields)) in self.classes.iter().enumerate() {
            writeln!(
                text,
                "event {{ name = \"{name}\"; id = {id}; fields := struct {{ {fields} }}; }};"
            )
            .expect("text grows");
        }
        text
    }

    pub(super) fn save(mut self, directory: &Path, end: u64) {
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(directory.join("metadata"), self.metadata()).expect("metadata");
        for (number, stream) in &mut self.streams {
            // The last packet counts the losses before it, and ends with the recording.
            stream.last = stream.last.max(end);
            stream.close(*number, self.packet, false);
            std::fs::write(directory.join(format!("stream_{number}")), &stream.bytes)
                .expect("a stream");
        }
    }
}

impl LevelStream {
    /// Ends the packet. Returns the serial numbers of its records if it is lost.
    fn close(&mut self, number: i32, size: usize, is_lost: bool) -> Vec<u64> {
        let body = std::mem::take(&mut self.body);
        let serials = std::mem::take(&mut self.serials);
        self.sequence += 1;
        // Readers cannot see losses before a stream's first packet.
        if is_lost && !self.bytes.is_empty() {
            self.discarded += serials.len() as u64;
            return serials;
        }
        let content = HEAD + body.len();
        let size = size.max(content);
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
        self.bytes.extend((number as u32).to_le_bytes());
        self.bytes.extend(&body);
        self.bytes.resize(self.bytes.len() + size - content, 0);
        Vec::new()
    }
}
