//! Decoding of strings in the encodings of CTF.

use tracebraid_ctf::schema::Encoding;

/// Length in bytes of the text at the start of `bytes`, up to the first null code unit; `None`
/// without a null code unit.
pub(super) fn terminated_length(bytes: &[u8], encoding: Encoding) -> Option<usize> {
    let unit = encoding.unit_bytes();
    bytes
        .chunks_exact(unit)
        .position(|chunk| chunk.iter().all(|&byte| byte == 0))
        .map(|units| units * unit)
}

/// Decodes the text; invalid sequences become U+FFFD.
pub(super) fn decode(bytes: &[u8], encoding: Encoding) -> String {
    match encoding {
        Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
        Encoding::Utf16Be => utf16(bytes, u16::from_be_bytes),
        Encoding::Utf16Le => utf16(bytes, u16::from_le_bytes),
        Encoding::Utf32Be => utf32(bytes, u32::from_be_bytes),
        Encoding::Utf32Le => utf32(bytes, u32::from_le_bytes),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks(2).map(|chunk| match *chunk {
        [first, second] => unit([first, second]),
        // Half a code unit: a lone surrogate decodes to U+FFFD.
        _ => 0xd800,
    });
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn utf32(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> String {
    let decode = |chunk: &[u8]| match *chunk {
        [a, b, c, d] => char::from_u32(unit([a, b, c, d])).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::REPLACEMENT_CHARACTER,
    };
    bytes.chunks(4).map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings() {
        assert_eq!(decode("é🦀".as_bytes(), Encoding::Utf8), "é🦀");
        assert_eq!(
            decode(&[0, 0xe9, 0xd8, 0x3e, 0xdd, 0x80], Encoding::Utf16Be),
            "é🦀"
        );
        assert_eq!(
            decode(&[0xe9, 0, 0x3e, 0xd8, 0x80, 0xdd], Encoding::Utf16Le),
            "é🦀"
        );
        assert_eq!(decode(&[0, 1, 0xf9, 0x80], Encoding::Utf32Be), "🦀");
        assert_eq!(decode(&[0x80, 0xf9, 1, 0], Encoding::Utf32Le), "🦀");
        assert_eq!(decode(&[0xe9, 0, 0x3e], Encoding::Utf16Le), "é\u{fffd}");
    }

    #[test]
    fn null_code_units() {
        assert_eq!(terminated_length(b"ab\0c", Encoding::Utf8), Some(2));
        // The null byte at 1 is half of a code unit.
        assert_eq!(terminated_length(b"a\0\0b\0\0", Encoding::Utf16Le), Some(4));
        assert_eq!(terminated_length(b"a\0\0", Encoding::Utf16Le), None);
    }
}
