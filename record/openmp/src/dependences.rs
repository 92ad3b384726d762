//! Dependences between tasks: a task with unfinished predecessors is blocked, and the last of them
//! that ends wakes it.
//!
//! Safety: the runtime passes words of this library that are valid during the callback. It reports a
//! dependence before the successor can run, and while it keeps the predecessor's word.

#![allow(unsafe_code)]

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::abi::{Data, task_flag};
use crate::lwp::{self, Lwp};
use crate::pool::{get, load, store};
use crate::task::Task;

/// Calls a function while no other thread changes the task's successors.
fn locked(lock: &AtomicBool, call: impl FnOnce()) {
    while lock.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    call();
    lock.store(false, Ordering::Release);
}

pub(crate) extern "C" fn task_dependence(source: *mut Data, sink: *mut Data) {
    let (source, sink) = unsafe { (get::<Task>(source), get::<Task>(sink)) };
    let (Some(source), Some(sink)) = (source, sink) else {
        return;
    };
    lwp::with(|lwp| {
        locked(&source.lock, || {
            // Otherwise it has ended, and the runtime has yet to notice.
            if !source.is_complete.load(Ordering::Relaxed) {
                add(lwp, source, sink);
            }
        });
    });
}

fn add(lwp: &Lwp, source: &'static Task, sink: &'static Task) {
    let Some(edge) = lwp.edges.take() else { return };
    store(&edge.successor, Some(sink));
    store(&edge.next, load(&source.successors));
    store(&source.successors, Some(edge));
    if sink.predecessors.fetch_add(1, Ordering::AcqRel) > 0 {
        return;
    }
    match sink.has(task_flag::TASKWAIT) {
        true => {
            if let Some(waiter) = load(&sink.resumed) {
                waiter.block(c"dependence");
                lwp.leave(waiter);
            }
        }
        false => lwp.block_at_begin(sink, c"dependence"),
    }
}

/// A task is complete.
pub(crate) fn finish(lwp: &Lwp, task: &'static Task) {
    let mut edge = None;
    locked(&task.lock, || {
        task.is_complete.store(true, Ordering::Relaxed);
        edge = load(&task.successors);
        task.successors.store(null_mut(), Ordering::Relaxed);
    });
    while let Some(this) = edge {
        edge = load(&this.next);
        if let Some(successor) = load(&this.successor)
            && successor.predecessors.fetch_sub(1, Ordering::AcqRel) == 1
        {
            let waiter = match successor.has(task_flag::TASKWAIT) {
                true => load(&successor.resumed),
                false => Some(successor),
            };
            waiter.map(Task::wake);
        }
        lwp.edges.free(this);
    }
}
