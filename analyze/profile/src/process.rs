//! The trace of a process that took its own stacks.

use tracebraid_ctf::trace::Trace;
use tracebraid_symbols::{Module, Placed};

use crate::events::{EventRole, Sample};
use crate::fields::Fields;
use crate::mapped::{Around, Beside, FindBeside, Mapped, module};
use crate::naming::Naming;
use crate::quality::{Limits, StackShape};
use crate::{Missing, Process};

/// State of the process up to the current event.
#[derive(Clone, Debug)]
pub(crate) struct OwnStacks {
    process: Process,
    pub(crate) mapped: Mapped,
    /// CPU time from one sample to the next, in nanoseconds.
    period_ns: u64,
    limits: Limits,
    /// Why stacks of CPU time and of waits are missing, as `errno`; 0 if they are not.
    errors: [i32; 2],
}

/// The module in an event of the process's own trace.
pub(crate) fn image(fields: &Fields) -> Option<Module> {
    module(fields, Placed::Image)
}

impl OwnStacks {
    /// The process of a trace.
    pub(crate) fn of(trace: &Trace, beside: &FindBeside) -> OwnStacks {
        let process = Process::of(trace);
        // The process id is optional in the trace.
        let pid = process.pid.and_then(|pid| u32::try_from(pid).ok());
        OwnStacks::new(process, beside(pid.unwrap_or(0)))
    }

    pub(crate) fn new(process: Process, beside: Beside) -> OwnStacks {
        OwnStacks {
            process,
            mapped: Mapped::new(beside),
            period_ns: 0,
            limits: Limits::default(),
            errors: [0; 2],
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Kinds of stacks that could not be taken.
    pub(crate) fn errors(&self) -> impl Iterator<Item = Missing> {
        let of = |(&error, waits)| (error > 0).then_some(Missing { waits, error });
        self.errors.iter().zip([false, true]).filter_map(of)
    }

    /// Processes an event; returns its stack, if it has one.
    pub(crate) fn event(
        &mut self,
        kind: EventRole,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        match kind {
            EventRole::OwnCpu => return Some(self.sample(fields, None, naming)),
            EventRole::OwnWait => {
                return Some(self.sample(fields, fields.integer("wait_ns"), naming));
            }
            EventRole::Load => self.mapped.load(image(fields)?),
            EventRole::BuildId => self
                .mapped
                .identify(fields.integer("baddr")?, fields.bytes("build_id")),
            EventRole::Unload => self.mapped.unload(fields.integer("baddr")?),
            EventRole::OwnState => {
                self.limits = Limits::of(fields);
                self.period_ns = fields.integer("period_ns")?;
                self.errors = ["cpu_error", "wait_error"]
                    .map(|name| fields.integer(name).unwrap_or(0) as i32);
            }
            _ => {}
        }
        None
    }

    fn sample(&mut self, fields: &Fields, wait_ns: Option<u64>, naming: &mut Naming<'_>) -> Sample {
        let addresses = fields.array("callstack_user");
        Sample {
            // The caller takes the thread from the packet.
            tid: None,
            process: self.process.clone(),
            functions: self.mapped.functions(addresses, &Around::default(), naming),
            kernel: 0,
            wait_ns,
            period_ns: self.period_ns,
            shape: StackShape::of(fields).map(|shape| (shape, self.mapped.runtime())),
        }
    }
}
