//! Threads, parallel regions and implicit tasks.
//!
//! Implicit tasks are created with their region, by the task that encounters it. How many threads
//! the runtime will provide is not known then: the number is predicted from the last region of the
//! same depth and request. Tasks in excess end at once, missing ones are created by their threads.
//!
//! Safety: the runtime passes words of this library that are valid during the callback.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::Write;

use crate::abi::{Data, scope, task_flag};
use crate::functions::{lwp_begin, lwp_end, span_begin, span_end, ult_create, ult_exit};
use crate::lwp::{self, Lwp};
use crate::names::Label;
use crate::pool::{get, load, push, put, store};
use crate::recorded;
use crate::task::{Task, Team};

pub(crate) extern "C" fn thread_begin(_kind: c_int, _thread: *mut Data) {
    lwp_begin(c"openmp");
}

pub(crate) extern "C" fn thread_end(_thread: *mut Data) {
    lwp::with(Lwp::end);
    lwp_end();
}

/// Most implicit tasks that are created with a region.
const MOST_PREDICTED: u32 = 4096;

/// By depth: the requested and the actual number of threads of the last region.
static LAST: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

fn predicted(level: u32, requested: u32) -> u32 {
    let last = LAST[level as usize % LAST.len()].load(Ordering::Relaxed);
    match (last >> 32) as u32 == requested {
        true => (last as u32).min(requested),
        false => requested.min(MOST_PREDICTED),
    }
}

fn learn(level: u32, requested: u32, actual: u32) {
    let both = u64::from(requested) << 32 | u64::from(actual);
    LAST[level as usize % LAST.len()].store(both, Ordering::Relaxed);
}

pub(crate) extern "C" fn parallel_begin(
    encountering: *mut Data,
    _frame: *const c_void,
    parallel: *mut Data,
    requested: c_uint,
    _flags: c_int,
    codeptr: *const c_void,
) {
    lwp::with(|lwp| {
        let Some(team) = lwp.teams.take() else { return };
        team.reset();
        let encountering = unsafe { get::<Task>(encountering) }.or(lwp.task.get());
        let around = encountering.and_then(|task| load(&task.team));
        let level = around.map_or(0, |team| team.level.load(Ordering::Relaxed)) + 1;
        let requested = requested.max(1);
        let codeptr = codeptr as u64;
        static NONE: Label = Label::new();
        let label = encountering.map_or(&NONE, |task| &task.label);
        let named = lwp.names.of(codeptr, "parallel", label);
        team.label.set(named.function);
        team.level.store(level, Ordering::Relaxed);
        team.requested.store(requested, Ordering::Relaxed);
        team.codeptr.store(codeptr, Ordering::Relaxed);
        team.first_id
            .store(lwp.new_ids(requested), Ordering::Relaxed);
        store(&team.encountering, encountering);
        let span = lwp.new_span();
        team.span.store(span, Ordering::Relaxed);
        span_begin(span, named.name);
        let count = predicted(level, requested);
        for index in 0..count {
            create_implicit(lwp, team, index);
        }
        team.created.store(count, Ordering::Release);
        store(&team.outer, lwp.region.replace(Some(team)));
        unsafe { put(parallel, Some(team)) };
    });
}

/// `parallel` is not used: libomp may have given its memory to another region already.
pub(crate) extern "C" fn parallel_end(
    _parallel: *mut Data,
    _encountering: *mut Data,
    _flags: c_int,
    _codeptr: *const c_void,
) {
    lwp::with(|lwp| {
        if let Some(team) = lwp.region.get() {
            lwp.region.set(load(&team.outer));
            span_end(team.span.load(Ordering::Relaxed));
            lwp.release_team(team);
        }
    });
}

/// Records the creation of an implicit task: `FUNCTION parallel INDEX`.
fn create_implicit(lwp: &Lwp, team: &Team, index: u32) {
    let codeptr = team.codeptr.load(Ordering::Relaxed);
    let named = lwp.names.of(codeptr, "parallel", &team.label);
    let mut buffer = [0; 256];
    let mut rest = &mut buffer[..255];
    let name = named.name.to_bytes();
    let name = &name[..name.len().min(200)];
    let _ = rest.write_all(name);
    let _ = write!(rest, " {index}");
    let id = team.first_id.load(Ordering::Relaxed) + u64::from(index);
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or(c"parallel");
    ult_create(id, text);
    let parent = load(&team.encountering).map_or(0, Task::id);
    recorded::task(id, parent, codeptr, task_flag::IMPLICIT as u32);
}

