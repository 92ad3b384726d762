//! The mappings of a process, and the names of the functions in them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tracebraid_symbols::{AddressSpace, BuildId, FileIdentity, Module, PerfMap, Placed, Symbols};

use crate::fields::Fields;
use crate::nameless::{Nameless, WhyNameless};
use crate::naming::{NameId, Naming};
use crate::own;
use crate::quality::Runtime;

/// The mappings of a process up to the current event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapped {
    space: AddressSpace,
    /// By first address: modules whose build id may still follow.
    known: HashMap<u64, Module>,
    /// Interpreted functions, by the address of the interpreter's object for the function.
    interpreted: BTreeMap<u64, String>,
    /// Cache of names by address; cleared when mappings change.
    names: HashMap<u64, NamesAt>,
    beside: Beside,
    runtime: Runtime,
}

#[derive(Clone, Debug, Default)]
struct NamesAt {
    ids: Vec<NameId>,
    /// Set if the frame is in a file and has no name.
    nameless: Option<Nameless>,
    /// In a library of tracebraid: the call that the frame stands for, if it has called another
    /// library.
    own: Option<Option<NameId>>,
}

/// Facts about a process other than its current mappings.
#[derive(Clone, Copy, Default)]
pub(crate) struct Around<'a> {
    /// Mappings at the end of the trace.
    pub(crate) later: Option<&'a AddressSpace>,
    /// Interpreted functions at the end of the trace.
    pub(crate) interpreted: Option<&'a BTreeMap<u64, String>>,
    /// Identities of files without build ids, if the tracer records them.
    pub(crate) files: Option<&'a MappedFiles>,
    /// Process id, if the process may still run on this machine.
    pub(crate) pid: Option<u32>,
}

impl<'a> Around<'a> {
    /// Only the final mappings are known.
    pub(crate) fn with(later: &'a AddressSpace) -> Around<'a> {
        Around {
            later: Some(later),
            ..Around::default()
        }
    }
}

/// Identities of mapped files without build ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappedFiles(HashMap<PathBuf, Option<FileIdentity>>);

impl MappedFiles {
    /// Adds the identity of a file from an event. A file that changed while it was recorded loses
    /// its identity: either version could be mapped.
    pub(crate) fn add(&mut self, fields: &Fields) -> Option<()> {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(fields.text("path")));
        let identity = FileIdentity {
            size: fields.integer("size")?,
            mtime_ns: fields.integer("mtime_ns")? as i64,
            hash: fields.integer("hash")?,
        };
        let known = self.0.entry(path).or_insert(Some(identity));
        *known = known.filter(|known| *known == identity);
        Some(())
    }

    fn get(&self, path: &Path) -> Option<&FileIdentity> {
        self.0.get(path)?.as_ref()
    }
}

/// Files beside a trace that describe a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Functions that a just-in-time compiler wrote.
    pub(crate) compiled: Option<PerfMap>,
    /// The vDSO, which the kernel maps into each program and which is not a file of its own.
    pub(crate) vdso: Option<PathBuf>,
}

/// Finds the files beside a trace for a process id.
pub(crate) type FindBeside = dyn Fn(u32) -> Beside;

/// Names of the vDSO: the loader's and the kernel's.
const VDSO: [&str; 2] = ["linux-vdso.so.1", "[vdso]"];

impl Mapped {
    /// A process without mappings.
    pub(crate) fn new(beside: Beside) -> Mapped {
        Mapped {
            beside,
            ..Mapped::default()
        }
    }

    /// The mappings of a forked child. If the child has no map of compiled code, code compiled
    /// before the fork is in the parent's map only.
    pub(crate) fn forked(&self, beside: Beside) -> Mapped {
        let compiled = beside.compiled.or_else(|| self.beside.compiled.clone());
        Mapped {
            space: self.space.clone(),
            known: self.known.clone(),
            interpreted: self.interpreted.clone(),
            names: HashMap::new(),
            beside: Beside { compiled, ..beside },
            runtime: self.runtime,
        }
    }

    /// Maps a module, as a whole or in parts.
    pub(crate) fn load(&mut self, mut module: Module) {
        if let Some(vdso) = &self.beside.vdso
            && VDSO.iter().any(|name| module.path.as_os_str() == *name)
        {
            module.path.clone_from(vdso);
        }
        self.runtime = Runtime::of_file(&module.path).unwrap_or(self.runtime);
        self.space.load(module.clone());
        self.known.insert(module.begin, module);
        self.names.clear();
    }

    /// Registers an interpreted function at the address of its object.
    pub(crate) fn interpret(&mut self, address: u64, name: String) {
        self.interpreted.insert(address, name);
        self.names.clear();
    }

    /// Sets the build id of the module that begins at an address.
    pub(crate) fn identify(&mut self, begin: u64, id: Vec<u8>) {
        if let Some(module) = self.known.get(&begin).cloned() {
            self.load(Module {
                build_id: Some(BuildId(id)),
                ..module
            });
        }
    }

