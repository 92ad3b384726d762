//! Follows threads over all CPUs in the order of time.

use serde::{Deserialize, Serialize};

use crate::processes::item::{ProcessItem, Told};
use crate::processes::life::{Lives, Sums};
use tracebraid_follow::{CallItem, CpuKey, OpenCalls, Selection, Table, ThreadCall, ThreadKey};

/// The lives of all threads up to a time, and the calls that are open then.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ProcessMachine {
    pub(super) lives: Table<Lives>,
    pub(super) open: OpenCalls,
}

/// A thread in the trace of the CPU.
pub(super) fn key(cpu: CpuKey, tid: i32) -> ThreadKey {
    let trace = cpu.trace;
    ThreadKey { trace, tid }
}

/// The sums of a call, if it is selected.
pub(super) fn sums_of(call: &ThreadCall, selection: &Selection) -> Option<Sums> {
    let counts = selection.counts(call.exited.time, call.cpu.cpu);
    counts.then(|| {
        let mut sums = Sums::default();
        sums.call(call.entered.call, call.exited.result);
        sums
    })
}

impl ProcessMachine {
    /// Processes an event.
    pub(super) fn play(
        &mut self,
        selection: &Selection,
        cpu: CpuKey,
        time: i64,
        item: ProcessItem,
    ) {
        match item {
            ProcessItem::Switch {
                prev,
                next,
                ran,
                since,
            } => {
                self.lives.get(key(cpu, next)).last().is_seen = true;
                let prev = self.lives.get(key(cpu, prev));
                prev.last().is_seen = true;
                prev.at(since).sums.add(&Sums::active(ran));
            }
            ProcessItem::Did(tid, sums, since) => self.did(key(cpu, tid), &sums, since),
            ProcessItem::Call(item) => self.call(selection, (cpu, time), &item),
            // Later event records may be missing from some streams, so none must count.
            ProcessItem::Told(_) if selection.window.is_over(time) => {}
            ProcessItem::Told(told) => self.is_told(cpu, time, told),
        }
    }

    /// Adds sums of a thread from a time on. By now its id may have another life, created on
    /// another CPU.
    pub(super) fn did(&mut self, thread: ThreadKey, sums: &Sums, since: i64) {
        self.lives.get(thread).at(since).sums.add(sums);
    }

    /// Applies a fact about a thread.
    pub(super) fn is_told(&mut self, cpu: CpuKey, time: i64, told: Told) {
        if let Some(item) = told.call() {
            self.open.play(cpu, time, &item);
        }
        match told {
            Told::Made(tid, life) => self.lives.get(key(cpu, tid)).begin(*life),
            Told::TakesOver(tid, old) => {
                self.lives.get(key(cpu, old)).last().ends(time);
                self.lives.get(key(cpu, tid)).last().goes_on();
            }
            other => other.change(self.lives.get(key(cpu, other.tid())).last(), time),
        }
    }

    /// A call that spans several stretches.
    fn call(&mut self, selection: &Selection, (cpu, time): (CpuKey, i64), item: &CallItem) {
        if let Some(call) = self.open.play(cpu, time, item) {
            self.ended(selection, &call);
        }
    }

    /// A call that spans several stretches has ended.
    pub(super) fn ended(&mut self, selection: &Selection, call: &ThreadCall) {
        if let Some(sums) = sums_of(call, selection) {
            self.did(call.thread, &sums, call.exited.time);
        }
    }
}
