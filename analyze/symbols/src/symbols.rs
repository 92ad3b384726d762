//! Functions, files and lines of addresses, by blazesym.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use object::elf::PF_X;
use object::{Object, ObjectSegment, ReadCache, SegmentFlags};

use tracebraid_file_identity::FileIdentity;

use crate::demangle::demangled;
use crate::kept::{Kept, SymbolKey};
use crate::module::BuildId;
use crate::unwind_table::Functions;
use crate::{Module, Placed};

/// A function at an address, possibly inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Demangled name.
    pub function: String,
    /// Source line of the address.
    pub line: Option<Line>,
    /// True if the compiler inlined the function into the following one.
    pub is_inlined: bool,
}

/// A line of source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Source file.
    pub file: PathBuf,
    /// Line number, which begins at 1, if it is known.
    pub number: Option<u32>,
}

/// Finds functions. Keeps the files open that it has read.
#[derive(Debug)]
pub struct Symbols {
    symbolizer: Symbolizer,
    directories: Vec<PathBuf>,
    /// Directory of the cache.
    kept_in: Option<PathBuf>,
    /// By file and build id: the source of its names; `None` without one.
    sources: HashMap<(PathBuf, Option<BuildId>), Option<Rc<Told>>>,
    /// Current identities of files.
    identities: HashMap<PathBuf, Option<FileIdentity>>,
}

/// Source of the names of a module.
#[derive(Debug)]
struct Told {
    file: PathBuf,
    segments: Segments,
    /// True for separate debug information, which lacks the mapped sections.
    is_separate: bool,
    /// Begins of functions without names; computed when the first of them is looked up.
    functions: OnceCell<Functions>,
    has_debug_information: bool,
    /// Cached names.
    kept: RefCell<Kept>,
}

/// Preferred addresses of the file's segments, rounded down to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segments {
    /// First page of all segments.
    first: u64,
    /// First page of the executable segment.
    executed: u64,
    /// Difference between addresses and file offsets in that segment.
    behind_offsets: u64,
}

/// Directory in which distributions install debug information.
const DEBUG: &str = "/usr/lib/debug";

impl Default for Symbols {
    fn default() -> Self {
        Symbols::new(Vec::new())
    }
}

impl Symbols {
    /// Creates a resolver that searches these directories for debug information, before the
    /// standard directory.
    pub fn new(mut directories: Vec<PathBuf>) -> Symbols {
        directories.push(PathBuf::from(DEBUG));
        // blazesym reports inlined functions only together with lines.
        let symbolizer = Symbolizer::builder()
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(false)
            .set_debug_dirs(Some(&directories))
            .build();
        Symbols {
            symbolizer,
            directories,
            kept_in: None,
            sources: HashMap::new(),
            identities: HashMap::new(),
        }
    }

    /// Caches names in a directory, and uses the names cached there.
    #[must_use]
    pub fn keep_in(mut self, directory: Option<PathBuf>) -> Symbols {
        self.kept_in = directory;
        self
    }

    /// Names of the functions at an address in a module, as [`Symbols::frames`].
    pub fn names(&mut self, module: &Module, address: u64) -> Vec<String> {
        let Some(told) = self.source(module) else {
            return Vec::new();
        };
        let place = told.place(module, address);
        let mut kept = told.kept.borrow_mut();
        if let Some(names) = kept.get(place) {
            return names.to_vec();
        }
        let frames = told.frames(&self.symbolizer, place).into_iter();
        let names: Vec<String> = frames.map(|frame| frame.function).collect();
        kept.add(place, names.clone());
        names
    }

    /// The functions at an address in a module, the innermost first; empty if none is known.
    ///
    /// For a frame that waits for a call to return, pass the return address minus one.
    pub fn frames(&mut self, module: &Module, address: u64) -> Vec<Frame> {
        let Some(told) = self.source(module) else {
            return Vec::new();
        };
        told.frames(&self.symbolizer, told.place(module, address))
    }

    /// True if a file still has this identity.
    pub fn is_same(&mut self, path: &Path, identity: &FileIdentity) -> bool {
        let read = || FileIdentity::of(path).ok();
        let now = self.identities.entry(path.to_owned()).or_insert_with(read);
        now.as_ref() == Some(identity)
    }

    /// True if names of the module can be looked up: its file, or debug information with its build
    /// id, exists and is unchanged.
    pub fn knows(&mut self, module: &Module) -> bool {
        self.source(module).is_some()
    }

    /// An address in a module as an address of the file: the begin of the function there, if the
    /// file shows it. Identifies functions without a name.
    pub fn place(&mut self, module: &Module, address: u64) -> u64 {
        let Some(told) = self.source(module) else {
            let offset = match module.placed {
                Placed::Image(_) => 0,
                Placed::Part(offset) => offset,
            };
            return address.wrapping_sub(module.begin).wrapping_add(offset);
        };
        let address = address.wrapping_add(told.shift(module));
        told.functions().begin(address).unwrap_or(address)
    }

    /// Source of a module's names: debug information with its build id, or else the file, if it is
    /// unchanged.
    fn source(&mut self, module: &Module) -> Option<Rc<Told>> {
        let key = (module.path.clone(), module.build_id.clone());
        let (directories, kept_in) = (&self.directories, self.kept_in.as_deref());
        let found = self.sources.entry(key).or_insert_with(|| {
            let told = debug_file(directories, module).or_else(|| itself(module))?;
            // Only names from debug information are cached: other names are found fast, and another
            // file may contain better ones next time.
            if let Some(directory) = kept_in.filter(|_| told.has_debug_information)
                && let Some(kept) = Kept::read(directory, &told.file)
            {
                told.kept.replace(kept);
            }
            Some(Rc::new(told))
        });
        found.clone()
    }
}

