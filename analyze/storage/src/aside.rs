//! Files that are written under a temporary name and then renamed, so that an incomplete file never
//! replaces the old one.
//!
//! In: the path of the file to create. Out: a temporary file in the same directory, which the
//! caller writes and persists under that path.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Maximum number of symbolic links that are followed, as in the kernel.
const MOST_LINKS: u32 = 40;

/// The path to which symbolic links lead, even if nothing exists there yet; other paths are returned
/// unchanged. Links below `/proc` that stand for open descriptors (such as `/dev/stdout`) are
/// returned themselves: the file of a descriptor must not be replaced.
///
/// # Errors
/// If links form a cycle, or a link cannot be read.
pub fn through_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let is_link = std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink());
        let directory = path.parent().unwrap_or(Path::new("/"));
        let directory = match directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => directory,
        };
        if !is_link || std::fs::canonicalize(directory)?.starts_with("/proc") {
            return Ok(path);
        }
        path = directory.join(std::fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The path of the file that `path` refers to, with symbolic links resolved. A path that does not
/// exist yet is returned unchanged.
///
/// # Errors
/// If `path` is not a regular file, such as a device or an open descriptor.
pub fn place(path: &Path) -> io::Result<PathBuf> {
    let path = through_links(path)?;
    match std::fs::metadata(&path) {
        Ok(about) if !about.is_file() || path.is_symlink() => Err(io::Error::other(
            "this is not a regular file: only regular files are replaced",
        )),
        _ => Ok(path),
    }
}

/// Creates a temporary file with a unique name in the directory of `path`, with the permissions of
/// an existing file at `path`. It is removed when it is dropped, unless it is persisted.
///
/// # Errors
/// If the file cannot be created.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut lead = OsString::from(".");
    lead.push(path.file_name().unwrap_or_default());
    lead.push(".");
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    // Otherwise the error would name the hidden temporary file.
    if let Some(missing) = directory.filter(|directory| !directory.is_dir()) {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("no such directory: {}", missing.display()),
        ));
    }
    let file = tempfile::Builder::new()
        .prefix(&lead)
        .suffix(".part")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    if let Ok(replaced) = std::fs::metadata(path) {
        file.as_file().set_permissions(replaced.permissions())?;
    }
    Ok(file)
}
