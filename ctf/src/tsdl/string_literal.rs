//! Values of string literals, by the rules of C.

use std::borrow::Cow;

/// Value of a quoted literal, which includes its quotes and may have an `L` prefix: escapes are
/// replaced, and the text is cut at the first null character, like strings of C.
pub(super) fn unescape(literal: &str) -> Cow<'_, str> {
    let inner = literal.strip_prefix('L').unwrap_or(literal);
    let inner = inner
        .get(1..inner.len().saturating_sub(1))
        .unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some((&escape, tail)) = rest.split_first() else {
            break;
        };
        rest = tail;
        match escape {
            b'a' => bytes.push(0x07),
            b'b' => bytes.push(0x08),
            b'f' => bytes.push(0x0c),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(0x0b),
            b'\n' => {}
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                let extra = rest
                    .iter()
                    .take(2)
                    .take_while(|digit| (b'0'..=b'7').contains(digit))
                    .count();
                for &digit in rest.iter().take(extra) {
                    value = value * 8 + u32::from(digit - b'0');
                }
                rest = rest.get(extra..).unwrap_or_default();
                bytes.push(value as u8);
            }
            b'x' => rest = hex_escape(rest, 1, 3, b'x', |value| push_byte(&mut bytes, value)),
            b'u' => rest = hex_escape(rest, 4, 4, b'u', |value| push_char(&mut bytes, value)),
            b'U' => rest = hex_escape(rest, 8, 8, b'U', |value| push_char(&mut bytes, value)),
            other => bytes.push(other),
        }
    }
    if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
        bytes.truncate(end);
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Passes the value of `least` to `most` hexadecimal digits to `push`. Without the digits that the
/// escape needs, its letter stands for itself.
fn hex_escape(rest: &[u8], least: usize, most: usize, letter: u8, push: impl FnOnce(u32)) -> &[u8] {
    let count = rest
        .iter()
        .take(most)
        .take_while(|digit| digit.is_ascii_hexdigit())
        .count();
    if count < least {
        push(u32::from(letter));
        return rest;
    }
    let digits = rest.get(..count).unwrap_or_default();
    let value = digits.iter().fold(0u32, |value, &digit| {
        value
            .wrapping_mul(16)
            .wrapping_add((digit as char).to_digit(16).unwrap_or(0))
    });
    push(value);
    rest.get(count..).unwrap_or_default()
}

fn push_byte(bytes: &mut Vec<u8>, value: u32) {
    bytes.push(value as u8);
}

fn push_char(bytes: &mut Vec<u8>, value: u32) {
    let character = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}
