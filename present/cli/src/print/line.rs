//! Lines of event records: time, trace, name and all scopes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use tracebraid_ctf::bits::DecodeError;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::layout::tree::Part;
use tracebraid_ctf::layout::{StreamLayout, TraceLayout};
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::schema::{EnvValue, EventClass};
use tracebraid_ctf::trace::Trace;
use tracebraid_language::Cpus;

use super::buffer::{Buffer, Padded};
use super::compiler::Compiler;
use super::hidden::Hidden;
use super::program::Program;
use super::stamp::{JsonStamp, Stamp, StampOptions};
use super::style::{Palette, Style};
use super::visitor::Shower;

/// Which names are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// Fields of payloads.
    pub(crate) payload: bool,
    /// Fields of contexts.
    pub(crate) context: bool,
    /// Scopes.
    pub(crate) scope: bool,
    /// Time, trace and event.
    pub(crate) header: bool,
}

/// Which properties are shown between the time and the name of the event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    pub(crate) trace: bool,
    pub(crate) hostname: bool,
    pub(crate) domain: bool,
    pub(crate) procname: bool,
    pub(crate) vpid: bool,
    pub(crate) log_level: bool,
    pub(crate) emf: bool,
}

/// Appearance of lines.
#[derive(Clone, Debug)]
pub(crate) struct LineOptions {
    pub(crate) json: bool,
    pub(crate) names: Names,
    pub(crate) properties: Properties,
    pub(crate) stamp: StampOptions,
    pub(crate) palette: Palette,
}

/// The parts of a line that are the same for all event records of a class in a stream.
#[derive(Debug)]
struct ClassLine {
    /// Text between the time and the packet context.
    head: Vec<u8>,
    /// `head` with the context of packet number `packet`.
    head_and_context: Padded,
    packet: u64,
    /// Text from the packet context to the end of the line; shared by streams of a class.
    rest: Rc<Program>,
}

impl ClassLine {
    /// Replaces the packet context.
    #[cold]
    fn join(&mut self, context: &[u8]) {
        let same = self
            .head_and_context
            .bytes()
            .strip_prefix(self.head.as_slice())
            == Some(context);
        if !same {
            self.head_and_context
                .set(&[self.head.as_slice(), context].concat());
        }
    }
}

/// The texts of a stream.
#[derive(Debug)]
struct StreamText {
    packet: u64,
    /// Text of the context of packet number `packet`.
    context: Vec<u8>,
    style: Rc<Style>,
    classes: Vec<Option<Box<ClassLine>>>,
}

/// Formats event records as lines.
#[derive(Debug)]
pub(crate) struct Lines {
    options: LineOptions,
    stamp: Stamp,
    json_stamp: JsonStamp,
    /// Styles of traces, by their layouts.
    styles: Vec<(Arc<TraceLayout>, Rc<Style>)>,
    /// By trace (index in `styles`), stream class and event class.
    programs: HashMap<(usize, usize, usize), Rc<Program>>,
    /// Indexed by the reader's rank.
    lanes: Vec<Option<StreamText>>,
    /// Names of traces as in babeltrace2, by the first directory of the trace.
    trace_names: HashMap<PathBuf, String>,
}

impl Lines {
    /// `trace_names` contains the name for each directory of a trace.
    pub(crate) fn new(options: LineOptions, trace_names: HashMap<PathBuf, String>) -> Self {
        let stamp = Stamp::new(options.stamp.clone());
        Lines {
            options,
            stamp,
            json_stamp: JsonStamp::new(),
            styles: Vec::new(),
            programs: HashMap::new(),
            lanes: Vec::new(),
            trace_names,
        }
    }

