//! The word by which a thread reserves space in its packet.

const FIELD: u32 = 24;
pub(crate) const MASK: u64 = (1 << FIELD) - 1;

/// Begin and end of a thread's last record as offsets in the packet, and a generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    #[inline(always)]
    pub(crate) fn end(self) -> u64 {
        self.0 & MASK
    }

    #[inline(always)]
    pub(crate) fn start(self) -> u64 {
        (self.0 >> FIELD) & MASK
    }

    #[inline(always)]
    pub(crate) fn followed_by(self, start: u64, end: u64) -> Word {
        Word((self.0 & !(MASK | MASK << FIELD)) | start << FIELD | end)
    }

    /// Next generation, for a packet that contains only its head.
    pub(crate) fn renewed(self, end: u64) -> Word {
        let generation = (self.0 >> (2 * FIELD)).wrapping_add(1);
        Word(generation << (2 * FIELD) | end << FIELD | end)
    }

    /// Next generation of the same value.
    pub(crate) fn touched(self) -> Word {
        Word(self.0.wrapping_add(1 << (2 * FIELD)))
    }
}
