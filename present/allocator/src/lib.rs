//! The allocator of the program: mimalloc for small blocks, separate mappings for large blocks.
//!
//! The thread that folds a chunk allocates its items, and another thread frees them. glibc takes
//! the lock of the allocating thread's arena to free them: `files` with two threads was hardly
//! faster than with one (0.50 s and 0.53 s). mimalloc takes no lock. jemalloc needed more memory,
//! and larger thread caches in glibc made no difference.
//!
//! mimalloc grows a block by copying it. The time lines of the critical-path graph are lists that
//! grow to hundreds of megabytes, and these copies caused a third of all page faults of
//! `critical-path`. The kernel moves a mapping to a larger address range without a copy (`mremap`),
//! and the old and the new block never use memory at the same time.
//!
//! # Safety argument
//! The layout alone determines whether a block is a mapping (`is_mapped`), and callers of
//! [`GlobalAlloc`] must free a block with the layout with which it was allocated. Mappings are
//! private, anonymous and aligned to pages, which suffices for the alignments of mapped blocks. The
//! length of a mapping is the size of the layout rounded up to pages.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;

use mimalloc::MiMalloc;

/// Minimum size of a mapped block, in bytes. The kernel zeroes every page of a mapping, and
/// unmapping interrupts the CPUs of the other threads, so blocks that are allocated for each chunk
/// of a trace should be smaller.
const LARGE: usize = 4 << 20;
/// Smallest page size of all processors, in bytes.
const PAGE: usize = 4096;

/// Maps blocks of 4 MiB and more, and leaves other blocks to mimalloc.
#[derive(Debug, Default)]
pub struct Allocator;

fn is_mapped(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

/// Maps zeroed memory; null if the kernel has no memory.
fn map(bytes: usize) -> *mut u8 {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, at an address that the kernel chooses, refers to nothing that exists.
    let address = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        null_mut()
    } else {
        address.cast()
    }
}

// SAFETY: see the safety argument at the head of the crate.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller fulfils the contract of `alloc`, which is that of mimalloc.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller fulfils the contract of `alloc_zeroed`, which is that of mimalloc.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives the layout with which the block was allocated: a mapped block
        // has that length.
        unsafe {
            match is_mapped(layout) {
                true => _ = libc::munmap(block.cast(), layout.size()),
                false => MiMalloc.dealloc(block, layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size is neither 0 nor too large for the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as in `dealloc`; a block that becomes a mapping, or stops being one, is copied
        // before it is freed.
        unsafe {
            match (is_mapped(layout), is_mapped(new)) {
                (false, false) => MiMalloc.realloc(block, layout, size),
                (true, true) => {
                    let moved =
                        libc::mremap(block.cast(), layout.size(), size, libc::MREMAP_MAYMOVE);
                    if moved == libc::MAP_FAILED {
                        null_mut()
                    } else {
                        moved.cast()
                    }
                }
                _ => {
                    let moved = self.alloc(new);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    #[test]
    fn lists_keep_what_they_contain_while_they_grow_and_shrink() {
        let mut list = Vec::new();
        let most = 4 * LARGE / size_of::<u64>();
        list.extend(0..most as u64);
        assert!(list.iter().copied().eq(0..most as u64));
        for length in [most / 2, LARGE / 8, LARGE / 8 - 1, 1000, 0] {
            list.truncate(length);
            list.shrink_to_fit();
            assert!(list.iter().copied().eq(0..length as u64), "{length}");
        }
    }

    #[test]
    fn large_blocks_are_zeroed_if_that_is_asked_for() {
        for _ in 0..3 {
            let mut zeros = vec![0u8; LARGE + 1];
            assert!(zeros.iter().all(|byte| *byte == 0));
            zeros.fill(1);
        }
    }

    #[test]
    fn alignments_hold() {
        for align in [1, 64, PAGE, 4 * PAGE, 1 << 21] {
            for size in [1, LARGE - 1, LARGE, LARGE + 1] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not 0, and the block is freed with the same layout.
                unsafe {
                    let block = ALLOCATOR.alloc(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align));
                    block.add(size - 1).write(1);
                    ALLOCATOR.dealloc(block, layout);
                }
            }
        }
    }

    /// The kernel moves a large block without touching its pages.
    #[test]
    fn growing_touches_nothing() {
        let mut list: Vec<u8> = Vec::with_capacity(LARGE);
        // Page faults of this thread, since tests run beside each other.
        let faults = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(7).unwrap().parse::<usize>().unwrap()
        };
        let before = faults();
        list.reserve_exact(64 * LARGE);
        let after = faults();
        assert!(
            after < before + LARGE / PAGE,
            "{before} and {after} page faults"
        );
    }
}
