//! User-level threads, LWPs and CPUs of a super-trace: where the time of each user-level thread
//! went at both levels of scheduling.
//!
//! A super-trace (`analyze/levels`) contains switches and wake-ups of user-level threads as those
//! of the kernel, so the states of threads are those of all analyses (`kernel/threads`). Here the
//! stretches of a thread's time are distinguished by level: taken from its LWP by the runtime, or
//! together with the LWP by the kernel. Each thread is followed alone: slices of time are played
//! without the state before them (`level_slice`), and appended in order (`level_machine`).
//! `docs/reference/levels.md` defines each number.

mod call_slice;
mod call_stack;
mod compensation;
mod cpu_turns;
mod kept_by;
mod level_calls;
mod level_machine;
mod level_slice;
mod level_step;
mod level_sums;
mod level_tables;
mod level_thread;
mod made_calls;
mod options;
mod reactions;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_engine::Slice;
use tracebraid_follow::{
    Event, Input, Items, Packet, People, PerCpu, Recorded, Rules, Selection, Table, Thread,
    ThreadKey, learn, learn_switch,
};
use tracebraid_kernel_model::events::user_level::{
    UserLevel, UserLevelStep, UserThread, is_ended_elsewhere,
};
use tracebraid_kernel_model::{Body, EventModel, KernelEvent, Switch};
use tracebraid_tables::Report;
use tracebraid_threads::{LeftAs, WakeEvent};

use level_machine::{LevelMachine, LevelPlayer};
use level_slice::LevelSlice;
use level_step::{LevelItem, LevelWake};
use level_sums::LevelSums;
pub use options::{LevelOptions, UltPattern};
pub use reactions::{ReactionAnalysis, ReactionRules};

/// Analyses user-level threads and their LWPs.
pub type LevelAnalysis = PerCpu<LevelRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct LevelRules {
    selection: Selection,
    options: LevelOptions,
    recorded: Arc<Recorded>,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of threads, of each
/// thread's preemptors, reasons of waits and functions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LevelPartial {
    people: People,
    /// Descriptions of user-level threads; of several with one id, the latest.
    described: Table<(i64, u32, Described)>,
    /// Names of functions by key.
    functions: BTreeMap<u64, String>,
    items: Items<LevelItem>,
    /// Time up to which items were taken, in nanoseconds from the origin.
    begin: Option<i64>,
    sums: LevelSums,
    /// State at the end of the played slices.
    machine: LevelMachine,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
}

/// A user-level thread as the super-trace describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Described {
    pub(crate) pid: i32,
    pub(crate) ult: u64,
    pub(crate) name: String,
    pub(crate) runtime: String,
}

impl From<UserThread> for Described {
    fn from(thread: UserThread) -> Described {
        let UserThread {
            pid,
            ult,
            name,
            runtime,
            ..
        } = thread;
        Described {
            pid,
            ult,
            name,
            runtime,
        }
    }
}

impl Rules for LevelRules {
    type Partial = LevelPartial;
    type Report = Report;
    type Options = LevelOptions;

    fn new(selection: &Selection, options: &LevelOptions) -> Self {
        LevelRules {
            selection: selection.clone(),
            options: options.clone(),
            recorded: Arc::default(),
        }
    }

    fn knows(&mut self, recorded: &Arc<Recorded>) {
        self.recorded = recorded.clone();
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        let is_of_calls = matches!(event, Entry(_) | Exit(_));
        let is_of_threads = matches!(
            event,
            Fork(_) | Exec(_) | Rename(..) | ProcessState(_) | UserLevel(_) | ThreadExit(_)
        );
        let is_compensated = !self.options.probe_costs.is_empty();
        is_of_threads
            || is_of_calls
            || is_compensated && matches!(event, Probe)
            || matches!(event, Switch(_) | Wakeup(_) | UserWait(_))
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let describes = |event: &KernelEvent| matches!(event, KernelEvent::UserLevel(step) if step.step == UserLevelStep::Thread);
        (!has(&describes)).then_some(
            "no user-level threads: record a program whose runtime reports them \
             (docs/reference/levels.md lists the sources)",
        )
    }

