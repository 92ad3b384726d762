//! The table `times`: the time of executions by calling context.

use rusqlite::types::Value;
use tracebraid_executions::ContextId;

use crate::asked::Asked;
use crate::questions::{Cancelled, Shared};
use crate::table::{Column, Rows, Table, duration};

pub(crate) struct TimeTable {
    database: Shared,
    cancelled: Cancelled,
}

impl TimeTable {
    pub(crate) fn new(database: Shared, cancelled: Cancelled) -> TimeTable {
        TimeTable {
            database,
            cancelled,
        }
    }
}

impl Table for TimeTable {
    fn name(&self) -> &'static str {
        "times"
    }

    fn about(&self) -> &'static str {
        "time of executions by calling context"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 3] = [
            Column::integer("execution", "id of the execution"),
            Column::integer("context", "id of the calling context"),
            Column::integer(
                "own_ns",
                "time in the context itself, without inner contexts",
            ),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        0
    }

    fn size(&self) -> f64 {
        self.database.executions() * 10.0
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        Ok(Box::new(TimeRows {
            database: self.database.clone(),
            cancelled: self.cancelled.clone(),
            next: Some(asked.from),
            to: asked.to,
            id: 0,
            times: Vec::new(),
            place: 0,
        }))
    }
}

struct TimeRows {
    database: Shared,
    cancelled: Cancelled,
    /// Least id of the remaining executions; `None` if none remain.
    next: Option<i64>,
    /// Greatest requested id.
    to: i64,
    /// Id of the execution that the current row belongs to.
    id: i64,
    times: Vec<(ContextId, u64)>,
    /// Number of its times that were returned, the current one included.
    place: usize,
}

impl Rows for TimeRows {
    fn next(&mut self) -> Result<bool, String> {
        while self.place >= self.times.len() {
            self.cancelled.check()?;
            let Some(from) = self.next.filter(|&from| from <= self.to) else {
                return Ok(false);
            };
            let found = self.database.lock().times_from(from);
            let found = found.map_err(|error| error.to_string())?;
            let Some((id, times)) = found.filter(|(id, _)| *id <= self.to) else {
                return Ok(false);
            };
            (self.id, self.times, self.place) = (id, times, 0);
            self.next = id.checked_add(1);
        }
        self.place += 1;
        Ok(true)
    }

    fn value(&mut self, column: usize) -> Result<Value, String> {
        let told = self
            .place
            .checked_sub(1)
            .and_then(|place| self.times.get(place));
        let Some(&(context, time)) = told else {
            return Ok(Value::Null);
        };
        Ok(match column {
            0 => Value::Integer(self.id),
            1 => Value::Integer(i64::from(context.0)),
            _ => duration(time),
        })
    }
}
