//! Memory: pages and objects of the kernel, page faults, the page cache, reclaiming, by thread.
//!
//! Most of it is sums, of whoever runs where an event happens. `docs/reports-memory.md` defines each
//! number.

mod lists;
mod moves;
mod report;
mod sums;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::memory::PageStep;
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{Event, InOrder, Input, Packet, Rules, Running, Selection, Tasks};
use crate::report::Report;
use moves::{Keeps, Move, Moves};
use sums::{Sums, is_counted};

/// The analysis.
pub type MemoryAnalysis = InOrder<MemoryRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct MemoryRules {
    selection: Selection,
    keeps: Keeps,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryPartial {
    tasks: Tasks<Done>,
    /// By place of the thread.
    threads: Vec<Done>,
    /// By nobody who is known.
    unknown: Done,
}

/// What somebody did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Done {
    sums: Sums,
    /// None if none are asked for.
    moves: Option<Box<Moves>>,
}

impl Done {
    #[inline]
    fn count(&mut self, keeps: &Keeps, kernel: &KernelEvent, moved: Option<Move>, body: &mut Body<'_, '_>) {
        self.sums.count(kernel, body);
        if let Some(moved) = moved {
            self.moves.get_or_insert_default().add(keeps, moved);
        }
    }

    fn merge(&mut self, keeps: &Keeps, other: Done) {
        self.sums.merge(&other.sums);
        if let Some(other) = other.moves {
            self.moves.get_or_insert_default().merge(keeps, *other);
        }
    }
}

impl Rules for MemoryRules {
    type Partial = MemoryPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        MemoryRules {
            selection: selection.clone(),
            keeps: Keeps::new(selection),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        is_counted(event) || Tasks::<Done>::wants(event)
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
        if Tasks::<Done>::wants(kernel) {
            partial.tasks.event(event, body);
            return;
        }
        let running = partial.tasks.actor(event, body);
        if !self.selection.counts(event.time, event.cpu.cpu) {
            return;
        }
        let keeps = &self.keeps;
        let moved = keeps.is_any.then(|| Move::of(event, body)).flatten();
        if moved.is_some_and(|moved| !self.selection.sizes.contain(moved.size())) {
            return;
        }
        match running {
            Running::Thread(place) => partial.thread(place).count(keeps, kernel, moved, body),
            Running::Unknown => partial.unknown.count(keeps, kernel, moved, body),
            Running::Before => {
                let mut done = Done::default();
                done.count(keeps, kernel, moved, body);
                let add = |own: &mut Done, other: Done| own.merge(keeps, other);
                partial.tasks.wait_together(event.cpu, event.time, done, add);
            }
        }
    }

    fn merge(&self, earlier: &mut MemoryPartial, later: MemoryPartial) {
        let joined = earlier.tasks.merge(later.tasks);
        for told in joined.told {
            let done = match told.place {
                Some(place) => earlier.thread(place),
                None => &mut earlier.unknown,
            };
            done.merge(&self.keeps, told.item);
        }
        for (done, &place) in later.threads.into_iter().zip(&joined.places) {
            earlier.thread(place).merge(&self.keeps, done);
        }
        earlier.unknown.merge(&self.keeps, later.unknown);
    }

    fn finish(&self, input: &Input, mut partial: MemoryPartial) -> Report {
        for told in partial.tasks.untold() {
            partial.unknown.merge(&self.keeps, told.item);
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
    fn thread(&mut self, place: usize) -> &mut Done {
        if place >= self.threads.len() {
            self.threads.resize_with(place + 1, Done::default);
        }
        &mut self.threads[place]
    }
}
