//! Builds a history of a trace set, in parallel.
//!
//! Chunks of each CPU are folded into changes of attributes by slice of time ([`crate::kernel`]). Slices that are complete
//! go on to the file in jobs beside the fold ([`crate::pipeline`]).

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{
    Analysis, Chunk, Control, FoldError, Options, Record, Slice, StreamPlace, StreamRef, fold,
};
use tracebraid_follow::{Extent, Head, Input, NotRecorded, Packet, Recorded, Selection};
use tracebraid_kernel_model::KernelEvent;

use crate::attribute::{Attribute, AttributeKind};
use crate::checkpoint::{self, Checkpoint, Knowledge};
use crate::file::{self, HistoryError, Meta};
use crate::files::{self, Files};
use crate::kernel::{self, wants};
use crate::levels::{self, Levels};
use crate::marks::StreamMark;
use crate::pipeline::{Job, Pipeline};
use crate::settling::Settling;
use crate::slices::Slices;
use crate::user::{self, Definition, Follows, Plan, UserMachine};
use crate::writer::Writer;

/// Result of a build.
#[derive(Clone, Debug)]
pub struct Built {
    /// Traces, range and analysis of the history.
    pub meta: Meta,
    /// Bytes of the file.
    pub bytes: u64,
    /// Damage that was met on the way.
    pub damage: Vec<Damage>,
    /// Probable mistakes in the definition of an analysis, for people.
    pub doubts: Vec<String>,
}

/// Contents besides the states of CPUs, threads and disks.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Attributes of an analysis that a user defined.
    pub definition: Option<Definition>,
    /// Descriptors of processes, and bytes that are read and written.
    pub files: bool,
}

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] HistoryError),
    /// It was cancelled.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The definition of an analysis asks for too much.
    #[error("{0}")]
    Definition(String),
    /// There is nothing to tell.
    #[error(
        "no events that tell anything: a history needs kernel events of threads, CPUs or disks (sched_switch best of all; \
         wake-ups, system calls, interrupts, requests to disks), tracebraid's probes, or an analysis of the events that there are"
    )]
    Nothing,
}

/// Builds the history of a trace set, of which `paths` tells where it is, and writes it to a file; with what is asked
/// for besides.
///
/// # Errors
/// When the file cannot be written, `control` was told to cancel, or there is nothing to tell. Then there is no file.
pub fn build(
    set: &TraceSet,
    paths: &[PathBuf],
    asked: Asked,
    to: &Path,
    options: Options,
    control: &Control,
) -> Result<Built, BuildError> {
    let (analysis, meta) = analysis(set, paths, asked, to)?;
    analysis.run(set, meta, options, control)
}

/// The analysis that builds the history, and what is known of it before.
pub(crate) fn analysis(
    set: &TraceSet,
    paths: &[PathBuf],
    asked: Asked,
    to: &Path,
) -> Result<(HistoryAnalysis, Meta), BuildError> {
    let files = asked.files;
    let own = asked.definition.as_ref().map(|definition| file::Analysis {
        name: definition.name.clone(),
        text: definition.text.clone(),
    });
    let recorded = Arc::new(Recorded::of(set));
    let slices = Slices::of(set, &recorded);
    let times = checkpoint::times(&slices);
    let ground = Ground::of(set, &recorded, asked, &times)?;
    let meta = Meta {
        paths: paths.to_vec(),
        analysis: own,
        files,
        streams: StreamMark::of(set),
        ..Meta::default()
    };
    let writer = Writer::create(to, &meta)?;
    let output = Output::new(
        slices,
        times,
        ground.grid,
        (Settling::new(ground.levels()), writer),
    );
    let analysis = HistoryAnalysis {
        known: BTreeMap::new(),
        knowledge: Knowledge::default(),
        output,
        ground,
    };
    Ok((analysis, meta))
}

/// Facts of a trace set that are known before its events are read.
#[derive(Debug)]
pub(crate) struct Ground {
    input: Input,
    /// Of an analysis that a user defined.
    pub(crate) plan: Option<Plan>,
    /// How descriptors are followed, if that is asked for.
    files: Option<Files>,
    begin: i64,
    end: i64,
    bytes: u64,
    /// The finest one of the coarse levels.
    pub(crate) grid: i64,
}

/// Says that a path of a user's analysis is that of something else, which has it first.
fn shadows(custom: &[String]) -> Option<String> {
    let is_known =
        |path: &&String| Attribute::parse(path, 0).is_some_and(|known| known.kind() != AttributeKind::Custom);
    let path = custom.iter().find(is_known)?;
    Some(format!(
        "`{path}`: this attribute is there without the analysis too, and both are shown: give it another path"
    ))
}

