//! Encoding of fields: the inverse of the reference reader's descent over a field class.

use crate::bits;
use crate::value::Value;
use std::sync::Arc;
use tracebraid_ctf::schema::{ByteOrder, Encoding, FieldClass, IntClass, Roles};

/// Size in bytes of a variable-length integer whose value is patched after it was written.
pub(super) const PATCHED_VAR_INT_BYTES: u32 = 9;

/// A value that does not fit its class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value does not fit its field class: {0}")]
pub struct EncodeError(pub(super) String);

/// A written integer with roles.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) class: Arc<IntClass>,
    /// Bits from the packet's start.
    pub(super) position: u64,
    pub(super) is_fixed: bool,
}

/// A buffer of bits.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub(super) data: Vec<u8>,
    pub(super) position: u64,
    /// Integers with roles.
    pub(super) written: Vec<Written>,
}

impl Encoder {
    /// Writes one field.
    pub(super) fn field(&mut self, class: &FieldClass, value: &Value) -> Result<(), EncodeError> {
        self.align(class.align());
        match (class, value) {
            (FieldClass::Int(int), Value::Wide(bytes)) => self.wide(int, bytes),
            (FieldClass::Int(int), Value::Int(_) | Value::UInt(_))
            | (FieldClass::Bool(int), Value::Bool(_))
            | (FieldClass::BitArray(int) | FieldClass::BitMap(int), Value::Bits(_)) => {
                self.int(int, value)
            }
            (FieldClass::VarInt(int), Value::Int(_) | Value::UInt(_)) => {
                self.variable_int(int, value)
            }
            (
                FieldClass::Float {
                    length,
                    byte_order,
                    reversed_bits,
                    ..
                },
                Value::Float { bits, .. },
            ) => {
                let raw = if *reversed_bits {
                    bits::reverse(*bits, *length)
                } else {
                    *bits
                };
                self.put(*length, *byte_order, raw);
                Ok(())
            }
            (FieldClass::Str { encoding }, Value::Str(text)) => {
                self.bytes(&encode_text(text, *encoding));
                self.bytes(&vec![0; encoding.unit_bytes()]);
                Ok(())
            }
            (FieldClass::StaticBlob { .. } | FieldClass::DynBlob { .. }, Value::Blob(bytes)) => {
                self.bytes(bytes);
                Ok(())
            }
            (FieldClass::StaticStr { length, encoding }, Value::Str(text)) => {
                self.padded_string(text, *encoding, *length)
            }
            (FieldClass::DynStr { encoding, .. }, Value::Str(text)) => {
                self.bytes(&encode_text(text, *encoding));
                Ok(())
            }
            (
                FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. },
                Value::Array(values),
            ) => values
                .iter()
                .try_for_each(|value| self.field(element, value)),
            (FieldClass::Struct(class), Value::Struct(values))
                if class.members.len() == values.len() =>
            {
                let mut members = class.members.iter().zip(values);
                members.try_for_each(|(member, value)| self.field(&member.class, value))
            }
            (FieldClass::Variant(class), Value::Variant { option, value }) => {
                let Some(option) = class.options.get(*option) else {
                    return Err(EncodeError(format!("no option {option}")));
                };
                self.field(&option.class, value)
            }
            (FieldClass::Optional(_), Value::Optional(None)) => Ok(()),
            (FieldClass::Optional(class), Value::Optional(Some(value))) => {
                self.field(&class.element, value)
            }
            (class, value) => Err(EncodeError(format!("{value:?} in {class:?}"))),
        }
    }

    /// Advances to a multiple of `align`, filling with zeros.
    pub(super) fn align(&mut self, align: u32) {
        self.position = self.position.next_multiple_of(u64::from(align.max(1)));
        self.grow();
    }

    fn grow(&mut self) {
        self.data.resize(self.position.div_ceil(8) as usize, 0);
    }

    fn put(&mut self, length: u32, order: ByteOrder, value: u128) {
        let position = self.position;
        self.position += u64::from(length);
        self.grow();
        let done = bits::write(
            &mut self.data,
            position,
            length,
            order,
            value & bits::mask(length),
        );
        debug_assert!(done.is_some(), "the data was grown for it");
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.align(8);
        self.data.extend_from_slice(bytes);
        self.position += bytes.len() as u64 * 8;
    }

    fn note(&mut self, class: &Arc<IntClass>, is_fixed: bool) {
        if !class.roles.is_empty() {
            self.written.push(Written {
                class: Arc::clone(class),
                position: self.position,
                is_fixed,
            });
        }
    }

    fn int(&mut self, class: &Arc<IntClass>, value: &Value) -> Result<(), EncodeError> {
        let raw = value.as_integer().unwrap_or(0) as u128 & bits::mask(class.length);
        let read_back = if class.signed {
            bits::sign_extend(raw, class.length)
        } else {
            raw as i128
        };
        // Any true boolean is written as 1; other bit patterns would read as true, too.
        if class.length > 64 || value.as_integer().map(|value| value & 1) != Some(read_back & 1) {
            return Err(EncodeError(format!("{value:?} in {} bits", class.length)));
        }
        if !matches!(value, Value::Bool(_)) && value.as_integer() != Some(read_back) {
            return Err(EncodeError(format!("{value:?} in {} bits", class.length)));
        }
        self.note(class, true);
        let raw = if class.reversed_bits {
            bits::reverse(raw, class.length)
        } else {
            raw
        };
        self.put(class.length, class.byte_order, raw);
        Ok(())
    }

    /// An integer of more than 64 bits, bit by bit.
    fn wide(&mut self, class: &IntClass, bytes: &[u8]) -> Result<(), EncodeError> {
        let lowest_first = (class.byte_order == ByteOrder::Little) != class.reversed_bits;
        for index in 0..class.length {
            let significance = if lowest_first {
                index
            } else {
                class.length - 1 - index
            };
            let Some(byte) = bytes.get((significance / 8) as usize) else {
                return Err(EncodeError(format!(
                    "{} bytes in {} bits",
                    bytes.len(),
                    class.length
                )));
            };
            self.put(
                1,
                class.byte_order,
                u128::from(byte >> (significance % 8) & 1),
            );
        }
        Ok(())
    }

    fn variable_int(&mut self, class: &Arc<IntClass>, value: &Value) -> Result<(), EncodeError> {
        self.note(class, false);
        let value = value.as_integer().unwrap_or(0);
        // Lengths are patched once they are known, so they get their longest form.
        let is_length = class.roles.contains(Roles::PACKET_TOTAL_LENGTH)
            || class.roles.contains(Roles::PACKET_CONTENT_LENGTH);
        let least = if is_length { PATCHED_VAR_INT_BYTES } else { 1 };
        self.bytes(&leb128(value, class.signed, least));
        Ok(())
    }

    fn padded_string(
        &mut self,
        text: &str,
        encoding: Encoding,
        length: u64,
    ) -> Result<(), EncodeError> {
        let mut bytes = encode_text(text, encoding);
        if bytes.len() as u64 > length {
            return Err(EncodeError(format!("{text:?} in {length} bytes")));
        }
        bytes.resize(length as usize, 0);
        self.bytes(&bytes);
        Ok(())
    }
}

