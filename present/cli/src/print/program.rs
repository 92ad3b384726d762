//! Line programs: the steps that print an event record of one class.
//!
//! All constant text between two values (the end of a scope, the next name, brackets) is one
//! literal; each value is one step. Rare field classes are left to a visitor. `compiler` makes
//! programs.

use std::rc::Rc;
use std::sync::Arc;

use tracebraid_ctf::bits::{Cursor, DecodeError, FixedRead};
use tracebraid_ctf::layout::node::{Choice, Length};
use tracebraid_ctf::layout::tree::Tree;
use tracebraid_ctf::schema::IntClass;
use tracebraid_ctf::walk::{Silent, Visitor, walk};

use super::buffer::{Buffer, Padded};
use super::escape::{put_json, put_text};
use super::slot::{LITERAL, SLOT, Slot};
use super::style::Style;
use super::visitor::Shower;

#[derive(Debug)]
pub(super) enum LineOp {
    /// Only the literal.
    Literal,
    /// Advance to a multiple of this number of bits.
    Align(u32),
    /// Advance by this number of bits.
    Skip(u64),
    /// Keep the next integer for lengths and selectors.
    Keep(FixedRead, Box<[u16]>),
    Unsigned(FixedRead),
    Signed(FixedRead),
    Hexadecimal(FixedRead),
    Enumeration(FixedRead, Box<Enumeration>),
    /// Null-terminated, in UTF-8.
    Text,
    /// A number of bytes, shown up to the first null, in UTF-8.
    SizedText(Length),
    Elements(Box<Elements>),
    /// Run the program of the selected option.
    Variant(Box<(Arc<Choice>, Box<[Program]>)>),
    /// Show the field by walking over it; the flag says whether names are shown.
    Walk(Tree, bool),
    /// Walk over the field without showing it.
    WalkBlindly(Tree),
}

#[derive(Debug)]
pub(super) struct Enumeration {
    pub(super) class: Arc<IntClass>,
    /// Precomputed texts of the lowest values.
    pub(super) ready: Box<[Padded]>,
}

/// Elements of an array; the program runs once for each element.
#[derive(Debug)]
pub(super) struct Elements {
    pub(super) length: Length,
    pub(super) program: Program,
    /// Precomputed separators and indices of the first elements.
    pub(super) ready: Box<[Padded]>,
    /// The array itself, for lengths that need the checks of the walk.
    pub(super) tree: Tree,
    pub(super) names: bool,
}

/// One literal and one value, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct LineStep {
    pub(super) kind: LineOp,
    /// Length of the literal before the value, in bytes.
    pub(super) length: u8,
    /// Alignment of the value in bits, minus 1.
    pub(super) mask: u8,
    pub(super) literal: [u8; LITERAL],
}

/// Shows consecutive scopes of an event record.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) steps: Vec<LineStep>,
    pub(super) style: Rc<Style>,
}

/// Puts the separator and the index of an element.
pub(super) fn put_index(style: &Style, buffer: &mut Buffer, index: u64, names: bool) {
    style.put_separator(buffer, index == 0);
    if names && !style.json {
        buffer.put_byte(b'[');
        buffer.put_u64(index);
        buffer.put(b"] = ");
    }
}

/// Reads the bits of a field, not sign-extended. Cases that need more than one load are left to the
/// cursor.
#[inline(always)]
fn bits(cursor: &mut Cursor<'_>, read: FixedRead) -> Result<u64, DecodeError> {
    let (at, length) = (cursor.pos, u32::from(read.length));
    let byte = (at >> 3).wrapping_sub(cursor.base) as usize;
    let (shift, unused) = ((at & 7) as u32, (64 - length) & 63);
    if let Some(bytes) = cursor
        .data
        .get(byte..)
        .and_then(|rest| rest.first_chunk::<8>())
        && at + u64::from(length) <= cursor.end
        && shift <= unused
    {
        cursor.pos = at + u64::from(length);
        let word = if read.big {
            u64::from_be_bytes(*bytes) << shift
        } else {
            u64::from_le_bytes(*bytes) << (unused - shift)
        };
        return Ok(word >> unused);
    }
    cursor.fixed(FixedRead {
        signed: false,
        ..read
    })
}

/// Reads a signed field.
#[inline(always)]
fn signed(cursor: &mut Cursor<'_>, read: FixedRead) -> Result<i64, DecodeError> {
    let unused = (64 - u32::from(read.length)) & 63;
    bits(cursor, read).map(|raw| ((raw << unused) as i64) >> unused)
}

impl Program {
    /// Shows the scopes at the cursor.
    ///
    /// # Errors
    /// When the data contradicts the layout; part of the output has then been written.
    pub(crate) fn run(
        &self,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
        buffer: &mut Buffer,
    ) -> Result<(), DecodeError> {
        // Position and end of the output stay in registers until a step needs the buffer.
        let mut at = *cursor;
        let mut end = buffer.len();
        let mut out = buffer.all();
        for step in &self.steps {
            let mask = u64::from(step.mask);
            at.pos = at.pos.wrapping_add(mask) & !mask;
            if out.len() - end < SLOT {
                buffer.set_length(end);
                out = buffer.grown(SLOT);
            }
            let Some(slot) = out.get_mut(end..).and_then(|rest| rest.first_chunk_mut()) else {
                break;
            };
            let mut slot = Slot::of(slot);
            slot.literal(&step.literal);
            let length = usize::from(step.length);
            end += match &step.kind {
                LineOp::Unsigned(read) => slot.decimal(length, bits(&mut at, *read)?),
                LineOp::Hexadecimal(read) => slot.hexadecimal(length, bits(&mut at, *read)?),
                LineOp::Signed(read) => slot.signed(length, signed(&mut at, *read)?),
                LineOp::Literal => length,
                kind => {
                    buffer.set_length(end + length);
                    *cursor = at;
                    self.run_other(kind, cursor, slots, buffer)?;
                    at = *cursor;
                    end = buffer.len();
                    out = buffer.all();
                    0
                }
            };
        }
        *cursor = at;
        buffer.set_length(end);
        Ok(())
    }

