//! Bounds of functions in a file without symbols, from its unwind tables (`.eh_frame`), which
//! stripped programs still have.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use object::{Object, ObjectSection};

/// Addresses of functions in the file, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Functions(Vec<Range<u64>>);

impl Functions {
    /// Functions of a file; empty without unwind tables.
    pub(crate) fn of<'d>(file: &impl Object<'d>) -> Functions {
        let found = file.section_by_name(".eh_frame").and_then(|section| {
            let data = section.uncompressed_data().ok()?;
            let bases = BaseAddresses::default().set_eh_frame(section.address());
            Some(Functions::parse(&data, &bases))
        });
        found.unwrap_or_default()
    }

    /// Reads the entries up to the first invalid one.
    fn parse(data: &[u8], bases: &BaseAddresses) -> Functions {
        let table = EhFrame::new(data, LittleEndian);
        let mut entries = table.entries(bases);
        let mut functions = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            if let Ok(function) = partial.parse(EhFrame::cie_from_offset) {
                let begin = function.initial_address();
                functions.push(begin..begin.saturating_add(function.len()));
            }
        }
        functions.sort_unstable_by_key(|function| function.start);
        Functions(functions)
    }

    /// Begin of the function at an address.
    pub(crate) fn begin(&self, address: u64) -> Option<u64> {
        let behind = self.0.partition_point(|function| function.start <= address);
        let function = self.0.get(behind.checked_sub(1)?)?;
        function.contains(&address).then_some(function.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_begin_where_the_tables_say() {
        // Augmentation zR: relative addresses of four bytes.
        let cie = [
            &16u32.to_le_bytes()[..],
            &[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0],
        ];
        let mut data = cie.concat();
        for (begin, length) in [(0x2000u32, 0x10u32), (0x1000, 0x20)] {
            let at = data.len() as u32;
            data.extend(16u32.to_le_bytes());
            data.extend((at + 4).to_le_bytes());
            data.extend(begin.wrapping_sub(0x400 + at + 8).to_le_bytes());
            data.extend(length.to_le_bytes());
            data.extend([0; 4]);
        }
        let bases = BaseAddresses::default().set_eh_frame(0x400);
        let functions = Functions::parse(&data, &bases);
        assert_eq!(functions.0, [0x1000..0x1020, 0x2000..0x2010]);
        assert_eq!(functions.begin(0x101f), Some(0x1000));
        assert_eq!(
            (functions.begin(0x1020), functions.begin(0xfff)),
            (None, None)
        );
        // A truncated entry does not hide the others.
        data.truncate(data.len() - 3);
        assert_eq!(Functions::parse(&data, &bases).0, vec![0x2000..0x2010; 1]);
    }
}
