//! Tables.

use std::cmp::Reverse;
use std::sync::Arc;

use tracebraid_follow::Thread;

use crate::{Column, Forms, Sentence, Unit, Value, View};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Name in JSON and CSV.
    pub key: &'static str,
    /// Title for people.
    pub title: String,
    /// View of the report that contains the table.
    pub view: View,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// True if the number of rows grows with the trace (a row for each thread, for example): text
    /// limits the rows shown.
    pub is_long: bool,
    /// The formats that show the table.
    pub forms: Forms,
    /// True if text shows the title above the table.
    pub is_titled: bool,
    /// Sentences below the table in text.
    pub notes: Vec<Sentence>,
    /// The column whose greatest values select the rows shown if rows are limited; `None`: the
    /// first rows are shown.
    pub kept_by: Option<&'static str>,
    /// True if numbers of rows are numbers of groups: runs of rows with equal first cells.
    pub is_limited_by_group: bool,
    /// True if the table covers all threads even where the report selects some.
    pub is_of_all_threads: bool,
}

impl Default for Section {
    fn default() -> Section {
        Section::new("", "", Vec::new(), Vec::new())
    }
}

impl Section {
    /// A table of statistics, shown in every format, whose number of rows grows with the trace.
    pub fn new(
        key: &'static str,
        title: &str,
        columns: Vec<Column>,
        rows: Vec<Vec<Value>>,
    ) -> Section {
        Section {
            key,
            title: title.to_owned(),
            view: View::Stats,
            columns,
            rows,
            is_long: true,
            forms: Forms::ALL,
            is_titled: true,
            notes: Vec::new(),
            kept_by: None,
            is_limited_by_group: false,
            is_of_all_threads: false,
        }
    }

    /// Marks the table as short: its rows are never limited.
    pub fn short(self) -> Section {
        Section {
            is_long: false,
            ..self
        }
    }

    /// Sets the view that contains the table.
    pub fn of(self, view: View) -> Section {
        Section { view, ..self }
    }

    /// Restricts the formats that show the table.
    pub fn only(self, forms: Forms) -> Section {
        Section { forms, ..self }
    }

    /// Omits the title in text, where the columns are self-explanatory.
    pub fn untitled(self) -> Section {
        Section {
            is_titled: false,
            ..self
        }
    }

    /// Declares that the table covers all threads even where the report selects some.
    pub fn of_all_threads(self) -> Section {
        Section {
            is_of_all_threads: true,
            ..self
        }
    }

    /// Adds a remark to the title of a table that covers all threads, not only the selected ones.
    pub fn tell_all_threads(&mut self) {
        if self.is_of_all_threads {
            self.title.push_str(" (all threads)");
            self.is_titled = true;
        }
    }

    /// Adds a sentence below the table.
    pub fn noted(mut self, note: Option<Sentence>) -> Section {
        self.notes.extend(note);
        self
    }

    /// Sets the column whose greatest values select the rows shown.
    pub fn kept_by(self, key: &'static str) -> Section {
        Section {
            kept_by: Some(key),
            ..self
        }
    }

    /// Says that numbers of rows are numbers of groups.
    pub fn limited_by_group(self) -> Section {
        Section {
            is_limited_by_group: true,
            ..self
        }
    }

    /// Number of rows, or of groups if these are limited.
    pub fn limited(&self) -> usize {
        match self.is_limited_by_group {
            true => self.groups().count(),
            false => self.rows.len(),
        }
    }

    fn groups(&self) -> impl Iterator<Item = &[Vec<Value>]> {
        self.rows.chunk_by(|a, b| a.first() == b.first())
    }