/// LEB128 of at least `least` bytes.
pub(super) fn leb128(value: i128, signed: bool, least: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = value;
    loop {
        let byte = (rest & 0x7f) as u8;
        rest >>= 7;
        let is_complete = if signed {
            rest == -i128::from(byte >> 6)
        } else {
            rest == 0
        };
        if is_complete && bytes.len() + 1 >= least as usize {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}

/// Text in an encoding, without terminator.
pub(super) fn encode_text(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Utf32Be => text
            .chars()
            .flat_map(|c| u32::from(c).to_be_bytes())
            .collect(),
        Encoding::Utf32Le => text
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_leb128() {
        assert_eq!(leb128(624_485, false, 1), [0xe5, 0x8e, 0x26]);
        assert_eq!(leb128(-123_456, true, 1), [0xc0, 0xbb, 0x78]);
        assert_eq!(leb128(0, false, 1), [0]);
        assert_eq!(leb128(64, true, 1), [0xc0, 0]);
        assert_eq!(leb128(-1, true, 2), [0xff, 0x7f]);
        assert_eq!(leb128(1, false, 3), [0x81, 0x80, 0]);
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        let class = IntClass {
            length: 4,
            align: 1,
            byte_order: ByteOrder::Little,
            reversed_bits: false,
            signed: false,
            base: Default::default(),
            encoding: None,
            clock: None,
            roles: Default::default(),
            is_enum: false,
            mappings: Arc::from([]),
        };
        let class = FieldClass::Int(Arc::new(class));
        assert!(Encoder::default().field(&class, &Value::UInt(15)).is_ok());
        assert!(Encoder::default().field(&class, &Value::UInt(16)).is_err());
        assert!(Encoder::default().field(&class, &Value::Int(-1)).is_err());
        assert!(
            Encoder::default()
                .field(&class, &Value::Str(String::new()))
                .is_err()
        );
    }
}
