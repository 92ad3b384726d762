//! Pages of the kernel's ring buffer: the head of a page, and the events in it.
//!
//! An event begins with 32 bits: 5 bits of its type or length in words, 27 bits of the time since
//! the previous event.

use crate::bytes::number;

/// Types of entries that are not events, and of events whose length follows the head.
const LONG: u32 = 0;
const MOST_WORDS: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;

/// Flags in the size of a page.
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const SIZE: u64 = (1 << 27) - 1;

/// Number of time bits in an event's head.
const TIME_BITS: u32 = 27;

/// Number of bits of an absolute time; the upper bits are those of the page's time.
const ABSOLUTE_BITS: u32 = 59;

/// A page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    /// The filled part after the head.
    data: &'a [u8],
    /// Time of its first event, in cycles of the clock.
    pub(super) time: u64,
    big: bool,
    /// Number of events that were lost before the page; `Some(0)` if the number is unknown, `None`
    /// if no event was lost.
    pub(super) missed: Option<u64>,
}

/// An event: its time and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawEvent<'a> {
    pub(super) time: u64,
    pub(super) data: &'a [u8],
}

impl<'a> Page<'a> {
    /// Parses a page; `long` is the size of the kernel's `long`. `None` if its head is invalid.
    pub(super) fn parse(bytes: &'a [u8], long: u32, big: bool) -> Option<Page<'a>> {
        let time = number(bytes.get(..8)?, big);
        let head = 8 + long as usize;
        let commit = number(bytes.get(8..head)?, big);
        let size = (commit & SIZE) as usize;
        let behind = bytes.get(head..)?;
        let data = behind.get(..size)?;
        let stored = behind
            .get(size..size + long as usize)
            .map(|bytes| number(bytes, big));
        let missed = match commit & (MISSED | MISSED_STORED) {
            0 => None,
            flags if flags & MISSED_STORED != 0 => Some(stored.unwrap_or(0)),
            _ => Some(0),
        };
        Some(Page {
            data,
            time,
            big,
            missed,
        })
    }

    pub(super) fn events(self) -> Events<'a> {
        Events {
            page: self,
            at: 0,
            time: self.time,
        }
    }
}

/// The events of a page.
#[derive(Clone, Debug)]
pub(super) struct Events<'a> {
    page: Page<'a>,
    at: usize,
    time: u64,
}

/// The rest of a page cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl<'a> Events<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.page.data.get(at..at.checked_add(4)?)?;
        Some(number(bytes, self.page.big) as u32)
    }

    /// The type and the time in the head of an event.
    fn head(&self) -> Option<(u32, u64)> {
        let word = self.word(self.at)?;
        // Bit fields begin at the other end on machines of the other byte order.
        Some(match self.page.big {
            false => (word & 31, u64::from(word >> 5)),
            true => (word >> TIME_BITS, u64::from(word & ((1 << TIME_BITS) - 1))),
        })
    }

    fn step(&mut self) -> Option<Option<RawEvent<'a>>> {
        let (kind, delta) = self.head()?;
        let behind = self.at + 4;
        let (begin, length) = match kind {
            PADDING if delta == 0 => {
                self.at = self.page.data.len();
                return Some(None);
            }
            PADDING => {
                // A discarded event.
                self.time = self.time.wrapping_add(delta);
                self.at = behind.checked_add(self.word(behind)? as usize)?;
                return Some(None);
            }
            TIME_EXTEND => {
                let long = u64::from(self.word(behind)?) << TIME_BITS | delta;
                self.time = self.time.wrapping_add(long);
                self.at = behind + 4;
                return Some(None);
            }
            1..=MOST_WORDS => (behind, kind as usize * 4),
            LONG => (behind + 4, (self.word(behind)? as usize).checked_sub(4)?),
            _ => {
                let low = u64::from(self.word(behind)?) << TIME_BITS | delta;
                let high = self.page.time >> ABSOLUTE_BITS << ABSOLUTE_BITS;
                self.time = low & ((1 << ABSOLUTE_BITS) - 1) | high;
                self.at = behind + 4;
                return Some(None);
            }
        };
        self.time = self.time.wrapping_add(delta);
        let data = self.page.data.get(begin..begin.checked_add(length)?)?;
        self.at = begin + length.next_multiple_of(4);
        let time = self.time;
        Some(Some(RawEvent { time, data }))
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<RawEvent<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.page.data.len() {
            match self.step() {
                Some(Some(event)) => return Some(Ok(event)),
                Some(None) => {}
                None => {
                    self.at = self.page.data.len();
                    return Some(Err(Broken));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(words: &[u32], flags: u64) -> Vec<u8> {
        let mut bytes = 1000u64.to_le_bytes().to_vec();
        bytes.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(77u64.to_le_bytes());
        bytes
    }

    fn events(words: &[u32]) -> Vec<Result<(u64, usize), Broken>> {
        let bytes = page(words, 0);
        let page = Page::parse(&bytes, 8, false).unwrap();
        let events = page.events();
        events
            .map(|event| event.map(|event| (event.time, event.data.len())))
            .collect()
    }

    fn head(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    #[test]
    fn times_add_up() {
        let words = [
            head(1, 0),
            1, // an event of a single word
            head(TIME_EXTEND, 3),
            1, // 2^27 + 3 later
            head(2, 5),
            1,
            2,
            head(LONG, 1),
            8,
            9, // of 4 bytes
            head(PADDING, 7),
            4, // discarded
            head(31, 6),
            2, // at 2^28 + 6
            head(1, 1),
            3,
            head(PADDING, 0),
            55,
            55,
        ];
        let far = 1000 + (1 << 27) + 8;
        let absolute = (2 << 27) + 7;
        assert_eq!(
            events(&words),
            [
                Ok((1000, 4)),
                Ok((far, 8)),
                Ok((far + 1, 4)),
                Ok((absolute, 4))
            ]
        );
    }

    #[test]
    fn what_reaches_out_of_the_page_is_broken() {
        for words in [
            &[head(5, 0), 1][..],
            &[head(LONG, 0), 3, 0],
            &[head(LONG, 0), u32::MAX, 0],
            &[head(TIME_EXTEND, 0)],
        ] {
            assert_eq!(events(words), [Err(Broken)], "{words:?}");
        }
    }

    #[test]
    fn missed_events_are_counted_if_their_number_is_stored() {
        for (flags, missed) in [
            (0, None),
            (MISSED, Some(0)),
            (MISSED | MISSED_STORED, Some(77)),
        ] {
            let bytes = page(&[head(1, 0), 1], flags);
            assert_eq!(Page::parse(&bytes, 8, false).unwrap().missed, missed);
        }
        assert!(Page::parse(&[0; 12], 8, false).is_none());
    }
}
