//! The analysis whose report is a file: chunks become slices, which are written once they are
//! complete.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, Slice, StreamPlace, StreamRef};
use tracebraid_follow::Packet;
use tracebraid_kernel_model::KernelEvent;

use crate::attribute::Attribute;
use crate::checkpoint::{self, Checkpoint, Knowledge};
use crate::file::{HistoryError, Meta};
use crate::files::{self, Files};
use crate::ground::Ground;
use crate::kernel::{self, wants};
use crate::pipeline::{Job, Pipeline};
use crate::settling::Settling;
use crate::slices::Slices;
use crate::user::{self, Plan, UserMachine};
use crate::writer::Writer;

/// The analysis that builds a history file.
#[derive(Debug)]
pub(crate) struct HistoryAnalysis {
    pub(crate) ground: Ground,
    /// Values of attributes at the start of reading.
    pub(crate) known: BTreeMap<Attribute, u64>,
    /// The rest of the state at that time.
    pub(crate) knowledge: Knowledge,
    pub(crate) output: Output,
}

/// State after some chunks. Once complete slices are passed on, the size is bounded by the numbers
/// of CPUs, threads, disks and paths of a user analysis, not by that of event records (tested in
/// `bounds`). With descriptors, `files` also contains all changes of descriptors in the last minute
/// ([`tracebraid_files::FollowedFiles`]). The values of all attributes, which settling needs, and
/// the index of the file, which has an entry for each block, are in [`Output`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    pub(crate) kernel: kernel::Partial,
    pub(crate) user: user::Partial,
    pub(crate) files: files::Partial,
}

/// Facts that are complete only at the end.
pub(crate) struct Told {
    /// Number of losses of events.
    pub(crate) losses: u64,
    pub(crate) machine: UserMachine,
}

impl HistoryAnalysis {
    /// Passes on the slices before a time, or all.
    fn hand_on(&self, partial: &mut Partial, until: Option<i64>) {
        if self.ground.plan.is_some() || self.ground.files.is_some() {
            self.play_and_keep(partial, until);
        }
        let more = [&mut partial.user.pieces, &mut partial.files.pieces];
        let mut pipeline = self.output.pipeline();
        let to = |slice, pieces| pipeline.take(slice, pieces);
        let recorded = &self.ground.input.recorded;
        partial
            .kernel
            .hand_on((&self.output.slices, recorded), until, more, to);
    }

    /// Jobs that can run now.
    fn jobs(&self) -> Vec<Slice<'_, Partial>> {
        let jobs = self.output.pipeline().take_jobs();
        jobs.into_iter().map(|job| self.slice(job)).collect()
    }

    fn slice(&self, job: Job) -> Slice<'_, Partial> {
        Box::new(move |_: &mut Partial| {
            let done = job.run();
            Box::new(move |_: &mut Partial| self.output.pipeline().done(done))
        })
    }

    /// Plays the slices before a time, and stores the state at the checkpoints among them.
    fn play_and_keep(&self, partial: &mut Partial, until: Option<i64>) {
        let times = self
            .output
            .times
            .get(partial.user.checkpoints..)
            .unwrap_or_default();
        for &time in times
            .iter()
            .take_while(|&&time| until.is_none_or(|until| time <= until))
        {
            self.play(partial, Some(time));
            partial.user.checkpoints += 1;
            let follows = self.ground.follows();
            let files = self.ground.files.as_ref();
            let files = files.map(|_| Files::keep(&mut partial.files, time));
            let kept = checkpoint::keep(time, follows, partial.user.machine(), files);
            lock(&self.output.checkpoints).extend(kept);
        }
        self.play(partial, until);
    }

    fn play(&self, partial: &mut Partial, until: Option<i64>) {
        let slices = &self.output.slices;
        if let Some(plan) = &self.ground.plan {
            partial.user.play(plan, slices, until);
        }
        if let Some(files) = &self.ground.files {
            files.play(&mut partial.files, slices, until);
        }
    }

    /// Begins a packet of a CPU; events may have been lost before it.
    fn of_kernel(&self, partial: &mut Partial, packet: &Packet) {
        partial.kernel.packet(&self.output.slices, packet);
        if let Some(files) = &self.ground.files {
            files.packet(&mut partial.files, packet);
        }
    }
}

