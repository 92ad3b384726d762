//! Event record headers that can be read without walking: id and timestamp are at constant offsets,
//! or at offsets that depend only on the position of the event record.
//!
//! Supported are headers of fixed-length integers in either byte order, with or without an id and a
//! timestamp, and LTTng's two headers: an id, a truncated timestamp, and an escape value of the id
//! after which both follow in full.

use super::node::{Node, NodeKind, Selector};
use super::tree::Part;
use crate::bits::FixedRead;
use crate::schema::Roles;

/// An unsigned bit field that lies within eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Byte offset from the event record's start.
    pub byte: u32,
    /// Bits to shift right after the eight bytes at `byte` were read in the field's byte order.
    pub shift: u32,
    /// Mask after the shift.
    pub mask: u64,
    /// Big endian.
    pub big: bool,
}

impl BitField {
    /// Extracts the field from the eight bytes at `byte`, read in the field's byte order.
    #[inline(always)]
    pub fn of(self, word: u64) -> u64 {
        word >> self.shift & self.mask
    }

    /// The field that `read` reads at bit `at` from the event record's start. `None` if the field
    /// does not lie within eight bytes, or is signed or reversed.
    pub(super) fn new(read: FixedRead, at: u64) -> Option<BitField> {
        let (within, length) = ((at % 8) as u32, u32::from(read.length));
        if read.signed || read.reversed || within + length > 64 {
            return None;
        }
        Some(BitField {
            byte: u32::try_from(at / 8).ok()?,
            shift: if read.big {
                64 - within - length
            } else {
                within
            },
            mask: u64::MAX >> (64 - length),
            big: read.big,
        })
    }

    /// The same field, read in the other byte order. `None` if the field spans several bytes.
    pub(crate) fn swapped(self) -> Option<BitField> {
        let bits = 64 - self.mask.leading_zeros();
        let in_byte = if self.big {
            self.shift.checked_sub(56)?
        } else {
            self.shift
        };
        (in_byte + bits <= 8).then_some(BitField {
            shift: if self.big { in_byte } else { in_byte + 56 },
            big: !self.big,
            ..self
        })
    }
}

/// The layout of a header without alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderForm {
    /// The id, if the header contains one.
    pub id: Option<BitField>,
    /// The timestamp, if the header contains one.
    pub timestamp: Option<BitField>,
    /// Size of the whole header in bits.
    pub bits: u32,
}

/// A header that can be read without walking if it begins at a byte boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastHeader {
    /// The default form.
    pub compact: HeaderForm,
    /// Escape value of the id in the default form, and the form that follows it.
    pub extended: Option<(u64, HeaderForm)>,
    /// Whether a truncated header is walked over, so that the message names the field. For LTTng's
    /// headers, the message names the whole header.
    pub(crate) walks_if_cut: bool,
}

impl FastHeader {
    /// True if all forms end at a byte boundary.
    pub(super) fn is_whole(&self) -> bool {
        let extended = self.extended.map(|(_, form)| form.bits);
        extended
            .iter()
            .chain([&self.compact.bits])
            .all(|bits| bits.is_multiple_of(8))
    }
}

/// A field, the way to read it, and its position in bits.
type Leaf<'n> = (&'n Node, FixedRead, u64);

/// Recognises a header whose fields are aligned to at most the alignment of the header.
pub(super) fn recognise(header: Part<'_>) -> Option<FastHeader> {
    recognise_at(header, 0, header.align.max(8))
}

/// Maximum number of headers that [`by_offset`] returns.
pub(crate) const MOST_OFFSETS: usize = 8;

/// Recognises a header with fields that are aligned to more than the header itself, such as LTTng's
/// headers on machines that need natural alignment. The positions of such fields depend on the
/// offset of the event record, so one header is returned for each multiple of the header's
/// alignment below the greatest alignment of a field. Empty if the header is not recognised.
pub(super) fn by_offset(header: Part<'_>) -> Box<[FastHeader]> {
    let aligns = header.inside().iter().map(|node| node.align);
    let modulus = aligns.fold(header.align, u32::max);
    let are_powers =
        header.align >= 8 && header.align.is_power_of_two() && modulus.is_power_of_two();
    if !are_powers || !(2..=MOST_OFFSETS).contains(&((modulus / header.align) as usize)) {
        return Box::default();
    }
    let offsets = (0..modulus).step_by(header.align as usize);
    let headers = offsets.map(|offset| recognise_at(header, u64::from(offset), modulus));
    headers.collect::<Option<_>>().unwrap_or_default()
}

