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

/// The path of the file that `path` refers to, with symbolic links resolved. A path that does not
/// exist yet is returned unchanged.
///
/// # Errors
/// If `path` is not a regular file, such as a device, or is a dangling link.
pub fn place(path: &Path) -> io::Result<PathBuf> {
    let path = match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => std::fs::canonicalize(path)?,
        _ => path.to_owned(),
    };
    match std::fs::metadata(&path) {
        Ok(about) if !about.is_file() => Err(io::Error::other(
            "this is not a regular file: only regular files are replaced",
        )),
        _ => Ok(path),
    }
}

/// Creates a temporary file with a unique name in the directory of `path`. It is removed when it is
/// dropped, unless it is persisted.
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
    tempfile::Builder::new()
        .prefix(&lead)
        .suffix(".part")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory.unwrap_or(Path::new(".")))
}
