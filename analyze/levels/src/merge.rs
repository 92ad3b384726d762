//! The second pass: windows of time beside each other, written in order.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::index::IndexEntry;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::write::trace::TraceWriter;
use tracebraid_ctf::write::{PlacedFiles, WriteError};
use tracebraid_engine::{Analysis, Chunk, Composition, Record, Slice, StreamPlace, StreamRef};
use tracebraid_kernel_model::CpuSource;

use crate::catalogue::{Catalogue, OF_CPUS, Plans, WITHOUT_CPU};
use crate::encode::{self, Packets, Room, SEQUENCE_AT, Scene, Written};
use crate::intake::Intake;
use crate::names::{NAME, short};
use crate::place::{Ground, place};
use crate::replay::{NO_CPU, Placed, Replay, replay};
use crate::sources::{Source, Sources};
use crate::states::{Lwp, States};
use crate::summary::Counts;
use crate::survey::window_of;
use crate::window::{Collector, CpuRecords, Window};

/// A stream of the super-trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum OutStream {
    Cpu(u32),
    /// Records of the user stream with this number that have no known CPU.
    User(u32),
}

/// State of a chunk.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    /// Records of the chunk until it ends.
    #[serde(skip)]
    window: Window,
    #[serde(skip)]
    workspace: Workspace,
    /// Streams of windows, in order.
    done: Vec<(OutStream, Packets)>,
    counts: Counts,
}

/// Memory that the windows of a worker use one after the other.
#[derive(Default)]
struct Workspace {
    placed: Vec<Placed>,
    of_cpus: BTreeMap<u32, Vec<Placed>>,
    replay: Replay,
    room: Room,
}

/// Files of the super-trace.
struct Out {
    trace: TraceWriter,
    /// Files, bytes and packets so far.
    streams: BTreeMap<OutStream, (Arc<PlacedFiles>, u64, u64)>,
    error: Option<WriteError>,
}

