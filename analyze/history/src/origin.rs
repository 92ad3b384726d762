//! What a history is built from, told at its beginning: where its end is gone, and with it the
//! index, it can be built again all the same.
//!
//! ```text
//! origin  "TBORIGIN", the length of what follows (u32), its CRC-32 (u32), and JSON: paths, analysis, streams; little-endian
//! ```

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::file::{HEAD, Meta};

const MAGIC: [u8; 8] = *b"TBORIGIN";
const BEFORE: usize = 16;

/// Its bytes, of a history that is built now.
pub(crate) fn bytes(meta: &Meta) -> Vec<u8> {
    // A path that is no UTF-8 cannot be told: then nothing is.
    let text = serde_json::to_vec(meta).unwrap_or_default();
    let mut bytes = MAGIC.to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(&text).to_le_bytes());
    bytes.extend(text);
    bytes
}

/// What a file that may be damaged was built from: its paths, its analysis, and the streams that
/// were read.
///
/// None if that is damaged, too, or the file is no history.
pub fn origin(path: &Path) -> Option<Meta> {
    // Opening a pipe would wait for who writes to it.
    let file = path.is_file().then(|| File::open(path).ok())??;
    serde_json::from_slice(&text(&file)?).ok()
}

/// What stands there, if it is sound.
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
