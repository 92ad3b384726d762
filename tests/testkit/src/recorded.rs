//! Recorded traces: the archives in `tests/data`, unpacked.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data");

/// The path of an archive in `tests/data`, whether or not it exists.
pub fn archive(name: &str) -> PathBuf {
    Path::new(DATA).join(format!("{name}.tar.xz"))
}

/// Unpacks an archive into an existing directory.
///
/// # Panics
///
/// If the archive cannot be unpacked.
pub fn unpack(archive: &Path, into: &Path) {
    let mut tar = Command::new("tar");
    let status = tar.arg("-xJf").arg(archive).arg("-C").arg(into).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{} cannot be unpacked",
        archive.display()
    );
}

/// The unpacked content of an archive, in a directory below the target directory. It is unpacked
/// once, even if several tests and test programs request it at the same time, and must not be
/// changed.
///
/// # Panics
///
/// If the archive cannot be unpacked.
pub fn kept(archive: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Another archive of the same name has a different size.
    let bytes = std::fs::metadata(archive)
        .expect("the archive is there")
        .len();
    let name = archive.file_name().expect("an archive has a name");
    let name = name
        .to_str()
        .expect("names are UTF-8")
        .trim_end_matches(".tar.xz");
    let directory = temporary().join(format!("{name}-{bytes}"));
    if directory.is_dir() {
        return directory;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let fresh = directory.with_extension(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&fresh).expect("a directory for the archive");
    unpack(archive, &fresh);
    // Renamed when it is complete. Another test may have been faster.
    if std::fs::rename(&fresh, &directory).is_err() {
        let _ = std::fs::remove_dir_all(&fresh);
    }
    assert!(directory.is_dir(), "{} is not there", directory.display());
    directory
}

/// [`kept`], for an archive in `tests/data`.
pub fn unpacked(name: &str) -> PathBuf {
    kept(&archive(name))
}

/// Cargo's directory for files of tests, also where `CARGO_TARGET_TMPDIR` is not set: test programs
/// are in `deps` of a profile, beside it.
pub fn temporary() -> PathBuf {
    let program = std::env::current_exe().expect("a test program has a path");
    let target = program
        .ancestors()
        .nth(3)
        .expect("it stands in the target directory");
    target.join("tmp")
}
