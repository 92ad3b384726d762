//! The page as one file that needs no server.

use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::path::Path;

use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use tracebraid_executions::database::{Database, ExecutionKind};

use crate::Refusal;
use crate::pack::Pack;
use crate::page::PAGE;
use crate::path::path;
use crate::sources::Shown;

/// Contents of the exported page.
#[derive(Clone, Copy)]
pub struct Export<'d> {
    /// Source of the executions.
    pub database: &'d Database,
    /// Kind of the exported executions.
    pub kind: &'d ExecutionKind,
    /// Number of executions with a critical path: the longest ones.
    pub paths: usize,
    /// Directory for a temporary file, about as large as these executions in the database.
    pub directory: &'d Path,
    /// Receives the progress of reading the executions.
    pub watch: &'d Watch,
}

/// Receives progress: the number of executions that were read, and of all.
pub type Watch = dyn Fn(u64, u64) + Send + Sync;

/// Reason for which a page was not written.
#[derive(Debug)]
pub enum ExportError {
    /// The page cannot be made; a message for the user.
    Refused(Refusal),
    /// The page cannot be written.
    Output(io::Error),
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> ExportError {
        ExportError::Output(error)
    }
}

impl From<Refusal> for ExportError {
    fn from(why: Refusal) -> ExportError {
        ExportError::Refused(why)
    }
}

/// Writes the page with all data, in memory that does not grow with the number of executions.
///
/// # Errors
/// If the program was built without the page, the database cannot be read, or the page cannot be
/// written.
pub fn export(export: &Export<'_>, out: &mut impl Write) -> Result<(), ExportError> {
    let pack = Pack::new(export.database, export.kind, export.directory, export.watch)?;
    exported(export, &pack, out)
}

/// As [`export`], with an existing pack.
pub(crate) fn exported(
    export: &Export<'_>,
    pack: &Pack,
    out: &mut impl Write,
) -> Result<(), ExportError> {
    let (before, after) = PAGE.rsplit_once("</body>").ok_or_else(|| {
        "this program was built without its web page: `make build` builds both".to_owned()
    })?;
    pack.length(Shown::Away)?;
    out.write_all(before.as_bytes())?;
    script(out, "pack", |data| Ok(pack.write(Shown::Away, data)?))?;
    script(out, "paths", |data| paths(export, pack, data))?;
    out.write_all(b"</body>")?;
    out.write_all(after.as_bytes())?;
    Ok(())
}

/// Compressed data in characters that have no meaning in HTML.
type Data<'o, W> = GzEncoder<EncoderWriter<'static, GeneralPurpose, &'o mut W>>;

fn script<W: Write>(
    out: &mut W,
    id: &str,
    data: impl FnOnce(&mut Data<'_, W>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    write!(
        out,
        "<script type=\"application/octet-stream\" id=\"{id}\" data-encoding=\"gzip+base64\">"
    )?;
    let mut encoder = GzEncoder::new(
        EncoderWriter::new(&mut *out, &STANDARD),
        Compression::default(),
    );
    data(&mut encoder)?;
    encoder.finish()?.finish()?;
    out.write_all(b"</script>\n")?;
    Ok(())
}

/// Paths of the longest executions, by id.
fn paths(export: &Export<'_>, pack: &Pack, out: &mut impl Write) -> Result<(), ExportError> {
    let mut lead = "{";
    for id in longest(pack, export.paths)? {
        let path = path(export.database, id, Shown::Away)?;
        write!(out, "{lead}\"{id}\":{path}")?;
        lead = ",";
    }
    let end: &[u8] = if lead == "{" { b"{}" } else { b"}" };
    out.write_all(end)?;
    Ok(())
}

/// Ids of the longest executions, the longest first; equally long ones in the order of their ids.
fn longest(pack: &Pack, most: usize) -> io::Result<Vec<u32>> {
    let (spool, of) = (&pack.spool, &pack.spool.of);
    let exact = of
        .figures
        .iter()
        .find(|(column, _)| column.name == "duration_ns");
    let durations = exact.or_else(|| {
        of.figures
            .iter()
            .find(|(column, _)| column.is_called("duration_ns"))
    });
    let mut kept: BinaryHeap<std::cmp::Reverse<Long>> = BinaryHeap::new();
    for (part, ids) in of.ids.iter().enumerate() {
        let Some(ids) = ids else { continue };
        let piece = durations.and_then(|(_, numbers)| numbers.pieces.get(part).copied().flatten());
        let durations = match piece {
            Some(piece) => spool.words(piece)?,
            None => Vec::new(),
        };
        for (row, id) in spool.short_words(*ids)?.into_iter().enumerate() {
            let duration = durations
                .get(row)
                .map_or(0.0, |&word| f64::from_le_bytes(word));
            kept.push(std::cmp::Reverse(Long { duration, id }));
            if kept.len() > most {
                kept.pop();
            }
        }
    }
    let sorted = kept.into_sorted_vec().into_iter();
    Ok(sorted.map(|std::cmp::Reverse(long)| long.id).collect())
}

/// An execution, ordered by duration, and then by descending id.
struct Long {
    duration: f64,
    id: u32,
}

impl Ord for Long {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_duration = self.duration.total_cmp(&other.duration);
        by_duration.then(other.id.cmp(&self.id))
    }
}

impl PartialOrd for Long {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Long {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Long {}
