//! The traces of a host and their parts in the merge: one kernel trace, and user traces whose
//! clocks can be compared with it.

use std::collections::BTreeMap;

use tracebraid_ctf::clock::{ClockConversion, comparable};
use tracebraid_ctf::correction::{Correction, Piece};
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::{ClockClass, ClockOrigin, CtfVersion, EnvValue, Scope};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::StreamRef;
use tracebraid_kernel_model::events::user_level::SUPER_TRACE;
use tracebraid_kernel_model::{CpuSource, KernelEvent, KernelModel};

use crate::vocabulary::StepClass;

/// The traces of a host, prepared for the merge.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Name of the host, if the traces contain one.
    pub(crate) host: Option<String>,
    pub(crate) set: TraceSet,
    pub(crate) model: KernelModel,
    /// Index of the kernel trace.
    pub(crate) kernel: Option<usize>,
    /// By number of the stream among those of all traces; `None` for streams that are left out.
    pub(crate) streams: Vec<Option<Source>>,
    /// Traces that are left out, and why.
    pub(crate) left_out: Vec<String>,
    /// Notes on clocks.
    pub(crate) notes: Vec<String>,
    /// The user traces have the kernel's clock.
    pub(crate) has_one_clock: bool,
}

/// A stream that is merged.
#[derive(Debug)]
pub(crate) enum Source {
    Kernel(CpuSource),
    User(UserStream),
}

/// True for a super-trace.
pub fn is_super_trace(trace: &Trace) -> bool {
    trace.layout.class.env(SUPER_TRACE).is_some()
}

/// A stream of a user trace.
#[derive(Debug)]
pub(crate) struct UserStream {
    /// Process of the trace, if it is of one process.
    pub(crate) pid: Option<i32>,
    /// By event class.
    pub(crate) classes: Vec<UserClass>,
}

/// An event class of a user trace.
#[derive(Debug)]
pub(crate) struct UserClass {
    pub(crate) step: Option<StepClass>,
    pub(crate) tid: Option<FieldRef>,
    pub(crate) pid: Option<FieldRef>,
}

/// Splits a trace set by host, in the order of the traces. Traces without the name of a host, such as
/// files of other tools, belong to the only host there is.
pub(crate) fn by_host(set: &TraceSet) -> Vec<(Option<String>, TraceSet)> {
    let mut hosts: Vec<(Option<String>, TraceSet)> = Vec::new();
    let name = |trace: &Trace| {
        let class = &trace.layout.class;
        let name = class.env_str("hostname").or(class.env_str("host"));
        name.map(str::to_owned)
    };
    let mut names = set.traces.iter().filter_map(name);
    let first = names.next();
    let only = first.filter(|first| names.all(|name| name == *first));
    for trace in &set.traces {
        let name = name(trace).or_else(|| only.clone());
        match hosts.iter_mut().find(|(host, _)| *host == name) {
            Some((_, own)) => own.traces.push(trace.clone()),
            None => hosts.push((
                name,
                TraceSet {
                    traces: vec![trace.clone()],
                    failed: Vec::new(),
                },
            )),
        }
    }
    hosts
}

fn clock_of(trace: &Trace) -> Option<&ClockClass> {
    let stream = trace.streams.first()?;
    let index = trace.layout.streams.get(stream.class)?.clock?;
    trace.layout.class.clocks.get(index)
}

/// Largest difference between the offsets of one clock to the time of day, in nanoseconds: the errors
/// of both measurements, and corrections of the time of day between them. Two boots differ by more.
const SAME_BOOT_NS: u64 = 10_000_000;

/// Whether two clocks count the same time. Files of other tools, such as Go's, contain no identity of
/// their clock: then its name and the time of boot, if they are known, decide.
fn is_same_clock(own: &ClockClass, first: &ClockClass) -> bool {
    if own.frequency != first.frequency {
        return false;
    }
    if own.uid.is_some() {
        return own.uid == first.uid;
    }
    let is_monotonic = |clock: &ClockClass| clock.name.as_deref() == Some("monotonic");
    let has_time = own.origin == ClockOrigin::UnixEpoch && first.origin == ClockOrigin::UnixEpoch;
    let is_near = base(own).abs_diff(base(first)) <= SAME_BOOT_NS;
    is_monotonic(own) && is_monotonic(first) && (is_near || !has_time)
}

/// Time of value 0 of a clock.
fn base(clock: &ClockClass) -> i64 {
    ClockConversion::new(clock).timestamp(0).0
}

