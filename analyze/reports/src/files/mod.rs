//! Which files: what was read from and written to each, how long calls on them took, who used them.
//!
//! Each CPU is followed alone: entries are joined with exits there while their thread runs. What
//! descriptors are is known in the order of time only: what happened is played as `Item`s, in slices of time beside each other
//! (`slice`), which are joined to what was before them (`compose`); or by one `Machine` that follows them all. `docs/reports-files.md` defines each number.

mod cache;
mod call;
mod class;
mod compose;
mod directories;
mod follow;
mod item;
mod kept;
mod machine;
mod names;
mod naming;
mod options;
mod queue;
mod report;
mod rows;
mod slice;
mod stats;
mod tally;
mod tell;
mod unmerged;

use std::sync::Arc;

pub use options::FilesOptions;
use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Deed, Dictionaries, Texts};
use tracebraid_kernel_model::{Action, Body, KernelEvent};

use crate::files::call::{Call, Entered, Exited, Stretch};
use crate::files::class::Class;
use crate::files::item::{Item, Made, Step, What};
use crate::files::machine::{Around, Machine};
use crate::files::queue::{Ahead, ChunkTexts, Queue};
use crate::files::slice::{Beginning, Slice};
use crate::files::tally::Tally;
use crate::files::unmerged::Unmerged;
use tracebraid_follow::{
    ByCpu, ChosenCalls, CpuKey, EndedCall, Event, Input, Items, Lane, Packet, People, PerCpu, Rules,
    Selection, ThreadKey,
};
use tracebraid_tables::Report;

pub use crate::files::follow::{Descriptor, News};
pub use crate::files::kept::FilesKept;

/// The analysis.
pub type FilesAnalysis = PerCpu<FilesRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct FilesRules {
    selection: Selection,
    options: FilesOptions,
    chosen: ChosenCalls,
    /// For a second pass, the bounds of durations.
    ranges: Option<Vec<(Class, (u64, u64))>>,
    /// Times at which it may be asked what is known, in their order.
    marks: Vec<i64>,
}

/// What is known after some chunks.
///
/// Beside what waits to be played it has a bounded number of entries for each thread, each file that a thread uses, and each
/// descriptor that is open or changed since the first call began that is open; if each call is asked for, one for each call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FilesPartial {
    people: People,
    lanes: ByCpu<Lane<Stretch, Step>>,
    queue: Queue,
    /// Texts of the chunk that is being read, and those of chunks that were merged.
    texts: ChunkTexts,
    dictionaries: Dictionaries,
    /// Everything before that time was cut out.
    until: Option<i64>,
    /// Slices that are played one after the other, and not composed yet.
    replayed: u32,
    /// A thread may get a table of its own when its call ends.
    is_unclear: bool,
    /// What calls add up to, beside what the machine adds up.
    sums: Tally,
    /// Sums of slices that were composed.
    unmerged: Vec<Unmerged>,
    /// What came of all that was played, and its texts.
    machine: Machine,
    known: Texts,
    /// Entries and exits of which it is not known whose they are.
    nobodys: u64,
    /// Nothing came before.
    is_first: bool,
    /// Where the thread that was switched to last is among the people.
    #[serde(skip)]
    near: usize,
}

impl Rules for FilesRules {
    type Partial = FilesPartial;
    type Report = Report;

    type Options = FilesOptions;