/// The second pass as an analysis of the engine.
pub(crate) struct Merge<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) windows: &'a [Timestamp],
    pub(crate) states: &'a States,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) plans: &'a Plans,
    pub(crate) names: BTreeMap<i32, String>,
    names_of_lwps: Vec<[u8; NAME]>,
    intake: Intake<'a>,
    pub(crate) base: i64,
    pub(crate) bound: i64,
    /// Times that the kernel trace covers. A CPU whose packets end earlier had nothing to record.
    kernel: (i64, i64),
    out: Mutex<Out>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(
        sources: &'a Sources,
        windows: &'a [Timestamp],
        states: &'a States,
        (catalogue, plans): (&'a Catalogue, &'a Plans),
        trace: TraceWriter,
        bound: i64,
    ) -> Merge<'a> {
        let names = sources.process_names();
        let name = |lwp: &Lwp| short(names.get(&lwp.pid).map_or(b"", |name| name.as_bytes()));
        Merge {
            sources,
            windows,
            states,
            catalogue,
            plans,
            names_of_lwps: states.lwps.iter().map(name).collect(),
            names,
            intake: Intake::new(sources, catalogue, &plans.copied),
            base: sources.base(),
            bound,
            kernel: covered(sources),
            out: Mutex::new(Out {
                trace,
                streams: BTreeMap::new(),
                error: None,
            }),
        }
    }

    /// Gives all files their names.
    pub(crate) fn close(self) -> Result<(), WriteError> {
        let out = self
            .out
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = out.error {
            return Err(error);
        }
        out.streams
            .values()
            .try_for_each(|(files, ..)| files.finish())
    }

    fn fail(&self, error: WriteError) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.error.get_or_insert(error);
    }

    /// True once a write has failed: the rest would be in vain.
    fn has_failed(&self) -> bool {
        self.out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .error
            .is_some()
    }

    fn collector(&self) -> Collector<'_> {
        Collector {
            sources: self.sources,
            states: self.states,
            intake: &self.intake,
        }
    }

    /// Makes the packets of a window.
    fn write(&self, partial: &mut Partial, chunk: &Chunk) -> Result<(), WriteError> {
        let mut window = std::mem::take(&mut partial.window);
        for &cpu in self.states.cpus.keys() {
            window.cpus.entry(cpu).or_default();
        }
        let number = window_of(self.windows, chunk.from);
        let span = (chunk.from.0, chunk.until.0);
        let ground = Ground {
            span,
            states: self.states,
            number,
            has_kernel: self.sources.kernel.is_some(),
            kernel: self.kernel,
            bound: self.bound,
        };
        let counts = &mut partial.counts;
        let mut workspace = std::mem::take(&mut partial.workspace);
        place(&ground, &window, &mut workspace.placed, counts);
        let before = std::mem::take(&mut workspace.replay);
        let placed = &mut workspace.placed;
        let replay = replay(self.states, &window, (number, span), placed, before);
        for (kind, count) in &replay.violations {
            *counts.violations.entry(*kind).or_default() += count;
        }
        counts.user += window.users.len() as u64;
        counts.refused += window.refused;
        counts.without_cpu += window.without_cpu;
        let scene = Scene {
            sources: self.sources,
            states: self.states,
            plans: self.plans,
            window: &window,
            replay: &replay,
            names: &self.names,
            names_of_lwps: &self.names_of_lwps,
            base: self.base,
            number,
            span,
        };
        let written = self.streams(partial, scene, &mut workspace, &ground);
        window.clear();
        workspace.replay = replay;
        (partial.window, partial.workspace) = (window, workspace);
        written
    }

    fn streams(
        &self,
        partial: &mut Partial,
        scene: Scene<'_>,
        workspace: &mut Workspace,
        ground: &Ground<'_>,
    ) -> Result<(), WriteError> {
        let Workspace {
            placed,
            of_cpus,
            room,
            ..
        } = workspace;
        of_cpus.values_mut().for_each(Vec::clear);
        let mut of_users: BTreeMap<u32, Vec<Placed>> = BTreeMap::new();
        for &own in &*placed {
            match own.cpu {
                NO_CPU => {
                    let user = scene.window.users.get(own.record as usize);
                    let stream = user.map_or(0, |user| user.stream);
                    of_users.entry(stream).or_default().push(own);
                }
                cpu => of_cpus.entry(cpu).or_default().push(own),
            }
        }
        let nothing = CpuRecords::default();
        let cpus: BTreeSet<u32> = scene
            .window
            .cpus
            .keys()
            .chain(
                of_cpus
                    .iter()
                    .filter(|own| !own.1.is_empty())
                    .map(|own| own.0),
            )
            .copied()
            .collect();
        let mut describes = ground.number == 0;
        for cpu in cpus {
            let of_cpu = scene.window.cpus.get(&cpu).unwrap_or(&nothing);
            let own = of_cpus.get_mut(&cpu);
            let own = own.map_or(&mut [][..], |own| own.as_mut_slice());
            own.sort_by_key(|own| (own.time, own.after, own.is_late));
            let first = of_cpu.records.first().map(|record| record.time);
            let first = of_cpu
                .from
                .or(first)
                .into_iter()
                .chain(own.first().map(|own| own.time))
                .min();
            if let Some(first) = first.filter(|_| std::mem::take(&mut describes)) {
                let first = first.max(scene.span.0);
                partial.add(
                    OutStream::Cpu(cpu),
                    encode::existing(scene, cpu, ground.running(cpu), first, room)?,
                );
            }
            let made = encode::cpu(scene, (cpu, of_cpu), own, ground.running(cpu), room)?;
            partial.add(OutStream::Cpu(cpu), made);
        }
        for (stream, own) in of_users {
            partial.add(
                OutStream::User(stream),
                encode::without_cpu(scene, stream, &own, room)?,
            );
        }
        Ok(())
    }

    /// Takes the place of packets in the files of their stream.
    fn place_of(
        &self,
        stream: OutStream,
        packets: &Packets,
    ) -> Option<(Arc<PlacedFiles>, u64, u64)> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Out {
            trace,
            streams,
            error,
        } = &mut *out;
        let (files, bytes, count) = match streams.entry(stream) {
            Entry::Occupied(own) => own.into_mut(),
            Entry::Vacant(new) => {
                let name = match stream {
                    OutStream::Cpu(cpu) => format!("cpu_{cpu}"),
                    OutStream::User(number) => format!("user_{number}"),
                };
                match trace.placed_files(&name) {
                    Ok(files) => new.insert((Arc::new(files), 0, 0)),
                    Err(failed) => {
                        error.get_or_insert(failed);
                        return None;
                    }
                }
            }
        };
        let place = (files.clone(), *bytes, *count);
        *bytes += packets.bytes.len() as u64;
        *count += packets.entries.len() as u64;
        Some(place)
    }

    /// Writes packets at their offset in the file.
    fn put(
        &self,
        stream: OutStream,
        packets: &mut Packets,
        (files, offset, number): &(Arc<PlacedFiles>, u64, u64),
    ) -> Result<(), WriteError> {
        let (class, id) = match stream {
            OutStream::Cpu(cpu) => (OF_CPUS, cpu),
            OutStream::User(user) => (WITHOUT_CPU, user),
        };
        let mut entries = Vec::with_capacity(packets.entries.len());
        for (sequence, entry) in (*number..).zip(&packets.entries) {
            let [at, packet_bits, content_bits, begin, end, discarded] = *entry;
            let place = at as usize + SEQUENCE_AT;
            if let Some(place) = packets.bytes.get_mut(place..place + 8) {
                place.copy_from_slice(&sequence.to_le_bytes());
            }
            entries.push(IndexEntry {
                offset: at,
                packet_bits,
                content_bits,
                begin,
                end,
                discarded,
                stream_class: class as u64,
                stream_id: Some(id.into()),
                sequence: Some(sequence),
            });
        }
        files.write(&packets.bytes, &entries, *offset, *number)
    }
}

