//! Waits for tasks and at barriers.
//!
//! Safety: the runtime passes words of this library that are valid during the callback.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use crate::abi::{Data, scope, sync_region};
use crate::counts::Awaited;
use crate::lwp::{self, Lwp};
use crate::pool::{get, load, store};
use crate::scheduling::wake_members;
use crate::task::Task;

pub(crate) extern "C" fn sync_region_wait(
    kind: c_int,
    endpoint: c_int,
    parallel: *mut Data,
    task: *mut Data,
    _codeptr: *const c_void,
) {
    lwp::with(|lwp| {
        let Some(task) = unsafe { get::<Task>(task) }.or(lwp.task.get()) else {
            return;
        };
        let group = load(&task.group).filter(|_| kind == sync_region::TASKGROUP);
        let awaited = match kind {
            sync_region::TASKWAIT => Some(&task.children),
            _ => group.map(|group| &group.tasks),
        };
        match (endpoint, kind, awaited) {
            (scope::BEGIN, sync_region::TASKWAIT, Some(awaited)) => {
                wait_for_tasks(lwp, task, awaited, c"taskwait");
            }
            (scope::BEGIN, sync_region::TASKGROUP, Some(awaited)) => {
                wait_for_tasks(lwp, task, awaited, c"taskgroup");
            }
            (scope::END, _, Some(awaited)) => {
                awaited.end_wait();
                lwp.come_back(task);
            }
            (_, sync_region::TASKWAIT | sync_region::TASKGROUP, None) => {}
            (scope::BEGIN, ..) => arrive(lwp, task),
            (scope::END, ..) => pass(lwp, task, kind, parallel.is_null()),
            _ => {}
        }
    });
}

fn wait_for_tasks(lwp: &Lwp, task: &Task, awaited: &Awaited, reason: &core::ffi::CStr) {
    if awaited.is_zero() {
        return;
    }
    task.block(reason);
    // The last task may have ended in the meantime, when nothing waited.
    if !awaited.begin_wait() {
        task.wake();
    }
    lwp.leave(task);
}

/// A thread arrives at a barrier.
fn arrive(lwp: &Lwp, task: &'static Task) {
    let Some(team) = load(&task.team) else { return };
    if !team.barrier.is_last() {
        task.block(match lwp.is_reducing.get() {
            true => c"reduction",
            false => c"barrier",
        });
    }
    if team.barrier.finish() {
        wake_members(team);
    }
    lwp.leave(task);
}

/// A thread has passed a barrier.
fn pass(lwp: &Lwp, task: &'static Task, kind: c_int, has_no_region: bool) {
    let ends_region = has_no_region || kind == sync_region::BARRIER_IMPLICIT_PARALLEL;
    let first = load(&task.team).map(|team| team.first_id.load(Ordering::Relaxed));
    match ends_region && first != Some(task.id()) {
        // Reported late, when the thread is about to run another task.
        true => task.is_in_wait.store(false, Ordering::Relaxed),
        false => lwp.come_back(task),
    }
}

pub(crate) extern "C" fn sync_region(
    kind: c_int,
    endpoint: c_int,
    _parallel: *mut Data,
    task: *mut Data,
    _codeptr: *const c_void,
) {
    if kind != sync_region::TASKGROUP {
        return;
    }
    let Some(task) = (unsafe { get::<Task>(task) }) else {
        return;
    };
    lwp::with(|lwp| match endpoint {
        scope::BEGIN => {
            if let Some(group) = lwp.groups.take() {
                group.tasks.reset();
                store(&group.waiter, Some(task));
                store(&group.outer, load(&task.group));
                store(&task.group, Some(group));
            }
        }
        scope::END => {
            if let Some(group) = load(&task.group) {
                store(&task.group, load(&group.outer));
                lwp.groups.free(group);
            }
        }
        _ => {}
    });
}

pub(crate) extern "C" fn reduction(
    kind: c_int,
    endpoint: c_int,
    _parallel: *mut Data,
    _task: *mut Data,
    _codeptr: *const c_void,
) {
    if kind == sync_region::REDUCTION {
        lwp::with(|lwp| lwp.is_reducing.set(endpoint == scope::BEGIN));
    }
}
