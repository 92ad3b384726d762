//! Where functions begin in a file without symbols, by its table for unwinding (`.eh_frame_hdr`, Linux Standard Base
//! Core 5.0, 10.6.2): programs that were stripped still have it.

use object::{Object, ObjectSection};

/// First addresses of functions, as the file counts them, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Starts(Vec<u64>);

/// Version 1; pointers of 4 bytes relative to themselves or to the table, a count of 4 bytes: what linkers write.
const FORM: [u8; 2] = [1, 0x3b];
const COUNT_OF_FOUR_BYTES: u8 = 0x03;
const ENTRY: usize = 8;

impl Starts {
    /// Of a file; none if it has no such table, or one of another form.
    pub(crate) fn of<'d>(file: &impl Object<'d>) -> Starts {
        let found = file.section_by_name(".eh_frame_hdr").and_then(|section| {
            let data = section.uncompressed_data().ok()?;
            Starts::parse(&data, section.address())
        });
        found.unwrap_or_default()
    }

    /// `base` is the table's address.
    fn parse(data: &[u8], base: u64) -> Option<Starts> {
        let (head, entries) = data.split_at_checked(12)?;
        let is_known = [head[0], head[3]] == FORM && head[2] == COUNT_OF_FOUR_BYTES;
        is_known.then_some(())?;
        let count = u32::from_le_bytes(head.get(8..12)?.try_into().ok()?);
        let start = |entry: &[u8]| {
            let offset = i32::from_le_bytes(entry.get(..4)?.try_into().ok()?);
            Some(base.wrapping_add_signed(offset.into()))
        };
        let entries = entries.chunks_exact(ENTRY).take(count as usize);
        let mut starts: Vec<u64> = entries.map_while(start).collect();
        starts.sort_unstable();
        Some(Starts(starts))
    }

    /// Where the function at an address begins.
    pub(crate) fn before(&self, address: u64) -> Option<u64> {
        let behind = self.0.partition_point(|&start| start <= address);
        self.0.get(behind.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_begin_where_the_table_says() {
        let mut data = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0];
        for start in [-0x100_i32, 0x20] {
            data.extend(start.to_le_bytes());
            data.extend([0; 4]);
        }
        // What is behind the count does not count.
        data.extend([0; 16]);
        let starts = Starts::parse(&data, 0x1000).unwrap();
        assert_eq!(starts.before(0xeff), None);
        assert_eq!(starts.before(0xf00), Some(0xf00));
        assert_eq!(starts.before(0x101f), Some(0xf00));
        assert_eq!(starts.before(0x9999), Some(0x1020));
        assert_eq!(Starts::parse(&data[..11], 0), None);
        data[3] = 0x1b;
        assert_eq!(Starts::parse(&data, 0), None);
    }
}
