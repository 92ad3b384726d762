//! The table `trace_threads`: threads of kernel traces.

use std::sync::Arc;

use rusqlite::types::Value;
use tracebraid_graph::{Actor, ActorId, Graph, State};

use crate::asked::Asked;
use crate::table::{Column, Rows, Table, integer, text};
use crate::traces::Traces;

const TID: usize = 1;

pub(crate) struct TraceThreadTable {
    traces: Arc<Traces>,
}

impl TraceThreadTable {
    pub(crate) fn new(traces: Arc<Traces>) -> TraceThreadTable {
        TraceThreadTable { traces }
    }
}

impl Table for TraceThreadTable {
    fn name(&self) -> &'static str {
        "trace_threads"
    }

    fn about(&self) -> &'static str {
        "threads of kernel traces"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 6] = [
            Column::text("trace", "the trace"),
            Column::integer("tid", "id of the thread; a reused id has several rows"),
            Column::integer("pid", "id of its process, if the trace contains it"),
            Column::text("name", "last known name"),
            Column::integer("begin_ns", "first time at which the thread is known"),
            Column::integer("end_ns", "end of the thread or of the trace"),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        TID
    }

    fn is_sorted(&self) -> bool {
        false
    }

    fn size(&self) -> f64 {
        1000.0
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        self.traces.graph()?;
        Ok(Box::new(ThreadRows {
            names: self.traces.names()?,
            traces: self.traces.clone(),
            asked: *asked,
            next: 0,
        }))
    }
}

struct ThreadRows {
    traces: Arc<Traces>,
    /// By trace.
    names: Vec<String>,
    asked: Asked,
    /// Index of the next thread.
    next: u32,
}

impl Rows for ThreadRows {
    fn next(&mut self) -> Result<bool, String> {
        let graph = self.traces.graph()?;
        while let Some(actor) = graph.actor(ActorId(self.next)) {
            self.next += 1;
            let tid = i64::from(actor.key.tid);
            if self.asked.from <= tid && tid <= self.asked.to {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn value(&mut self, column: usize) -> Result<Value, String> {
        let graph = self.traces.graph()?;
        let place = self.next.checked_sub(1);
        let Some(actor) = place.and_then(|place| graph.actor(ActorId(place))) else {
            return Ok(Value::Null);
        };
        Ok(match column {
            0 => text(self.names.get(actor.key.trace as usize).cloned()),
            TID => Value::Integer(i64::from(actor.key.tid)),
            2 => integer(actor.pid.map(i64::from)),
            3 => text(actor.name.clone()),
            4 => integer(actor.begin()),
            _ => integer(end(graph, actor)),
        })
    }
}

/// End of a thread: its exit, else the end of the trace.
fn end(graph: &Graph, actor: &Actor) -> Option<i64> {
    let last = actor.line.last()?;
    Some(match last.state {
        State::Ended => last.begin,
        _ => graph.known_until_of(actor.key.trace).max(last.begin),
    })
}
