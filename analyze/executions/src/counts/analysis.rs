//! Counts page faults, bytes, system calls, and values of counters and programs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_follow::{CpuKey, Event, Input, Packets, Recorded, Selection, Subjects, ThreadKey};
use tracebraid_kernel_model::events::Edge;
use tracebraid_kernel_model::{Action, Body, KernelEvent, KernelModel, Syscall};
use tracebraid_language::executions::{Attached, Definitions, How};
use tracebraid_language::{At, Datum};

use crate::counts::plan::{self, Class, Tells};
use crate::counts::quantities::{
    CALLS, FAULTS, FIXED, Measured, Quantities, Quantity, READ, WRITTEN,
};
use crate::counts::series_by_owner::{CountSeries, Owner, SeriesKey};
use crate::counts::time_series::{Keep, TimeSeries};
use crate::execution::Kernels;
use crate::metrics::Metric;

/// Analysis that counts the quantities of threads.
#[derive(Debug)]
pub struct CountAnalysis {
    input: Input,
    quantities: Quantities,
    classes: Vec<Class>,
    /// By trace, stream class and event class: 1 + index in `classes`, or 0 without a class.
    places: Vec<Vec<Vec<u32>>>,
    subjects: Subjects,
    kernels: Kernels,
}

/// State after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct CountPartial {
    /// Counted values: all those of the kernel on a CPU; of the others, those earlier than the last
    /// watermark.
    pub series: CountSeries,
    /// In a chunk, which covers few CPUs: values of the kernel, already in the order of time.
    #[serde(skip)]
    chunk: Vec<(SeriesKey, TimeSeries)>,
    /// Values that must be sorted by time first, as they may come from several streams.
    waiting: Vec<Sample>,
    #[serde(skip)]
    packets: Packets,
}

/// One value of a quantity.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sample {
    time: i64,
    stream: u32,
    quantity: u16,
    owner: Owner,
    value: u64,
}

impl CountAnalysis {
    /// Creates the analysis for traces, with the values that definitions attach.
    ///
    /// # Errors
    /// A message for the user if a value has the name of another metric.
    pub fn new(set: &TraceSet, definitions: &Definitions) -> Result<CountAnalysis, String> {
        CountAnalysis::sharing(set, None, definitions)
    }

