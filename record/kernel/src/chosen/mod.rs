//! Events that are chosen by name: tracepoints of the kernel, USDT probes, functions of programs
//! and of the kernel.
//!
//! Their event classes are created when the recording begins ([`ChosenEvents::resolve`]). No BPF
//! code is generated: one program for each type of probe (`bpf/chosen.h`) copies the fields that a
//! map element describes, which the cookie of the attachment selects. Tracepoints that the recorder
//! knows have dedicated programs and layouts, so that all reports understand them; for others
//! `import/tracepoint` parses the kernel's format files.
//!
//! Code is decoded (`instructions`) to reject probes inside instructions (`text`), and to record
//! returns by plain probes at the instructions that end a function (`returns`).

mod argument;
mod executable;
mod function;
mod go;
mod gpu;
mod instructions;
mod names;
mod returns;
mod spec;
mod text;
mod tracefs;
mod tracepoints;
mod usdt;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tracebraid_ctf::schema::build::{Align, Fields, event};
use tracebraid_ctf::schema::{ByteOrder, Scope, TraceClass};
use tracebraid_tracepoint::{FieldContent, Format, OffsetBase};

use crate::shared::{self, CHOSEN_SIZE, MOST_CHOSEN, MOST_CHOSEN_ARGUMENTS, MOST_EXIT_PARTS};
use argument::{Architecture, Argument, Source, ValueClass};
use executable::Executable;
pub(crate) use names::did_you_mean;
use names::matches;
pub(crate) use names::some_of;
pub use spec::EventSpec;
use text::Text;

/// Events that were found by their names.
#[derive(Clone, Debug, Default)]
pub struct ChosenEvents {
    classes: Vec<ChosenClass>,
    attachments: Vec<Attachment>,
    /// Tracepoints with a dedicated program.
    own: BTreeSet<String>,
    /// Messages about events that are recorded incompletely.
    notes: Vec<String>,
}

/// Maximum number of points of attachment: each takes a descriptor.
const MOST_POINTS: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
struct ChosenClass {
    name: String,
    layout: Layout,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Layout {
    Tracepoint(Format),
    Values(Vec<ValueField>),
}

/// A field with the value of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ValueField {
    name: String,
    class: ValueClass,
    /// Labels by value; empty unless the field is an enumeration.
    labels: Vec<String>,
}

/// A point where a program of `bpf/chosen.h` is attached.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) point: Point,
    /// Name in messages.
    pub(crate) name: String,
    /// A pattern matched it, so it is skipped if the kernel rejects it.
    pub(crate) is_optional: bool,
    /// Encoded `struct chosen`.
    pub(crate) description: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(crate) enum Point {
    /// By the kernel's id.
    Tracepoint(u32),
    /// In a program, by the offset in its file.
    Program {
        path: PathBuf,
        offset: u64,
        /// The kernel replaces the return address.
        at_return: bool,
        /// Offset of the counter of a USDT probe.
        semaphore: Option<u64>,
    },
    /// In the kernel.
    Function { name: String, at_return: bool },
}

impl Point {
    fn is_tracepoint(&self, wanted: u32) -> bool {
        matches!(self, Point::Tracepoint(id) if *id == wanted)
    }
}

impl ChosenEvents {
    /// Finds the events.
    ///
    /// # Errors
    /// A message about the first event that does not exist, with similar names.
    pub fn resolve(specs: &[EventSpec]) -> Result<ChosenEvents, String> {
        let mut events = ChosenEvents::default();
        for spec in specs {
            match spec {
                EventSpec::Tracepoint { category, name } => events.tracepoints(category, name)?,
                EventSpec::Usdt {
                    path,
                    provider,
                    name,
                } => events.usdt(path, provider.as_deref(), name)?,
                EventSpec::Function {
                    path: Some(path),
                    function,
                    offset,
                    at_return,
                } => events.function(path, function, *offset, *at_return)?,
                EventSpec::Function {
                    path: None,
                    function,
                    at_return,
                    ..
                } => events.kernel_function(function, *at_return)?,
                EventSpec::Go { path } => events.go(path)?,
            }
            if events.attachments.len() > MOST_POINTS || events.classes.len() > MOST_CHOSEN {
                return Err(format!(
                    "the patterns choose more than {MOST_POINTS} points in programs and the kernel: use narrower patterns"
                ));
            }
        }
        Ok(events)
    }

