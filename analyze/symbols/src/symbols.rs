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

/// A function at an address, or one that was put into it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, as its author wrote it where that is known.
    pub function: String,
    /// Where in the source the address is.
    pub line: Option<Line>,
    /// It has no call of its own: the compiler put it into the function that follows.
    pub is_inlined: bool,
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1 on, if it is known.
    pub number: Option<u32>,
}

/// Finds functions. What it has looked into it keeps open.
#[derive(Debug)]
pub struct Symbols {
    symbolizer: Symbolizer,
    directories: Vec<PathBuf>,
    /// Where names are kept for the next time.
    kept_in: Option<PathBuf>,
    /// By file and build id: what tells about it, if anything does.
    sources: HashMap<(PathBuf, Option<BuildId>), Option<Rc<Told>>>,
    /// Identities of files now.
    identities: HashMap<PathBuf, Option<FileIdentity>>,
}

/// What tells about a module.
#[derive(Debug)]
struct Told {
    file: PathBuf,
    segments: Segments,
    /// It is debug information, which lacks what was mapped.
    is_separate: bool,
    /// Where functions begin whose names it does not tell; looked for when the first of them is
    /// met.
    functions: OnceCell<Functions>,
    has_debug_information: bool,
    /// The names that it told.
    kept: RefCell<Kept>,
}

/// Where the file wants to be in memory: addresses of whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segments {
    /// The first page of all.
    first: u64,
    /// The first page that is executed.
    executed: u64,
    /// How far addresses there are behind offsets in the file.
    behind_offsets: u64,
}

/// Where distributions put debug information.
const DEBUG: &str = "/usr/lib/debug";

impl Default for Symbols {
    fn default() -> Self {
        Symbols::new(Vec::new())
    }
}

impl Symbols {
    /// Looks for debug information in these directories too, before the usual one.
    pub fn new(mut directories: Vec<PathBuf>) -> Symbols {
        directories.push(PathBuf::from(DEBUG));
        // Without lines it tells of no functions that were put into others.
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

    /// Keeps names in a directory for the next time, and takes those that are kept there.
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

    /// The functions at an address in a module, the innermost first; empty if nothing is known.
    ///
    /// Of a frame that waits for a call to return, the address to ask for is one less than that
    /// which it returns to.
    pub fn frames(&mut self, module: &Module, address: u64) -> Vec<Frame> {
        let Some(told) = self.source(module) else {
            return Vec::new();
        };
        told.frames(&self.symbolizer, told.place(module, address))
    }

    /// Whether a file is still the one with that identity.
    pub fn is_same(&mut self, path: &Path, identity: &FileIdentity) -> bool {
        let read = || FileIdentity::of(path).ok();
        let now = self.identities.entry(path.to_owned()).or_insert_with(read);
        now.as_ref() == Some(identity)
    }

    /// Whether a module's names can be looked up: its file, or debug information with its build id,
    /// is there and is the same.
    pub fn knows(&mut self, module: &Module) -> bool {
        self.source(module).is_some()
    }

    /// An address in a module as the file counts it: of the function there, where it begins, if the
    /// file tells; for functions that have no name.
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

    /// What tells about a module: debug information by its build id, or else the file, if it is
    /// still the same.
    fn source(&mut self, module: &Module) -> Option<Rc<Told>> {
        let key = (module.path.clone(), module.build_id.clone());
        let (directories, kept_in) = (&self.directories, self.kept_in.as_deref());
        let found = self.sources.entry(key).or_insert_with(|| {
            let told = debug_file(directories, module).or_else(|| itself(module))?;
            // What takes no time need not be kept; and what another file tells may be told
            // otherwise the next time.
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

/// Letters of places.
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
            // Of a file that is damaged nothing is known either.
            Ok(Symbolized::Unknown(_)) | Err(_) => Vec::new(),
        }
    }

    /// Where an address in memory is in the file.
    fn place(&self, module: &Module, address: u64) -> SymbolKey {
        let from =
            |base: u64, first: u64| (ADDRESS, address.wrapping_sub(base).wrapping_add(first));
        match module.placed {
            Placed::Image(base) => from(base, self.segments.first),
            // Offsets in the file that was mapped are none in another one. What was mapped was
            // there to be executed.
            Placed::Part(_) if self.is_separate => from(module.begin, self.segments.executed),
            Placed::Part(offset) => (
                OFFSET,
                address.wrapping_sub(module.begin).wrapping_add(offset),
            ),
        }
    }

    /// What is to be added to addresses in memory to get those in the file.
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

    /// By a file, if it is of a kind that tells anything.
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

/// The function itself last, before it what was put into it, outermost last.
fn frames(symbol: &Sym<'_>) -> Vec<Frame> {
    // Each one's line is where the next inner one is called, the innermost's where the address is.
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
