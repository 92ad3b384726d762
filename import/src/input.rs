//! The file that is imported: read in pieces whose sizes are checked against the file's.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tracebraid_ctf::schema::Uuid;
use tracebraid_ctf::special::special;

use crate::error::ImportError;

/// No part of a file that is read as a whole is larger: 1 GiB. Those of real files have some
/// megabytes.
pub(crate) const MOST_BYTES: u64 = 1 << 30;

/// Bytes that are read at once.
const WINDOW: usize = 256 * 1024;

/// An open file.
#[derive(Debug)]
pub(crate) struct Input {
    path: PathBuf,
    file: File,
    length: u64,
    window: Vec<u8>,
    /// Where the window begins.
    window_at: u64,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Input, ImportError> {
        if let Some(what) = special(path) {
            let what = format!("this is {what}: only files are imported");
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

    /// Bytes of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// A part of the file as a whole.
    pub(crate) fn part(&self, offset: u64, size: u64) -> Result<Vec<u8>, ImportError> {
        let rest = self.length.saturating_sub(offset);
        if size > rest {
            let what = format!("{size} bytes should be here, but the file has {rest} more");
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

    /// The file's beginning, at most that many bytes.
    pub(crate) fn head(&self, most: u64) -> Result<Vec<u8>, ImportError> {
        self.part(0, self.length.min(most))
    }

    /// Bytes at that place, as few as `size` only if the file ends; for going through it.
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

    /// The same for the same content: two imports of a file are one trace.
    pub(crate) fn uuid(&self) -> Result<Uuid, ImportError> {
        let head = self.head(1 << 20)?;
        Ok(uuid_of((self.length, &head)))
    }
}

/// The same for the same content.
pub(crate) fn uuid_of(content: impl Hash) -> Uuid {
    let part = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        content.hash(&mut hasher);
        hasher.finish()
    };
    (u128::from(part(1)) << 64 | u128::from(part(2))).to_be_bytes()
}