    /// True if nothing is chosen.
    pub fn is_empty(&self) -> bool {
        self.attachments.is_empty() && self.own.is_empty()
    }

    /// Messages about events that are recorded incompletely.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// True if the tracepoint, which has a dedicated program, is chosen.
    pub(crate) fn has_own(&self, tracepoint: &str) -> bool {
        self.own.contains(tracepoint)
    }

    /// True if a tracepoint with a dedicated program and this prefix is chosen.
    pub(crate) fn has_own_like(&self, start: &str) -> bool {
        self.own
            .iter()
            .any(|tracepoint| tracepoint.starts_with(start))
    }

    /// Adds the event classes to the schema.
    pub(crate) fn add_to(&self, class: &mut TraceClass) {
        let first = shared::FIRST_CHOSEN as u64;
        let classes = (first..).zip(&self.classes);
        let events = classes.map(|(id, class)| event(id, &class.name, class.fields()));
        if let Some(stream) = class.streams.first_mut() {
            stream.events.extend(events);
        }
    }

    /// Writes the payload of a record of a chosen event; `None` if `kind` belongs to another event,
    /// or the record is too short or malformed.
    pub(crate) fn encode(&self, kind: u16, record: &[u8], to: &mut Vec<u8>) -> Option<u16> {
        let place = usize::from(kind).checked_sub(shared::FIRST_CHOSEN)?;
        self.classes.get(place)?.encode(record, to)?;
        Some(kind)
    }

