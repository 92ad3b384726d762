//! Appends a played slice of time to the state before it.

use crate::waits::WaitRules;
use crate::waits::socket_slice::EndedSockets;
use crate::waits::sums::Wait;
use crate::waits::wait_machine::{Player, WaitMachine};
use crate::waits::wait_slice::{KeptWake, KeptWaker, WaitNews, WaitSlice, WaitStep};
use crate::waits::wait_sums::WaitSums;
use tracebraid_follow::{Losses, ThreadKey};

/// A played slice. Its size depends on the number of threads, and of descriptors that are read and
/// written.
#[derive(Debug)]
pub(super) struct PlayedSlice {
    steps: Vec<WaitStep>,
    news: Vec<(ThreadKey, WaitNews)>,
    sockets: EndedSockets,
}

impl PlayedSlice {
    pub(super) fn new(slice: WaitSlice<'_>) -> PlayedSlice {
        let (steps, news, sockets) = slice.end();
        PlayedSlice {
            steps,
            news,
            sockets: sockets.end(),
        }
    }

    /// Amount of work for composing, by kind.
    #[cfg(test)]
    pub(super) fn counts(&self) -> [(&'static str, u32); 4] {
        let (others, sums) = self.sockets.counts();
        [
            ("steps", self.steps.len() as u32),
            ("news at the end", self.news.len() as u32),
            ("sockets that are other ones later", others),
            ("sums of unknown sockets", sums),
        ]
    }

    /// Appends the slice to the state at its start.
    pub(super) fn compose(self, rules: &WaitRules, machine: &mut WaitMachine, sums: &mut WaitSums) {
        let PlayedSlice {
            steps,
            news,
            mut sockets,
        } = self;
        let before = machine.losses.clone();
        let mut player = Player {
            rules,
            machine,
            sums,
        };
        for (number, step) in (0..).zip(steps) {
            let Player { machine, sums, .. } = &mut player;
            sockets.go_on(number, &mut machine.sockets, &mut sums.sockets);
            player.replay(step, &before);
        }
        for (thread, news) in news {
            player.install(thread, news, &before);
        }
        sockets.end(&mut player.machine.sockets, &mut player.sums.sockets);
    }
}

impl Player<'_> {
    fn replay(&mut self, step: WaitStep, before: &Losses) {
        match step {
            WaitStep::News(thread, news) => self.install(thread, *news, before),
            WaitStep::Item(cpu, time, item) => self.play(cpu, time, item),
            WaitStep::Leaves(cpu, time, tid, left) => {
                let trace = cpu.trace;
                self.leaves((cpu, time), ThreadKey { trace, tid }, left);
            }
            WaitStep::Comes(cpu, time, tid) => {
                let trace = cpu.trace;
                self.comes((cpu, time), ThreadKey { trace, tid });
            }
            WaitStep::Wakes(kept) => self.replay_wake(*kept),
        }
    }

    fn replay_wake(&mut self, kept: KeptWake) {
        let trace = kept.cpu.trace;
        let (thread, waking) = match kept.waker {
            KeptWaker::Known(thread, waking) => (thread, waking),
            KeptWaker::By(by) => {
                let thread = by.tid().map(|tid| ThreadKey { trace, tid });
                (thread, self.waking(trace, by))
            }
        };
        let at = (kept.cpu, kept.time);
        self.is_woken(at, kept.wake, (kept.source, thread), waking);
    }

    /// Replaces the state of a thread by the facts from a slice.
    fn install(&mut self, key: ThreadKey, news: WaitNews, before: &Losses) {
        let rules = self.rules;
        let (thread, _) = self.thread(key);
        if let Some(cell) = news.cell {
            thread.cell.install(cell, key.trace, before);
        }
        thread.pid = news.pid;
        if let Some(peer) = news.peer {
            thread.peer = peer;
        }
        thread.freed = news.freed.unwrap_or(thread.freed);
        if news.knows_spent {
            thread.spent = news.spent;
            return;
        }
        let waits = thread.spent.add(news.spent);
        if let Some(call) = thread.call() {
            let waits = waits.into_iter().map(|wait| Wait { call, ..wait });
            waits.for_each(|wait| thread.spent.list(wait, rules.listed()));
        }
    }
}
