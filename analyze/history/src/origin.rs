//! The source of a history, stored at the beginning of its file: if the end of the file, which
//! contains the index, is lost, the history can still be rebuilt.
//!
//! ```text
//! origin  little-endian: "TBORIGIN", length of the JSON (u32), its CRC-32 (u32), and the JSON:
//!         paths, analysis, streams
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::file::{HEAD, Meta};

const MAGIC: [u8; 8] = *b"TBORIGIN";
const BEFORE: usize = 16;

/// The bytes of the origin section.
pub(crate) fn bytes(meta: &Meta) -> Vec<u8> {
    // A path that is not valid UTF-8 cannot be serialized; the section is then empty.
    let text = serde_json::to_vec(meta).unwrap_or_default();
    let mut bytes = MAGIC.to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(&text).to_le_bytes());
    bytes.extend(text);
    bytes
}

/// The source of a history whose file may be damaged: paths, analysis and streams.
///
/// `None` if the section is damaged, too, or the file is not a history.
pub fn origin(path: &Path) -> Option<Meta> {
    // Opening a pipe would block until another process writes to it.
    let file = path.is_file().then(|| File::open(path).ok())??;
    serde_json::from_slice(&text(&file)?).ok()
}

/// The JSON of the section, if it is intact.
pub(crate) fn text(file: &File) -> Option<Vec<u8>> {
    let mut before = [0; BEFORE];
    file.read_exact_at(&mut before, HEAD).ok()?;
    let number = |at: usize| {
        before
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_le_bytes)
    };
    let (length, sum) = (number(8)?, number(12)?);
    let begin = HEAD + BEFORE as u64;
    let is_there = begin + u64::from(length) <= file.metadata().ok()?.len();
    if !before.starts_with(&MAGIC) || !is_there {
        return None;
    }
    let mut text = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut text, begin).ok()?;
    (crc32fast::hash(&text) == sum).then_some(text)
}
