//! Converts records in the order of time to event records.

use std::sync::Arc;

use tracebraid_ctf::write::EventPlan;

use super::classes::SampleClass;
use super::features::BuildId;
use super::header::Header;
use super::order::Record;
use super::sample::Sample;
use super::side::{KINDS, Side, kind};
use super::threads::Threads;
use crate::bytes::number;
use crate::error::ImportError;
use crate::output::{Kept, Output, payload};
use crate::summary::{Summary, Tally};

/// An event class: its name, and its plan unless CTF cannot express it.
type Class = (String, Option<Arc<EventPlan>>);

/// Writes records.
pub(crate) struct Writer {
    output: Output,
    /// By index of the event.
    samples: Vec<Option<Class>>,
    sides: [Option<Class>; KINDS],
    threads: Threads,
    /// Time and CPU of the latest event.
    now: (u64, u32),
    /// Records for the time before the recording. They are written with the time of the first
    /// event.
    early: Vec<Record>,
    early_bytes: usize,
    /// Number of lost samples, according to perf's totals at the end.
    lost_in_all: u64,
    /// Build ids from the sections after the records.
    build_ids: Vec<BuildId>,
}

/// Flag of a count of lost samples: a filter rejected them.
const LOST_TO_FILTER: u16 = 1 << 15;

/// Limit for the size of `early`, in bytes.
const MOST_EARLY: usize = 64 << 20;

impl Writer {
    pub(crate) fn new(output: Output, build_ids: Vec<BuildId>) -> Writer {
        Writer {
            output,
            samples: Vec::new(),
            sides: Default::default(),
            threads: Threads::default(),
            now: (0, 0),
            early: Vec::new(),
            early_bytes: 0,
            lost_in_all: 0,
            build_ids,
        }
    }

    /// Writes a record; `tally` counts records that cannot be written.
    pub(crate) fn write(
        &mut self,
        header: &Header,
        mut record: Record,
        tally: &mut Tally,
        summary: &mut Summary,
    ) -> Result<(), ImportError> {
        if record.time == 0 && self.now.0 == 0 && self.early_bytes < MOST_EARLY {
            self.early_bytes += size_of::<Record>() + record.body.len();
            self.early.push(record);
            return Ok(());
        }
        if record.time == 0 {
            (record.time, record.cpu) = self.now;
            record.has_no_time = true;
        }
        if self.now.0 == 0 {
            self.now = (record.time, record.cpu);
            self.write_early(header, tally, summary)?;
        }
        self.now = (record.time.max(self.now.0), record.cpu);
        self.one(header, &record, tally, summary)
    }

