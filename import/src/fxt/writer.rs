//! The trace: event classes as they are encountered, and records in the order of time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::schema::build::{Align, Fields, clock, event};
use tracebraid_ctf::schema::{
    ByteOrder, ClockIndex, ClockOrigin, EnvValue, Scope, TraceClass, Uuid,
};
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::stream::StreamWriter;
use tracebraid_ctf::write::trace::{Options, Session, StreamFiles, TraceWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use super::codes::{Meaning, kernel_name, user_name};
use super::head::Head;
use super::order::Window;
use super::records::Record;
use super::threads::Threads;
use crate::error::ImportError;
use crate::output::{payload, sound};
use crate::summary::{Summary, Tally};

/// Limit for the number of event classes: codes beyond share the class `fxt:event`.
const MOST_CLASSES: usize = 4096;

/// Limit for the number of CPUs: each has a stream.
const MOST_CPUS: u32 = 1 << 10;

/// A trace while it is written.
pub(super) struct Writer<'a> {
    head: &'a Head,
    trace: TraceWriter,
    /// By CPU; traces of programs have one.
    streams: HashMap<u32, Stream>,
    classes: HashMap<String, Arc<EventPlan>>,
    window: Window,
    threads: Threads,
}

struct Stream {
    writer: StreamWriter<StreamFiles>,
    last: u64,
}

