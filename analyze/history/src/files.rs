//! Descriptors of processes: the file that each refers to, and the bytes read and written. The
//! effect of calls on descriptors depends on the order of time; [`tracebraid_files`] follows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_files::{Descriptor, FileFollower, FilesKept, FollowedFiles, News};
use tracebraid_follow::{Event, Packet};
use tracebraid_kernel_model::{Body, FdType, KernelEvent};

use crate::attribute::{Attribute, AttributeKind};
use crate::piece::Pieces;
use crate::slices::Slices;
use crate::varint::{self, NULL};

/// Follows descriptors.
#[derive(Debug)]
pub(crate) struct Files(FileFollower);

/// State after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Partial {
    seen: FollowedFiles,
    /// Use of descriptors, as far as calls have been played.
    known: Known,
    threads: Threads,
    /// Changes of attributes by the calls played so far.
    pub(crate) pieces: Pieces,
}

/// The state at a time, from which an append can continue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    seen: FilesKept,
    known: Vec<((u32, i32, i32), Used)>,
    threads: Vec<((u32, i32), (u64, u64))>,
}

impl Kept {
    /// Whether the state is consistent.
    pub(crate) fn is_sound(&self) -> bool {
        let calls = self.known.iter().map(|(_, used)| used.calls);
        self.seen.is_sound() && calls.max().unwrap_or(0) < u64::MAX / 2
    }
}

/// By trace, process and number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known(BTreeMap<(u32, i32, i32), Used>);

/// By trace and thread: bytes read and written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Threads(BTreeMap<(u32, i32), (u64, u64)>);

/// Use of a descriptor.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Used {
    is_named: bool,
    calls: u64,
    read: u64,
    written: u64,
}

impl Files {
    /// `times`: when [`Files::keep`] may be called.
    pub(crate) fn new(times: &[i64]) -> Files {
        Files(FileFollower::new(times.to_vec()))
    }

    /// The state at one of these times, after all earlier calls were played and none later.
    pub(crate) fn keep(partial: &mut Partial, time: i64) -> Kept {
        Kept {
            seen: partial.seen.keep(time),
            known: partial
                .known
                .0
                .iter()
                .map(|(key, used)| (*key, *used))
                .collect(),
            threads: partial
                .threads
                .0
                .iter()
                .map(|(key, sums)| (*key, *sums))
                .collect(),
        }
    }

    /// Whether an event affects descriptors.
    pub(crate) fn wants(&self, event: &KernelEvent) -> bool {
        self.0.wants(event)
    }

    /// The state before the first chunk, after the kept state.
    pub(crate) fn behind(&self, kept: Option<&Kept>) -> Partial {
        let Some(kept) = kept.cloned() else {
            return Partial {
                seen: FollowedFiles::first(),
                ..Partial::default()
            };
        };
        Partial {
            seen: FollowedFiles::behind(kept.seen),
            known: Known(kept.known.into_iter().collect()),
            threads: Threads(kept.threads.into_iter().collect()),
            pieces: Pieces::default(),
        }
    }

    /// Begins a packet; events may have been lost before it.
    pub(crate) fn packet(&self, partial: &mut Partial, packet: &Packet) {
        self.0.packet(&mut partial.seen, packet);
    }

    /// Takes an event.
    #[inline(never)]
    pub(crate) fn event(&self, partial: &mut Partial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        if self.wants(&event.model.event) {
            self.0.event(&mut partial.seen, event, body);
        }
    }

    /// Adds later chunks.
    pub(crate) fn merge(&self, earlier: &mut Partial, later: Partial) {
        self.0.merge(&mut earlier.seen, later.seen);
    }

    /// Plays the calls before a time, or all.
    pub(crate) fn play(&self, partial: &mut Partial, slices: &Slices, until: Option<i64>) {
        let Partial {
            seen,
            known,
            threads,
            pieces,
        } = partial;
        self.0.follow(seen, until, &mut |time, news| {
            let time = pieces.see(time);
            let to = &mut To {
                slices,
                pieces,
                time,
            };
            match news {
                News::Is {
                    descriptor,
                    name,
                    kind,
                    is_same,
                } => known.is(to, descriptor, (name, kind), is_same),
                News::Used(descriptor, read, written) => known.used(to, descriptor, read, written),
                News::Closed(first, last) => known.closed(to, first, last),
                News::Moved(thread, read, written) => threads.moved(to, thread, read, written),
                News::Born(trace, tid) => threads.born(to, (trace, tid)),
            }
        });
    }
}

/// The destination of changes at a time.
struct To<'p> {
    slices: &'p Slices,
    pieces: &'p mut Pieces,
    time: i64,
}

