//! Converts a tracepoint's record to the fields of an event record.

use tracebraid_ctf::schema::build::Fields;
use tracebraid_ctf::write::fields::Fields as Values;

use crate::field::{Element, Field, FieldContent, Number, OffsetBase};
use crate::format::Format;

impl Format {
    /// Adds the fields to those of an event class.
    pub fn add_to(&self, fields: Fields) -> Fields {
        self.fields.iter().fold(fields, add)
    }

    /// True if all data that the fields refer to lies within the record.
    pub fn fits(&self, raw: &[u8], big: bool) -> bool {
        self.fields.iter().all(|field| match field.kind {
            _ if field.end() > raw.len() as u64 => false,
            FieldContent::Dynamic(place, element) => {
                dynamic(field, place, element, raw, big).is_some()
            }
            _ => true,
        })
    }

    /// Writes the payload of an event with these fields from a little-endian record. Dynamic fields
    /// that lie outside the record, because it was truncated, become empty. `None` if a field of
    /// constant size lies outside the record.
    pub fn encode(&self, raw: &[u8], to: &mut Vec<u8>) -> Option<()> {
        self.fields
            .iter()
            .try_for_each(|field| encode(field, raw, to))
    }

    /// Passes the values of a record that [fits](Format::fits).
    pub fn give(&self, raw: &[u8], big: bool, to: &mut Values<'_>) {
        for field in &self.fields {
            give(field, raw, big, to);
        }
    }
}

/// An unsigned number of at most eight bytes.
fn number(bytes: &[u8], big: bool) -> u64 {
    let join = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
    match big {
        true => bytes.iter().fold(0, join),
        false => bytes.iter().rev().fold(0, join),
    }
}

fn before_null(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn integer(fields: Fields, name: &str, number: Number) -> Fields {
    let bits = number.bytes * 8;
    match (number.hex, number.signed) {
        (true, _) => fields.hex(name, bits),
        (_, true) => fields.int(name, bits),
        (_, false) => fields.uint(name, bits),
    }
}

fn add(fields: Fields, field: &Field) -> Fields {
    let name = field.name.as_str();
    match field.kind {
        FieldContent::Int(number) => integer(fields, name, number),
        FieldContent::Text
        | FieldContent::Dynamic(_, Element::Text)
        | FieldContent::Tail(Element::Text) => fields.string(name),
        FieldContent::Array(number, count) => fields.array(name, u64::from(count), |element| {
            integer(element, "", number)
        }),
        FieldContent::Opaque => {
            fields.array(name, u64::from(field.size), |element| element.hex("", 8))
        }
        FieldContent::Dynamic(_, Element::Number(number))
        | FieldContent::Tail(Element::Number(number)) => {
            fields.sequence(name, 32, |element| integer(element, "", number))
        }
    }
}

/// The bytes to which a dynamic field refers; `None` if they extend past the record, or are not a
/// whole number of elements.
fn dynamic<'a>(
    field: &Field,
    place: OffsetBase,
    element: Element,
    raw: &'a [u8],
    big: bool,
) -> Option<&'a [u8]> {
    let told = number(raw.get(field.offset as usize..field.end() as usize)?, big) as usize;
    let (offset, length) = (told & 0xffff, told >> 16);
    let begin = match place {
        OffsetBase::Record => offset,
        OffsetBase::Field => field.end() as usize + offset,
    };
    let bytes = raw.get(begin..begin + length)?;
    match element {
        Element::Number(number) if !length.is_multiple_of(number.bytes as usize) => None,
        _ => Some(bytes),
    }
}

fn give(field: &Field, raw: &[u8], big: bool, to: &mut Values<'_>) {
    let own = raw
        .get(field.offset as usize..field.end() as usize)
        .unwrap_or_default();
    match field.kind {
        FieldContent::Int(kind) => give_number(own, kind, big, to),
        FieldContent::Text => {
            to.bytes(before_null(own));
        }
        FieldContent::Array(kind, _) => give_numbers(own, kind, big, to),
        FieldContent::Opaque => {
            to.bytes(own);
        }
        FieldContent::Dynamic(place, element) => {
            let bytes = dynamic(field, place, element, raw, big).unwrap_or_default();
            give_element(bytes, element, big, to);
        }
        FieldContent::Tail(element) => {
            let bytes = raw.get(field.offset as usize..).unwrap_or_default();
            give_element(bytes, element, big, to);
        }
    }
}

