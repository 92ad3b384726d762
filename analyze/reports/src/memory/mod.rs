//! Memory: pages and slab objects of the kernel, page faults, page cache and reclaim, by thread.
//!
//! Most numbers are sums over the events of the thread that runs on the CPU, so each CPU is
//! followed alone. `docs/reference/memory.md` defines each number.

mod lane;
mod lists;
mod moves;
mod options;
mod report;
mod sizes;
mod sums;

pub use options::{GROUPINGS, MemoryOptions};
use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::memory::PageStep;
use tracebraid_kernel_model::{Body, KernelEvent};

use lane::{MemoryCpu, Running};
use moves::{Keeps, Move, Moves};
use sums::{Sums, is_counted};
use tracebraid_follow::{
    ByCpu, CpuKey, Event, Input, Packet, People, PerCpu, Rules, Selection, Table, ThreadKey, learn,
    learn_switch, taken_over,
};
use tracebraid_tables::Report;

/// Analyses the use of memory.
pub type MemoryAnalysis = PerCpu<MemoryRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct MemoryRules {
    selection: Selection,
    options: MemoryOptions,
    keeps: Keeps,
}

/// State after some chunks.
///
/// The size is bounded by the number of CPUs and threads; with `--view log` also by that of
/// allocations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryPartial {
    people: People,
    lanes: ByCpu<MemoryCpu>,
    threads: Table<Done>,
    /// Activity of unknown threads.
    unknown: Done,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Indices of the last thread that was switched to, in `people`, and of the last active thread,
    /// in `threads`.
    #[serde(skip)]
    near: (usize, usize),
}

/// Activity of a thread, or of unknown threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Done {
    sums: Sums,
    /// `None` if no moves are requested.
    moves: Option<Box<Moves>>,
}

impl Done {
    #[inline]
    fn count(
        &mut self,
        keeps: &Keeps,
        kernel: &KernelEvent,
        moved: Option<Move>,
        body: &mut Body<'_, '_>,
    ) {
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

    type Options = MemoryOptions;

    fn new(selection: &Selection, options: &MemoryOptions) -> Self {
        MemoryRules {
            selection: selection.clone(),
            options: options.clone(),
            keeps: Keeps::new(options),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        is_counted(event)
            || matches!(
                event,
                Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
            )
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let taken = |event: &KernelEvent| matches!(event, KernelEvent::Page(page) if page.step == PageStep::Alloc);
        if !has(&is_counted) {
            return Some(
                "no memory events were recorded: enable kmem_mm_page_alloc and kmem_mm_page_free; \
                 x86_exceptions_page_fault_user and x86_exceptions_page_fault_kernel for faults",
            );
        }
        if !has(&taken) || !has(&is_free) {
            return Some(
                "allocations or releases of pages were not recorded: enable both kmem_mm_page_alloc and \
                 kmem_mm_page_free",
            );
        }
        let switches = has(&|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some(
            "the threads of event records are unknown: enable sched_switch, or add the context tid",
        )
    }

    fn first(&self) -> MemoryPartial {
        MemoryPartial {
            is_first: true,
            ..MemoryPartial::default()
        }
    }

    fn packet(&self, partial: &mut MemoryPartial, packet: &Packet) {
        if packet.lost_before && packet.tells_switches {
            partial.lanes.get(packet.cpu).now = Running::Unknown;
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut MemoryPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        match &model.event {
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near.0;
                if let Some((_, next)) =
                    learn_switch(&mut partial.people, near, event, switch, body)
                {
                    partial.lanes.get(cpu).now = Running::Thread(next);
                }
                return;
            }
            other if !is_counted(other) => {
                if let KernelEvent::Exec(exec) = other
                    && let Some((_, tid)) = taken_over(exec, body)
                {
                    partial.lanes.get(cpu).now = Running::Thread(tid);
                }
                return learn(&mut partial.people, model, cpu, time, body);
            }
            _ => {}
        }
        if let Some(tid) = model.tid(body) {
            partial.lanes.get(cpu).now = Running::Thread(tid);
        }
        if !self.selection.counts(time, cpu.cpu) {
            return;
        }
        let keeps = &self.keeps;
        let moved = keeps.is_any.then(|| Move::of(event, body)).flatten();
        if moved.is_some_and(|moved| !self.options.sizes.contain(moved.size())) {
            return;
        }
        partial.doer(cpu).count(keeps, &model.event, moved, body);
    }

    fn merge(&self, earlier: &mut MemoryPartial, later: MemoryPartial) {
        earlier.people.merge(later.people);
        for (cpu, lane) in later.lanes {
            if let Some(head) = lane.head {
                earlier.doer(cpu).merge(&self.keeps, *head);
            }
            let own = earlier.lanes.get(cpu);
            if lane.now != Running::Before {
                own.now = lane.now;
            }
        }
        for (thread, done) in later.threads.into_entries() {
            earlier.threads.get(thread).merge(&self.keeps, done);
        }
        earlier.unknown.merge(&self.keeps, later.unknown);
    }

    fn finish(&self, input: &Input, partial: MemoryPartial) -> Report {
        report::report(self, input, &partial)
    }
}

/// True for the event of a single released page.
fn is_free(event: &KernelEvent) -> bool {
    matches!(event, KernelEvent::Page(page) if page.step == PageStep::Free)
}

impl MemoryPartial {
    /// The sums of the thread that runs on the CPU.
    #[inline(always)]
    fn doer(&mut self, cpu: CpuKey) -> &mut Done {
        let lane = self.lanes.get(cpu);
        match lane.now {
            Running::Thread(tid) => {
                let trace = cpu.trace;
                self.threads
                    .get_near(ThreadKey { trace, tid }, &mut self.near.1)
            }
            Running::Before if !self.is_first => lane.head.get_or_insert_default(),
            Running::Before | Running::Unknown => &mut self.unknown,
        }
    }
}
