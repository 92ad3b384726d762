//! Changes of descriptors and calls on them, in time order, for analyses that keep histories.

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

/// A descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor {
    /// Index of the trace.
    pub trace: u32,
    /// Id of the process; if processes share the table, of its first owner. Negative if the owner
    /// of the table got a copy of a shared table.
    pub process: i32,
    /// Number of the descriptor.
    pub fd: i32,
}

/// A change of descriptors or a call on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// The descriptor refers to this file from now on.
    Is {
        /// The descriptor.
        descriptor: Descriptor,
        /// Path or other name of the file.
        name: &'a str,
        /// Type of the file.
        kind: FdType,
        /// The file is unchanged, but more is known about it now.
        is_same: bool,
    },
    /// The descriptor and all after it up to this number are closed.
    Closed(Descriptor, i32),
    /// A call on the descriptor has ended, which read and wrote this number of bytes.
    Used(Descriptor, u64, u64),
    /// A thread (index of its trace, id) has read and written this number of bytes.
    Moved((u32, i32), u64, u64),
    /// A thread (index of its trace, id) is created; an earlier thread with this id was another
    /// one.
    Born(u32, i32),
}

/// Bytes read and written by a call that moved `bytes` on this side.
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

/// Nanoseconds for which past files of a changed descriptor are kept. A longer call on the
/// descriptor is reported with an unknown file.
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
/// latter are kept for a minute; older changes are dropped each time the number of changes has
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
    /// Follows all calls on all traces. `marks` are the times, in ascending order and in
    /// nanoseconds from the origin, at which the state can be taken ([`FollowedFiles::keep`]).
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

    /// Handles the beginning or continuation of a packet of a CPU.
    pub fn packet(&self, partial: &mut FollowedFiles, packet: &Packet) {
        self.0.packet(&mut partial.seen, packet);
    }

    /// Handles an event.
    #[inline(always)]
    pub fn event(&self, partial: &mut FollowedFiles, event: &Event<'_>, body: &mut Body<'_, '_>) {
        self.0.event(&mut partial.seen, event, body);
    }

    /// Merges the state of later chunks into that of earlier ones.
    pub fn merge(&self, earlier: &mut FollowedFiles, later: FollowedFiles) {
        self.0.merge(&mut earlier.seen, later.seen);
    }

    /// Plays the items before `until`, or all items, and reports the news: the time in nanoseconds
    /// from the origin, and the change.
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

/// News for a change of a descriptor; `get` returns name and type of a file.
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
                // The file is unchanged and still unknown.
                true if is_same => None,
                // Copied from, or created by, an unknown object.
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
