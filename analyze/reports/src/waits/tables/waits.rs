//! Tables of single waits.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_threads::WakeSource;

use crate::waits::report::Who;
use crate::waits::sums::{Wait, Waker};
use crate::waits::tables::{SYSCALL, THREAD, WHY};
use tracebraid_tables::{Column, Section, Unit, Value, View};

pub(crate) fn list(
    who: &Who<'_>,
    key: &'static str,
    title: &str,
    view: View,
    waits: &[Wait],
) -> Section {
    let row = |wait: &Wait| {
        vec![
            Timestamp(wait.begin).into(),
            wait.duration.into(),
            wait.why.name().into(),
            wait.call.user_name().into(),
            who.thread(wait.thread).into(),
            context(wait.waker).map(Value::Text).into(),
            wait.waker.thread.map(|thread| who.thread(thread)).into(),
        ]
    };
    Section {
        key,
        title: title.to_owned(),
        view,
        columns: vec![
            Column::new("begin_ns", "Begin", Unit::Time),
            Column::new("duration_ns", "Duration", Unit::Duration),
            WHY,
            SYSCALL,
            THREAD,
            Column::new("context", "Woken by", Unit::Text)
                .optional()
                .left_out(1),
            Column::new("waker", "Waker", Unit::Thread)
                .optional()
                .left_out(2),
        ],
        rows: waits.iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

/// The context of the waker, if known.
fn context(waker: Waker) -> Option<String> {
    match waker.source {
        WakeSource::Thread if waker.thread.is_none() => None,
        source => Some(source.label()),
    }
}
