//! The page as one file that needs no server.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};
use tracebraid_executions::database::{Database, Kind, Table};

use crate::Refusal;
use crate::pack::pack;
use crate::page::PAGE;
use crate::path::path;

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Export<'d> {
    /// The database.
    pub database: &'d Database,
    /// Which executions.
    pub kind: &'d Kind,
    /// All of them.
    pub table: &'d Table,
    /// Of how many executions the critical path is told: of the longest ones.
    pub paths: usize,
}

/// The page with all data in it.
///
/// # Errors
/// When the program has no page, or the database cannot be read.
pub fn export(export: &Export<'_>) -> Result<String, Refusal> {
    let (before, after) = PAGE
        .rsplit_once("</body>")
        .ok_or("this program was built without its web page: `make build` builds both")?;
    let pack = encoded(&pack(export.database, export.kind, export.table))?;
    let paths = encoded(paths(export)?.to_string().as_bytes())?;
    let script = |id: &str, data: &str| {
        format!(
            "<script type=\"application/octet-stream\" id=\"{id}\" data-encoding=\"gzip+base64\">{data}</script>\n"
        )
    };
    Ok([
        before,
        &script("pack", &pack),
        &script("paths", &paths),
        "</body>",
        after,
    ]
    .concat())
}

/// Compressed, in letters that mean nothing to HTML.
fn encoded(bytes: &[u8]) -> Result<String, Refusal> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let compressed = compressed.map_err(|error| error.to_string())?;
    Ok(BASE64_STANDARD.encode(compressed))
}

/// Paths of the longest executions, by id.
fn paths(export: &Export<'_>) -> Result<Value, Refusal> {
    let table = export.table;
    let durations = table
        .figure("duration_ns")
        .map(|of| of.values.as_slice())
        .unwrap_or_default();
    let duration = |row: usize| durations.get(row).copied().unwrap_or(0.0);
    let mut rows: Vec<usize> = (0..table.len()).collect();
    rows.sort_by(|&one, &other| duration(other).total_cmp(&duration(one)));
    let ids = rows
        .into_iter()
        .take(export.paths)
        .filter_map(|row| table.ids.get(row).copied());
    let mut paths = Map::new();
    for id in ids {
        paths.insert(id.to_string(), path(export.database, id)?);
    }
    Ok(Value::Object(paths))
}
