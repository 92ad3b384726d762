//! Attributes the event records of kernel traces to interrupts, by the rule of the reports.

use std::collections::HashMap;

use tracebraid_ctf::event::Event;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{Innermost, InterruptStep, Interrupts};
use tracebraid_kernel_model::{Body, KernelEvent, KernelModel};

/// Interrupts in progress on all CPUs. Must receive all event records in the order of time.
pub(crate) struct Interrupted {
    model: KernelModel,
    /// By trace and CPU.
    cpus: HashMap<(usize, u64), Interrupts>,
}

impl Interrupted {
    pub(crate) fn new(set: &TraceSet) -> Interrupted {
        Interrupted {
            model: KernelModel::new(set),
            cpus: HashMap::new(),
        }
    }

    /// Name of the innermost interrupt on the event record's CPU; `None` if the thread itself runs.
    /// The event records at the start and the end of an interrupt belong to the interrupt.
    pub(crate) fn see(
        &mut self,
        trace: usize,
        class: usize,
        event: &mut Event<'_>,
        cpu: u64,
    ) -> Option<String> {
        let now = self.cpus.entry((trace, cpu)).or_default();
        let before = now.innermost();
        let stream = self.model.traces.get(trace)?.streams.get(class)?;
        let mut after = before;
        if let Some(model) = stream.event(event.class_index) {
            if let KernelEvent::Switch(_) = model.event {
                *now = Interrupts::default();
                return None;
            }
            if let Some(step) =
                InterruptStep::of(&model.event, &mut Body::new(event.body, event.slots))
            {
                now.step(step);
                if step.begins() {
                    after = now.innermost();
                }
            }
        }
        after.map(Innermost::label)
    }
}