impl Ground {
    /// CPUs that were not recorded, or not from the beginning.
    pub(crate) fn not_recorded(&self) -> Vec<NotRecorded> {
        self.input.recorded.missing()
    }

    /// Whether it is told who runs, but not what system calls are made.
    fn lacks_calls(&self) -> bool {
        let is_call = |event: &KernelEvent| matches!(event, KernelEvent::Entry(_) | KernelEvent::Exit(_));
        let is_switch = |event: &KernelEvent| matches!(event, KernelEvent::Switch(_));
        self.input.sources.has(is_switch) && !self.input.sources.has(is_call)
    }

    /// Of a trace set whose state may be kept at those times, in nanoseconds from the origin.
    pub(crate) fn of(
        set: &TraceSet,
        recorded: &Arc<Recorded>,
        asked: Asked,
        times: &[i64],
    ) -> Result<Ground, BuildError> {
        let plan = user::with_probes(set, asked.definition).map(|definition| Plan::new(set, definition));
        let plan = plan.transpose().map_err(BuildError::Definition)?;
        let files = asked.files.then(|| Files::new(times));
        let of_files = |event: &KernelEvent| files.as_ref().is_some_and(|files| files.wants(event));
        let input = Input::sharing(set, Some(recorded), Selection::default(), |event| {
            wants(event) || of_files(event)
        });
        let (begin, end) = extent(set, &input.head(), plan.as_ref()).ok_or(BuildError::Nothing)?;
        let streams = set.traces.iter().flat_map(|trace| &trace.streams);
        let packets = streams.flat_map(|stream| stream.packets.iter());
        let bytes: u64 = packets.map(|packet| packet.bytes).sum();
        let grid = levels::finest(end.0.abs_diff(begin.0), bytes);
        Ok(Ground {
            input,
            plan,
            files,
            begin: begin.0,
            end: end.0,
            bytes,
            grid,
        })
    }

    /// Whether descriptors are followed.
    pub(crate) fn follows_files(&self) -> bool {
        self.files.is_some()
    }

    /// Facts that an analysis of a user depends on.
    pub(crate) fn follows(&self) -> Follows {
        self.plan.as_ref().map(Plan::follows).unwrap_or_default()
    }

    /// Whether there is more to know at a time than the values of attributes.
    pub(crate) fn needs_checkpoints(&self) -> bool {
        self.plan.is_some() || self.files.is_some()
    }

    /// The coarse levels, of which nothing is known yet.
    pub(crate) fn levels(&self) -> Levels {
        Levels::new(self.grid, self.end.abs_diff(self.begin))
    }

    /// When traces of machines end, if any does before others.
    fn ends(&self, traces: usize) -> Vec<Option<i64>> {
        let traces = (0..).take(traces);
        let ends: Vec<Option<i64>> = traces.map(|trace| self.input.known_until_of(trace)).collect();
        match ends.iter().flatten().any(|&end| end < self.end) {
            true => ends,
            false => Vec::new(),
        }
    }

    /// Adds to what a history is of what is known now.
    fn describe(&self, set: &TraceSet, meta: Meta) -> Meta {
        let head = self.input.head();
        let cpus = self.input.sources.cpus();
        let mut cpus: Vec<(u32, u32)> = cpus.map(|cpu| (cpu.trace, cpu.cpu)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Meta {
            program: concat!("tracebraid ", env!("CARGO_PKG_VERSION")).to_owned(),
            hosts: (0..set.traces.len())
                .map(|trace| name_of_host(&head, trace))
                .collect(),
            cpus,
            begin: self.begin,
            end: self.end,
            ends: self.ends(set.traces.len()),
            without_calls: (0..set.traces.len() as u32)
                .filter(|&trace| !self.input.sources.tells_calls(trace as usize))
                .collect(),
            not_recorded: self.not_recorded(),
            bytes: self.bytes,
            ..meta
        }
    }
}

/// From the first to the last event record of the traces that are read.
fn extent(set: &TraceSet, head: &Head, plan: Option<&Plan>) -> Option<(Timestamp, Timestamp)> {
    let of_kernel = head.begin.zip(head.end);
    let of_kernel = of_kernel.map(|(first, last)| Extent { first, last });
    let reads = |trace: usize| {
        let mut streams = StreamRef::all(set).filter(|stream| stream.trace as usize == trace);
        plan.is_some_and(|plan| streams.any(|stream| plan.reads(stream)))
    };
    let of_user = Extent::of(set, reads);
    let extent = of_kernel.into_iter().chain(of_user).reduce(Extent::join)?;
    Some((extent.first, extent.last))
}

fn name_of_host(head: &tracebraid_follow::Head, trace: usize) -> Option<String> {
    let host = head.hosts.iter().find(|host| host.trace as usize == trace)?;
    Some(host.name.clone().unwrap_or_else(|| format!("trace-{trace}")))
}

/// The analysis whose report is a file.
#[derive(Debug)]
pub(crate) struct HistoryAnalysis {
    pub(crate) ground: Ground,
    /// Values of attributes where reading begins.
    pub(crate) known: BTreeMap<Attribute, u64>,
    /// The rest of the state there.
    pub(crate) knowledge: Knowledge,
    pub(crate) output: Output,
}

/// State after some chunks. Once complete slices are handed on, the size is bounded by the number of CPUs, threads, disks and
/// paths of a user's analysis, not by event records (tested in `bounds`). With descriptors, `files` also has the changes of
/// descriptors in the last minute, however many ([`tracebraid_files::FollowedFiles`]). The values of all attributes, which
/// settling needs, and the index of the file, which has an entry for each block, are in [`Output`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    pub(crate) kernel: kernel::Partial,
    pub(crate) user: user::Partial,
    pub(crate) files: files::Partial,
}

