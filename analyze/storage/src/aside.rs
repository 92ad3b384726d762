//! Files that are written aside, and then take their place: what was not completed leaves what was
//! there before.
//!
//! In: the name of a file to be. Out: a file beside it, to be written and then to be persisted
//! under that name.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Where a file of that name is: a link is followed. What is no file, as a device, is not replaced
/// by one.
///
/// # Errors
/// When it is no file, or a link leads nowhere.
pub fn place(path: &Path) -> io::Result<PathBuf> {
    let path = match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => std::fs::canonicalize(path)?,
        _ => path.to_owned(),
    };
    match std::fs::metadata(&path) {
        Ok(about) if !about.is_file() => Err(io::Error::other(
            "this is no file: what is written aside takes the place of a file",
        )),
        _ => Ok(path),
    }
}

/// A file beside that one, with a name that nobody else has. It is gone when it is dropped, unless
/// it takes that one's place.
///
/// # Errors
/// When it cannot be made.
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