impl Partial {
    fn add(&mut self, stream: OutStream, (packets, written): (Packets, Written)) {
        self.counts.copied += written.copied;
        self.counts.derived += written.derived;
        self.counts.refused += written.refused;
        if !packets.entries.is_empty() {
            self.done.push((stream, packets));
        }
    }
}

/// The times that the packets of the kernel trace cover.
fn covered(sources: &Sources) -> (i64, i64) {
    let mut covered = (i64::MAX, i64::MIN);
    for stream in sources.group() {
        let source = sources.source(sources.number(stream));
        let (Some(Source::Kernel(_)), Some((trace, content))) = (source, stream.of(&sources.set))
        else {
            continue;
        };
        let Some(clock) = trace.clock(content) else {
            continue;
        };
        let time = |cycles: Option<u64>| cycles.map(|cycles| clock.timestamp(cycles).0);
        if let Some(packet) = content.packets.first() {
            covered.0 = covered.0.min(time(packet.begin).unwrap_or(i64::MIN));
        }
        // A packet whose end is unknown may reach any time.
        if let Some(packet) = content.packets.last() {
            covered.1 = covered.1.max(time(packet.end).unwrap_or(i64::MAX));
        }
    }
    covered
}

impl Analysis for Merge<'_> {
    type Partial = Partial;
    type Report = Counts;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        vec![self.sources.group()]
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let chosen = self.catalogue.chosen.get(&(trace as u32, stream_class));
        chosen.is_some_and(|chosen| class < chosen.by_class.len())
    }

    fn begin(&self, chunk: &Chunk) -> Partial {
        let mut partial = Partial::default();
        for slice in &chunk.slices {
            let number = self.sources.number(slice.stream);
            let Some(Source::Kernel(CpuSource::Packet(cpu))) = self.sources.source(number) else {
                continue;
            };
            let Some((trace, stream)) = slice.stream.of(&self.sources.set) else {
                continue;
            };
            let Some(clock) = trace.clock(stream) else {
                continue;
            };
            let first = stream.packets.get(slice.packets.start);
            let begins = first
                .and_then(|packet| packet.begin)
                .map(|begin| clock.timestamp(begin));
            // A packet that began in an earlier window has been counted there.
            let before = match begins {
                Some(begins) if begins < chunk.from => Some(slice.packets.start),
                _ => slice.packets.start.checked_sub(1),
            };
            let before = before.and_then(|before| stream.packets.get(before));
            let of_cpu = partial.window.cpus.entry(*cpu).or_default();
            of_cpu.discarded = before.and_then(|packet| packet.discarded).unwrap_or(0);
        }
        partial
    }

    /// Windows of a worker use the same memory, one after the other.
    fn exchange(&self, partial: &mut Partial, resident: &mut Partial) {
        std::mem::swap(&mut partial.workspace, &mut resident.workspace);
        let (own, other) = (&mut partial.window, &mut resident.window);
        std::mem::swap(&mut own.buffer, &mut other.buffer);
        std::mem::swap(&mut own.users, &mut other.users);
        std::mem::swap(&mut own.acts, &mut other.acts);
        for (cpu, of_cpu) in &mut own.cpus {
            let of_other = other.cpus.entry(*cpu).or_default();
            std::mem::swap(&mut of_cpu.records, &mut of_other.records);
        }
    }

    fn packet(&self, partial: &mut Partial, place: &StreamPlace<'_>) {
        self.collector().packet(&mut partial.window, place);
    }

    fn event(&self, partial: &mut Partial, record: &mut Record<'_>) {
        self.collector().add(&mut partial.window, record);
    }

    fn end(&self, partial: &mut Partial, chunk: &Chunk) {
        if self.has_failed() {
            partial.window = Window::default();
            return;
        }
        if let Err(error) = self.write(partial, chunk) {
            self.fail(error);
        }
    }

    fn merge(&self, earlier: &mut Partial, later: Partial) {
        earlier.counts.add(&later.counts);
        earlier.done.extend(later.done);
    }

    fn slices<'a>(&'a self, partial: &mut Partial, _: Timestamp) -> Vec<Slice<'a, Partial>> {
        let done = std::mem::take(&mut partial.done);
        let slice = |(stream, mut packets): (OutStream, Packets)| -> Option<Slice<'a, Partial>> {
            let place = self.place_of(stream, &packets)?;
            Some(Box::new(move |resident: &mut Partial| {
                if let Err(error) = self.put(stream, &mut packets, &place) {
                    self.fail(error);
                }
                resident.workspace.room.give_back(packets.bytes);
                let nothing: Composition<'a, Partial> = Box::new(|_| {});
                nothing
            }))
        };
        done.into_iter().filter_map(slice).collect()
    }

    fn finish(&self, partial: Partial) -> Counts {
        partial.counts
    }
}
