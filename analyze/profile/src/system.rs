//! The trace of a kernel, with stacks of processes that were not instrumented.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::Trace;
use tracebraid_symbols::{AddressSpace, Placed};

use crate::KERNEL_SUFFIX;
use crate::Process;
use crate::events::{EventOrigin, EventRole, Sample, StackSource};
use crate::fields::Fields;
use crate::kinds::Kinds;
use crate::mapped::{Around, FindBeside, Mapped, MappedFiles, interpreted_name, module};
use crate::naming::{NameId, Naming};
use crate::quality::{Limits, Runtime, StackShape};

/// State of the machine up to the current event.
pub(crate) struct System {
    processes: HashMap<u32, Mapped>,
    /// Final mappings of processes. A trace whose beginning was overwritten lists the initial
    /// mappings only at its end.
    later: HashMap<u32, AddressSpace>,
    /// Interpreted functions of processes at the end, for the same reason.
    later_interpreted: HashMap<u32, BTreeMap<u64, String>>,
    /// Functions of the kernel by first address: the address after the function, and its name.
    kernel: BTreeMap<u64, (u64, String)>,
    /// Cache of names by address in the kernel.
    known: HashMap<u64, NameId>,
    /// CPU time from one sample to the next, in nanoseconds.
    period_ns: u64,
    /// Finds the files beside the trace for a process.
    beside: Box<FindBeside>,
    /// Identities of files without build ids, if the recorder writes them.
    files: Option<MappedFiles>,
    /// Processes of the trace may still run on this machine.
    is_of_this_boot: bool,
    limits: Limits,
}

impl System {
    /// Empty state for a trace with these roles of events.
    pub(crate) fn new(beside: Box<FindBeside>, trace: &Trace, kinds: &Kinds) -> System {
        System {
            files: kinds
                .any(|kind| kind == EventRole::MapFile)
                .then(MappedFiles::default),
            is_of_this_boot: is_of_this_boot(trace),
            limits: Limits::default(),
            processes: HashMap::new(),
            later: HashMap::new(),
            later_interpreted: HashMap::new(),
            kernel: BTreeMap::new(),
            known: HashMap::new(),
            period_ns: 0,
            beside,
        }
    }

    fn sample(
        &mut self,
        fields: &Fields,
        wait_ns: Option<u64>,
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        let pid = pid(fields, "pid")?;
        let shape = self.shape(pid, fields);
        let mut functions = self.functions(true, fields, naming);
        let kernel = functions.len();
        functions.extend(self.functions(false, fields, naming));
        Some(Sample {
            tid: fields.integer("tid").map(|tid| i64::from(tid as i32)),
            process: Process {
                pid: Some(i64::from(pid)),
                name: String::from_utf8_lossy(fields.text("comm")).into_owned(),
                ..Process::default()
            },
            functions,
            kernel,
            wait_ns,
            period_ns: self.period_ns,
            shape,
        })
    }

