//! Names for the addresses in event records, resolved while the records are read.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{Control, FoldError, Options};
use tracebraid_symbols::{AddressSpace, Symbols};

use crate::events::{EventOrigin, EventRole, StackSource};
use crate::fields::Fields;
use crate::how::How;
use crate::kinds::Kinds;
use crate::mapped::Around;
use crate::naming::{NameId, Naming};
use crate::process::OwnStacks;
use crate::profile::beside_in;
use crate::system::System;

/// Resolves addresses in event records. Queries must come in the order of time.
pub struct Addresses<'s> {
    naming: Naming<'s>,
    traces: HashMap<PathBuf, Known>,
}

/// Fields with addresses of code: of a function or an instruction, and of the instruction to which
/// a call returns.
const EXACT: [&str; 2] = ["addr", "ip"];
const RETURNS: &str = "call_site";
/// Fields with call stacks.
const PROGRAMS: &str = "callstack_user";
const KERNELS: &str = "callstack_kernel";

/// A field and the names of its addresses, the innermost function first.
pub type Named<'a> = (&'static str, Vec<&'a str>);

/// Mappings of a trace.
struct Known {
    teller: Teller,
    /// Events of mappings that have not been processed yet.
    rest: VecDeque<(EventOrigin, EventRole, Fields)>,
}

enum Teller {
    /// User-space traces: programs by process id if the events contain it, as in buffers that
    /// processes share.
    Programs(Box<OwnStacks>, HashMap<Option<u64>, Program>),
    Kernel(Box<System>),
}

#[derive(Default)]
struct Program {
    own: Option<OwnStacks>,
    /// Final mappings: an event of another thread may precede the event that records its module.
    later: AddressSpace,
}

/// Field with the process id of an event.
const PID: &str = "vpid";

impl<'s> Addresses<'s> {
    /// Reads the loaded modules of all traces that contain them. Maps of just-in-time compilers are
    /// searched for in `maps`, and then above the traces.
    ///
    /// # Errors
    /// If the pass is cancelled.
    pub fn new(
        set: &TraceSet,
        symbols: &'s mut Symbols,
        maps: &[PathBuf],
        how: (Options, &Control),
    ) -> Result<Addresses<'s>, FoldError> {
        let mut traces = HashMap::new();
        for trace in &set.traces {
            if let Some(key) = trace.paths.first()
                && let Some(known) = Known::new(set, trace, maps, how)?
            {
                traces.insert(key.clone(), known);
            }
        }
        Ok(Addresses {
            naming: Naming::new(symbols),
            traces,
        })
    }

    /// True if no trace contains loaded modules.
    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// The names of an event record's addresses, by field.
    pub fn names(
        &mut self,
        trace: &Trace,
        time: Timestamp,
        event: &mut Event<'_>,
    ) -> Vec<Named<'_>> {
        let key = trace.paths.first();
        let Some(known) = key.and_then(|key| self.traces.get_mut(key)) else {
            return Vec::new();
        };
        let fields = Fields::of(event);
        known.pass(time, &mut self.naming);
        let found = known.names(&fields, &mut self.naming);
        let naming = &self.naming;
        let named = |(field, ids): (_, Vec<NameId>)| {
            (field, ids.iter().map(|&id| naming.name(id)).collect())
        };
        found.into_iter().map(named).collect()
    }

    /// The function at an address, skipping functions inlined into it. Programs are identified by
    /// the process id in event records of shared buffers.
    pub fn function(
        &mut self,
        trace: &Trace,
        time: Timestamp,
        program: Option<u64>,
        address: u64,
    ) -> Option<&str> {
        let key = trace.paths.first()?;
        let known = self.traces.get_mut(key)?;
        known.pass(time, &mut self.naming);
        let Teller::Programs(new, programs) = &mut known.teller else {
            return None;
        };
        let program = programs.get_mut(&program)?;
        let own = program.own.get_or_insert_with(|| (**new).clone());
        let ids = own
            .mapped
            .functions(&[address], &Around::with(&program.later), &mut self.naming);
        // Inlined functions precede the function that contains them.
        ids.last().map(|&id| self.naming.name(id))
    }
}

impl Known {
    fn new(
        set: &TraceSet,
        trace: &Trace,
        maps: &[PathBuf],
        how: How<'_>,
    ) -> Result<Option<Known>, FoldError> {
        let kinds = Kinds::new(trace).without_stacks();
        let beside = beside_in(maps, trace);
        let teller = if kinds.any(|kind| kind == EventRole::Load) {
            Teller::Programs(Box::new(OwnStacks::of(trace, &beside)), HashMap::new())
        } else if kinds.any(|kind| matches!(kind, EventRole::MapLoad | EventRole::Symbol)) {
            Teller::Kernel(Box::new(System::new(beside, trace, &kinds)))
        } else {
            return Ok(None);
        };
        let mut known = Known {
            teller,
            rest: VecDeque::new(),
        };
        kinds.read(set, trace, how, |place, kind, fields| {
            known.learn(kind, &fields);
            known.rest.push_back((*place, kind, fields));
        })?;
        Ok(Some(known))
    }

    fn learn(&mut self, kind: EventRole, fields: &Fields) {
        match &mut self.teller {
            Teller::Kernel(system) => _ = system.learn(kind, fields),
            Teller::Programs(_, programs) => {
                let program = programs.entry(fields.integer(PID)).or_default();
                if let (EventRole::Load, Some(module)) = (kind, crate::process::image(fields)) {
                    program.later.load(module);
                }
            }
        }
    }

    /// Processes mappings up to a time.
    fn pass(&mut self, time: Timestamp, naming: &mut Naming<'_>) {
        while self
            .rest
            .front()
            .is_some_and(|(place, ..)| place.time <= time)
        {
            let Some((place, kind, fields)) = self.rest.pop_front() else {
                return;
            };
            match &mut self.teller {
                Teller::Programs(new, programs) => {
                    let program = programs.entry(fields.integer(PID)).or_default();
                    let own = program.own.get_or_insert_with(|| (**new).clone());
                    own.event(kind, &fields, naming);
                }
                Teller::Kernel(system) => _ = system.event(&place, kind, &fields, naming),
            }
        }
    }

    fn names(
        &mut self,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Vec<(&'static str, Vec<NameId>)> {
        let mut found = Vec::new();
        match &mut self.teller {
            Teller::Programs(new, programs) => {
                let Some(program) = programs.get_mut(&fields.integer(PID)) else {
                    return found;
                };
                let own = program.own.get_or_insert_with(|| (**new).clone());
                let mut name = |field, addresses: &[u64]| {
                    let around = Around::with(&program.later);
                    let ids = own.mapped.functions(addresses, &around, naming);
                    found.push((field, ids));
                };
                for field in EXACT {
                    if let Some(address) = fields.integer(field) {
                        name(field, &[address]);
                    }
                }
                // A return address: the call is the instruction before it.
                if let Some(address) = fields.integer(RETURNS) {
                    name(RETURNS, &[address.wrapping_sub(1)]);
                }
                if fields.has_array(PROGRAMS) {
                    name(PROGRAMS, fields.array(PROGRAMS));
                }
            }
            Teller::Kernel(system) => {
                for field in [KERNELS, PROGRAMS] {
                    if fields.has_array(field) {
                        let ids = system.functions(field == KERNELS, fields, naming);
                        found.push((field, ids));
                    }
                }
            }
        }
        found
    }
}