impl<'a> Writer<'a> {
    /// Begins a trace; `first` is the time of the first record in cycles.
    pub(super) fn new(
        session: &Session,
        head: &'a Head,
        (uuid, first): (Uuid, u64),
    ) -> Result<Writer<'a>, ImportError> {
        let class = schema(head, uuid, first);
        let below = if head.is_kernel { "kernel" } else { "ust" };
        Ok(Writer {
            head,
            trace: session.trace(Path::new(below), &class, Options::default())?,
            streams: HashMap::new(),
            classes: HashMap::new(),
            window: Window::default(),
            threads: Threads::default(),
        })
    }

    /// Adds a record in the order of the file.
    pub(super) fn add(
        &mut self,
        record: Record,
        summary: &mut Summary,
        tally: &mut Tally,
        stop: &AtomicBool,
    ) -> Result<(), ImportError> {
        if stop.load(Ordering::Relaxed) {
            return Err(ImportError::Interrupted);
        }
        match self.window.add(record) {
            Some(oldest) => self.write(&oldest, summary, tally),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        record: &Record,
        summary: &mut Summary,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        let is_kernel = self.head.is_kernel;
        let meaning = match is_kernel {
            true => Meaning::Other,
            false => Meaning::of(record.code, record.params.len()),
        };
        let tid = match is_kernel {
            true => record.thread as i32,
            false => self.threads.lwp_of(record, meaning),
        };
        let name = self.name(record.code, meaning);
        let Some(class) = self.class(&name, meaning)? else {
            tally.count("a record cannot be expressed in CTF", record.offset);
            return Ok(());
        };
        let head = self.head;
        let stream = self.stream(record.cpu)?;
        if record.time < stream.last {
            tally.count(
                "a record is older than others and was left out",
                record.offset,
            );
            stream.writer.discard(1);
            return Ok(());
        }
        let written = stream.writer.record(&class, record.time, |fields| {
            fields.int(tid.into());
            if !is_kernel {
                fields.uint(record.thread);
            }
            values(fields, record, meaning, head);
        });
        match written {
            Ok(()) => {
                stream.last = record.time;
                summary.event(&name);
            }
            Err(WriteError::Field { .. } | WriteError::EventTooLarge { .. }) => {
                tally.count("a record cannot be expressed in CTF", record.offset);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn name(&self, code: u64, meaning: Meaning) -> String {
        let known = match self.head.is_kernel {
            true => kernel_name(code).map(|name| format!("fkt:{name}")),
            false => user_name(code).map(|name| format!("fxt:{name}")),
        };
        let name = meaning.class().map(str::to_owned).or(known);
        let space = if self.head.is_kernel { "fkt" } else { "fxt" };
        let symbol = self.head.symbols.get(&code).map(|name| sound(name));
        // Classes of the probe library have other fields.
        let is_whole = |name: &str| name.contains(':') && !name.starts_with("tracebraid:");
        let symbol = symbol.map(|name| match is_whole(&name) {
            true => name,
            false => format!("{space}:{name}"),
        });
        let name = name.or(symbol);
        let name = name.unwrap_or_else(|| format!("{space}:code_{code:x}"));
        match self.classes.len() < MOST_CLASSES || self.classes.contains_key(&name) {
            true => name,
            false => format!("{space}:event"),
        }
    }

    fn class(
        &mut self,
        name: &str,
        meaning: Meaning,
    ) -> Result<Option<Arc<EventPlan>>, ImportError> {
        if let Some(known) = self.classes.get(name) {
            return Ok(Some(Arc::clone(known)));
        }
        let id = self.classes.len() as u64;
        match self.trace.add_event(0, &event(id, name, fields(meaning))) {
            Ok(plan) => {
                self.classes.insert(name.to_owned(), Arc::clone(&plan));
                Ok(Some(plan))
            }
            Err(error @ WriteError::Io { .. }) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    fn stream(&mut self, cpu: u32) -> Result<&mut Stream, ImportError> {
        let cpu = cpu.min(MOST_CPUS);
        if !self.streams.contains_key(&cpu) {
            let context = [("cpu_id", i64::from(cpu))];
            let context = if self.head.is_kernel {
                &context[..]
            } else {
                &[]
            };
            let name = format!("channel0_{cpu}");
            let writer = self.trace.stream(0, &name, u64::from(cpu), context)?;
            self.streams.insert(cpu, Stream { writer, last: 0 });
        }
        let lost = || ImportError::Unsupported("a stream is missing".to_owned());
        self.streams.get_mut(&cpu).ok_or_else(lost)
    }

    /// Writes the remaining records and ends the trace.
    pub(super) fn finish(
        mut self,
        summary: &mut Summary,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        while let Some(record) = self.window.oldest() {
            self.write(&record, summary, tally)?;
        }
        for (_, stream) in self.streams {
            stream.writer.finish()?;
        }
        Ok(())
    }
}

/// Fields of a class: those of the probe library, then code and parameters.
fn fields(meaning: Meaning) -> Fields {
    let fields = match meaning {
        Meaning::Birth | Meaning::Name => payload().uint("ult", 64).string("name"),
        Meaning::Death => payload().uint("ult", 64),
        Meaning::Switch => payload().uint("prev_ult", 64).uint("next_ult", 64),
        Meaning::Lwp => payload().string("runtime"),
        Meaning::Enter | Meaning::Leave => payload().string("name"),
        Meaning::Other => payload(),
    };
    let fields = fields.hex("code", 64);
    fields.sequence("params", 8, |element| element.hex("", 64))
}

fn values(
    fields: &mut tracebraid_ctf::write::fields::Fields<'_>,
    record: &Record,
    meaning: Meaning,
    head: &Head,
) {
    let first = record.params.first().copied().unwrap_or(0);
    match meaning {
        Meaning::Birth => {
            fields.uint(first).string("");
        }
        Meaning::Name => {
            fields.uint(first).string(&thread_name(record));
        }
        Meaning::Death => {
            fields.uint(first);
        }
        Meaning::Switch => {
            fields.uint(record.thread).uint(first);
        }
        Meaning::Lwp => {
            fields.string("fxt");
        }
        Meaning::Enter | Meaning::Leave => {
            let symbol = head.symbols.get(&first);
            let name = symbol.cloned().unwrap_or_else(|| format!("{first:#x}"));
            fields.string(&sound(&name));
        }
        Meaning::Other => {}
    }
    fields.uint(record.code).uint(record.params.len() as u64);
    for param in &record.params {
        fields.uint(*param);
    }
}

/// Marcel stores a name as words of its size, in the low bytes of the parameters.
fn thread_name(record: &Record) -> String {
    let words = record.params.iter().skip(1);
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    crate::bytes::text(&bytes)
}

fn schema(head: &Head, uuid: Uuid, first: u64) -> TraceClass {
    let order = ByteOrder::Little;
    let mut class = trace_class(uuid, order);
    let frequency = head.frequency();
    let mut cycles = clock("fxt", frequency.unwrap_or(1_000_000_000), 0);
    match (
        head.start,
        frequency,
        i64::try_from(head.start),
        i64::try_from(first),
    ) {
        // The file has whole seconds of the time of day at which the recording began.
        (1.., Some(_), Ok(start), Ok(first)) => {
            cycles.offset_seconds = start;
            cycles.offset_cycles = -first;
        }
        _ => cycles.origin = ClockOrigin::Unknown,
    }
    class.clocks.push(cycles);
    let context: &[(&str, u32)] = match head.is_kernel {
        true => &[("cpu_id", 32)],
        false => &[],
    };
    let mut stream = stream_class(0, order, ClockIndex::default(), HeaderKind::Large, context);
    let common = Fields::new(Scope::CommonContext, order, Align::Bytes).int("tid", 32);
    let common = match head.is_kernel {
        true => common,
        false => common.hex("thread", 64),
    };
    stream.common_context = Some(common.build());
    class.streams.push(stream);
    let text = |text: &str| EnvValue::Str(sound(text));
    let domain = if head.is_kernel { "kernel" } else { "ust" };
    let known = [
        ("hostname", text(head.word(1).unwrap_or_default())),
        ("kernel_release", text(head.word(2).unwrap_or_default())),
        ("domain", text(domain)),
        ("tracer_name", text("fxt")),
        ("vpid", EnvValue::Int(head.pid.into())),
    ];
    class.environment = known
        .into_iter()
        .filter(|(_, value)| !matches!(value, EnvValue::Str(text) if text.is_empty()))
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    class
}