impl Sources {
    pub(crate) fn new(host: Option<String>, mut set: TraceSet) -> Sources {
        let model = KernelModel::new(&set);
        let is_source = |trace: usize| !set.traces.get(trace).is_none_or(is_super_trace);
        let mut traces = 0..set.traces.len();
        let kernel = traces.find(|&trace| is_source(trace) && has_switches(&model, trace));
        let mut sources = Sources {
            host,
            kernel,
            left_out: Vec::new(),
            notes: Vec::new(),
            streams: Vec::new(),
            has_one_clock: true,
            set: TraceSet::default(),
            model: KernelModel::default(),
        };
        let kept: Vec<bool> = (0..set.traces.len())
            .map(|trace| sources.takes(&mut set, &model, trace))
            .collect();
        for (index, trace) in set.traces.iter().enumerate() {
            for stream in &trace.streams {
                let source = kept[index].then(|| source(&model, trace, (index, stream), kernel));
                sources.streams.push(source);
            }
        }
        (sources.set, sources.model) = (set, model);
        sources
    }

    /// Whether a trace is merged; corrects its clock if it is the kernel's with another offset.
    fn takes(&mut self, set: &mut TraceSet, model: &KernelModel, index: usize) -> bool {
        let Some(trace) = set.traces.get(index) else {
            return false;
        };
        let reason = self.reason_to_leave_out(set, model, index);
        if let Some(reason) = reason {
            let path = trace.known_path().map(|path| path.display().to_string());
            self.left_out
                .push(format!("{}: {reason}", path.unwrap_or_default()));
            return false;
        }
        let own = clock_of(trace).cloned();
        let first = self
            .kernel
            .and_then(|kernel| set.traces.get(kernel))
            .and_then(clock_of);
        let (Some(own), Some(first)) = (own, first.cloned()) else {
            return true;
        };
        let is_same = is_same_clock(&own, &first);
        self.has_one_clock &= is_same;
        let shift = base(&first).saturating_sub(base(&own));
        if is_same
            && shift != 0
            && let Some(trace) = set.traces.get_mut(index)
        {
            self.shift(trace, shift);
        }
        true
    }

    /// Tracers measure the offset of a clock to the time of day each for itself, microseconds
    /// apart. The same value of the same clock is the same moment.
    fn shift(&mut self, trace: &mut Trace, shift: i64) {
        if trace.correction.is_some() {
            return;
        }
        let piece = Piece {
            offset_ns: shift,
            ..Piece::default()
        };
        let Ok(correction) = Correction::new([&[piece][..]]) else {
            return;
        };
        // Corrections live as long as the program.
        trace.correction = Some(Box::leak(Box::new(correction)));
        self.notes.push(format!(
            "{}: its clock is the kernel's with another offset: times are shifted by {shift} ns",
            trace
                .known_path()
                .map(|path| path.display().to_string())
                .unwrap_or_default(),
        ));
    }

