//! What only the machine that was recorded can tell about addresses, kept in `symbols` below the recording's directory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use tracebraid_kernel_recorder::Processes;

use crate::perf_maps;

/// Keeps what was compiled since that time, and the kernel's functions in programs. What cannot be had is passed over:
/// names are missing then, and nothing else.
pub(crate) fn keep(directory: &Path, since: SystemTime, processes: Option<&Processes>) {
    let symbols = directory.join("symbols");
    perf_maps::keep(&symbols, since, processes);
    let _ = vdso(&symbols);
}

/// More it cannot be.
const MOST_BYTES: u64 = 1 << 20;

/// The library that the kernel gives each program is no file: that of this program is the same.
fn vdso(to: &Path) -> io::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let range = maps.lines().find_map(|line| {
        let (begin, end) = line.strip_suffix("[vdso]")?.split(' ').next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(begin)?, number(end)?))
    });
    let Some((begin, bytes)) = range.map(|(begin, end)| (begin, end.saturating_sub(begin).min(MOST_BYTES)))
    else {
        return Ok(());
    };
    let mut image = vec![0; bytes as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, begin)?;
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