    /// Writes the records that precede the first record with a time.
    fn write_early(
        &mut self,
        header: &Header,
        tally: &mut Tally,
        summary: &mut Summary,
    ) -> Result<(), ImportError> {
        for of in std::mem::take(&mut self.build_ids) {
            self.put(&Side::BuildId(of), -1, self.now, summary)?;
        }
        for mut record in std::mem::take(&mut self.early) {
            (record.time, record.cpu) = self.now;
            record.has_no_time = true;
            self.one(header, &record, tally, summary)?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        header: &Header,
        record: &Record,
        tally: &mut Tally,
        summary: &mut Summary,
    ) -> Result<(), ImportError> {
        let kept = match record.kind {
            kind::SAMPLE => self.sample(header, record, summary)?,
            kind::LOST | kind::LOST_SAMPLES => self.lost(header, record, summary)?,
            _ => self.side(header, record, summary)?,
        };
        match kept {
            Kept::Yes => {}
            Kept::Late => tally.count(
                "an event is older than an event that was already written and was skipped",
                record.offset,
            ),
            Kept::Broken => tally.count("a record is damaged and was skipped", record.offset),
        }
        Ok(())
    }

    fn sample(
        &mut self,
        header: &Header,
        record: &Record,
        summary: &mut Summary,
    ) -> Result<Kept, ImportError> {
        let Some(attr) = header.attrs.get(record.attr) else {
            return Ok(Kept::Broken);
        };
        let tables = header.tables.as_ref().filter(|_| attr.is_tracepoint());
        let format =
            tables.and_then(|tables| tables.formats.get(&u32::try_from(attr.config).ok()?));
        let class = SampleClass { attr, format };
        let Ok(sample) = Sample::parse(attr, &record.body, record.offset + 8, header.big) else {
            return Ok(Kept::Broken);
        };
        if !class.fits(&sample, header.big) {
            return Ok(Kept::Broken);
        }
        if self.samples.len() <= record.attr {
            self.samples.resize(record.attr + 1, None);
        }
        let output = &mut self.output;
        let Some(place) = self.samples.get_mut(record.attr) else {
            return Ok(Kept::Broken);
        };
        if place.is_none() {
            let name = class.name();
            let plan = output.class(&name, class.fields(payload()))?;
            *place = Some((name, plan));
        }
        let Some((name, Some(plan))) = place else {
            return Ok(Kept::Broken);
        };
        let comm = self.threads.of(sample.tid);
        let kept = output.record(record.cpu, plan, record.time, &comm, |to| {
            class.give(&sample, header.big, to);
        })?;
        if kept == Kept::Yes {
            summary.event(name);
        }
        Ok(kept)
    }

    /// Records of losses are located where events were lost. At the end, perf adds the total of
    /// each event. The part of the totals that is in no earlier record counts as lost after the
    /// last event.
    fn lost(
        &mut self,
        header: &Header,
        record: &Record,
        summary: &mut Summary,
    ) -> Result<Kept, ImportError> {
        let at = if record.kind == kind::LOST {
            8..16
        } else {
            0..8
        };
        let Some(lost) = record.body.get(at).map(|bytes| number(bytes, header.big)) else {
            return Ok(Kept::Broken);
        };
        let is_sum = record.kind == kind::LOST_SAMPLES && record.has_no_time;
        if is_sum {
            if record.misc & LOST_TO_FILTER == 0 {
                self.lost_in_all = self.lost_in_all.saturating_add(lost);
            }
            return Ok(Kept::Yes);
        }
        self.output.discard(record.cpu, Some(record.time), lost)?;
        summary.lost = summary.lost.saturating_add(lost);
        Ok(Kept::Yes)
    }

    fn side(
        &mut self,
        header: &Header,
        record: &Record,
        summary: &mut Summary,
    ) -> Result<Kept, ImportError> {
        let attr = header.attrs.get(record.attr);
        // Records that perf itself adds have no trailer.
        let is_own = record.kind < kind::FIRST_OF_PERF;
        let trailer = attr.filter(|_| is_own).map_or(0, |attr| attr.trailer());
        let Ok(Some(mut side)) = Side::parse(record, trailer, header.big) else {
            return Ok(Kept::Broken);
        };
        let own = attr.filter(|_| is_own);
        let own = own.and_then(|attr| Sample::parse_trailer(attr, &record.body, header.big).ok());
        if let (Side::Switch { ids, .. }, Some(own)) = (&mut side, own) {
            *ids = [own.pid, own.tid];
        }
        let tid = match &side {
            Side::Comm { tid, comm, .. } => {
                self.threads.name(*tid, comm);
                *tid
            }
            Side::Fork {
                ids: [_, _, tid, parent],
                ..
            } => {
                self.threads.fork(*tid, *parent);
                *parent
            }
            Side::Exit {
                ids: [_, _, tid, _],
                ..
            } => *tid,
            _ => own.map_or(-1, |trailer| trailer.tid),
        };
        self.put(&side, tid, (record.time, record.cpu), summary)
    }

    /// Writes a record that is not a sample, for this thread.
    fn put(
        &mut self,
        side: &Side,
        tid: i32,
        (time, cpu): (u64, u32),
        summary: &mut Summary,
    ) -> Result<Kept, ImportError> {
        let output = &mut self.output;
        let Some(place) = self.sides.get_mut(side.index()) else {
            return Ok(Kept::Broken);
        };
        if place.is_none() {
            let plan = output.class(side.name(), side.add_to(payload()))?;
            *place = Some((side.name().to_owned(), plan));
        }
        let Some((name, Some(plan))) = place else {
            return Ok(Kept::Broken);
        };
        let comm = self.threads.of(tid);
        let kept = output.record(cpu, plan, time, &comm, |to| side.give(to))?;
        if kept == Kept::Yes {
            summary.event(name);
        }
        Ok(kept)
    }

    /// Writes the remaining records and ends all streams.
    pub(crate) fn finish(
        mut self,
        header: &Header,
        tally: &mut Tally,
        summary: &mut Summary,
    ) -> Result<(), ImportError> {
        self.write_early(header, tally, summary)?;
        if let Some(untold) = self
            .lost_in_all
            .checked_sub(summary.lost)
            .filter(|&lost| lost > 0)
        {
            let (time, cpu) = self.now;
            self.output.discard(cpu, Some(time), untold)?;
            summary.lost += untold;
        }
        self.output.finish()
    }
}
