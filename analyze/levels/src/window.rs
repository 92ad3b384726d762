//! A window of time in memory: all event records of a chunk of the second pass.
//!
//! The records of the kernel are in lists by CPU, those of user traces in one list, all in the
//! order of time. The bytes of all records are in one buffer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::bits::Cursor;
use tracebraid_engine::{Record, StreamPlace};
use tracebraid_follow::InterruptStep;
use tracebraid_kernel_model::{Body, CpuSource, EventModel, KernelEvent};

use crate::catalogue::Copying;
use crate::intake::{ClassIntake, Intake, StreamOrigin};
use crate::replay::{Current, NONE, UNKNOWN};
use crate::sources::{Source, Sources, UserStream};
use crate::states::States;
use crate::survey::{UltKey, thread_of, thread_of_packet};
use crate::vocabulary::{Step, StepValues, UNKNOWN_ULT};

/// Bytes of a record in the buffer of its window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Bytes {
    pub(crate) at: u32,
    pub(crate) length: u32,
}

/// Stands for no event class.
pub(crate) const NO_CLASS: u32 = u32::MAX;

/// Contribution of a kernel record to levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Nothing,
    Switch {
        prev: i32,
        next: i32,
    },
    /// Another thread is woken, migrated or the like.
    About(i32),
    /// The running thread, which ends.
    Exit(i32),
    Interrupt(InterruptStep),
    CallBegin,
    CallEnd,
    /// Not a record: the number of discarded event records from here on; true if records were lost
    /// just before.
    Packet {
        discarded: u64,
        is_after_loss: bool,
    },
}

/// A record of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelRecord {
    pub(crate) time: i64,
    pub(crate) class: u32,
    pub(crate) bytes: Bytes,
    pub(crate) note: Note,
}

/// Stands for no LWP.
pub(crate) const NO_LWP: u32 = u32::MAX;

/// A record of a user trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserRecord {
    pub(crate) time: i64,
    pub(crate) class: u32,
    pub(crate) bytes: Bytes,
    /// Number of the stream.
    pub(crate) stream: u32,
    pub(crate) tid: Option<i32>,
    pub(crate) pid: i32,
    /// Index in [`States::lwps`], or [`NO_LWP`].
    pub(crate) lwp: u32,
    /// Index in [`Window::acts`], plus one.
    pub(crate) act: u32,
}

/// A step of user-level scheduling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    pub(crate) step: Step,
    pub(crate) ult: u64,
    pub(crate) next: u64,
    /// Indices of both threads: [`NONE`] for 0, [`UNKNOWN`] for one that is in no table.
    pub(crate) ult_at: Current,
    pub(crate) next_at: Current,
    pub(crate) lwp: i32,
    pub(crate) state: u64,
    /// Index of the reason of a block or a state.
    pub(crate) reason: u16,
}

/// Records of a CPU in a window, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuRecords {
    pub(crate) records: Vec<KernelRecord>,
    /// The packets of the CPU reach to this time.
    pub(crate) until: Option<i64>,
    /// Begin of the first packet.
    pub(crate) from: Option<i64>,
    /// Event records that were discarded before the window.
    pub(crate) discarded: u64,
}

/// All event records of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    pub(crate) buffer: Vec<u8>,
    pub(crate) cpus: BTreeMap<u32, CpuRecords>,
    pub(crate) users: Vec<UserRecord>,
    pub(crate) acts: Vec<Act>,
    /// By number of the stream.
    streams: Vec<StreamNow>,
    /// Records whose bytes do not fit, or whose class cannot be written.
    pub(crate) refused: u64,
    /// Records of the kernel without a CPU.
    pub(crate) without_cpu: u64,
}

/// The threads of a user stream that its latest records are about.
#[derive(Clone, Copy, Debug)]
struct StreamNow {
    /// Thread of the current packet.
    of_packet: Option<i32>,
    /// Thread of the latest record, and its index among the LWPs.
    lwp: (Option<i32>, u32),
    /// User-level thread that the latest switch led to, and its index.
    next: (UltKey, Current),
}

impl Default for StreamNow {
    fn default() -> Self {
        StreamNow {
            of_packet: None,
            lwp: (None, NO_LWP),
            next: ((0, 0), NONE),
        }
    }
}

/// Reads records into a window.
pub(crate) struct Collector<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) states: &'a States,
    pub(crate) intake: &'a Intake<'a>,
}

