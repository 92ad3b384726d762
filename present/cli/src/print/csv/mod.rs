//! Prints event records as CSV: a row for each record, a column for each field.

mod csv_cells;
mod csv_columns;
mod csv_plan;
mod csv_rows;

pub(crate) use csv_cells::put_quoted_if_needed;
pub(crate) use csv_plan::RowOptions;
pub(crate) use csv_rows::CsvRows;
