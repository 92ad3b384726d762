//! The copy of a stack.

/// Bytes of a thread's stack and the address of the first one, which is the stack pointer.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'s> {
    begin: u64,
    bytes: &'s [u8],
}

impl<'s> StackCopy<'s> {
    /// A copy that begins at that address.
    pub fn new(begin: u64, bytes: &'s [u8]) -> StackCopy<'s> {
        StackCopy { begin, bytes }
    }

    /// The word at an address; `None` if the copy does not contain it.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let word = self.bytes.get(offset..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }

    /// True if an address lies at or beyond the end of the copy.
    pub(crate) fn is_beyond(&self, address: u64) -> bool {
        address.wrapping_add(8) > self.begin.saturating_add(self.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copied_words_are_read() {
        let bytes: Vec<u8> = (0..20).collect();
        let stack = StackCopy::new(0x1000, &bytes);
        assert_eq!(stack.word(0x1000), Some(0x0706_0504_0302_0100));
        assert_eq!(stack.word(0x100C), Some(0x1312_1110_0F0E_0D0C));
        for outside in [0xFFF, 0x100D, 0, u64::MAX, u64::MAX - 7] {
            assert_eq!(stack.word(outside), None, "{outside:#x}");
        }
        assert!(stack.is_beyond(0x100D) && !stack.is_beyond(0x100C));
    }
}
