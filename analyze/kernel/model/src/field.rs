//! Fields of event records, read on the fastest path that their position allows.

use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::layout::FieldRef;
use tracebraid_ctf::layout::node::{Length, NodeKind};

use crate::comm::Comm;

/// The part of an event record after its header.
#[derive(Debug)]
pub struct Body<'a, 's> {
    /// Bytes of the body; empty if it does not begin at a byte boundary.
    bytes: &'a [u8],
    cursor: Cursor<'a>,
    slots: &'s mut [u64],
}

impl<'a, 's> Body<'a, 's> {
    /// A body at `cursor`, with registers for decoding.
    #[inline(always)]
    pub fn new(cursor: Cursor<'a>, slots: &'s mut [u64]) -> Self {
        let from = ((cursor.pos >> 3).wrapping_sub(cursor.base)) as usize;
        let to = ((cursor.end >> 3).wrapping_sub(cursor.base)) as usize;
        let bytes = if cursor.pos & 7 == 0 {
            cursor.data.get(from..to).unwrap_or_default()
        } else {
            &[]
        };
        Body {
            bytes,
            cursor,
            slots,
        }
    }

    /// Bytes of the body; empty if it does not begin at a byte boundary.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Position of an integer of whole bytes at a constant offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldPlace {
    byte: u32,
    bytes: u8,
    signed: bool,
    big: bool,
}

/// `N` bytes from index `at` on, if available.
#[inline(always)]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// An integer field of an event class.
#[derive(Clone, Debug)]
pub struct IntField {
    place: Option<FieldPlace>,
    /// Boxed, so that the frequently read part stays small.
    slow: Box<FieldRef>,
}

impl IntField {
    /// `None` if the field is not an integer of up to 64 bits.
    pub fn new(field: FieldRef) -> Option<IntField> {
        match field.kind() {
            NodeKind::Int(..) | NodeKind::VarInt(_) | NodeKind::Bool(_) => {}
            NodeKind::BitArray(..) | NodeKind::BitMap(..) => {}
            _ => return None,
        }
        let place = field.constant().and_then(|(at, read)| {
            let whole = at % 8 == 0 && matches!(read.length, 8 | 16 | 32 | 64) && !read.reversed;
            whole.then_some(FieldPlace {
                byte: u32::try_from(at / 8).ok()?,
                bytes: read.length / 8,
                signed: read.signed,
                big: read.big,
            })
        });
        Some(IntField {
            place,
            slow: Box::new(field),
        })
    }

    /// Value of the field; unsigned values above `i64::MAX` wrap. `None` if the record is too
    /// short.
    #[inline(always)]
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<i64> {
        if let Some(place) = self.place {
            let at = place.byte as usize;
            if let (4, Some(bytes)) = (place.bytes, chunk::<4>(body.bytes, at)) {
                let value = if place.big {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                };
                return Some(if place.signed {
                    i64::from(value as i32)
                } else {
                    i64::from(value)
                });
            }
            if let (8, Some(bytes)) = (place.bytes, chunk::<8>(body.bytes, at)) {
                return Some(if place.big {
                    i64::from_be_bytes(bytes)
                } else {
                    i64::from_le_bytes(bytes)
                });
            }
        }
        self.general(body)
    }

    fn general(&self, body: &mut Body<'_, '_>) -> Option<i64> {
        self.slow
            .integer(body.cursor, body.slots)
            .ok()
            .map(|value| value as i64)
    }
}

/// A field of bytes that are not text.
#[derive(Clone, Debug)]
pub(crate) struct BytesField(Box<FieldRef>);

impl BytesField {
    /// `None` if the field is neither an array of integers of whole bytes nor a BLOB.
    pub(crate) fn new(field: FieldRef) -> Option<BytesField> {
        let is_byte =
            |element: &NodeKind| matches!(element, NodeKind::Int(read, _) if read.length % 8 == 0);
        match field.kind() {
            NodeKind::Blob(_) => {}
            NodeKind::Array(_) if field.element().is_some_and(is_byte) => {}
            _ => return None,
        }
        Some(BytesField(Box::new(field)))
    }

    /// Bytes of the field.
    pub(crate) fn bytes<'a>(&self, body: &mut Body<'a, '_>) -> Option<&'a [u8]> {
        self.0.bytes(body.cursor, body.slots).ok()
    }
}

/// A text field of an event class.
#[derive(Clone, Debug)]
pub struct TextField {
    place: Option<TextPlace>,
    slow: Box<FieldRef>,
}

/// Position of text at a constant offset: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPlace {
    /// Offset and length in bytes; the text may end earlier, at a null.
    Sized(u32, u32),
    /// Ends at a null.
    Terminated(u32),
}

impl TextField {
    /// `None` if the field is not text.
    pub fn new(field: FieldRef) -> Option<TextField> {
        let at = field.offset().filter(|at| at % 8 == 0);
        let at = at.and_then(|at| u32::try_from(at / 8).ok());
        let sized = |length: u64| Some(TextPlace::Sized(at?, u32::try_from(length).ok()?));
        let place = match field.kind() {
            NodeKind::Str(encoding) if encoding.unit_bytes() == 1 => at.map(TextPlace::Terminated),
            NodeKind::Str(_) | NodeKind::SizedStr(Length::Slot(_), _) => None,
            NodeKind::SizedStr(Length::Static(length), _) => sized(*length),
            // An array of characters that is not marked as text.
            NodeKind::Array(Length::Static(length)) => match field.element() {
                Some(NodeKind::Int(read, _)) if read.length == 8 => Some(sized(*length)?),
                _ => return None,
            },
            _ => return None,
        };
        Some(TextField {
            place,
            slow: Box::new(field),
        })
    }

    /// The first 16 bytes; bytes after a null are as the tracer left them.
    #[inline(always)]
    pub fn comm(&self, body: &mut Body<'_, '_>) -> Option<Comm> {
        if let Some(TextPlace::Sized(byte, 16) | TextPlace::Terminated(byte)) = self.place
            && let Some(bytes) = chunk::<16>(body.bytes, byte as usize)
        {
            return Some(match self.place {
                Some(TextPlace::Terminated(_)) => Comm::terminated(bytes),
                _ => Comm(bytes),
            });
        }
        self.bytes(body).map(Comm::new)
    }

    /// Bytes of the text, up to a null.
    pub fn bytes<'a>(&self, body: &mut Body<'a, '_>) -> Option<&'a [u8]> {
        match self.place {
            Some(TextPlace::Sized(byte, length)) => {
                let bytes = body.bytes.get(byte as usize..)?.get(..length as usize)?;
                bytes.split(|&byte| byte == 0).next()
            }
            // The slow path fails if no null follows.
            Some(TextPlace::Terminated(byte)) if !body.bytes.is_empty() => {
                let bytes = body.bytes.get(byte as usize..)?;
                bytes.get(..memchr::memchr(0, bytes)?)
            }
            _ => self.slow.bytes(body.cursor, body.slots).ok(),
        }
    }
}
