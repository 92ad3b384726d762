//! The steps that skip programs are made of.

use std::sync::Arc;

use super::node::{Choice, Length, Selector};
use super::slots::Slot;
use crate::bits::FixedRead;

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Go on by that many bits.
    Add(u64),
    /// Go to the next multiple of that many bits.
    Align(u32),
    /// Keep the field that many bits ahead.
    Save(FixedRead, u32, Slot),
    /// Variable-length integer; kept in the slots.
    VarInt(bool, Box<[Slot]>),
    /// Null-terminated string of code units of that many bytes.
    Str(u8),
    /// String of that many bytes in code units of so many.
    Units(Length, u8),
    /// As many times as the slot says: that many bits, each stride apart.
    Repeat(Slot, u64, u64),
    /// That many elements without a single bit.
    Empty(Length),
    /// The body (the next so many ops) that often; an element takes at least so many bits.
    Loop(Length, u32, u64),
    /// A field of that byte order (true: big) begins here.
    Order(bool),
    /// A field of that byte order ended here.
    SetOrder(bool),
    /// Go to the op of the selected option.
    Switch(Arc<Choice>, Box<[u32]>),
    /// Selected: go on; else go to that op.
    Unless(Arc<Selector>, u32),
    /// Go to that op.
    Jump(u32),
}