    /// Puts the line of the reader's next event record.
    ///
    /// # Errors
    /// When the event record cannot be decoded; the buffer is then left as it was.
    pub(crate) fn put(
        &mut self,
        buffer: &mut Buffer,
        time: Timestamp,
        reader: &mut StreamReader<'_>,
    ) -> Result<(), DecodeError> {
        let rank = reader.rank();
        if self.lanes.get(rank).is_none_or(|lane| {
            lane.as_ref()
                .is_none_or(|lane| lane.packet != reader.packets_begun())
        }) {
            self.begin_packet(rank, reader);
        }
        let (trace, reader_class) = (reader.trace(), reader.stream().class);
        let Some(event) = reader.event() else {
            return Ok(());
        };
        let Some(Some(lane)) = self.lanes.get_mut(rank) else {
            return Ok(());
        };
        let Some(slot) = lane.classes.get_mut(event.class_index) else {
            return Ok(());
        };
        let line = match slot {
            Some(line) => line,
            None => {
                let maker = LineMaker {
                    options: &self.options,
                    style: &lane.style,
                    stamp_end: self.stamp.end(),
                    trace,
                    names: &self.trace_names,
                };
                let place = self
                    .styles
                    .iter()
                    .position(|(layout, _)| Arc::ptr_eq(layout, &trace.layout));
                let key = (place.unwrap_or(usize::MAX), reader_class, event.class_index);
                let program = self.programs.entry(key);
                let program =
                    program.or_insert_with(|| Rc::new(maker.rest(event.stream, event.class_index)));
                slot.insert(Box::new(maker.class(
                    event.stream,
                    event.class_index,
                    program.clone(),
                )))
            }
        };
        let start = buffer.len();
        if self.options.json {
            self.json_stamp
                .put(buffer, event.stream.clock.map(|_| time.0));
        } else if event.stream.clock.is_some() {
            self.stamp.put(buffer, time.0, event.clock);
        }
        if line.packet != lane.packet {
            line.packet = lane.packet;
            line.join(&lane.context);
        }
        buffer.put_literal(&line.head_and_context);
        if self.options.json
            && let Some(cpu) =
                lane.style
                    .cpus
                    .of_event((reader_class, event.class_index), event.body, event.slots)
        {
            buffer.put(format!(",\"cpu\":{cpu}").as_bytes());
        }
        let mut cursor = event.body;
        let result = line.rest.run(&mut cursor, event.slots, buffer);
        if result.is_err() {
            buffer.truncate(start);
        }
        result
    }

    /// The style of a trace's fields.
    fn style(&mut self, trace: &Trace) -> Rc<Style> {
        let known = self
            .styles
            .iter()
            .find(|(layout, _)| Arc::ptr_eq(layout, &trace.layout));
        if let Some((_, style)) = known {
            return style.clone();
        }
        let hidden = Hidden::of(&trace.layout);
        let style = Rc::new(Style {
            json: self.options.json,
            palette: self.options.palette,
            hidden,
            cpus: Cpus::new(trace),
        });
        self.styles.push((trace.layout.clone(), style.clone()));
        style
    }

    /// Formats the context of the reader's current packet.
    fn begin_packet(&mut self, rank: usize, reader: &mut StreamReader<'_>) {
        if self.lanes.len() <= rank {
            self.lanes.resize_with(rank + 1, || None);
        }
        let trace = reader.trace();
        let Some(layout) = trace.layout.streams.get(reader.stream().class) else {
            return;
        };
        let style = self.style(trace);
        let cpu = style
            .cpus
            .of_packet(reader.stream().class, reader.packet_head());
        let mut buffer = Buffer::new(256);
        let root = layout
            .packet_context
            .root()
            .filter(|root| !style.hidden.hides(root));
        if self.options.json {
            if let Some(cpu) = cpu {
                buffer.put(format!(",\"cpu\":{cpu}").as_bytes());
            }
            if root.is_some() {
                buffer.put(b",\"packet_context\":");
            }
        } else if self.options.names.scope && root.is_some() {
            put_key(&mut buffer, self.options.palette, "stream.packet.context");
        }
        if root.is_some() {
            let names = self.options.names.context;
            // A packet whose context cannot be decoded has no event records.
            let _ = reader.walk_packet_context(&mut Shower::new(&mut buffer, &style, names));
        }
        let context = buffer.bytes().to_vec();
        let packet = reader.packets_begun();
        match self.lanes.get_mut(rank) {
            Some(Some(lane)) => {
                lane.packet = packet;
                lane.context = context;
            }
            Some(lane) => {
                let classes = layout.events.iter().map(|_| None).collect();
                *lane = Some(StreamText {
                    packet,
                    context,
                    style,
                    classes,
                });
            }
            None => {}
        }
    }
}

