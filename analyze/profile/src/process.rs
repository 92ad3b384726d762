//! The trace of a process that took its own stacks.

use tracebraid_symbols::Placed;

use crate::Process;
use crate::events::{Kind, Sample};
use crate::fields::Fields;
use crate::mapped::{Beside, Mapped, module};
use crate::naming::Naming;

/// What is known of it by now.
#[derive(Debug)]
pub(crate) struct OwnStacks {
    process: Process,
    mapped: Mapped,
    /// Nanoseconds of CPU time from one sample to the next.
    period_ns: u64,
}

impl OwnStacks {
    /// Of that process.
    pub(crate) fn new(process: Process, beside: Beside) -> OwnStacks {
        OwnStacks {
            process,
            mapped: Mapped::new(beside),
            period_ns: 0,
        }
    }

    /// An event; gives the stack that it tells of.
    pub(crate) fn event(&mut self, kind: Kind, fields: &Fields, naming: &mut Naming<'_>) -> Option<Sample> {
        match kind {
            Kind::OwnCpu => return Some(self.sample(fields, None, naming)),
            Kind::OwnWait => return Some(self.sample(fields, fields.integer("wait_ns"), naming)),
            Kind::Load => self.mapped.load(module(fields, Placed::Image)?),
            Kind::BuildId => self
                .mapped
                .identify(fields.integer("baddr")?, fields.bytes("build_id")),
            Kind::Unload => self.mapped.unload(fields.integer("baddr")?),
            Kind::OwnState => self.period_ns = fields.integer("period_ns")?,
            _ => {}
        }
        None
    }

    fn sample(&mut self, fields: &Fields, wait_ns: Option<u64>, naming: &mut Naming<'_>) -> Sample {
        let addresses = fields.array("callstack_user");
        Sample {
            process: self.process.clone(),
            functions: self.mapped.functions(addresses, None, naming),
            wait_ns,
            period_ns: self.period_ns,
        }
    }
}
