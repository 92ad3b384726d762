//! Output files that get their names when they are complete.
//!
//! Symbolic links are written through. Pipes, devices and open descriptors (`/dev/stdout`) are
//! written directly, since they must not be replaced by a file.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use tempfile::TempPath;
use tracebraid_storage::aside;

use crate::failure::Failure;
use crate::file_kind::FileKind;
use crate::output::cannot_be_written;

/// A file under a temporary name; it is removed if it is not finished.
pub(crate) struct PartFile {
    part: TempPath,
    place: PathBuf,
}

impl PartFile {
    /// Opens a temporary file beside the target of `path`; pipes, devices and descriptors are
    /// opened themselves.
    ///
    /// # Errors
    /// When neither can be opened, or the file has recorded or computed data.
    pub(crate) fn create(path: &Path) -> Result<(File, Option<PartFile>), Failure> {
        FileKind::check_export(path)?;
        open(path).map_err(|error| cannot_be_written(path, &error))
    }

    /// Gives the file its final name.
    ///
    /// # Errors
    /// When it cannot be renamed; the file is then removed.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let PartFile { part, place } = self;
        part.persist(&place)
            .map_err(|error| cannot_be_written(&place, &error.error))
    }
}

fn open(path: &Path) -> io::Result<(File, Option<PartFile>)> {
    let place = aside::through_links(path)?;
    if let Some(standard) = standard_stream(&place) {
        return Ok((standard?, None));
    }
    let is_special = std::fs::metadata(&place).is_ok_and(|known| !known.is_file());
    if is_special || place.is_symlink() {
        return Ok((File::create(place)?, None));
    }
    let (file, part) = aside::beside(&place)?.into_parts();
    Ok((file, Some(PartFile { part, place })))
}

/// Standard output or standard error, if the path stands for it. Opening the path again would write
/// a redirected stream from the beginning of its file, over other output.
fn standard_stream(place: &Path) -> Option<io::Result<File>> {
    let name = place.file_name().filter(|_| place.is_symlink())?;
    let stream = match name.to_str()? {
        "1" => io::stdout().as_fd().try_clone_to_owned(),
        "2" => io::stderr().as_fd().try_clone_to_owned(),
        _ => return None,
    };
    Some(stream.map(File::from))
}