fn put_key(buffer: &mut Buffer, palette: Palette, name: &str) {
    buffer.put(palette.name.as_bytes());
    buffer.put(name.as_bytes());
    buffer.put(palette.reset.as_bytes());
    buffer.put(b" = ");
}

/// Makes the texts and programs of event classes.
struct LineMaker<'a> {
    options: &'a LineOptions,
    style: &'a Rc<Style>,
    /// Text that must follow the time.
    stamp_end: &'a [u8],
    trace: &'a Trace,
    names: &'a HashMap<PathBuf, String>,
}

impl LineMaker<'_> {
    fn class(&self, stream: &StreamLayout, index: usize, rest: Rc<Program>) -> ClassLine {
        let mut head = Buffer::new(256);
        if !self.options.json && stream.clock.is_some() {
            head.put(self.stamp_end);
        }
        if self.options.json {
            self.json_head(&mut head, stream, index)
        } else {
            self.head(&mut head, stream, index)
        }
        let head_and_context = Padded::default();
        // Packets are counted from 1, so the context is filled in later.
        ClassLine {
            head: head.bytes().to_vec(),
            head_and_context,
            packet: 0,
            rest,
        }
    }

    fn trace_name(&self) -> Option<&str> {
        self.names
            .get(self.trace.paths.first()?)
            .map(String::as_str)
    }

    /// Properties and event name, separated as in babeltrace2.
    fn head(&self, head: &mut Buffer, stream: &StreamLayout, index: usize) {
        let palette = self.options.palette;
        let named = self.options.names.header;
        // After a named time, each part begins with a comma.
        let lead = if named && stream.clock.is_some() {
            ", "
        } else {
            ""
        };
        if let Some(name) = self.trace_name().filter(|_| self.options.properties.trace) {
            head.put(lead.as_bytes());
            if named {
                put_key(head, palette, "trace");
            }
            head.put(name.as_bytes());
            if named {
                head.put(b", ");
            }
        }
        let class = self.event_class(stream, index);
        let mut shown = 0;
        for (key, value) in self.properties(class) {
            let Some(value) = value else { continue };
            head.put(lead.as_bytes());
            if named {
                put_key(head, palette, key);
            } else if shown > 0 && key != "trace:hostname" {
                head.put(b":");
            }
            head.put(value.as_bytes());
            shown += 1;
        }
        if shown > 0 && !named {
            head.put(b" ");
        }
        head.put(lead.as_bytes());
        if named {
            put_key(head, palette, "name");
        }
        let name = class
            .map(|class| class.name.as_str())
            .filter(|name| !name.is_empty());
        head.put(
            if name.is_some() {
                palette.event
            } else {
                palette.unknown
            }
            .as_bytes(),
        );
        head.put(name.unwrap_or("<unknown>").as_bytes());
        head.put(palette.reset.as_bytes());
        head.put(if named { b", " } else { b": " });
    }

    fn event_class(&self, stream: &StreamLayout, index: usize) -> Option<&EventClass> {
        let class = self.trace.layout.class.stream_class(stream.id)?;
        class.events.get(index)
    }

    /// Keys and values of the properties, in their order in the line; `None` for properties that
    /// are not wanted or not in the trace.
    fn properties(&self, class: Option<&EventClass>) -> [(&'static str, Option<String>); 6] {
        let wanted = self.options.properties;
        let trace = &self.trace.layout.class;
        let string = |name| trace.env_str(name).map(str::to_owned);
        let vpid = match trace.env("vpid") {
            Some(EnvValue::Int(vpid)) => Some(format!("({vpid})")),
            _ => None,
        };
        let level = class.and_then(|class| class.log_level).and_then(|level| {
            LOG_LEVELS
                .get(usize::try_from(level).ok()?)
                .map(|name| format!("{name} ({level})"))
        });
        let emf = class.and_then(|class| class.model_emf_uri.as_deref().map(str::to_owned));
        let property =
            |key, is_wanted: bool, value: Option<String>| (key, value.filter(|_| is_wanted));
        [
            property("trace:hostname", wanted.hostname, string("hostname")),
            property("trace:domain", wanted.domain, string("domain")),
            property("trace:procname", wanted.procname, string("procname")),
            property("trace:vpid", wanted.vpid, vpid),
            property("loglevel", wanted.log_level, level),
            property("model.emf.uri", wanted.emf, emf),
        ]
    }

    fn json_head(&self, head: &mut Buffer, stream: &StreamLayout, index: usize) {
        let mut member = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                head.put_byte(b',');
                self.style.put_name(head, key);
                self.style.put_quoted(head, value.as_bytes());
            }
        };
        member("trace", self.trace_name());
        member("hostname", self.trace.layout.class.env_str("hostname"));
        let name = stream.events.get(index).map(|event| &*event.name);
        member("name", Some(name.unwrap_or_default()));
    }

    /// The program for all scopes of the event record.
    fn rest(&self, stream: &StreamLayout, index: usize) -> Program {
        let names = self.options.names;
        let mut compiler = Compiler::new(self.style.clone());
        let event = stream.events.get(index);
        let scopes: [(Option<Part<'_>>, &str, &str, bool); 3] = [
            (
                stream.common_context.root(),
                "stream.event.context",
                "common_context",
                names.context,
            ),
            (
                event.and_then(|event| event.specific_context.root()),
                "event.context",
                "specific_context",
                names.context,
            ),
            (
                event.and_then(|event| event.payload.root()),
                "event.fields",
                "payload",
                names.payload,
            ),
        ];
        let mut first = stream
            .packet_context
            .root()
            .is_none_or(|root| self.style.hidden.hides(&root));
        for (root, text_key, json_key, names) in scopes {
            let Some(root) = root else { continue };
            if self.style.hidden.hides(&root) {
                compiler.hidden(root);
                continue;
            }
            if self.options.json {
                compiler.text(format!(",\"{json_key}\":").as_bytes());
            } else {
                if !std::mem::take(&mut first) {
                    compiler.text(b", ");
                }
                if self.options.names.scope {
                    let mut key = Buffer::new(64);
                    put_key(&mut key, self.options.palette, text_key);
                    compiler.text(key.bytes());
                }
            }
            compiler.field(root, names);
        }
        compiler.text(if self.options.json { b"}\n" } else { b"\n" });
        compiler.finish()
    }
}

/// LTTng's names of log levels, indexed by their numbers.
const LOG_LEVELS: [&str; 15] = [
    "TRACE_EMERG",
    "TRACE_ALERT",
    "TRACE_CRIT",
    "TRACE_ERR",
    "TRACE_WARNING",
    "TRACE_NOTICE",
    "TRACE_INFO",
    "TRACE_DEBUG_SYSTEM",
    "TRACE_DEBUG_PROGRAM",
    "TRACE_DEBUG_PROCESS",
    "TRACE_DEBUG_MODULE",
    "TRACE_DEBUG_UNIT",
    "TRACE_DEBUG_FUNCTION",
    "TRACE_DEBUG_LINE",
    "TRACE_DEBUG",
];
