//! What is mapped where in a process, and the names of the functions there.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tracebraid_symbols::{AddressSpace, BuildId, Module, PerfMap, Placed, Symbols};

use crate::fields::Fields;
use crate::naming::{NameId, Naming};

/// What is known of a process by now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapped {
    space: AddressSpace,
    /// By first address: modules of which more is to be told.
    known: HashMap<u64, Module>,
    /// Functions that an interpreter has no machine code for, by the addresses of what it keeps of them.
    interpreted: BTreeMap<u64, String>,
    /// Names at addresses, while nothing is mapped or taken away.
    names: HashMap<u64, Vec<NameId>>,
    beside: Beside,
}

/// What stands beside a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// What compilers made while the process ran.
    pub(crate) compiled: Option<PerfMap>,
    /// The library that the kernel gives each program, which is no file elsewhere.
    pub(crate) vdso: Option<PathBuf>,
}

/// What a process has in the end, which a trace that lacks its beginning shows only there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Later<'l> {
    pub(crate) space: Option<&'l AddressSpace>,
    pub(crate) interpreted: Option<&'l BTreeMap<u64, String>>,
}

impl<'l> Later<'l> {
    /// Modules alone.
    pub(crate) fn modules(space: impl Into<Option<&'l AddressSpace>>) -> Later<'l> {
        Later {
            space: space.into(),
            interpreted: None,
        }
    }
}

/// Finds what stands beside a trace for the process of that number.
pub(crate) type FindBeside = dyn Fn(u32) -> Beside;

/// What that library is called: by the loader, and by the kernel.
const VDSO: [&str; 2] = ["linux-vdso.so.1", "[vdso]"];

impl Mapped {
    /// Nothing is mapped yet.
    pub(crate) fn new(beside: Beside) -> Mapped {
        Mapped {
            beside,
            ..Mapped::default()
        }
    }

    /// What a child has that is forked now. What was compiled before stands in the parent's map only, if the child
    /// makes one of its own.
    pub(crate) fn forked(&self, beside: Beside) -> Mapped {
        let compiled = beside.compiled.or_else(|| self.beside.compiled.clone());
        Mapped {
            space: self.space.clone(),
            known: self.known.clone(),
            interpreted: self.interpreted.clone(),
            names: HashMap::new(),
            beside: Beside { compiled, ..beside },
        }
    }

    /// A module is mapped, as a whole or in parts.
    pub(crate) fn load(&mut self, mut module: Module) {
        if let Some(vdso) = &self.beside.vdso
            && VDSO.iter().any(|name| module.path.as_os_str() == *name)
        {
            module.path.clone_from(vdso);
        }
        self.space.load(module.clone());
        self.known.insert(module.begin, module);
        self.names.clear();
    }

    /// An interpreter keeps a function there.
    pub(crate) fn interpret(&mut self, address: u64, name: String) {
        self.interpreted.insert(address, name);
        self.names.clear();
    }

    /// The build id of the module that begins there becomes known.
    pub(crate) fn identify(&mut self, begin: u64, id: Vec<u8>) {
        if let Some(module) = self.known.get(&begin).cloned() {
            self.load(Module {
                build_id: Some(BuildId(id)),
                ..module
            });
        }
    }

    /// The module that begins there is gone.
    pub(crate) fn unload(&mut self, begin: u64) {
        if let Some(module) = self.known.remove(&begin) {
            self.space.unload(module.begin, module.end);
            self.names.clear();
        }
    }

    /// The functions of a stack, the innermost first.
    pub(crate) fn functions(
        &mut self,
        addresses: &[u64],
        later: Later<'_>,
        naming: &mut Naming<'_>,
    ) -> Vec<NameId> {
        // A chain of frame pointers may end in what is no address.
        let is_none = |address: &&u64| matches!(**address, 0 | u64::MAX);
        let count = addresses.len() - addresses.iter().rev().take_while(is_none).count();
        let addresses = addresses.get(..count).unwrap_or_default();
        let mut functions = Vec::with_capacity(count);
        for (place, &address) in addresses.iter().enumerate() {
            // All but the innermost are where calls return to: the call itself is before that.
            let asked = address.wrapping_sub(u64::from(place != 0));
            if !self.names.contains_key(&asked) {
                let names = self.names_at(asked, later, naming.symbols);
                let names = names.into_iter().map(|name| naming.id(name)).collect();
                self.names.insert(asked, names);
            }
            functions.extend(self.names.get(&asked).into_iter().flatten());
        }
        functions
    }

    /// Functions at an address, the innermost first; without any, the module, or the address.
    fn names_at(&self, address: u64, later: Later<'_>, symbols: &mut Symbols) -> Vec<String> {
        let functions = [Some(&self.interpreted), later.interpreted].into_iter().flatten();
        if let Some(name) = functions
            .filter_map(|functions| interpreted(functions, address))
            .next()
        {
            return vec![name.to_owned()];
        }
        let module = self.space.module(address);
        let module = module.or_else(|| later.space?.module(address));
        let is_file = module.is_some_and(|module| module.path.is_absolute() && !is_anonymous(module));
        if !is_file && let Some(name) = self.beside.compiled.as_ref().and_then(|map| map.name(address)) {
            return vec![name.to_owned()];
        }
        let Some(module) = module else {
            return vec![format!("[{address:#x}]")];
        };
        let names = symbols.names(module, address);
        if names.is_empty() {
            let file = module.path.file_name().unwrap_or(module.path.as_os_str());
            // One row for all of a function, even if it has no name.
            let offset = symbols.place(module, address);
            return vec![format!("[{}+{offset:#x}]", file.to_string_lossy())];
        }
        names
    }
}

/// Bytes that what an interpreter keeps of a function has at least: an address in a stack may be one past the first.
const INTERPRETED_BYTES: u64 = 8;

/// The interpreted function at an address.
pub(crate) fn interpreted(functions: &BTreeMap<u64, String>, address: u64) -> Option<&str> {
    let (begin, name) = functions.range(..=address).next_back()?;
    (address - begin < INTERPRETED_BYTES).then_some(name)
}

/// The name of an interpreted function in an event: with its file and line, since many have the same.
pub(crate) fn interpreted_name(fields: &Fields) -> Option<(u64, String)> {
    let address = fields.integer("addr")?;
    let text = |name| String::from_utf8_lossy(fields.text(name)).into_owned();
    let (name, path) = (text("name"), text("path"));
    let file = path.rsplit('/').next().unwrap_or_default();
    let line = fields.integer("line")? as i32;
    Some((address, format!("{name} ({file}:{line})")))
}

/// What the kernel calls memory that is no file's.
fn is_anonymous(module: &Module) -> bool {
    let path = module.path.as_os_str().as_bytes();
    path.starts_with(b"//anon") || path.starts_with(b"/memfd:") || path.starts_with(b"/dev/zero")
}

/// The module that an event tells of, placed as that event says.
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
