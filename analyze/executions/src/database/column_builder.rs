//! Columns of a table, built value by value.

use rusqlite::types::ValueRef;

use crate::database::table::{Column, Figures, Table, Texts};
use crate::names::Names;

/// Values of a column while it is read. A column of SQLite may hold numbers and texts, so the
/// values determine the type. Rows without a value take no memory until a later row has one.
#[derive(Debug, Default)]
pub(super) struct ColumnBuilder {
    numbers: Vec<f64>,
    texts: Names,
    codes: Vec<Option<u32>>,
    /// Exact values of integers that `numbers` contains rounded, with their rows.
    large: Vec<(usize, i64)>,
    /// True if other parts of the column contain integers above [`EXACT`].
    are_names: bool,
}

/// Above this, neighbouring integers may be the same floating point number.
pub(super) const EXACT: u64 = 1 << 53;

impl Column {
    /// True for captured values without a unit: their integers may be names.
    pub(super) fn may_be_names(&self) -> bool {
        self.is_value && self.unit.is_empty()
    }
}

impl ColumnBuilder {
    pub(super) fn new(are_names: bool) -> ColumnBuilder {
        ColumnBuilder {
            are_names,
            ..ColumnBuilder::default()
        }
    }

    /// Adds the value of a row; rows come in ascending order.
    pub(super) fn push(&mut self, row: usize, value: ValueRef<'_>) {
        let number = match value {
            ValueRef::Integer(number) => {
                if number.unsigned_abs() > EXACT {
                    self.large.push((row, number));
                }
                number as f64
            }
            ValueRef::Real(number) => number,
            ValueRef::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                self.codes.resize(row, None);
                self.codes.push(Some(self.texts.id(&text).0));
                return;
            }
            _ => return,
        };
        self.numbers.resize(row, f64::NAN);
        self.numbers.push(number);
    }

    /// Turns numbers into texts.
    fn name_numbers(&mut self) {
        self.codes
            .resize(self.codes.len().max(self.numbers.len()), None);
        let mut large = self.large.drain(..).peekable();
        for (row, number) in self.numbers.drain(..).enumerate() {
            let exact = large.next_if(|(of, _)| *of == row);
            let text = match exact {
                Some((_, integer)) => integer.to_string(),
                None if number.is_nan() => continue,
                None => number.to_string(),
            };
            if let Some(code) = self.codes.get_mut(row) {
                *code = Some(self.texts.id(&text).0);
            }
        }
    }

    /// Values of both kinds are two columns; an empty column is dropped. Captured numbers without a
    /// unit that are too large to be distinguished from their neighbours are names, such as span
    /// ids: all values of their column become texts, including those that SQLite stores as text
    /// since they exceed 2^63.
    pub(super) fn into_table(mut self, column: &Column, table: &mut Table) {
        if column.may_be_names() && (self.are_names || !self.large.is_empty()) {
            self.name_numbers();
        }
        if self.numbers.iter().any(|number| !number.is_nan()) {
            self.numbers.resize(table.len(), f64::NAN);
            table.figures.push(Figures {
                column: column.clone(),
                values: self.numbers,
            });
        }
        if !self.codes.is_empty() {
            self.codes.resize(table.len(), None);
            table.texts.push(Texts {
                column: column.clone(),
                texts: self.texts.texts().to_vec(),
                codes: self.codes,
            });
        }
    }
}
