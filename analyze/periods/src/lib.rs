//! Periods that users define: from an event record that one condition selects to one that another
//! condition selects, nested, with captured values.
//!
//! In: definitions (`tracebraid_language::periods`) and a trace set. Out: each period, the longest
//! ones, statistics by group ([`PeriodAnalysis`]); or every period that ended, as input for other
//! analyses ([`EndedAnalysis`]). Promise: the report equals that of a plain pass in the order of
//! time.
//!
//! Conditions may refer to event records of any stream, so the analysis reads all streams merged by
//! time: its chunks are intervals of time. A chunk keeps the event records that may begin or end a
//! period, with the values that conditions and captures use (`tracebraid_follow::Candidates`). Once
//! all chunks before the watermark have been merged, `OpenPeriods`, which holds the open periods,
//! plays them. Where a condition uses the thread of an event record that does not contain it,
//! switches are among the candidates (`running`).
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
pub use report::rare_totals;
use running::{RUNNER, Running};
use sums::Sums;
use tracebraid_follow::{Candidates, CpuSet, Head, Packet, Packets, Subjects, Window};
use tracebraid_tables::Report;
use wanted::Wanted;
pub use wanted::{Asked, MOST_OPEN, Order};

/// Computes statistics and lists of periods.
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
    /// Present if a condition or a capture uses the running thread.
    running: Option<Running>,
}

/// State after some chunks.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PeriodPartial {
    candidates: Candidates,
    machine: OpenPeriods,
    sums: Sums,
    #[serde(skip)]
    packets: Packets,
}

impl PeriodAnalysis {
    /// Analyses the periods in `set`.
    ///
    /// # Errors
    /// An option names an undefined period or capture, or there are too many conditions.
    pub fn new(set: &TraceSet, periods: Periods, asked: &Asked) -> Result<PeriodAnalysis, String> {
        let running = Running::new(set, &periods);
        let plan = Plan::new(set, &periods, running.as_ref())?;
        let wanted = Wanted::new(asked, &periods)?;
        let mut analysis = PeriodAnalysis {
            doubts: doubts::of(set, &periods, running.as_ref()),
            running: running.filter(|_| plan.asks_who_runs()),
            // Periods may refer to any event.
            head: Head::of_events(set, |_| true, asked.window),
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

    /// Probable mistakes in the definitions.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Packets that begin at or after this time need not be read.
    pub fn until(&self) -> Option<Timestamp> {
        self.window.to
    }

    /// Marks the thread on a packet's CPU as unknown from the start of the packet.
    fn forget_runner(&self, partial: &mut PeriodPartial, place: &StreamPlace<'_>, packet: &Packet) {
        let Some(begin) = packet.begin else { return };
        let stream = self.plan.stream(place.stream.trace, place.stream.stream);
        let nobody = std::iter::once(Datum::Missing);
        let about = (begin, stream, RUNNER, 0);
        partial.candidates.add(about, Some(packet.cpu.cpu), nobody);
    }

    /// Adds a doubt for each period that no event class can begin or end.
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
                "no event class of the traces can {what} the period {}",
                period.name
            ));
        }
    }

    /// Plays the candidates before the time `before`; without it, all.
    fn run(&self, partial: &mut PeriodPartial, before: Option<i64>) {
        let taken = partial.candidates.take_before(before);
        for seen in taken.iter() {
            partial
                .machine
                .see(&self.plan, &self.wanted, seen, &mut partial.sums);
        }
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
        // After the candidate: a switch belongs to the thread that it switches away from.
        if let Some(running) = &self.running {
            running.event(&mut partial.candidates, record);
        }
    }

    fn end(&self, partial: &mut PeriodPartial, _: &Chunk) {
        partial.packets = Packets::default();
    }

    /// The later part has not been settled: only the state from the beginning of the trace is.
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
    /// Keeps an event record that may begin or end a period.
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
