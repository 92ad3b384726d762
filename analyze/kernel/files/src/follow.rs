//! News of descriptors and of calls on them, one after the other, for analyses that keep histories.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{NO_FD, Texts, Turn};
use tracebraid_follow::{Event, Packet, ThreadKey};
use tracebraid_kernel_model::{Body, FdType, KernelEvent};

use crate::call::{Call, Side};
use crate::class::Class;
use crate::item::Made;
use crate::machine::{Around, CallSink, FileMachine};
use crate::names::{FileId, UNKNOWN};
use crate::rules::FileRules;
use crate::seen::Seen;

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor {
    /// Index of the trace.
    pub trace: u32,
    /// The process; of those that share their descriptors, the one that had them first. Below 0 if
    /// whoever holds it got a copy of what it had shared.
    pub process: i32,
    /// Its number.
    pub fd: i32,
}

/// Something that happened to descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// It is that from now on.
    Is {
        /// Which one.
        descriptor: Descriptor,
        /// Path, or what else it is called.
        name: &'a str,
        /// Type of the file.
        kind: FdType,
        /// It is still the same thing, which is better known now.
        is_same: bool,
    },
    /// It is closed, and so are those after it up to that number.
    Closed(Descriptor, i32),
    /// A call that used it has ended, which read and wrote so many bytes.
    Used(Descriptor, u64, u64),
    /// A thread (of a trace, by its number) has read and written so many bytes.
    Moved((u32, i32), u64, u64),
    /// A thread is made: whoever had its number before is another one.
    Born(u32, i32),
}

/// Bytes read and written by a call on a file on that side of it.
fn sides(side: Side, bytes: u64) -> (u64, u64) {
    match side {
        Side::From => (bytes, 0),
        Side::To => (0, bytes),
    }
}

fn descriptor(table: ThreadKey, fd: i32) -> Descriptor {
    Descriptor {
        trace: table.trace,
        process: table.tid,
        fd,
    }
}

/// For how many nanoseconds it may be asked which file a descriptor was that has changed: longer
/// calls on it name an unknown file.
const HORIZON: i64 = 60_000_000_000;

/// News of threads and their calls.
#[derive(Default)]
struct Heard(Vec<News<'static>>);

impl CallSink for Heard {
    fn call(
        &mut self,
        machine: &mut FileMachine,
        _: &mut Around<'_>,
        thread: ThreadKey,
        call: &Call,
        _: Option<(FileId, FileId)>,
    ) {
        let (from, to) = match call.class {
            Class::Close => return,
            Class::Write => (None, Some(call.fds.0)),
            Class::Copy => (Some(call.fds.0), Some(call.fds.1)),
            _ => (Some(call.fds.0), None),
        };
        let bytes = call.bytes().unwrap_or(0);
        for (fd, side) in [(from, Side::From), (to, Side::To)] {
            let Some(fd) = fd else { continue };
            let (read, written) = sides(side, bytes);
            if bytes > 0 {
                let thread = (thread.trace, thread.tid);
                self.0.push(News::Moved(thread, read, written));
            }
            let holder = machine.descriptors.holder(thread, fd, call.begin);
            if let Some(table) = holder.filter(|_| fd != NO_FD) {
                self.0
                    .push(News::Used(descriptor(table, fd), read, written));
            }
        }
    }

    fn made(&mut self, _: &FileMachine, _: u32, _: &Made, _: FileId) {}

    fn changed(&mut self, machine: &mut FileMachine, time: i64) {
        machine.descriptors.forget(time.saturating_sub(HORIZON));
    }

    fn born(&mut self, thread: ThreadKey) {
        self.0.push(News::Born(thread.trace, thread.tid));
    }
}

/// Follows descriptors and calls on them.
#[derive(Debug)]
pub struct FileFollower(FileRules);

/// State after some chunks.
///
/// The size is bounded by that of [`Seen`] and of [`FileMachine`]. Changes of descriptors in the
/// latter are kept for a minute; older ones are dropped each time the number of changes has
/// doubled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FollowedFiles {
    pub(crate) seen: Seen,
    pub(crate) machine: FileMachine,
    /// Texts of the machine.
    pub(crate) known: Texts,
}

