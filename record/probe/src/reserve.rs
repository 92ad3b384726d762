//! Reservation of event records without restartable sequences ([`crate::fast`] has the fast path
//! with them). The crate documentation describes the protocol.
//!
//! Safety: a [`ThreadState`] is changed by its own thread only: by [`try_reserve`], through one
//! word, and by the slow path, with signals blocked. So the only competitor of an instruction here
//! is a signal handler that runs between two instructions, from its beginning to its end (or never
//! returns). Every change by the slow path is followed by a change of the word's generation, so the
//! exchange fails if any value read before is stale. The record lies within the packet, since
//! `limit` lies within the mapping, and mappings of buffers are never unmapped. Fields are atomics,
//! accessed by plain instructions, so that the compiler neither splits nor invents accesses.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::clock;
use crate::packet::{MOST_PAYLOAD, Packet, RECORD_HEAD, UNFINISHED};
use crate::thread_state::ThreadState;
use crate::word::{MASK, Word};

/// Records begin at multiples of 4 bytes. The packet ends with the payload of its last record,
/// because readers interpret bytes after it as another record.
const UNIT: usize = 4;
/// Limit that prevents a program which overwrites a packet's head from hanging in a probe.
const MOST_TRIES: u32 = 100;

/// Compare-exchange in one instruction without a lock prefix: atomic with regard to signal handlers
/// of the same thread, which suffices, at a quarter of the cost of an exchange that is atomic with
/// regard to other CPUs.
///
/// # Safety
/// No other thread may write the word meanwhile.
#[inline(always)]
unsafe fn exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let found: u64;
        // SAFETY: the word is valid and aligned; the compiler assumes that the assembly reads and
        // writes all memory.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{word}], {new}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                inout("rax") old => found,
                options(nostack),
            );
        }
        found == old
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }
}

/// The time by the cycle counter; `None` if the line has expired or does not exist. The line is
/// read after the counter, which needs two registers.
#[inline(always)]
fn counted(thread: &ThreadState) -> Option<u64> {
    let cycles = clock::cycles();
    compiler_fence(Ordering::SeqCst);
    let [base, ns, factor, span] = thread.line_parts();
    let passed = cycles.wrapping_sub(base.load(Ordering::Relaxed));
    if passed >= span.load(Ordering::Relaxed) {
        return None;
    }
    let passed = passed.wrapping_mul(factor.load(Ordering::Relaxed));
    Some(ns.load(Ordering::Relaxed).wrapping_add(passed >> 32))
}

/// The time by CLOCK_MONOTONIC, for processes without a line.
#[inline(never)]
fn asked(thread: &ThreadState) -> Option<u64> {
    (thread.line().span == 0).then(clock::monotonic)
}

/// Maximum number of bytes of a record with that payload.
pub(crate) fn room(payload: usize) -> usize {
    (RECORD_HEAD + payload).next_multiple_of(UNIT)
}

/// Reserves a record and publishes it as unfinished. Returns the address of its payload; null if
/// that fails for a reason that [`try_again`] determines.
///
/// # Safety
/// `thread` is the state of the running thread's buffer.
#[inline(always)]
pub(crate) unsafe fn try_reserve(thread: &ThreadState, payload: usize) -> *mut u8 {
    // SAFETY: guaranteed by the caller.
    unsafe { attempt(thread, payload, counted) }
}

/// True if a record with that payload fits in the packet.
pub(crate) fn has_room(thread: &ThreadState, payload: usize) -> bool {
    let start = end_of(thread).next_multiple_of(UNIT as u64);
    payload <= MOST_PAYLOAD
        && start + (RECORD_HEAD + payload) as u64 <= thread.limit.load(Ordering::Relaxed)
}

/// Used bytes of the packet.
fn end_of(thread: &ThreadState) -> u64 {
    let address = thread.packet.load(Ordering::Relaxed);
    if !thread.is_watched() || address.is_null() {
        return Word(thread.word.load(Ordering::Relaxed)).end();
    }
    // SAFETY: begun packets stay mapped.
    let bits = unsafe { Packet::at(address) }
        .content()
        .load(Ordering::Relaxed);
    (bits / 8).min(MASK)
}

/// Like [`try_reserve`], for a thread that the kernel watches, with signals blocked.
///
/// # Safety
/// As for [`try_reserve`].
unsafe fn reserve_alone(thread: &ThreadState, payload: usize) -> *mut u8 {
    let address = thread.packet.load(Ordering::Relaxed);
    if address.is_null() || !has_room(thread, payload) {
        return core::ptr::null_mut();
    }
    let Some(now) = counted(thread) else {
        return core::ptr::null_mut();
    };
    let start = end_of(thread).next_multiple_of(UNIT as u64);
    // SAFETY: begun packets stay mapped; the record lies below the limit.
    unsafe {
        let packet = Packet::at(address);
        let now = now.max(packet.end().load(Ordering::Relaxed));
        let record = address.add(start as usize);
        write_head(record, payload, now);
        thread.last.store(record, Ordering::Relaxed);
        packet.end().store(now, Ordering::Relaxed);
        let end = start + (RECORD_HEAD + payload) as u64;
        packet.content().store(end * 8, Ordering::Release);
        record.add(RECORD_HEAD)
    }
}

