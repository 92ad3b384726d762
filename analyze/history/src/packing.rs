//! Bodies of blocks that are smaller on disk.
//!
//! Where threads live shortly, a block has many attributes that change once or twice: what each
//! begins with is most of it, and repeats itself. Bodies of long runs do so less, and packing them
//! would cost more time than all else that is done for them.

/// Fast, and nearly as small as the slower ones on such bodies.
const LEVEL: i32 = 3;
/// Bytes of an unpacked body for each of a packed one, at most: a few would else take all memory.
const MOST_TIMES: usize = 64;
/// How long it is unpacked, before it: as u64, little-endian.
const LENGTH: usize = 8;

/// The body, packed; none if that is not smaller.
pub(crate) fn pack(body: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(LENGTH + zstd_safe::compress_bound(body.len()));
    packed.extend_from_slice(&(body.len() as u64).to_le_bytes());
    packed.resize(packed.capacity(), 0);
    let length = zstd_safe::compress(packed.get_mut(LENGTH..)?, body, LEVEL).ok()?;
    packed.truncate(LENGTH + length);
    let is_worth = packed.len() < body.len() && body.len() <= most(length);
    is_worth.then_some(packed)
}

/// The body that was packed; none if it makes no sense.
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
        // Each byte less, or a length that is not true, is noticed.
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
        // Nor what few bytes would tell all of.
        assert_eq!(pack(&[0; 100_000]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(packed in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&packed);
        }
    }
}