    /// The cell of a row in the column with that key.
    pub fn cell<'r>(&self, row: &'r [Value], key: &str) -> Option<&'r Value> {
        let columns = self.columns.iter().zip(row);
        columns
            .filter(|(column, _)| column.key == key)
            .map(|(_, value)| value)
            .next()
    }

    /// The rows, with their columns.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|values| Row {
            columns: &self.columns,
            values,
        })
    }

    /// The rows shown if at most `most` are, in table order.
    pub fn kept(&self, most: usize) -> Vec<&Vec<Value>> {
        if !self.is_long || self.rows.len() <= most {
            return self.rows.iter().collect();
        }
        if self.is_limited_by_group {
            return self.groups().take(most).flatten().collect();
        }
        let Some(key) = self.kept_by else {
            return self.rows.iter().take(most).collect();
        };
        let number = |at: usize| match self.cell(&self.rows[at], key) {
            Some(Value::Unsigned(number)) => *number,
            _ => 0,
        };
        let mut best: Vec<usize> = (0..self.rows.len()).collect();
        best.sort_by_key(|&at| (Reverse(number(at)), at));
        best.truncate(most);
        best.sort_unstable();
        best.into_iter().map(|at| &self.rows[at]).collect()
    }

    /// Removes the rows that [`Section::kept`] does not return.
    pub fn truncate(&mut self, most: usize) {
        if self.is_long && most < self.rows.len() {
            self.rows = self.kept(most).into_iter().cloned().collect();
        }
    }
}

/// A row of a table, with its columns.
#[derive(Clone, Copy, Debug)]
pub struct Row<'s> {
    columns: &'s [Column],
    values: &'s [Value],
}

impl<'s> Row<'s> {
    /// The value in the column with that key, or [`Value::None`].
    pub fn value(&self, key: &str) -> &'s Value {
        let mut columns = self.columns.iter().zip(self.values);
        let found = columns.find(|(column, _)| column.key == key);
        found.map_or(&Value::None, |(_, value)| value)
    }

    /// The [`Value::Unsigned`] in the column with that key, else 0.
    pub fn unsigned(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Unsigned(number) => *number,
            _ => 0,
        }
    }

    /// The number or share in the column with that key, else 0.
    pub fn number(&self, key: &str) -> f64 {
        self.value(key).number().unwrap_or(0.0)
    }

    /// The text in the column with that key, or an empty one.
    pub fn text(&self, key: &str) -> &'s str {
        match self.value(key) {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// The thread that the row is about; for a process, the thread that names it.
    pub fn thread(&self) -> Option<Arc<Thread>> {
        let mut columns = self.columns.iter().zip(self.values);
        columns.find_map(|(column, value)| match value {
            Value::Thread(thread) if is_about(column) => Some(thread.clone()),
            Value::Process(process) => Some(Arc::new(Thread::from(&**process))),
            _ => None,
        })
    }

    /// The rows of the nested table in the column with that key.
    pub fn rows(&self, key: &str) -> impl Iterator<Item = Row<'s>> + use<'s> {
        let mut columns = self.columns.iter().zip(self.values);
        let found = columns.find(|(column, _)| column.key == key);
        let rows = match found {
            Some((column, Value::Rows(rows))) => Some(rows.iter().map(|values| Row {
                columns: column.nested,
                values,
            })),
            _ => None,
        };
        rows.into_iter().flatten()
    }
}

/// True for the column of the thread or process that a row is about.
pub(crate) fn is_about(column: &Column) -> bool {
    matches!(
        (column.unit, column.key),
        (Unit::Thread | Unit::ProcessThread, "thread") | (Unit::Process, "process")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let columns = vec![Column::new("size", "Size", Unit::Bytes)];
        let rows = [3, 9, 1, 9, 5].map(|size| vec![Value::Unsigned(size)]);
        Section::new("sizes", "Sizes", columns, rows.to_vec())
    }

    fn sizes(section: &Section) -> Vec<u64> {
        section.iter().map(|row| row.unsigned("size")).collect()
    }

    #[test]
    fn the_first_rows_are_kept_or_those_with_the_greatest_numbers_in_their_order() {
        let mut first = section();
        first.truncate(2);
        assert_eq!(sizes(&first), [3, 9]);
        let mut greatest = section().kept_by("size");
        greatest.truncate(3);
        assert_eq!(sizes(&greatest), [9, 9, 5]);
        let mut all = section().short();
        all.truncate(2);
        assert_eq!(sizes(&all), [3, 9, 1, 9, 5]);
        let mut groups = section().limited_by_group();
        groups.rows = [3, 3, 9, 9, 9, 1]
            .map(|of| vec![Value::Unsigned(of)])
            .into();
        assert_eq!(groups.limited(), 3);
        groups.truncate(2);
        assert_eq!(sizes(&groups), [3, 3, 9, 9, 9]);
    }
}
