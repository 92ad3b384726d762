//! Records tasks of Tokio as user-level threads, and its threads as LWPs.
//!
//! ```no_run
//! use tracing_subscriber::prelude::*;
//! tracing_subscriber::registry().with(tracebraid_tokio::layer()).init();
//! ```
//!
//! at the begin of `main`. Tokio reports its tasks if it is built with the feature `tracing` and with
//! `--cfg tokio_unstable` (`RUSTFLAGS`), as for tokio-console.
//!
//! **In**: spans and events of Tokio (1.38 and later): `runtime.spawn`, `tokio::task::waker`,
//! `runtime.resource.async_op`. **Out**: event records of `tracebraid_probe`:
//!
//! | record | when |
//! |---|---|
//! | `ult_create` | a task is spawned; its name, or the file and line of the call |
//! | `ult_switch` | a poll begins and ends; 0 in between |
//! | `ult_block` | a poll ends, and the task has not been woken meanwhile; the reason is the resource that it polled (`sleep`, `mutex`, `semaphore`, `rwlock`, `barrier`, ...), or `future` |
//! | `ult_wake` | a waker of the task is used |
//! | `ult_exit` | the task is dropped |
//! | `lwp_begin`, `lwp_end` | a thread polls its first task, ends |
//!
//! A task that has ended is also recorded as blocked until it is dropped, immediately afterwards:
//! Tokio does not report whether a poll was the last.
//!
//! Without a session, the layer wants no spans, and Tokio makes none for it.

use std::cell::Cell;
use std::fmt::{self, Debug, Write};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use tracebraid_probe::standard;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// The layer that records tasks. It does not affect which spans and events other layers see.
pub fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let is_enabled = tracebraid_probe::has_session();
    let filter = move |metadata: &Metadata<'_>| is_enabled && reported(metadata) != Reported::Other;
    TaskLayer.with_filter(FilterFn::new(filter))
}

/// Records tasks: see [`layer`].
struct TaskLayer;

/// A task, kept with its span.
struct Task {
    ult: u64,
    /// Root futures and blocking functions are run without being woken.
    is_woken_unseen: bool,
    state: AtomicU8,
}

const READY: u8 = 0;
const RUNNING: u8 = 1;
/// Woken during its poll.
const WOKEN: u8 = 2;
const BLOCKED: u8 = 3;

/// The resource of an operation, kept with its span.
struct Operation(String);

#[derive(Clone, Copy, PartialEq)]
enum Reported {
    Task,
    Operation,
    Poll,
    Wake,
    Other,
}

fn reported(metadata: &Metadata<'_>) -> Reported {
    match (metadata.name(), metadata.target()) {
        ("runtime.spawn", _) => Reported::Task,
        ("runtime.resource.async_op", _) => Reported::Operation,
        ("runtime.resource.async_op.poll", _) => Reported::Poll,
        (_, "tokio::task::waker") => Reported::Wake,
        _ => Reported::Other,
    }
}

/// State of a thread.
#[derive(Default)]
struct Lwp {
    is_begun: Cell<bool>,
    current: Cell<u64>,
    /// Depth of operations that are being polled.
    depth: Cell<u32>,
    reason: Cell<Option<String>>,
}

impl Lwp {
    fn switch(&self, to: u64) {
        if !self.is_begun.replace(true) {
            standard::lwp_begin("tokio");
        }
        let from = self.current.replace(to);
        if from != to {
            standard::ult_switch(from, to);
        }
    }
}

impl Drop for Lwp {
    fn drop(&mut self) {
        if self.is_begun.get() {
            standard::lwp_end();
        }
    }
}

thread_local! {
    static LWP: Lwp = Lwp::default();
}

static LAST: AtomicU64 = AtomicU64::new(0);

/// Fields of Tokio's spans and events.
#[derive(Default)]
struct Fields {
    name: String,
    file: String,
    line: u64,
    kind: String,
    source: String,
    operation: String,
    task: u64,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = match field.name() {
            "task.name" => &mut self.name,
            "kind" => &mut self.kind,
            "loc.file" => &mut self.file,
            "source" => &mut self.source,
            "op" => &mut self.operation,
            _ => return,
        };
        // Writing to a text does not fail.
        let _ = write!(text, "{value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "task.id" => self.task = value,
            "loc.line" => self.line = value,
            _ => {}
        }
    }
}

