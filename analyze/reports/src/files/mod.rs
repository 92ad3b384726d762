//! Which files: what was read from and written to each, how long calls on them took, who used them.
//!
//! Chunks join entries with exits by thread. What descriptors are is known in the order of time
//! only: there is one `Machine` that follows them, the first chunk's, and what happens in other
//! chunks waits as `Item`s until they are merged with it. `docs/reports-files.md` defines each
//! number.

mod call;
mod class;
mod interned;
mod item;
mod machine;
mod names;
mod report;
mod rows;
mod stats;
mod tell;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, Body, KernelEvent};

use crate::files::call::{Call, Calls, Ends, Entered, Exited, Step, Waits};
use crate::files::class::Class;
use crate::files::interned::{Text, Texts};
use crate::files::item::{Item, Made};
use crate::files::machine::{Around, Machine};
use crate::io::call::Deed;
use crate::kernel::{CpuKey, Event, InOrder, Input, Packet, Rules, Running, Selection, Tasks, Told};
use crate::report::Report;

/// The analysis.
pub type FilesAnalysis = InOrder<FilesRules>;

type Steps = Tasks<Waits>;

/// What it makes of events.
#[derive(Debug)]
pub struct FilesRules {
    selection: Selection,
    /// For a second pass, the bounds of durations.
    ranges: Option<Vec<(Class, (u64, u64))>>,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FilesPartial {
    tasks: Steps,
    /// By place of the thread.
    threads: Vec<Calls>,
    texts: Texts,
    /// In the order of time, each with the last step before it. None if there is a machine.
    items: Vec<(u64, Item)>,
    /// In the first chunk, and what was joined with it.
    machine: Option<Box<Machine>>,
    /// Entries and exits of which it is not known whose they are.
    nobodys: u64,
}

impl Rules for FilesRules {
    type Partial = FilesPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        let ranges = selection.ranges.as_ref();
        let of = |(name, range): (&String, &(u64, u64))| Some((Class::from_name(name)?, *range));
        FilesRules {
            selection: selection.clone(),
            ranges: ranges.map(|ranges| ranges.iter().filter_map(of).collect()),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        event.is_of_latencies() || Steps::wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let ends = |event: &KernelEvent| match event {
            KernelEvent::Exit(exit) if event.is_of_latencies() => {
                exit.fixed().is_none_or(|call| call.action().is_io())
            }
            _ => false,
        };
        if !has(&ends) {
            return Some(
                "no event here tells of reading or writing: enable system calls (lttng enable-event --kernel \
                 --syscall --all, or open,openat,close,read,write,... for few)",
            );
        }
        let switches = has(&|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some("nothing here may tell threads apart: enable sched_switch, or the context tid")
    }

    fn first(&self) -> FilesPartial {
        FilesPartial {
            machine: Some(Box::default()),
            ..FilesPartial::default()
        }
    }

    fn packet(&self, partial: &mut FilesPartial, packet: &Packet) {
        partial.tasks.packet(packet);
    }

    #[inline(always)]
    fn event(&self, partial: &mut FilesPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        match &event.model.event {
            KernelEvent::Entry(entry) => self.entry(partial, event, entry, body),
            KernelEvent::Exit(exit) => self.exit(partial, event, exit, body),
            _ => self.other(partial, event, body),
        }
    }

    fn merge(&self, earlier: &mut FilesPartial, mut later: FilesPartial) {
        let offset = earlier.tasks.steps();
        let texts = earlier.texts.merge(&later.texts);
        for (_, waits) in later.tasks.waiting() {
            waits.step.moved(&texts);
        }
        later.threads.iter_mut().for_each(|calls| calls.moved(&texts));
        let joined = earlier.tasks.merge(later.tasks);
        let mut told = joined.told.into_iter().peekable();
        for (step, mut item) in later.items {
            while let Some(one) = told.next_if(|told| told.step <= step) {
                self.told(earlier, one.step + offset, one);
            }
            let head = match item {
                Item::Head(place) => later
                    .threads
                    .get_mut(place as usize)
                    .and_then(|calls| calls.head.take()),
                _ => None,
            };
            item.moved(&joined.places, &texts);
            match (item, head) {
                (Item::Head(place), Some(exited)) => {
                    self.exited(earlier, step + offset, place as usize, exited)
                }
                (item, _) => self.emit(earlier, step + offset, item),
            }
        }
        told.for_each(|one| self.told(earlier, one.step + offset, one));
        for (calls, &place) in later.threads.into_iter().zip(&joined.places) {
            earlier.thread(place).merge(calls);
        }
        earlier.nobodys += later.nobodys;
    }

    fn finish(&self, input: &Input, mut partial: FilesPartial) -> Report {
        // Without any chunk there is none.
        let machine = partial.machine.take().unwrap_or_default();
        report::report(self, input, partial, *machine)
    }
}

impl FilesPartial {
    fn thread(&mut self, place: usize) -> &mut Calls {
        if place >= self.threads.len() {
            self.threads.resize(place + 1, Calls::default());
        }
        &mut self.threads[place]
    }
}

impl FilesRules {
    /// Something comes next in the order of time; it happened after that step.
    #[inline(always)]
    fn emit(&self, partial: &mut FilesPartial, step: u64, item: Item) {
        match &mut partial.machine {
            Some(machine) => {
                let (tasks, texts) = (&partial.tasks, &mut partial.texts);
                let rules = self;
                machine.apply(&mut Around { rules, tasks, texts }, item);
            }
            None => partial.items.push((step, item)),
        }
    }

