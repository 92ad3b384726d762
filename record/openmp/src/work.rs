//! Worksharing constructs as spans: one for each task that takes part.
//!
//! Safety: the runtime passes words of this library that are valid during the callback.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use crate::abi::{Data, scope, work};
use crate::functions::{span_begin, span_end};
use crate::lwp;
use crate::pool::get;
use crate::task::Task;

pub(crate) extern "C" fn work(
    kind: c_int,
    endpoint: c_int,
    _parallel: *mut Data,
    task: *mut Data,
    _count: u64,
    codeptr: *const c_void,
) {
    let (Some(task), Some(kind)) = (unsafe { get::<Task>(task) }, shown(kind)) else {
        return;
    };
    lwp::with(|lwp| match endpoint {
        scope::BEGIN => {
            let open = task.open_spans.fetch_add(1, Ordering::Relaxed) as usize;
            if let Some(place) = task.spans.get(open) {
                let span = lwp.new_span();
                place.store(span, Ordering::Relaxed);
                span_begin(span, lwp.names.of(codeptr as u64, kind, &task.label).name);
            }
        }
        scope::END => {
            let open = task.open_spans.load(Ordering::Relaxed);
            let Some(last) = open.checked_sub(1) else {
                return;
            };
            task.open_spans.store(last, Ordering::Relaxed);
            if let Some(place) = task.spans.get(last as usize) {
                span_end(place.load(Ordering::Relaxed));
            }
        }
        _ => {}
    });
}

/// Word for a construct; `None` for threads that pass by a `single`.
fn shown(kind: c_int) -> Option<&'static str> {
    Some(match kind {
        work::LOOP => "for",
        work::SECTIONS => "sections",
        work::SINGLE_EXECUTOR => "single",
        work::WORKSHARE => "workshare",
        work::DISTRIBUTE => "distribute",
        work::TASKLOOP => "taskloop",
        work::SCOPE => "scope",
        // Schedules of loops, as versions from 5.2 distinguish them.
        10..=14 => "for",
        _ => return None,
    })
}