/// `NAME`, or `FILE:LINE` with the last part of the path.
struct Name<'a>(&'a Fields);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields {
            name,
            file,
            line,
            kind,
            ..
        } = self.0;
        let file = file.rsplit('/').next().unwrap_or(file);
        match (name.is_empty(), kind.as_str()) {
            (false, _) => f.write_str(name),
            (true, "task") => write!(f, "{file}:{line}"),
            (true, kind) => write!(f, "{file}:{line} {kind}"),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TaskLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        match reported(attributes.metadata()) {
            Reported::Task => {
                attributes.record(&mut fields);
                let ult = LAST.fetch_add(1, Ordering::Relaxed) + 1;
                standard::ult_create(ult, Name(&fields).to_string());
                span.extensions_mut().insert(Task {
                    ult,
                    is_woken_unseen: fields.kind != "task",
                    state: AtomicU8::new(READY),
                });
            }
            Reported::Operation => {
                attributes.record(&mut fields);
                let resource = fields.source.split("::").next().unwrap_or_default();
                let reason = match resource {
                    "Acquire" => "semaphore".to_owned(),
                    "Receiver" => "oneshot".to_owned(),
                    other => other.to_lowercase(),
                };
                span.extensions_mut().insert(Operation(reason));
            }
            _ => {}
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        match reported(span.metadata()) {
            Reported::Task => with_task(&span, begin_poll),
            Reported::Poll => LWP.with(|lwp| {
                if lwp.depth.replace(lwp.depth.get() + 1) == 0 {
                    lwp.reason.set(operation_of(&span));
                }
            }),
            _ => {}
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        match reported(span.metadata()) {
            Reported::Task => with_task(&span, end_poll),
            Reported::Poll => {
                LWP.with(|lwp| lwp.depth.set(lwp.depth.get().saturating_sub(1)));
            }
            _ => {}
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if reported(event.metadata()) != Reported::Wake {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.task == 0 || !fields.operation.starts_with("waker.wake") {
            return;
        }
        if let Some(span) = context.span(&Id::from_u64(fields.task)) {
            with_task(&span, wake);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id)
            && reported(span.metadata()) == Reported::Task
        {
            with_task(&span, |task| standard::ult_exit(task.ult));
        }
    }
}

fn with_task<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>, call: impl FnOnce(&Task)) {
    if let Some(task) = span.extensions().get::<Task>() {
        call(task);
    }
}

/// The resource of the operation that a poll belongs to.
fn operation_of<'a, R: LookupSpan<'a>>(poll: &SpanRef<'a, R>) -> Option<String> {
    let operation = poll.parent()?;
    let extensions = operation.extensions();
    extensions.get::<Operation>().map(|found| found.0.clone())
}

fn begin_poll(task: &Task) {
    if task.state.load(Ordering::Acquire) == BLOCKED {
        if !task.is_woken_unseen {
            // Not a poll: the task has ended, and its future is being dropped.
            return;
        }
        wake(task);
    }
    task.state.store(RUNNING, Ordering::Release);
    LWP.with(|lwp| {
        lwp.depth.set(0);
        lwp.reason.set(None);
        lwp.switch(task.ult);
    });
}

fn end_poll(task: &Task) {
    LWP.with(|lwp| {
        if lwp.current.get() != task.ult {
            return;
        }
        let is_woken = task.state.load(Ordering::Acquire) == WOKEN;
        if is_woken {
            task.state.store(READY, Ordering::Release);
        } else {
            let reason = lwp.reason.take();
            standard::ult_block(task.ult, reason.as_deref().unwrap_or("future"));
            let blocked =
                task.state
                    .compare_exchange(RUNNING, BLOCKED, Ordering::AcqRel, Ordering::Acquire);
            if blocked.is_err() {
                // Woken in between.
                standard::ult_wake(task.ult);
                task.state.store(READY, Ordering::Release);
            }
        }
        lwp.switch(0);
    });
}

fn wake(task: &Task) {
    let woken = |state| match state {
        RUNNING => Some(WOKEN),
        BLOCKED => Some(READY),
        _ => None,
    };
    let before = (task.state).fetch_update(Ordering::AcqRel, Ordering::Acquire, woken);
    if before == Ok(BLOCKED) {
        standard::ult_wake(task.ult);
    }
}
