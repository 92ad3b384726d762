//! System calls from entry to exit.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Pairs, ThreadKey};
use tracebraid_kernel_model::Syscall;
use tracebraid_language::Datum;
use tracebraid_periods::EndedPeriod;

use crate::delimit::kernel::{CallEdge, Kernel, LifeEvent};
use crate::delimit::log::{Block, Log, bound};

/// Open and ended system calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    open: Pairs<ThreadKey, Open>,
    /// Blocks of calls that ended in slices of time; those in `ended` are later.
    pub(crate) blocks: Vec<Block>,
    pub(crate) ended: Vec<EndedCall>,
    /// Numbers of begun and open calls.
    pub(crate) log: Log,
}

/// An ended call, for one definition.
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
    /// CPUs of the entry and of the exit.
    cpus: [u32; 2],
}

impl EndedCall {
    /// Converts the call to an execution; `before` is added to its number.
    pub(crate) fn period(self, before: u64) -> EndedPeriod {
        let number = |number: Option<i64>| {
            number.map_or(Datum::Missing, |number| Datum::Integer(number.into()))
        };
        let captures = |list: &[Datum]| {
            // Room for the thread, and for the captures of the end after those of the beginning.
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

/// A call without its exit.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    call: Syscall,
    fd: Option<i32>,
    time: i64,
    cpu: u32,
    /// Number in each matching definition.
    numbers: Vec<u64>,
}

impl Calls {
    /// Applies an item, if it concerns calls.
    pub(crate) fn play(&mut self, kernel: &Kernel, at: (CpuKey, i64), item: &LifeEvent) {
        match *item {
            LifeEvent::Call(tid, what) => self.step(kernel, at, tid, what),
            LifeEvent::Made(tid, ..) => self.forget(at.0, tid),
            LifeEvent::Executes(tid, old, _) if tid != old => self.moves(at.0, old, tid),
            _ => {}
        }
    }

    /// Takes over the open calls of a later slice, whose numbers begin at 1. Returns the offset
    /// that was added to their numbers.
    pub(crate) fn take_over(&mut self, later: Calls) -> u64 {
        let before = self.log.take_over(&later.log);
        for (key, mut open) in Vec::from(later.open) {
            open.numbers.iter_mut().for_each(|number| *number += before);
            self.open.begin(key, open);
        }
        before
    }

    /// Applies the entry or exit of a call.
    fn step(&mut self, kernel: &Kernel, (cpu, time): (CpuKey, i64), tid: i32, what: CallEdge) {
        let key = ThreadKey {
            trace: cpu.trace,
            tid,
        };
        // An open call ends now, or its exit was lost.
        let open = self.open.end(key);
        match what {
            CallEdge::Enter(call, fd) => {
                let kinds = kernel.kinds(call);
                // Calls that end their thread have no exit.
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

    /// Removes and returns the calls that ended.
    pub(crate) fn take(&mut self) -> Vec<Block> {
        let mut blocks = std::mem::take(&mut self.blocks);
        let ended = std::mem::take(&mut self.ended);
        if !ended.is_empty() {
            blocks.push(Block::of_calls(ended));
        }
        blocks
    }

    /// Begins of the open calls.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.open().map(|(_, open)| open.time)
    }

    /// A thread is created: a call that is still open under its id never ends.
    pub(crate) fn forget(&mut self, cpu: CpuKey, tid: i32) {
        let trace = cpu.trace;
        self.open.end(ThreadKey { trace, tid });
    }

    /// A thread changes its id.
    fn moves(&mut self, cpu: CpuKey, from: i32, to: i32) {
        let trace = cpu.trace;
        self.forget(cpu, to);
        if let Some(open) = self.open.end(ThreadKey { trace, tid: from }) {
            self.open.begin(ThreadKey { trace, tid: to }, open);
        }
    }
}
