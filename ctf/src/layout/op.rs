//! The steps that skip programs are made of.

use std::sync::Arc;

use super::node::{Choice, Length, Selector};
use super::slots::Slot;
use crate::bits::FixedRead;

/// A step of a skip program.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Advance by this number of bits.
    Add(u64),
    /// Advance to the next multiple of this number of bits.
    Align(u32),
    /// Store the field that begins this number of bits ahead.
    Save(FixedRead, u32, Slot),
    /// Variable-length integer (true: signed); its value is stored in the slots.
    VarInt(bool, Box<[Slot]>),
    /// Null-terminated string of code units of this number of bytes.
    Str(u8),
    /// String with a length in bytes, and code units of this number of bytes.
    Units(Length, u8),
    /// Elements: their number (in a slot), the size of each in bits, and their stride in bits.
    Repeat(Slot, u64, u64),
    /// Elements of zero bits: their number.
    Empty(Length),
    /// Loop: number of elements, number of ops of the body (which follow), and minimum size of an
    /// element in bits.
    Loop(Length, u32, u64),
    /// A field of this byte order (true: big endian) begins here.
    Order(bool),
    /// A field of this byte order ended here.
    SetOrder(bool),
    /// Jump to the op of the selected option.
    Switch(Arc<Choice>, Box<[u32]>),
    /// Continue if the option is selected, else jump to the op with this index.
    Unless(Arc<Selector>, u32),
    /// Jump to the op with this index.
    Jump(u32),
}