    fn new(selection: &Selection, options: &FilesOptions) -> Self {
        let ranges = options.views.ranges.as_ref();
        let of = |(name, range): (&String, &(u64, u64))| Some((Class::from_name(name)?, *range));
        FilesRules {
            selection: selection.clone(),
            options: options.clone(),
            chosen: options.calls.chosen(),
            ranges: ranges.map(|ranges| ranges.iter().filter_map(of).collect()),
            marks: Vec::new(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        event.is_of_latencies()
            || matches!(
                event,
                Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
            )
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
            is_first: true,
            ..FilesPartial::default()
        }
    }

    fn packet(&self, partial: &mut FilesPartial, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if packet.lost_before && packet.tells_switches {
            self.goes_over(partial, packet.cpu, time, None);
        } else if packet.lost_before && packet.tells_calls {
            let (tid, pid, what) = (None, None, What::Lose);
            self.rare(partial, packet.cpu, time, Step { tid, pid, what });
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut FilesPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let what = match &event.model.event {
            // What comes later is not read in every way: it must not matter.
            _ if self.selection.window.is_over(event.time) => return,
            KernelEvent::Entry(entry) => tell::enters(partial, event, entry, body),
            KernelEvent::Exit(exit) => match self.exits(partial, event, exit, body) {
                Some(what) => what,
                None => return,
            },
            _ => return self.other(partial, event, body),
        };
        let (tid, pid) = (event.model.tid(body), event.model.pid(body));
        self.step(partial, event.cpu, event.time, Step { tid, pid, what });
    }

    fn exchange(&self, partial: &mut FilesPartial, resident: &mut FilesPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut FilesPartial, mut later: FilesPartial) {
        // What is open ends there, perhaps.
        for (cpu, _) in later.lanes.iter() {
            let open = earlier.lanes.get(*cpu).now();
            if let Some(open) = open.and_then(|now| now.calls.open_mut()) {
                let text = earlier
                    .dictionaries
                    .get(open.text)
                    .or(earlier.texts.0.of(open.text));
                open.text = text.map_or(open.text, |text| later.texts.0.number(text));
            }
        }
        earlier.people.merge(later.people);
        let step = |earlier: &mut _, cpu, time, step| self.rare(earlier, cpu, time, step);
        let begin = |earlier: &mut _, cpu, time, stretch| self.begins(earlier, cpu, time, stretch);
        later.lanes.join(earlier, step, begin);
        earlier.queue.append(later.queue);
        earlier.dictionaries.append(later.dictionaries);
        earlier
            .dictionaries
            .add(later.texts.0, earlier.queue.items.latest());
        earlier.nobodys += later.nobodys;
        earlier.sums.join(later.sums, self.options.views.top());
    }

    fn slices<'a>(
        &'a self,
        partial: &mut FilesPartial,
        watermark: i64,
    ) -> Vec<tracebraid_engine::Slice<'a, FilesPartial>> {
        partial.keep_texts();
        let begin = partial.until.replace(watermark).unwrap_or(i64::MIN);
        let (items, acts) = partial.queue.cut(watermark);
        let since = partial.asked_since(watermark);
        let dictionaries = Arc::new(partial.dictionaries.clone());
        partial.forget_texts(watermark);
        let mut slices = self.unmerged(partial);
        if items.is_empty() {
            return slices;
        }
        // Which calls are asked for depends on what is not known in a slice.
        let is_clear = self.options.paths.is_empty() && !partial.is_unclear && partial.replayed == 0;
        let ahead = match is_clear {
            true => partial.look_ahead(acts),
            false => partial.look_at_none(acts),
        };
        let Some(ahead) = ahead else {
            partial.replayed += 1;
            slices.push(self.replayed(items, dictionaries, since));
            return slices;
        };
        let beginning = Beginning {
            ahead,
            dictionaries,
            time: begin,
        };
        slices.push(self.slice(items, beginning, since));
        slices
    }

    fn finish(&self, input: &Input, mut partial: FilesPartial) -> Report {
        partial.keep_texts();
        for (cpu, lane) in std::mem::take(&mut partial.lanes) {
            if let Some(stretch) = lane.into_now() {
                Self::leaves(&mut partial, cpu, i64::MAX, stretch);
            }
        }
        let items = std::mem::take(&mut partial.queue.items);
        let dictionaries = std::mem::take(&mut partial.dictionaries);
        self.replay(&mut partial, items, &dictionaries);
        let top = self.options.views.top();
        let tally = std::mem::take(&mut partial.machine.tally);
        partial.sums.join(tally, top);
        for unmerged in std::mem::take(&mut partial.unmerged) {
            unmerged.merge_into(&mut partial.sums, top);
        }
        partial.machine.tally = std::mem::take(&mut partial.sums);
        report::report(self, input, partial)
    }
}

impl FilesPartial {
    /// Texts of the chunk that was read are those of one that was merged.
    fn keep_texts(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        self.dictionaries.add(texts.0, self.queue.items.latest());
    }

    /// Forgets texts that nothing names which happens from that time on.
    fn forget_texts(&mut self, watermark: i64) {
        let mut named = Vec::new();
        for (_, lane) in self.lanes.iter_mut() {
            let open = lane.now().and_then(|now| now.calls.open());
            named.extend(open.and_then(|open| open.text.some()));
        }
        self.dictionaries.retain(watermark, &named);
    }

    /// When the first call began that is open at a time up to which everything was cut out, or ends after that. Nobody asks what
    /// descriptors were before.
    fn asked_since(&mut self, watermark: i64) -> i64 {
        let mut since = watermark;
        for (_, lane) in self.lanes.iter_mut() {
            let open = lane.now().and_then(|now| now.calls.open());
            since = open.map_or(since, |open| since.min(open.open.time));
        }
        for mut items in self.queue.items.by_cpu() {
            let first = items.find_map(|item| match item {
                Item::Call(call) => Some(call.begin),
                Item::Made(made) => Some(made.entered.open.time),
                Item::Leaves(_, entered) => Some(entered.open.time),
                _ => None,
            });
            since = first.map_or(since, |first| since.min(first));
        }
        // A descriptor is closed when its call begins, but is what it closes.
        since.saturating_sub(1)
    }