    /// The kind of a class, which is added if it is new.
    fn kind(&mut self, class: ChosenClass) -> u16 {
        let place = self.classes.iter().position(|known| *known == class);
        let place = place.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        });
        (shared::FIRST_CHOSEN + place.min(MOST_CHOSEN)) as u16
    }

    fn usdt(&mut self, path: &Path, provider: Option<&str>, name: &str) -> Result<(), String> {
        let program = Executable::read(path)?;
        let shown = program.path.display();
        if program.probes.is_empty() {
            return Err(format!(
                "{shown} has no USDT probes (no section .note.stapsdt)"
            ));
        }
        let is_chosen = |probe: &&usdt::Probe| {
            provider.is_none_or(|provider| matches(provider, &probe.provider))
                && matches(name, &probe.name)
        };
        let probes: Vec<&usdt::Probe> = program.probes.iter().filter(is_chosen).collect();
        if probes.is_empty() {
            let full = program.probes.iter().map(|probe| match provider {
                Some(_) => format!("{}:{}", probe.provider, probe.name),
                None => probe.name.clone(),
            });
            let full: BTreeSet<String> = full.collect();
            let wanted =
                provider.map_or_else(|| name.to_owned(), |provider| format!("{provider}:{name}"));
            let near = did_you_mean(&wanted, full.iter().map(String::as_str));
            return Err(format!("{shown} has no USDT probe {wanted}{near}"));
        }
        for probe in probes {
            self.usdt_probe(&program, probe)?;
        }
        Ok(())
    }

    fn usdt_probe(&mut self, program: &Executable, probe: &usdt::Probe) -> Result<(), String> {
        let name = format!("{}:{}", probe.provider, probe.name);
        let shown = program.path.display();
        let (address, semaphore) = program.moved(probe);
        let outside = || format!("{shown}: the probe {name} is outside the program");
        if !Text::is_nop(program, address) {
            Text::new(program).check(&format!("the USDT probe {name}"), address)?;
        }
        let offset = program.code_offset(address).ok_or_else(outside)?;
        let semaphore = match semaphore {
            Some(semaphore) => Some(program.offset(semaphore).ok_or_else(outside)?),
            None => None,
        };
        let all = argument::parse_all(&probe.arguments, Architecture::OWN);
        let mut unknown = all.len().saturating_sub(MOST_CHOSEN_ARGUMENTS);
        let (mut arguments, mut fields) = (Vec::new(), Vec::new());
        for (number, argument) in all.into_iter().take(MOST_CHOSEN_ARGUMENTS).enumerate() {
            let argument = argument.and_then(|argument| place(program, address, argument));
            match argument {
                Some(argument) => {
                    fields.push(ValueField::numbered(number, argument.class));
                    arguments.push(argument);
                }
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            let arguments = &probe.arguments;
            let note = format!(
                "{name}: values not recorded for {unknown} of the arguments `{arguments}`: unknown operands"
            );
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let point = Point::Program {
            path: program.path.clone(),
            offset,
            at_return: false,
            semaphore,
        };
        let named = format!("USDT probe {name} of {shown}");
        self.add(name, named, point, fields, &arguments, &Condition::Hit);
        Ok(())
    }

    fn go(&mut self, path: &Path) -> Result<(), String> {
        let program = Executable::read(path)?;
        let shown = program.path.display();
        let offsets = go::Offsets::of(&program)?;
        let labels = go::reasons(&program);
        let machine = Architecture::OWN;
        for (name, function, arguments, fields) in [
            (
                "go_park",
                "runtime.gopark",
                offsets.park(machine),
                ["goid", "reason"],
            ),
            (
                "go_ready",
                "runtime.ready",
                offsets.ready(machine),
                ["goid", "by"],
            ),
        ] {
            let address = go::function(&program, function);
            let offset = address.and_then(|address| program.code_offset(address));
            let offset = offset.ok_or_else(|| format!("{shown} has no function {function}"))?;
            let point = Point::Program {
                path: program.path.clone(),
                offset,
                at_return: false,
                semaphore: None,
            };
            let fields = fields
                .iter()
                .zip(&arguments)
                .map(|(field, argument)| ValueField {
                    labels: if *field == "reason" {
                        labels.clone()
                    } else {
                        Vec::new()
                    },
                    ..ValueField::named(field, argument.class)
                });
            let fields = fields.collect();
            let named = format!("{function} of {shown}");
            self.add(
                name.to_owned(),
                named,
                point,
                fields,
                &arguments,
                &Condition::Hit,
            );
        }
        Ok(())
    }

    fn add(
        &mut self,
        class: String,
        name: String,
        point: Point,
        fields: Vec<ValueField>,
        arguments: &[Argument],
        condition: &Condition,
    ) {
        let kind = self.kind(ChosenClass {
            name: class,
            layout: Layout::Values(fields),
        });
        let is_user = !matches!(point, Point::Function { .. });
        self.attachments.push(Attachment {
            point,
            name,
            is_optional: false,
            description: describe(kind, is_user, arguments, condition),
        });
    }
}

/// Condition for recording a hit of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// By a recorded process.
    Hit,
    /// By any process.
    AnyHit,
    /// The function ends. The recorded instruction pointer is the caller's.
    Exit,
    /// The conditional jump that ends the function is taken; holds its condition code.
    Taken(u8),
    /// The first argument, the target of a jump, lies outside the function, whose parts are
    /// relative to the probe.
    Outside(Vec<[i32; 2]>),
    /// No event is recorded: counts calls whose return the kernel cannot track.
    Omitted,
}

impl Condition {
    /// Writes `parts`, `exit` and `of_all` of `struct chosen`.
    fn encode(&self, to: &mut Vec<u8>) {
        let parts = match self {
            Condition::Outside(parts) => parts.as_slice(),
            _ => &[],
        };
        let all = parts
            .iter()
            .chain(std::iter::repeat(&[0; 2]))
            .take(MOST_EXIT_PARTS);
        all.flatten()
            .for_each(|number| to.extend(number.to_le_bytes()));
        let exit = match self {
            Condition::Hit | Condition::AnyHit => shared::EXIT_NONE,
            Condition::Exit => shared::EXIT_ALWAYS,
            Condition::Taken(number) => shared::EXIT_CONDITION + usize::from(*number),
            Condition::Outside(_) => shared::EXIT_OUTSIDE,
            Condition::Omitted => shared::EXIT_OMITTED,
        };
        let of_all = *self == Condition::AnyHit;
        to.extend([exit as u8, u8::from(of_all), 0, 0, 0, 0, 0, 0]);
    }
}

/// Replaces a symbol by its distance from the instruction pointer, which is the address of the
/// probe.
fn place(program: &Executable, address: u64, argument: Argument) -> Option<Argument> {
    let Source::Symbol { name, displacement } = &argument.source else {
        return Some(argument);
    };
    let symbol = program.symbol(name)?.address;
    let displacement = symbol
        .wrapping_sub(address)
        .cast_signed()
        .wrapping_add(*displacement);
    let source = Source::Memory {
        base: Some(Architecture::OWN.instruction_pointer()),
        index: None,
        displacement,
    };
    Some(Argument { source, ..argument })
}