impl To<'_> {
    fn number(
        &mut self,
        kind: AttributeKind,
        (trace, process, fd): (u32, i32, i32),
        number: Option<u64>,
    ) {
        let number = number.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        if let Some(attribute) = Attribute::of_file(kind, trace, process, fd) {
            let code = number.map_or(NULL, varint::code);
            self.pieces.set(self.slices, self.time, attribute, code);
        }
    }

    fn text(&mut self, kind: AttributeKind, (trace, process, fd): (u32, i32, i32), text: &str) {
        if let Some(attribute) = Attribute::of_file(kind, trace, process, fd) {
            self.pieces
                .set_string(self.slices, self.time, attribute, text);
        }
    }
}

impl To<'_> {
    fn of_thread(&mut self, kind: AttributeKind, (trace, tid): (u32, i32), number: Option<u64>) {
        let number = number.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        let attribute = Attribute::new(kind, trace, tid as u32);
        let code = number.map_or(NULL, varint::code);
        self.pieces.set(self.slices, self.time, attribute, code);
    }
}

impl Threads {
    /// Adds the bytes of a completed call of a thread.
    fn moved(&mut self, to: &mut To<'_>, thread: (u32, i32), read: u64, written: u64) {
        let sums = self.0.entry(thread).or_default();
        for (kind, sum, more) in [
            (AttributeKind::ThreadRead, &mut sums.0, read),
            (AttributeKind::ThreadWritten, &mut sums.1, written),
        ] {
            if more > 0 {
                *sum = sum.saturating_add(more);
                to.of_thread(kind, thread, Some(*sum));
            }
        }
    }

    /// Resets the sums of a thread id that is reused.
    fn born(&mut self, to: &mut To<'_>, thread: (u32, i32)) {
        let sums = self.0.remove(&thread).unwrap_or_default();
        for (kind, sum) in [
            (AttributeKind::ThreadRead, sums.0),
            (AttributeKind::ThreadWritten, sums.1),
        ] {
            if sum > 0 {
                to.of_thread(kind, thread, None);
            }
        }
    }
}

fn key(descriptor: Descriptor) -> (u32, i32, i32) {
    (descriptor.trace, descriptor.process, descriptor.fd)
}

impl Known {
    /// The descriptor refers to a file from now on. Its sums start anew, unless its file was
    /// unknown before or is the same.
    fn is(
        &mut self,
        to: &mut To<'_>,
        descriptor: Descriptor,
        (name, kind): (&str, FdType),
        is_same: bool,
    ) {
        let key = key(descriptor);
        let used = self.0.entry(key).or_default();
        if used.is_named && !is_same {
            unset_numbers(to, key, used);
            *used = Used::default();
        }
        used.is_named = true;
        to.text(AttributeKind::FileName, key, name);
        to.text(AttributeKind::FileKind, key, kind.name());
    }

    /// Adds a completed call that used the descriptor.
    fn used(&mut self, to: &mut To<'_>, descriptor: Descriptor, read: u64, written: u64) {
        let key = key(descriptor);
        let used = self.0.entry(key).or_default();
        used.calls += 1;
        to.number(AttributeKind::FileCalls, key, Some(used.calls));
        for (kind, sum, more) in [
            (AttributeKind::FileRead, &mut used.read, read),
            (AttributeKind::FileWritten, &mut used.written, written),
        ] {
            if more > 0 {
                *sum = sum.saturating_add(more);
                to.number(kind, key, Some(*sum));
            }
        }
    }

    /// Closes the descriptors of a process from `first` to `last`.
    fn closed(&mut self, to: &mut To<'_>, first: Descriptor, last: i32) {
        let (trace, process, fd) = key(first);
        if fd > last {
            return;
        }
        let closed = self.0.range((trace, process, fd)..=(trace, process, last));
        let closed: Vec<_> = closed.map(|(key, _)| *key).collect();
        for key in closed {
            let Some(used) = self.0.remove(&key) else {
                continue;
            };
            unset_numbers(to, key, &used);
            if used.is_named {
                to.number(AttributeKind::FileName, key, None);
                to.number(AttributeKind::FileKind, key, None);
            }
        }
    }
}

/// Unsets the attributes that have a value.
fn unset_numbers(to: &mut To<'_>, key: (u32, i32, i32), used: &Used) {
    for (kind, number) in [
        (AttributeKind::FileCalls, used.calls),
        (AttributeKind::FileRead, used.read),
        (AttributeKind::FileWritten, used.written),
    ] {
        if number > 0 {
            to.number(kind, key, None);
        }
    }
}
