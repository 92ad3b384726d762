//! States of virtual threads, and of the carrier that runs on this thread.

use core::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};

use tracebraid_probe::standard;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Running,
    /// Woken after it has begun to park, and before it leaves its carrier.
    Woken,
    Blocked,
}

const SHARDS: usize = 64;
static SHARDED: [Mutex<Option<HashMap<u64, State>>>; SHARDS] = [const { Mutex::new(None) }; SHARDS];

/// Calls a function with the states of the threads that share a lock with this one.
fn with<R>(thread: u64, call: impl FnOnce(&mut HashMap<u64, State>) -> R) -> R {
    let shard = &SHARDED[thread as usize % SHARDS];
    let mut states = shard.lock().unwrap_or_else(PoisonError::into_inner);
    call(states.get_or_insert_default())
}

/// The carrier thread.
struct Lwp {
    is_begun: Cell<bool>,
    current: Cell<u64>,
}

impl Drop for Lwp {
    fn drop(&mut self) {
        if self.is_begun.get() {
            standard::lwp_end();
        }
    }
}

fn switch(to: u64) {
    thread_local! {
        static LWP: Lwp = const {
            Lwp {
                is_begun: Cell::new(false),
                current: Cell::new(0),
            }
        };
    }
    // A thread that ends runs no virtual threads.
    let _ = LWP.try_with(|lwp| {
        if !lwp.is_begun.replace(true) {
            standard::lwp_begin("java");
        }
        let from = lwp.current.replace(to);
        if from != to {
            standard::ult_switch(from, to);
        }
    });
}

/// A thread is started; without a name, it is named by its number.
pub(crate) fn create(thread: u64, name: &str) {
    with(thread, |states| {
        if let Entry::Vacant(new) = states.entry(thread) {
            new.insert(State::Ready);
            match name.is_empty() {
                true => standard::ult_create(thread, format!("virtual-{thread}")),
                false => standard::ult_create(thread, name),
            }
        }
    });
}

/// A carrier begins to run a thread.
pub(crate) fn mount(thread: u64) {
    create(thread, "");
    with(thread, |states| {
        if states.insert(thread, State::Running) == Some(State::Blocked) {
            standard::ult_wake(thread);
        }
        switch(thread);
    });
}

/// A carrier leaves a thread, which waits if there is a reason.
pub(crate) fn unmount(thread: u64, reason: Option<&str>) {
    with(thread, |states| {
        if let Some(state) = states.get_mut(&thread) {
            let was = core::mem::replace(state, State::Ready);
            if let Some(reason) = reason.filter(|_| was == State::Running) {
                standard::ult_block(thread, reason);
                *state = State::Blocked;
            }
        }
        switch(0);
    });
}

/// A thread need not wait any longer; `is_parking` if it is about to leave its carrier to wait.
pub(crate) fn wake(thread: u64, is_parking: bool) {
    with(thread, |states| match states.get_mut(&thread) {
        Some(state @ State::Blocked) => {
            standard::ult_wake(thread);
            *state = State::Ready;
        }
        Some(state @ State::Running) if is_parking => *state = State::Woken,
        _ => {}
    });
}

/// A thread has ended.
pub(crate) fn end(thread: u64) {
    with(thread, |states| {
        if states.remove(&thread).is_some() {
            standard::ult_exit(thread);
        }
    });
}
