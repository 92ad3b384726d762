//! The tables that can be queried; printed if there is no query.

use tracebraid_sql::{About, Questions, Sink, SqlError, ValueRef};

use super::answer::Answer;
use crate::options::ReportFormat;
use crate::table::{self, Column};
use crate::terminal_text;

/// Shows all tables with their columns.
///
/// # Errors
/// When the database cannot be read, or the output cannot be written.
pub(super) fn show(
    questions: &Questions,
    format: ReportFormat,
    answer: &mut Answer,
) -> Result<(), SqlError> {
    let columns = questions.about()?;
    match format {
        ReportFormat::Table => answer.put(&text(questions, &columns)),
        ReportFormat::Json | ReportFormat::Csv => {
            answer.begin(&["table", "column", "type", "description"].map(str::to_owned));
            for of in &columns {
                let row = [&of.table, &of.column, &of.kind, &of.about];
                answer.row(&row.map(|text| ValueRef::Text(text.as_bytes())))?;
            }
            answer.end()
        }
    }
}

fn text(questions: &Questions, columns: &[About]) -> String {
    let mut text = String::new();
    for (name, about) in questions.tables() {
        let of_table = columns.iter().filter(|of| of.table == name);
        let rows =
            of_table.map(|of| vec![of.column.clone(), of.kind.to_lowercase(), of.about.clone()]);
        let shown = [
            Column::text("column"),
            Column::text("type").left_out(1),
            Column::text("meaning"),
        ];
        text.push_str(&terminal_text::paragraph(&format!("{name}: {about}")));
        text.push_str(&table::render(&shown, rows));
        text.push('\n');
    }
    text + &terminal_text::paragraph("See `tracebraid help sql` for examples.")
}
