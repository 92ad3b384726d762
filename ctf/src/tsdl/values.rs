//! Values of attributes. An error names the expected kind of value.

use std::borrow::Cow;
use std::collections::HashSet;

use super::ast::{Attr, AttrValue, Value, ValueKind};
use super::error::{Res, error, short, visible};
use super::string_literal::unescape;
use crate::schema::{ByteOrder, DisplayBase, Encoding, Uuid};

/// Rejects duplicate attributes.
pub(super) fn check_duplicates<'x, 'a: 'x>(
    attrs: impl Iterator<Item = &'x Attr<'a>> + Clone,
) -> Res<()> {
    let mut seen = HashSet::new();
    let mut few: [Option<&Attr<'a>>; 12] = [None; 12];
    for (index, attr) in attrs.clone().enumerate() {
        let duplicate = match few.get_mut(index) {
            Some(slot) => {
                *slot = Some(attr);
                few.iter()
                    .take(index)
                    .flatten()
                    .any(|earlier| same_key(earlier, attr))
            }
            None => {
                if index == few.len() {
                    seen.extend(few.iter().flatten().map(|earlier| earlier.key.text()));
                }
                !seen.insert(attr.key.text())
            }
        };
        if duplicate {
            return error(
                attr.key.first.at,
                format!("attribute `{}` is given twice", attr.key.text()),
            );
        }
    }
    Ok(())
}

fn same_key(a: &Attr<'_>, b: &Attr<'_>) -> bool {
    a.key.first.text == b.key.first.text
        && a.key.rest.len() == b.key.rest.len()
        && a.key
            .rest
            .iter()
            .zip(&b.key.rest)
            .all(|(a, b)| a.text == b.text)
}

/// The value of an attribute that `=` sets.
pub(super) fn plain<'x, 'a>(attr: &'x Attr<'a>) -> Res<&'x Value<'a>> {
    match &attr.value {
        AttrValue::Value(value) => Ok(value),
        AttrValue::Type(at) => error(
            *at,
            format!(
                "attribute `{}` is a value: use `=`, not `:=`",
                attr.key.text()
            ),
        ),
    }
}

fn wrong<T>(attr: &Attr<'_>, value: &Value<'_>, expected: &str) -> Res<T> {
    let found = match &value.kind {
        ValueKind::Int(int) => format!("`{int}`"),
        ValueKind::Str(text) => format!("`{}`", visible(text)),
        ValueKind::Path(path) => format!("`{}`", short(&path.text())),
    };
    error(
        value.at,
        format!(
            "attribute `{}` needs {expected}, not {found}",
            attr.key.text()
        ),
    )
}

/// An integer from 0 to 2^64 - 1.
pub(super) fn unsigned(attr: &Attr<'_>) -> Res<u64> {
    let value = plain(attr)?;
    match value.kind {
        ValueKind::Int(int) => match u64::try_from(int) {
            Ok(int) => Ok(int),
            Err(_) => wrong(attr, value, "an unsigned integer of 64 bits"),
        },
        _ => wrong(attr, value, "an unsigned integer"),
    }
}

/// An integer from -2^63 to 2^63 - 1.
pub(super) fn signed(attr: &Attr<'_>) -> Res<i64> {
    let value = plain(attr)?;
    match value.kind {
        ValueKind::Int(int) => match i64::try_from(int) {
            Ok(int) => Ok(int),
            Err(_) => wrong(
                attr,
                value,
                "an integer from -9223372036854775808 to 9223372036854775807",
            ),
        },
        _ => wrong(attr, value, "an integer"),
    }
}

/// A string literal.
pub(super) fn string<'a>(attr: &Attr<'a>) -> Res<Cow<'a, str>> {
    let value = plain(attr)?;
    match value.kind {
        ValueKind::Str(text) => Ok(unescape(text)),
        _ => wrong(attr, value, "a string between quotes"),
    }
}

/// A string literal, or a single word without quotes.
pub(super) fn name<'a>(attr: &Attr<'a>) -> Res<Cow<'a, str>> {
    let value = plain(attr)?;
    match &value.kind {
        ValueKind::Str(text) => Ok(unescape(text)),
        ValueKind::Path(path) if path.rest.is_empty() => Ok(Cow::Borrowed(path.first.text)),
        _ => wrong(attr, value, "a name or a string"),
    }
}