    /// Removes the module that begins at an address.
    pub(crate) fn unload(&mut self, begin: u64) {
        if let Some(module) = self.known.remove(&begin) {
            self.space.unload(module.begin, module.end);
            self.names.clear();
        }
    }

    pub(crate) fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// True for a thread of the kernel, or if the mappings are unknown.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The functions of a stack, the innermost first.
    pub(crate) fn functions(
        &mut self,
        addresses: &[u64],
        around: &Around<'_>,
        naming: &mut Naming<'_>,
    ) -> Vec<NameId> {
        // A chain of frame pointers may end in values that are not addresses.
        let is_none = |address: &&u64| matches!(**address, 0 | u64::MAX);
        let count = addresses.len() - addresses.iter().rev().take_while(is_none).count();
        let addresses = addresses.get(..count).unwrap_or_default();
        naming.nameless.add_frames(count);
        let mut functions = Vec::with_capacity(count);
        // A frame before this one is of no library of tracebraid.
        let mut is_in_others = false;
        for (place, &address) in addresses.iter().enumerate() {
            // All but the innermost are return addresses: the call is the instruction before.
            let asked = address.wrapping_sub(u64::from(place != 0));
            if !self.names.contains_key(&asked) {
                let (names, nameless) = self.names_at(asked, around, naming.symbols);
                let own = self.is_own(asked, around).then(|| {
                    let call = names.iter().find_map(|name| own::call(name));
                    call.map(|call| naming.id(call.to_owned()))
                });
                let ids = names.into_iter().map(|name| naming.id(name)).collect();
                self.names.insert(asked, NamesAt { ids, nameless, own });
            }
            if let Some(names) = self.names.get(&asked) {
                match names.own.filter(|_| is_in_others) {
                    Some(call) => {
                        functions.extend(call.filter(|call| functions.last() != Some(call)));
                    }
                    None => functions.extend(&names.ids),
                }
                is_in_others |= names.own.is_none();
                if let Some(nameless) = &names.nameless {
                    naming.nameless.add(nameless);
                }
            }
        }
        functions
    }

    /// True for an address in a library of tracebraid.
    fn is_own(&self, address: u64, around: &Around<'_>) -> bool {
        let module = self.space.module(address);
        let module = module.or_else(|| around.later?.module(address));
        let file = module.and_then(|module| module.path.file_name());
        file.is_some_and(own::is_own)
    }

    /// Functions at an address, the innermost first; without any, the module, or the address. Also
    /// the reason if the address is in a file and has no name.
    fn names_at(
        &self,
        address: u64,
        around: &Around<'_>,
        symbols: &mut Symbols,
    ) -> (Vec<String>, Option<Nameless>) {
        let functions = [Some(&self.interpreted), around.interpreted]
            .into_iter()
            .flatten();
        if let Some(name) = functions
            .filter_map(|functions| interpreted(functions, address))
            .next()
        {
            return (vec![name.to_owned()], None);
        }
        let module = self.space.module(address);
        let module = module.or_else(|| around.later?.module(address));
        let is_file =
            module.is_some_and(|module| module.path.is_absolute() && !is_anonymous(module));
        if !is_file
            && let Some(name) = self
                .beside
                .compiled
                .as_ref()
                .and_then(|map| map.name(address))
        {
            return (vec![name.to_owned()], None);
        }
        let Some(module) = module else {
            return (vec![format!("[{address:#x}]")], None);
        };
        let file = module.path.file_name().unwrap_or(module.path.as_os_str());
        let unnamed = |offset: u64| vec![format!("[{}+{offset:#x}]", file.to_string_lossy())];
        let recorded = match self.recorded(module, around, symbols) {
            Ok(recorded) => recorded,
            Err(why) => {
                let offset = match module.placed {
                    Placed::Part(offset) => offset,
                    Placed::Image(_) => 0,
                };
                let offset = address.wrapping_sub(module.begin).wrapping_add(offset);
                return (unnamed(offset), Some(Nameless::in_module(why, module)));
            }
        };
        let names = symbols.names(&recorded, address);
        if names.is_empty() {
            let why = why_nameless(&recorded, symbols);
            let nameless = why.map(|why| Nameless::in_module(why, module));
            // One row for the whole function, even if it has no name.
            return (unnamed(symbols.place(&recorded, address)), nameless);
        }
        (names, None)
    }

