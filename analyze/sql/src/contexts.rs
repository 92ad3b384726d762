//! The table `contexts`: calling contexts of executions, functions renamed.

use std::sync::Arc;

use rusqlite::types::Value;
use tracebraid_executions::database::Database;
use tracebraid_executions::{ContextId, FrameKind, Union};
use tracebraid_graph::WaitReason;

use crate::asked::Asked;
use crate::list::List;
use crate::table::{Column, Rows, Table, integer, text};

pub(crate) struct ContextTable {
    union: Arc<Union>,
}

impl ContextTable {
    pub(crate) fn new(database: &Database) -> ContextTable {
        ContextTable {
            union: Arc::new(database.union.clone()),
        }
    }

    /// The contexts and their names.
    pub(crate) fn union(&self) -> Arc<Union> {
        self.union.clone()
    }
}

impl Table for ContextTable {
    fn name(&self) -> &'static str {
        "contexts"
    }

    fn about(&self) -> &'static str {
        "calling contexts, functions renamed"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 6] = [
            Column::integer("id", "from 0, which has no frames"),
            Column::integer("around", "id of the enclosing context"),
            Column::integer("depth", "number of frames"),
            Column::text(
                "kind",
                "kind of the innermost frame: function, call, thread, reason, detail",
            ),
            Column::text("name", "name of the innermost frame"),
            Column::text("text", "all frames, the outermost first"),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        0
    }

    fn size(&self) -> f64 {
        self.union.contexts.count() as f64
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        let union = self.union.clone();
        let value = move |place: usize, column: usize| {
            let id = ContextId(place as u32);
            let parts = union.contexts.parts(id);
            match column {
                0 => Value::Integer(place as i64),
                1 => integer(parts.map(|(around, _)| i64::from(around.0))),
                2 => Value::Integer(union.contexts.way(id).count() as i64 - 1),
                3 => text(parts.map(|(_, frame)| frame.kind.word())),
                4 => text(parts.map(|(_, frame)| union.names.text(frame.name))),
                _ => Value::Text(words(&union, id)),
            }
        };
        Ok(Box::new(List::new(
            self.union.contexts.count(),
            asked,
            value,
        )))
    }
}

/// All frames of a context, the outermost first.
pub(crate) fn words(union: &Union, context: ContextId) -> String {
    union.words(context).join(" > ")
}

/// Reason why the thread on a critical path did not run in a context, or `running`: the innermost
/// reason around that thread's own frames. Frames within `preempted` or `runnable` are those of the
/// thread that has its CPU, which is not on the path.
pub(crate) fn state(union: &Union, context: ContextId) -> &str {
    let frames = union
        .contexts
        .way(context)
        .filter_map(|at| union.contexts.parts(at));
    let mut frames = frames.map(|(_, frame)| (frame.kind, union.names.text(frame.name)));
    while let Some((kind, name)) = frames.next() {
        match kind {
            FrameKind::Reason => return name,
            FrameKind::Thread => {
                let around = frames.next();
                let lacks_cpu = around
                    .filter(|&(kind, name)| kind == FrameKind::Reason && is_lack_of_cpu(name));
                return lacks_cpu.map_or(WaitReason::Running.name(), |(_, name)| name);
            }
            _ => {}
        }
    }
    WaitReason::Running.name()
}

/// True for reasons whose inner frames are those of the thread that has the CPU.
fn is_lack_of_cpu(name: &str) -> bool {
    [WaitReason::Preempted, WaitReason::Runnable]
        .iter()
        .any(|reason| reason.name() == name)
}
