//! Identity of files without a build id: whether a file is still the one that was recorded.
//!
//! In: a path. Out: size, time of modification and hash ([`FileIdentity`]). The recorder writes
//! them into the trace and readers compare them, so both use this crate. Promise: a path other than
//! that of a regular file is rejected without blocking.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The identity of a file when it was mapped, as recorded in `tracebraid_map_file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Size in bytes.
    pub size: u64,
    /// Time of the last modification, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// FNV-1a, 64 bits, of the first and the last [`FileIdentity::PART`] bytes. If the file has at
    /// most twice that size, of all bytes.
    pub hash: u64,
}

impl FileIdentity {
    /// Number of bytes that are hashed at each end.
    pub const PART: u64 = 64 << 10;

    /// Reads the identity of the file at `path`.
    ///
    /// # Errors
    /// If it is not a regular file or cannot be read.
    pub fn of(path: &Path) -> io::Result<FileIdentity> {
        let about = path.metadata()?;
        // Opening a pipe would block until a writer opens it.
        if !about.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        FileIdentity::of_open(File::open(path)?)
    }

    /// Reads the identity from an open file, whose position must be 0.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_open(mut file: File) -> io::Result<FileIdentity> {
        let about = file.metadata()?;
        let size = about.size();
        let mut bytes = Vec::new();
        file.by_ref().take(Self::PART).read_to_end(&mut bytes)?;
        if size > Self::PART {
            file.seek(SeekFrom::Start(Self::PART.max(size - Self::PART)))?;
            file.take(Self::PART).read_to_end(&mut bytes)?;
        }
        Ok(FileIdentity {
            size,
            mtime_ns: about
                .mtime()
                .wrapping_mul(1_000_000_000)
                .wrapping_add(about.mtime_nsec()),
            hash: fnv1a(&bytes),
        })
    }
}

/// FNV-1a with 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn both_ends_of_a_file_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut bytes: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
        let mut with = |change: &dyn Fn(&mut Vec<u8>)| {
            change(&mut bytes);
            std::fs::write(&path, &bytes).unwrap();
            FileIdentity::of(&path).unwrap()
        };
        let first = with(&|_| ());
        assert_eq!(first.size, 300_000);
        assert_ne!(with(&|bytes| bytes[5] = 77).hash, first.hash);
        let second = with(&|_| ());
        assert_ne!(with(&|bytes| bytes[299_999] = 78).hash, second.hash);
        let small = with(&|bytes| bytes.truncate(100_000));
        assert_eq!(small.hash, fnv1a(&bytes));
        assert!(FileIdentity::of(directory.path()).is_err());
    }
}
