//! What becomes of threads and their calls, by all events in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::kernel::CpuKey;
use crate::report::View;
use crate::stats::Bins;
use crate::waits::WaitRules;
use crate::waits::context::Source;
use crate::waits::futex::Futexes;
use crate::waits::item::{Item, Left, What};
use crate::waits::kind::Kind;
use crate::waits::life::{Life, Open, Parts, Stretch, Woken};
use crate::waits::losses::Losses;
use crate::waits::socket::{Done, Owner, Sockets};
use crate::waits::sums::{Sums, Wait, Waker};
use crate::waits::why::{WakingThread, Why, why};

/// What is known of threads and their calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machine {
    /// By place of the thread.
    lives: Vec<Life>,
    losses: Losses,
    /// By place of the thread.
    pub(super) sums: Vec<Sums>,
    pub(super) futexes: Futexes,
    pub(super) sockets: Sockets,
    /// Entries and exits of which it is not known whose they are.
    pub(super) nobodys: u64,
    /// Waits in the order in which their calls end.
    pub(super) log: Vec<Wait>,
}

/// A call has ended.
#[derive(Clone, Copy, Debug)]
struct Exited {
    call: Option<Syscall>,
    result: i64,
    time: i64,
    cpu: CpuKey,
}

/// A thread is woken.
#[derive(Clone, Copy, Debug)]
struct WokenNow {
    woken: u32,
    source: Source,
    is_ready: bool,
}

impl Machine {
    /// Something happens.
    #[inline(always)]
    pub(super) fn step(&mut self, rules: &WaitRules, item: Item) {
        let Item { time, cpu, who, what } = item;
        match (what, who) {
            (
                What::Enter {
                    call,
                    operation,
                    argument,
                },
                Some(place),
            ) => {
                let open = Open {
                    call,
                    begin: time,
                    operation,
                    argument,
                    peer: None,
                    waker: None,
                };
                let (life, losses) = self.life(place);
                life.enter(open, cpu, losses);
            }
            (What::Exit { call, result }, Some(place)) => {
                let exited = Exited {
                    call,
                    result,
                    time,
                    cpu,
                };
                self.exit(rules, place, exited);
            }
            (What::Enter { .. } | What::Exit { .. }, None) => self.nobodys += 1,
            (What::Switch { next, left }, prev) => self.switch(rules, (time, cpu), (prev, next), left),
            (
                What::Wake {
                    woken,
                    context,
                    is_ready,
                },
                who,
            ) => {
                let source = context.source();
                let wakeup = WokenNow {
                    woken,
                    source,
                    is_ready,
                };
                self.wake(rules, (time, cpu), who, wakeup);
            }
            (rare, who) => self.rare(cpu, who, rare),
        }
    }

    /// What happens seldom, or matters little.
    fn rare(&mut self, cpu: CpuKey, who: Option<u32>, what: What) {
        match (what, who) {
            (What::Peer(peer), Some(place)) => {
                if let Some(open) = &mut self.life(place).0.call {
                    open.peer = Some(peer);
                }
            }
            (What::Request, Some(place)) => self.life(place).0.requested = true,
            (What::Born { child }, _) => *self.life(child).0 = Life::default(),
            (What::Dies { thread }, _) => self.life(thread).0.dies(),
            (What::Belongs { thread, pid }, _) => self.life(thread).0.pid = Some(pid),
            (What::Lost, _) => self.losses.lose(cpu),
            _ => {}
        }
    }

    #[inline(always)]
    fn life(&mut self, place: u32) -> (&mut Life, &Losses) {
        let at = place as usize;
        if at >= self.lives.len() {
            self.lives.resize_with(at + 1, Life::default);
        }
        (&mut self.lives[at], &self.losses)
    }

    fn switch(
        &mut self,
        rules: &WaitRules,
        (time, cpu): (i64, CpuKey),
        (prev, next): (Option<u32>, Option<u32>),
        left: Left,
    ) {
        if let Some(place) = prev {
            let (life, losses) = self.life(place);
            let stretch = life.leave(time, cpu, left, losses);
            if stretch.why != Why::Running {
                self.list(rules, place, stretch);
            }
        }
        if let Some(place) = next {
            let (life, losses) = self.life(place);
            let stretch = life.come(time, cpu, losses);
            self.list(rules, place, stretch);
        }
    }

