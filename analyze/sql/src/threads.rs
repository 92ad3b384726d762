//! The table `threads`: threads of a database of executions.

use std::sync::Arc;

use rusqlite::types::Value;
use tracebraid_executions::database::{Database, Source, Thread};

use crate::asked::Asked;
use crate::list::List;
use crate::table::{Column, Rows, Table, text};

pub(crate) struct ThreadTable {
    lists: Arc<(Vec<Thread>, Vec<Source>)>,
}

impl ThreadTable {
    pub(crate) fn new(database: &Database) -> ThreadTable {
        ThreadTable {
            lists: Arc::new((database.threads.clone(), database.sources.clone())),
        }
    }
}

impl Table for ThreadTable {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn about(&self) -> &'static str {
        "threads on paths of executions"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 6] = [
            Column::integer("id", "from 0; other tables refer to it as thread"),
            Column::integer("source", "id of its trace in the table source"),
            Column::integer("tid", "id of the thread on its host"),
            Column::text("name", "name of the thread"),
            Column::text("host", "host name in the trace"),
            Column::text("label", "label of the recording"),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        0
    }

    fn size(&self) -> f64 {
        self.lists.0.len() as f64
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        let lists = self.lists.clone();
        let value = move |place: usize, column: usize| {
            let (threads, sources) = &*lists;
            let Some(thread) = threads.get(place) else {
                return Value::Null;
            };
            let source = usize::try_from(thread.source).ok();
            let source = source.and_then(|id| sources.get(id.checked_sub(1)?));
            match column {
                0 => Value::Integer(place as i64),
                1 => Value::Integer(thread.source),
                2 => Value::Integer(i64::from(thread.tid)),
                3 => text(thread.name.clone()),
                4 => text(source.and_then(|source| source.host.clone())),
                _ => text(source.map(|source| source.label.clone())),
            }
        };
        Ok(Box::new(List::new(self.lists.0.len(), asked, value)))
    }
}
