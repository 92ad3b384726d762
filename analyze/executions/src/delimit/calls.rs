//! System calls, each from its entry to its exit.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Pairs, ThreadKey};
use tracebraid_kernel_model::Syscall;
use tracebraid_language::Datum;
use tracebraid_periods::EndedPeriod;

use crate::delimit::kernel::{CallEdge, Kernel, LifeEvent};
use crate::delimit::log::{Block, Log, bound};

/// What is known of calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    open: Pairs<ThreadKey, Open>,
    /// Calls that ended in slices of time, and after them.
    pub(crate) blocks: Vec<Block>,
    pub(crate) ended: Vec<EndedCall>,
    /// How many began and ended.
    pub(crate) log: Log,
}

/// A call that ended, as far as one definition is concerned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndedCall {
    kind: u32,
    call: Syscall,
    number: u64,
    trace: u32,
    tid: i32,
    fd: Option<i32>,
    result: Option<i64>,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// The CPUs on which it began and ended.
    cpus: [u32; 2],
}

impl EndedCall {
    /// As an execution, whose number grows by that.
    pub(crate) fn period(self, before: u64) -> EndedPeriod {
        let number = |number: Option<i64>| {
            number.map_or(Datum::Missing, |number| Datum::Integer(number.into()))
        };
        let captures = |list: &[Datum]| {
            // With the thread, and those of the end behind those of the beginning.
            let mut captures = Vec::with_capacity(list.len() + 2);
            captures.extend_from_slice(list);
            captures
        };
        let name = Datum::text(self.call.user_name().as_bytes());
        let at_begin = captures(&[name, number(self.fd.map(i64::from))]);
        let at_end = captures(&[number(self.result)]);
        let tid = Some(i64::from(self.tid));
        let of = |time, cpu, captures| bound(time, (self.trace, Some(cpu)), tid, captures);
        EndedPeriod {
            period: self.kind as usize,
            numbers: vec![self.number + before],
            begin: of(self.begin, self.cpus[0], at_begin),
            end: of(self.end, self.cpus[1], at_end),
        }
    }
}

/// A call that has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    call: Syscall,
    fd: Option<i32>,
    time: i64,
    cpu: u32,
    /// Its number in each definition that it fits.
    numbers: Vec<u64>,
}

impl Calls {
    /// What matters of an item.
    pub(crate) fn play(&mut self, kernel: &Kernel, at: (CpuKey, i64), item: &LifeEvent) {
        match *item {
            LifeEvent::Call(tid, what) => self.step(kernel, at, tid, what),
            LifeEvent::Made(tid, ..) => self.forget(at.0, tid),
            LifeEvent::Executes(tid, old, _) if tid != old => self.moves(at.0, old, tid),
            _ => {}
        }
    }

    /// Takes over calls that began later, and are numbered from 1, but for those that have ended.
    /// Gives what their numbers grow by.
    pub(crate) fn take_over(&mut self, later: Calls) -> u64 {
        let before = self.log.take_over(&later.log);
        for (key, mut open) in Vec::from(later.open) {
            open.numbers.iter_mut().for_each(|number| *number += before);
            self.open.begin(key, open);
        }
        before
    }

    /// A thread makes a call.
    fn step(&mut self, kernel: &Kernel, (cpu, time): (CpuKey, i64), tid: i32, what: CallEdge) {
        let key = ThreadKey {
            trace: cpu.trace,
            tid,
        };
        // What is open has lost its exit, or ends now.
        let open = self.open.end(key);
        match what {
            CallEdge::Enter(call, fd) => {
                let kinds = kernel.kinds(call);
                // Calls that end their threads never end.
                if kinds.is_empty() || call.ends_thread() || !kernel.has_begun(time) {
                    return;
                }
                kinds.iter().for_each(|&kind| self.log.begins(kind));
                let open = Open {
                    call,
                    fd,
                    time,
                    cpu: cpu.cpu,
                    numbers: kinds.iter().map(|_| self.log.number()).collect(),
                };
                self.open.begin(key, open);
            }
            CallEdge::Exit(call, result) => {
                let ended = open.filter(|open| call.is_none_or(|call| call == open.call));
                if let Some(open) = ended {
                    self.ends(kernel, (cpu, time), tid, &open, result);
                }
            }
            CallEdge::Lose => {}
        }
    }

    fn ends(
        &mut self,
        kernel: &Kernel,
        (cpu, time): (CpuKey, i64),
        tid: i32,
        open: &Open,
        result: Option<i64>,
    ) {
        for (&kind, &number) in kernel.kinds(open.call).iter().zip(&open.numbers) {
            self.log.ends_elsewhere(kind);
            self.ended.push(EndedCall {
                kind: kind as u32,
                call: open.call,
                number,
                trace: cpu.trace,
                tid,
                fd: open.fd,
                result,
                begin: open.time,
                end: time,
                cpus: [open.cpu, cpu.cpu],
            });
        }
    }

    /// Takes out what ended.
    pub(crate) fn take(&mut self) -> Vec<Block> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let ended = std::mem::take(&mut self.ended);
        if !ended.is_empty() {
            blocks.push(Block::of_calls(ended));
        }
        blocks
    }

    /// When those began that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.open().map(|(_, open)| open.time)
    }

    /// A thread is made: whatever call had been open under its id does not end.
    pub(crate) fn forget(&mut self, cpu: CpuKey, tid: i32) {
        let trace = cpu.trace;
        self.open.end(ThreadKey { trace, tid });
    }

    /// A thread has another id from now on.
    fn moves(&mut self, cpu: CpuKey, from: i32, to: i32) {
        let trace = cpu.trace;
        self.forget(cpu, to);
        if let Some(open) = self.open.end(ThreadKey { trace, tid: from }) {
            self.open.begin(ThreadKey { trace, tid: to }, open);
        }
    }
}