    /// Leaves it to who plays it to follow which thread has which table.
    fn look_at_none(&mut self, mut acts: Items<Ahead>) -> Option<tracebraid_descriptors::Ahead> {
        acts.play(None, |cpu, _, (tid, act)| {
            let trace = cpu.trace;
            if act == Some(Act::Touch) {
                self.machine.descriptors.touched(ThreadKey { trace, tid });
            }
        });
        None
    }

    /// Follows which thread has which table, if that can be said without more.
    fn look_ahead(&mut self, mut acts: Items<Ahead>) -> Option<tracebraid_descriptors::Ahead> {
        self.machine.descriptors.look_ahead(|to| {
            acts.play(None, |cpu, time, (tid, act)| {
                let trace = cpu.trace;
                to(ThreadKey { trace, tid }, time, act);
            });
        })
    }
}

impl FilesRules {
    /// Sums of slices that were composed, to be merged.
    fn unmerged<'a>(&'a self, partial: &mut FilesPartial) -> Vec<tracebraid_engine::Slice<'a, FilesPartial>> {
        let all = std::mem::take(&mut partial.unmerged);
        let top = self.options.views.top();
        let one = |unmerged: Unmerged| -> tracebraid_engine::Slice<'a, FilesPartial> {
            Box::new(move |resident: &mut FilesPartial| {
                unmerged.merge_into(&mut resident.sums, top);
                Box::new(|_: &mut FilesPartial| {})
            })
        };
        all.into_iter().map(one).collect()
    }

    /// What happened in a slice, to be played beside others.
    fn slice<'a>(
        &'a self,
        mut items: Items<Item>,
        beginning: Beginning,
        since: i64,
    ) -> tracebraid_engine::Slice<'a, FilesPartial> {
        Box::new(move |_resident: &mut FilesPartial| {
            let mut slice = Slice::new(self, beginning);
            items.play(None, |cpu, time, item| slice.apply(cpu, time, item));
            Box::new(move |partial: &mut FilesPartial| {
                let FilesPartial { machine, known, .. } = partial;
                let unmerged = compose::compose(self, machine, known, slice, since);
                partial.unmerged.push(unmerged);
            })
        })
    }

    /// What happened in a slice, to be played when it is known what was before.
    fn replayed<'a>(
        &'a self,
        items: Items<Item>,
        dictionaries: Arc<Dictionaries>,
        since: i64,
    ) -> tracebraid_engine::Slice<'a, FilesPartial> {
        Box::new(move |_resident: &mut FilesPartial| {
            Box::new(move |partial: &mut FilesPartial| {
                self.replay(partial, items, &dictionaries);
                partial.machine.descriptors.forget(since);
                partial.replayed = partial.replayed.saturating_sub(1);
                partial.is_unclear = partial.machine.is_unclear();
            })
        })
    }

    /// Plays what happened, in the order of time.
    fn replay(&self, partial: &mut FilesPartial, mut items: Items<Item>, dictionaries: &Dictionaries) {
        let FilesPartial { machine, known, .. } = partial;
        items.play(None, |cpu, time, mut item| {
            item.texts(|text| *text = dictionaries.known(*text, known));
            let mut around = Around {
                rules: self,
                texts: &mut *known,
                done: None,
            };
            machine.apply(&mut around, cpu, time, item);
        });
    }

    /// Another thread runs there from now on; none: it is not known who.
    fn goes_over(&self, partial: &mut FilesPartial, cpu: CpuKey, time: i64, tid: Option<i32>) {
        self.begins(partial, cpu, time, Stretch::new(tid, self.mark_after(time)));
    }

    fn begins(&self, partial: &mut FilesPartial, cpu: CpuKey, time: i64, stretch: Stretch) {
        if let Some(mut ended) = partial.lanes.get(cpu).goes_over(time, stretch) {
            self.marks(&mut partial.queue, (cpu, time), &mut ended);
            Self::leaves(partial, cpu, time, ended);
        }
    }

    /// The first marked time after one.
    #[inline]
    fn mark_after(&self, time: i64) -> i64 {
        let after = self.marks.iter().find(|&&mark| mark > time);
        after.copied().unwrap_or(i64::MAX)
    }

    /// Before something happens on a CPU: keeps how it stood at the marked time that has passed since, if one has.
    #[inline(always)]
    fn marks(&self, items: &mut Queue, at: (CpuKey, i64), stretch: &mut Stretch) {
        if at.1 >= stretch.until {
            self.mark(items, at, stretch);
        }
    }

    #[inline(never)]
    fn mark(&self, items: &mut Queue, (cpu, time): (CpuKey, i64), stretch: &mut Stretch) {
        let until = std::mem::replace(&mut stretch.until, i64::MIN);
        if until != i64::MIN {
            items.push(cpu, until - 1, Item::Stands(Box::new(*stretch)));
        }
        stretch.until = self.mark_after(time);
    }

    #[inline]
    fn leaves(partial: &mut FilesPartial, cpu: CpuKey, time: i64, stretch: Stretch) {
        if let Some((tid, entered)) = stretch.calls.into_open() {
            partial
                .queue
                .push(cpu, time, Item::Leaves(tid, Box::new(entered)));
        }
    }

    /// Something happens that is seldom.
    #[inline(never)]
    fn rare(&self, partial: &mut FilesPartial, cpu: CpuKey, time: i64, step: Step) {
        self.step(partial, cpu, time, step);
    }

    /// Something happens on a CPU.
    #[inline(always)]
    fn step(&self, partial: &mut FilesPartial, cpu: CpuKey, time: i64, step: Step) {
        let Some(mut stretch) = partial.lanes.get(cpu).now_or_first(partial.is_first, time) else {
            return partial.lanes.get(cpu).wait(time, step);
        };
        self.marks(&mut partial.queue, (cpu, time), stretch);
        if let What::Item(item) = step.what {
            return partial.queue.push(cpu, time, item);
        }
        if stretch.calls.is_left(step.tid) {
            self.goes_over(partial, cpu, time, step.tid);
            match partial.lanes.get(cpu).now() {
                Some(now) => stretch = now,
                None => return,
            }
        }
        // Idle threads make no calls: the switch to whoever did was lost.
        let Some(tid) = stretch.calls.caller() else {
            partial.nobodys += u64::from(matches!(step.what, What::Enter(..) | What::Exit(_)));
            return;
        };
        if let Some(pid) = step.pid
            && stretch.pid.replace(pid) != Some(pid)
        {
            let trace = cpu.trace;
            let person = partial.people.get(ThreadKey { trace, tid });
            person.learn_pid(time, cpu, pid);
            partial.queue.push(cpu, time, Item::Context { tid, pid });
        }
        match step.what {
            What::Enter(entered, change) => {
                if stretch.calls.enter_any(entered) {
                    partial.queue.push(cpu, time, Item::Enters(tid));
                }
                if let Some(change) = change {
                    partial.queue.push(cpu, time, Item::Change(tid, change));
                }
            }
            What::Exit(exited) => match stretch.calls.exit(&exited) {
                EndedCall::Call(entered) => {
                    if let Some(item) = self.ended(tid, &entered, &exited) {
                        partial.queue.push(cpu, time, item);
                    }
                }
                EndedCall::Elsewhere => {
                    let arrives = Item::Arrives(tid, Box::new(exited));
                    partial.queue.push(cpu, time, arrives);
                }
                EndedCall::Nothing => {}
            },
            What::Lose => {
                if stretch.calls.lose() {
                    partial.queue.push(cpu, time, Item::Enters(tid));
                }
            }
            What::Fork(forked) => partial.queue.push(cpu, time, Item::Fork(tid, forked)),
            What::Exec => partial.queue.push(cpu, time, Item::Exec(tid)),
            What::Item(_) => {}
        }
    }

    /// What a call was, once its end is known.
    #[inline(always)]
    fn ended(&self, tid: i32, entered: &Entered, exited: &Exited) -> Option<Item> {
        let open = &entered.open;
        let call = entered.class.map(|class| Call {
            begin: open.time,
            duration: open.time.abs_diff(exited.time),
            result: exited.exit.result,
            fds: open.fds,
            tid,
            call: open.call,
            class,
        });
        let call = call.filter(|call| exited.exit.counts && self.counts(call));
        let changes = match open.deed {
            Deed::Io => false,
            Deed::Nothing => matches!(open.call.action(), Action::Connect | Action::ChangeDirectory),
            _ => true,
        };
        if !changes {
            return call.map(Item::Call);
        }
        let (entered, exited) = (*entered, *exited);
        Some(Item::Made(Box::new(Made {
            tid,
            entered,
            exited,
            call,
        })))
    }

    /// True if its length and size are asked for; what has no size has any.
    #[inline(always)]
    fn counts(&self, call: &Call) -> bool {
        let FilesOptions { views, sizes, .. } = &self.options;
        views.limits.contain(call.duration)
            && call.bytes().is_none_or(|bytes| sizes.contain(bytes))
            && self.chosen.contain(call.call)
    }
}