pub(crate) extern "C" fn implicit_task(
    endpoint: c_int,
    parallel: *mut Data,
    task: *mut Data,
    actual: c_uint,
    index: c_uint,
    flags: c_int,
) {
    lwp::with(|lwp| {
        let is_initial = flags & task_flag::INITIAL != 0;
        if endpoint == scope::END {
            if let Some(ended) = unsafe { get::<Task>(task) } {
                unsafe { put::<Task>(task, None) };
                end_implicit(lwp, ended);
            }
            return;
        }
        let team = match unsafe { get::<Team>(parallel) } {
            Some(team) => team,
            None => {
                let Some(team) = lwp.teams.take() else { return };
                team.reset();
                team.first_id.store(lwp.new_ids(1), Ordering::Relaxed);
                team.requested.store(1, Ordering::Relaxed);
                unsafe { put(parallel, Some(team)) };
                team
            }
        };
        let begun = match is_initial {
            true => begin_initial(lwp, team),
            false => begin_implicit(lwp, team, actual.max(1), index),
        };
        if let Some(begun) = begun {
            unsafe { put(task, Some(begun)) };
        }
    });
}

fn begin_initial(lwp: &Lwp, team: &'static Team) -> Option<&'static Task> {
    team.barrier.begin(1);
    let task = new_member(lwp, team, 0, task_flag::INITIAL)?;
    ult_create(task.id(), c"initial task");
    recorded::task(task.id(), 0, 0, task_flag::INITIAL as u32);
    lwp.task.set(Some(task));
    lwp.switch(task.id());
    Some(task)
}

fn begin_implicit(
    lwp: &Lwp,
    team: &'static Team,
    actual: u32,
    index: u32,
) -> Option<&'static Task> {
    team.barrier.begin(actual);
    let created = team.created.load(Ordering::Acquire);
    if index >= created {
        create_implicit(lwp, team, index);
    }
    if index == 0 {
        let first = team.first_id.load(Ordering::Relaxed);
        (actual..created).for_each(|excess| ult_exit(first + u64::from(excess)));
        let requested = team.requested.load(Ordering::Relaxed);
        learn(team.level.load(Ordering::Relaxed), requested, actual);
    }
    let task = new_member(lwp, team, index, task_flag::IMPLICIT)?;
    let resumed = lwp.task.replace(Some(task));
    store(&task.resumed, resumed);
    if let Some(resumed) = resumed {
        resumed.block(c"parallel");
    }
    lwp.switch(task.id());
    Some(task)
}

fn new_member(lwp: &Lwp, team: &'static Team, index: u32, flags: i32) -> Option<&'static Task> {
    let task = lwp.tasks.take()?;
    task.reset(
        team.first_id.load(Ordering::Relaxed) + u64::from(index),
        flags,
    );
    store(&task.team, Some(team));
    task.label.clear();
    if let Some(function) = team.label.text() {
        task.label.set(function);
    }
    team.references.fetch_add(1, Ordering::Relaxed);
    push(&team.members, task, &task.next_member);
    Some(task)
}

fn end_implicit(lwp: &Lwp, task: &'static Task) {
    let Some(team) = load(&task.team) else { return };
    if task.id() == team.first_id.load(Ordering::Relaxed) {
        // The others have passed the last barrier, which the runtime may report much later.
        let mut member = load(&team.members);
        while let Some(other) = member {
            if !core::ptr::eq(other, task) {
                other.exit();
            }
            member = load(&other.next_member);
        }
    }
    task.exit();
    let resumed = load(&task.resumed);
    lwp.task.set(resumed);
    match resumed {
        Some(resumed) => {
            resumed.wake();
            lwp.resume(resumed);
        }
        None => lwp.switch(0),
    }
    lwp.release_team(team);
}
