//! An ELF file: where its code is mapped from, and its unwind tables.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};

use crate::tables::Tables;

/// A program or library. It keeps its unwind tables in memory and needs the file no longer.
#[derive(Debug)]
pub struct Module {
    id: u32,
    segments: Vec<Segment>,
    tables: Option<Tables>,
    build_id: Vec<u8>,
}

/// Code of a file: a segment that is mapped to be executed.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// A file that is no ELF file of this machine, or is damaged.
#[derive(Debug)]
pub enum ModuleError {
    /// The file cannot be read.
    Io(io::Error),
    /// The headers or sections are inconsistent.
    Elf(object::Error),
    /// Its unwind tables are larger than any linker's.
    TooLarge(u64),
}

impl std::fmt::Display for ModuleError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModuleError::Io(error) => error.fmt(to),
            ModuleError::Elf(error) => error.fmt(to),
            ModuleError::TooLarge(bytes) => write!(
                to,
                "the unwind tables have {bytes} bytes, more than any linker generates"
            ),
        }
    }
}

impl std::error::Error for ModuleError {}

impl From<object::Error> for ModuleError {
    fn from(error: object::Error) -> Self {
        ModuleError::Elf(error)
    }
}

/// Bytes of unwind tables at most: those of the largest browsers have a tenth of that.
const MOST_BYTES: u64 = 512 << 20;

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

impl Module {
    /// Reads the tables of a file.
    ///
    /// # Errors
    /// [`ModuleError`].
    pub fn read(file: File) -> Result<Module, ModuleError> {
        Module::of(&ReadCache::new(file))
    }

    /// Reads the tables of a file that is in memory, as the kernel's own library (vDSO) is.
    ///
    /// # Errors
    /// [`ModuleError`].
    pub fn parse(bytes: &[u8]) -> Result<Module, ModuleError> {
        Module::of(bytes)
    }

    fn of<'d, R: ReadRef<'d>>(data: R) -> Result<Module, ModuleError> {
        let elf = ElfFile64::<LittleEndian, R>::parse(data)?;
        if elf.elf_header().e_machine(LittleEndian) != object::elf::EM_X86_64 {
            return Err(ModuleError::Io(io::Error::other("not for x86-64")));
        }
        let segments = elf
            .segments()
            .filter(|segment| segment.permissions().executable());
        let segments = segments.map(|segment| Segment {
            offset: segment.file_range().0,
            address: segment.address(),
            bytes: segment.file_range().1,
        });
        Ok(Module {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            segments: segments.collect(),
            tables: tables(&elf)?,
            build_id: elf.build_id()?.unwrap_or_default().to_vec(),
        })
    }

    /// The build id that the linker gave it; empty if it has none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }

    /// The address, in the file's own numbering, of the code at an offset of the file.
    #[inline]
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let of = |segment: &Segment| {
            let inside = offset.checked_sub(segment.offset)?;
            (inside < segment.bytes).then(|| segment.address.wrapping_add(inside))
        };
        self.segments.iter().find_map(of)
    }

    /// The inverse of [`Module::address`].
    #[cfg(test)]
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let of = |segment: &Segment| {
            let inside = address.checked_sub(segment.address)?;
            (inside < segment.bytes).then(|| segment.offset + inside)
        };
        self.segments.iter().find_map(of)
    }
}

fn tables<'d, R: ReadRef<'d>>(
    elf: &ElfFile64<'d, LittleEndian, R>,
) -> Result<Option<Tables>, ModuleError> {
    let Some(frames) = elf.section_by_name(".eh_frame") else {
        return Ok(None);
    };
    let header = elf.section_by_name(".eh_frame_hdr");
    for section in [Some(&frames), header.as_ref()].into_iter().flatten() {
        if section.size() > MOST_BYTES {
            return Err(ModuleError::TooLarge(section.size()));
        }
    }
    let content = frames.data()?.to_vec();
    let header =
        header.map(|header| Ok::<_, object::Error>((header.address(), header.data()?.to_vec())));
    Ok(Some(Tables::new(
        frames.address(),
        content,
        header.transpose()?,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_tables_and_a_place_for_its_code() {
        let module = Module::read(File::open("/proc/self/exe").unwrap()).unwrap();
        assert!(module.tables().is_some());
        let segment = module.segments[0];
        assert_eq!(
            module.address(segment.offset + 5),
            Some(segment.address + 5)
        );
        assert_eq!(module.address(segment.offset + segment.bytes), None);
    }

    #[test]
    fn other_files_are_errors() {
        for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0; 4096]] {
            assert!(Module::parse(bytes).is_err());
        }
        let mut own = std::fs::read("/proc/self/exe").unwrap();
        // Of another machine.
        own[18] = 40;
        assert!(Module::parse(&own).is_err());
    }
}
