//! Event record headers that can be read without walking: id and timestamp at constant places.
//!
//! Covers LTTng's compact and large headers (an id, a truncated timestamp, and an escape value of
//! the id behind which both come in full) and all plain little-endian headers.

use super::node::{Node, NodeKind, Selector};
use super::tree::Part;
use crate::bits::FixedRead;
use crate::schema::Roles;

/// A little-endian bit field that lies within eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Byte offset from the event record's start.
    pub byte: u32,
    /// Bits to shift right.
    pub shift: u32,
    /// Mask after the shift.
    pub mask: u64,
}

impl BitField {
    /// Extracts it from the eight bytes at `byte`.
    #[inline(always)]
    pub fn of(self, word: u64) -> u64 {
        word >> self.shift & self.mask
    }
}

/// One form of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderForm {
    /// The id, if the header has one.
    pub id: Option<BitField>,
    /// The timestamp, if the header has one.
    pub timestamp: Option<BitField>,
    /// Bytes of the whole header.
    pub bytes: u32,
}

/// A header that needs no walk. Event records start at byte boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastHeader {
    /// The usual form.
    pub compact: HeaderForm,
    /// The form that is used when the id in the usual form has that value.
    pub extended: Option<(u64, HeaderForm)>,
}

type Leaf<'a> = (&'a Node, u64);

/// Recognises such a header.
pub(super) fn recognise(header: Part<'_>) -> Option<FastHeader> {
    // Every event record then starts at a byte boundary, and none needs more than that.
    if header.align != 8 {
        return None;
    }
    let mut leaves = Vec::new();
    let (first, variant) = flatten(header, 0, &mut leaves)?;
    let Some(variant) = variant else {
        return Some(FastHeader {
            compact: form(&leaves, first)?,
            extended: None,
        });
    };
    let NodeKind::Variant(choice) = &variant.kind else {
        return None;
    };
    let mut options = variant.parts();
    let (Some(compact), Some(extended), None) = (options.next(), options.next(), options.next()) else {
        return None;
    };
    // The selector must be the id itself, and exactly one of its values mean "extended".
    let (id, _) = leaves
        .iter()
        .rev()
        .find(|(leaf, _)| leaf.roles.contains(Roles::EVENT_CLASS_ID))?;
    let most = escape_value(id, &choice.selector)?;
    let of_option = |option: Part<'_>| {
        let mut leaves = leaves.clone();
        let (end, None) = flatten(option, first, &mut leaves)? else {
            return None;
        };
        form(&leaves, end)
    };
    Some(FastHeader {
        compact: of_option(compact)?,
        extended: Some((most, of_option(extended)?)),
    })
}

/// The largest value of an id, if it means the second option, and all others the first.
fn escape_value(id: &Node, selector: &Selector) -> Option<u64> {
    let NodeKind::Int(read, class) = &id.kind else {
        return None;
    };
    if class.signed || read.length >= 64 || !id.saves.contains(&selector.slot) {
        return None;
    }
    let most = (1u64 << read.length) - 1;
    let [one, other] = &*selector.ranges else {
        return None;
    };
    let (escape, rest) = if one.2 == 1 { (one, other) } else { (other, one) };
    (*escape == (most, most, 1) && *rest == (0, most - 1, 0)).then_some(most)
}

/// Positions are constant only for alignments of up to a byte.
fn align(at: u64, align: u32) -> Option<u64> {
    (align <= 8).then(|| at.next_multiple_of(u64::from(align)))
}

/// The leaves with their positions; the end; and the variant which must be the last field.
fn flatten<'n>(part: Part<'n>, mut at: u64, leaves: &mut Vec<Leaf<'n>>) -> Option<(u64, Option<Part<'n>>)> {
    let (mut node, mut rest) = (part.node(), part.inside());
    loop {
        at = align(at, node.align)?;
        match &node.kind {
            NodeKind::Int(read, _) => {
                if read.reversed || (read.big && (read.length != 8 || !at.is_multiple_of(8))) {
                    return None;
                }
                leaves.push((node, at));
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

fn form(leaves: &[Leaf<'_>], end: u64) -> Option<HeaderForm> {
    let last = |role| leaves.iter().rev().find(|(leaf, _)| leaf.roles.contains(role));
    let field = |leaf: Option<&Leaf<'_>>| match leaf {
        None => Some(None),
        Some((node, at)) => bit_field(node, *at).map(Some),
    };
    // Two timestamps in one form would update the clock twice: left to the general way.
    let stamps = leaves
        .iter()
        .filter(|(leaf, _)| leaf.roles.contains(Roles::CLOCK_TIMESTAMP))
        .count();
    if stamps > 1 || !end.is_multiple_of(8) {
        return None;
    }
    Some(HeaderForm {
        id: field(last(Roles::EVENT_CLASS_ID))?,
        timestamp: field(last(Roles::CLOCK_TIMESTAMP))?,
        bytes: (end / 8) as u32,
    })
}

fn bit_field(node: &Node, at: u64) -> Option<BitField> {
    let NodeKind::Int(FixedRead { length, .. }, class) = &node.kind else {
        return None;
    };
    let (shift, length) = ((at % 8) as u32, u32::from(*length));
    if class.signed || shift + length > 64 {
        return None;
    }
    let mask = if length == 64 { u64::MAX } else { (1 << length) - 1 };
    Some(BitField {
        byte: (at / 8) as u32,
        shift,
        mask,
    })
}
