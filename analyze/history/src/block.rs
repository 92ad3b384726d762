//! A block: the changes of all attributes in a slice of time, as bytes.
//!
//! ```text
//! head       48 bytes, little-endian: magic, level, flags, 2 zeros; start, end, grid and length of
//!            the body (i64 or u64 each); CRC-32 of the preceding bytes and the body, 4 zeros
//! texts      count; for each text of this block its number in the file (codes of texts in runs are
//!            indexes into this list, from 1)
//! snapshot   if flag 1 is set: count; for each attribute with a value at the start of the block:
//!            attribute minus the previous one, code
//! directory  count; for each run: attribute minus the previous one, time of the first change since
//!            the start in grids, its code, number of further changes; if there are any, the code of
//!            the last one and their size in bytes; for counters the code at the start of the block
//! runs       see [`crate::run`]; times in grids
//! ```
//! If flag 2 is set, the rest after the head is packed (see [`crate::packing`]). Numbers of the
//! body are of variable length (LEB128). In a coarse block (level 1 and above) the grid is greater
//! than 1 ns, and codes of texts are those of the file.

use crate::attribute::{Attribute, Form};
use crate::packing;
use crate::run::{Change, Run, Steps};
use crate::varint::{self, NULL, Numbers};

/// Bytes of a block's head.
pub(crate) const HEAD: usize = 48;
const MAGIC: [u8; 4] = *b"TBhb";
const HAS_SNAPSHOT: u8 = 1;
const IS_PACKED: u8 = 2;
/// Mean number of bytes of a run, below which a body is packed.
const LONG_RUNS: usize = 64;

/// The level and the interval of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockSpan {
    /// 0: all changes; above: values at the multiples of a grid.
    pub(crate) level: u8,
    /// Unit of times in nanoseconds.
    pub(crate) grid: i64,
    /// Start in nanoseconds from the origin, inclusive.
    pub(crate) begin: i64,
    /// End in nanoseconds from the origin, exclusive.
    pub(crate) end: i64,
}

/// The content of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) texts: Vec<u64>,
    pub(crate) snapshot: Option<Vec<(Attribute, u64)>>,
    /// Runs with times in grids, each with the code of its attribute at the start of the block.
    pub(crate) runs: Vec<(Attribute, Run, u64)>,
}

/// The bytes of a block.
pub(crate) fn write(place: BlockSpan, content: &Content) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    varint::put(&mut bytes, content.texts.len() as u64);
    content
        .texts
        .iter()
        .for_each(|&text| varint::put(&mut bytes, text));
    if let Some(snapshot) = &content.snapshot {
        varint::put(&mut bytes, snapshot.len() as u64);
        let mut before = 0;
        for (attribute, code) in snapshot {
            varint::put(&mut bytes, attribute.bits() - before);
            varint::put(&mut bytes, *code);
            before = attribute.bits();
        }
    }
    varint::put(&mut bytes, content.runs.len() as u64);
    let first = place.begin.div_euclid(place.grid);
    let mut before = 0;
    for (attribute, run, base) in &content.runs {
        varint::put(&mut bytes, attribute.bits() - before);
        before = attribute.bits();
        varint::put(&mut bytes, run.first.0.abs_diff(first));
        varint::put(&mut bytes, run.first.1);
        varint::put(&mut bytes, run.more);
        if run.more > 0 {
            varint::put(&mut bytes, run.last);
            varint::put(&mut bytes, run.bytes.len() as u64);
        }
        if attribute.kind().form() == Form::Counter {
            varint::put(&mut bytes, *base);
        }
    }
    for (_, run, _) in &content.runs {
        bytes.extend_from_slice(&run.bytes);
    }
    let mut flags = if content.snapshot.is_some() {
        HAS_SNAPSHOT
    } else {
        0
    };
    if bytes.len() - HEAD < content.runs.len() * LONG_RUNS
        && let Some(packed) = packing::pack(&bytes[HEAD..])
    {
        flags |= IS_PACKED;
        bytes.truncate(HEAD);
        bytes.extend_from_slice(&packed);
    }
    write_head(&mut bytes, place, flags);
    bytes
}

