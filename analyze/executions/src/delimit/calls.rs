//! System calls, each from its entry to its exit.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Pairs, ThreadKey};
use tracebraid_kernel_model::Syscall;
use tracebraid_language::Datum;

use crate::delimit::kernel::{Item, Kernel, What};
use crate::delimit::log::{Block, Log, bound};

/// What is known of calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    open: Pairs<ThreadKey, Open>,
    /// What ended before that in the log: slices of time.
    pub(crate) blocks: Vec<Block>,
    pub(crate) log: Log,
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
    pub(crate) fn play(&mut self, kernel: &Kernel, at: (CpuKey, i64), item: &Item) {
        match *item {
            Item::Call(tid, what) => self.step(kernel, at, tid, what),
            Item::Made(tid, ..) => self.forget(at.0, tid),
            Item::Executes(tid, old, _) if tid != old => self.moves(at.0, old, tid),
            _ => {}
        }
    }

    /// Takes over calls that began later, and are numbered from 1, but for those that have ended. Gives what their numbers
    /// grow by.
    pub(crate) fn take_over(&mut self, later: Calls) -> u64 {
        let before = self.log.take_over(&later.log);
        for (key, mut open) in Vec::from(later.open) {
            open.numbers.iter_mut().for_each(|number| *number += before);
            self.open.begin(key, open);
        }
        before
    }

    /// A thread makes a call.
    fn step(&mut self, kernel: &Kernel, (cpu, time): (CpuKey, i64), tid: i32, what: What) {
        let key = ThreadKey {
            trace: cpu.trace,
            tid,
        };
        // What is open has lost its exit, or ends now.
        let open = self.open.end(key);
        match what {
            What::Enter(call, fd) => {
                let kinds = kernel.kinds(call);
                // These never end.
                let is_end = matches!(call.name(), "exit" | "exit_group");
                if kinds.is_empty() || is_end || !kernel.has_begun(time) {
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
            What::Exit(call, result) => {
                let ended = open.filter(|open| call.is_none_or(|call| call == open.call));
                if let Some(open) = ended {
                    self.ends(kernel, (cpu, time), tid, &open, result);
                }
            }
            What::Lose => {}
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
        let number =
            |number: Option<i64>| number.map_or(Datum::Missing, |number| Datum::Integer(number.into()));
        for (&kind, &of_kind) in kernel.kinds(open.call).iter().zip(&open.numbers) {
            let name = Datum::text(open.call.user_name().as_bytes());
            let captures = |list: &[Datum]| {
                let mut captures = Vec::with_capacity(list.len() + 2);
                captures.extend_from_slice(list);
                captures
            };
            let at_begin = captures(&[name, number(open.fd.map(i64::from))]);
            let at_end = captures(&[number(result)]);
            let tid = Some(i64::from(tid));
            let begin = bound(open.time, (cpu.trace, Some(open.cpu)), tid, at_begin);
            let end = bound(time, (cpu.trace, Some(cpu.cpu)), tid, at_end);
            self.log.ends(kind, vec![of_kind], [begin, end]);
        }
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
