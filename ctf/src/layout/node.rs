//! The decoding tree: field classes with all decisions made that do not depend on data.

use std::sync::Arc;

use super::slots::Slot;
use crate::bits::FixedRead;
use crate::schema::{Encoding, IntClass, IntRange, Name, Roles};

/// Identifies a node among all nodes of a trace; dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// A field to decode.
#[derive(Clone, Debug)]
pub struct Node {
    /// Number of the node in the trace.
    pub id: NodeId,
    /// Name of the structure member or option; empty for elements and roots.
    pub name: Name,
    /// Alignment in bits at its start.
    pub align: u32,
    /// Roles of the field.
    pub roles: Roles,
    /// Slots that store the value for later lengths and selectors.
    pub saves: Box<[Slot]>,
    /// Kind of the field.
    pub kind: NodeKind,
    /// Minimum size in bits, without alignment.
    pub(crate) minimum_bits: u64,
    /// Number of nodes within this node, which directly follow it.
    pub(crate) inside: u32,
}

impl Node {
    /// True for a timestamp that contains all bits of the clock's value.
    pub(super) fn is_full_timestamp(&self) -> bool {
        let is_full = match &self.kind {
            NodeKind::Int(_, class) => class.length >= 64,
            NodeKind::VarInt(_) => true,
            _ => false,
        };
        is_full && self.roles.contains(Roles::CLOCK_TIMESTAMP)
    }
}

/// Number of elements or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Known from the metadata.
    Static(u64),
    /// The value of an earlier field.
    Slot(Slot),
}

/// The kinds of nodes.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Integer of up to 64 bits, or an enumeration.
    Int(FixedRead, Arc<IntClass>),
    /// Integer of more than 64 bits (CTF 1.8), represented as raw bits.
    WideInt(Arc<IntClass>),
    /// Boolean.
    Bool(FixedRead),
    /// Bit array.
    BitArray(FixedRead, Arc<IntClass>),
    /// Bit map.
    BitMap(FixedRead, Arc<IntClass>),
    /// Variable-length integer.
    VarInt(Arc<IntClass>),
    /// Floating-point number of 16, 32 or 64 bits.
    Float(FixedRead),
    /// Floating-point number of 128 bits, with the way to read 64 bits of it.
    WideFloat(FixedRead),
    /// Null-terminated string.
    Str(Encoding),
    /// String with a length in bytes; ends earlier at the first null code unit, if there is one.
    /// Also CTF 1.8's arrays and sequences of encoded 8-bit integers.
    SizedStr(Length, Encoding),
    /// BLOB with a length in bytes.
    Blob(Length),
    /// Array or sequence, with one part: the element.
    Array(Length),
    /// Structure with this number of members.
    Struct(u32),
    /// Variant; its parts are the options.
    Variant(Arc<Choice>),
    /// Optional, with one part; the selector's option 0 means present.
    Optional(Arc<Selector>),
}

/// The options of a variant.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Selects one of the options.
    pub selector: Selector,
    /// Index of each option among the nodes within the variant.
    pub(super) starts: Box<[u32]>,
}

/// Selects an option by the value of an earlier field.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Slot that stores the value.
    pub slot: Slot,
    /// Inclusive ranges of the raw value, each with the option that it selects. The first match
    /// counts.
    pub ranges: Box<[(u64, u64, u32)]>,
    /// The ranges are the single values 0, 1, 2, ... in this order.
    dense: bool,
}

impl Selector {
    /// The option that a raw value selects.
    #[inline(always)]
    pub fn select(&self, value: u64) -> Option<u32> {
        if self.dense {
            return self.ranges.get(value as usize).map(|range| range.2);
        }
        self.ranges
            .iter()
            .find(|&&(lower, upper, _)| lower <= value && value <= upper)
            .map(|range| range.2)
    }

    /// Converts to raw ranges. Negative parts are split off as two's complement, so that they
    /// compare as unsigned numbers, like the raw values of signed selectors.
    pub(super) fn new<'r>(slot: Slot, options: impl Iterator<Item = &'r [IntRange]>) -> Self {
        let mut ranges = Vec::new();
        for (option, option_ranges) in (0u32..).zip(options) {
            for range in option_ranges {
                if range.lower < 0 {
                    let lower = range.lower.max(i128::from(i64::MIN)) as i64 as u64;
                    ranges.push((lower, range.upper.min(-1) as i64 as u64, option));
                }
                if range.upper >= 0 && range.lower <= i128::from(u64::MAX) {
                    let upper = range.upper.min(i128::from(u64::MAX)) as u64;
                    ranges.push((range.lower.max(0) as u64, upper, option));
                }
            }
        }
        let dense = ranges
            .iter()
            .enumerate()
            .all(|(i, range)| range.0 == i as u64 && range.1 == i as u64);
        Selector {
            slot,
            ranges: ranges.into(),
            dense,
        }
    }
}
