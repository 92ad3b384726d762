//! Operations of block requests: `rwbs`.

use serde::{Deserialize, Serialize};

use crate::field::{Body, IntField, TextField};

/// Operation and flags of a block request, as bits in the encoding of lttng-modules.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Rwbs(pub u16);

impl Rwbs {
    /// Writes.
    pub const WRITE: Rwbs = Rwbs(1);
    /// Discards blocks.
    pub const DISCARD: Rwbs = Rwbs(1 << 1);
    /// Reads.
    pub const READ: Rwbs = Rwbs(1 << 2);
    /// Reads ahead of need.
    pub const AHEAD: Rwbs = Rwbs(1 << 3);
    /// A barrier (kernels before 2.6.37).
    pub const BARRIER: Rwbs = Rwbs(1 << 4);
    /// Synchronous: a thread waits for it.
    pub const SYNC: Rwbs = Rwbs(1 << 5);
    /// About a file system's metadata.
    pub const META: Rwbs = Rwbs(1 << 6);
    /// Erases securely.
    pub const SECURE: Rwbs = Rwbs(1 << 7);
    /// Flushes the device's cache.
    pub const FLUSH: Rwbs = Rwbs(1 << 8);
    /// Bypasses the device's cache (forced unit access).
    pub const FUA: Rwbs = Rwbs(1 << 9);
    /// Flushes the device's cache first.
    pub const PREFLUSH: Rwbs = Rwbs(1 << 10);

    /// Parses the letters of perf and ftrace. An F before the operation is a flush before it; an F
    /// after the operation bypasses the cache.
    pub fn from_letters(letters: &[u8]) -> Rwbs {
        let mut bits = 0;
        let mut has_operation = false;
        for (at, letter) in letters
            .iter()
            .take_while(|letter| **letter != 0)
            .enumerate()
        {
            let next = letters.get(at + 1);
            let (flag, is_operation) = match letter {
                b'W' => (Rwbs::WRITE, true),
                b'D' => (Rwbs::DISCARD, true),
                b'R' => (Rwbs::READ, true),
                b'E' => (Rwbs::SECURE, false),
                b'N' => (Rwbs(0), true),
                b'F' if has_operation => (Rwbs::FUA, false),
                b'F' if matches!(next, Some(b'W' | b'D' | b'R' | b'F' | b'N')) => {
                    (Rwbs::PREFLUSH, false)
                }
                b'F' => (Rwbs::FLUSH, true),
                b'A' => (Rwbs::AHEAD, false),
                b'B' => (Rwbs::BARRIER, false),
                b'S' => (Rwbs::SYNC, false),
                b'M' => (Rwbs::META, false),
                _ => (Rwbs(0), false),
            };
            bits |= flag.0;
            has_operation |= is_operation;
        }
        Rwbs(bits)
    }

    /// True if all of `flags` are set.
    pub fn has(self, flags: Rwbs) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// True if the request reads.
    pub fn is_read(self) -> bool {
        self.has(Rwbs::READ)
    }

    /// True if the request writes.
    pub fn is_write(self) -> bool {
        self.has(Rwbs::WRITE)
    }

    /// The letters that perf and ftrace use.
    pub fn letters(self) -> String {
        let all = [
            (Rwbs::PREFLUSH, 'F'),
            (Rwbs::WRITE, 'W'),
            (Rwbs::DISCARD, 'D'),
            (Rwbs::SECURE, 'E'),
            (Rwbs::FLUSH, 'F'),
            (Rwbs::READ, 'R'),
            (Rwbs::FUA, 'F'),
            (Rwbs::AHEAD, 'A'),
            (Rwbs::BARRIER, 'B'),
            (Rwbs::SYNC, 'S'),
            (Rwbs::META, 'M'),
        ];
        let operations = Rwbs::WRITE.0 | Rwbs::DISCARD.0 | Rwbs::FLUSH.0 | Rwbs::READ.0;
        let mut text: String = all
            .iter()
            .filter(|(flag, _)| self.has(*flag))
            .map(|(_, letter)| *letter)
            .collect();
        if self.0 & operations == 0 {
            text.insert(usize::from(self.has(Rwbs::PREFLUSH)), 'N');
        }
        text
    }
}

/// A field with the operation of a request: bits (lttng-modules) or letters (perf, ftrace).
#[derive(Clone, Debug)]
pub enum RwbsField {
    /// Bits.
    Bits(IntField),
    /// Letters.
    Letters(TextField),
}

impl RwbsField {
    /// Operation and flags of the request.
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<Rwbs> {
        match self {
            RwbsField::Bits(field) => field.get(body).map(|bits| Rwbs(bits as u16)),
            RwbsField::Letters(field) => field.bytes(body).map(Rwbs::from_letters),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_are_the_same() {
        for letters in [
            "R", "W", "WS", "WSM", "RA", "RAM", "D", "N", "FF", "FWFS", "FWS", "WFS", "F",
        ] {
            let bits = Rwbs::from_letters(letters.as_bytes());
            assert_eq!(bits.letters(), letters, "{bits:?}");
        }
        assert!(
            Rwbs::from_letters(b"FWFSM\0RR")
                .has(Rwbs(Rwbs::PREFLUSH.0 | Rwbs::FUA.0 | Rwbs::META.0))
        );
        assert!(!Rwbs::from_letters(b"FWFSM\0RR").is_read());
        // lttng-modules: a synchronous write, a read ahead.
        assert_eq!(
            (Rwbs(0x21).letters(), Rwbs(0x0c).letters()),
            ("WS".into(), "RA".into())
        );
    }
}
