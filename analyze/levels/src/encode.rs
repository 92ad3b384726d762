//! Writes the records of a window as packets: one encoder for each stream of the super-trace.
//! `copied` writes the records of the sources, `derived` the kernel events that stand for steps of
//! user-level scheduling, `giver` re-encodes fields.

mod body_bytes;
mod copied;
mod derived;
mod giver;

use tracebraid_ctf::index::IndexEntry;
use tracebraid_ctf::write::WriteError;
use tracebraid_ctf::write::stream::{PacketRoom, PacketSink, PacketSize, StreamWriter};
use tracebraid_follow::Interrupts;

use body_bytes::Context;

use crate::catalogue::{OF_CPUS, Plans, WITHOUT_CPU};
use crate::intervals::{begun, learned};
use crate::names::NAME;
use crate::replay::{CpuMoment, Current, Derived, NONE, Placed, Replay, UNKNOWN, Who};
use crate::sources::Sources;
use crate::states::States;
use crate::ults::Ult;
use crate::vocabulary::UNKNOWN_ULT;
use crate::window::{CpuRecords, KernelRecord, Note, Window};

/// Size of packets in bytes.
const PACKET: PacketSize = PacketSize::UpTo(1 << 18);
/// Offset of the sequence number in a packet of LTTng's layout.
pub(crate) const SEQUENCE_AT: usize = 64;

/// Packets of a stream within a window.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Packets {
    pub(crate) bytes: Vec<u8>,
    /// Offset, size and content size in bits, begin, end, discarded.
    pub(crate) entries: Vec<[u64; 6]>,
}

/// Keeps packets in memory.
#[derive(Debug, Default)]
struct Kept(Packets);

/// Memory that encoders use one after the other.
#[derive(Debug, Default)]
pub(crate) struct Room {
    packet: PacketRoom,
    /// Packets that have been written, whose memory is used again.
    written: Vec<Vec<u8>>,
}

impl Room {
    /// Takes memory for packets that are no longer needed.
    pub(crate) fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.written.len() < MOST_SPARE {
            self.written.push(bytes);
        }
    }
}

/// Most lists of packets whose memory a worker keeps: one that only writes would keep them all.
const MOST_SPARE: usize = 64;

impl PacketSink for Kept {
    type Output = Packets;

    fn packet(&mut self, bytes: &[u8], entry: &IndexEntry) -> Result<(), WriteError> {
        self.0.bytes.extend_from_slice(bytes);
        self.0.entries.push([
            entry.offset,
            entry.packet_bits,
            entry.content_bits,
            entry.begin,
            entry.end,
            entry.discarded,
        ]);
        Ok(())
    }

    fn finish(self) -> Result<Packets, WriteError> {
        Ok(self.0)
    }
}

/// Counts of an encoder.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Written {
    pub(crate) copied: u64,
    pub(crate) derived: u64,
    pub(crate) refused: u64,
}

/// All that encoders of a window share.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) states: &'a States,
    pub(crate) plans: &'a Plans,
    pub(crate) window: &'a Window,
    pub(crate) replay: &'a Replay,
    /// Name of each process.
    pub(crate) names: &'a std::collections::BTreeMap<i32, String>,
    /// Name of each LWP: that of its process.
    pub(crate) names_of_lwps: &'a [[u8; NAME]],
    /// Time of value 0 of the super-trace's clock.
    pub(crate) base: i64,
    /// Number of the window.
    pub(crate) number: u32,
    /// Begin and end of the window.
    pub(crate) span: (i64, i64),
}

/// Writes one stream.
struct Encoder<'a> {
    scene: Scene<'a>,
    writer: StreamWriter<Kept>,
    /// Index of the stream class.
    stream: usize,
    cpu: u32,
    running: i32,
    current: Current,
    interrupts: Interrupts,
    /// Index of the next entry of [`Replay::learned`].
    learned: usize,
    /// The latest user-level thread in a context: its index, virtual thread id and id.
    known: (Current, i32, u64),
    slots: Vec<u64>,
    /// Cycles of the latest record.
    last: u64,
    written: Written,
}

