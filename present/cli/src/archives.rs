//! Unpacks archives of traces (`.tar`, `.tar.gz`, `.tar.xz`, `.tar.zst`, `.zip`) and compressed
//! files into a directory.
//!
//! The format is recognized by the first bytes of the file, not by its name. Links and special
//! files in an archive are skipped, as are members whose path leads outside the directory. Absolute
//! paths are unpacked below the directory, as GNU tar does.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::progress::Progress;
use crate::units::grouped;

/// Number of bytes that identify the format; the magic of a tar archive is at offset 257.
const HEAD: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Tar,
    Gzip,
    Xz,
    Zstd,
    Zip,
    /// An unsupported format: its name, and the command that unpacks it.
    Foreign(&'static str, &'static str),
}

impl Packing {
    fn of(head: &[u8]) -> Option<Packing> {
        match head {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            // An empty archive has only its directory.
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Packing::Zip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Packing::Foreign("bzip2", "bunzip2")),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Packing::Foreign("lz4", "unlz4")),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(Packing::Foreign("7-Zip", "7z x")),
            _ if is_tar(head) => Some(Packing::Tar),
            _ => None,
        }
    }
}

fn is_tar(head: &[u8]) -> bool {
    // An empty archive consists of blocks of zeros.
    let is_empty = head.len() == HEAD && head.iter().all(|&byte| byte == 0);
    head.get(257..262) == Some(b"ustar") || is_empty
}

#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// Number of files.
    pub(crate) files: u64,
    /// Total size of the files.
    pub(crate) bytes: u64,
    /// Members that were skipped: links, special files, paths that leave the directory.
    pub(crate) skipped: u64,
}

/// Whether a path is an archive or a compressed file.
pub(crate) fn is_packed(path: &Path) -> bool {
    // Opening a pipe would wait for a writer.
    if !path.is_file() {
        return false;
    }
    let head = File::open(path).and_then(|mut file| head_of(&mut file));
    head.is_ok_and(|head| Packing::of(&head).is_some())
}

/// Unpacks a file into an existing directory.
///
/// # Errors
/// When the file is damaged or unreadable, when a file cannot be written, or when `stop` becomes
/// true.
pub(crate) fn unpack(path: &Path, to: &Path, stop: &Arc<AtomicBool>) -> io::Result<Unpacked> {
    let mut file = File::open(path)?;
    let packing = Packing::of(&head_of(&mut file)?);
    if let Some(Packing::Foreign(format, command)) = packing {
        return Err(io::Error::other(format!(
            "{format} is not supported: unpack the file with `{command}`"
        )));
    }
    let total = file.metadata()?.len();
    let watched = Watched {
        file: File::open(path)?,
        position: 0,
        progress: Progress::new(total, false),
        stop: Arc::clone(stop),
    };
    let read = BufReader::with_capacity(1 << 18, watched);
    let unpacked = match packing {
        Some(Packing::Zip) => unpack_zip(path, to, stop),
        Some(Packing::Gzip) => unpack_stream(flate2::read::MultiGzDecoder::new(read), path, to),
        Some(Packing::Xz) => unpack_stream(lzma_rust2::XzReader::new(read, true), path, to),
        Some(Packing::Zstd) => unpack_stream(zstd::Decoder::with_buffer(read)?, path, to),
        Some(Packing::Tar | Packing::Foreign(..)) | None => unpack_stream(read, path, to),
    };
    unpacked.map_err(|error| match error.kind() {
        // Such as a full disk.
        _ if is_of_system(&error) => error,
        io::ErrorKind::Unsupported => error,
        io::ErrorKind::UnexpectedEof => io::Error::new(
            error.kind(),
            format!(
                "the file is truncated at {} bytes; copy it again",
                grouped(total)
            ),
        ),
        kind => io::Error::new(
            kind,
            format!("the file is damaged ({error}); copy it again"),
        ),
    })
}

/// Whether the operating system reported the error, even if a decoder wrapped it.
fn is_of_system(error: &io::Error) -> bool {
    let causes = std::iter::successors(Some(error as &dyn Error), |&error| error.source());
    let mut causes = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.any(|error| error.raw_os_error().is_some())
}

/// The first `HEAD` bytes of a file, or fewer if the file is shorter.
fn head_of(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Unpacks the contents of a compressed file: a tar archive, or else a single file.
fn unpack_stream(mut contents: impl Read, path: &Path, to: &Path) -> io::Result<Unpacked> {
    let head = head_of(&mut contents)?;
    let is_archive = is_tar(&head);
    let mut whole = io::Cursor::new(head).chain(contents);
    if is_archive {
        let unpacked = unpack_tar(&mut whole, to)?;
        // Checksums of compressed files follow the end of the archive in them.
        io::copy(&mut whole, &mut io::sink())?;
        return Ok(unpacked);
    }
    let single = to.join(path.file_stem().unwrap_or(path.as_os_str()));
    let mut unpacked = Unpacked::default();
    unpacked.add(&mut whole, &single)?;
    Ok(unpacked)
}

fn unpack_tar(archive: impl Read, to: &Path) -> io::Result<Unpacked> {
    let mut unpacked = Unpacked::default();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        // Directories are created with their files: a directory's own mode might make them
        // inaccessible.
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let is_file = kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse();
        let member = inside(&entry.path()?);
        match member.filter(|_| is_file) {
            Some(member) => unpacked.add(&mut entry, &to.join(member))?,
            None => unpacked.skipped += 1,
        }
    }
    Ok(unpacked)
}

