//! System calls: numbers, durations, results.
//!
//! An exit ends the call that its thread entered last, if both have the same system call.
//! `docs/reference/reports.md` defines each number.

mod calls;
mod options;
mod report;

pub use options::{GROUPINGS, SyscallOptions};
use serde::{Deserialize, Serialize};
use tracebraid_engine::{Composition, Slice};
use tracebraid_kernel_model::{Body, KernelEvent, Syscall};

use crate::garbage::Garbage;
use calls::{Call, Calls};
use tracebraid_follow::{
    ByCpu, CallEvent, CallItem, CallSlice, CallStep, CallStretch, ChosenCalls, CpuKey, EndedCall,
    Entered, Event, Exited, Input, Items, Lane, OpenCalls, Packet, People, PerCpu, Rules,
    Selection, Table, ThreadCall, ThreadKey, learn, learn_switch, taken_over,
};
use tracebraid_tables::{Report, View};

/// Analyses system calls.
pub type SyscallAnalysis = PerCpu<SyscallRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct SyscallRules {
    selection: Selection,
    options: SyscallOptions,
    chosen: ChosenCalls,
    /// System calls that may be among the longest.
    longest: ChosenCalls,
    /// By number of the system call: bounds of the durations, in a second pass.
    ranges: Vec<Option<(u64, u64)>>,
    /// Number of the longest calls kept.
    top: usize,
    /// Whether all calls are kept.
    is_logged: bool,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of CPUs, of threads, and
/// of each thread's system calls and errors; with `--view log` also by that of calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SyscallPartial {
    people: People,
    sums: Sums,
    lanes: ByCpu<Lane<CallStretch, CallEvent>>,
    items: Items<CallItem>,
    /// Open calls at the time `played`, in nanoseconds from the origin.
    open: OpenCalls,
    played: i64,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
    /// Remains of composed slices.
    #[serde(skip)]
    garbage: Garbage,
}

/// Sums that do not depend on order. Apart from the log, their size is bounded by the number of
/// threads and of each thread's system calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Sums {
    threads: Table<Calls>,
    /// Entries and exits of unknown threads.
    nobodys: u64,
    log: Vec<Call>,
    /// Index of the last caller in `threads`.
    #[serde(skip)]
    near: usize,
}

impl Rules for SyscallRules {
    type Partial = SyscallPartial;
    type Report = Report;

    type Options = SyscallOptions;

