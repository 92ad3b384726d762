//! Waits for locks, critical sections and the like: who has which, and who waits for it.
//!
//! OMPT reports that a mutex was released, not to whom it goes. libomp's usual locks are queues, so
//! the first waiter is woken; if another one acquires the mutex, that one is blocked again.
//!
//! Safety: the one piece of assembly passes a further argument, in the register for it.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::mutex;
use crate::lwp::{self, Lwp};
use crate::symbols;
use crate::task::Task;

/// A mutex that a task has or waits for.
struct Held {
    wait_id: u64,
    owner: Option<&'static Task>,
    /// The waiter that the last owner has woken.
    woken: Option<&'static Task>,
    /// Other waiters, the first one first.
    waiters: Vec<&'static Task>,
}

const BUCKETS: usize = 64;
static HELD: [Mutex<Vec<Held>>; BUCKETS] = [const { Mutex::new(Vec::new()) }; BUCKETS];

fn bucket(wait_id: u64) -> MutexGuard<'static, Vec<Held>> {
    let at = (wait_id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % BUCKETS;
    HELD[at].lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    fn is_owned_by_other(&self, task: &Task) -> bool {
        self.owner.is_some_and(|owner| !ptr::eq(owner, task))
    }

    fn is_unused(&self) -> bool {
        self.owner.is_none() && self.woken.is_none() && self.waiters.is_empty()
    }
}

/// The entry of a mutex, which may be new.
fn entry(bucket: &mut Vec<Held>, wait_id: u64) -> &mut Held {
    let at = bucket.iter().position(|held| held.wait_id == wait_id);
    let at = at.unwrap_or_else(|| {
        bucket.push(Held {
            wait_id,
            owner: None,
            woken: None,
            waiters: Vec::new(),
        });
        bucket.len() - 1
    });
    &mut bucket[at]
}

fn reason(kind: c_int) -> &'static CStr {
    match kind {
        mutex::CRITICAL => c"critical",
        mutex::ATOMIC => c"atomic",
        mutex::ORDERED => c"ordered",
        _ => c"lock",
    }
}

core::arch::global_asm!(
    ".globl tracebraid_openmp_mutex_acquire",
    ".hidden tracebraid_openmp_mutex_acquire",
    ".type tracebraid_openmp_mutex_acquire, @function",
    "tracebraid_openmp_mutex_acquire:",
    "mov r9, [rsp]",
    "jmp {acquire}",
    ".size tracebraid_openmp_mutex_acquire, . - tracebraid_openmp_mutex_acquire",
    acquire = sym acquire,
);

unsafe extern "C" {
    /// The callback: calls [`acquire`] with the address in the runtime to which it returns.
    #[link_name = "tracebraid_openmp_mutex_acquire"]
    pub(crate) fn mutex_acquire(
        kind: c_int,
        hint: c_uint,
        implementation: c_uint,
        wait_id: u64,
        codeptr: *const c_void,
    );
}

extern "C" fn acquire(
    kind: c_int,
    _hint: c_uint,
    _implementation: c_uint,
    wait_id: u64,
    _codeptr: *const c_void,
    caller: u64,
) {
    if matches!(kind, mutex::TEST_LOCK | mutex::TEST_NEST_LOCK) {
        return;
    }
    lwp::with(|lwp| {
        let Some(task) = lwp.task.get() else { return };
        let mut bucket = bucket(wait_id);
        let Some(held) = bucket.iter_mut().find(|held| held.wait_id == wait_id) else {
            // Free; a turn of `ordered` may be another's all the same.
            if kind == mutex::ORDERED {
                wait(lwp, task, entry(&mut bucket, wait_id), kind);
            }
            return;
        };
        let is_own = held.owner.is_some_and(|owner| ptr::eq(owner, task));
        let is_lock = matches!(kind, mutex::LOCK | mutex::NEST_LOCK);
        if is_own || is_lock && is_test(caller) {
            return;
        }
        wait(lwp, task, held, kind);
    });
}

/// Functions of the runtime that acquire locks, by addresses in them, and whether they only try to.
static CALLERS: Mutex<Vec<(u64, bool)>> = Mutex::new(Vec::new());

/// True if the runtime's function at an address tries to acquire a lock, and does not wait.
fn is_test(caller: u64) -> bool {
    let mut callers = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, is_test)) = callers.iter().find(|(address, _)| *address == caller) {
        return *is_test;
    }
    let name = symbols::symbol_at(caller);
    let is_test = name.is_some_and(|name| name.contains("test"));
    callers.push((caller, is_test));
    is_test
}

fn wait(lwp: &Lwp, task: &'static Task, held: &mut Held, kind: c_int) {
    task.block(reason(kind));
    held.waiters.push(task);
    lwp.leave(task);
}

/// Times that a new owner looks whether the last one has reported the release: less than a
/// microsecond.
const LOOKS: u32 = 100;

pub(crate) extern "C" fn mutex_acquired(kind: c_int, wait_id: u64, _codeptr: *const c_void) {
    lwp::with(|lwp| {
        let Some(task) = lwp.task.get() else { return };
        let mut bucket = bucket(wait_id);
        // The report of the release comes after the release. Without it, the wake-up would lack the
        // one who caused it.
        for _ in 0..LOOKS {
            if !task.is_blocked() || !entry(&mut bucket, wait_id).is_owned_by_other(task) {
                break;
            }
            drop(bucket);
            core::hint::spin_loop();
            bucket = self::bucket(wait_id);
        }
        let held = entry(&mut bucket, wait_id);
        held.owner = Some(task);
        held.waiters.retain(|waiter| !ptr::eq(*waiter, task));
        if let Some(woken) = held.woken.take()
            && !ptr::eq(woken, task)
        {
            woken.block(reason(kind));
            held.waiters.insert(0, woken);
        }
        drop(bucket);
        lwp.come_back(task);
    });
}

pub(crate) extern "C" fn mutex_released(_kind: c_int, wait_id: u64, _codeptr: *const c_void) {
    lwp::with(|lwp| {
        let Some(task) = lwp.task.get() else { return };
        let mut bucket = bucket(wait_id);
        let Some(at) = bucket.iter().position(|held| held.wait_id == wait_id) else {
            return;
        };
        let held = &mut bucket[at];
        // Otherwise the next owner has been reported already.
        if held.owner.is_some_and(|owner| ptr::eq(owner, task)) {
            held.owner = None;
            if !held.waiters.is_empty() && held.woken.is_none() {
                let first = held.waiters.remove(0);
                first.wake();
                held.woken = Some(first);
            }
        }
        if held.is_unused() {
            bucket.swap_remove(at);
        }
    });
}
