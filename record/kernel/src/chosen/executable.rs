//! Programs and libraries: their functions, USDT probes, and Go metadata.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{
    Architecture, LittleEndian, Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache,
    SymbolFlags, SymbolKind,
};

use super::usdt::{self, Probe};

/// Points of an ELF file that can be recorded.
#[derive(Debug, Default)]
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    pub(super) segments: Vec<Segment>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) probes: Vec<Probe>,
    /// Address of `.stapsdt.base`.
    pub(super) base: Option<u64>,
    /// Sections of Go: build information, and the table of functions.
    pub(crate) go_build: Option<Vec<u8>>,
    pub(crate) go_functions: Option<Vec<u8>>,
    /// Address of the code section.
    pub(crate) text: u64,
    /// Address ranges of the PLT sections.
    pub(super) stubs: Vec<Range<u64>>,
}

/// A range of the file that is mapped into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    address: u64,
    bytes: u64,
    offset: u64,
    is_executable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) class: SymbolClass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolClass {
    Function,
    /// A function that selects the function to call (`STT_GNU_IFUNC`).
    Indirect,
    Data,
    ThreadLocal,
    /// Has no type, for example a label in assembly.
    Label,
    Other,
}

impl Symbol {
    pub(crate) fn is_function(&self) -> bool {
        self.class == SymbolClass::Function
    }

    /// The symbol's addresses; empty if its size is unknown.
    pub(crate) fn range(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.bytes)
    }
}

const INDIRECT: u8 = 10;

fn class<'d>(symbol: &impl ObjectSymbol<'d>) -> SymbolClass {
    match symbol.flags() {
        SymbolFlags::Elf { st_info, .. } if st_info.0 & 15 == INDIRECT => {
            return SymbolClass::Indirect;
        }
        _ => {}
    }
    match symbol.kind() {
        SymbolKind::Text => SymbolClass::Function,
        SymbolKind::Data => SymbolClass::Data,
        SymbolKind::Tls => SymbolClass::ThreadLocal,
        SymbolKind::Unknown => SymbolClass::Label,
        _ => SymbolClass::Other,
    }
}

/// The file of a program: a name without a slash is searched in `PATH`.
fn find(path: &Path) -> PathBuf {
    if path.components().count() > 1 || path.exists() {
        return path.to_owned();
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&directories).map(|directory| directory.join(path));
    found
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| path.to_owned())
}

impl Executable {
    /// # Errors
    /// A message, if the file is not an ELF file of this machine.
    pub(crate) fn read(path: &Path) -> Result<Executable, String> {
        let path = find(path);
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        // The kernel attaches by inode, and looks this path up again.
        let path = path.canonicalize().map_err(|error| wrong(&error))?;
        let file = File::open(&path).map_err(|error| wrong(&error))?;
        let cache = ReadCache::new(file);
        let elf = ElfFile64::<LittleEndian, _>::parse(&cache).map_err(|_| {
            wrong(&"not a 64-bit ELF file; if it is a script, name the program that runs it")
        })?;
        let own = match cfg!(target_arch = "x86_64") {
            true => Architecture::X86_64,
            false => Architecture::Aarch64,
        };
        if elf.architecture() != own {
            return Err(wrong(&"built for another architecture"));
        }
        let section = |name: &str| elf.section_by_name(name);
        let data = |name: &str| section(name)?.data().ok().map(<[u8]>::to_vec);
        let segments = elf.segments().map(|segment| Segment {
            address: segment.address(),
            bytes: segment.file_range().1,
            offset: segment.file_range().0,
            is_executable: segment.permissions().executable(),
        });
        let symbols = elf.symbols().chain(elf.dynamic_symbols());
        let symbols = symbols
            .filter(|symbol| !symbol.is_undefined())
            .filter_map(|symbol| {
                Some(Symbol {
                    name: symbol.name().ok()?.to_owned(),
                    address: symbol.address(),
                    bytes: symbol.size(),
                    class: class(&symbol),
                })
            });
        let is_stub = |name: &str| name.starts_with(".plt") || name == ".iplt";
        let stubs = elf
            .sections()
            .filter(|section| section.name().is_ok_and(is_stub))
            .map(|section| section.address()..section.address().saturating_add(section.size()));
        Ok(Executable {
            stubs: stubs.collect(),
            segments: segments.collect(),
            symbols: symbols.collect(),
            probes: usdt::probes(&data(".note.stapsdt").unwrap_or_default()),
            base: section(".stapsdt.base").map(|section| section.address()),
            go_build: data(".go.buildinfo"),
            go_functions: data(".gopclntab").or_else(|| data(".data.rel.ro.gopclntab")),
            text: section(".text").map_or(0, |section| section.address()),
            path,
        })
    }

    /// Offset in the file of an address.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let segment = self.segment(address)?;
        (address - segment.address).checked_add(segment.offset)
    }

    /// Offset in the file of an address in an executable segment.
    pub(crate) fn code_offset(&self, address: u64) -> Option<u64> {
        let is_executable = self.segment(address)?.is_executable;
        is_executable.then(|| self.offset(address)).flatten()
    }

    fn segment(&self, address: u64) -> Option<&Segment> {
        self.segments.iter().find(|segment| {
            (segment.address..segment.address.saturating_add(segment.bytes)).contains(&address)
        })
    }

    /// Addresses of a probe and of its semaphore. Prelinking moves the base section with the code,
    /// and leaves the notes unchanged.
    pub(crate) fn moved(&self, probe: &Probe) -> (u64, Option<u64>) {
        let by = match self.base {
            Some(base) if probe.base != 0 => base.wrapping_sub(probe.base),
            _ => 0,
        };
        let semaphore = (probe.semaphore != 0).then(|| probe.semaphore.wrapping_add(by));
        (probe.address.wrapping_add(by), semaphore)
    }

    pub(crate) fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.iter().find(|symbol| symbol.name == name)
    }

    pub(crate) fn is_go(&self) -> bool {
        self.go_build.is_some() || self.go_functions.is_some()
    }

    /// Bytes of the file at an address.
    pub(crate) fn bytes(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let offset = self.offset(address)?;
        let mut found = vec![0; bytes];
        File::open(&self.path)
            .ok()?
            .read_exact_at(&mut found, offset)
            .ok()?;
        Some(found)
    }
}
