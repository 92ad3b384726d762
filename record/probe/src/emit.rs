//! Reservation of records where the fast path ([`crate::fast`]) fails or is unavailable.

#![allow(unsafe_code)]

use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use crate::class::Class;
use crate::packet::{HEAD, MOST_PAYLOAD};
use crate::process::Process;
use crate::reserve;
use crate::thread::Owned;
use crate::thread_state::ThreadState;
use crate::{fork, process, sys};

/// Reserves a record like [`crate::fast::reserve`], without restartable sequences.
pub(crate) extern "C" fn reserve_exchanging(class: &Class, payload: usize) -> *mut u8 {
    let state = ThreadState::current();
    // SAFETY: thread states are never unmapped; this is the thread's own.
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

/// Registers a class, or disables it if there is no session.
pub(crate) fn register(class: &Class) {
    let _quiet = sys::Quiet::enter();
    // The class may be registered for this process already: a library that is loaded again.
    registered(class, true);
}

/// The process in which the class is registered, if there is a session.
fn registered(class: &Class, again: bool) -> Option<&'static Process> {
    // A second attempt, since the process may leave its trace once.
    for _ in 0..2 {
        let Some(process) = process::current() else {
            break;
        };
        let is_known = !again && class.epoch.load(Ordering::Acquire) == process.epoch();
        if is_known || process.register(class) {
            return Some(process);
        }
    }
    class.switch_off();
    None
}

/// Rare cases that need neither a lock nor a system call.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn slow(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: as above.
    if let Some(state) = unsafe { ThreadState::current().as_ref() } {
        let epoch = state.epoch.load(Ordering::Relaxed);
        if epoch != 0 && epoch == class.epoch.load(Ordering::Acquire) {
            if state.lose_if_full() {
                return null_mut();
            }
            // On a thread that the kernel watches, this requires blocked signals.
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

/// Counts an event of a handler as lost, if the handler interrupted a reservation that the kernel
/// does not watch.
#[cold]
pub(crate) extern "C" fn lose(_: &Class, _: usize) -> *mut u8 {
    // SAFETY: as above.
    if let Some(state) = unsafe { ThreadState::current().as_ref() } {
        state.lose();
    }
    null_mut()
}

fn slower(class: &Class, payload: usize) -> *mut u8 {
    let _quiet = sys::Quiet::enter();
    loop {
        let (room, process) = reserve_in_process(class, payload);
        match process {
            // The process has started a new trace as another user, which happens a few times at
            // most.
            Some(process) if room.is_null() && !process.is_current() => {}
            _ => return room,
        }
    }
}

/// Reserves memory in a buffer of the process. Returns the process, too, if there is no room and
/// the loss is not counted yet.
fn reserve_in_process(class: &Class, payload: usize) -> (*mut u8, Option<&'static Process>) {
    let Some(process) = registered(class, false).filter(|_| class.is_enabled()) else {
        return (null_mut(), None);
    };
    // SAFETY: as above. A state of another epoch belongs to the process from which this process was
    // forked, or which it has left.
    let state = unsafe { ThreadState::current().as_ref() };
    let mut owned =
        match state.filter(|state| state.epoch.load(Ordering::Relaxed) == process.epoch()) {
            Some(state) => Owned::attached(process, state),
            None => {
                if state.is_none_or(ThreadState::is_wiped) {
                    fork::leave_buffer();
                }
                Owned::attach(process)
            }
        };
    let fits =
        payload <= MOST_PAYLOAD && HEAD + reserve::room(payload) <= process.config().packet_size;
    if process.is_nowhere(owned.state) || !fits {
        if process.is_over() {
            class.switch_off();
        } else {
            owned.state.lose();
        }
        return (null_mut(), None);
    }
    let room = reserve_slowly(&mut owned, payload);
    if room.is_null() && process.is_current() {
        owned.state.lose();
        return (room, None);
    }
    (room, Some(process))
}

/// Each attempt renews the clock's line, which may expire before it is used if the thread has to
/// wait for a CPU.
const MOST_TRIES: u32 = 100;
/// Number of failed attempts after which the packet's head is assumed to be overwritten by the
/// program.
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
