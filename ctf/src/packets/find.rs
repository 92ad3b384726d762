//! Finds the packets of a file: by its index if the index agrees with the file, else by all heads.

use std::io;
use std::path::Path;

use crate::damage::Damage;
use crate::index::{self, IndexCheck};
use crate::layout::TraceLayout;
use crate::packets::file_scan::FileScan;
use crate::packets::foreign::Foreign;
use crate::packets::packet_finder::PacketFinder;

/// Finds the packets of a file of `bytes` bytes; returns a scan for each stream with packets in the
/// file.
pub(crate) fn find(
    layout: &TraceLayout,
    path: &Path,
    bytes: u64,
    index: Option<(&Path, IndexCheck)>,
    damage: &mut Vec<Damage>,
) -> io::Result<Vec<FileScan>> {
    let mut finder = PacketFinder::new(layout, path, bytes, damage)?;
    if let Some((index_path, check)) = index {
        let read = index::read(index_path).map_err(|error| error.to_string());
        match read
            .and_then(|content| index::parse(&content, bytes).map_err(|error| error.to_string()))
        {
            Ok(entries) => {
                if let Some(mut scan) = finder.by_index(&entries, check) {
                    scan.is_foreign = finder.report_foreign(true);
                    return Ok(vec![scan]);
                }
                finder.foreign = Foreign::default();
            }
            Err(error) => finder.damage.push(Damage::of(
                index_path,
                format!(
                    "the index is not used: {error}; the packets were found in the stream file"
                ),
            )),
        }
    }
    let mut found = finder.by_heads();
    finder.report_more_faults();
    let is_foreign = finder.report_foreign(false);
    let scans = found.iter_mut().flatten();
    scans.for_each(|scan| scan.is_foreign = is_foreign);
    found
}
