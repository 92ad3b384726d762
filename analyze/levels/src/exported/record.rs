//! The event records of a super-trace, with their fields by name, in the order of time.

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::schema::{Encoding, IntClass, Name, Scope};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::walk::Visitor;

/// Id of an unknown user-level thread in the context `ult`.
pub const UNKNOWN_THREAD: u64 = u64::MAX;

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer; 64-bit unsigned ones keep their bits.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

/// An event record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Nanoseconds from the origin of the trace's clock.
    pub time: i64,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// Name of the event class.
    pub name: Name,
    /// The thread that analyses see: a user-level thread, while one runs.
    pub tid: i32,
    /// The kernel thread, -1 if unknown.
    pub lwp: i32,
    /// The user-level thread as its runtime numbers it: 0 for none, [`UNKNOWN_THREAD`].
    pub ult: u64,
    /// Fields of the payload; elements of arrays have the name of the array.
    pub fields: Vec<(Name, Value)>,
}

impl Record {
    /// An integer field.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.fields.iter().find_map(|(of, value)| match value {
            Value::Int(value) if **of == *name => Some(*value),
            _ => None,
        })
    }

    /// A field that is the id of a thread.
    pub fn id(&self, name: &str) -> Option<i32> {
        self.int(name).map(|id| id as i32)
    }

    /// A text field.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|(of, value)| match value {
            Value::Text(text) if **of == *name => Some(text.as_str()),
            _ => None,
        })
    }

    /// 0 for records of the kernel and of programs, above for those that the merge derived.
    pub fn level(&self) -> i64 {
        self.int("level").unwrap_or(0)
    }
}

/// Gives all event records in the order of time. Returns the damage that was found.
///
/// # Errors
/// Those of `give`.
pub fn each<E>(
    set: &TraceSet,
    mut give: impl FnMut(&Record) -> Result<(), E>,
) -> Result<Vec<Damage>, E> {
    let mut reader = MergedReader::new(set);
    let mut record = Record::default();
    while let Some((time, stream)) = reader.next() {
        record.time = time.0;
        let layout = stream.trace().layout.streams.get(stream.stream().class);
        let cpu = layout.and_then(|layout| stream.packet_head().value(layout, "cpu_id"));
        record.cpu = cpu.map(|cpu| cpu as u32);
        let Some(mut event) = stream.event() else {
            continue;
        };
        decode(&mut event, &mut record);
        give(&record)?;
    }
    Ok(reader.take_damage())
}

fn decode(event: &mut Event<'_>, record: &mut Record) {
    record.name = event.class.name.clone();
    record.fields.clear();
    (record.tid, record.lwp, record.ult) = (-1, -1, 0);
    let mut decoder = Decoder {
        record,
        scope: Scope::CommonContext,
        array: None,
    };
    // A damaged record keeps the fields before the damage.
    let _ = event.walk_body(&mut decoder, |decoder, scope| decoder.scope = scope);
}

struct Decoder<'r> {
    record: &'r mut Record,
    scope: Scope,
    /// Name of the array whose elements are being read.
    array: Option<Name>,
}

impl Decoder<'_> {
    fn add(&mut self, node: &Node, value: Value) {
        let name = match &self.array {
            Some(array) => array.clone(),
            None => node.name.clone(),
        };
        match (self.scope, &*name, &value) {
            (Scope::Payload, _, _) => self.record.fields.push((name, value)),
            (_, "tid", Value::Int(id)) => self.record.tid = *id as i32,
            (_, "lwp", Value::Int(id)) => self.record.lwp = *id as i32,
            (_, "ult", Value::Int(id)) => self.record.ult = *id as u64,
            _ => {}
        }
    }
}

impl Visitor for Decoder<'_> {
    fn integer(&mut self, node: &Node, _class: &IntClass, raw: u64) {
        self.add(node, Value::Int(raw as i64));
    }

    fn boolean(&mut self, node: &Node, value: bool) {
        self.add(node, Value::Int(value.into()));
    }

    fn float(&mut self, node: &Node, _length: u32, value: f64) {
        self.add(node, Value::Float(value));
    }

    fn string(&mut self, node: &Node, _encoding: Encoding, bytes: &[u8]) {
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.add(node, Value::Text(text));
    }

    fn begin_array(&mut self, node: &Node, _length: u64) {
        if self.array.is_none() {
            self.array = Some(node.name.clone());
        }
    }

    fn end_array(&mut self, node: &Node) {
        if self.array.as_ref() == Some(&node.name) {
            self.array = None;
        }
    }
}
