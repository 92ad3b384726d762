//! Waits in system calls: time by wait reason, futexes by address, sockets by peer.
//!
//! Each CPU is followed alone, and calls that begin and end while their thread runs are counted
//! there. Open calls of threads that leave a CPU, operations on futexes and sockets, and wake-ups
//! become items, which a state machine (`wait_machine`) plays in the order of time. Slices of time
//! are played in parallel (`wait_slice`) without the state before them; steps that depend on it are
//! played by the machine when the slices are composed (`wait_compose`). `docs/reference/waits.md`
//! defines each number.

mod call_events;
mod chosen_reasons;
mod cpu_follower;
mod ended_call;
mod futex;
mod keyed;
mod options;
mod report;
#[cfg(test)]
mod slice_tests;
mod socket;
mod socket_slice;
mod sums;
mod tables;
mod thread_waits;
mod wait_compose;
mod wait_machine;
mod wait_slice;
mod wait_step;
mod wait_sums;

use std::sync::Arc;

pub use options::{GROUPINGS, WaitOptions};
use serde::{Deserialize, Serialize};
pub use tables::reason_names;
use tracebraid_kernel_model::{Body, KernelEvent, Syscall};

use call_events::{completes_ring, is_done, is_made};
use chosen_reasons::ChosenReasons;
use cpu_follower::CpuStretch;
use tracebraid_engine::Slice;
use tracebraid_follow::{
    ByCpu, ChosenCalls, CpuKey, Event, Input, InterruptStep, Items, Lane, Packet, People, PerCpu,
    Recorded, Rules, Selection, ThreadKey,
};
use tracebraid_tables::{Report, View};
use tracebraid_threads::{
    CallClasses, Handlers, MigrateEvent, ThreadDirectory, ThreadMove, ThreadNews, WaitReason,
    WakeEvent, exit_of,
};
use wait_compose::PlayedSlice;
use wait_machine::{Player, WaitMachine};
use wait_slice::WaitSlice;
use wait_step::{Act, CpuStep, WaitItem};
use wait_sums::WaitSums;

/// Analyses waits in system calls.
pub type WaitAnalysis = PerCpu<WaitRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct WaitRules {
    selection: Selection,
    options: WaitOptions,
    classes: CallClasses,
    chosen: ChosenCalls,
    reasons: ChosenReasons,
    /// By wait reason: bounds of the durations, in a second pass.
    ranges: Option<Vec<Option<(u64, u64)>>>,
    /// The recorded CPUs.
    recorded: Arc<Recorded>,
}

/// State after some chunks.
///
/// Besides items that wait to be played, which are taken as slices of time while chunks are merged,
/// its size is bounded by the number of threads, of each thread's system calls and futexes, and of
/// descriptors that were sockets; with `--view log` also by that of waits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WaitPartial {
    people: People,
    lanes: ByCpu<Lane<CpuStretch, CpuStep>>,
    items: Items<WaitItem>,
    /// Facts about threads in the items that later slices need.
    news: ThreadNews,
    /// Facts about threads at the start of the waiting items.
    directory: ThreadDirectory,
    /// Start of the waiting items, in nanoseconds from the origin.
    begin: Option<i64>,
    sums: WaitSums,
    /// Entries and exits of unknown threads.
    nobodys: u64,
    /// State at the end of the played slices.
    machine: WaitMachine,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Indices of the last thread that was switched to, in `people`, and of the last caller, in
    /// `sums`.
    #[serde(skip)]
    near: (usize, usize),
    /// The device classes of interrupt handlers.
    #[serde(skip)]
    handlers: Handlers,
}

impl Rules for WaitRules {
    type Partial = WaitPartial;
    type Report = Report;

    type Options = WaitOptions;

    fn new(selection: &Selection, options: &WaitOptions) -> Self {
        let ranges = options.views.ranges.as_ref();
        let of = |why: &WaitReason| ranges.and_then(|ranges| ranges.get(why.name()).copied());
        WaitRules {
            classes: CallClasses::default(),
            chosen: options.calls.chosen(),
            reasons: ChosenReasons::new(&options.reasons),
            ranges: ranges.map(|_| WaitReason::ALL.iter().map(of).collect()),
            selection: selection.clone(),
            options: options.clone(),
            recorded: Arc::default(),
        }
    }