fn give_element(bytes: &[u8], element: Element, big: bool, to: &mut Values<'_>) {
    match element {
        Element::Text => {
            to.bytes(before_null(bytes));
        }
        Element::Number(kind) => {
            to.uint((bytes.len() / kind.bytes as usize) as u64);
            give_numbers(bytes, kind, big, to);
        }
    }
}

fn give_numbers(bytes: &[u8], kind: Number, big: bool, to: &mut Values<'_>) {
    for element in bytes.chunks_exact(kind.bytes as usize) {
        give_number(element, kind, big, to);
    }
}

fn give_number(bytes: &[u8], kind: Number, big: bool, to: &mut Values<'_>) {
    let value = number(bytes, big);
    if kind.hex || !kind.signed {
        to.uint(value);
    } else {
        let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        to.int((value << unused) as i64 >> unused);
    }
}

fn encode(field: &Field, raw: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let own = raw.get(field.offset as usize..field.end() as usize)?;
    let (bytes, element) = match field.kind {
        FieldContent::Int(_) | FieldContent::Array(..) | FieldContent::Opaque => {
            to.extend_from_slice(own);
            return Some(());
        }
        FieldContent::Text => (own, Element::Text),
        FieldContent::Dynamic(place, element) => {
            let bytes = dynamic(field, place, element, raw, false);
            (bytes.unwrap_or_default(), element)
        }
        FieldContent::Tail(element) => (raw.get(field.offset as usize..)?, element),
    };
    match element {
        Element::Text => {
            to.extend_from_slice(before_null(bytes));
            to.push(0);
        }
        Element::Number(kind) => {
            let (whole, count) = (
                bytes.len() - bytes.len() % kind.bytes as usize,
                bytes.len() / kind.bytes as usize,
            );
            to.extend_from_slice(&(count as u32).to_le_bytes());
            to.extend_from_slice(bytes.get(..whole)?);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: &str = "name: open\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:__rel_loc u16[] marks;\toffset:20;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%s\"\n";

    fn record(name: &[u8], marks: &[u16]) -> Vec<u8> {
        let mut raw = vec![7, 0, 0, 0, 0, 0, 0, 0];
        raw.extend(b"sh\0xxxxx");
        raw.extend((24 | (name.len() as u32) << 16).to_le_bytes());
        raw.extend((name.len() as u32 | (2 * marks.len() as u32) << 16).to_le_bytes());
        raw.extend(name);
        raw.extend(marks.iter().flat_map(|mark| mark.to_le_bytes()));
        raw
    }

    #[test]
    fn a_record_becomes_a_payload() {
        let format = Format::parse("fs", FORMAT, 8).expect("a format");
        let mut to = Vec::new();
        format
            .encode(&record(b"name\0", &[1, 2]), &mut to)
            .expect("a record");
        assert_eq!(to, b"\x07\0sh\0name\0\x02\0\0\0\x01\0\x02\0");
        // Truncated fields become empty.
        let raw = record(b"name\0", &[1, 2]);
        to.clear();
        format.encode(&raw[..26], &mut to).expect("a record");
        assert_eq!(to, b"\x07\0sh\0\0\0\0\0\0");
        assert_eq!(format.encode(&raw[..22], &mut to), None);
    }

    proptest! {
        #[test]
        fn no_text_and_no_record_makes_it_panic(
            lines in prop::collection::vec(
                "\tfield:(__data_loc |__rel_loc )?(u8|char|unsigned long|int)(\\[\\])? [a-z]{1,2}(\\[[0-9]{0,3}\\])?;\
                 \toffset:[0-9]{1,3};\tsize:[0-9]{1,2};\tsigned:[01];", 0..6),
            other in ".{0,60}",
            raw in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            for lines in [lines.join("\n"), other] {
                let text = format!("name: a\nID: 1\nformat:\n{lines}\n");
                if let Some(format) = Format::parse("b", &text, 8) {
                    let mut to = Vec::new();
                    let encoded = format.encode(&raw, &mut to);
                    // Every record that fits is encoded.
                    prop_assert!(encoded.is_some() || !format.fits(&raw, false));
                }
            }
        }
    }
}
