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

use crate::catalogue::{Catalogue, Copied, Copying};
use crate::sources::{Source, Sources, UserStream};
use crate::survey::{thread_of, thread_of_packet};
use crate::vocabulary::{Step, StepValues};

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
    /// Index in [`Window::acts`], plus one.
    pub(crate) act: u32,
}

/// A step of user-level scheduling, with the position of its reason in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    pub(crate) step: Step,
    pub(crate) ult: u64,
    pub(crate) next: u64,
    pub(crate) lwp: i32,
    pub(crate) state: u64,
    pub(crate) reason: Bytes,
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
    /// Thread of the current packet, by number of the stream.
    threads: Vec<Option<i32>>,
    /// Records whose bytes do not fit, or whose class cannot be written.
    pub(crate) refused: u64,
    /// Records of the kernel without a CPU.
    pub(crate) without_cpu: u64,
}

/// Reads records into a window.
pub(crate) struct Collector<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) copied: &'a [Copied],
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
        self.threads.clear();
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

    fn thread(&self, number: u32) -> Option<i32> {
        self.threads.get(number as usize).copied().flatten()
    }
}

impl Collector<'_> {
    /// Keeps the bytes of a record; `None` if it cannot be written.
    fn keep(&self, window: &mut Window, record: &mut Record<'_>) -> Option<(u32, Bytes)> {
        let trace = self.sources.set.traces.get(record.stream.trace as usize)?;
        let class = trace.streams.get(record.stream.stream as usize)?.class;
        let chosen = self.catalogue.chosen.get(&(record.stream.trace, class))?;
        let number = (*chosen.by_class.get(record.class)?)?;
        let copied = self.copied.get(number as usize)?;
        copied.plans.first()?.as_ref()?;
        let event = trace.layout.streams.get(class)?.events.get(record.class)?;
        let mut end = record.body;
        event.body.run(&mut end, record.slots).ok()?;
        let body = record.body;
        let bytes = match copied.copying {
            Copying::Bytes(align) => {
                let mut start = body;
                start.align(align);
                let is_whole = start.pos.is_multiple_of(8) && end.pos.is_multiple_of(8);
                if !is_whole {
                    return None;
                }
                // A record without fields may end before the padding.
                window.keep(part(&body, start.pos.min(end.pos), end.pos)?)?
            }
            Copying::Fields => {
                // Positions within the packet matter: the base comes first.
                let from = body.pos / 512 * 512;
                let from = from.max(body.base * 8);
                let content = part(&body, from, end.pos.next_multiple_of(8))?;
                let head = [from / 8, body.pos, end.pos].map(u64::to_le_bytes).concat();
                let kept = window.keep(&head)?;
                let rest = window.keep(content)?;
                Bytes {
                    at: kept.at,
                    length: kept.length + rest.length,
                }
            }
        };
        Some((number, bytes))
    }

    /// Adds a record.
    pub(crate) fn add(&self, window: &mut Window, record: &mut Record<'_>) {
        let Some((class, bytes)) = self.keep(window, record) else {
            window.refused += 1;
            return;
        };
        match self.sources.source(record.number) {
            Some(Source::Kernel(cpu)) => self.kernel(window, record, (class, bytes), *cpu),
            Some(Source::User(user)) => user_record(window, record, (class, bytes), user),
            None => {}
        }
    }

    fn kernel(
        &self,
        window: &mut Window,
        record: &mut Record<'_>,
        (class, bytes): (u32, Bytes),
        cpu: CpuSource,
    ) {
        let of_trace = self.sources.model.traces.get(record.stream.trace as usize);
        let trace = self.sources.set.traces.get(record.stream.trace as usize);
        let of_class = trace.and_then(|trace| trace.streams.get(record.stream.stream as usize));
        let model = of_trace
            .zip(of_class)
            .and_then(|(of_trace, stream)| of_trace.streams.get(stream.class)?.event(record.class));
        let mut body = Body::new(record.body, record.slots);
        let cpu = match (cpu, model) {
            (CpuSource::Packet(cpu), _) => Some(cpu),
            (CpuSource::Event, Some(model)) => Some(model.cpu(&mut body)),
            _ => None,
        };
        let Some(cpu) = cpu else {
            window.without_cpu += 1;
            return;
        };
        let note = model.map_or(Note::Nothing, |model| note(model, &mut body));
        let records = &mut window.cpus.entry(cpu).or_default().records;
        records.push(KernelRecord {
            time: record.time.0,
            class,
            bytes,
            note,
        });
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
                let place_of = number as usize;
                if window.threads.len() <= place_of {
                    window.threads.resize(place_of + 1, None);
                }
                window.threads[place_of] = thread_of_packet(&self.sources.set, place);
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

fn user_record(
    window: &mut Window,
    record: &mut Record<'_>,
    (class, bytes): (u32, Bytes),
    user: &UserStream,
) {
    let Some(of_class) = user.classes.get(record.class) else {
        return;
    };
    let (tid, pid) = thread_of(user, of_class, window.thread(record.number), record);
    let values = of_class
        .step
        .as_ref()
        .map(|step| step.values(record.body, record.slots));
    let act = match values {
        Some(values) => {
            let act = act(window, &values);
            window.acts.push(act);
            window.acts.len() as u32
        }
        None => 0,
    };
    window.users.push(UserRecord {
        time: record.time.0,
        class,
        bytes,
        stream: record.number,
        tid,
        pid,
        act,
    });
}

fn act(window: &mut Window, values: &StepValues<'_>) -> Act {
    Act {
        step: values.step,
        ult: values.ult,
        next: values.next,
        lwp: values.lwp,
        state: values.state,
        reason: window.keep(values.reason).unwrap_or_default(),
    }
}
