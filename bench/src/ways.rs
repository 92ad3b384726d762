//! Methods of reading a file's bytes, each with the least work on them: one load for each cache
//! line.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memmap2::{Advice, Mmap, MmapOptions};

use crate::report;

pub(crate) fn all(files: &[&Path]) {
    for kilobytes in [32usize, 64, 128, 256, 512, 1024, 4096] {
        let mut buffer = vec![1u8; kilobytes << 10];
        report(&format!("read: pread {kilobytes} KiB"), || {
            each(files, |file, bytes| pread(file, bytes, &mut buffer))
        });
    }
    report("read: mmap", || {
        each(files, |file, _| mapped(map(file, false), None))
    });
    report("read: mmap, populated", || {
        each(files, |file, _| mapped(map(file, true), None))
    });
    report("read: mmap, sequential", || {
        each(files, |file, _| {
            mapped(map(file, false), Some(Advice::Sequential))
        })
    });
    report("read: mmap, populated by 4 MiB", || {
        each(files, |file, _| mapped_in_pieces(map(file, false)))
    });
}

fn each(files: &[&Path], mut work: impl FnMut(&File, u64)) -> (u64, u64) {
    let mut total = 0;
    for path in files {
        let Ok(file) = File::open(path) else { continue };
        let bytes = file.metadata().map_or(0, |meta| meta.len());
        work(&file, bytes);
        total += bytes;
    }
    (total, 0)
}

fn touch(bytes: &[u8]) {
    std::hint::black_box(
        bytes
            .iter()
            .step_by(64)
            .fold(0u64, |sum, &byte| sum.wrapping_add(u64::from(byte))),
    );
}

fn pread(file: &File, bytes: u64, buffer: &mut [u8]) {
    let mut at = 0;
    while at < bytes {
        match file.read_at(buffer, at) {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                touch(&buffer[..count]);
                at += count as u64;
            }
        }
    }
}

fn map(file: &File, populate: bool) -> Option<Mmap> {
    let mut options = MmapOptions::new();
    if populate {
        options.populate();
    }
    // SAFETY: the measured files are not changed or truncated meanwhile (see the head of the
    // crate).
    unsafe { options.map(file) }.ok()
}

fn mapped(map: Option<Mmap>, advice: Option<Advice>) {
    let Some(map) = map else { return };
    if let Some(advice) = advice {
        let _ = map.advise(advice);
    }
    touch(&map);
}

fn mapped_in_pieces(map: Option<Mmap>) {
    const PIECE: usize = 4 << 20;
    let Some(map) = map else { return };
    for start in (0..map.len()).step_by(PIECE) {
        let length = PIECE.min(map.len() - start);
        let _ = map.advise_range(Advice::PopulateRead, start, length);
        touch(&map[start..start + length]);
    }
}