/// Encodes `struct chosen` up to its arguments.
fn head(kind: u16, is_user: bool, count: usize, size: u32, condition: &Condition) -> Vec<u8> {
    let mut to = kind.to_le_bytes().to_vec();
    to.extend([u8::from(is_user), count as u8]);
    to.extend(size.to_le_bytes());
    condition.encode(&mut to);
    to
}

fn describe(kind: u16, is_user: bool, arguments: &[Argument], condition: &Condition) -> Vec<u8> {
    let mut to = head(kind, is_user, arguments.len(), 0, condition);
    for argument in arguments {
        // Cannot fail: symbols have been replaced.
        let _ = argument.encode(&mut to);
    }
    to.resize(CHOSEN_SIZE, 0);
    to
}

fn describe_tracepoint(kind: u16, format: &Format, condition: &Condition) -> Vec<u8> {
    let dynamic = |field: &tracebraid_tracepoint::Field| match field.kind {
        FieldContent::Dynamic(OffsetBase::Record, _) => Some((field.offset, shared::SOURCE_RECORD)),
        FieldContent::Dynamic(OffsetBase::Field, _) => Some((field.offset, shared::SOURCE_FIELD)),
        _ => None,
    };
    // The contents of further dynamic fields would be missing in the trace.
    let dynamic = format
        .fields
        .iter()
        .filter_map(dynamic)
        .take(MOST_CHOSEN_ARGUMENTS);
    let dynamic: Vec<(u32, usize)> = dynamic.collect();
    let size = format
        .fields
        .iter()
        .map(|field| field.offset + field.size)
        .max();
    let mut to = head(kind, false, dynamic.len(), size.unwrap_or(0), condition);
    for (offset, source) in dynamic {
        to.extend(u64::from(offset).to_le_bytes());
        to.extend([0; 12]);
        to.extend([source as u8, 0, 0, 0]);
    }
    to.resize(CHOSEN_SIZE, 0);
    to
}

impl ValueField {
    fn named(name: &str, class: ValueClass) -> ValueField {
        ValueField {
            name: name.to_owned(),
            class,
            labels: Vec::new(),
        }
    }

    fn numbered(number: usize, class: ValueClass) -> ValueField {
        ValueField::named(&format!("arg{number}"), class)
    }

    fn add_to(&self, fields: Fields) -> Fields {
        if self.labels.is_empty() {
            return self.class.add_to(fields, &self.name);
        }
        let labels = (0i64..)
            .zip(&self.labels)
            .filter(|(_, label)| !label.is_empty());
        let labels: Vec<(&str, i64, i64)> = labels
            .map(|(number, label)| (label.as_str(), number, number))
            .collect();
        let ValueClass { bytes, signed, .. } = self.class;
        fields.enumeration(&self.name, u32::from(bytes) * 8, signed, &labels)
    }
}

/// Size of the thread and process ids with which records begin.
const NUMBERS: usize = 8;

impl ChosenClass {
    fn fields(&self) -> Fields {
        let fields = Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes);
        match &self.layout {
            Layout::Tracepoint(format) => {
                format.add_to(fields.int("common_pid", 32).int("common_tgid", 32))
            }
            Layout::Values(values) => {
                let fields = fields.int("tid", 32).int("pid", 32).hex("ip", 64);
                values
                    .iter()
                    .fold(fields, |fields, value| value.add_to(fields))
            }
        }
    }

    fn encode(&self, record: &[u8], to: &mut Vec<u8>) -> Option<()> {
        match &self.layout {
            Layout::Tracepoint(format) => {
                let (numbers, raw) = record.split_at_checked(NUMBERS)?;
                to.extend_from_slice(numbers);
                format.encode(raw, to)
            }
            Layout::Values(values) => {
                // Thread id, process id and instruction pointer.
                let (head, rest) = record.split_at_checked(NUMBERS + 8)?;
                to.extend_from_slice(head);
                for (field, value) in values.iter().zip(rest.chunks_exact(8)) {
                    to.extend_from_slice(value.get(..usize::from(field.class.bytes))?);
                }
                (rest.len() >= 8 * values.len()).then_some(())
            }
        }
    }
}