fn write_head(bytes: &mut [u8], place: BlockSpan, flags: u8) {
    let length = (bytes.len() - HEAD) as u64;
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4] = place.level;
    bytes[5] = flags;
    bytes[8..16].copy_from_slice(&place.begin.to_le_bytes());
    bytes[16..24].copy_from_slice(&place.end.to_le_bytes());
    bytes[24..32].copy_from_slice(&place.grid.to_le_bytes());
    bytes[32..40].copy_from_slice(&length.to_le_bytes());
    let sum = sum(bytes);
    bytes[40..44].copy_from_slice(&sum.to_le_bytes());
}

fn sum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..40]);
    hasher.update(&bytes[HEAD..]);
    hasher.finalize()
}

/// A block that was read.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) place: BlockSpan,
    pub(crate) snapshot: Option<Vec<(Attribute, u64)>>,
    /// In the order of attributes.
    pub(crate) directory: Vec<Entry>,
    texts: Vec<u64>,
    bytes: Vec<u8>,
}

/// The position of a run in a block. Codes of texts are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) attribute: Attribute,
    /// In nanoseconds.
    pub(crate) first: Change,
    pub(crate) last: u64,
    /// Of a counter: its code at the start of the block.
    base: u64,
    begin: usize,
    end: usize,
}

/// Reasons why bytes are not a valid block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockError {
    #[error("no block begins here")]
    NoBlock,
    #[error("the block's checksum is wrong")]
    Sum,
    #[error("the block's content is invalid")]
    Content,
}

impl Block {
    /// Parses a block. For any bytes, the memory used is bounded by a multiple of their length.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Block, BlockError> {
        let place = place(&bytes).ok_or(BlockError::NoBlock)?;
        let found = bytes
            .get(40..44)
            .and_then(|sum| sum.try_into().ok())
            .map(u32::from_le_bytes);
        if found != Some(sum(&bytes)) {
            return Err(BlockError::Sum);
        }
        let [is_packed, has_snapshot] = [IS_PACKED, HAS_SNAPSHOT].map(|flag| bytes[5] & flag != 0);
        let unpacked =
            is_packed.then(|| packing::unpack(&bytes[HEAD..]).ok_or(BlockError::Content));
        let unpacked = unpacked.transpose()?;
        let body = unpacked.as_deref().unwrap_or(&bytes[HEAD..]);
        let parts = Parts::parse(body, place, has_snapshot).ok_or(BlockError::Content)?;
        let Parts {
            texts,
            snapshot,
            directory,
            runs,
        } = parts;
        let bytes = runs.to_vec();
        Ok(Block {
            place,
            snapshot,
            directory,
            texts,
            bytes,
        })
    }

    /// Parses a body after a valid head, for fuzzing, which cannot find checksums.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of_body(body: &[u8], flags: u8) -> Result<Block, BlockError> {
        let mut bytes = vec![0; HEAD];
        bytes.extend_from_slice(body);
        let place = BlockSpan {
            level: 0,
            grid: 1,
            begin: 1000,
            end: 2000,
        };
        write_head(&mut bytes, place, flags);
        Block::parse(bytes)
    }

    /// The run of an attribute, if the block contains one.
    pub(crate) fn entry(&self, attribute: Attribute) -> Option<&Entry> {
        let at = self
            .directory
            .binary_search_by_key(&attribute, |entry| entry.attribute);
        self.directory.get(at.ok()?)
    }

    /// The changes of a run, in nanoseconds and with the file's codes.
    pub(crate) fn changes<'b>(&'b self, entry: &'b Entry) -> impl Iterator<Item = Change> + 'b {
        let grid = self.place.grid;
        let bytes = self.bytes.get(entry.begin..entry.end).unwrap_or_default();
        let form = entry.attribute.kind().form();
        let steps = Steps::new(entry.first.0.div_euclid(grid), bytes);
        let steps = steps.map(move |(time, code)| {
            let code = resolve(form, code, &self.texts, entry.base);
            (time.saturating_mul(grid), code)
        });
        [entry.first].into_iter().chain(steps)
    }
}

