//! Explicit tasks: created, scheduled, completed.
//!
//! Safety: the runtime passes words of this library that are valid during the callback.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use crate::abi::{Data, task_flag, task_status};
use crate::functions::ult_create;
use crate::lwp::{self, Lwp};
use crate::names::Label;
use crate::pool::{get, load, put, store};
use crate::task::{Task, Team};
use crate::{dependences, recorded};

pub(crate) extern "C" fn task_create(
    encountering: *mut Data,
    _frame: *const c_void,
    new: *mut Data,
    flags: c_int,
    _has_dependences: c_int,
    codeptr: *const c_void,
) {
    if flags & (task_flag::INITIAL | task_flag::IMPLICIT) != 0 {
        return;
    }
    lwp::with(|lwp| {
        let parent = unsafe { get::<Task>(encountering) }.or(lwp.task.get());
        let Some(task) = lwp.tasks.take() else { return };
        if flags & task_flag::TASKWAIT != 0 {
            // Stands for a `taskwait` with dependences: only its predecessors matter.
            task.reset(0, flags);
            store(&task.resumed, parent);
        } else {
            task.reset(lwp.new_id(), flags);
            begin(lwp, task, parent, codeptr as u64);
        }
        unsafe { put(new, Some(task)) };
    });
}

/// Counts and records a new task.
fn begin(lwp: &Lwp, task: &'static Task, parent: Option<&'static Task>, codeptr: u64) {
    static NONE: Label = Label::new();
    let named = lwp.names.of(
        codeptr,
        "task",
        parent.map_or(&NONE, |parent| &parent.label),
    );
    task.label.set(named.function);
    if let Some(parent) = parent {
        parent.references.fetch_add(1, Ordering::Relaxed);
        parent.children.add();
        store(&task.parent, Some(parent));
        let team = load(&parent.team);
        store(&task.team, team);
        if let Some(team) = team {
            team.barrier.add_task();
        }
        let group = load(&parent.group);
        store(&task.group, group);
        if let Some(group) = group {
            group.tasks.add();
        }
    }
    ult_create(task.id(), named.name);
    let flags = task.flags.load(Ordering::Relaxed);
    recorded::task(task.id(), parent.map_or(0, Task::id), codeptr, flags);
}

pub(crate) extern "C" fn task_schedule(prior: *mut Data, status: c_int, next: *mut Data) {
    let (prior, next) = unsafe { (get::<Task>(prior), get::<Task>(next)) };
    lwp::with(|lwp| match status {
        task_status::TASKWAIT_COMPLETE => {
            if let Some(taskwait) = prior {
                if let Some(waiter) = load(&taskwait.resumed) {
                    lwp.come_back(waiter);
                }
                lwp.condemn(taskwait);
            }
        }
        task_status::EARLY_FULFILL => {}
        task_status::LATE_FULFILL => {
            if let Some(prior) = prior {
                finish(lwp, prior);
            }
        }
        _ => {
            if let Some(prior) = prior {
                leave(lwp, prior, status, next);
            }
            lwp.task.set(next);
            match next {
                Some(next) => lwp.resume(next),
                None => lwp.switch(0),
            }
        }
    });
}

/// A thread leaves a task, which ends or waits.
fn leave(lwp: &Lwp, prior: &'static Task, status: c_int, next: Option<&'static Task>) {
    match status {
        task_status::COMPLETE | task_status::CANCEL => finish(lwp, prior),
        task_status::DETACH => prior.block(c"event"),
        _ => {
            let is_own = |next: &Task| {
                next.has(task_flag::UNDEFERRED)
                    && ptr::eq(next.parent.load(Ordering::Relaxed), prior)
            };
            let waits = prior.is_in_wait.load(Ordering::Relaxed);
            if !waits && next.is_some_and(is_own) {
                prior.block(c"undeferred");
            }
        }
    }
}

/// A task is complete: tasks that waited for it are ready.
fn finish(lwp: &Lwp, task: &'static Task) {
    dependences::finish(lwp, task);
    if let Some(parent) = load(&task.parent) {
        let ends = parent.children.finish();
        if ends || task.has(task_flag::UNDEFERRED) && !parent.is_in_wait.load(Ordering::Relaxed) {
            parent.wake();
        }
    }
    if let Some(group) = load(&task.group) {
        let waiter = load(&group.waiter);
        if group.tasks.finish()
            && let Some(waiter) = waiter
        {
            waiter.wake();
        }
    }
    if let Some(team) = load(&task.team)
        && team.barrier.finish()
    {
        wake_members(team);
    }
    task.exit();
    lwp.condemn(task);
}

/// The barrier of a team ends.
pub(crate) fn wake_members(team: &Team) {
    let mut member = load(&team.members);
    while let Some(task) = member {
        task.wake();
        member = load(&task.next_member);
    }
}

pub(crate) extern "C" fn cancel(task: *mut Data, flags: c_int, codeptr: *const c_void) {
    let ult = unsafe { get::<Task>(task) }.map_or(0, Task::id);
    recorded::cancel(ult, codeptr as u64, flags as u32);
}
