//! Functions, files and lines of addresses, by blazesym.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};

use object::elf::PF_X;
use object::{Object, ObjectSegment, ReadCache, SegmentFlags};

use crate::module::BuildId;
use crate::{Module, PerfMap};

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
    /// By file and build id: what tells about it, if anything does.
    sources: HashMap<(PathBuf, Option<BuildId>), Option<Told>>,
}

/// What tells about a module.
#[derive(Clone, Debug)]
enum Told {
    /// The file that was mapped.
    Itself(PathBuf),
    /// Debug information of it, which lacks what was mapped: the virtual address of the part that is executed.
    Debug(PathBuf, u64),
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
        let symbolizer = Symbolizer::builder()
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(true)
            .set_debug_dirs(Some(&directories))
            .build();
        Symbols {
            symbolizer,
            directories,
            sources: HashMap::new(),
        }
    }

    /// The functions at an address in a module, the innermost first; empty if nothing is known.
    ///
    /// Of a frame that waits for a call to return, the address to ask for is one less than that which it returns to.
    pub fn frames(&mut self, module: &Module, address: u64) -> Vec<Frame> {
        let (path, input) = match self.source(module) {
            Some(Told::Itself(path)) => (path, Input::FileOffset(module.file_offset(address))),
            Some(Told::Debug(path, begin)) => {
                let offset = address.wrapping_sub(module.begin);
                (path, Input::VirtOffset(begin.wrapping_add(offset)))
            }
            None => return Vec::new(),
        };
        let source = Source::Elf(Elf::new(path));
        match self.symbolizer.symbolize_single(&source, input) {
            Ok(Symbolized::Sym(symbol)) => frames(&symbol),
            // Of a file that is damaged nothing is known either.
            Ok(Symbolized::Unknown(_)) | Err(_) => Vec::new(),
        }
    }

    /// The function that a just-in-time compiler made there.
    pub fn compiled(map: &PerfMap, address: u64) -> Option<Frame> {
        Some(Frame {
            function: map.name(address)?.to_owned(),
            line: None,
            is_inlined: false,
        })
    }

    /// What tells about a module: debug information by its build id, or else the file, if it is still the same.
    fn source(&mut self, module: &Module) -> Option<Told> {
        let key = (module.path.clone(), module.build_id.clone());
        let directories = &self.directories;
        let found = self
            .sources
            .entry(key)
            .or_insert_with(|| debug_file(directories, module).or_else(|| itself(module)));
        found.clone()
    }
}

fn itself(module: &Module) -> Option<Told> {
    let is_same = module.build_id.is_none() || build_id(&module.path) == module.build_id;
    (is_same && module.path.is_file()).then(|| Told::Itself(module.path.clone()))
}

fn debug_file(directories: &[PathBuf], module: &Module) -> Option<Told> {
    let name = module.build_id.as_ref()?.debug_file()?;
    let files = directories.iter().map(|directory| directory.join(&name));
    let file = files.into_iter().find(|file| build_id(file) == module.build_id)?;
    let begin = executed(&file)?;
    Some(Told::Debug(file, begin))
}

/// The page at which the segment that is executed begins, as a virtual address.
fn executed(path: &Path) -> Option<u64> {
    const PAGE: u64 = 4096;
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let is_executed = |segment: &object::Segment<'_, '_, _>| matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
    let segment = file.segments().find(is_executed)?;
    Some(segment.address() / PAGE * PAGE)
}

fn build_id(path: &Path) -> Option<BuildId> {
    let found = read_elf_build_id(&path).ok().flatten()?;
    Some(BuildId(found.to_vec()))
}

/// The function itself last, before it what was put into it, outermost last.
fn frames(symbol: &Sym<'_>) -> Vec<Frame> {
    // Each one's line is where the next inner one is called, the innermost's where the address is.
    let mut frames = vec![Frame {
        function: symbol.name.to_string(),
        line: symbol.code_info.as_deref().map(line),
        is_inlined: false,
    }];
    for inlined in &symbol.inlined {
        frames.push(Frame {
            function: inlined.name.to_string(),
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
