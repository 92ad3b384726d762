//! The critical path of an execution as a sequence of steps, for its time line.

use serde_json::{Value, json};
use tracebraid_executions::database::{Database, Recorded};

use crate::Refusal;
use crate::sources::Shown;

/// The path of an execution in the format of the page.
pub(crate) fn path(database: &Database, id: u32, shown: Shown) -> Result<Value, Refusal> {
    let found = database.execution(id).map_err(|error| error.to_string())?;
    found
        .map(|found| json(database, id, &found, shown))
        .ok_or_else(|| format!("there is no execution {id}"))
}

fn json(database: &Database, id: u32, found: &Recorded, shown: Shown) -> Value {
    // Threads in the order of their first steps. An unknown thread has an entry of its own, and so
    // has a device.
    let mut threads: Vec<(Option<u32>, bool)> = Vec::new();
    let mut begin = 0u64;
    let mut segments = Vec::with_capacity(found.steps.len());
    for step in &found.steps {
        let is_on_device = step.thread.is_none() && database.union.is_of_device(step.context);
        let thread = (step.thread, is_on_device);
        let place = threads.iter().position(|known| *known == thread);
        let place = place.unwrap_or_else(|| {
            threads.push(thread);
            threads.len() - 1
        });
        segments.push(json!([begin, step.duration, place, step.context.0]));
        begin = begin.saturating_add(step.duration);
    }
    let thread = |(thread, is_on_device): &(Option<u32>, bool)| {
        let unknown = if *is_on_device { "device" } else { "?" };
        let thread = thread.and_then(|id| database.threads.get(id as usize));
        let source = thread.and_then(|of| {
            database
                .sources
                .get(usize::try_from(of.source).ok()?.checked_sub(1)?)
        });
        json!({
            "name": thread.and_then(|of| of.name.as_deref()).unwrap_or(unknown),
            "tid": thread.map(|of| of.tid),
            "host": source.and_then(|of| of.host.as_deref()),
        })
    };
    json!({
        "execution": id,
        "begin_ns": found.begin.to_string(),
        "source": found.source,
        "threads": threads.iter().map(thread).collect::<Vec<_>>(),
        "segments": segments,
        "command": found.command_in(database, &shown.paths(database), shown == Shown::Whole),
    })
}