    fn reason_to_leave_out(
        &self,
        set: &TraceSet,
        model: &KernelModel,
        index: usize,
    ) -> Option<&'static str> {
        let trace = set.traces.get(index)?;
        if trace.streams.is_empty() {
            return Some("no event records");
        }
        if is_super_trace(trace) {
            return Some("it is a super-trace already");
        }
        if self.kernel == Some(index) {
            return None;
        }
        let is_kernel = model.traces.get(index).is_some_and(|trace| {
            trace
                .streams
                .iter()
                .any(|stream| !stream.events().is_empty())
        });
        if is_kernel {
            return Some(match self.kernel {
                Some(_) => "a second kernel trace of this host",
                None => "a kernel trace without sched_switch",
            });
        }
        let Some(own) = clock_of(trace) else {
            return Some("no clock");
        };
        let first = self
            .kernel
            .and_then(|kernel| set.traces.get(kernel))
            .and_then(clock_of);
        let first = first.or_else(|| set.traces.iter().find_map(clock_of));
        let is_apart = |first: &ClockClass| !comparable(first, own) && !is_same_clock(own, first);
        let is_apart = first.is_some_and(is_apart);
        is_apart.then_some("its clock cannot be compared with the others")
    }

    /// The version of the format in which all event classes can be written: CTF 2 has more kinds of
    /// fields, and CTF 1.8 more readers.
    pub(crate) fn version(&self) -> CtfVersion {
        let streams = self.group();
        let traces = streams
            .iter()
            .filter_map(|stream| Some(stream.of(&self.set)?.0));
        let is_2 = |trace: &Trace| trace.layout.class.version == CtfVersion::V2_0;
        match traces.into_iter().any(is_2) {
            true => CtfVersion::V2_0,
            false => CtfVersion::V1_8,
        }
    }

    /// All streams, as one group of the engine.
    pub(crate) fn group(&self) -> Vec<StreamRef> {
        let all = StreamRef::all(&self.set).zip(&self.streams);
        all.filter(|(_, source)| source.is_some())
            .map(|(stream, _)| stream)
            .collect()
    }

    /// The stream with this number.
    pub(crate) fn source(&self, number: u32) -> Option<&Source> {
        self.streams.get(number as usize)?.as_ref()
    }

    /// Number of a stream among those of all traces.
    pub(crate) fn number(&self, stream: StreamRef) -> u32 {
        let before = self.set.traces.iter().take(stream.trace as usize);
        let before: usize = before.map(|trace| trace.streams.len()).sum();
        before as u32 + stream.stream
    }

    /// Numbers of all streams of a trace.
    pub(crate) fn numbers(&self, trace: u32) -> std::ops::Range<u32> {
        let first = self.number(StreamRef { trace, stream: 0 });
        let own = self.set.traces.get(trace as usize);
        first..first + own.map_or(0, |own| own.streams.len() as u32)
    }

    /// The latest beginning of time that all clocks can express, in nanoseconds since their origin.
    pub(crate) fn base(&self) -> i64 {
        let streams = self.group();
        let bases = streams.iter().filter_map(|stream| {
            let (trace, content) = stream.of(&self.set)?;
            Some(trace.clock(content)?.timestamp(0).0)
        });
        bases.min().unwrap_or(0)
    }

    /// The environment's integer.
    pub(crate) fn env_int(trace: &Trace, name: &str) -> Option<i64> {
        match trace.layout.class.env(name) {
            Some(EnvValue::Int(value)) => i64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The clock of the kernel trace, or of the first trace.
    pub(crate) fn clock(&self) -> Option<&ClockClass> {
        let kernel = self.kernel.and_then(|kernel| self.set.traces.get(kernel));
        let first = self
            .group()
            .first()
            .and_then(|stream| Some(stream.of(&self.set)?.0));
        clock_of(kernel.or(first)?)
    }

    /// The traces that are merged, by stream: their environments name processes.
    pub(crate) fn process_names(&self) -> BTreeMap<i32, String> {
        let traces = self.set.traces.iter();
        let named = traces.filter_map(|trace| {
            let pid = Sources::env_int(trace, "vpid")?;
            let name = trace.layout.class.env_str("procname")?;
            Some((pid as i32, name.to_owned()))
        });
        named.collect()
    }
}

fn has_switches(model: &KernelModel, trace: usize) -> bool {
    let is_switch =
        |event: &tracebraid_kernel_model::EventModel| matches!(event.event, KernelEvent::Switch(_));
    model.traces.get(trace).is_some_and(|trace| {
        let mut streams = trace.streams.iter();
        streams.any(|stream| stream.events().iter().any(is_switch))
    })
}

fn source(
    model: &KernelModel,
    trace: &Trace,
    (index, stream): (usize, &Stream),
    kernel: Option<usize>,
) -> Source {
    let layout = trace.layout.streams.get(stream.class);
    if kernel == Some(index) {
        let of_trace = model.traces.get(index);
        let of_class = of_trace.and_then(|trace| trace.streams.get(stream.class));
        let cpu = of_class
            .zip(layout)
            .map(|(of_class, layout)| of_class.cpu_source(layout, &stream.head));
        return Source::Kernel(cpu.unwrap_or(CpuSource::Unknown));
    }
    let classes = layout.map_or(0, |layout| layout.events.len());
    let classes = (0..classes).filter_map(|class| Some(UserClass::new(layout?, class)));
    Source::User(UserStream {
        pid: Sources::env_int(trace, "vpid").map(|pid| pid as i32),
        classes: classes.collect(),
    })
}

impl UserClass {
    fn new(layout: &StreamLayout, class: usize) -> UserClass {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        let has = |scope| match scope {
            Scope::CommonContext => layout.common_context.root().is_some(),
            _ => layout
                .events
                .get(class)
                .is_some_and(|event| event.specific_context.root().is_some()),
        };
        let field = |names: &[&str]| {
            let mut places = scopes.iter().filter(|scope| has(**scope));
            places.find_map(|&scope| {
                names.iter().find_map(|name| {
                    let found = layout.field(class, scope, &[name]);
                    found.or_else(|| layout.field(class, scope, &[&format!("_{name}")]))
                })
            })
        };
        UserClass {
            step: StepClass::new(layout, class),
            tid: field(&["tid", "vtid", "thread_id"]),
            pid: field(&["pid", "vpid"]),
        }
    }
}