    /// As [`CountAnalysis::new`]. `recorded`: the recorded CPUs, if another analysis has determined
    /// them.
    ///
    /// # Errors
    /// As [`CountAnalysis::new`].
    pub(crate) fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        definitions: &Definitions,
    ) -> Result<CountAnalysis, String> {
        let input = Input::sharing(set, recorded, Selection::default(), counts);
        let counters = plan::counters(set);
        let fixed = FIXED.into_iter().map(|what| Quantity {
            is_recorded: is_recorded(&input, &what),
            what,
        });
        let counter = |name: &String| Quantity {
            what: Measured::Counter(name.clone()),
            is_recorded: true,
        };
        let value = |value: &Attached| Quantity {
            what: Measured::Value(value.clone()),
            is_recorded: false,
        };
        let values = definitions.values.iter().map(value);
        let list: Vec<Quantity> = fixed
            .chain(counters.iter().map(counter))
            .chain(values)
            .collect();
        let mut analysis = CountAnalysis {
            input,
            quantities: Quantities::new(list),
            classes: Vec::new(),
            places: Vec::new(),
            subjects: Subjects::new(set),
            kernels: kernels(set),
        };
        analysis.check_names()?;
        analysis.plan(set);
        Ok(analysis)
    }

    /// The counted quantities.
    pub fn quantities(&self) -> &Quantities {
        &self.quantities
    }

    /// Probable mistakes in the definitions, as messages for the user.
    pub fn doubts(&self) -> Vec<String> {
        let list = self.quantities.list().iter();
        let doubts = list.filter_map(|quantity| match &quantity.what {
            Measured::Value(value) if !quantity.is_recorded => Some(format!(
                "no event of the traces records the value {}",
                value.name
            )),
            _ => None,
        });
        doubts.collect()
    }

    fn check_names(&self) -> Result<(), String> {
        let mut names: Vec<String> = Metric::all().map(Metric::name).collect();
        // A metric is also addressed by its name without the unit.
        let short = names
            .iter()
            .filter_map(|name| Some(name.strip_suffix("_ns")?.to_owned()));
        let short: Vec<String> = short.collect();
        names.extend(short);
        for extra in self.quantities.extra() {
            if names.contains(&extra.name) {
                return Err(format!(
                    "a metric is already named {}: choose another name for the value",
                    extra.name
                ));
            }
            names.push(extra.name);
        }
        Ok(())
    }

    /// Determines which quantities each event class records.
    fn plan(&mut self, set: &TraceSet) {
        let mut list = self.quantities.list().to_vec();
        let mut counters = Vec::new();
        let mut values = Vec::new();
        for (number, quantity) in (0..).zip(self.quantities.list()) {
            match &quantity.what {
                Measured::Counter(name) => counters.push((number, name.as_str())),
                Measured::Value(value) => values.push((number, value)),
                _ => {}
            }
        }
        for trace in &set.traces {
            let mut of_trace = Vec::new();
            for stream in &trace.layout.streams {
                let mut of_stream = Vec::new();
                for event in 0..stream.events.len() {
                    let class = plan::class((trace, stream, event), &counters, &values);
                    of_stream.push(match class {
                        None => 0,
                        Some(class) => {
                            for (number, _) in &class.tells {
                                if let Some(quantity) = list.get_mut(usize::from(*number)) {
                                    quantity.is_recorded = true;
                                }
                            }
                            self.classes.push(class);
                            self.classes.len() as u32
                        }
                    });
                }
                of_trace.push(of_stream);
            }
            self.places.push(of_trace);
        }
        self.quantities = Quantities::new(list);
    }

    fn class(&self, trace: usize, stream_class: usize, class: usize) -> Option<&Class> {
        let place = *self.places.get(trace)?.get(stream_class)?.get(class)?;
        self.classes.get((place as usize).checked_sub(1)?)
    }

    /// Counts an event of the kernel.
    #[inline(always)]
    fn kernel(partial: &mut CountPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let mut add = |quantity, value| {
            let key = (quantity, Owner::Cpu(event.cpu));
            let found = partial.chunk.iter_mut().find(|(of, _)| *of == key);
            match found {
                Some((_, series)) => series.add(event.time, value, Keep::Sum),
                None => {
                    let mut series = TimeSeries::default();
                    series.add(event.time, value, Keep::Sum);
                    partial.chunk.push((key, series));
                }
            }
        };
        match &event.model.event {
            KernelEvent::Entry(_) => add(CALLS, 1),
            KernelEvent::PageFault(_) => add(FAULTS, 1),
            KernelEvent::Exit(exit) => {
                let call = exit.call(body).unwrap_or(Syscall::OTHER);
                let bytes = exit
                    .result
                    .get(body)
                    .and_then(|result| u64::try_from(result).ok());
                let Some(bytes) = bytes.filter(|&bytes| bytes > 0) else {
                    return;
                };
                let (reads, writes) = moves(call);
                if reads {
                    add(READ, bytes);
                }
                if writes {
                    add(WRITTEN, bytes);
                }
            }
            _ => {}
        }
    }

    /// Counts an event record of any trace.
    fn tell(&self, partial: &mut CountPartial, record: &mut Record<'_>) -> Option<()> {
        let trace = record.stream.trace as usize;
        let stream_class = self.subjects.class(record.stream)?;
        let class = self.class(trace, stream_class, record.class)?;
        let trace = self.kernels.of(record.stream.trace)?;
        let subject = self.subjects.subject(&partial.packets, record);
        let at = &mut At::new(record.body, record.slots);
        let integer = |datum: Datum| match datum {
            Datum::Integer(number) => Some(number),
            _ => None,
        };
        let tid = class
            .tid
            .as_ref()
            .and_then(|tid| integer(tid.get(at, &subject)));
        let thread = tid.and_then(|tid| i32::try_from(tid).ok());
        let thread = thread.map(|tid| Owner::Thread(ThreadKey { trace, tid }));
        let cpu = class
            .cpu
            .as_ref()
            .and_then(|cpu| integer(cpu.get(at, &subject)));
        let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
        let cpu = cpu.map(|cpu| Owner::Cpu(CpuKey { trace, cpu }));
        for (quantity, tells) in &class.tells {
            let (owner, value) = match tells {
                Tells::OfCpu(field) => (cpu, integer(field.get(at, &subject))),
                Tells::OfThread(field) => (thread, integer(field.get(at, &subject))),
                Tells::Value(field) => {
                    let value = integer(field.get(at, &subject));
                    let counts = self.quantities.list().get(usize::from(*quantity));
                    let is_count = counts.is_some_and(
                        |quantity| matches!(&quantity.what, Measured::Value(value) if value.how == How::Count),
                    );
                    (
                        thread.or(cpu),
                        if is_count { value.map(|_| 1) } else { value },
                    )
                }
                Tells::Occurs => (thread.or(cpu), Some(1)),
            };
            let value = value.and_then(|value| u64::try_from(value).ok());
            if let (Some(owner), Some(value)) = (owner, value) {
                partial.waiting.push(Sample {
                    time: record.time.0,
                    stream: record.number,
                    quantity: *quantity,
                    owner,
                    value,
                });
            }
        }
        Some(())
    }

    /// Moves the counted values to `series`. Samples that must be sorted by time first are moved if
    /// they are earlier than `before`, in nanoseconds from the origin; without it, all samples are
    /// moved.
    pub(crate) fn settle_into(
        &self,
        partial: &mut CountPartial,
        series: &mut CountSeries,
        before: Option<i64>,
    ) {
        series.append(std::mem::take(&mut partial.series));
        self.take(&mut partial.waiting, series, before);
    }

    /// Sorts the waiting samples, and moves those earlier than `before` to `series`; without it,
    /// all samples.
    fn take(&self, waiting: &mut Vec<Sample>, series: &mut CountSeries, before: Option<i64>) {
        // Stable: samples of one stream with equal times keep their order.
        waiting.sort_by_key(|sample| (sample.time, sample.stream));
        let count = match before {
            Some(before) => waiting.partition_point(|sample| sample.time < before),
            None => waiting.len(),
        };
        for sample in waiting.drain(..count) {
            if let Some(quantity) = self.quantities.list().get(usize::from(sample.quantity)) {
                let key = (sample.quantity, sample.owner);
                series.add(key, sample.time, sample.value, quantity.keep());
            }
        }
    }
}