/// Facts that are complete at the end only.
pub(crate) struct Told {
    /// How often events were lost.
    losses: u64,
    machine: UserMachine,
}

impl HistoryAnalysis {
    /// Reads the traces and completes the file; `meta` says what is known besides, and how often events were lost before.
    pub(crate) fn run(
        self,
        set: &TraceSet,
        meta: Meta,
        options: Options,
        control: &Control,
    ) -> Result<Built, BuildError> {
        let mut doubts = self
            .ground
            .plan
            .as_ref()
            .map_or_else(Vec::new, |plan| plan.doubts(set));
        let outcome = fold(set, &self, options, control)?;
        let Told { losses, machine } = outcome.report;
        if machine.left_out > 0 {
            let left_out = machine.left_out;
            doubts.push(format!(
                "there are too many attributes: {left_out} changes of others are left out"
            ));
        }
        doubts.extend(self.ground.input.head().note());
        if self.ground.lacks_calls() {
            doubts.push(
                "no system calls were recorded: threads that are at work in the kernel look as if they ran their programs \
                 (cpu/N/state)"
                    .to_owned(),
            );
        }
        let custom = machine.into_paths();
        doubts.extend(shadows(&custom));
        let meta = Meta {
            losses: meta.losses + losses,
            custom,
            ..self.ground.describe(set, meta)
        };
        let bytes = control.serially("history index", || self.output.finish(meta.clone()))?;
        let damage = outcome.damage;
        Ok(Built {
            meta,
            bytes,
            damage,
            doubts,
        })
    }

    /// Hands on the slices before a time; all, if none is given.
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

    /// Jobs that can be done now.
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

    /// Follows what is before a time, and keeps what is known at some times until then.
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

    /// A packet of a CPU begins; events may have been lost before it.
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
            let others = StreamRef::all(set).filter(|stream| plan.reads(*stream) && !known.contains(stream));
            groups.extend(others.map(|stream| vec![stream]));
        }
        groups
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let asks = |plan: &Plan| plan.wants(trace, stream_class, class);
        self.ground.input.wants(trace, stream_class, class) || self.ground.plan.as_ref().is_some_and(asks)
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
        // What an event tells belongs to the thread that it ends, if it is a switch.
        if let Some(plan) = &self.ground.plan {
            partial.user.event(plan, record);
        }
        let follows = self.ground.plan.as_ref().filter(|plan| plan.needs_threads());
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
                // Some of the events tell of descriptors only.
                if !wants(&event.model.event) {
                    return;
                }
            }
            partial.kernel.event(slices, &self.ground.input, event, body);
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

    fn slices<'a>(&'a self, partial: &mut Partial, watermark: Timestamp) -> Vec<Slice<'a, Partial>> {
        // After the last chunk nothing is left.
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

/// From complete slices to the file.
#[derive(Debug)]
pub(crate) struct Output {
    slices: Slices,
    /// When checkpoints are made of what an analysis knows.
    times: Vec<i64>,
    checkpoints: Mutex<Vec<Checkpoint>>,
    /// Only who merges and composes takes it.
    pipeline: Mutex<Pipeline>,
}

impl Output {
    /// At these times it is kept what is known.
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

    /// Does what is left, on this thread.
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

    fn finish(self, meta: Meta) -> Result<u64, HistoryError> {
        let pipeline = self.pipeline.into_inner().unwrap_or_else(PoisonError::into_inner);
        let checkpoints = self.checkpoints.into_inner();
        pipeline.finish(meta, checkpoints.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whoever panicked is reported by the scope of threads; what is behind the lock is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