impl Drop for Symbols {
    fn drop(&mut self) {
        let Some(directory) = &self.kept_in else {
            return;
        };
        for told in self.sources.values().flatten() {
            told.kept.borrow().write(directory, &told.file);
        }
    }
}

/// Units of positions in the cache.
const ADDRESS: char = 'v';
const OFFSET: char = 'o';

fn itself(module: &Module) -> Option<Told> {
    let is_same = module.build_id.is_none() || build_id(&module.path) == module.build_id;
    Told::new(module.path.clone(), false).filter(|_| is_same)
}

fn debug_file(directories: &[PathBuf], module: &Module) -> Option<Told> {
    let name = module.build_id.as_ref()?.debug_file()?;
    let files = directories.iter().map(|directory| directory.join(&name));
    let file = files
        .into_iter()
        .find(|file| build_id(file) == module.build_id)?;
    Told::new(file, true)
}

impl Told {
    fn functions(&self) -> &Functions {
        let read = || {
            let cache = ReadCache::new(File::open(&self.file).ok()?);
            let object = object::File::parse(&cache).ok()?;
            Some(Functions::of(&object))
        };
        self.functions.get_or_init(|| read().unwrap_or_default())
    }

    fn frames(&self, symbolizer: &Symbolizer, (letter, number): SymbolKey) -> Vec<Frame> {
        let input = match letter {
            OFFSET => Input::FileOffset(number),
            _ => Input::VirtOffset(number),
        };
        let source = Source::Elf(Elf::new(self.file.clone()));
        match symbolizer.symbolize_single(&source, input) {
            Ok(Symbolized::Sym(symbol)) => frames(&symbol),
            // No names are known of a damaged file either.
            Ok(Symbolized::Unknown(_)) | Err(_) => Vec::new(),
        }
    }

    /// Position in the file of an address in memory.
    fn place(&self, module: &Module, address: u64) -> SymbolKey {
        let from =
            |base: u64, first: u64| (ADDRESS, address.wrapping_sub(base).wrapping_add(first));
        match module.placed {
            Placed::Image(base) => from(base, self.segments.first),
            // Offsets of the mapped file are not valid in a separate file. The mapped part is the
            // executable segment.
            Placed::Part(_) if self.is_separate => from(module.begin, self.segments.executed),
            Placed::Part(offset) => (
                OFFSET,
                address.wrapping_sub(module.begin).wrapping_add(offset),
            ),
        }
    }

    /// Difference to add to addresses in memory to get addresses of the file.
    fn shift(&self, module: &Module) -> u64 {
        match module.placed {
            Placed::Image(base) => self.segments.first.wrapping_sub(base),
            Placed::Part(_) if self.is_separate => {
                self.segments.executed.wrapping_sub(module.begin)
            }
            Placed::Part(offset) => {
                let offset = offset.wrapping_sub(module.begin);
                offset.wrapping_add(self.segments.behind_offsets)
            }
        }
    }

    /// Opens a file; `None` if its format is unknown.
    fn new(file: PathBuf, is_separate: bool) -> Option<Told> {
        let cache = ReadCache::new(File::open(&file).ok()?);
        let object = object::File::parse(&cache).ok()?;
        let segments = Segments::of(&object)?;
        let has_debug_information = object.section_by_name(".debug_info").is_some();
        drop(object);
        Some(Told {
            file,
            segments,
            is_separate,
            functions: OnceCell::new(),
            has_debug_information,
            kept: RefCell::default(),
        })
    }
}

impl Segments {
    fn of<'d>(file: &impl Object<'d>) -> Option<Segments> {
        const PAGE: u64 = 4096;
        let first = file.segments().map(|segment| segment.address()).min()?;
        let is_executed =
            |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
        let executed = file.segments().find(|segment| is_executed(segment.flags()));
        let place = |segment: &_| {
            (
                ObjectSegment::address(segment),
                ObjectSegment::file_range(segment).0,
            )
        };
        let (address, offset) = executed.as_ref().map_or((first, 0), place);
        Some(Segments {
            first: first / PAGE * PAGE,
            behind_offsets: address.wrapping_sub(offset),
            executed: executed.map_or(first, |segment| segment.address()) / PAGE * PAGE,
        })
    }
}

fn build_id(path: &Path) -> Option<BuildId> {
    let found = read_elf_build_id(&path).ok().flatten()?;
    Some(BuildId(found.to_vec()))
}

/// Frames of a symbol: inlined functions, the innermost first, then the function itself.
fn frames(symbol: &Sym<'_>) -> Vec<Frame> {
    // The line of each frame is where it calls the next inner frame; the line of the innermost
    // frame is that of the address.
    let mut frames = vec![Frame {
        function: demangled(&symbol.name),
        line: symbol.code_info.as_deref().map(line),
        is_inlined: false,
    }];
    for inlined in &symbol.inlined {
        frames.push(Frame {
            function: demangled(&inlined.name),
            line: inlined.code_info.as_ref().map(line),
            is_inlined: true,
        });
    }
    frames.reverse();
    frames
}

fn line(code: &CodeInfo<'_>) -> Line {
    Line {
        file: code.to_path().into_owned(),
        number: code.line,
    }
}
