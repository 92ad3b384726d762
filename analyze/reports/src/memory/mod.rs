//! Memory: pages and objects of the kernel, page faults, the page cache, reclaiming, by thread.
//!
//! All of it is sums, of whoever runs where an event happens. `docs/reports-memory.md` defines each
//! number.

mod report;
mod sums;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::memory::PageStep;
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{Event, InOrder, Input, Packet, Rules, Running, Selection, Tasks};
use crate::report::Report;
use sums::{Sums, is_counted};

/// The analysis.
pub type MemoryAnalysis = InOrder<MemoryRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct MemoryRules {
    selection: Selection,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryPartial {
    tasks: Tasks<Sums>,
    /// By place of the thread.
    threads: Vec<Sums>,
    /// Of nobody who is known.
    unknown: Sums,
}

impl Rules for MemoryRules {
    type Partial = MemoryPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        MemoryRules {
            selection: selection.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        is_counted(event) || Tasks::<Sums>::wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let taken =
            |event: &KernelEvent| matches!(event, KernelEvent::Page(page) if page.step == PageStep::Alloc);
        if !has(&is_counted) {
            return Some(
                "nothing about memory was recorded: enable kmem_mm_page_alloc and kmem_mm_page_free; \
                 x86_exceptions_page_fault_user and x86_exceptions_page_fault_kernel for faults",
            );
        }
        if !has(&taken) || !has(&is_free) {
            return Some(
                "not all that becomes of pages was recorded: enable both kmem_mm_page_alloc and \
                 kmem_mm_page_free",
            );
        }
        let switches = has(&|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some("nothing here may tell threads apart: enable sched_switch, or the context tid")
    }

    fn packet(&self, partial: &mut MemoryPartial, packet: &Packet) {
        partial.tasks.packet(packet);
    }

    #[inline(always)]
    fn event(&self, partial: &mut MemoryPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let kernel = &event.model.event;
        if Tasks::<Sums>::wants(kernel) {
            partial.tasks.event(event, body);
            return;
        }
        let running = partial.tasks.actor(event, body);
        if !self.selection.counts(event.time, event.cpu.cpu) {
            return;
        }
        match running {
            Running::Thread(place) => partial.thread(place).count(kernel, body),
            Running::Unknown => partial.unknown.count(kernel, body),
            Running::Before => {
                let mut sums = Sums::default();
                sums.count(kernel, body);
                let add = |own: &mut Sums, other: Sums| own.merge(&other);
                partial.tasks.wait_together(event.cpu, event.time, sums, add);
            }
        }
    }

    fn merge(&self, earlier: &mut MemoryPartial, later: MemoryPartial) {
        let joined = earlier.tasks.merge(later.tasks);
        for told in joined.told {
            let sums = match told.place {
                Some(place) => earlier.thread(place),
                None => &mut earlier.unknown,
            };
            sums.merge(&told.item);
        }
        for (sums, &place) in later.threads.iter().zip(&joined.places) {
            earlier.thread(place).merge(sums);
        }
        earlier.unknown.merge(&later.unknown);
    }

    fn finish(&self, input: &Input, mut partial: MemoryPartial) -> Report {
        for told in partial.tasks.untold() {
            partial.unknown.merge(&told.item);
        }
        report::report(self, input, &partial)
    }
}

/// True for the event of each page that is given back.
fn is_free(event: &KernelEvent) -> bool {
    matches!(event, KernelEvent::Page(page) if page.step == PageStep::Free)
}

impl MemoryPartial {
    #[inline]
    fn thread(&mut self, place: usize) -> &mut Sums {
        if place >= self.threads.len() {
            self.threads.resize(place + 1, Sums::default());
        }
        &mut self.threads[place]
    }
}