/// Like [`try_reserve`], repeated if signal handlers interfere, and with any clock; null if the
/// packet is full or the clock's line has expired.
///
/// # Safety
/// As for [`try_reserve`]; if the kernel watches the thread, signals are blocked.
#[inline(never)]
pub(crate) unsafe fn try_again(thread: &ThreadState, payload: usize) -> *mut u8 {
    if thread.is_watched() {
        // SAFETY: guaranteed by the caller.
        return unsafe { reserve_alone(thread, payload) };
    }
    let time = if thread.line().span == 0 {
        asked
    } else {
        counted
    };
    for _ in 0..MOST_TRIES {
        // SAFETY: guaranteed by the caller.
        unsafe {
            help(thread);
            let place = attempt(thread, payload, time);
            if !place.is_null() || !has_room(thread, payload) || time(thread).is_none() {
                return place;
            }
        }
    }
    core::ptr::null_mut()
}

#[inline(always)]
unsafe fn attempt(
    thread: &ThreadState,
    payload: usize,
    time: impl Fn(&ThreadState) -> Option<u64>,
) -> *mut u8 {
    let null = core::ptr::null_mut();
    let word = Word(thread.word.load(Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
    let before = word.end();
    let start = before.next_multiple_of(UNIT as u64);
    let end = start + (RECORD_HEAD + payload) as u64;
    if payload > MOST_PAYLOAD || end > thread.limit.load(Ordering::Relaxed) {
        return null;
    }
    let address = thread.packet.load(Ordering::Relaxed);
    // The limit is above 0, so a packet exists; but a handler may have forked since, and in the
    // child all state is wiped.
    if address.is_null() {
        return null;
    }
    // SAFETY: begun packets stay mapped; a forked child has private memory at their addresses.
    let packet = unsafe { Packet::at(address) };
    if packet.content().load(Ordering::Relaxed) != before * 8 {
        return null;
    }
    let last = packet.end().load(Ordering::Relaxed);
    let Some(now) = time(thread) else { return null };
    let now = now.max(last);
    // SAFETY: see the module documentation.
    unsafe {
        if !exchange(&thread.word, word.0, word.followed_by(start, end).0) {
            return null;
        }
        let record = packet.address().add(start as usize);
        write_head(record, payload, now);
        exchange(packet.end(), last, now);
        exchange(packet.content(), before * 8, end * 8);
        record.add(RECORD_HEAD)
    }
}

#[inline(always)]
unsafe fn write_head(record: *mut u8, payload: usize, now: u64) {
    // SAFETY: the record's first 12 bytes are within the packet, and aligned to 4.
    unsafe {
        record.cast::<u16>().write(UNFINISHED);
        record.add(2).cast::<u64>().write_unaligned(now);
        record.add(10).cast::<u16>().write(payload as u16);
    }
    compiler_fence(Ordering::SeqCst);
}

/// Publishes the last record as unfinished, if its reservation was interrupted before publishing.
///
/// # Safety
/// As for [`try_reserve`].
#[cold]
pub(crate) unsafe fn help(thread: &ThreadState) {
    let word = Word(thread.word.load(Ordering::Relaxed));
    let address = thread.packet.load(Ordering::Relaxed);
    if address.is_null() {
        return;
    }
    // SAFETY: begun packets stay mapped.
    let packet = unsafe { Packet::at(address) };
    let (start, end) = (word.start(), word.end());
    let published = packet.content().load(Ordering::Relaxed);
    if (published / 8).next_multiple_of(UNIT as u64) != start || published >= end * 8 {
        return;
    }
    let payload = (end - start) as usize - RECORD_HEAD;
    let time = packet.end().load(Ordering::Relaxed);
    // SAFETY: the record lies below the limit at the time of its reservation. A handler that helps
    // meanwhile writes the same bytes. The record cannot be finished yet, because its writer has
    // not received its address.
    unsafe {
        if thread.word.load(Ordering::Relaxed) != word.0 {
            return;
        }
        write_head(packet.address().add(start as usize), payload, time);
        exchange(packet.content(), published, end * 8);
    }
}

/// Turns a reserved record into a complete record of an event class, by one store.
///
/// # Safety
/// `payload` comes from a reservation whose payload has been written.
#[inline(always)]
pub(crate) unsafe fn commit(payload: *mut u8, id: u16) {
    // SAFETY: the record's first field, 12 bytes before the payload, aligned to 4.
    unsafe {
        let place = payload.sub(RECORD_HEAD).cast::<u16>();
        core::sync::atomic::AtomicU16::from_ptr(place).store(id, Ordering::Release);
    }
}