impl FollowedFiles {
    /// The state before the first chunk.
    pub fn first() -> FollowedFiles {
        FollowedFiles {
            seen: Seen::first(),
            ..FollowedFiles::default()
        }
    }
}

impl FileFollower {
    /// Of all calls on all traces. `marks` are the times, in ascending order, of which the state
    /// may be asked for ([`FollowedFiles::keep`]), in nanoseconds from the origin.
    pub fn new(marks: Vec<i64>) -> FileFollower {
        FileFollower(FileRules {
            marks,
            ..FileRules::default()
        })
    }

    /// Whether an event matters.
    pub fn wants(&self, event: &KernelEvent) -> bool {
        self.0.wants(event)
    }

    /// A packet of a CPU begins, or goes on.
    pub fn packet(&self, partial: &mut FollowedFiles, packet: &Packet) {
        self.0.packet(&mut partial.seen, packet);
    }

    /// An event.
    #[inline(always)]
    pub fn event(&self, partial: &mut FollowedFiles, event: &Event<'_>, body: &mut Body<'_, '_>) {
        self.0.event(&mut partial.seen, event, body);
    }

    /// Joins what comes later to what was before.
    pub fn merge(&self, earlier: &mut FollowedFiles, later: FollowedFiles) {
        self.0.merge(&mut earlier.seen, later.seen);
    }

    /// Plays what was seen before a time, or everything, and reports the news: the time in
    /// nanoseconds from the origin, and what happened then.
    pub fn follow(
        &self,
        partial: &mut FollowedFiles,
        until: Option<i64>,
        tell: &mut dyn FnMut(i64, News<'_>),
    ) {
        let FollowedFiles {
            seen,
            machine,
            known: texts,
        } = partial;
        seen.keep_texts();
        seen.queue.forget_acts();
        let dictionaries = &seen.dictionaries;
        machine.descriptors.tell();
        let mut heard = Heard::default();
        seen.queue.items.play(until, |cpu, time, mut item| {
            item.texts(|text| *text = dictionaries.known(*text, texts));
            let mut around = Around {
                rules: &self.0,
                texts: &mut *texts,
            };
            machine.apply(&mut heard, &mut around, cpu, time, item);
            heard.0.drain(..).for_each(|news| tell(time, news));
            let files = &machine.files;
            for turn in machine.descriptors.turns() {
                let get = |file| {
                    let file = files.get(file)?;
                    Some((texts.get(file.name).unwrap_or_default(), file.kind))
                };
                if let Some(news) = news(turn, get) {
                    tell(time, news);
                }
            }
        });
        if let Some(until) = until {
            seen.forget_texts(until);
        }
    }
}

/// A change of a descriptor as news; `get` gives name and type of a file.
fn news<'a>(
    turn: Turn<FileId>,
    get: impl Fn(FileId) -> Option<(&'a str, FdType)>,
) -> Option<News<'a>> {
    match turn {
        Turn::Closed {
            table,
            fds: (fd, last),
        } => Some(News::Closed(descriptor(table, fd), last)),
        Turn::Is {
            table,
            fd,
            kind: file,
            is_same,
        } => {
            let (name, kind) = get(file)?;
            let descriptor = descriptor(table, fd);
            match kind == FdType::Unknown && name == UNKNOWN {
                // It is what it was, and that is not known.
                true if is_same => None,
                // It is a copy of what is not known, or made by what is not known.
                true => Some(News::Closed(descriptor, fd)),
                false => Some(News::Is {
                    descriptor,
                    name,
                    kind,
                    is_same,
                }),
            }
        }
    }
}
