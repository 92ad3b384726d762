//! From a probe to a reserved record: the fast path if it serves, else the slow one.

#![allow(unsafe_code)]

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::class::Class;
use crate::packet::{HEAD, MOST_PAYLOAD};
use crate::reserve;
use crate::thread::Owned;
use crate::{fork, process, restart, sys, tls};

/// Takes room for a record of a class with that many bytes of fields; null when there is none, or the class is off:
/// then nothing is left to be done.
#[inline(always)]
pub(crate) fn reserve(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: the class is there.
    unsafe { restart::tb_reserve(class, payload) }
}

/// The same without restartable sequences.
pub(crate) extern "C" fn reserve_exchanging(class: &Class, payload: usize) -> *mut u8 {
    let state = tls::get();
    // SAFETY: the states of threads are never given back; this is the thread's own.
    if let Some(state) = unsafe { state.as_ref() }
        && state.epoch.load(Ordering::Relaxed) == class.epoch.load(Ordering::Acquire)
    {
        // SAFETY: as above.
        let payload = unsafe { reserve::try_reserve(state, payload) };
        if !payload.is_null() {
            return payload;
        }
    }
    slow(class, payload)
}

/// Registers a class, or switches it off if there is no session.
pub(crate) fn register(class: &Class) {
    let _quiet = sys::Quiet::enter();
    match process::current() {
        Some(process) => process.register(class),
        None => class.switch_off(),
    }
}

/// What is not the usual, but needs no lock and no system call.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn slow(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: as above.
    if let Some(state) = unsafe { tls::get().as_ref() } {
        let epoch = state.epoch.load(Ordering::Relaxed);
        if epoch != 0 && epoch == class.epoch.load(Ordering::Acquire) {
            if state.lose_if_full() {
                return null_mut();
            }
            // Under the eyes of the kernel the same needs blocked signals.
            if !state.is_watched() {
                // SAFETY: as above.
                let place = unsafe { reserve::try_again(state, payload) };
                if !place.is_null() {
                    return place;
                }
            }
        }
    }
    slower(class, payload)
}

/// Counts an event as lost whose handler interrupted a reservation that the kernel does not watch.
#[cold]
pub(crate) extern "C" fn lose(_: &Class, _: usize) -> *mut u8 {
    // SAFETY: as above.
    if let Some(state) = unsafe { tls::get().as_ref() } {
        state.lose();
    }
    null_mut()
}

fn slower(class: &Class, payload: usize) -> *mut u8 {
    let _quiet = sys::Quiet::enter();
    let Some(process) = process::current() else {
        class.switch_off();
        return null_mut();
    };
    if class.epoch.load(Ordering::Acquire) != process.epoch() {
        process.register(class);
        if !class.is_enabled() {
            return null_mut();
        }
    }
    // SAFETY: as above; a state of another epoch is of a process from which this one was forked.
    let state = unsafe { tls::get().as_ref() };
    let mut owned = match state.filter(|state| state.epoch.load(Ordering::Relaxed) == process.epoch()) {
        Some(state) => process.attached(state),
        None => {
            fork::leave_buffer();
            process.attach()
        }
    };
    let fits = payload <= MOST_PAYLOAD && HEAD + reserve::room(payload) <= process.config().packet_size;
    if process.is_nowhere(owned.state) || !fits {
        owned.state.lose();
        return null_mut();
    }
    let room = reserve_slowly(&mut owned, payload);
    if room.is_null() {
        owned.state.lose();
    }
    room
}

/// Each try renews the clock's line, which may be over before it is used if the thread has to wait for a CPU.
const MOST_TRIES: u32 = 100;
/// After so many it is taken that the program has overwritten the packet's head.
const PATIENCE: u32 = 5;

fn reserve_slowly(owned: &mut Owned<'_>, payload: usize) -> *mut u8 {
    owned.note_nesting();
    for tries in 0..MOST_TRIES {
        owned.renew_clock();
        // SAFETY: the state is this thread's.
        let room = unsafe { reserve::try_again(owned.state, payload) };
        if !room.is_null() {
            return room;
        }
        if tries >= PATIENCE || !reserve::has_room(owned.state, payload) {
            owned.next_packet(payload);
            if owned.state.is_full() {
                break;
            }
        }
    }
    null_mut()
}
