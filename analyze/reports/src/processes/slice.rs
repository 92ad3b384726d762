//! Plays a slice of time without the state before it.
//!
//! An id names the life at the start of the slice until another life begins under it. Activity of
//! that life is summed. Facts about it, which are rare, are kept and applied to the state at the
//! start of the slice, as is activity that began before the slice.

use serde::{Deserialize, Serialize};

use crate::processes::item::{ProcessItem, Told};
use crate::processes::life::{Life, Sums};
use crate::processes::machine::{ProcessMachine, key, sums_of};
use tracebraid_follow::{CallSlice, CpuKey, Selection, Table, ThreadKey};

/// The results of a slice alone. Their size depends on the number of threads, and of facts about
/// them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProcessSlice {
    /// Start of the slice, in nanoseconds from the origin.
    begin: i64,
    calls: CallSlice,
    threads: Table<SliceLives>,
    told: Vec<(CpuKey, i64, Told)>,
    /// Activity that began before the slice, and its start.
    early: Vec<(ThreadKey, Sums, i64)>,
}

/// The lives under an id in a slice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SliceLives {
    /// Sums of the life at the start of the slice, and whether it has events.
    sums: Sums,
    is_seen: bool,
    /// Lives that began in the slice.
    after: Vec<Life>,
}

impl SliceLives {
    fn is_seen(&mut self) {
        match self.after.last_mut() {
            Some(life) => life.is_seen = true,
            None => self.is_seen = true,
        }
    }
}

impl ProcessSlice {
    /// A slice whose items are not before `begin`, in nanoseconds from the origin.
    pub(super) fn new(begin: i64) -> Self {
        ProcessSlice {
            begin,
            calls: CallSlice::new(begin),
            threads: Table::default(),
            told: Vec::new(),
            early: Vec::new(),
        }
    }

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
                self.threads.get(key(cpu, next)).is_seen();
                self.threads.get(key(cpu, prev)).is_seen();
                self.did(key(cpu, prev), &Sums::active(ran), since);
            }
            ProcessItem::Did(tid, sums, since) => self.did(key(cpu, tid), &sums, since),
            ProcessItem::Call(item) => {
                let ended = self.calls.play(cpu, time, &item);
                if let Some((call, sums)) =
                    ended.and_then(|call| Some((call, sums_of(&call, selection)?)))
                {
                    self.did(call.thread, &sums, call.exited.time);
                }
            }
            ProcessItem::Told(_) if selection.window.is_over(time) => {}
            ProcessItem::Told(told) => self.is_told(cpu, time, told),
        }
    }

    fn did(&mut self, thread: ThreadKey, sums: &Sums, since: i64) {
        let lives = self.threads.get(thread);
        let begun = |life: &&mut Life| life.begin.is_none_or(|begin| begin <= since);
        match lives.after.iter_mut().rev().find(begun) {
            Some(life) => life.sums.add(sums),
            None if since >= self.begin => lives.sums.add(sums),
            None if *sums == Sums::default() => {}
            None => self.early.push((thread, *sums, since)),
        }
    }

    fn is_told(&mut self, cpu: CpuKey, time: i64, told: Told) {
        if let Some(item) = told.call() {
            self.calls.play(cpu, time, &item);
        }
        match told {
            Told::Made(tid, life) => self.threads.get(key(cpu, tid)).after.push(*life),
            Told::TakesOver(tid, old) => {
                self.is_told(cpu, time, Told::Ends(old));
                self.is_told(cpu, time, Told::GoesOn(tid));
            }
            other => match self.threads.get(key(cpu, other.tid())).after.last_mut() {
                Some(life) => other.change(life, time),
                None => self.told.push((cpu, time, other)),
            },
        }
    }

    /// Ends the slice.
    pub(super) fn end(&mut self) {
        self.threads
            .values()
            .for_each(|lives| lives.after.shrink_to_fit());
    }

    /// Appends the slice to the state at its start. `self` keeps memory that the caller frees.
    pub(super) fn compose(&mut self, selection: &Selection, machine: &mut ProcessMachine) {
        let lives = &mut machine.lives;
        for (cpu, time, told) in &self.told {
            told.change(lives.get(key(*cpu, told.tid())).last(), *time);
        }
        for (thread, slice) in self.threads.entries_mut() {
            let lives = lives.get(thread);
            let last = lives.last();
            last.is_seen |= slice.is_seen;
            last.sums.add(&slice.sums);
            lives.extend(std::mem::take(&mut slice.after).into_boxed_slice());
        }
        for (thread, sums, since) in &self.early {
            machine.did(*thread, sums, *since);
        }
        let mut ended = Vec::new();
        self.calls
            .compose(&mut machine.open, |call| ended.push(call));
        ended.iter().for_each(|call| machine.ended(selection, call));
    }
}
