//! Data for resolving addresses that exists only on the recorded machine, kept in `symbols` below
//! the recording's directory.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use tracebraid_kernel_recorder::Processes;

use crate::perf_maps;

/// Keeps the maps of code compiled since `since`, and the vDSO. Failures are ignored: only names
/// are missing then.
pub(crate) fn keep(directory: &Path, since: SystemTime, processes: Option<&Processes>) {
    let symbols = directory.join("symbols");
    perf_maps::keep(&symbols, since, processes);
    let _ = vdso(&symbols);
}

/// The vDSO, which the kernel maps into each program, is not a file: this program's vDSO is copied,
/// since it is the same for all.
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