    fn wake(
        &mut self,
        rules: &WaitRules,
        (time, cpu): (i64, CpuKey),
        who: Option<u32>,
        WokenNow {
            woken,
            source,
            is_ready,
        }: WokenNow,
    ) {
        let thread = who.filter(|_| source == Source::Thread);
        let waking = thread.map(|place| {
            let (life, _) = self.life(place);
            WakingThread {
                call: life.kind(&rules.kinds),
                has_called: life.has_called,
                has_closed: life.has_closed,
                is_at_disk: life.requested || life.waited_for == Why::Disk,
            }
        });
        let (life, losses) = self.life(woken);
        let why = why(life.kind(&rules.kinds), source, waking);
        let waker = Waker { source, thread };
        let stretch = life.wake(time, cpu, Woken { why, waker, is_ready }, losses);
        if let (Why::Futex, Some(open)) = (why, &mut life.call) {
            open.waker = thread;
        }
        if let Some(stretch) = stretch {
            self.list(rules, woken, stretch);
        }
    }

    /// Keeps a wait that is to be listed if its call is.
    fn list(&mut self, rules: &WaitRules, place: u32, stretch: Stretch) {
        let most = rules.listed();
        let wanted = most > 0 && stretch.duration > 0 && rules.selection.limits.contain(stretch.duration);
        let (life, _) = self.life(place);
        let Some(open) = life.call.as_ref().filter(|_| wanted) else {
            return;
        };
        life.waits.push(Wait {
            duration: stretch.duration,
            begin: stretch.begin,
            why: stretch.why,
            call: open.call,
            place,
            waker: stretch.waker,
        });
        // A call may wait for ever: of its waits, those that cannot be among the longest are left out.
        if life.waits.len() >= most.saturating_mul(2).max(64) {
            life.waits.sort_unstable_by(|a, b| b.cmp(a));
            life.waits.truncate(most);
        }
    }

    #[inline(always)]
    fn exit(&mut self, rules: &WaitRules, place: u32, exited: Exited) {
        let at = place as usize;
        self.life(place);
        if at >= self.sums.len() {
            self.sums.resize_with(at + 1, Sums::default);
        }
        let (life, sums) = (&mut self.lives[at], &mut self.sums[at]);
        let pid = life.pid;
        let Some((open, parts)) = life.exit(exited.time, exited.cpu, &self.losses, &rules.kinds) else {
            return;
        };
        // If another one ends, the events between were lost.
        if exited.call.is_some_and(|call| call != open.call) {
            return;
        }
        let duration = open.begin.abs_diff(exited.time);
        let counts = rules.counts(open.call, exited.time, exited.cpu, duration);
        if counts {
            match &rules.ranges {
                None => sums.of(open.call).count(duration, parts),
                Some(ranges) => bin(&mut sums.bins, ranges, duration, parts),
            }
            if !life.waits.is_empty() {
                self.keep_waits(rules, at);
            }
        }
        match rules.kinds.of(open.call) {
            Kind::Other => {}
            Kind::Futex if counts => self.futexes.count(place, &open, duration, exited.result),
            kind => self.sockets.done(&Done {
                place,
                owner: owner(exited.cpu.trace, pid, place),
                kind,
                open: &open,
                time: exited.time,
                result: exited.result,
                counts,
            }),
        }
    }

    /// The waits of a call that counts are listed.
    fn keep_waits(&mut self, rules: &WaitRules, at: usize) {
        let (Some(life), Some(sums)) = (self.lives.get_mut(at), self.sums.get_mut(at)) else {
            return;
        };
        let waits = std::mem::take(&mut life.waits);
        let top = rules.selection.top();
        waits.iter().for_each(|wait| sums.top.add(*wait, top));
        if rules.selection.shows(View::Log) {
            self.log.extend(waits);
        }
    }

    /// Calls that were asked for and are open, and are to end, of threads that `shows` chooses by place.
    pub(super) fn unfinished(&self, rules: &WaitRules, shows: impl Fn(u32) -> bool) -> u64 {
        let is_open = |(place, life): &(usize, &Life)| {
            let call = life.call().filter(|&call| rules.chosen.contain(call));
            call.is_some() && life.kind(&rules.kinds) != Some(Kind::Exit) && shows(*place as u32)
        };
        self.lives.iter().enumerate().filter(is_open).count() as u64
    }
}

fn owner(trace: u32, pid: Option<i32>, place: u32) -> Owner {
    (trace, pid.map_or(-1 - i64::from(place), i64::from))
}

/// Counts the parts of a call among those of their size.
fn bin(bins: &mut Vec<Bins>, ranges: &[Option<(u64, u64)>], duration: u64, parts: Option<&Parts>) {
    bins.resize(Why::ALL.len(), Bins::default());
    let mut add = |why: Why, time: u64| {
        let at = why as usize;
        if let (Some(bins), Some(Some(range))) = (bins.get_mut(at), ranges.get(at)) {
            bins.add(*range, time);
        }
    };
    match parts {
        None => add(Why::Running, duration),
        Some(parts) => {
            let parts = Why::ALL.into_iter().zip(parts).filter(|part| *part.1 > 0);
            parts.for_each(|(why, &time)| add(why, time));
        }
    }
}
