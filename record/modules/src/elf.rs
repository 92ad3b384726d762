//! Program headers of a loaded module: its range of addresses and its build id.
//!
//! All memory is read through [`crate::memory`]: if a module is unmapped meanwhile, its headers are
//! absent instead of causing a fault.

use crate::memory;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;
const MOST_HEADERS: u16 = 64;

/// Bytes of a build id.
#[derive(Clone, Copy, Default)]
pub(crate) struct BuildId {
    bytes: [u8; 32],
    length: usize,
}

impl BuildId {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Program headers in memory.
#[derive(Clone, Copy)]
pub(crate) struct Headers {
    /// Difference between addresses in memory and in the file.
    bias: u64,
    address: u64,
    count: u16,
}

#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    address: u64,
    bytes: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Headers {
    /// The headers of a module whose first bytes are its ELF header, as in loaded shared libraries.
    pub(crate) fn of_library(bias: u64) -> Option<Headers> {
        let mut head = [0; 64];
        let is_elf = memory::scan(bias, &mut head) && head.starts_with(b"\x7fELF\x02");
        is_elf.then_some(())?;
        Some(Headers {
            bias,
            address: bias.checked_add(u64_at(&head, 32)?)?,
            count: u16_at(&head, 56)?.min(MOST_HEADERS),
        })
    }

    /// The headers of the program, whose address the kernel provides.
    pub(crate) fn of_program(bias: u64, address: u64, count: u64) -> Headers {
        Headers {
            bias,
            address,
            count: count.min(MOST_HEADERS.into()) as u16,
        }
    }

    fn iter(self) -> impl Iterator<Item = Header> {
        (0..u64::from(self.count)).map_while(move |index| {
            let mut bytes = [0; 56];
            memory::scan(self.address + index * 56, &mut bytes).then_some(())?;
            Some(Header {
                kind: u32_at(&bytes, 0)?,
                address: self.bias.wrapping_add(u64_at(&bytes, 16)?),
                bytes: u64_at(&bytes, 40)?,
            })
        })
    }

    /// The first address of the first segment, and the address after the last segment.
    pub(crate) fn range(self) -> Option<[u64; 2]> {
        let loads = self.iter().filter(|header| header.kind == PT_LOAD);
        let joined = loads.fold([u64::MAX, 0], |[first, end], header| {
            [
                first.min(header.address),
                end.max(header.address.wrapping_add(header.bytes)),
            ]
        });
        (joined[0] < joined[1]).then_some(joined)
    }

    /// Calls `see` with each note's name, type, and the address and length of its content.
    fn notes<T>(self, mut see: impl FnMut(&[u8], u32, u64, u64) -> Option<T>) -> Option<T> {
        for segment in self.iter().filter(|header| header.kind == PT_NOTE) {
            let (mut at, end) = (
                segment.address,
                segment.address.saturating_add(segment.bytes),
            );
            while at + 16 <= end {
                let mut head = [0; 16];
                memory::scan(at, &mut head).then_some(())?;
                let (name, content) = (u64::from(u32_at(&head, 0)?), u64::from(u32_at(&head, 4)?));
                let content_at = at + 12 + name.next_multiple_of(4);
                let short_name = head.get(12..12 + name.min(4) as usize)?;
                if let Some(found) = see(short_name, u32_at(&head, 8)?, content_at, content) {
                    return Some(found);
                }
                at = content_at + content.next_multiple_of(4);
            }
        }
        None
    }

    /// The build id that the linker assigned.
    pub(crate) fn build_id(self) -> BuildId {
        let found = self.notes(|name, kind, at, length| {
            let mut id = BuildId {
                length: length.min(32) as usize,
                ..BuildId::default()
            };
            let is_it = name == b"GNU\0" && kind == NT_GNU_BUILD_ID;
            (is_it && memory::scan(at, id.bytes.get_mut(..id.length)?)).then_some(id)
        });
        found.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_nothing() {
        assert!(Headers::of_library(0).is_none());
        let no_elf = [0_u64; 16];
        assert!(Headers::of_library(no_elf.as_ptr() as u64).is_none());
        let none = Headers::of_program(0, 8, 9);
        assert!(none.range().is_none());
        assert!(none.build_id().bytes().is_empty());
    }
}
