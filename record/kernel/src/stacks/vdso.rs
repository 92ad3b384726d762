//! The vDSO, which the kernel maps into each program and which is not a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Upper bound of its size in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The ELF image of the vDSO, which is the same for all 64-bit programs.
///
/// # Errors
/// If this program has none, or it cannot be read.
pub fn image() -> io::Result<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let range = maps.lines().find_map(|line| {
        let (begin, end) = line
            .strip_suffix("[vdso]")?
            .split(' ')
            .next()?
            .split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(begin)?, number(end)?))
    });
    let (begin, end) = range.ok_or(io::ErrorKind::NotFound)?;
    let mut image = vec![0; end.saturating_sub(begin).min(MOST_BYTES) as usize];
    File::open("/proc/self/mem")?.read_exact_at(&mut image, begin)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_image_is_an_elf_file() {
        assert_eq!(super::image().unwrap()[..4], *b"\x7fELF");
    }
}
