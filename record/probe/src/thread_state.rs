//! The state of a thread's buffer.
//!
//! Safety: all methods except [`ThreadState::line`] and [`ThreadState::lose`] run with signals
//! blocked ([`crate::sys::Quiet`]) on the thread that owns the state, or under the process's lock
//! for states without a living owner, so `slow` has one user at a time. The pages of states are
//! never unmapped.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::clock::{Line, Pair};
use crate::packet::UNFINISHED;
use crate::segment::Segment;
use crate::word::Word;
use crate::{clock, tls};

const RELAXED: Ordering = Ordering::Relaxed;
/// Delay before another attempt to get room, after a failure.
pub(crate) const RETRY_NS: u64 = 1_000_000_000;

/// The state of a thread's buffer. All zeros (as in a forked child) mean that there is no room, and
/// an epoch that no process has.
#[repr(C)]
pub(crate) struct ThreadState {
    pub(crate) word: AtomicU64,
    pub(crate) packet: AtomicPtr<u8>,
    /// End of the last record at most, as an offset in the packet in bytes.
    pub(crate) limit: AtomicU64,
    /// The same in bits for [`crate::fast`]; 0 if that path is unavailable to this thread.
    pub(crate) sequence_limit: AtomicU64,
    /// Address of the packet's last record, or of the packet if it is empty; used if the kernel
    /// watches the thread.
    pub(crate) last: AtomicPtr<u8>,
    pub(crate) line: [AtomicU64; 4],
    /// Epoch of the process that owns the buffer.
    pub(crate) epoch: AtomicU32,
    /// 1 if there is no room, and searching is pointless before `retry_at`.
    pub(crate) full: AtomicU32,
    /// 1 if [`crate::fast`] reserves records, and `word` is unused.
    watched: AtomicU32,
    retry_at: AtomicU64,
    /// Counter of lost events.
    pub(crate) discarded: AtomicPtr<AtomicU64>,
    slow: UnsafeCell<Buffer>,
}

/// The slow path's part of the state.
pub(crate) struct Buffer {
    pub(crate) next_free: *mut ThreadState,
    pub(crate) next_all: *mut ThreadState,
    /// Id of the owning thread; 0 for none.
    pub(crate) owner: u32,
    pub(crate) number: u64,
    /// Number of files created so far.
    pub(crate) segments: u32,
    pub(crate) segment: Segment,
    /// Number of packets begun so far.
    pub(crate) sequence: u64,
    /// Packets with smaller sequence numbers may contain unfinished records. If the kernel watches
    /// the thread, later packets contain none.
    pub(crate) nested_before: u64,
    pub(crate) correlated_at: u64,
}

impl ThreadState {
    /// The state of the running thread; null before its first event record.
    #[inline(always)]
    pub(crate) fn current() -> *const ThreadState {
        tls::get().cast()
    }

    /// Sets the result of [`current`](Self::current).
    pub(crate) fn set_current(state: *const ThreadState) {
        tls::set(state.cast());
    }

    /// The line of the clock: cycles and nanoseconds of its base, factor, span.
    #[inline(always)]
    pub(crate) fn line_parts(&self) -> &[AtomicU64; 4] {
        &self.line
    }

    /// True if records are reserved by restartable sequences.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(RELAXED) != 0
    }

    /// True if the state belongs to a thread of the process from which this process was forked.
    pub(crate) fn is_wiped(&self) -> bool {
        self.epoch.load(RELAXED) == 0
    }

    /// Sets whether restartable sequences are used, before the first packet of an owner.
    pub(crate) fn set_watched(&self, watched: bool) {
        self.watched.store(watched.into(), RELAXED);
    }

    pub(crate) fn line(&self) -> Line {
        let [cycles, ns, factor, span] = &self.line;
        Line {
            base: Pair {
                cycles: cycles.load(RELAXED),
                ns: ns.load(RELAXED),
            },
            factor: factor.load(RELAXED),
            span: span.load(RELAXED),
        }
    }

    /// Counts an event as lost if there is no room and none is expected soon.
    #[inline]
    pub(crate) fn lose_if_full(&self) -> bool {
        let retry_at = self.retry_at.load(RELAXED);
        let is_full =
            self.full.load(RELAXED) != 0 && (retry_at == 0 || clock::monotonic() < retry_at);
        if is_full {
            self.lose();
        }
        is_full
    }

    pub(crate) fn lose(&self) {
        let counter = self.discarded.load(RELAXED);
        if !counter.is_null() {
            // SAFETY: points into the head of a packet, which stays mapped.
            unsafe { (*counter).fetch_add(1, RELAXED) };
        }
    }

    /// # Safety
    /// See the module documentation.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slow(&self) -> &mut Buffer {
        // SAFETY: guaranteed by the caller.
        unsafe { &mut *self.slow.get() }
    }

    pub(crate) fn set_line(&self, line: Line) {
        let values = [line.base.cycles, line.base.ns, line.factor, line.span];
        for (place, value) in self.line.iter().zip(values) {
            place.store(value, RELAXED);
        }
        let word = Word(self.word.load(RELAXED));
        self.word.store(word.touched().0, RELAXED);
    }

    /// Turns this into the state of threads without a buffer.
    pub(crate) fn without_buffer(&self, epoch: u32, counter: *mut AtomicU64) {
        self.discarded.store(counter, RELAXED);
        self.epoch.store(epoch, RELAXED);
        self.close(clock::monotonic().saturating_add(RETRY_NS));
    }

    /// True if events are being lost for lack of room.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(RELAXED) != 0
    }

    /// Leaves no room, so that the next reservation begins a packet.
    pub(crate) fn shut(&self) {
        self.close(0);
        self.full.store(0, RELAXED);
    }

    /// Called before another thread takes the buffer over: if a packet may have an unfinished
    /// record, notes that it must be searched before it is overwritten. This is always assumed
    /// after a thread that the kernel does not watch, since the next owner may be watched.
    pub(crate) fn note_open(&self) {
        // SAFETY: the owner has ended, or is this thread with signals blocked.
        if !self.is_watched() || unsafe { self.is_last_unfinished() } {
            // SAFETY: as above.
            let buffer = unsafe { self.slow() };
            buffer.nested_before = buffer.sequence;
        }
    }

    /// True if the last record of the packet is unfinished, for a thread that the kernel watches.
    ///
    /// # Safety
    /// The state belongs to the running thread, or has no living owner.
    unsafe fn is_last_unfinished(&self) -> bool {
        let last = self.last.load(RELAXED);
        // SAFETY: points to a record of the open packet, or to the packet's head, which begins with
        // a number other than 0.
        !last.is_null() && unsafe { last.cast::<u16>().read_volatile() } == UNFINISHED
    }

    /// Leaves no room before `retry_at` (forever if it is 0).
    pub(crate) fn close(&self, retry_at: u64) {
        self.limit.store(0, RELAXED);
        self.sequence_limit.store(0, RELAXED);
        self.retry_at.store(retry_at, RELAXED);
        self.full.store(1, RELAXED);
        let word = Word(self.word.load(RELAXED));
        self.word.store(word.touched().0, RELAXED);
    }
}
