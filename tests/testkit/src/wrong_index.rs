//! Entries in the middle of an index that are wrong, each in another way.

use crate::index::IndexEntry;

/// Index of the entry that is changed.
pub const WRONG: usize = 4;

/// A way in which the entry [`WRONG`] is wrong, of an index with more than six.
#[derive(Clone, Copy, Debug)]
pub struct WrongEntry {
    /// What is wrong.
    pub name: &'static str,
    /// Changes the index.
    pub change: fn(&mut Vec<IndexEntry>),
    /// The index alone shows that something may be wrong: heads are read when the trace is opened.
    pub shows: bool,
}

const fn way(name: &'static str, shows: bool, change: fn(&mut Vec<IndexEntry>)) -> WrongEntry {
    WrongEntry { name, change, shows }
}

/// Bytes by which the border of two packets is moved.
const MOVED: u64 = 4096;

/// All ways.
pub const WAYS: [WrongEntry; 14] = [
    way("later-begin", false, |of| {
        of[WRONG].begin = middle(of[WRONG].begin, of[WRONG].end);
    }),
    way("earlier-begin", false, |of| {
        of[WRONG].begin = middle(of[WRONG - 1].begin, of[WRONG - 1].end);
    }),
    way("later-end", false, |of| of[WRONG].end = of[WRONG + 2].end),
    way("earlier-end", false, |of| {
        of[WRONG].end = middle(of[WRONG].begin, of[WRONG].end);
    }),
    way("both-times-later", false, |of| {
        (of[WRONG].begin, of[WRONG].end) = (of[WRONG].end, of[WRONG + 1].end);
    }),
    way("begin-out-of-order", true, |of| {
        of[WRONG].begin = of[WRONG + 2].end
    }),
    way("begin-before-all", true, |of| of[WRONG].begin = 1),
    way("end-before-begin", true, |of| of[WRONG].end = of[WRONG].begin - 1),
    way("earlier-border", false, |of| {
        resize(&mut of[WRONG], |bytes| bytes - MOVED);
        of[WRONG + 1].offset -= MOVED;
        resize(&mut of[WRONG + 1], |bytes| bytes + MOVED);
    }),
    way("later-border", false, |of| {
        resize(&mut of[WRONG], |bytes| bytes + MOVED);
        of[WRONG + 1].offset += MOVED;
        resize(&mut of[WRONG + 1], |bytes| bytes - MOVED);
    }),
    way("two-packets-in-one", false, |of| {
        let next = of.remove(WRONG + 1);
        resize(&mut of[WRONG], |bytes| bytes + next.total_length / 8);
        of[WRONG].end = next.end;
    }),
    way("smaller-content", false, |of| {
        of[WRONG].content_length -= 8 * MOVED
    }),
    way("more-discarded", false, |of| of[WRONG].discarded_events += 5),
    way("other-number", false, |of| of[WRONG].sequence_number += 1),
];

fn middle(from: u64, to: u64) -> u64 {
    from + (to - from) / 2
}

fn resize(entry: &mut IndexEntry, bytes: impl Fn(u64) -> u64) {
    entry.total_length = bytes(entry.total_length / 8) * 8;
    entry.content_length = entry.content_length.min(entry.total_length);
}