    fn knows(&mut self, recorded: &Arc<Recorded>) {
        self.recorded = recorded.clone();
        if recorded.lacks_all_switches() {
            self.reasons.lacks_switches();
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Entry(_) | Exit(_) | UserWait(_) | UserWaitEnd(_) => true,
            ThreadExit(_) | Wakeup(_) | Migrate(_) => true,
            Block(block) => is_made(block.step) || is_done(block.step),
            Uring(uring) => completes_ring(uring.step),
            Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_) => true,
            interrupt => InterruptStep::is_told_by(interrupt),
        }
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        use KernelEvent::*;
        let lacks = |kind: &dyn Fn(&KernelEvent) -> bool| !has(kind);
        if lacks(&|event| matches!(event, Exit(_) | UserWaitEnd(_))) {
            return Some(
                "no system calls were recorded: enable them (lttng enable-event --kernel --syscall --all)",
            );
        }
        if lacks(&|event| matches!(event, Switch(_))) {
            return Some(
                "the running threads are unknown, and so are all wait reasons: enable sched_switch",
            );
        }
        if lacks(&|event| matches!(event, Wakeup(_))) {
            return Some("wait reasons are unknown: enable sched_waking");
        }
        if lacks(&|event| matches!(event, Softirq(_))) {
            return Some(
                "wake-ups by the network are attributed to the interrupted threads: enable irq_softirq_entry and \
                 irq_softirq_exit",
            );
        }
        if lacks(&|event| matches!(event, Hrtimer(_) | Timer(_))) {
            return Some(
                "wake-ups by timers are attributed to the interrupted threads: enable timer_hrtimer_expire_*",
            );
        }
        if lacks(&|event| matches!(event, Block(_))) {
            return Some(
                "waits for disks are attributed to other devices: enable block_rq_issue and block_rq_complete",
            );
        }
        lacks(&|event| matches!(event, IrqEntry(_))).then_some(
            "wake-ups by devices are attributed to the interrupted threads: enable irq_handler_*",
        )
    }

    fn first(&self) -> WaitPartial {
        WaitPartial {
            is_first: true,
            ..WaitPartial::default()
        }
    }

    fn packet(&self, partial: &mut WaitPartial, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if !packet.lost_before || self.selection.window.is_over(time) {
            return;
        }
        if packet.tells_switches {
            Self::begins(partial, packet.cpu, time, CpuStretch::default());
            partial.push(packet.cpu, time, WaitItem::Lose);
        } else {
            let of_calls = packet.tells_calls;
            let (tid, act) = (None, Act::Lose { of_calls });
            self.rare(partial, packet.cpu, time, CpuStep { tid, act });
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut WaitPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        use KernelEvent::*;
        let Event {
            model, cpu, time, ..
        } = *event;
        let act = match &model.event {
            // Later event records may be missing from some streams, so none must count.
            _ if self.selection.window.is_over(time) => return,
            Entry(entry) | UserWait(entry) => {
                let act = Act::Enter(self.enters(entry, time, body));
                let tid = model.tid(body);
                self.step(partial, cpu, time, CpuStep { tid, act });
                return self.peer(partial, event, entry.peer(body), body);
            }
            Exit(exit) | UserWaitEnd(exit) => {
                let peer = exit.peer.as_ref().and_then(|peer| peer.get(body));
                self.peer(partial, event, peer, body);
                let (call, result) = exit_of(exit, body);
                Act::Exit(call, result)
            }
            Switch(switch) => return Self::switch(partial, event, switch, body),
            // If all CPUs are recorded, switches show where threads run.
            Migrate(migrate) => {
                if !self.recorded.is_whole(cpu.trace)
                    && let Some(moves) = MigrateEvent::of(migrate, body)
                {
                    let (tid, act) = (None, Act::Tell(WaitItem::Migrate(moves)));
                    self.step(partial, cpu, time, CpuStep { tid, act });
                }
                return;
            }
            Wakeup(wakeup) => match WakeEvent::of(wakeup, body) {
                Some(wake) => {
                    let tid = wake.woken;
                    let thread = ThreadKey {
                        trace: cpu.trace,
                        tid,
                    };
                    let for_device = self.options.devices.contain(thread, time);
                    Act::Wake(WakeEvent { for_device, ..wake })
                }
                None => return,
            },
            Fork(_) | Exec(_) | Rename(..) | ProcessState(_) | ThreadExit(_) => {
                return self.task(partial, event, body);
            }
            other => match Self::interrupts(partial, other, body) {
                Some(act) => act,
                None => return,
            },
        };
        let tid = model.tid(body);
        self.step(partial, cpu, time, CpuStep { tid, act });
    }

    fn exchange(&self, partial: &mut WaitPartial, resident: &mut WaitPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut WaitPartial, later: WaitPartial) {
        earlier.people.merge(later.people);
        let step = |earlier: &mut _, cpu, time, step| self.rare(earlier, cpu, time, step);
        later.lanes.join(earlier, step, Self::begins);
        earlier.news.append(later.news, &earlier.items);
        earlier.items.append(later.items);
        earlier.sums.merge(later.sums, self.options.views.top());
        earlier.nobodys += later.nobodys;
    }

    fn slices<'a>(
        &'a self,
        partial: &mut WaitPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, WaitPartial>> {
        if !self.recorded.has_all_switches() {
            partial.news = ThreadNews::default();
            self.play(partial, Some(watermark));
            return Vec::new();
        }
        let begin = partial.begin.replace(watermark).unwrap_or(i64::MIN);
        let items = partial.items.cut(watermark);
        let directory = partial.directory.go_on(&mut partial.news, watermark);
        match items.is_empty() {
            true => Vec::new(),
            false => vec![self.slice(items, begin, directory)],
        }
    }

    fn finish(&self, input: &Input, mut partial: WaitPartial) -> Report {
        for (cpu, lane) in std::mem::take(&mut partial.lanes) {
            if let Some(active) = lane.into_now() {
                Self::parks(&mut partial, cpu, i64::MAX, active);
            }
        }
        self.play(&mut partial, None);
        report::report(self, input, partial)
    }
}