    fn emit_now(&self, partial: &mut FilesPartial, item: Item) {
        let step = partial.tasks.steps();
        self.emit(partial, step, item);
    }

    /// Somebody does something. Idle threads make no calls: the switch to whoever did was lost.
    fn step(
        &self,
        partial: &mut FilesPartial,
        actor: Running,
        (cpu, time): (CpuKey, i64),
        pid: Option<i32>,
        step: Step,
    ) {
        match actor {
            Running::Before => {
                let step = Box::new(step);
                partial.tasks.wait(cpu, time, Waits { step, pid });
            }
            Running::Thread(place) if !partial.tasks.is_idle(place) => {
                let at = partial.tasks.steps();
                self.belongs(partial, at, place, (cpu, time), pid);
                self.does(partial, at, place, time, step);
            }
            Running::Thread(_) | Running::Unknown => partial.nobodys += 1,
        }
    }

    /// It is known who did what waited.
    fn told(&self, partial: &mut FilesPartial, at: u64, told: Told<Waits>) {
        let Told { cpu, time, item, .. } = told;
        match told.place.filter(|&place| !partial.tasks.is_idle(place)) {
            Some(place) => {
                self.belongs(partial, at, place, (cpu, time), item.pid);
                self.does(partial, at, place, time, *item.step);
            }
            None => partial.nobodys += 1,
        }
    }

    /// A context names the process of a thread.
    #[inline(always)]
    fn belongs(
        &self,
        partial: &mut FilesPartial,
        at: u64,
        place: usize,
        (cpu, time): (CpuKey, i64),
        pid: Option<i32>,
    ) {
        let Some(pid) = pid else { return };
        partial.tasks.learn_pid(place, time, cpu, pid);
        if partial.thread(place).belongs(pid) {
            let (place, table) = (place as u32, None);
            let member = Item::Member {
                place,
                time,
                pid,
                table,
            };
            self.emit(partial, at, member);
        }
    }

    fn does(&self, partial: &mut FilesPartial, at: u64, place: usize, time: i64, step: Step) {
        match step {
            Step::Enter(entered, change) => {
                partial.thread(place).enter(entered);
                if let Some(change) = change {
                    self.emit(partial, at, Item::Change(place as u32, time, change));
                }
            }
            Step::Exit(exited) => self.exited(partial, at, place, exited),
            Step::Fork(forked) => self.emit(partial, at, Item::Fork(place as u32, time, forked)),
            Step::Exec => self.emit(partial, at, Item::Exec(place as u32, time)),
        }
    }

    #[inline(always)]
    fn exited(&self, partial: &mut FilesPartial, at: u64, place: usize, exited: Exited) {
        match partial.thread(place).exit(&exited) {
            Ends::Call(entered) => self.ended(partial, at, place as u32, &entered, &exited),
            Ends::Head => self.emit(partial, at, Item::Head(place as u32)),
            Ends::Nothing => {}
        }
    }

    #[inline(always)]
    fn ended(&self, partial: &mut FilesPartial, at: u64, place: u32, entered: &Entered, exited: &Exited) {
        let open = &entered.open;
        let call = entered.class.map(|class| Call {
            begin: open.time,
            duration: open.time.abs_diff(exited.time),
            result: exited.exit.result,
            fds: open.fds,
            place,
            call: open.call,
            class,
        });
        let call = call.filter(|call| exited.exit.counts && self.counts(call));
        let changes = match open.deed {
            Deed::Io => false,
            Deed::Nothing => open.call.action() == Action::Connect,
            _ => true,
        };
        if changes {
            let (entered, exited) = (*entered, *exited);
            let made = Made {
                place,
                entered,
                exited,
                call,
            };
            self.emit(partial, at, Item::Made(Box::new(made)));
        } else if let Some(call) = call {
            self.emit(partial, at, Item::Call(call));
        }
    }

    /// True if its length and size are asked for; what has no size has any.
    #[inline(always)]
    fn counts(&self, call: &Call) -> bool {
        let Selection { limits, sizes, .. } = &self.selection;
        limits.contain(call.duration) && call.bytes().is_none_or(|bytes| sizes.contain(bytes))
    }
}

impl Step {
    /// Texts have other numbers.
    fn moved(&mut self, texts: &[Text]) {
        match self {
            Step::Enter(Some(entered), _) => entered.text.moved(texts),
            Step::Exit(exited) => exited.text.moved(texts),
            Step::Enter(None, _) | Step::Fork(_) | Step::Exec => {}
        }
    }
}