/// Writes the records of a CPU: those of the kernel, and `placed` user records.
pub(crate) fn cpu(
    scene: Scene<'_>,
    (cpu, of_cpu): (u32, &CpuRecords),
    placed: &[Placed],
    running: Option<i32>,
    room: &mut Room,
) -> Result<(Packets, Written), WriteError> {
    let context = [("cpu_id", i64::from(cpu))];
    let mut encoder = Encoder::new(scene, (OF_CPUS, u64::from(cpu)), &context, room)?;
    encoder.cpu = cpu;
    encoder.writer.discard(of_cpu.discarded);
    let has_kernel = !of_cpu.records.is_empty();
    if has_kernel {
        let first = of_cpu
            .records
            .first()
            .map_or(scene.span.0, |record| record.time);
        let begin = encoder.cycles(of_cpu.from.unwrap_or(first).max(scene.span.0));
        encoder.writer.start(begin)?;
        encoder.last = begin;
    }
    let first = placed.first().map(|own| own.time);
    let begin = of_cpu
        .records
        .first()
        .map(|record| record.time)
        .into_iter()
        .chain(first)
        .min();
    encoder.run_from(running, begin.unwrap_or(i64::MIN), 0);
    encoder.interrupts = begun(&of_cpu.records, scene.states.interrupts(cpu, scene.number));
    let mut placed = placed.iter().peekable();
    let mut discarded = of_cpu.discarded;
    for (at, record) in (0u32..).zip(&of_cpu.records) {
        while let Some(own) = placed.next_if(|own| own.after <= at && own.time <= record.time) {
            encoder.user(own)?;
        }
        if let Note::Packet {
            discarded: now,
            is_after_loss,
        } = record.note
        {
            if is_after_loss {
                let rest = of_cpu.records.get(at as usize..).unwrap_or_default();
                encoder.run_from(learned(rest), record.time, at);
            }
            let more = now.saturating_sub(discarded);
            if more > 0 {
                discarded = now;
                encoder.lose(record.time, more)?;
            }
            continue;
        }
        encoder.kernel(record, at)?;
    }
    for own in placed {
        encoder.user(own)?;
    }
    let until = encoder.cycles(of_cpu.until.unwrap_or(i64::MIN).min(scene.span.1));
    if has_kernel && until > encoder.last {
        encoder.writer.flush(until)?;
    }
    encoder.finish(room)
}

/// Writes user records without a CPU.
pub(crate) fn without_cpu(
    scene: Scene<'_>,
    number: u32,
    placed: &[Placed],
    room: &mut Room,
) -> Result<(Packets, Written), WriteError> {
    let mut encoder = Encoder::new(scene, (WITHOUT_CPU, u64::from(number)), &[], room)?;
    for own in placed {
        encoder.user(own)?;
    }
    encoder.finish(room)
}

impl<'a> Scene<'a> {
    fn lwp(self, tid: i32) -> Option<u32> {
        self.states.lwp_of_tid.get(&tid).copied()
    }

    fn ult(self, ult: u32) -> Option<Ult<'a>> {
        self.states.ults.get(ult)
    }

    fn tid_of(self, who: Who) -> i32 {
        match who {
            Who::Ult(ult) => self.ult(ult).map_or(-1, |own| own.tid()),
            Who::Lwp(tid) => tid,
        }
    }

    fn pid_of(self, who: Who) -> i32 {
        let lwp = |tid| self.states.lwps.get(self.lwp(tid)? as usize);
        match who {
            Who::Ult(ult) => self.ult(ult).map_or(-1, |own| own.key().0),
            Who::Lwp(tid) => lwp(tid).map_or(-1, |lwp| lwp.pid),
        }
    }

    fn name_of(self, who: Who, time: i64) -> &'a [u8; NAME] {
        let name = match who {
            Who::Ult(ult) => self.ult(ult).map(|own| own.short_name(time)),
            Who::Lwp(tid) => self
                .lwp(tid)
                .and_then(|lwp| self.names_of_lwps.get(lwp as usize)),
        };
        name.unwrap_or(&[0; NAME])
    }
}