impl Window {
    /// Copies bytes into the buffer.
    fn keep(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let at = u32::try_from(self.buffer.len()).ok()?;
        let length = u32::try_from(bytes.len()).ok()?;
        at.checked_add(length)?;
        self.buffer.extend_from_slice(bytes);
        Some(Bytes { at, length })
    }

    /// Removes all records, but keeps their memory for the next window.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.users.clear();
        self.acts.clear();
        self.streams.clear();
        (self.refused, self.without_cpu) = (0, 0);
        for of_cpu in self.cpus.values_mut() {
            of_cpu.records.clear();
            *of_cpu = CpuRecords {
                records: std::mem::take(&mut of_cpu.records),
                ..CpuRecords::default()
            };
        }
    }

    pub(crate) fn bytes(&self, bytes: Bytes) -> &[u8] {
        let at = bytes.at as usize;
        self.buffer
            .get(at..at + bytes.length as usize)
            .unwrap_or_default()
    }

    fn stream(&mut self, number: u32) -> &mut StreamNow {
        let number = number as usize;
        if self.streams.len() <= number {
            self.streams.resize(number + 1, StreamNow::default());
        }
        &mut self.streams[number]
    }
}

impl Collector<'_> {
    /// Keeps the bytes of a record; `None` if it cannot be written.
    #[inline]
    fn keep(
        window: &mut Window,
        class: &ClassIntake<'_>,
        record: &mut Record<'_>,
    ) -> Option<Bytes> {
        let body = record.body;
        let mut end = body;
        class.body.run(&mut end, record.slots).ok()?;
        match class.copying {
            Copying::Bytes(align) => {
                let mut start = body;
                start.align(*align);
                let is_whole = start.pos.is_multiple_of(8) && end.pos.is_multiple_of(8);
                if !is_whole {
                    return None;
                }
                // A record without fields may end before the padding.
                window.keep(part(&body, start.pos.min(end.pos), end.pos)?)
            }
            Copying::Fields => Collector::keep_in_place(window, &body, end.pos),
        }
    }

    /// Keeps the bytes of a record whose fields depend on their position in the packet.
    fn keep_in_place(window: &mut Window, body: &Cursor<'_>, end: u64) -> Option<Bytes> {
        // Positions within the packet matter: the base comes first.
        let from = body.pos / 512 * 512;
        let from = from.max(body.base * 8);
        let content = part(body, from, end.next_multiple_of(8))?;
        let head = [from / 8, body.pos, end].map(u64::to_le_bytes).concat();
        let kept = window.keep(&head)?;
        let rest = window.keep(content)?;
        Some(Bytes {
            at: kept.at,
            length: kept.length + rest.length,
        })
    }

    /// Adds a record.
    #[inline]
    pub(crate) fn add(&self, window: &mut Window, record: &mut Record<'_>) {
        let Some(stream) = self.intake.stream(record.number) else {
            window.refused += 1;
            return;
        };
        let kept = stream.class(record.class).and_then(|class| {
            let bytes = Collector::keep(window, class, record)?;
            Some((class, bytes))
        });
        let Some((class, bytes)) = kept else {
            window.refused += 1;
            return;
        };
        match stream.origin {
            StreamOrigin::Kernel(cpu) => kernel_record(window, record, (class, bytes), cpu),
            StreamOrigin::User(user) => self.user_record(window, record, (class, bytes), user),
        }
    }

    fn user_record(
        &self,
        window: &mut Window,
        record: &mut Record<'_>,
        (class, bytes): (&ClassIntake<'_>, Bytes),
        user: &UserStream,
    ) {
        let Some(of_class) = class.user else {
            return;
        };
        let now = window.stream(record.number);
        let (tid, pid) = thread_of(user, of_class, now.of_packet, record);
        if tid != now.lwp.0 {
            let lwp = tid.and_then(|tid| self.states.lwp_of_tid.get(&tid));
            now.lwp = (tid, lwp.copied().unwrap_or(NO_LWP));
        }
        let lwp = now.lwp.1;
        let mut act = 0;
        if let Some(step) = &of_class.step {
            let values = step.values(record.body, record.slots);
            let step = self.act(now, pid, &values);
            window.acts.push(step);
            act = window.acts.len() as u32;
        }
        window.users.push(UserRecord {
            time: record.time.0,
            class: class.number,
            bytes,
            stream: record.number,
            tid,
            pid,
            lwp,
            act,
        });
    }

    fn act(&self, now: &mut StreamNow, pid: i32, values: &StepValues<'_>) -> Act {
        let place = |key: UltKey| match key.1 {
            0 => NONE,
            UNKNOWN_ULT => UNKNOWN,
            _ => self.states.ult(key).unwrap_or(UNKNOWN),
        };
        let (step, key) = (values.step, (pid, values.ult));
        // Most steps are about the thread that the LWP runs.
        let ult_at = if key == now.next.0 {
            now.next.1
        } else {
            place(key)
        };
        let mut next_at = UNKNOWN;
        if step == Step::Switch {
            let next = (pid, values.next);
            next_at = place(next);
            now.next = (next, next_at);
        }
        let reason = match step {
            Step::Block | Step::State => self.states.reason(values.reason),
            _ => 0,
        };
        Act {
            step,
            ult: values.ult,
            next: values.next,
            ult_at,
            next_at,
            lwp: values.lwp,
            state: values.state,
            reason,
        }
    }

    /// Begins a packet; `before` is the number of records that were discarded before the window.
    pub(crate) fn packet(&self, window: &mut Window, place: &StreamPlace<'_>) {
        let number = self.sources.number(place.stream);
        match self.sources.source(number) {
            Some(Source::Kernel(CpuSource::Packet(cpu))) => {
                let Some(begin) = place.begin.map(|begin| begin.0) else {
                    return;
                };
                let of_cpu = window.cpus.entry(*cpu).or_default();
                of_cpu.from.get_or_insert(begin);
                let end = place.end.map(|end| end.0);
                of_cpu.until = of_cpu.until.max(end);
                let discarded = place.head.discarded.unwrap_or(0);
                let note = Note::Packet {
                    discarded,
                    is_after_loss: place.lost_before,
                };
                let bytes = Bytes::default();
                let time = of_cpu
                    .records
                    .last()
                    .map_or(begin, |last| last.time.max(begin));
                of_cpu.records.push(KernelRecord {
                    time,
                    class: NO_CLASS,
                    bytes,
                    note,
                });
            }
            Some(Source::User(_)) => {
                window.stream(number).of_packet = thread_of_packet(&self.sources.set, place);
            }
            _ => {}
        }
    }
}

