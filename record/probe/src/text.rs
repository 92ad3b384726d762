//! Text of bounded length without allocation.

use core::fmt;

/// Up to `N - 1` bytes of text, always followed by a NUL. Excess text is dropped, and the overflow
/// is recorded.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
    overflowed: bool,
}

impl<const N: usize> Text<N> {
    pub(crate) const fn new() -> Self {
        Text {
            bytes: [0; N],
            len: 0,
            overflowed: false,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes[0] = 0;
        self.len = 0;
        self.overflowed = false;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The NUL-terminated text.
    pub(crate) fn as_ptr(&self) -> *const libc::c_char {
        self.bytes.as_ptr().cast()
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = (N - 1).saturating_sub(self.len);
        self.overflowed |= bytes.len() > room;
        for &byte in bytes.iter().take(room) {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        self.bytes[self.len] = 0;
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn keeps_what_fits_and_tells_of_the_rest() {
        let mut text = Text::<8>::new();
        write!(text, "abc{}", 12).unwrap();
        assert_eq!((text.bytes(), text.overflowed()), (&b"abc12"[..], false));
        text.push(b"defg");
        assert_eq!((text.bytes(), text.overflowed()), (&b"abc12de"[..], true));
        assert_eq!(text.bytes[7], 0);
    }
}