/// Recognises a header that begins `start` bits past a multiple of `align` bits.
fn recognise_at(header: Part<'_>, start: u64, align: u32) -> Option<FastHeader> {
    let mut fields = Fields {
        start,
        align,
        leaves: Vec::new(),
    };
    let (first, variant) = fields.flatten(header, 0)?;
    let is_whole = |form: &HeaderForm| form.bits.is_multiple_of(8);
    let is_usual = |fields: &Fields<'_>| {
        header.align == 8 && !fields.leaves.iter().any(|(_, read, _)| read.big)
    };
    let Some(variant) = variant else {
        let compact = form(&fields.leaves, first)?;
        return Some(FastHeader {
            compact,
            extended: None,
            walks_if_cut: !(is_usual(&fields) && is_whole(&compact)),
        });
    };
    let NodeKind::Variant(choice) = &variant.kind else {
        return None;
    };
    let mut options = variant.parts();
    let (Some(compact), Some(extended), None) = (options.next(), options.next(), options.next())
    else {
        return None;
    };
    let most = escape_value(&fields.leaves, &choice.selector)?;
    let mut are_usual = true;
    let mut of_option = |option| {
        let mut fields = fields.clone();
        let (end, None) = fields.flatten(option, first)? else {
            return None;
        };
        are_usual &= is_usual(&fields);
        form(&fields.leaves, end)
    };
    let (compact, extended) = (of_option(compact)?, of_option(extended)?);
    if compact.id != form(&fields.leaves, first)?.id {
        return None;
    }
    Some(FastHeader {
        compact,
        extended: Some((most, extended)),
        walks_if_cut: !(are_usual && is_whole(&compact) && is_whole(&extended)),
    })
}

/// The largest value of the id before the variant, if that value selects the second option and all
/// other values select the first.
fn escape_value(leaves: &[Leaf<'_>], selector: &Selector) -> Option<u64> {
    let (id, read, _) = of_role(leaves, Roles::EVENT_CLASS_ID).next()?;
    if read.signed || read.length >= 64 || !id.saves.contains(&selector.slot) {
        return None;
    }
    let most = (1u64 << read.length) - 1;
    let [one, other] = &*selector.ranges else {
        return None;
    };
    let (escape, rest) = if one.2 == 1 {
        (one, other)
    } else {
        (other, one)
    };
    (*escape == (most, most, 1) && *rest == (0, most - 1, 0)).then_some(most)
}

/// The fields with a role, the last field first.
fn of_role<'l, 'n>(leaves: &'l [Leaf<'n>], role: Roles) -> impl Iterator<Item = &'l Leaf<'n>> {
    leaves
        .iter()
        .rev()
        .filter(move |(node, ..)| node.roles.contains(role))
}

#[derive(Clone)]
struct Fields<'n> {
    /// Start of the header, in bits past a multiple of `align`.
    start: u64,
    /// Largest alignment, in bits, for which positions are known.
    align: u32,
    leaves: Vec<Leaf<'n>>,
}

impl<'n> Fields<'n> {
    fn align(&self, at: u64, align: u32) -> Option<u64> {
        let aligned = (self.start + at).next_multiple_of(u64::from(align.max(1)));
        (align <= self.align).then(|| aligned - self.start)
    }

    /// Adds the leaves with their positions. Returns the end, and the variant, which must be the
    /// last field. `None` if the byte order changes within a byte.
    fn flatten(&mut self, part: Part<'n>, mut at: u64) -> Option<(u64, Option<Part<'n>>)> {
        let (mut node, mut rest) = (part.node(), part.inside());
        loop {
            at = self.align(at, node.align)?;
            match &node.kind {
                NodeKind::Int(read, _)
                | NodeKind::Bool(read)
                | NodeKind::BitArray(read, _)
                | NodeKind::BitMap(read, _)
                | NodeKind::Float(read) => {
                    let is_mixed = |(_, last, _): &Leaf<'_>| last.big != read.big;
                    if !at.is_multiple_of(8) && self.leaves.last().is_some_and(is_mixed) {
                        return None;
                    }
                    self.leaves.push((node, *read, at));
                    at += u64::from(read.length);
                }
                NodeKind::Struct(_) => {}
                NodeKind::Variant(_) => {
                    let is_last = rest.len() == node.inside as usize;
                    return is_last.then_some((at, Some(Part::new(node, rest))));
                }
                _ => return None,
            }
            let Some((next, behind)) = rest.split_first() else {
                return Some((at, None));
            };
            (node, rest) = (next, behind);
        }
    }
}

fn form(leaves: &[Leaf<'_>], end: u64) -> Option<HeaderForm> {
    let field = |role| match of_role(leaves, role).next() {
        None => Some(None),
        Some((_, read, at)) => BitField::new(*read, *at).map(Some),
    };
    // Two timestamps in a form would update the clock twice, so such a header must be walked over.
    if of_role(leaves, Roles::CLOCK_TIMESTAMP).count() > 1 {
        return None;
    }
    Some(HeaderForm {
        id: field(Roles::EVENT_CLASS_ID)?,
        timestamp: field(Roles::CLOCK_TIMESTAMP)?,
        bits: u32::try_from(end).ok()?,
    })
}
