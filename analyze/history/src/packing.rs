//! Compression of block bodies.
//!
//! If threads are short-lived, a block has many attributes that change once or twice: their
//! directory entries are most of it, and are repetitive. Bodies of long runs are less so, and
//! packing them would take more time than all other work on them.

/// zstd level: fast, and on such bodies nearly as effective as slower levels.
const LEVEL: i32 = 3;
/// Maximum ratio of unpacked to packed size: otherwise a few bytes could fill the memory.
const MOST_TIMES: usize = 64;
/// Size of the unpacked length that precedes the data: a u64, little-endian.
const LENGTH: usize = 8;

/// The packed body; `None` if it is not smaller.
pub(crate) fn pack(body: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(LENGTH + zstd_safe::compress_bound(body.len()));
    packed.extend_from_slice(&(body.len() as u64).to_le_bytes());
    packed.resize(packed.capacity(), 0);
    let length = zstd_safe::compress(packed.get_mut(LENGTH..)?, body, LEVEL).ok()?;
    packed.truncate(LENGTH + length);
    let is_worth = packed.len() < body.len() && body.len() <= most(length);
    is_worth.then_some(packed)
}

/// The unpacked body; `None` if the data is invalid.
pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let (length, frame) = packed.split_at_checked(LENGTH)?;
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    if length > most(frame.len()) {
        return None;
    }
    let mut body = vec![0; length];
    let found = zstd_safe::decompress(body.as_mut_slice(), frame).ok()?;
    (found == length).then_some(body)
}

fn most(packed: usize) -> usize {
    packed.saturating_mul(MOST_TIMES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_repeats_itself_is_smaller() {
        let body: Vec<u8> = (0..20_000u32)
            .flat_map(|at| [at as u8 % 7, (at / 300) as u8, 3])
            .collect();
        let packed = pack(&body).expect("it is smaller");
        assert!(packed.len() < body.len() / 4, "{}", packed.len());
        assert_eq!(unpack(&packed), Some(body));
        // Truncation or a wrong length is detected.
        assert_eq!(unpack(&packed[..packed.len() - 1]), None);
        for length in [0, 59_999, 60_001, u64::MAX] {
            let mut wrong = packed.clone();
            wrong[..LENGTH].copy_from_slice(&length.to_le_bytes());
            assert_eq!(unpack(&wrong), None, "{length}");
        }
    }

    #[test]
    fn what_is_not_smaller_is_not_packed() {
        assert_eq!(pack(b""), None);
        assert_eq!(pack(b"once"), None);
        // Nor a body that would exceed the ratio.
        assert_eq!(pack(&[0; 100_000]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(packed in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&packed);
        }
    }
}
