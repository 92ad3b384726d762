//! Hashes of texts.
//!
//! SipHash, the hash of the standard library, took a third of the time of looking up a path. This
//! hash folds eight bytes at a time by a multiplication. Each step includes a random secret of the
//! process, so that a trace cannot be crafted to make its texts collide.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Random start value and odd factor, chosen once in each process.
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

/// Equal for equal texts within a process; differs between processes.
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
