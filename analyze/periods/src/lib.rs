//! Periods that users define: from an event record that one condition chooses to one that another
//! chooses, nested, with captured values.
//!
//! In: definitions (`tracebraid_language::periods`) and a trace set. Out: each period, the longest,
//! statistics by group ([`PeriodAnalysis`]), or every period that ended, for analyses that go on
//! from there ([`EndedAnalysis`]). Promise: the report is that of a plain pass in the order of
//! time.
//!
//! Conditions may be about event records of any stream, so the analysis reads all streams merged by
//! time: its chunks are intervals of time. A chunk keeps the event records that may begin or end a
//! period, with the values that conditions and captures name (`tracebraid_follow::Candidates`).
//! Once everything before the watermark has been merged, `OpenPeriods`, which knows what is open,
//! plays them. Where a condition asks for the thread of an event record that lacks it, switches are
//! among the candidates (`running`).
//!
//! `docs/reference/periods.md` defines each number.
#![forbid(unsafe_code)]

mod aggregated;
mod doubts;
mod ended;
mod index;
mod open_periods;
mod plan;
mod report;
mod running;
mod sums;
mod tree;
mod wanted;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_language::periods::Periods;
use tracebraid_language::{At, Datum};

pub use ended::{BegunPeriod, Bound, Ended, EndedAnalysis, EndedPeriod};
use open_periods::OpenPeriods;
use plan::Plan;
use running::{RUNNER, Running};
use sums::Sums;
use tracebraid_follow::{
    Candidates, CpuSet, Extent, Head, Packet, Packets, Subjects, Window, hosts, unended,
};
use tracebraid_tables::Report;
use wanted::Wanted;
pub use wanted::{Asked, MOST_OPEN, Order};

/// The analysis.
#[derive(Debug)]
pub struct PeriodAnalysis {
    periods: Periods,
    plan: Plan,
    wanted: Wanted,
    window: Window,
    cpus: CpuSet,
    head: Head,
    doubts: Vec<String>,
    subjects: Subjects,
    /// Who runs, if that matters.
    running: Option<Running>,
}

/// What is known after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PeriodPartial {
    candidates: Candidates,
    machine: OpenPeriods,
    sums: Sums,
    #[serde(skip)]
    packets: Packets,
}

impl PeriodAnalysis {
    /// Of those periods in those traces.
    ///
    /// # Errors
    /// When something is asked for that is not defined, for people.
    pub fn new(set: &TraceSet, periods: Periods, asked: &Asked) -> Result<PeriodAnalysis, String> {
        let running = Running::new(set, &periods);
        let plan = Plan::new(set, &periods, running.as_ref())?;
        let wanted = Wanted::new(asked, &periods)?;
        let mut analysis = PeriodAnalysis {
            doubts: doubts::of(set, &periods, running.as_ref()),
            running: running.filter(|_| plan.asks_who_runs()),
            head: head(set, asked.window),
            subjects: Subjects::new(set),
            window: asked.window,
            cpus: asked.cpus.clone(),
            plan,
            wanted,
            periods,
        };
        analysis.doubt_events();
        Ok(analysis)
    }

    /// What in the definitions is probably wrong, for people.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Packets that begin at or after this time need not be read.
    pub fn until(&self) -> Option<Timestamp> {
        self.window.to
    }

    /// From the begin of a packet on nobody knows who runs on its CPU.
    fn forget_runner(&self, partial: &mut PeriodPartial, place: &StreamPlace<'_>, packet: &Packet) {
        let Some(begin) = packet.begin else { return };
        let stream = self.plan.stream(place.stream.trace, place.stream.stream);
        let nobody = std::iter::once(Datum::Missing);
        let about = (begin, stream, RUNNER, 0);
        partial.candidates.add(about, Some(packet.cpu.cpu), nobody);
    }

    /// Periods that no event begins or ends.
    fn doubt_events(&mut self) {
        for (index, period) in self.periods.list.iter().enumerate() {
            let any = |steps: fn(&plan::ClassPlan) -> &[plan::PeriodBound]| {
                let mut classes = self.plan.classes.iter();
                classes.any(|class| steps(class).iter().any(|step| step.period == index))
            };
            let what = match (any(|class| &class.begins), any(|class| &class.ends)) {
                (false, _) => "begin",
                (true, false) => "end",
                _ => continue,
            };
            self.doubts.push(format!(
                "no event of the traces can {what} a period {}",
                period.name
            ));
        }
    }

