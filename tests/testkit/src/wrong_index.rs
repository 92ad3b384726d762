//! Changes that make an entry in the middle of an index wrong.

use crate::index::IndexEntry;

/// Position of the changed entry, from 0.
pub const WRONG: usize = 4;

/// A change that makes the entry at [`WRONG`] wrong. The index needs at least seven entries.
#[derive(Clone, Copy, Debug)]
pub struct WrongEntry {
    /// The fault in a few words, joined by hyphens for use in a directory name.
    pub name: &'static str,
    /// Applies the change to the entries of the index.
    pub change: fn(&mut Vec<IndexEntry>),
    /// The changed index is implausible by itself, so every entry is compared when the trace is
    /// opened.
    pub shows: bool,
}

const fn way(name: &'static str, shows: bool, change: fn(&mut Vec<IndexEntry>)) -> WrongEntry {
    WrongEntry {
        name,
        change,
        shows,
    }
}

/// Bytes by which the boundary between two packets is moved.
const MOVED: u64 = 4096;

/// All changes.
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
    way("end-before-begin", true, |of| {
        of[WRONG].end = of[WRONG].begin - 1
    }),
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
    way("more-discarded", false, |of| {
        of[WRONG].discarded_events += 5
    }),
    way("other-number", false, |of| of[WRONG].sequence_number += 1),
];

fn middle(from: u64, to: u64) -> u64 {
    from + (to - from) / 2
}

fn resize(entry: &mut IndexEntry, bytes: impl Fn(u64) -> u64) {
    entry.total_length = bytes(entry.total_length / 8) * 8;
    entry.content_length = entry.content_length.min(entry.total_length);
}