/// A single word without quotes.
fn word<'a>(value: &Value<'a>) -> Option<&'a str> {
    match &value.kind {
        ValueKind::Path(path) if path.rest.is_empty() => Some(path.first.text),
        _ => None,
    }
}

pub(super) fn boolean(attr: &Attr<'_>) -> Res<bool> {
    let value = plain(attr)?;
    match (&value.kind, word(value)) {
        (ValueKind::Int(0), _) | (_, Some("false" | "FALSE")) => Ok(false),
        (ValueKind::Int(1), _) | (_, Some("true" | "TRUE")) => Ok(true),
        _ => wrong(attr, value, "`true`, `TRUE`, `1`, `false`, `FALSE` or `0`"),
    }
}

/// A byte order; `native` is the byte order of the trace.
pub(super) fn byte_order(attr: &Attr<'_>, native: Option<ByteOrder>) -> Res<ByteOrder> {
    let value = plain(attr)?;
    match (word(value), native) {
        (Some("le"), _) => Ok(ByteOrder::Little),
        (Some("be" | "network"), _) => Ok(ByteOrder::Big),
        (Some("native"), Some(native)) => Ok(native),
        (Some("native"), None) => wrong(attr, value, "`le` or `be` here"),
        (_, Some(_)) => wrong(attr, value, "`native`, `le`, `be` or `network`"),
        _ => wrong(attr, value, "`le`, `be` or `network`"),
    }
}

/// A text encoding; `None` for `none`.
pub(super) fn encoding(attr: &Attr<'_>) -> Res<Option<Encoding>> {
    let value = plain(attr)?;
    match word(value) {
        Some("none" | "NONE") => Ok(None),
        Some("UTF8" | "utf8" | "ASCII" | "ascii") => Ok(Some(Encoding::Utf8)),
        _ => wrong(attr, value, "`none`, `UTF8` or `ASCII`"),
    }
}

/// A display base.
pub(super) fn base(attr: &Attr<'_>) -> Res<DisplayBase> {
    let value = plain(attr)?;
    Ok(match (&value.kind, word(value)) {
        (ValueKind::Int(10), _) | (_, Some("decimal" | "dec" | "d" | "i" | "u")) => {
            DisplayBase::Decimal
        }
        (ValueKind::Int(16), _) | (_, Some("hexadecimal" | "hex" | "x" | "X" | "p")) => {
            DisplayBase::Hexadecimal
        }
        (ValueKind::Int(8), _) | (_, Some("octal" | "oct" | "o")) => DisplayBase::Octal,
        (ValueKind::Int(2), _) | (_, Some("binary" | "bin" | "b")) => DisplayBase::Binary,
        _ => {
            return wrong(
                attr,
                value,
                "2, 8, 10 or 16, or `binary`, `octal`, `decimal` or `hexadecimal`",
            );
        }
    })
}

/// An alignment: a power of two below 2^32.
pub(super) fn align(value: &Value<'_>) -> Res<u32> {
    if let ValueKind::Int(int) = value.kind
        && let Ok(align) = u32::try_from(int)
        && align.is_power_of_two()
    {
        return Ok(align);
    }
    error(
        value.at,
        "an alignment is a power of two, in bits, from 1 to 2147483648",
    )
}

/// A UUID in its canonical text form.
pub(super) fn uuid(attr: &Attr<'_>) -> Res<Uuid> {
    let text = string(attr)?;
    match parse_uuid(&text) {
        Some(uuid) => Ok(uuid),
        None => error(
            plain(attr)?.at,
            format!(
                "`{}` is not a UUID (32 hexadecimal digits as 8-4-4-4-12, like \
                 \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\")",
                visible(&text)
            ),
        ),
    }
}

fn parse_uuid(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    let mut uuid = [0u8; 16];
    let mut digits = 0usize;
    for (index, &byte) in bytes.iter().enumerate() {
        if matches!(index, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = (byte as char).to_digit(16)? as u8;
        let slot = uuid.get_mut(digits / 2)?;
        *slot = *slot << 4 | digit;
        digits += 1;
    }
    Some(uuid)
}

/// The canonical text form of a UUID.
pub(crate) fn uuid_text(uuid: &Uuid) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