    /// Lets the machine see what is before that time; without one, everything.
    fn run(&self, partial: &mut PeriodPartial, before: Option<i64>) {
        let taken = partial.candidates.take_before(before);
        for seen in taken.iter() {
            partial
                .machine
                .see(&self.plan, &self.wanted, seen, &mut partial.sums);
        }
    }
}

fn head(set: &TraceSet, window: Window) -> Head {
    let range = Extent::of(set, |_| true).map(|extent| extent.within(window));
    Head {
        begin: range.map(|range| range.0),
        end: range.map(|range| range.1),
        duration_ns: range.map_or(0, |(begin, end)| end.0.abs_diff(begin.0)),
        hosts: hosts(set, |_| true),
        // Periods may be about anything: no event is missing by rule.
        not_recorded: Vec::new(),
        unended: unended(set),
        cpus_by_stream: Vec::new(),
        start: None,
    }
}

impl Analysis for PeriodAnalysis {
    type Partial = PeriodPartial;
    type Report = Report;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let is_read = |stream: &StreamRef| {
            let class = self.subjects.class(*stream);
            class.is_some_and(|class| self.plan.reads(stream.trace as usize, class))
        };
        let tells: Vec<StreamRef> = self.running.iter().flat_map(Running::streams).collect();
        let streams = StreamRef::all(set);
        vec![
            streams
                .filter(|stream| is_read(stream) || tells.contains(stream))
                .collect(),
        ]
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let mut running = self.running.iter();
        self.plan.place(trace, stream_class, class).is_some()
            || running.any(|running| running.wants(trace, stream_class, class))
    }

    fn begin(&self, _: &Chunk) -> PeriodPartial {
        PeriodPartial::default()
    }

    fn packet(&self, partial: &mut PeriodPartial, packet: &StreamPlace<'_>) {
        self.subjects.packet(&mut partial.packets, packet);
        for lost in self.running.iter().flat_map(|running| running.lost(packet)) {
            self.forget_runner(partial, packet, &lost);
        }
    }

    fn cut(&self, partial: &mut PeriodPartial, packet: &StreamPlace<'_>, time: Timestamp) {
        let running = self.running.iter();
        for lost in running.flat_map(|running| running.cut(packet, time.0)) {
            self.forget_runner(partial, packet, &lost);
        }
    }

    #[inline]
    fn event(&self, partial: &mut PeriodPartial, record: &mut Record<'_>) {
        self.candidate(partial, record);
        // Behind it: a switch belongs to the thread that it ends.
        if let Some(running) = &self.running {
            running.event(&mut partial.candidates, record);
        }
    }

    fn end(&self, partial: &mut PeriodPartial, _: &Chunk) {
        partial.packets = Packets::default();
    }

    /// What is merged to something has not been settled: only the state of all that came first is.
    fn merge(&self, earlier: &mut PeriodPartial, later: PeriodPartial) {
        earlier.candidates.append(later.candidates);
    }

    fn settle(&self, partial: &mut PeriodPartial, watermark: Timestamp) {
        self.run(partial, Some(watermark.0));
    }

    fn finish(&self, mut partial: PeriodPartial) -> Report {
        self.run(&mut partial, None);
        partial.machine.finish(&mut partial.sums);
        report::report(&self.wanted, &self.periods, self.head.clone(), partial.sums)
    }
}

impl PeriodAnalysis {
    /// Keeps an event record that may begin or end something.
    #[inline]
    fn candidate(&self, partial: &mut PeriodPartial, record: &mut Record<'_>) {
        let trace = record.stream.trace as usize;
        let found = self.subjects.class(record.stream).and_then(|class| {
            let place = self.plan.place(trace, class, record.class)?;
            Some((place, self.plan.classes.get(place)?))
        });
        let Some((place, class)) = found else {
            return;
        };
        let subject = self.subjects.subject(&partial.packets, record);
        let cpu = subject.cpu.and_then(|cpu| u32::try_from(cpu).ok());
        if !self.window.contains(subject.time)
            || self.cpus.0.is_some() && !cpu.is_some_and(|cpu| self.cpus.contains(cpu))
        {
            return;
        }
        let at = &mut At::new(record.body, record.slots);
        let mut bits = 0;
        for (bit, filter) in class.filters.iter().enumerate() {
            bits |= u64::from(filter.holds(at, &subject)) << bit;
        }
        let mut steps = class.ends.iter().chain(&class.begins);
        if steps.all(|step| step.tree.decided(bits) == Some(false)) {
            return;
        }
        let values = class.fields.iter().map(|field| field.get(at, &subject));
        let about = (subject.time, record.number, place as u32, bits);
        partial.candidates.add(about, cpu, values);
    }
}