    /// The module with a file that is still as it was recorded: at its path or, if the process
    /// still runs, at that path in the file system of the process, which may be in a container.
    fn recorded<'m>(
        &self,
        module: &'m Module,
        around: &Around<'_>,
        symbols: &mut Symbols,
    ) -> Result<Cow<'m, Module>, WhyNameless> {
        let is_file = module.path.is_absolute() && !is_anonymous(module);
        if !is_file || self.beside.vdso.as_ref() == Some(&module.path) {
            return Ok(Cow::Borrowed(module));
        }
        let identity = around.files.map(|files| files.get(&module.path));
        let mut is_recorded = |module: &Module| match (&module.build_id, identity) {
            (Some(_), _) => symbols.knows(module),
            (None, None) => true,
            (None, Some(None)) => false,
            (None, Some(Some(identity))) => symbols.is_same(&module.path, identity),
        };
        if is_recorded(module) {
            return Ok(Cow::Borrowed(module));
        }
        let below = module.path.strip_prefix("/").ok();
        if let (Some(pid), Some(below)) = (around.pid, below) {
            let seen = Module {
                path: PathBuf::from(format!("/proc/{pid}/root")).join(below),
                ..module.clone()
            };
            if is_recorded(&seen) {
                return Ok(Cow::Owned(seen));
            }
        }
        Err(match File::open(&module.path) {
            Ok(_) => WhyNameless::Changed,
            Err(_) => WhyNameless::Missing,
        })
    }
}

/// Why a module has no name at an address; `None` for memory without a file, such as code compiled
/// at run time.
fn why_nameless(module: &Module, symbols: &mut Symbols) -> Option<WhyNameless> {
    if symbols.knows(module) {
        return Some(WhyNameless::Stripped);
    }
    let is_file = module.path.is_absolute() && !is_anonymous(module);
    if is_file && File::open(&module.path).is_ok() {
        return Some(WhyNameless::Stripped);
    }
    (is_file || is_in_memory(module)).then_some(WhyNameless::Missing)
}

/// Minimum size in bytes of the interpreter's object for a function: an address on a stack may be
/// one past its first byte.
const INTERPRETED_BYTES: u64 = 8;

pub(crate) fn interpreted(functions: &BTreeMap<u64, String>, address: u64) -> Option<&str> {
    let (begin, name) = functions.range(..=address).next_back()?;
    (address - begin < INTERPRETED_BYTES).then_some(name)
}

/// The name of an interpreted function in an event, with its file and line, since names alone are
/// ambiguous.
pub(crate) fn interpreted_name(fields: &Fields) -> Option<(u64, String)> {
    let address = fields.integer("addr")?;
    let text = |name| String::from_utf8_lossy(fields.text(name)).into_owned();
    let (name, path) = (text("name"), text("path"));
    let file = path.rsplit('/').next().unwrap_or_default();
    let line = fields.integer("line")? as i32;
    Some((address, format!("{name} ({file}:{line})")))
}

/// True for memory that the kernel does not attribute to a file.
fn is_anonymous(module: &Module) -> bool {
    const NAMES: [&[u8]; 4] = [b"//anon", b"/anon_hugepage", b"/dev/zero", b"/SYSV"];
    let path = module.path.as_os_str().as_bytes();
    is_in_memory(module) || NAMES.iter().any(|name| path.starts_with(name))
}

/// True for a file of `memfd_create`: a program that was never on a disk, or code that was compiled
/// at run time.
fn is_in_memory(module: &Module) -> bool {
    module.path.as_os_str().as_bytes().starts_with(b"/memfd:")
}

/// The module in an event, placed as the event states.
pub(crate) fn module(fields: &Fields, placed: impl FnOnce(u64) -> Placed) -> Option<Module> {
    let (begin, size) = (fields.integer("baddr")?, fields.integer("memsz")?);
    let build_id = fields.bytes("build_id");
    Some(Module {
        begin,
        end: begin.checked_add(size)?,
        placed: placed(begin),
        path: PathBuf::from(std::ffi::OsStr::from_bytes(fields.text("path"))),
        build_id: (!build_id.is_empty()).then_some(BuildId(build_id)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason why a module with this path has no names.
    fn why(path: &str) -> Option<WhyNameless> {
        let module = Module {
            begin: 0x1000,
            end: 0x2000,
            placed: Placed::Part(0),
            path: path.into(),
            build_id: None,
        };
        let mut symbols = Symbols::default();
        let naming = Naming::new(&mut symbols);
        let mut mapped = Mapped::default();
        mapped.load(module);
        let (_, nameless) = mapped.names_at(0x1010, &Around::default(), naming.symbols);
        nameless.map(|nameless| nameless.why)
    }

    #[test]
    fn frames_without_names_have_a_reason_if_they_are_of_a_file() {
        assert_eq!(why("/no/such/file"), Some(WhyNameless::Missing));
        assert_eq!(why("/bin/gone (deleted)"), Some(WhyNameless::Missing));
        assert_eq!(why("/memfd:program (deleted)"), Some(WhyNameless::Missing));
        assert_eq!(why("/etc/passwd"), Some(WhyNameless::Stripped));
        for memory in [
            "//anon",
            "/anon_hugepage (deleted)",
            "/dev/zero (deleted)",
            "/SYSV00000000 (deleted)",
            "[vdso]",
        ] {
            assert_eq!(why(memory), None, "{memory}");
        }
    }
}
