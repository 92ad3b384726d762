//! One process: what is mapped where, and its stacks by names.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tracebraid_symbols::{AddressSpace, BuildId, Module, Placed, Symbols};

use crate::fields::Fields;

/// Kinds of events that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    BuildId,
    Unload,
    State,
    Cpu,
    Wait,
}

impl Kind {
    /// Of an event class of that name.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "lttng_ust_lib:load" => Kind::Load,
            "lttng_ust_lib:build_id" => Kind::BuildId,
            "lttng_ust_lib:unload" => Kind::Unload,
            "tracebraid:stacks_state" => Kind::State,
            "tracebraid:cpu_stack" => Kind::Cpu,
            "tracebraid:syscall_stack" => Kind::Wait,
            _ => return None,
        })
    }
}

/// A stack that was met: the innermost function first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) functions: Vec<String>,
    /// It is of a wait of so many nanoseconds; else of one more period of CPU time.
    pub(crate) wait_ns: Option<u64>,
}

/// What is known of a process by now.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    space: AddressSpace,
    /// By first address: modules of which more is to be told.
    known: HashMap<u64, Module>,
    /// Names at addresses, while nothing is mapped or taken away.
    names: HashMap<u64, Vec<String>>,
    /// Nanoseconds of CPU time from one sample to the next.
    pub(crate) period_ns: u64,
}

impl Mapped {
    /// An event; gives the stack that it tells of.
    pub(crate) fn event(&mut self, kind: Kind, fields: &Fields, symbols: &mut Symbols) -> Option<Sample> {
        match kind {
            Kind::Load => self.load(fields),
            Kind::BuildId => self.build_id(fields),
            Kind::Unload => {
                let module = self.known.remove(&fields.integer("baddr")?)?;
                self.space.unload(module.begin, module.end);
                self.names.clear();
                None
            }
            Kind::State => {
                self.period_ns = fields.integer("period_ns")?;
                None
            }
            Kind::Cpu => Some(self.sample(fields, None, symbols)),
            Kind::Wait => Some(self.sample(fields, fields.integer("wait_ns"), symbols)),
        }
    }

    fn load(&mut self, fields: &Fields) -> Option<Sample> {
        let (begin, size) = (fields.integer("baddr")?, fields.integer("memsz")?);
        self.put(Module {
            begin,
            end: begin.checked_add(size)?,
            placed: Placed::Image(begin),
            path: PathBuf::from(std::ffi::OsStr::from_bytes(&fields.text)),
            build_id: None,
        })
    }

    fn build_id(&mut self, fields: &Fields) -> Option<Sample> {
        let module = self.known.get(&fields.integer("baddr")?)?.clone();
        let bytes = fields.array.iter().map(|&byte| byte as u8).collect();
        self.put(Module {
            build_id: Some(BuildId(bytes)),
            ..module
        })
    }

    fn put(&mut self, module: Module) -> Option<Sample> {
        self.space.load(module.clone());
        self.known.insert(module.begin, module);
        self.names.clear();
        None
    }

    fn sample(&mut self, fields: &Fields, wait_ns: Option<u64>, symbols: &mut Symbols) -> Sample {
        let mut functions = Vec::new();
        for (place, &address) in fields.array.iter().enumerate() {
            // All but the innermost are where calls return to: the call itself is before that.
            let asked = if place == 0 {
                address
            } else {
                address.wrapping_sub(1)
            };
            let names = self
                .names
                .entry(asked)
                .or_insert_with(|| names(&self.space, symbols, asked));
            functions.extend_from_slice(names);
        }
        Sample { functions, wait_ns }
    }
}

/// Functions at an address, the innermost first; without any, the module, or the address.
fn names(space: &AddressSpace, symbols: &mut Symbols, address: u64) -> Vec<String> {
    let Some(module) = space.module(address) else {
        return vec![format!("[{address:#x}]")];
    };
    let frames = symbols.frames(module, address);
    if frames.is_empty() {
        let file = module.path.file_name().unwrap_or(module.path.as_os_str());
        return vec![format!(
            "[{}+{:#x}]",
            file.to_string_lossy(),
            address - module.begin
        )];
    }
    frames.into_iter().map(|frame| frame.function).collect()
}
