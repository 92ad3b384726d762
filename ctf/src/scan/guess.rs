//! Two aids for a processor that follows a chain of loads: speculative addition of a size, and
//! prefetching.
//!
//! If the order of event records matters, there is a single lane and no other chain to overlap
//! with. A processor speculates on branches, but never on the value of a load. A position that is
//! reached by a branch on the size (`at + 63` by the branch for 63) is used while the string and
//! the selectors of the record are still being read. Most sizes are predicted correctly, since
//! records repeat.
//!
//! Mapped bytes come from memory and not from the nearest cache, so the scanner prefetches. Without
//! prefetching, scanning a single lane lost as much time as mapping had gained.

/// `at + size`.
#[inline(always)]
pub(super) fn add_guessed(at: usize, size: usize) -> usize {
    macro_rules! by_branch {
        ($($known:literal)*) => {
            match size {
                $($known => opaque(at + $known),)*
                _ => at + size,
            }
        };
    }
    // Larger records are rare and gain less.
    by_branch!(
        6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
        40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72
        73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103
        104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
    )
}

/// Returns the value unchanged but hides it from the compiler, which would otherwise replace the
/// branches by the equivalent addition.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[allow(unsafe_code)]
#[inline(always)]
fn opaque(mut value: usize) -> usize {
    // SAFETY: the assembly contains no instruction; the value stays in its register.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags))
    };
    value
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn opaque(value: usize) -> usize {
    value
}

/// Prefetch distance in bytes: far enough for memory to respond, near enough that the bytes are
/// still cached when they are needed.
const AHEAD: usize = 1024;

/// Prefetches bytes at a distance after `at`. The processor's own prefetching stops at the end of a
/// page.
#[inline(always)]
pub(super) fn prefetch_ahead(data: &[u8], at: usize) {
    prefetch_from(data.as_ptr().wrapping_add(at));
}

/// Like [`prefetch_ahead`], given the address of a record.
#[inline(always)]
pub(super) fn prefetch_from(record: *const u8) {
    // Two cache lines, since a record may be longer than one.
    prefetch(record.wrapping_add(AHEAD));
    prefetch(record.wrapping_add(AHEAD + 64));
}

/// Prefetches the cache line that contains an address.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline(always)]
pub(super) fn prefetch(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint is allowed for any address and has no observable effect.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn prefetch(_: *const u8) {}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guessed_sum_is_the_sum() {
        for size in 0..300 {
            assert_eq!(super::add_guessed(1000, size), 1000 + size);
        }
    }
}