    fn packet(&self, partial: &mut LevelPartial, packet: &Packet) {
        if packet.lost_before && packet.tells_switches {
            let time = packet.begin.unwrap_or(i64::MIN);
            partial.items.push(packet.cpu, time, LevelItem::Lost);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut LevelPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let item = match &model.event {
            KernelEvent::Switch(switch) => return Self::switch(partial, event, switch, body),
            KernelEvent::Wakeup(wakeup) => match WakeEvent::of(wakeup, body) {
                Some(wake) => LevelItem::Wake(LevelWake::from(wake)),
                None => return,
            },
            KernelEvent::UserWait(entry) => match (model.tid(body), entry.fixed()) {
                (Some(tid), Some(reason)) => LevelItem::Waits(tid, reason),
                _ => return,
            },
            KernelEvent::UserLevel(step) => return Self::user_level(partial, event, step, body),
            KernelEvent::Probe => match model.tid(body) {
                Some(tid) => LevelItem::Probe(tid),
                None => return,
            },
            KernelEvent::Entry(entry) => match user_thread(model, body) {
                Some(tid) => LevelItem::SystemCall(tid, Some(entry.call(body))),
                None => return,
            },
            KernelEvent::Exit(_) => match user_thread(model, body) {
                Some(tid) => LevelItem::SystemCall(tid, None),
                None => return,
            },
            KernelEvent::ThreadExit(tid) => match tid.get(body).map(|tid| tid as i32) {
                Some(tid) if is_ended_elsewhere(tid, model.tid(body)) => LevelItem::Ended(tid),
                _ => return,
            },
            other => {
                learn(&mut partial.people, model, cpu, time, body);
                match other {
                    KernelEvent::Fork(fork) => match fork.child_tid.get(body) {
                        Some(child) => LevelItem::Made(child as i32),
                        None => return,
                    },
                    _ => return,
                }
            }
        };
        partial.items.push(cpu, time, item);
    }

    fn exchange(&self, partial: &mut LevelPartial, resident: &mut LevelPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut LevelPartial, later: LevelPartial) {
        earlier.people.merge(later.people);
        earlier.described.merge_by(later.described, latest);
        earlier.functions.extend(later.functions);
        earlier.items.append(later.items);
        earlier.sums.merge(later.sums);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut LevelPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, LevelPartial>> {
        let begin = partial.begin.replace(watermark).unwrap_or(i64::MIN);
        let items = partial.items.cut(watermark);
        if items.is_empty() {
            return Vec::new();
        }
        match self.recorded.has_all_switches() {
            true => vec![self.slice(items, begin)],
            false => vec![self.whole(items)],
        }
    }

    fn finish(&self, input: &Input, mut partial: LevelPartial) -> Report {
        let items = std::mem::take(&mut partial.items);
        self.play(&mut partial, items);
        let LevelPartial { machine, sums, .. } = &mut partial;
        machine.end(self, sums, |trace| input.end_of(trace));
        report::report(self, input, partial)
    }
}

/// The user-level thread of an event, if there is one: only these have other ids than their LWPs.
fn user_thread(model: &EventModel, body: &mut Body<'_, '_>) -> Option<i32> {
    let lwp = model.lwp(body)?;
    model.tid(body).filter(|tid| *tid != lwp)
}

/// Keeps the later of two descriptions.
fn latest(known: &mut (i64, u32, Described), of: (i64, u32, Described)) {
    if *known < of {
        *known = of;
    }
}

/// True if the options select a user-level thread.
fn is_selected(selection: &Selection, options: &LevelOptions, thread: &Thread, ult: u64) -> bool {
    let name = thread.name.as_deref().unwrap_or_default();
    let ults = &options.ults;
    selection.threads.shows(thread)
        && (ults.is_empty() || ults.iter().any(|pattern| pattern.matches(ult, name)))
}

impl LevelPartial {
    /// A thread with its full name.
    fn named(&self, key: ThreadKey) -> Thread {
        let thread = self.people.thread(key);
        match self.described.find(key) {
            Some((_, _, described)) if !described.name.is_empty() => Thread {
                name: Some(described.name.clone()),
                ..thread
            },
            _ => thread,
        }
    }

    fn describe(&mut self, key: ThreadKey, of: (i64, u32, Described)) {
        latest(self.described.get(key), of);
    }
}

impl LevelRules {
    /// True if the report shows a user-level thread.
    fn shows(&self, thread: &Thread, ult: u64) -> bool {
        is_selected(&self.selection, &self.options, thread, ult)
    }

    #[inline(always)]
    fn switch(
        partial: &mut LevelPartial,
        event: &Event<'_>,
        switch: &Switch,
        body: &mut Body<'_, '_>,
    ) {
        let near = &mut partial.near;
        let Some((prev, next)) = learn_switch(&mut partial.people, near, event, switch, body)
        else {
            return;
        };
        let item = LevelItem::Switch {
            prev,
            next,
            left: LeftAs::of(switch, body),
            lwp: event.model.lwp(body).unwrap_or(-1),
            is_user: switch.is_user_level(body),
        };
        partial.items.push(event.cpu, event.time, item);
    }

    fn user_level(
        partial: &mut LevelPartial,
        event: &Event<'_>,
        step: &UserLevel,
        body: &mut Body<'_, '_>,
    ) {
        let Event {
            model, cpu, time, ..
        } = *event;
        if step.step == UserLevelStep::Thread {
            if let Some(thread) = step.thread(body) {
                let key = ThreadKey {
                    trace: cpu.trace,
                    tid: thread.tid,
                };
                partial.describe(key, (time, cpu.cpu, thread.into()));
            }
            return;
        }
        let Some(tid) = model.tid(body) else { return };
        let item = match step.step {
            UserLevelStep::CallBegin => LevelItem::Call(tid, true),
            UserLevelStep::CallEnd => LevelItem::Call(tid, false),
            UserLevelStep::FunctionEntry | UserLevelStep::FunctionExit => {
                let Some(key) = step.function_key(body) else {
                    return;
                };
                let functions = &mut partial.functions;
                functions
                    .entry(key)
                    .or_insert_with(|| step.function(body).unwrap_or_default());
                let enters = step.step == UserLevelStep::FunctionEntry;
                LevelItem::Function { tid, enters, key }
            }
            UserLevelStep::Thread => return,
        };
        partial.items.push(cpu, time, item);
    }

    /// A slice that is played without the state of threads before it.
    fn slice<'a>(&'a self, mut items: Items<LevelItem>, begin: i64) -> Slice<'a, LevelPartial> {
        Box::new(move |resident| {
            let mut slice = LevelSlice::new(self, begin);
            let sums = &mut resident.sums;
            items.play(None, |cpu, time, item| slice.play(sums, (cpu, time), item));
            let played = slice.end();
            Box::new(move |partial| played.compose(self, &mut partial.machine, &mut partial.sums))
        })
    }

    /// A slice that is played once the state before it is known.
    fn whole<'a>(&'a self, items: Items<LevelItem>) -> Slice<'a, LevelPartial> {
        Box::new(move |_| Box::new(move |partial| self.play(partial, items)))
    }

    fn play(&self, partial: &mut LevelPartial, mut items: Items<LevelItem>) {
        let mut player = LevelPlayer {
            rules: self,
            machine: &mut partial.machine,
            sums: &mut partial.sums,
        };
        items.play(None, |cpu, time, item| player.play((cpu, time), item));
    }
}
