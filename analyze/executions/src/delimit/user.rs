//! Executions from programs' events: functions and spans.
//!
//! Event records of all streams are sorted by time, since a thread may move from one CPU's buffer
//! to another's.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::schema::EnvValue;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{Record, StreamPlace, StreamRef};
use tracebraid_follow::{Candidate, Candidates, Packets, Subjects, Window};
use tracebraid_language::ast::{Field, Where};
use tracebraid_language::{At, ClassField, Datum};

use crate::delimit::Patterns;
use crate::delimit::addresses::FunctionNames;
use crate::delimit::functions::Functions;
use crate::delimit::log::Log;
use crate::delimit::spans::Spans;

/// Meaning of an event class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserEdge {
    /// Entry of a function, which is identified by address or by name.
    Enter,
    /// Exit of a function.
    Exit,
    SpanBegin,
    SpanEnd,
}

impl UserEdge {
    /// Meaning of the event class with a name, and the field that identifies the function or span.
    fn named(name: &str) -> Option<(UserEdge, &'static str)> {
        Some(match name {
            "lttng_ust_cyg_profile:func_entry" | "lttng_ust_cyg_profile_fast:func_entry" => {
                (UserEdge::Enter, "addr")
            }
            "lttng_ust_cyg_profile:func_exit" | "lttng_ust_cyg_profile_fast:func_exit" => {
                (UserEdge::Exit, "addr")
            }
            "tracebraid:prof_in" => (UserEdge::Enter, "name"),
            "tracebraid:prof_out" => (UserEdge::Exit, "name"),
            "tracebraid:span_begin" => (UserEdge::SpanBegin, "id"),
            "tracebraid:span_end" => (UserEdge::SpanEnd, "id"),
            _ => return None,
        })
    }

    pub(crate) fn is_of_functions(self) -> bool {
        matches!(self, UserEdge::Enter | UserEdge::Exit)
    }
}

/// An event class of functions or spans.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) kind: UserEdge,
    /// Process of the trace, if the trace contains it.
    pid: Option<i64>,
    /// Fields of the thread, the process, the identifier, and the name.
    fields: [Option<ClassField>; 4],
}

impl Class {
    fn new(trace: &Trace, stream: &StreamLayout, event: usize) -> Option<Class> {
        let (kind, of) = UserEdge::named(&stream.events.get(event)?.name)?;
        let field = |field: &Field| ClassField::new(field, trace, stream, event);
        let payload = |name: &str| field(&Field::Path(Where::Payload, vec![name.to_owned()]));
        let pid = match trace.layout.class.env("vpid") {
            Some(EnvValue::Int(pid)) => i64::try_from(*pid).ok(),
            _ => None,
        };
        Some(Class {
            kind,
            pid,
            fields: [
                field(&Field::Tid),
                field(&Field::Path(Where::Context, vec!["vpid".to_owned()])),
                payload(of),
                payload("name").filter(|_| kind == UserEdge::SpanBegin),
            ],
        })
    }
}

/// An event record of a function or span.
#[derive(Debug)]
pub(crate) struct Told<'c> {
    pub(crate) kind: UserEdge,
    pub(crate) time: i64,
    pub(crate) trace: u32,
    pub(crate) cpu: Option<u32>,
    pub(crate) tid: Option<i64>,
    /// Process in the event record.
    pub(crate) pid: Option<i64>,
    /// Process in the event record, or else that of the trace.
    pub(crate) process: i64,
    /// Identifier of the function or span, and its name.
    pub(crate) of: &'c Datum,
    pub(crate) name: &'c Datum,
}

/// Event classes of functions and spans, by trace, stream class and event class.
#[derive(Debug)]
pub(crate) struct Classes {
    classes: Vec<Class>,
    /// 1 + index in `classes`, or 0 without a class.
    places: Vec<Vec<Vec<u32>>>,
    subjects: Subjects,
    /// Trace by index of the stream.
    traces: Vec<u32>,
}

impl Classes {
    /// Collects the event classes with a wanted meaning.
    pub(crate) fn new(set: &TraceSet, is_wanted: impl Fn(UserEdge) -> bool) -> Classes {
        let mut classes = Vec::new();
        let mut of_stream = |trace: &Trace, stream: &StreamLayout| {
            let place = |event| {
                let class = Class::new(trace, stream, event).filter(|class| is_wanted(class.kind));
                class.map_or(0, |class| {
                    classes.push(class);
                    classes.len() as u32
                })
            };
            (0..stream.events.len()).map(place).collect()
        };
        let mut places = Vec::new();
        for trace in &set.traces {
            let streams = trace.layout.streams.iter();
            places.push(streams.map(|stream| of_stream(trace, stream)).collect());
        }
        let traces = set.traces.iter().zip(0..);
        Classes {
            classes,
            places,
            subjects: Subjects::new(set),
            traces: traces
                .flat_map(|(trace, index)| std::iter::repeat_n(index, trace.streams.len()))
                .collect(),
        }
    }

    /// True if an event class has such a meaning.
    pub(crate) fn any(&self, is_it: impl Fn(UserEdge) -> bool) -> bool {
        self.classes.iter().any(|class| is_it(class.kind))
    }

    fn place(&self, trace: usize, stream_class: usize, class: usize) -> Option<usize> {
        let place = *self.places.get(trace)?.get(stream_class)?.get(class)?;
        (place as usize).checked_sub(1)
    }