    /// The shape of a stack. Threads of the kernel, which have no mappings, have no user-space
    /// stack.
    fn shape(&self, pid: u32, fields: &Fields) -> Option<(StackShape, Runtime)> {
        let mapped = self.processes.get(&pid).filter(|mapped| !mapped.is_empty());
        let later = self.later.get(&pid);
        let is_kernels =
            mapped.is_none() && later.is_none() && fields.array("callstack_user").is_empty();
        let of_later = || {
            let modules = later.into_iter().flat_map(AddressSpace::modules);
            modules
                .filter_map(|module| Runtime::of_file(&module.path))
                .last()
        };
        let runtime = mapped
            .map(Mapped::runtime)
            .or_else(of_later)
            .unwrap_or_default();
        StackShape::of(fields)
            .filter(|_| !is_kernels)
            .map(|shape| (shape, runtime))
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The kernel functions in an event's stack or, without any, those of the program.
    pub(crate) fn functions(
        &mut self,
        of_kernel: bool,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Vec<NameId> {
        if of_kernel {
            return self.kernel_functions(fields.array("callstack_kernel"), naming);
        }
        let Some(pid) = pid(fields, "pid") else {
            return Vec::new();
        };
        process(&mut self.processes, &self.beside, pid).functions(
            fields.array("callstack_user"),
            &Around {
                later: self.later.get(&pid),
                interpreted: self.later_interpreted.get(&pid),
                files: self.files.as_ref(),
                pid: self.is_of_this_boot.then_some(pid),
            },
            naming,
        )
    }

    /// Kernel functions with the suffix that flame graphs expect.
    fn kernel_functions(&mut self, addresses: &[u64], naming: &mut Naming<'_>) -> Vec<NameId> {
        let Self { kernel, known, .. } = self;
        let mut id = |&address: &u64| {
            *known.entry(address).or_insert_with(|| {
                let found = kernel.range(..=address).next_back();
                let found = found.filter(|(begin, (end, _))| address < *end || address == **begin);
                let name =
                    found.map_or_else(|| format!("[{address:#x}]"), |(_, (_, name))| name.clone());
                naming.id(format!("{name}{KERNEL_SUFFIX}"))
            })
        };
        addresses.iter().map(&mut id).collect()
    }
}

impl StackSource for System {
    fn learn(&mut self, kind: EventRole, fields: &Fields) -> Option<()> {
        match kind {
            EventRole::Symbol => {
                let (begin, size) = (fields.integer("addr")?, fields.integer("size")?);
                let name = String::from_utf8_lossy(fields.text("name")).into_owned();
                self.kernel.insert(begin, (begin.checked_add(size)?, name));
            }
            EventRole::MapLoad => {
                let module = part(fields)?;
                self.later
                    .entry(pid(fields, "pid")?)
                    .or_default()
                    .load(module);
            }
            EventRole::MapExec => {
                self.later.remove(&pid(fields, "pid")?);
            }
            EventRole::Interpreted => {
                let (address, name) = interpreted_name(fields)?;
                let functions = self
                    .later_interpreted
                    .entry(pid(fields, "pid")?)
                    .or_default();
                functions.insert(address, name);
            }
            EventRole::MapFile => self.files.get_or_insert_default().add(fields)?,
            EventRole::State => {
                self.limits = Limits::of(fields);
                self.period_ns = fields.integer("period_ns")?;
            }
            _ => {}
        }
        Some(())
    }

    fn event(
        &mut self,
        _: &EventOrigin,
        kind: EventRole,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        match kind {
            EventRole::Cpu => return self.sample(fields, None, naming),
            EventRole::Wait => return self.sample(fields, fields.integer("wait_ns"), naming),
            EventRole::MapLoad => {
                process(&mut self.processes, &self.beside, pid(fields, "pid")?).load(part(fields)?);
            }
            EventRole::Interpreted => {
                let (address, name) = interpreted_name(fields)?;
                process(&mut self.processes, &self.beside, pid(fields, "pid")?)
                    .interpret(address, name);
            }
            EventRole::MapFork => {
                let parent = self.processes.get(&pid(fields, "parent_pid")?)?;
                let pid = pid(fields, "pid")?;
                let child = parent.forked((self.beside)(pid));
                self.processes.insert(pid, child);
            }
            EventRole::MapExec => {
                self.processes.remove(&pid(fields, "pid")?);
            }
            _ => {}
        }
        None
    }
}

fn process<'p>(
    processes: &'p mut HashMap<u32, Mapped>,
    beside: &FindBeside,
    pid: u32,
) -> &'p mut Mapped {
    processes
        .entry(pid)
        .or_insert_with(|| Mapped::new(beside(pid)))
}

fn part(fields: &Fields) -> Option<tracebraid_symbols::Module> {
    let offset = fields.integer("offset")?;
    module(fields, |_| Placed::Part(offset))
}

/// True if a trace was recorded on this machine since it was booted.
fn is_of_this_boot(trace: &Trace) -> bool {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot: Option<u128> = u128::from_str_radix(&boot.trim().replace('-', ""), 16).ok();
    let clocks = &trace.layout.class.clocks;
    boot.is_some_and(|boot| {
        clocks
            .iter()
            .any(|clock| clock.uuid == Some(boot.to_be_bytes()))
    })
}

fn pid(fields: &Fields, name: &str) -> Option<u32> {
    // A signed field is given as its bits.
    fields.integer(name).map(|pid| pid as u32)
}
