//! Event records that compare clocks: at the beginning of a buffer, and once in each second in
//! which packets begin.

#![allow(unsafe_code)]

use crate::thread_state::ThreadState;
use crate::{clock, reserve, sys};

pub(crate) const ID: u16 = 1;
const PERIOD_NS: u64 = 1_000_000_000;

/// Writes a record if it is due, in the slow path of the thread that owns the state. The cycle
/// counter and CLOCK_MONOTONIC are read at the same moment.
pub(crate) fn record(state: &ThreadState) {
    // SAFETY: the slow path has exclusive access to the buffer's state.
    let buffer = unsafe { state.slow() };
    if buffer.correlated_at != 0
        && clock::monotonic().wrapping_sub(buffer.correlated_at) < PERIOD_NS
    {
        return;
    }
    let pair = clock::pair();
    buffer.correlated_at = pair.ns;
    let fields = [pair.cycles, pair.ns, sys::clock(libc::CLOCK_REALTIME)];
    // SAFETY: the state is this thread's; 24 bytes were reserved.
    unsafe {
        let payload = reserve::try_again(state, size_of_val(&fields));
        if !payload.is_null() {
            payload.cast::<[u64; 3]>().write_unaligned(fields);
            reserve::commit(payload, ID);
        }
    }
}