/// Converts a code of the block to a code of the file.
#[inline]
fn resolve(form: Form, code: u64, texts: &[u64], base: u64) -> u64 {
    if let Some(text) = form.text_of(code).filter(|_| !texts.is_empty()) {
        let text = texts.get((text as usize).wrapping_sub(1));
        return form.code_of_text(text.map_or(NULL, |text| text.saturating_add(1)));
    }
    match form {
        Form::Counter => sum_of(base, code),
        _ => code,
    }
}

/// The code of a counter's value, from its base and the sum of increments since.
pub(crate) fn sum_of(base: u64, more: u64) -> u64 {
    match (varint::number(base), varint::number(more)) {
        (base, Some(more)) => varint::code(base.unwrap_or(0).saturating_add(more)),
        (_, None) => base,
    }
}

fn place(bytes: &[u8]) -> Option<BlockSpan> {
    let word = |at: usize| {
        bytes
            .get(at..at + 8)?
            .try_into()
            .ok()
            .map(i64::from_le_bytes)
    };
    let is_block = bytes.len() >= HEAD && bytes.starts_with(&MAGIC);
    let place = BlockSpan {
        level: *bytes.get(4)?,
        begin: word(8)?,
        end: word(16)?,
        grid: word(24)?,
    };
    let is_whole = word(32)? == i64::try_from(bytes.len()).ok()? - HEAD as i64;
    (is_block && is_whole && place.grid > 0 && place.begin <= place.end).then_some(place)
}

/// The parts of a block's body.
struct Parts<'b> {
    texts: Vec<u64>,
    snapshot: Option<Vec<(Attribute, u64)>>,
    directory: Vec<Entry>,
    runs: &'b [u8],
}

