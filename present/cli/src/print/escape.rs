//! Escapes strings as babeltrace2's text and as JSON require.

use super::buffer::Buffer;
use tracebraid_ctf::schema::Encoding;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// True for the bytes that text must escape: control characters, quotes, backslash and question
/// mark.
const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f || matches!(byte, b'"' | b'\'' | b'?' | b'\\')
}

/// True if any of the first `length` of 16 bytes is special, without a branch for each.
#[inline(always)]
fn any_special(chunk: &[u8; 16], length: usize) -> bool {
    let length = length.min(16) as u8;
    let mut any = false;
    for (index, &byte) in chunk.iter().enumerate() {
        let special = (byte < 0x20)
            | (byte == 0x7f)
            | (byte == b'"')
            | (byte == b'\'')
            | (byte == b'?')
            | (byte == b'\\');
        any |= special & ((index as u8) < length);
    }
    any
}

/// Puts `length` bytes of `data`, beginning at `start`, as text without quotes.
#[inline(always)]
pub(crate) fn put_text(buffer: &mut Buffer, data: &[u8], start: usize, length: usize) {
    let (mut at, end) = (start, start + length);
    while at < end {
        // Bytes past the string are copied with it, and overwritten by the next write.
        match data.get(at..).and_then(|rest| rest.first_chunk::<16>()) {
            Some(chunk) if !any_special(chunk, end - at) => buffer.put_part(chunk, end - at),
            _ => return put_text_slowly(buffer, data.get(at..end).unwrap_or_default()),
        }
        at += 16;
    }
}

#[inline(never)]
fn put_text_slowly(buffer: &mut Buffer, bytes: &[u8]) {
    for &byte in bytes {
        let escaped = match byte {
            _ if !is_special(byte) => {
                buffer.put_byte(byte);
                continue;
            }
            b'"' | b'\'' | b'?' | b'\\' => byte,
            7 => b'a',
            8 => b'b',
            0x1b => b'e',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            _ => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                buffer.put(b"\\x");
                buffer.put(&digits);
                continue;
            }
        };
        buffer.put(&[b'\\', escaped]);
    }
}

/// Puts a string as JSON, without quotes; invalid UTF-8 becomes U+FFFD.
pub(crate) fn put_json(buffer: &mut Buffer, bytes: &[u8]) {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b'"' && *byte != b'\\';
    if bytes.iter().all(plain) {
        return buffer.put(bytes);
    }
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => buffer.put(b"\\\""),
            '\\' => buffer.put(b"\\\\"),
            '\n' => buffer.put(b"\\n"),
            '\r' => buffer.put(b"\\r"),
            '\t' => buffer.put(b"\\t"),
            control if (control as u32) < 0x20 || control as u32 == 0x7f => {
                let code = control as u32 as u8;
                buffer.put(b"\\u00");
                buffer.put(&[HEX[usize::from(code >> 4)], HEX[usize::from(code & 15)]]);
            }
            character => buffer.put(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Converts a string to UTF-8; `None` if it is UTF-8 already.
pub(crate) fn to_utf8(encoding: Encoding, bytes: &[u8]) -> Option<Vec<u8>> {
    let big = matches!(encoding, Encoding::Utf16Be | Encoding::Utf32Be);
    let text: String = match encoding {
        Encoding::Utf8 => return None,
        Encoding::Utf16Be | Encoding::Utf16Le => {
            let units = bytes.chunks_exact(2).map(|unit| {
                let unit = [unit[0], unit[1]];
                if big {
                    u16::from_be_bytes(unit)
                } else {
                    u16::from_le_bytes(unit)
                }
            });
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        Encoding::Utf32Be | Encoding::Utf32Le => bytes
            .chunks_exact(4)
            .map(|unit| {
                let unit = [unit[0], unit[1], unit[2], unit[3]];
                let code = if big {
                    u32::from_be_bytes(unit)
                } else {
                    u32::from_le_bytes(unit)
                };
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            })
            .collect(),
    };
    Some(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut buffer = Buffer::new(0);
        put_text(&mut buffer, bytes, 0, bytes.len());
        String::from_utf8(buffer.bytes().to_vec()).unwrap()
    }

    fn json(bytes: &[u8]) -> String {
        let mut buffer = Buffer::new(0);
        put_json(&mut buffer, bytes);
        String::from_utf8(buffer.bytes().to_vec()).unwrap()
    }

    #[test]
    fn text_escapes() {
        assert_eq!(
            text(b"a plain string of more than sixteen bytes"),
            "a plain string of more than sixteen bytes"
        );
        assert_eq!(
            text(b"it's \"so\"?\\\n\t\x07\x08\x1b\x0c\r\x0b\x01\x7f"),
            "it\\'s \\\"so\\\"\\?\\\\\\n\\t\\a\\b\\e\\f\\r\\v\\x01\\x7f"
        );
        assert_eq!(
            text(b"0123456789abcdef\n0123456789abcdef"),
            "0123456789abcdef\\n0123456789abcdef"
        );
        assert_eq!(text("d\u{e9}j\u{e0}".as_bytes()), "d\u{e9}j\u{e0}");
        assert_eq!(text(b""), "");
    }

    #[test]
    fn json_escapes() {
        assert_eq!(json(b"a\"b\\c\n\x01"), "a\\\"b\\\\c\\n\\u0001");
        assert_eq!(json(b"\xff"), "\u{fffd}");
        let parsed: String =
            serde_json::from_str(&format!("\"{}\"", json(b"x\x00\x7f'?\r\t"))).unwrap();
        assert_eq!(parsed, "x\0\u{7f}'?\r\t");
    }

    #[test]
    fn other_encodings() {
        assert_eq!(
            to_utf8(Encoding::Utf16Le, &[0x41, 0, 0xe9, 0]),
            Some("A\u{e9}".into())
        );
        assert_eq!(
            to_utf8(Encoding::Utf32Be, &[0, 1, 0xf6, 0]),
            Some("\u{1f600}".into())
        );
        assert_eq!(to_utf8(Encoding::Utf8, b"x"), None);
    }
}