impl WaitPartial {
    /// Adds an item for playing over all CPUs.
    #[inline(always)]
    fn push(&mut self, cpu: CpuKey, time: i64, item: WaitItem) {
        let trace = cpu.trace;
        match item {
            WaitItem::Enter(tid) | WaitItem::Arrive(tid, ..) | WaitItem::Die(tid) => {
                self.news.is_active(ThreadKey { trace, tid });
            }
            WaitItem::Park(parked) if parked.has_called() => {
                self.news.is_active(ThreadKey {
                    trace,
                    tid: parked.tid,
                });
            }
            WaitItem::Made(_) | WaitItem::TakeOver(..) | WaitItem::Belongs { .. } => {
                self.moves(cpu, time, &item);
            }
            _ => {}
        }
        self.items.push(cpu, time, item);
    }

    #[cold]
    fn moves(&mut self, cpu: CpuKey, time: i64, item: &WaitItem) {
        let trace = cpu.trace;
        let moves = match *item {
            WaitItem::Made(tid) => ThreadMove::Made(tid),
            WaitItem::TakeOver(tid, old) => {
                for tid in [tid, old] {
                    self.news.is_active(ThreadKey { trace, tid });
                }
                ThreadMove::TakeOver(tid, old)
            }
            WaitItem::Belongs { tid, pid } => ThreadMove::Belongs(tid, pid),
            _ => return,
        };
        let time = self.items.held(cpu, time);
        self.news.moves(cpu, time, moves);
    }
}

impl WaitRules {
    /// True if a call is selected, by the CPU and the time of its end.
    #[inline(always)]
    fn counts(&self, call: Syscall, time: i64, cpu: CpuKey, duration: u64) -> bool {
        self.selection.counts(time, cpu.cpu)
            && self.options.views.limits.contain(duration)
            && self.chosen.contain(call)
    }

    /// The same of a call that did nothing but run.
    #[inline(always)]
    fn counts_plain(&self, call: Syscall, time: i64, cpu: CpuKey, duration: u64) -> bool {
        self.counts(call, time, cpu, duration) && self.reasons.contain_plain()
    }

    /// Minimum number of waits of a call to keep.
    fn listed(&self) -> usize {
        match self.ranges {
            Some(_) => 0,
            None if self.options.views.shows(View::Log) => usize::MAX,
            None => self.options.views.top(),
        }
    }

    /// A slice that is played without the state of threads before it.
    fn slice<'a>(
        &'a self,
        mut items: Items<WaitItem>,
        begin: i64,
        directory: ThreadDirectory,
    ) -> Slice<'a, WaitPartial> {
        Box::new(move |resident| {
            let sums = &mut resident.sums;
            let mut slice = WaitSlice::new(self, begin, directory);
            items.play(None, |cpu, time, item| slice.play(sums, cpu, time, item));
            let played = PlayedSlice::new(slice);
            Box::new(move |partial| played.compose(self, &mut partial.machine, &mut partial.sums))
        })
    }

    /// Plays items in the order of time.
    fn play(&self, partial: &mut WaitPartial, until: Option<i64>) {
        let mut player = Player {
            rules: self,
            machine: &mut partial.machine,
            sums: &mut partial.sums,
        };
        partial
            .items
            .play(until, |cpu, time, item| player.play(cpu, time, item));
    }
}