    fn new(selection: &Selection, options: &SyscallOptions) -> Self {
        let all = || (0..Syscall::count()).map(Syscall);
        let ranges = options.views.ranges.as_ref();
        let ranges = ranges.map(|ranges| {
            all()
                .map(|call| ranges.get(call.user_name()).copied())
                .collect()
        });
        SyscallRules {
            selection: selection.clone(),
            options: options.clone(),
            chosen: options.calls.chosen(),
            longest: match options.is_summary {
                true => ChosenCalls::without_waits_for_work(),
                false => ChosenCalls::default(),
            },
            ranges: ranges.unwrap_or_default(),
            top: options.views.top(),
            is_logged: options.views.shows(View::Log),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        matches!(
            event,
            Entry(_) | Exit(_) | Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
        )
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        if !has(&|event| matches!(event, KernelEvent::Exit(_))) {
            return Some(
                "no system calls were recorded: enable them (lttng enable-event --kernel --syscall --all)",
            );
        }
        let switches = has(&|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some(
            "the threads of calls are unknown: enable sched_switch, or add the context tid",
        )
    }

    fn first(&self) -> SyscallPartial {
        SyscallPartial {
            is_first: true,
            played: i64::MIN,
            ..SyscallPartial::default()
        }
    }

    fn packet(&self, partial: &mut SyscallPartial, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if packet.lost_before && packet.tells_switches {
            Self::goes_over(partial, packet.cpu, time, None);
        } else if packet.lost_before && packet.tells_calls {
            let (tid, step) = (None, CallStep::Lose);
            self.step(partial, packet.cpu, time, CallEvent { tid, step });
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut SyscallPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        // Later event records may be missing from some streams, so none must count.
        let is_over = self.selection.window.is_over(event.time);
        let step = match &event.model.event {
            KernelEvent::Entry(_) | KernelEvent::Exit(_) if is_over => return,
            KernelEvent::Entry(entry) => CallStep::Enter(entry.call(body)),
            KernelEvent::Exit(exit) => CallStep::of_exit(exit, body),
            _ => return self.task(partial, event, body),
        };
        let Event { cpu, time, .. } = *event;
        let tid = event.model.tid(body);
        self.step(partial, cpu, time, CallEvent { tid, step });
    }

    fn exchange(&self, partial: &mut SyscallPartial, resident: &mut SyscallPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut SyscallPartial, later: SyscallPartial) {
        let step = |earlier: &mut _, cpu, time, event| self.step(earlier, cpu, time, event);
        later.lanes.join(earlier, step, Self::begins);
        earlier.people.merge(later.people);
        earlier.items.append(later.items);
        earlier.sums.merge(later.sums, self.top);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut SyscallPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, SyscallPartial>> {
        let begin = std::mem::replace(&mut partial.played, watermark);
        let items = partial.items.cut(watermark);
        if items.is_empty() {
            return Vec::new();
        }
        let garbage = partial.garbage.take();
        vec![Box::new(move |resident| {
            drop(garbage);
            self.play_slice(items, begin, &mut resident.sums)
        })]
    }

    fn finish(&self, input: &Input, mut partial: SyscallPartial) -> Report {
        for (cpu, lane) in std::mem::take(&mut partial.lanes) {
            if let Some((tid, entered)) = lane.into_now().and_then(CallStretch::into_open) {
                let leaves = CallItem::Leaves(tid, entered);
                partial.items.push(cpu, i64::MAX, leaves);
            }
        }
        let SyscallPartial {
            sums, items, open, ..
        } = &mut partial;
        items.play(None, |cpu, time, item| {
            if let Some(call) = open.play(cpu, time, &item) {
                self.ended(sums, call);
            }
        });
        partial.garbage.take().free();
        report::report(self, input, partial)
    }
}

impl Sums {
    /// Adds other sums.
    fn merge(&mut self, other: Sums, top: usize) {
        self.threads
            .merge_by(other.threads, |own, calls| own.merge(calls, top));
        self.log.extend(other.log);
        self.nobodys += other.nobodys;
    }
}

impl SyscallRules {
    /// Processes events other than entries and exits.
    fn task(&self, partial: &mut SyscallPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        if let KernelEvent::Switch(switch) = &model.event {
            let near = &mut partial.near;
            if let Some((_, next)) = learn_switch(&mut partial.people, near, event, switch, body) {
                Self::goes_over(partial, cpu, time, Some(next));
            }
            return;
        }
        learn(&mut partial.people, model, cpu, time, body);
        match &model.event {
            // A new thread has no open call, even if its id had another owner.
            KernelEvent::Fork(fork) => {
                if let Some(tid) = fork.child_tid.get(body) {
                    let step = CallStep::Make(tid as i32);
                    self.step(partial, cpu, time, CallEvent { tid: None, step });
                }
            }
            // The thread takes over the id of its process's first thread.
            KernelEvent::Exec(exec) => {
                if let Some((old, tid)) = taken_over(exec, body) {
                    Self::goes_over(partial, cpu, time, Some(tid));
                    partial.items.push(cpu, time, CallItem::TakesOver(tid, old));
                }
            }
            _ => {}
        }
    }

    /// Another thread runs from now on; `None`: unknown.
    fn goes_over(partial: &mut SyscallPartial, cpu: CpuKey, time: i64, tid: Option<i32>) {
        Self::begins(partial, cpu, time, CallStretch::new(tid));
    }

    fn begins(partial: &mut SyscallPartial, cpu: CpuKey, time: i64, stretch: CallStretch) {
        let ended = partial.lanes.get(cpu).goes_over(time, stretch);
        if let Some((tid, entered)) = ended.and_then(CallStretch::into_open) {
            partial
                .items
                .push(cpu, time, CallItem::Leaves(tid, entered));
        }
    }

    /// A call begins or ends.
    #[inline(always)]
    fn step(&self, partial: &mut SyscallPartial, cpu: CpuKey, time: i64, event: CallEvent) {
        let Some(mut stretch) = partial.lanes.get(cpu).now() else {
            return self.before(partial, cpu, time, event);
        };
        let CallEvent { tid, step } = event;
        if stretch.is_left(tid) {
            Self::goes_over(partial, cpu, time, tid);
            let Some(own) = partial.lanes.get(cpu).now() else {
                return;
            };
            stretch = own;
        }
        let tid = match (step, stretch.caller()) {
            (CallStep::Make(child), _) => {
                return partial.items.push(cpu, time, CallItem::Made(child));
            }
            (_, Some(tid)) => tid,
            (CallStep::Lose, None) => return,
            (_, None) => return partial.sums.nobodys += 1,
        };
        match step {
            CallStep::Enter(call) => {
                if stretch.enter(Entered { call, time }) {
                    partial.items.push(cpu, time, CallItem::Enters(tid));
                }
            }
            CallStep::Exit(call, result) => {
                let exited = Exited { call, result, time };
                match stretch.exit(&exited) {
                    EndedCall::Call(entered) => {
                        let thread = ThreadKey {
                            trace: cpu.trace,
                            tid,
                        };
                        let call = ThreadCall {
                            thread,
                            cpu,
                            entered,
                            exited,
                        };
                        self.ended(&mut partial.sums, call);
                    }
                    EndedCall::Elsewhere => {
                        partial
                            .items
                            .push(cpu, time, CallItem::Arrives(tid, exited))
                    }
                    EndedCall::Nothing => {}
                }
            }
            CallStep::Lose => {
                if stretch.lose() {
                    partial.items.push(cpu, time, CallItem::Enters(tid));
                }
            }
            CallStep::Make(_) => {}
        }
    }

    /// The thread is unknown: earlier chunks contain it, if there are any.
    #[cold]
    fn before(&self, partial: &mut SyscallPartial, cpu: CpuKey, time: i64, event: CallEvent) {
        if partial.is_first {
            Self::goes_over(partial, cpu, time, None);
            return self.step(partial, cpu, time, event);
        }
        partial.lanes.get(cpu).wait(time, event);
    }

    /// Pairs entries and exits in different stretches, in a slice that begins at `begin`.
    fn play_slice<'a>(
        &'a self,
        mut items: Items<CallItem>,
        begin: i64,
        sums: &mut Sums,
    ) -> Composition<'a, SyscallPartial> {
        let mut slice = CallSlice::new(begin);
        items.play(None, |cpu, time, item| {
            if let Some(call) = slice.play(cpu, time, &item) {
                self.ended(sums, call);
            }
        });
        Box::new(move |partial| {
            let SyscallPartial {
                open,
                sums,
                garbage,
                ..
            } = partial;
            slice.compose(open, |call| self.ended(sums, call));
            garbage.put(slice);
        })
    }

    #[inline(always)]
    fn ended(&self, sums: &mut Sums, call: ThreadCall) {
        let ThreadCall {
            thread,
            cpu,
            entered,
            exited,
        } = call;
        let call = Call {
            duration: entered.time.abs_diff(exited.time),
            begin: entered.time,
            call: entered.call,
            result: exited.result,
            thread,
        };
        if self.counts(&call, cpu) {
            self.count(sums, call);
        }
    }

    /// True if a call is selected, by the CPU and the time of its end.
    #[inline(always)]
    fn counts(&self, call: &Call, cpu: CpuKey) -> bool {
        self.selection.counts(call.end(), cpu.cpu)
            && self.options.views.limits.contain(call.duration)
            && self.chosen.contain(call.call)
    }

    #[inline(always)]
    fn count(&self, sums: &mut Sums, call: Call) {
        let calls = sums.threads.get_near(call.thread, &mut sums.near);
        if let Some(&range) = self.ranges.get(usize::from(call.call.0)) {
            if let Some(range) = range {
                let bins = calls.of(call.call).bins.get_or_insert_default();
                bins.add(range, call.duration);
            }
            return;
        }
        let is_listed = self.longest.contain(call.call);
        let top = if is_listed { self.top } else { 0 };
        calls.count(call, top, self.options.is_summary);
        if self.is_logged {
            sums.log.push(call);
        }
    }
}