/// True for kernel events that are counted.
fn counts(event: &KernelEvent) -> bool {
    match event {
        KernelEvent::Entry(_) => true,
        KernelEvent::Exit(exit) => exit
            .fixed()
            .is_none_or(|call| moves(call) != (false, false)),
        KernelEvent::PageFault(fault) => fault.edge == Edge::Begin,
        _ => false,
    }
}

/// Whether the result of a call is a number of bytes read, and of bytes written.
fn moves(call: Syscall) -> (bool, bool) {
    match call.action() {
        Action::Read => (true, false),
        Action::Write => (false, true),
        Action::Copy => (true, true),
        _ => (false, false),
    }
}

fn is_recorded(input: &Input, what: &Measured) -> bool {
    input.sources.has(|event| match (what, event) {
        (Measured::Faults, KernelEvent::PageFault(fault)) => fault.edge == Edge::Begin,
        (Measured::Calls, KernelEvent::Entry(_)) => true,
        (Measured::Read | Measured::Written, KernelEvent::Exit(exit)) => {
            exit.names_call()
                && exit
                    .fixed()
                    .is_none_or(|call| moves(call) != (false, false))
        }
        _ => false,
    })
}

/// Kernel traces are those with context switches; the other traces belong to their machines.
fn kernels(set: &TraceSet) -> Kernels {
    let model = KernelModel::new(set);
    Kernels::new(set, |index| {
        let trace = model.traces.get(index).into_iter();
        let mut events = trace
            .flat_map(|trace| &trace.streams)
            .flat_map(|stream| stream.events());
        events.any(|model| matches!(model.event, KernelEvent::Switch(_)))
    })
}

impl Analysis for CountAnalysis {
    type Partial = CountPartial;
    type Report = CountSeries;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut groups = self.input.groups();
        let known: std::collections::HashSet<StreamRef> =
            groups.iter().flatten().copied().collect();
        let is_read = |stream: &StreamRef| {
            let class = self.subjects.class(*stream);
            let places = class.and_then(|class| self.places.get(stream.trace as usize)?.get(class));
            places.is_some_and(|places| places.iter().any(|&place| place > 0))
        };
        let others =
            StreamRef::all(set).filter(|stream| !known.contains(stream) && is_read(stream));
        groups.extend(others.map(|stream| vec![stream]));
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
            || self.class(trace, stream_class, class).is_some()
    }

    fn begin(&self, _: &Chunk) -> CountPartial {
        CountPartial::default()
    }

    fn packet(&self, partial: &mut CountPartial, packet: &StreamPlace<'_>) {
        if !self.classes.is_empty() {
            self.subjects.packet(&mut partial.packets, packet);
        }
    }

    #[inline]
    fn event(&self, partial: &mut CountPartial, record: &mut Record<'_>) {
        self.input
            .event(record, |event, body| Self::kernel(partial, event, body));
        if !self.classes.is_empty() {
            self.tell(partial, record);
        }
    }

    fn end(&self, partial: &mut CountPartial, _: &Chunk) {
        partial.packets = Packets::default();
        for (key, series) in std::mem::take(&mut partial.chunk) {
            partial.series.append_series(key, series);
        }
    }

    fn merge(&self, earlier: &mut CountPartial, later: CountPartial) {
        earlier.series.append(later.series);
        earlier.waiting.extend(later.waiting);
    }

    fn settle(&self, partial: &mut CountPartial, watermark: Timestamp) {
        self.take(&mut partial.waiting, &mut partial.series, Some(watermark.0));
    }

    fn finish(&self, mut partial: CountPartial) -> CountSeries {
        self.take(&mut partial.waiting, &mut partial.series, None);
        partial.series
    }
}