    #[inline(always)]
    fn run_other(
        &self,
        kind: &LineOp,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
        buffer: &mut Buffer,
    ) -> Result<(), DecodeError> {
        match kind {
            LineOp::Enumeration(read, labels) => {
                let raw = cursor.fixed(*read)?;
                match labels.ready.get(raw as usize) {
                    Some(text) => buffer.put_literal(text),
                    None => self.style.put_enumeration(
                        buffer,
                        &labels.class,
                        u32::from(read.length),
                        raw,
                    ),
                }
            }
            LineOp::Text => {
                let start = start_of(cursor)?;
                let length = cursor.terminated(1)?.len();
                self.put_string(buffer, cursor.data, start, length);
            }
            LineOp::SizedText(length) => {
                let start = start_of(cursor)?;
                let bytes = cursor.bytes(count(*length, slots))?;
                self.put_string(buffer, cursor.data, start, null_at(bytes));
            }
            kind => self.run_rare(kind, cursor, slots, buffer)?,
        }
        Ok(())
    }

    #[inline(never)]
    fn run_rare(
        &self,
        kind: &LineOp,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
        buffer: &mut Buffer,
    ) -> Result<(), DecodeError> {
        match kind {
            LineOp::Elements(elements) => {
                let count = count(elements.length, slots);
                // An element has at least one bit; an array that cannot have that many is left to
                // the walk.
                if count > cursor.end.saturating_sub(cursor.pos) {
                    let mut shower = Shower::within_array(buffer, &self.style, elements.names);
                    return walk_over(&elements.tree, cursor, slots, &mut shower);
                }
                for index in 0..count {
                    match elements.ready.get(index as usize) {
                        Some(text) => buffer.put_literal(text),
                        None => put_index(&self.style, buffer, index, elements.names),
                    }
                    elements.program.run(cursor, slots, buffer)?;
                }
                Ok(())
            }
            LineOp::Variant(variant) => {
                let (choice, options) = &**variant;
                let slot = usize::from(choice.selector.slot);
                let raw = slots.get(slot).copied().unwrap_or(0);
                let option = choice.selector.select(raw);
                let option = option.and_then(|option| options.get(option as usize));
                let option = option.ok_or(DecodeError::NoOption {
                    at: cursor.pos,
                    selector: raw,
                })?;
                option.run(cursor, slots, buffer)
            }
            LineOp::Keep(read, saves) => {
                let mut ahead = *cursor;
                let raw = ahead.fixed(*read)?;
                for &slot in saves {
                    slots
                        .get_mut(usize::from(slot))
                        .into_iter()
                        .for_each(|place| *place = raw);
                }
                Ok(())
            }
            LineOp::Skip(bits) => {
                cursor.pos = cursor.pos.saturating_add(*bits);
                Ok(())
            }
            LineOp::Align(align) => {
                cursor.align(*align);
                Ok(())
            }
            LineOp::Walk(tree, names) => walk_over(
                tree,
                cursor,
                slots,
                &mut Shower::new(buffer, &self.style, *names),
            ),
            LineOp::WalkBlindly(tree) => walk_over(tree, cursor, slots, &mut Silent),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn put_string(&self, buffer: &mut Buffer, data: &[u8], start: usize, length: usize) {
        if self.style.json {
            put_json(buffer, data.get(start..start + length).unwrap_or_default());
        } else {
            put_text(buffer, data, start, length);
        }
    }
}

#[inline(never)]
fn walk_over(
    tree: &Tree,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    visitor: &mut impl Visitor,
) -> Result<(), DecodeError> {
    match tree.root() {
        Some(root) => walk(root, cursor, slots, visitor),
        None => Ok(()),
    }
}

fn count(length: Length, slots: &[u64]) -> u64 {
    match length {
        Length::Static(count) => count,
        Length::Slot(slot) => slots.get(usize::from(slot)).copied().unwrap_or(0),
    }
}

/// Index of the cursor's position in its data; the position must be byte-aligned.
#[inline(always)]
fn start_of(cursor: &Cursor<'_>) -> Result<usize, DecodeError> {
    let start = (cursor.pos >> 3).checked_sub(cursor.base);
    start
        .map(|start| start as usize)
        .ok_or(DecodeError::OutOfBounds {
            at: cursor.pos,
            wanted: 8,
        })
}

/// Number of bytes before the first null byte.
#[inline(always)]
fn null_at(bytes: &[u8]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let nulls = word.wrapping_sub(LOW) & !word & (LOW << 7);
        if nulls != 0 {
            return index * 8 + (nulls.trailing_zeros() >> 3) as usize;
        }
    }
    words.len() * 8
        + rest
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::null_at;

    #[test]
    fn strings_end_at_their_first_null() {
        for length in 0..40 {
            let mut bytes = vec![b'x'; length];
            assert_eq!(null_at(&bytes), length);
            for null in (0..length).rev() {
                bytes[null] = 0;
                assert_eq!(null_at(&bytes), null);
            }
        }
        assert_eq!(null_at(&[0x80, 0x81, 0x01, 0, 1, 0, 0, 0, 0]), 3);
    }
}
