//! Encoding of the times and the steps of an execution as bytes.

use tracebraid_storage::varint::{Numbers, put};

use crate::contexts::ContextId;

/// Number of the thread (`None` if unknown), context, and duration in nanoseconds.
pub(super) type StoredStep = (Option<u32>, ContextId, u64);

/// Encodes times; replaces the contents of `bytes`.
pub(super) fn put_times(bytes: &mut Vec<u8>, times: &[(ContextId, u64)]) {
    bytes.clear();
    let mut before = 0;
    for &(context, time) in times {
        put(bytes, u64::from(context.0 - before));
        put(bytes, time);
        before = context.0;
    }
}

/// Decodes times; `None` if the bytes are invalid or refer to a context not below `contexts`.
pub(super) fn read_times(bytes: &[u8], contexts: usize) -> Option<Vec<(ContextId, u64)>> {
    let mut numbers = Numbers::new(bytes);
    let mut found: Vec<(ContextId, u64)> = Vec::with_capacity(bytes.len() / 3);
    let mut before = 0u64;
    while !numbers.rest().is_empty() {
        let more = numbers.next()?;
        if more == 0 && !found.is_empty() {
            return None;
        }
        before = before
            .checked_add(more)
            .filter(|&id| id < contexts as u64)?;
        found.push((ContextId(before as u32), numbers.next()?));
    }
    Some(found)
}

/// Encodes steps; replaces the contents of `bytes`.
pub(super) fn put_steps(bytes: &mut Vec<u8>, steps: impl Iterator<Item = StoredStep>) {
    bytes.clear();
    let mut before = None;
    for (thread, context, duration) in steps {
        let changes = thread != before;
        put(bytes, u64::from(context.0) << 1 | u64::from(changes));
        if changes {
            put(bytes, thread.map_or(0, |thread| u64::from(thread) + 1));
            before = thread;
        }
        put(bytes, duration);
    }
}

/// Decodes steps; `None` if the bytes are invalid or refer to a context or thread out of range.
pub(super) fn read_steps(bytes: &[u8], contexts: usize, threads: usize) -> Option<Vec<StoredStep>> {
    let mut numbers = Numbers::new(bytes);
    let mut found: Vec<StoredStep> = Vec::with_capacity(bytes.len() / 4);
    let mut thread = None;
    while !numbers.rest().is_empty() {
        let head = numbers.next()?;
        let context = Some(head >> 1).filter(|&id| id < contexts as u64)? as u32;
        if head & 1 == 1 {
            thread = match numbers.next()? {
                0 => None,
                id if id <= threads as u64 => Some((id - 1) as u32),
                _ => return None,
            };
        }
        found.push((thread, ContextId(context), numbers.next()?));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(times: &[(ContextId, u64)]) -> Vec<u8> {
        let mut bytes = vec![7];
        put_times(&mut bytes, times);
        bytes
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_were_written(found in prop::collection::btree_map(0u32..500, any::<u64>(), 0..20)) {
            let found: Vec<(ContextId, u64)> = found.into_iter().map(|(id, time)| (ContextId(id), time)).collect();
            prop_assert_eq!(read_times(&bytes_of(&found), 500), Some(found.clone()));
            // A context out of range.
            let most = found.last().map_or(0, |last| last.0.0);
            prop_assert_eq!(read_times(&bytes_of(&found), most as usize).is_none(), !found.is_empty());
        }

        #[test]
        fn steps_are_read_as_they_were_written(
            found in prop::collection::vec((prop::option::of(0u32..9), (0u32..500).prop_map(ContextId), any::<u64>()), 0..20),
        ) {
            let mut bytes = vec![7];
            put_steps(&mut bytes, found.iter().copied());
            prop_assert_eq!(read_steps(&bytes, 500, 9), Some(found));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (read_times(&bytes, 40), read_steps(&bytes, 40, 3));
        }
    }
}
