//! Columns for the results of system calls.

use tracebraid_kernel_model::errno_name;
use tracebraid_tables::{Column, Forms, Unit, Value};

/// Columns of [`values`]. Text has one column, with the number or the error's name; CSV and JSON
/// have a column for each.
pub(crate) const COLUMNS: [Column; 3] = [
    Column::new("returned", "Result", Unit::Text)
        .left_out(1)
        .only(Forms::TEXT.and(Forms::LAMI)),
    Column::new("result", "Result", Unit::Id).only(Forms::CSV.and(Forms::JSON)),
    Column::new("error", "Error", Unit::Text)
        .optional()
        .only(Forms::CSV.and(Forms::JSON)),
];

/// The name of an error, or its number if it has no name.
pub(crate) fn name_of(errno: i64) -> String {
    errno_name(errno).map_or_else(|| errno.to_string(), str::to_owned)
}

/// Values of [`COLUMNS`]; `errno` is the error, if the call failed.
pub(crate) fn values(result: i64, errno: Option<i64>) -> [Value; 3] {
    let error = errno.map(name_of);
    let shown = error.clone().unwrap_or_else(|| result.to_string());
    [
        Value::Text(shown),
        Value::Signed(result),
        error.map_or(Value::None, Value::Text),
    ]
}