fn unpack_zip(path: &Path, to: &Path, stop: &Arc<AtomicBool>) -> io::Result<Unpacked> {
    let mut unpacked = Unpacked::default();
    let mut archive = zip::ZipArchive::new(BufReader::new(File::open(path)?))?;
    let sizes = (0..archive.len()).map(|at| archive.by_index_raw(at).map_or(0, |one| one.size()));
    let mut progress = Progress::new(sizes.collect::<Vec<_>>().iter().sum(), false);
    for at in 0..archive.len() {
        let entry = archive.by_index(at)?;
        if entry.is_dir() {
            continue;
        }
        let member = inside(Path::new(entry.name()));
        match member.filter(|_| entry.is_file()) {
            Some(member) => {
                let mut entry = Stoppable { read: entry, stop };
                unpacked.add(&mut entry, &to.join(member))?;
            }
            None => unpacked.skipped += 1,
        }
        progress.at(|| unpacked.bytes);
    }
    progress.finish();
    Ok(unpacked)
}

impl Unpacked {
    fn add(&mut self, contents: &mut impl Read, path: &Path) -> io::Result<()> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        // If several members have the same path, the last one wins, as in tar.
        self.bytes += io::copy(contents, &mut File::create(path)?)?;
        self.files += 1;
        Ok(())
    }
}

/// A member's path without `.` and a leading `/`; `None` if it leads outside the directory or is
/// empty.
fn inside(path: &Path) -> Option<PathBuf> {
    use std::path::Component;
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    (!inside.as_os_str().is_empty()).then_some(inside)
}

/// Reader of a packed file that shows progress and fails after an interrupt.
struct Watched {
    file: File,
    position: u64,
    progress: Progress,
    stop: Arc<AtomicBool>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        fail_if(&self.stop)?;
        let length = self.file.read(buffer)?;
        self.position += length as u64;
        self.progress.at(|| self.position);
        if length == 0 {
            self.progress.finish();
        }
        Ok(length)
    }
}

/// Reader that fails after an interrupt.
struct Stoppable<'s, R> {
    read: R,
    stop: &'s AtomicBool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        fail_if(self.stop)?;
        self.read.read(buffer)
    }
}

fn fail_if(stop: &AtomicBool) -> io::Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(io::Error::other("interrupted")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn members_stay_inside_of_the_directory() {
        let of = |path: &str| inside(Path::new(path));
        assert_eq!(of("./a//b"), Some(PathBuf::from("a/b")));
        assert_eq!(of("//etc/passwd"), Some(PathBuf::from("etc/passwd")));
        for outside in ["../a", "a/../../b", "/../a", ".", "/", ""] {
            assert_eq!(of(outside), None, "{outside}");
        }
    }

    fn tar_with(members: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, kind, contents) in members {
            let mut header = tar::Header::new_ustar();
            // Not `set_path`, which refuses paths that leave the directory.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(contents.len() as u64);
            header.set_cksum();
            archive.append(&header, *contents).unwrap();
        }
        archive.into_inner().unwrap()
    }

    #[test]
    fn links_and_escaping_paths_are_skipped() {
        use tar::EntryType;
        let bytes = tar_with(&[
            ("trace/", EntryType::Directory, b""),
            ("trace/metadata", EntryType::Regular, b"contents"),
            ("trace/link", EntryType::Symlink, b""),
            ("../outside", EntryType::Regular, b"x"),
            ("/trace/absolute", EntryType::Regular, b"y"),
            ("trace/fifo", EntryType::Fifo, b""),
        ]);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.tar.gz");
        let mut packed = flate2::write::GzEncoder::new(
            File::create(&file).unwrap(),
            flate2::Compression::fast(),
        );
        packed.write_all(&bytes).unwrap();
        packed.finish().unwrap();
        assert!(is_packed(&file));
        let to = directory.path().join("to");
        fs::create_dir(&to).unwrap();
        let unpacked = unpack(&file, &to, &Arc::default()).unwrap();
        assert_eq!(
            (unpacked.files, unpacked.bytes, unpacked.skipped),
            (2, 9, 3)
        );
        assert_eq!(fs::read(to.join("trace/metadata")).unwrap(), b"contents");
        assert_eq!(fs::read(to.join("trace/absolute")).unwrap(), b"y");
        assert!(!directory.path().join("outside").exists());
        let interrupted = unpack(&file, &to, &Arc::new(AtomicBool::new(true)));
        assert!(interrupted.is_err());
    }

    #[test]
    fn damaged_archives_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("to");
        fs::create_dir(&to).unwrap();
        let heads: [&[u8]; 4] = [
            &[0x1f, 0x8b, 8, 0],
            &[0xfd, b'7', b'z', b'X', b'Z', 0, 0],
            &[0x28, 0xb5, 0x2f, 0xfd, 1],
            b"PK\x03\x04broken",
        ];
        for head in heads {
            let file = directory.path().join("damaged");
            fs::write(&file, [head, &[7; 600]].concat()).unwrap();
            assert!(is_packed(&file));
            assert!(unpack(&file, &to, &Arc::default()).is_err(), "{head:?}");
        }
        fs::write(directory.path().join("other"), b"PERFILE2").unwrap();
        assert!(!is_packed(&directory.path().join("other")));
        assert!(!is_packed(directory.path()));
    }
}
