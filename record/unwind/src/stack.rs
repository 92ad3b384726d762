//! The copy of a stack.

use crate::rule::Unwound;

/// Bytes of a thread's stack from the stack pointer upwards. In a signal handler on an alternate
/// stack there is another part: of the stack that the handler interrupted.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'s> {
    top: Part<'s>,
    interrupted: Part<'s>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part<'s> {
    begin: u64,
    bytes: &'s [u8],
}

impl Part<'_> {
    #[inline]
    fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let word = self.bytes.get(offset..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }

    /// True if the last word of the part lies below an address.
    fn ends_before(&self, address: u64) -> bool {
        address.wrapping_add(8) > self.begin.saturating_add(self.bytes.len() as u64)
    }
}

impl<'s> StackCopy<'s> {
    /// A copy that begins at that address.
    pub fn new(begin: u64, bytes: &'s [u8]) -> StackCopy<'s> {
        StackCopy {
            top: Part { begin, bytes },
            interrupted: Part::default(),
        }
    }

    /// The same with a copy of the stack that was interrupted.
    #[must_use]
    pub fn with_interrupted(self, begin: u64, bytes: &'s [u8]) -> StackCopy<'s> {
        StackCopy {
            interrupted: Part { begin, bytes },
            ..self
        }
    }

    /// The word at an address; `None` if the copy does not contain it.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        self.top
            .word(address)
            .or_else(|| self.interrupted.word(address))
    }

    /// The result of a step that needs a word outside the copy.
    #[cold]
    pub(crate) fn missing(&self, address: u64) -> Unwound {
        match self.is_beyond(address) {
            true => Unwound::Beyond,
            false => Unwound::Lost,
        }
    }

    /// True if an address lies above the part that it belongs to.
    pub(crate) fn is_beyond(&self, address: u64) -> bool {
        let is_interrupted =
            !self.interrupted.bytes.is_empty() && address >= self.interrupted.begin;
        let part = if is_interrupted {
            self.interrupted
        } else {
            self.top
        };
        address >= part.begin && part.ends_before(address)
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
        assert!(stack.is_beyond(0x100D) && !stack.is_beyond(0x100C) && !stack.is_beyond(0xFF8));
        let stack = stack.with_interrupted(0x8000, &bytes);
        assert_eq!(
            (stack.word(0x8000), stack.word(0x1000)),
            (stack.word(0x1000), stack.word(0x8000))
        );
        assert!(stack.is_beyond(0x2000) && stack.is_beyond(0x8010) && !stack.is_beyond(0x8008));
    }
}