impl<'b> Parts<'b> {
    fn parse(body: &'b [u8], place: BlockSpan, has_snapshot: bool) -> Option<Parts<'b>> {
        let mut numbers = Numbers::new(body);
        let texts = list(&mut numbers, |numbers| numbers.next())?;
        let snapshot = match has_snapshot {
            true => {
                let mut before = 0;
                Some(list(&mut numbers, |numbers| {
                    Some((next_attribute(numbers, &mut before)?, numbers.next()?))
                })?)
            }
            false => None,
        };
        let mut before = 0;
        let mut end = 0;
        let first = place.begin.div_euclid(place.grid);
        let directory = list(&mut numbers, |numbers| {
            let attribute = next_attribute(numbers, &mut before)?;
            entry(numbers, attribute, (first, place.grid), &texts, &mut end)
        })?;
        let runs = numbers.rest();
        (end == runs.len()).then_some(Parts {
            texts,
            snapshot,
            directory,
            runs,
        })
    }
}

/// A counted list; each element takes at least one byte.
fn list<'b, T>(
    numbers: &mut Numbers<'b>,
    mut next: impl FnMut(&mut Numbers<'b>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = usize::try_from(numbers.next()?).ok()?;
    if count > numbers.rest().len() {
        return None;
    }
    (0..count).map(|_| next(numbers)).collect()
}

/// Attributes are ascending and distinct.
fn next_attribute(numbers: &mut Numbers<'_>, before: &mut u64) -> Option<Attribute> {
    let step = numbers.next()?;
    *before = before.checked_add(step).filter(|_| step > 0)?;
    Attribute::of_bits(*before)
}

fn entry(
    numbers: &mut Numbers<'_>,
    attribute: Attribute,
    (first, grid): (i64, i64),
    texts: &[u64],
    end: &mut usize,
) -> Option<Entry> {
    let time = first.checked_add(i64::try_from(numbers.next()?).ok()?)?;
    let code = numbers.next()?;
    let more = numbers.next()?;
    let (last, length) = match more {
        0 => (code, 0),
        _ => (numbers.next()?, usize::try_from(numbers.next()?).ok()?),
    };
    let form = attribute.kind().form();
    let base = if form == Form::Counter {
        numbers.next()?
    } else {
        NULL
    };
    let begin = *end;
    *end = end.checked_add(length)?;
    Some(Entry {
        attribute,
        first: (time.saturating_mul(grid), resolve(form, code, texts, base)),
        last: resolve(form, last, texts, base),
        base,
        begin,
        end: *end,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attribute::AttributeKind;

    fn content() -> Content {
        let attribute = |kind| Attribute::new(kind, 1, 4);
        let mut state = Run::new((1000, 2));
        state.push(5, 900);
        let mut counter = Run::new((1001, varint::code(2)));
        counter.push(1, varint::code(9));
        let name = Run::new((1003, 2));
        Content {
            texts: vec![7, 3],
            snapshot: Some(vec![
                (attribute(AttributeKind::CpuIrq), 4),
                (attribute(AttributeKind::ThreadCpu), 1 << 40),
            ]),
            runs: vec![
                (attribute(AttributeKind::ThreadState), state, NULL),
                (attribute(AttributeKind::ThreadName), name, NULL),
                (
                    attribute(AttributeKind::DiskRead),
                    counter,
                    varint::code(100),
                ),
            ],
        }
    }

    const PLACE: BlockSpan = BlockSpan {
        level: 0,
        grid: 1,
        begin: 1000,
        end: 2000,
    };

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let block = Block::parse(write(PLACE, &content())).unwrap();
        assert_eq!(
            (block.place, block.snapshot.clone()),
            (PLACE, content().snapshot)
        );
        let changes = |kind| {
            let entry = block.entry(Attribute::new(kind, 1, 4)).unwrap();
            (entry.last, block.changes(entry).collect::<Vec<_>>())
        };
        assert_eq!(
            changes(AttributeKind::ThreadState),
            (900, vec![(1000, 2), (1005, 900)])
        );
        assert_eq!(changes(AttributeKind::ThreadName), (4, vec![(1003, 4)]));
        let counted = (
            varint::code(109),
            vec![(1001, varint::code(102)), (1002, varint::code(109))],
        );
        assert_eq!(changes(AttributeKind::DiskRead), counted);
    }

    #[test]
    fn blocks_of_many_short_runs_are_packed() {
        let runs = (0..1000).map(|thread| {
            let mut run = Run::new((1000 + i64::from(thread) / 10, 2));
            run.push(5, 900);
            (
                Attribute::new(AttributeKind::ThreadState, 1, thread),
                run,
                NULL,
            )
        });
        let content = Content {
            runs: runs.collect(),
            ..Content::default()
        };
        let bytes = write(PLACE, &content);
        assert!(bytes.len() < 4000, "{}", bytes.len());
        let block = Block::parse(bytes).unwrap();
        assert_eq!(block.directory.len(), 1000);
        let entry = block
            .entry(Attribute::new(AttributeKind::ThreadState, 1, 77))
            .unwrap();
        assert_eq!(
            block.changes(entry).collect::<Vec<_>>(),
            [(1007, 2), (1012, 900)]
        );
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in any::<prop::sample::Index>(), bit in 0u32..8) {
            let mut bytes = write(PLACE, &content());
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            // The last four bytes of the head are not checked.
            prop_assert!((44..48).contains(&at) || Block::parse(bytes).is_err());
        }

        #[test]
        fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..80), flags in 0u8..4) {
            if let Ok(block) = Block::of_body(&body, flags) {
                for entry in &block.directory {
                    block.changes(entry).for_each(drop);
                }
            }
        }
    }
}
