//! What system calls waited for: their time by why, futexes by address, sockets by peer.
//!
//! Whatever one thread does may end the wait of another one, so a chunk can tell little of its own:
//! it makes `Item`s of events, small and about places of threads, and the state machine
//! (`Machine`) takes them in the order of time when the chunk is joined with all that came before.
//! `docs/reports-waits.md` defines each number.

mod context;
mod events;
mod futex;
mod item;
mod keyed;
mod kind;
mod life;
mod losses;
mod machine;
mod report;
mod socket;
mod sums;
mod tables;
mod why;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::irq::SoftirqStep;
use tracebraid_kernel_model::{Body, KernelEvent, Syscall};

use crate::kernel::{ChosenCalls, CpuKey, Event, InOrder, Input, Packet, Rules, Running, Selection, Tasks};
use crate::report::{Report, View};
use context::Contexts;
use events::{expires, is_done, is_made};
use item::{Item, What};
use kind::Kinds;
use machine::Machine;
use why::Why;

/// The analysis.
pub type WaitAnalysis = InOrder<WaitRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct WaitRules {
    selection: Selection,
    kinds: Kinds,
    chosen: ChosenCalls,
    /// By why: the bounds of parts, in a second pass.
    ranges: Option<Vec<Option<(u64, u64)>>>,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WaitPartial {
    /// What waits to be told is the place of an item.
    tasks: Tasks<usize>,
    contexts: Contexts,
    /// In the order of time; none if there is a machine.
    items: Vec<Item>,
    /// What came of everything, if nothing came before.
    machine: Option<Box<Machine>>,
}

impl Rules for WaitRules {
    type Partial = WaitPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        let ranges = selection.ranges.as_ref();
        let of = |why: &Why| ranges.and_then(|ranges| ranges.get(why.name()).copied());
        WaitRules {
            kinds: Kinds::new(),
            chosen: selection.chosen_calls(),
            ranges: ranges.map(|_| Why::ALL.iter().map(of).collect()),
            selection: selection.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Entry(_) | Exit(_) | ThreadExit(_) | Wakeup(_) | IrqEntry(_) | IrqExit(_) | Vector(_) => true,
            Softirq(softirq) => softirq.step != SoftirqStep::Raise,
            Hrtimer(timer) => expires(timer.step).is_some(),
            Timer(timer) => expires(timer.step).is_some(),
            Block(block) => is_made(block.step) || is_done(block.step),
            event => Tasks::<usize>::wants(event),
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        use KernelEvent::*;
        let lacks = |kind: &dyn Fn(&KernelEvent) -> bool| !has(kind);
        if lacks(&|event| matches!(event, Exit(_))) {
            return Some(
                "no system calls were recorded: enable them (lttng enable-event --kernel --syscall --all)",
            );
        }
        if lacks(&|event| matches!(event, Switch(_))) {
            return Some("nothing tells when threads ran, so all time is unknown: enable sched_switch");
        }
        if lacks(&|event| matches!(event, Wakeup(_))) {
            return Some("nothing tells what threads waited for: enable sched_waking");
        }
        if lacks(&|event| matches!(event, Softirq(_))) {
            return Some(
                "the network cannot be told from threads that it interrupts: enable irq_softirq_entry and \
                 irq_softirq_exit",
            );
        }
        if lacks(&|event| matches!(event, Hrtimer(_) | Timer(_))) {
            return Some(
                "timers cannot be told from threads that they interrupt: enable timer_hrtimer_expire_*",
            );
        }
        if lacks(&|event| matches!(event, Block(_))) {
            return Some(
                "disks cannot be told from other devices: enable block_rq_issue and block_rq_complete",
            );
        }
        lacks(&|event| matches!(event, IrqEntry(_)))
            .then_some("devices cannot be told from threads that they interrupt: enable irq_handler_*")
    }

    fn first(&self) -> WaitPartial {
        WaitPartial {
            machine: Some(Box::default()),
            ..WaitPartial::default()
        }
    }

    fn packet(&self, partial: &mut WaitPartial, packet: &Packet) {
        partial.tasks.packet(packet);
        let begin = packet.begin.unwrap_or(i64::MIN);
        if packet.lost_before && !self.selection.window.is_over(begin) {
            partial.contexts.at(packet.cpu).thread();
            self.put(partial, begin, packet.cpu, Doer::NOBODY, What::Lost);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut WaitPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        match &event.model.event {
            // What comes later is not read in every way: it must not matter.
            _ if self.selection.window.is_over(event.time) => {}
            KernelEvent::Entry(entry) => return self.enter(partial, event, entry, body),
            KernelEvent::Exit(exit) => return self.exit(partial, event, exit, body),
            KernelEvent::Switch(switch) => return self.switch(partial, event, switch, body),
            KernelEvent::Wakeup(wakeup) => return self.wake(partial, event, wakeup, body),
            KernelEvent::Fork(fork) => self.fork(partial, event, fork, body),
            KernelEvent::ProcessState(state) => self.belongs(partial, event, state, body),
            KernelEvent::ThreadExit(tid) => self.dies(partial, event, tid, body),
            _ => return self.interrupt(partial, event, body),
        }
        partial.tasks.event(event, body);
    }

    fn merge(&self, earlier: &mut WaitPartial, later: WaitPartial) {
        let WaitPartial {
            mut tasks,
            contexts,
            items,
            ..
        } = later;
        let before = earlier.items.len();
        tasks.waiting().for_each(|(_, place)| *place += before);
        let joined = earlier.tasks.merge(tasks);
        let mut told = joined.told.into_iter().peekable();
        for (at, item) in items.into_iter().enumerate() {
            let mut item = item.moved(&joined.places);
            if let Some(told) = told.next_if(|told| told.item == before + at) {
                let place = told.place.filter(|&place| !earlier.tasks.is_idle(place));
                item.who = place.map(|place| place as u32);
            }
            if let What::Wake { context, .. } = &mut item.what {
                *context = context.after(*earlier.contexts.at(item.cpu));
            }
            earlier.put(self, item);
        }
        earlier.contexts.merge(contexts);
        if earlier.machine.is_some() {
            // Nothing came before that could tell more.
            earlier.tasks.untold();
        }
    }

    fn finish(&self, input: &Input, mut partial: WaitPartial) -> Report {
        let mut machine = partial.machine.take().unwrap_or_default();
        for item in std::mem::take(&mut partial.items) {
            machine.step(self, item);
        }
        report::report(self, input, &partial.tasks, *machine)
    }
}

/// Who does something: a thread, nobody that is known, or whoever ran when the chunk began.
#[derive(Clone, Copy, Debug)]
enum Doer {
    Thread(Option<u32>),
    Before,
}

impl Doer {
    const NOBODY: Doer = Doer::Thread(None);
}

impl WaitPartial {
    /// Who does what an event tells.
    #[inline(always)]
    fn doer(&mut self, event: &Event<'_>, body: &mut Body<'_, '_>) -> Doer {
        match self.tasks.actor(event, body) {
            Running::Before => Doer::Before,
            Running::Unknown => Doer::NOBODY,
            Running::Thread(place) => Doer::Thread(self.busy(place)),
        }
    }

    /// A thread's place, but for the idle thread, which does nothing.
    #[inline(always)]
    fn busy(&self, place: usize) -> Option<u32> {
        (!self.tasks.is_idle(place)).then_some(place as u32)
    }

    #[inline(always)]
    fn put(&mut self, rules: &WaitRules, item: Item) {
        match &mut self.machine {
            Some(machine) => machine.step(rules, item),
            None => self.items.push(item),
        }
    }
}

impl WaitRules {
    /// True if a call is asked for: it counts where and when it ends.
    #[inline(always)]
    fn counts(&self, call: Syscall, time: i64, cpu: CpuKey, duration: u64) -> bool {
        self.selection.counts(time, cpu.cpu)
            && self.selection.limits.contain(duration)
            && self.chosen.contain(call)
    }

    /// How many waits of a call are kept at least.
    fn listed(&self) -> usize {
        match self.ranges {
            Some(_) => 0,
            None if self.selection.shows(View::Log) => usize::MAX,
            None => self.selection.top(),
        }
    }

    #[inline(always)]
    fn put(&self, partial: &mut WaitPartial, time: i64, cpu: CpuKey, doer: Doer, what: What) {
        let who = match doer {
            Doer::Thread(place) => place,
            Doer::Before => {
                if partial.machine.is_none() {
                    partial.tasks.wait(cpu, time, partial.items.len());
                }
                None
            }
        };
        partial.put(self, Item { time, cpu, who, what });
    }
}