impl<'a> Encoder<'a> {
    fn new(
        scene: Scene<'a>,
        (stream, id): (usize, u64),
        context: &[(&str, i64)],
        room: &mut Room,
    ) -> Result<Encoder<'a>, WriteError> {
        let bytes = room.written.pop().unwrap_or_default();
        let kept = Kept(Packets {
            bytes,
            entries: Vec::new(),
        });
        let packet = std::mem::take(&mut room.packet);
        let plan = &scene.plans.streams[stream];
        let writer = StreamWriter::with_room(plan, (kept, packet), PACKET, id, context)?;
        Ok(Encoder {
            scene,
            writer,
            stream,
            cpu: u32::MAX,
            running: -1,
            current: NONE,
            interrupts: Interrupts::default(),
            learned: 0,
            known: (NONE, -1, 0),
            slots: Vec::new(),
            last: 0,
            written: Written::default(),
        })
    }

    /// Ends the stream.
    fn finish(self, room: &mut Room) -> Result<(Packets, Written), WriteError> {
        let (packets, packet) = self.writer.finish_with_room()?;
        room.packet = packet;
        Ok((packets, self.written))
    }

    /// A time on the super-trace's clock.
    fn cycles(&self, time: i64) -> u64 {
        u64::try_from(i128::from(time) - i128::from(self.scene.base)).unwrap_or(0)
    }

    /// The same, not before the latest record.
    fn next_cycles(&mut self, time: i64) -> u64 {
        self.last = self.cycles(time).max(self.last);
        self.last
    }

    /// Records were lost before this time: a packet ends, so that readers see where.
    fn lose(&mut self, time: i64, more: u64) -> Result<(), WriteError> {
        let cycles = self.next_cycles(time);
        self.writer.flush(cycles)?;
        self.writer.discard(more);
        Ok(())
    }

    /// Takes into account what is learned, or unknown, about LWPs before a record.
    fn learn(&mut self, at: CpuMoment) {
        let replay = self.scene.replay;
        while let Some(&(time, lwp)) = replay.learned.get(self.learned)
            && time < at.time
        {
            self.learned += 1;
            if self.scene.lwp(self.running) == Some(lwp) {
                self.current = self.current_of(self.running, at);
            }
        }
    }

    /// The CPU runs this thread from its record `after` on.
    fn run_from(&mut self, running: Option<i32>, time: i64, after: u32) {
        self.running = running.unwrap_or(-1);
        self.interrupts = Interrupts::default();
        let at = CpuMoment {
            time,
            cpu: self.cpu,
            after,
        };
        self.current = self.current_of(self.running, at);
    }

    fn current_of(&self, tid: i32, at: CpuMoment) -> Current {
        match self.scene.lwp(tid) {
            Some(lwp) => self.scene.replay.current(lwp, at),
            None if tid < 0 => UNKNOWN,
            None => NONE,
        }
    }

    fn who(tid: i32, current: Current) -> Who {
        if current < NONE {
            Who::Ult(current)
        } else {
            Who::Lwp(tid)
        }
    }

    /// The common context: `tid`, `lwp`, `ult`.
    #[inline]
    fn context(&mut self, tid: i32, current: Current, is_interrupted: bool) -> Context {
        if current < NONE && self.known.0 != current {
            let ult = self.scene.ult(current);
            let (tid, id) = ult.map_or((-1, UNKNOWN_ULT), |own| (own.tid(), own.key().1));
            self.known = (current, tid, id);
        }
        let (shown, ult) = match current {
            NONE => (tid, 0),
            UNKNOWN => (tid, UNKNOWN_ULT),
            _ => (self.known.1, self.known.2),
        };
        Context {
            tid: shown,
            lwp: tid,
            ult: if is_interrupted { 0 } else { ult },
        }
    }

    fn kernel(&mut self, record: &KernelRecord, at: u32) -> Result<(), WriteError> {
        let moment = CpuMoment {
            time: record.time,
            cpu: self.cpu,
            after: at,
        };
        self.learn(moment);
        if let Note::Switch { prev, .. } = record.note
            && prev != self.running
        {
            self.running = prev;
            self.current = self.current_of(prev, moment);
            self.interrupts = Interrupts::default();
        }
        let is_edge = matches!(record.note, Note::Interrupt(_));
        let is_interrupted = is_edge || self.interrupts.innermost().is_some();
        let context = self.context(self.running, self.current, is_interrupted);
        let (mut next, mut next_current) = (-1, NONE);
        let other = match record.note {
            Note::Switch { next: to, .. } => {
                (next, next_current) = (to, self.current_of(to, moment));
                Self::who(to, next_current)
            }
            Note::About(tid) => Self::who(tid, self.current_of(tid, moment)),
            // An LWP that ends is meant itself.
            _ => Who::Lwp(-1),
        };
        self.copy(record, context, other)?;
        match record.note {
            Note::Switch { .. } => {
                (self.running, self.current) = (next, next_current);
                self.interrupts = Interrupts::default();
            }
            Note::Interrupt(step) => self.interrupts.step(step),
            Note::Exit(tid) if tid == self.running => self.current = NONE,
            _ => {}
        }
        Ok(())
    }

    /// Writes a user record and the events that it stands for.
    fn user(&mut self, own: &Placed) -> Result<(), WriteError> {
        let window = self.scene.window;
        let Some(record) = window.users.get(own.record as usize) else {
            return Ok(());
        };
        self.copy_user(record, own)?;
        let replay = self.scene.replay;
        let (from, to) = (own.derived.0 as usize, own.derived.1 as usize);
        let tid = record.tid.unwrap_or(-1);
        let mut current = own.current;
        for derived in replay.derived.get(from..to).unwrap_or_default() {
            let is_violation = matches!(derived, Derived::Violation(_));
            if self.stream == OF_CPUS || is_violation {
                self.derive(*derived, (tid, current), own.time)?;
            }
            if let Derived::Switch { next, .. } = derived {
                current = if let Who::Ult(ult) = next { *ult } else { NONE };
            }
        }
        if tid == self.running && self.stream == OF_CPUS {
            self.current = own.then;
        }
        Ok(())
    }
}

/// Describes the user-level threads that exist already when the trace begins.
pub(crate) fn existing(
    scene: Scene<'_>,
    cpu: u32,
    running: Option<i32>,
    time: i64,
    room: &mut Room,
) -> Result<(Packets, Written), WriteError> {
    let context = [("cpu_id", i64::from(cpu))];
    let mut encoder = Encoder::new(scene, (OF_CPUS, u64::from(cpu)), &context, room)?;
    encoder.cpu = cpu;
    encoder.run_from(running, i64::MIN, 0);
    let cycles = encoder.next_cycles(time);
    let context = encoder.context(encoder.running, encoder.current, false);
    if scene.sources.kernel.is_none() {
        encoder.lwps(cycles, context)?;
    }
    for (place, ult) in scene.states.ults.iter() {
        if ult.is_created() {
            continue;
        }
        let who = Who::Ult(place);
        let (tid, pid) = (i64::from(ult.tid()), i64::from(ult.key().0));
        let name = scene.name_of(who, time);
        encoder.exists(cycles, (tid, pid), name, context)?;
        encoder.thread(place, cycles, time, context)?;
    }
    encoder.finish(room)
}
