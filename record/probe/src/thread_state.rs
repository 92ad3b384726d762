//! What a thread knows of its buffer.
//!
//! Safety. Everything here but [`ThreadState::line`] and [`ThreadState::lose`] runs with signals
//! blocked ([`crate::sys::Quiet`]) on the thread that owns the state, or under the process's lock
//! for states without a living owner; so `slow` has one user at a time. States are pages that are
//! never given back.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::clock::{Line, Pair};
use crate::packet::UNFINISHED;
use crate::segment::Segment;
use crate::word::Word;
use crate::{clock, tls};

const RELAXED: Ordering = Ordering::Relaxed;
/// After a failure to get room it is tried again this much later.
pub(crate) const RETRY_NS: u64 = 1_000_000_000;

/// What a thread knows of its buffer. All zero (as in a forked child) there is no room, and no
/// process has that epoch.
#[repr(C)]
pub(crate) struct ThreadState {
    pub(crate) word: AtomicU64,
    pub(crate) packet: AtomicPtr<u8>,
    /// Bytes of the packet behind which no record may reach.
    pub(crate) limit: AtomicU64,
    /// The same in bits for [`crate::fast`]; 0 if that does not serve this thread.
    pub(crate) sequence_limit: AtomicU64,
    /// Where the last record of the packet begins, if the kernel watches the thread; the packet's
    /// beginning if it is empty.
    pub(crate) last: AtomicPtr<u8>,
    pub(crate) line: [AtomicU64; 4],
    /// The epoch of the process that it belongs to.
    pub(crate) epoch: AtomicU32,
    /// There is no room, and looking for some is of no use before `retry_at`.
    pub(crate) full: AtomicU32,
    /// Whether records are reserved by [`crate::fast`], and `word` is not used.
    watched: AtomicU32,
    retry_at: AtomicU64,
    /// Where lost events are counted.
    pub(crate) discarded: AtomicPtr<AtomicU64>,
    slow: UnsafeCell<Buffer>,
}

/// The slow path's part.
pub(crate) struct Buffer {
    pub(crate) next_free: *mut ThreadState,
    pub(crate) next_all: *mut ThreadState,
    /// Thread that it belongs to; 0 for none.
    pub(crate) owner: u32,
    pub(crate) number: u64,
    /// Files made so far.
    pub(crate) segments: u32,
    pub(crate) segment: Segment,
    /// Packets begun so far.
    pub(crate) sequence: u64,
    /// The packets begun before that one may have records that are not finished; only these, if the
    /// kernel watches the thread.
    pub(crate) nested_before: u64,
    pub(crate) correlated_at: u64,
}

impl ThreadState {
    /// That of the running thread; null before its first event record.
    #[inline(always)]
    pub(crate) fn current() -> *const ThreadState {
        tls::get().cast()
    }

    /// Sets what [`current`](Self::current) gives.
    pub(crate) fn set_current(state: *const ThreadState) {
        tls::set(state.cast());
    }

    /// The line of the clock: cycles and nanoseconds of its base, factor, span.
    #[inline(always)]
    pub(crate) fn line_parts(&self) -> &[AtomicU64; 4] {
        &self.line
    }

    /// Whether records are reserved by restartable sequences.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(RELAXED) != 0
    }

    /// Whether it is that of a thread of the process from which this one was forked.
    pub(crate) fn is_wiped(&self) -> bool {
        self.epoch.load(RELAXED) == 0
    }

    /// Sets whether they are, before the first packet of an owner.
    pub(crate) fn set_watched(&self, watched: bool) {
        self.watched.store(watched.into(), RELAXED);
    }

    /// The line of the clock.
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

    /// If there is no room and none will come soon: counts an event as lost.
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

    /// Counts an event as lost.
    pub(crate) fn lose(&self) {
        let counter = self.discarded.load(RELAXED);
        if !counter.is_null() {
            // SAFETY: it points into the head of a packet, which stays mapped.
            unsafe { (*counter).fetch_add(1, RELAXED) };
        }
    }

    /// # Safety
    /// See the module's text.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slow(&self) -> &mut Buffer {
        // SAFETY: the caller's.
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

    /// Makes it the state of threads for which no buffer can be had.
    pub(crate) fn without_buffer(&self, epoch: u32, counter: *mut AtomicU64) {
        self.discarded.store(counter, RELAXED);
        self.epoch.store(epoch, RELAXED);
        self.close(clock::monotonic().saturating_add(RETRY_NS));
    }

    /// Whether events are being lost for want of room.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(RELAXED) != 0
    }

    /// Leaves no room, so that who comes next begins a packet.
    pub(crate) fn shut(&self) {
        self.close(0);
        self.full.store(0, RELAXED);
    }

    /// Before another thread takes the buffer over: if a packet may have a record that is not
    /// finished, notes that it must be looked through before it is written over. Of a thread that
    /// the kernel does not watch nobody knows, and the next one may be watched.
    pub(crate) fn note_open(&self) {
        // SAFETY: the owner is gone, or here with signals blocked.
        if !self.is_watched() || unsafe { self.is_last_unfinished() } {
            // SAFETY: as above.
            let buffer = unsafe { self.slow() };
            buffer.nested_before = buffer.sequence;
        }
    }

    /// Whether the last record of the packet is not finished, of a thread that the kernel watches.
    ///
    /// # Safety
    /// It is the state of the running thread's buffer, or of one without a living owner.
    unsafe fn is_last_unfinished(&self) -> bool {
        let last = self.last.load(RELAXED);
        // SAFETY: it is a record of the open packet or its head, which begins with a number that is
        // not 0.
        !last.is_null() && unsafe { last.cast::<u16>().read_volatile() } == UNFINISHED
    }

    /// Leaves no room before that time (for ever if it is 0).
    pub(crate) fn close(&self, retry_at: u64) {
        self.limit.store(0, RELAXED);
        self.sequence_limit.store(0, RELAXED);
        self.retry_at.store(retry_at, RELAXED);
        self.full.store(1, RELAXED);
        let word = Word(self.word.load(RELAXED));
        self.word.store(word.touched().0, RELAXED);
    }
}