    pub(crate) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.place(trace, stream_class, class).is_some()
    }

    /// The streams to read.
    pub(crate) fn streams(&self, set: &TraceSet) -> Vec<StreamRef> {
        let is_read = |stream: &StreamRef| {
            let class = self.subjects.class(*stream);
            let places = class.and_then(|class| self.places.get(stream.trace as usize)?.get(class));
            places.is_some_and(|places| places.iter().any(|&place| place > 0))
        };
        StreamRef::all(set).filter(is_read).collect()
    }

    pub(crate) fn packet(&self, packets: &mut Packets, place: &StreamPlace<'_>) {
        self.subjects.packet(packets, place);
    }

    /// Reads an event record of one of the classes: index of the class, CPU, and values.
    #[inline]
    pub(crate) fn read(
        &self,
        packets: &Packets,
        record: &mut Record<'_>,
    ) -> Option<(usize, Option<u32>, [Datum; 4])> {
        let stream_class = self.subjects.class(record.stream)?;
        let place = self.place(record.stream.trace as usize, stream_class, record.class)?;
        let class = self.classes.get(place)?;
        let subject = self.subjects.subject(packets, record);
        let at = &mut At::new(record.body, record.slots);
        let fields = [0, 1, 2, 3].map(|index: usize| {
            let field = class.fields.get(index).and_then(Option::as_ref);
            field.map_or(Datum::Missing, |field| field.get(at, &subject))
        });
        let cpu = subject.cpu.and_then(|cpu| u32::try_from(cpu).ok());
        Some((place, cpu, fields))
    }

    /// Interprets values that [`Classes::read`] returned.
    pub(crate) fn told<'c>(
        &'c self,
        place: usize,
        stream: u32,
        (time, cpu): (i64, Option<u32>),
        values: &'c [Datum],
    ) -> Option<Told<'c>> {
        let class = self.classes.get(place)?;
        let [tid, pid, of, name] = values else {
            return None;
        };
        let integer = |datum: &Datum| match datum {
            Datum::Integer(number) => i64::try_from(*number).ok(),
            _ => None,
        };
        let pid = integer(pid);
        Some(Told {
            kind: class.kind,
            time,
            trace: self.traces.get(stream as usize).copied()?,
            cpu,
            tid: integer(tid),
            pid,
            process: pid.or(class.pid).unwrap_or(-1),
            of,
            name,
        })
    }
}

/// Requested definitions and input.
#[derive(Debug)]
pub(crate) struct User {
    classes: Classes,
    pub(crate) functions: Patterns,
    pub(crate) spans: Patterns,
    pub(crate) names: FunctionNames,
    window: Window,
}

/// State after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UserPartial {
    candidates: Candidates,
    #[serde(skip)]
    packets: Packets,
    functions: Functions,
    spans: Spans,
}

impl User {
    /// `None` if no definition concerns functions or spans.
    pub(crate) fn new(
        set: &TraceSet,
        functions: Patterns,
        spans: Patterns,
        names: FunctionNames,
        window: Window,
    ) -> Option<User> {
        if functions.is_empty() && spans.is_empty() {
            return None;
        }
        let is_wanted = |kind: UserEdge| match kind.is_of_functions() {
            true => !functions.is_empty(),
            false => !spans.is_empty(),
        };
        Some(User {
            classes: Classes::new(set, is_wanted),
            functions,
            spans,
            names,
            window,
        })
    }

    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if !self.functions.is_empty() && !self.classes.any(UserEdge::is_of_functions) {
            doubts.push(
                "the traces record no functions (lttng_ust_cyg_profile:*, tracebraid:prof_in)"
                    .to_owned(),
            );
        }
        if !self.spans.is_empty() && !self.classes.any(|kind| kind == UserEdge::SpanBegin) {
            doubts.push("the traces record no spans (tracebraid:span_begin)".to_owned());
        }
        doubts
    }

    pub(crate) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.classes.wants(trace, stream_class, class)
    }

    pub(crate) fn streams(&self, set: &TraceSet) -> Vec<StreamRef> {
        self.classes.streams(set)
    }

    pub(crate) fn packet(&self, partial: &mut UserPartial, place: &StreamPlace<'_>) {
        self.classes.packet(&mut partial.packets, place);
    }

    #[inline]
    pub(crate) fn event(&self, partial: &mut UserPartial, record: &mut Record<'_>) {
        let (time, stream) = (record.time.0, record.number);
        if !self.window.contains(time) {
            return;
        }
        if let Some((place, cpu, values)) = self.classes.read(&partial.packets, record) {
            let about = (time, stream, place as u32, 0);
            partial.candidates.add(about, cpu, values.into_iter());
        }
    }

    pub(crate) fn end(&self, partial: &mut UserPartial) {
        partial.packets = Packets::default();
    }

    pub(crate) fn merge(&self, earlier: &mut UserPartial, later: UserPartial) {
        earlier.candidates.append(later.candidates);
    }

    /// Plays the events in the order of time, up to `until`.
    pub(crate) fn play(&self, partial: &mut UserPartial, until: Option<i64>) {
        let taken = partial.candidates.take_before(until);
        for (candidate, values) in taken.iter() {
            let Candidate {
                time,
                stream,
                class,
                cpu,
                ..
            } = *candidate;
            let Some(told) = self
                .classes
                .told(class as usize, stream, (time, cpu), values)
            else {
                continue;
            };
            match told.kind.is_of_functions() {
                true => partial.functions.step(self, &told),
                false => partial.spans.step(self, &told),
            }
        }
    }
}

impl UserPartial {
    /// Logs of functions and spans.
    pub(crate) fn logs(&mut self) -> [&mut Log; 2] {
        [&mut self.functions.log, &mut self.spans.log]
    }

    /// Begins of the open executions.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.functions.open().chain(self.spans.open())
    }
}
