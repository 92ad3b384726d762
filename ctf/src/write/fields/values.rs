//! The values of fields, by kind.

use super::Fields;
use crate::bits::FixedRead;
use crate::layout::node::{Node, NodeKind};
use crate::schema::{Encoding, IntClass};
use crate::write::FieldProblem;
use crate::write::bits::{fits_signed, fits_unsigned};

impl Fields<'_> {
    /// Writes a non-negative integer, a boolean (0 or 1), a bit array or a bit map.
    #[inline(always)]
    pub fn uint(&mut self, value: u64) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Int(how, _) if fits_unsigned(*how, value) => self.integer(node, *how, value),
            kind => self.other_uint(node, kind, value),
        }
        self
    }

    /// Writes an integer.
    #[inline(always)]
    pub fn int(&mut self, value: i64) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Int(how, _) if fits_signed(*how, value) => {
                self.integer(node, *how, value as u64);
            }
            NodeKind::VarInt(class) if class.signed || value >= 0 => {
                self.variable(node, class, i128::from(value));
            }
            _ if value >= 0 => self.other_uint(node, &node.kind, value as u64),
            kind => {
                let is_number = matches!(kind, NodeKind::Int(..) | NodeKind::VarInt(_));
                self.fail(
                    node,
                    if is_number {
                        FieldProblem::Range
                    } else {
                        FieldProblem::Kind
                    },
                );
            }
        }
        self
    }

    #[inline(always)]
    fn integer(&mut self, node: &Node, how: FixedRead, raw: u64) {
        if self.fixed(node, how, raw) {
            self.save(node, raw);
            self.go_on();
        }
    }

    #[cold]
    fn other_uint(&mut self, node: &Node, kind: &NodeKind, value: u64) {
        match kind {
            NodeKind::Bool(how) if value <= 1 => self.integer(node, *how, value),
            NodeKind::BitArray(how, _) | NodeKind::BitMap(how, _) if fits_unsigned(*how, value) => {
                self.integer(node, *how, value);
            }
            NodeKind::VarInt(class) if !class.signed || i64::try_from(value).is_ok() => {
                self.variable(node, class, i128::from(value));
            }
            NodeKind::Int(..)
            | NodeKind::Bool(_)
            | NodeKind::BitArray(..)
            | NodeKind::BitMap(..)
            | NodeKind::VarInt(_) => self.fail(node, FieldProblem::Range),
            _ => self.fail(node, FieldProblem::Kind),
        }
    }

    /// Writes LEB128 with the minimum number of bytes.
    fn variable(&mut self, node: &Node, class: &IntClass, value: i128) {
        let mut rest = value;
        let mut bytes = [0u8; 10];
        let mut used = 0;
        for byte in &mut bytes {
            *byte = (rest & 0x7f) as u8;
            rest >>= 7;
            used += 1;
            let is_last = match class.signed {
                true => rest == -i128::from(*byte >> 6),
                false => rest == 0,
            };
            if is_last {
                break;
            }
            *byte |= 0x80;
        }
        self.save(node, value as u64);
        self.put_bytes(bytes.get(..used).unwrap_or_default());
    }

    /// Writes a floating-point number of 32 or 64 bits; for 32 bits, the nearest value.
    pub fn float(&mut self, value: f64) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Float(how) if how.length == 64 => self.plain(node, *how, value.to_bits()),
            NodeKind::Float(how) if how.length == 32 => {
                self.plain(node, *how, u64::from((value as f32).to_bits()));
            }
            _ => self.fail(node, FieldProblem::Kind),
        }
        self
    }

    /// Writes a floating-point number of any length from its raw IEEE 754 bits.
    pub fn float_bits(&mut self, bits: u128) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Float(how) if bits >> how.length == 0 => self.plain(node, *how, bits as u64),
            NodeKind::Float(_) => self.fail(node, FieldProblem::Range),
            NodeKind::WideFloat(half) => {
                let is_first_high = half.big != half.reversed;
                let halves = [(bits >> 64) as u64, bits as u64];
                let [first, second] = if is_first_high {
                    halves
                } else {
                    [halves[1], halves[0]]
                };
                if self.fixed(node, *half, first) {
                    self.plain(node, *half, second);
                }
            }
            _ => self.fail(node, FieldProblem::Kind),
        }
        self
    }

    fn plain(&mut self, node: &Node, how: FixedRead, raw: u64) {
        if self.fixed(node, how, raw) {
            self.go_on();
        }
    }

    /// Writes an integer of more than 64 bits from its bytes, least significant byte first.
    pub fn wide(&mut self, bytes: &[u8]) -> &mut Self {
        let Some(node) = self.take() else { return self };
        let NodeKind::WideInt(class) = &node.kind else {
            self.fail(node, FieldProblem::Kind);
            return self;
        };
        let bit = |index: u32| {
            bytes
                .get((index / 8) as usize)
                .map_or(0, |byte| byte >> (index % 8) & 1)
        };
        let bits = u32::try_from(bytes.len())
            .unwrap_or(u32::MAX)
            .saturating_mul(8);
        if (class.length..bits).any(|index| bit(index) != 0) {
            self.fail(node, FieldProblem::Range);
            return self;
        }
        let how = FixedRead::new(1, class.byte_order, false, false);
        for index in 0..class.length {
            let is_high_first = how.big != class.reversed_bits;
            let index = if is_high_first {
                class.length - 1 - index
            } else {
                index
            };
            if !self.fixed(node, how, u64::from(bit(index))) {
                return self;
            }
        }
        self.go_on();
        self
    }

    /// Writes a string, or an array of characters, which is padded with null characters.
    pub fn string(&mut self, text: &str) -> &mut Self {
        let Some(node) = self.take() else { return self };
        match &node.kind {
            NodeKind::Str(Encoding::Utf8) | NodeKind::SizedStr(_, Encoding::Utf8) => {
                self.bytes(text.as_bytes())
            }
            NodeKind::Str(encoding) | NodeKind::SizedStr(_, encoding) => {
                let encoded = encode(text, *encoding);
                self.bytes(&encoded)
            }
            _ => {
                self.fail(node, FieldProblem::Kind);
                self
            }
        }
    }

    /// Writes the bytes of a string, a BLOB, or an array of 8-bit integers. Strings are not checked
    /// for valid encoding; strings of a fixed length are padded with null bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let Some(node) = self.next else {
            self.too_many();
            return self;
        };
        match &node.kind {
            NodeKind::Str(encoding) => self.terminated(node, bytes, encoding.unit_bytes()),
            NodeKind::SizedStr(length, encoding) => {
                let length = self.count(*length);
                self.sized(node, bytes, length, encoding.unit_bytes());
            }
            NodeKind::Blob(length) | NodeKind::Array(length) => {
                if self.count(*length) == bytes.len() as u64 {
                    self.put_bytes(bytes);
                } else {
                    self.fail(node, FieldProblem::Range);
                }
            }
            _ => self.fail(node, FieldProblem::Kind),
        }
        self
    }

    /// Writes a null-terminated string.
    fn terminated(&mut self, node: &Node, bytes: &[u8], unit: usize) {
        if !bytes.len().is_multiple_of(unit) {
            return self.fail(node, FieldProblem::Units);
        }
        let has_null = match unit {
            1 => memchr::memchr(0, bytes).is_some(),
            unit => bytes
                .chunks(unit)
                .any(|code| code.iter().all(|&byte| byte == 0)),
        };
        if has_null {
            return self.fail(node, FieldProblem::Null);
        }
        let start = (self.out.pos >> 3) as usize;
        let end = start.saturating_add(bytes.len());
        // Bytes that are not written yet are zero, so the terminator is there already.
        if end.saturating_add(unit) > self.out.data.len() {
            return self.full();
        }
        if let Some(place) = self.out.data.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        self.out.pos += (bytes.len() + unit) as u64 * 8;
        self.go_on();
    }

    /// Writes a string of this number of bytes.
    fn sized(&mut self, node: &Node, bytes: &[u8], length: u64, unit: usize) {
        if bytes.len() as u64 > length {
            return self.fail(node, FieldProblem::Range);
        }
        if !bytes.len().is_multiple_of(unit) || !length.is_multiple_of(unit as u64) {
            return self.fail(node, FieldProblem::Units);
        }
        let start = (self.out.pos >> 3) as usize;
        let room = (self.out.data.len() as u64).saturating_sub(start as u64);
        if length > room {
            return self.full();
        }
        if let Some(place) = self.out.data.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.out.pos += length * 8;
        self.go_on();
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        let start = (self.out.pos >> 3) as usize;
        match self
            .out
            .data
            .get_mut(start..start.saturating_add(bytes.len()))
        {
            Some(place) => place.copy_from_slice(bytes),
            None => return self.full(),
        }
        self.out.pos += bytes.len() as u64 * 8;
        self.go_on();
    }
}

/// Encodes text.
fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
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
