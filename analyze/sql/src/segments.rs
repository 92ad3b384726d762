//! The table `segments`: critical paths of executions, step by step.

use std::sync::Arc;

use rusqlite::types::Value;
use tracebraid_executions::Union;
use tracebraid_executions::database::{PathStep, Recorded};

use crate::asked::Asked;
use crate::contexts::{state, words};
use crate::questions::{Cancelled, Shared};
use crate::table::{Column, Rows, Table, duration, integer, text};

pub(crate) struct SegmentTable {
    database: Shared,
    union: Arc<Union>,
    cancelled: Cancelled,
}

impl SegmentTable {
    pub(crate) fn new(database: Shared, union: Arc<Union>, cancelled: Cancelled) -> SegmentTable {
        SegmentTable {
            database,
            union,
            cancelled,
        }
    }
}

impl Table for SegmentTable {
    fn name(&self) -> &'static str {
        "segments"
    }

    fn about(&self) -> &'static str {
        "segments of the critical paths of executions"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 10] = [
            Column::integer("execution", "id of the execution"),
            Column::integer("nth", "position on the path, from 1"),
            Column::integer("begin_ns", "time since the origin of the traces' clock"),
            Column::integer("duration_ns", "length of the segment"),
            Column::integer("thread", "id of the thread on the path"),
            Column::integer("tid", "tid of that thread"),
            Column::text("thread_name", "name of that thread"),
            Column::integer("context", "id of the calling context"),
            Column::text("state", "running, or the wait reason"),
            Column::text("text", "the context's frames, the outermost first"),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        0
    }

    fn size(&self) -> f64 {
        self.database.executions() * 30.0
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        Ok(Box::new(SegmentRows {
            database: self.database.clone(),
            union: self.union.clone(),
            cancelled: self.cancelled.clone(),
            next: Some(asked.from),
            to: asked.to,
            id: 0,
            found: Recorded::default(),
            place: 0,
            begin: 0,
        }))
    }
}

struct SegmentRows {
    database: Shared,
    union: Arc<Union>,
    cancelled: Cancelled,
    /// Least id of the remaining executions; `None` if none remain.
    next: Option<i64>,
    /// Greatest requested id.
    to: i64,
    /// Id of the execution that the current row belongs to.
    id: i64,
    found: Recorded,
    /// Number of its steps that were returned, the current one included.
    place: usize,
    /// Start of the current step.
    begin: i64,
}

impl SegmentRows {
    fn step(&self) -> Option<&PathStep> {
        self.found.steps.get(self.place.checked_sub(1)?)
    }
}

impl Rows for SegmentRows {
    fn next(&mut self) -> Result<bool, String> {
        if let Some(step) = self.step() {
            self.begin = self.begin.saturating_add_unsigned(step.duration);
        }
        while self.place >= self.found.steps.len() {
            self.cancelled.check()?;
            let Some(from) = self.next.filter(|&from| from <= self.to) else {
                return Ok(false);
            };
            let found = self.database.lock().execution_from(from);
            let found = found.map_err(|error| error.to_string())?;
            let Some((id, found)) = found.filter(|(id, _)| *id <= self.to) else {
                return Ok(false);
            };
            (self.id, self.begin, self.found, self.place) = (id, found.begin, found, 0);
            self.next = id.checked_add(1);
        }
        self.place += 1;
        Ok(true)
    }

    fn value(&mut self, column: usize) -> Result<Value, String> {
        let Some(&step) = self.step() else {
            return Ok(Value::Null);
        };
        let thread = || {
            let database = self.database.lock();
            database.threads.get(step.thread? as usize).cloned()
        };
        Ok(match column {
            0 => Value::Integer(self.id),
            1 => Value::Integer(self.place as i64),
            2 => Value::Integer(self.begin),
            3 => duration(step.duration),
            4 => integer(step.thread.map(i64::from)),
            5 => integer(thread().map(|thread| i64::from(thread.tid))),
            6 => text(thread().and_then(|thread| thread.name)),
            7 => Value::Integer(i64::from(step.context.0)),
            8 => {
                let queued = self.union.waits_for_thread(step.context);
                let state = queued.unwrap_or_else(|| state(&self.union, step.context));
                Value::Text(state.to_owned())
            }
            _ => Value::Text(words(&self.union, step.context)),
        })
    }
}
