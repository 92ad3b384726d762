//! System calls: how many, how long, what they gave.
//!
//! An exit ends the call that its thread entered last, if it names the same one. `docs/reports.md`
//! defines each number.

mod calls;
mod report;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, KernelEvent, Syscall, SyscallExit};

use crate::kernel::{ChosenCalls, Event, InOrder, Input, Packet, Rules, Selection, Tasks, Told};
use crate::report::{Report, View};
use calls::{Call, Calls, Entered, Exited};

/// The analysis.
pub type SyscallAnalysis = InOrder<SyscallRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct SyscallRules {
    selection: Selection,
    chosen: ChosenCalls,
    /// Those that may be among the longest.
    longest: ChosenCalls,
    /// By number: the bounds of its durations, in a second pass.
    ranges: Vec<Option<(u64, u64)>>,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SyscallPartial {
    tasks: Tasks<Step>,
    /// By place of the thread.
    threads: Vec<Calls>,
    /// Entries and exits of which it is not known whose they are.
    nobodys: u64,
    /// In the order of their ends.
    log: Vec<Call>,
}

/// What happens to a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Step {
    Enter(Syscall),
    /// Exit, of that call or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
}

impl Rules for SyscallRules {
    type Partial = SyscallPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        let all = || (0..Syscall::count()).map(Syscall);
        let ranges = selection.ranges.as_ref();
        let ranges = ranges.map(|ranges| all().map(|call| ranges.get(call.user_name()).copied()).collect());
        SyscallRules {
            selection: selection.clone(),
            chosen: selection.chosen_calls(),
            longest: selection.longest_calls(),
            ranges: ranges.unwrap_or_default(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        let is_call = matches!(event, KernelEvent::Entry(_) | KernelEvent::Exit(_));
        is_call || Tasks::<Step>::wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        if !has(&|event| matches!(event, KernelEvent::Exit(_))) {
            return Some(
                "no system calls were recorded: enable them (lttng enable-event --kernel --syscall --all)",
            );
        }
        let switches = has(&|event| matches!(event, KernelEvent::Switch(_)));
        (!switches).then_some("nothing here may tell threads apart: enable sched_switch, or the context tid")
    }

    fn packet(&self, partial: &mut SyscallPartial, packet: &Packet) {
        partial.tasks.packet(packet);
    }

    #[inline(always)]
    fn event(&self, partial: &mut SyscallPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        // What comes later is not read in every way: it must not matter.
        let is_over = self.selection.window.is_over(event.time);
        let step = match &event.model.event {
            KernelEvent::Entry(_) | KernelEvent::Exit(_) if is_over => return,
            KernelEvent::Entry(entry) => Step::Enter(entry.call(body)),
            KernelEvent::Exit(exit) => Self::exit(exit, body),
            _ => return self.task(partial, event, body),
        };
        let actor = partial.tasks.actor(event, body);
        if let Some(told) = partial.tasks.tell_or_wait(actor, event.cpu, event.time, step) {
            self.step(partial, told);
        }
    }

    fn merge(&self, earlier: &mut SyscallPartial, later: SyscallPartial) {
        let joined = earlier.tasks.merge(later.tasks);
        joined.told.into_iter().for_each(|told| self.step(earlier, told));
        for (mut calls, &place) in later.threads.into_iter().zip(&joined.places) {
            if let Some(exited) = calls.head.take() {
                self.exited(earlier, place, exited);
            }
            earlier.thread(place).merge(calls, place, self.selection.top());
        }
        let moved = later.log.into_iter().map(|call| call.moved(&joined.places));
        earlier.log.extend(moved);
        earlier.nobodys += later.nobodys;
    }

    fn finish(&self, input: &Input, partial: SyscallPartial) -> Report {
        report::report(self, input, partial)
    }
}

impl SyscallPartial {
    #[inline]
    fn thread(&mut self, place: usize) -> &mut Calls {
        if place >= self.threads.len() {
            self.threads.resize_with(place + 1, Calls::default);
        }
        &mut self.threads[place]
    }
}

impl SyscallRules {
    fn exit(exit: &SyscallExit, body: &mut Body<'_, '_>) -> Step {
        // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
        let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
        Step::Exit(call, exit.result.get(body).unwrap_or(0))
    }

    /// A thread that is made has no call open, whoever had its id before.
    fn task(&self, partial: &mut SyscallPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        partial.tasks.event(event, body);
        if let KernelEvent::Fork(fork) = &event.model.event
            && let Some(child) = fork.child_tid.get(body)
        {
            let place = partial.tasks.place(event.cpu.trace, child as i32);
            partial.thread(place).begin();
        }
    }

    #[inline(always)]
    fn step(&self, partial: &mut SyscallPartial, told: Told<Step>) {
        // Idle threads make no calls: the switch to whoever did was lost.
        let Some(place) = told.place.filter(|&place| !partial.tasks.is_idle(place)) else {
            partial.nobodys += 1;
            return;
        };
        match told.item {
            Step::Enter(call) => partial.thread(place).enter(Entered {
                call,
                time: told.time,
            }),
            Step::Exit(call, result) => {
                let Told { cpu, time, .. } = told;
                let exited = Exited {
                    call,
                    result,
                    time,
                    cpu: cpu.cpu,
                };
                self.exited(partial, place, exited);
            }
        }
    }

    #[inline(always)]
    fn exited(&self, partial: &mut SyscallPartial, place: usize, exited: Exited) {
        let Some(entered) = partial.thread(place).exit(exited) else {
            return;
        };
        let call = Call {
            duration: entered.time.abs_diff(exited.time),
            begin: entered.time,
            call: entered.call,
            result: exited.result,
            place,
        };
        if self.counts(&call, &exited) {
            self.count(partial, call);
        }
    }

    /// True if a call is asked for: it counts where and when it ends.
    #[inline(always)]
    fn counts(&self, call: &Call, exited: &Exited) -> bool {
        self.selection.counts(exited.time, exited.cpu)
            && self.selection.limits.contain(call.duration)
            && self.chosen.contain(call.call)
    }

    #[inline(always)]
    fn count(&self, partial: &mut SyscallPartial, call: Call) {
        if let Some(&range) = self.ranges.get(usize::from(call.call.0)) {
            if let Some(range) = range {
                let stats = partial.thread(call.place).of(call.call);
                stats.bins.get_or_insert_default().add(range, call.duration);
            }
            return;
        }
        if self.selection.shows(View::Log) {
            partial.log.push(call);
        }
        let is_listed = self.longest.contain(call.call);
        let top = if is_listed { self.selection.top() } else { 0 };
        partial.thread(call.place).count(call, top);
    }
}