impl Analysis for HistoryAnalysis {
    type Partial = Partial;
    type Report = Told;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let mut groups = self.ground.input.groups();
        if let Some(plan) = &self.ground.plan {
            let known: HashSet<StreamRef> = groups.iter().flatten().copied().collect();
            let others =
                StreamRef::all(set).filter(|stream| plan.reads(*stream) && !known.contains(stream));
            groups.extend(others.map(|stream| vec![stream]));
        }
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let asks = |plan: &Plan| plan.wants(trace, stream_class, class);
        self.ground.input.wants(trace, stream_class, class)
            || self.ground.plan.as_ref().is_some_and(asks)
    }

    fn begin(&self, chunk: &Chunk) -> Partial {
        let files = self.ground.files.as_ref();
        let files = files.map(|files| match chunk.index {
            0 => files.behind(self.knowledge.files.as_ref()),
            _ => files::Partial::default(),
        });
        let kernel = match chunk.index {
            0 => kernel::Partial::behind(&self.known),
            _ => kernel::Partial::new(false),
        };
        Partial {
            kernel,
            user: match chunk.index {
                0 => user::Partial::behind(self.knowledge.machine.clone()),
                _ => user::Partial::default(),
            },
            files: files.unwrap_or_default(),
        }
    }

    fn packet(&self, partial: &mut Partial, packet: &StreamPlace<'_>) {
        if let Some(plan) = &self.ground.plan {
            partial.user.packet(plan, packet);
        }
        for packet in self.ground.input.any_packets(packet) {
            self.of_kernel(partial, &packet);
        }
    }

    fn cut(&self, partial: &mut Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        for packet in self.ground.input.any_packets(packet) {
            self.of_kernel(partial, &packet.cut(time.0));
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut Partial, record: &mut Record<'_>) {
        let slices = &self.output.slices;
        // A switch belongs to the thread that leaves the CPU.
        if let Some(plan) = &self.ground.plan {
            partial.user.event(plan, record);
        }
        let follows = self
            .ground
            .plan
            .as_ref()
            .filter(|plan| plan.needs_threads());
        let place = (record.time.0, record.number);
        self.ground.input.event(record, |event, body| {
            if let (Some(plan), KernelEvent::Switch(switch)) = (follows, &event.model.event)
                && let Some(next) = switch.next_tid.get(body)
            {
                let cpu = (event.cpu.trace, event.cpu.cpu);
                partial.user.switch(plan, place, cpu, next);
            }
            if let Some(files) = &self.ground.files {
                files.event(&mut partial.files, event, body);
                // Some events affect descriptors only.
                if !wants(&event.model.event) {
                    return;
                }
            }
            partial
                .kernel
                .event(slices, &self.ground.input, event, body);
        });
    }

    fn end(&self, partial: &mut Partial, _: &Chunk) {
        partial.kernel.end();
        partial.user.end();
    }

    fn merge(&self, earlier: &mut Partial, later: Partial) {
        earlier.kernel.merge(&self.output.slices, later.kernel);
        if let Some(files) = &self.ground.files {
            files.merge(&mut earlier.files, later.files);
        }
        earlier.user.merge(later.user);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut Partial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, Partial>> {
        // No slice remains after the last chunk.
        let until = Some(watermark.0).filter(|&until| until < i64::MAX);
        self.hand_on(partial, until);
        self.jobs()
    }

    fn follow_up<'a>(&'a self, _: &mut Partial) -> Vec<Slice<'a, Partial>> {
        self.jobs()
    }

    fn finish(&self, mut partial: Partial) -> Told {
        self.hand_on(&mut partial, None);
        self.output.complete();
        Told {
            losses: partial.kernel.losses,
            machine: partial.user.into_machine(),
        }
    }
}

/// Writes complete slices to the file.
#[derive(Debug)]
pub(crate) struct Output {
    slices: Slices,
    /// Times of checkpoints of the state of a user analysis.
    times: Vec<i64>,
    checkpoints: Mutex<Vec<Checkpoint>>,
    /// Locked only by merging and composing.
    pipeline: Mutex<Pipeline>,
}

impl Output {
    /// `times`: when the state is stored.
    pub(crate) fn new(
        slices: Slices,
        times: Vec<i64>,
        grid: i64,
        (settling, writer): (Settling, Writer),
    ) -> Output {
        Output {
            times,
            checkpoints: Mutex::default(),
            pipeline: Mutex::new(Pipeline::new(slices.clone(), grid, settling, writer)),
            slices,
        }
    }

    pub(crate) fn pipeline(&self) -> MutexGuard<'_, Pipeline> {
        lock(&self.pipeline)
    }

    /// Runs the remaining jobs on this thread.
    fn complete(&self) {
        loop {
            let jobs = self.pipeline().take_jobs();
            if jobs.is_empty() {
                return;
            }
            for job in jobs {
                let done = job.run();
                self.pipeline().done(done);
            }
        }
    }

    pub(crate) fn finish(self, meta: Meta) -> Result<u64, HistoryError> {
        let pipeline = self
            .pipeline
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let checkpoints = self.checkpoints.into_inner();
        pipeline.finish(meta, checkpoints.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Ignores poisoning: the scope of threads reports a panic, and the locked value is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