/// Bytes between two positions in bits.
fn part<'a>(cursor: &Cursor<'a>, from: u64, to: u64) -> Option<&'a [u8]> {
    let at = |bits: u64| usize::try_from((bits / 8).checked_sub(cursor.base)?).ok();
    cursor.data.get(at(from)?..at(to)?)
}

fn note(model: &EventModel, body: &mut Body<'_, '_>) -> Note {
    let about = |tid: Option<i64>| tid.map_or(Note::Nothing, |tid| Note::About(tid as i32));
    match &model.event {
        KernelEvent::Switch(switch) => {
            let prev = switch.prev_tid.get(body).unwrap_or(-1) as i32;
            let next = switch.next_tid.get(body).unwrap_or(-1) as i32;
            Note::Switch { prev, next }
        }
        KernelEvent::Wakeup(wakeup) => about(wakeup.tid.get(body)),
        KernelEvent::Migrate(migrate) => about(migrate.tid.get(body)),
        KernelEvent::SchedStat(stat) => about(stat.tid.get(body)),
        KernelEvent::Inherit(inherit) => about(inherit.tid.get(body)),
        KernelEvent::ThreadExit(tid) => tid
            .get(body)
            .map_or(Note::Nothing, |tid| Note::Exit(tid as i32)),
        KernelEvent::Entry(entry) if !entry.is_fallback() => Note::CallBegin,
        KernelEvent::Exit(exit) if !exit.is_fallback() => Note::CallEnd,
        event => InterruptStep::of(event, body).map_or(Note::Nothing, Note::Interrupt),
    }
}

fn kernel_record(
    window: &mut Window,
    record: &mut Record<'_>,
    (class, bytes): (&ClassIntake<'_>, Bytes),
    cpu: CpuSource,
) {
    let mut body = Body::new(record.body, record.slots);
    let cpu = match (cpu, class.model) {
        (CpuSource::Packet(cpu), _) => Some(cpu),
        (CpuSource::Event, Some(model)) => Some(model.cpu(&mut body)),
        _ => None,
    };
    let Some(cpu) = cpu else {
        window.without_cpu += 1;
        return;
    };
    let note = class
        .model
        .map_or(Note::Nothing, |model| note(model, &mut body));
    let records = &mut window.cpus.entry(cpu).or_default().records;
    records.push(KernelRecord {
        time: record.time.0,
        class: class.number,
        bytes,
        note,
    });
}
