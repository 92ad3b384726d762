//! What only the machine that was recorded can tell about addresses, kept in `symbols` below the
//! recording's directory.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use tracebraid_kernel_recorder::Processes;

use crate::perf_maps;

/// Keeps what was compiled since that time, and the kernel's functions in programs. What cannot be
/// had is passed over: names are missing then, and nothing else.
pub(crate) fn keep(directory: &Path, since: SystemTime, processes: Option<&Processes>) {
    let symbols = directory.join("symbols");
    perf_maps::keep(&symbols, since, processes);
    let _ = vdso(&symbols);
}

/// The library that the kernel gives each program is no file: that of this program is the same.
fn vdso(to: &Path) -> io::Result<()> {
    let image = tracebraid_kernel_recorder::vdso_image()?;
    fs::create_dir_all(to)?;
    let part = to.join("vdso.part");
    fs::write(&part, image)?;
    fs::rename(part, to.join("vdso.so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_library_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        vdso(directory.path()).unwrap();
        let image = fs::read(directory.path().join("vdso.so")).unwrap();
        assert_eq!(image[..4], *b"\x7fELF");
    }
}
