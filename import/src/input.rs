//! The imported file, read in pieces whose sizes are checked against the size of the file.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tracebraid_ctf::schema::Uuid;
use tracebraid_ctf::special::special;

use crate::error::ImportError;

/// Limit for a part of a file that is read as a whole: 1 GiB. Parts of real files have a few
/// megabytes.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

/// Number of bytes that are read at once.
const WINDOW: usize = 256 * 1024;

/// An open file.
#[derive(Debug)]
pub(crate) struct Input {
    path: PathBuf,
    file: File,
    length: u64,
    window: Vec<u8>,
    /// Offset of the window in the file.
    window_at: u64,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Input, ImportError> {
        if let Some(what) = special(path) {
            let what = format!("this is {what}: only regular files can be imported");
            return Err(ImportError::Unsupported(what));
        }
        let file = File::open(path).map_err(ImportError::io(path))?;
        let length = file.metadata().map_err(ImportError::io(path))?.len();
        Ok(Input {
            path: path.to_owned(),
            file,
            length,
            window: Vec::new(),
            window_at: 0,
        })
    }

    /// Size of the file in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads a part of the file as a whole.
    pub(crate) fn part(&self, offset: u64, size: u64) -> Result<Vec<u8>, ImportError> {
        let rest = self.length.saturating_sub(offset);
        if size > rest {
            let what = format!("expected {size} bytes, but the file has only {rest} more");
            return Err(ImportError::malformed(offset, what));
        }
        if size > MOST_BYTES {
            return Err(ImportError::malformed(
                offset,
                format!("a part of {size} bytes is too large"),
            ));
        }
        let mut bytes = vec![0; size as usize];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(ImportError::io(&self.path))?;
        Ok(bytes)
    }

    /// Reads the beginning of the file, at most this number of bytes.
    pub(crate) fn head(&self, most: u64) -> Result<Vec<u8>, ImportError> {
        self.part(0, self.length.min(most))
    }

    /// Bytes at an offset, at least `size` unless the file ends. For sequential reading.
    pub(crate) fn at(&mut self, offset: u64, size: usize) -> Result<&[u8], ImportError> {
        let size = (self.length.saturating_sub(offset)).min(size as u64) as usize;
        let end = self.window_at + self.window.len() as u64;
        if offset < self.window_at || offset + size as u64 > end {
            let wanted = (self.length - offset.min(self.length)).min(WINDOW.max(size) as u64);
            self.window.clear();
            self.window.resize(wanted as usize, 0);
            let read = self.file.read_exact_at(&mut self.window, offset);
            self.window_at = offset;
            if let Err(error) = read {
                self.window.clear();
                return Err(ImportError::io(&self.path)(error));
            }
        }
        let from = (offset - self.window_at) as usize;
        self.window
            .get(from..from + size)
            .ok_or_else(|| ImportError::io(&self.path)(io::ErrorKind::UnexpectedEof.into()))
    }

    /// A UUID that depends only on the content, so that two imports of a file are the same trace.
    pub(crate) fn uuid(&self) -> Result<Uuid, ImportError> {
        let head = self.head(1 << 20)?;
        Ok(uuid_of((self.length, &head)))
    }
}

/// A UUID that depends only on the content.
pub(crate) fn uuid_of(content: impl Hash) -> Uuid {
    let part = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        content.hash(&mut hasher);
        hasher.finish()
    };
    (u128::from(part(1)) << 64 | u128::from(part(2))).to_be_bytes()
}
