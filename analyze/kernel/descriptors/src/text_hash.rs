//! Hashes of texts.
//!
//! SipHash, which the standard library uses, took a third of the time of looking up a path. Eight
//! bytes at a time are folded by a multiplication, with a secret of the process in each step, so
//! that a trace cannot be made whose texts collide.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// The secret: two numbers, of which the second is odd.
fn secret() -> (u64, u64) {
    static SECRET: OnceLock<(u64, u64)> = OnceLock::new();
    *SECRET.get_or_init(|| {
        let state = RandomState::new();
        (state.hash_one(0), state.hash_one(1) | 1)
    })
}

fn fold(first: u64, second: u64) -> u64 {
    let product = u128::from(first) * u128::from(second);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a text, equal for equal texts within a process.
pub(crate) fn hash(text: &str) -> u64 {
    let (seed, factor) = secret();
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let mut hash = seed ^ text.len() as u64;
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word), factor).wrapping_add(seed);
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    fold(hash ^ u64::from_le_bytes(last), factor)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_byte_and_the_length_count() {
        let text = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        let mut hashes = HashSet::from([hash(text)]);
        for at in 0..text.len() {
            let changed = format!("{}#{}", &text[..at], &text[at + 1..]);
            assert!(hashes.insert(hash(&changed)), "{changed}");
            assert!(hashes.insert(hash(&text[..at])), "{at}");
        }
        assert!(hashes.insert(hash("/\0")) && hashes.insert(hash("/\0\0")));
        assert_eq!(hash(text), hash(&String::from(text)));
    }
}
