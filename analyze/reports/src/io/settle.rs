//! Putting together what happened on several CPUs: calls that threads took from one CPU to
//! another, and what their descriptors were.

use crate::io::IoRules;
use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Descriptors, Exit, Open};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::io::call::{Done, EndingCall, Io};
use crate::io::group::Calls;
use crate::io::item::{Item, What};
use crate::io::parking::{Parked, Parking};
use crate::io::sink::Sink;
use crate::io::stretch;
use crate::io::sums::{Sums, Tally, Types};
use tracebraid_follow::{CpuKey, Table, ThreadKey};

/// Sums by system call and type of descriptor.
pub(super) type Sheet = Vec<(Syscall, FdType, Sums)>;

/// Calls that lost one of their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Losses {
    pub(super) unfinished: u64,
    pub(super) unstarted: u64,
}

/// A call that is done, whose descriptors may have been looked up.
type Taken = (ThreadKey, Io, Option<Types>);

/// All that has been put together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Settled {
    descriptors: Descriptors,
    parked: Parking,
    /// Threads whose parked call's types are still to be looked up.
    fresh: Vec<ThreadKey>,
    pub(super) sheets: Table<Sheet>,
    pub(super) losses: Table<Losses>,
}

impl Settled {
    /// Takes from the sink what happened before `until`, or all: the items in the order of time, then
    /// the calls.
    pub(super) fn settle(&mut self, rules: &IoRules, sink: &mut Sink, until: Option<i64>) {
        let mut taken = Vec::new();
        sink.take_items(until, |cpu, item| self.item(rules, cpu, item, &mut taken));
        sink.take_calls(until, |cpu, calls| self.calls(cpu.trace, calls));
        sink.tidy();
        // Only now all changes of the time are known.
        for (thread, io, types) in taken {
            let types = types.unwrap_or_else(|| self.types(thread, io.call, io.fds, io.entry).0);
            self.add(thread, io.call, &io.tally(), types);
        }
        for thread in std::mem::take(&mut self.fresh) {
            let Some(parked) = self
                .parked
                .get_mut(thread)
                .filter(|parked| parked.types.is_none())
            else {
                continue;
            };
            let open = parked.open;
            if open.is_io() {
                let types = self.types(thread, open.call, open.fds, open.time).0;
                if let Some(parked) = self.parked.get_mut(thread) {
                    parked.types = Some(types);
                }
            }
        }
    }

    fn item(&mut self, rules: &IoRules, cpu: CpuKey, item: Item, taken: &mut Vec<Taken>) {
        let Item { time, tid, what } = item;
        let thread = ThreadKey {
            trace: cpu.trace,
            tid,
        };
        let unknown = tid == ThreadKey::UNKNOWN;
        match what {
            What::Exit(exit) => self.exit(rules, cpu, (time, thread), &exit, taken),
            What::Entry => self.drop_parked(rules, thread),
            What::Park(open) if unknown => self.unfinished(rules, thread, open, cpu),
            What::Park(open) => {
                self.drop_parked(rules, thread);
                let types = None;
                self.parked.put(thread, Parked { open, cpu, types });
                self.fresh.push(thread);
            }
            What::Unfinished(began) => {
                self.losses.get(thread).unfinished += u64::from(rules.selection.counts(began, cpu.cpu));
            }
            What::Unstarted => self.losses.get(thread).unstarted += 1,
            What::Change(_) if unknown => {}
            what => self.of_descriptors(thread, time, what),
        }
    }

    /// Something that tells of descriptors.
    fn of_descriptors(&mut self, thread: ThreadKey, time: i64, what: What) {
        let descriptors = &mut self.descriptors;
        match what {
            What::Change(change) => descriptors.change(thread, time, change),
            What::Fork {
                child,
                child_pid,
                parent_pid,
            } => descriptors.act(
                thread,
                time,
                Act::Fork {
                    child,
                    child_pid,
                    parent_pid,
                },
            ),
            What::Exec => descriptors.act(thread, time, Act::Exec),
            What::End => descriptors.act(thread, time, Act::End),
            What::Member { pid, table } => descriptors.act(thread, time, Act::Member { pid, table }),
            What::Holds {
                holder,
                fd,
                kind,
                cloexec,
            } => descriptors.holds(thread, time, Act::Holds(holder), (fd, kind, cloexec)),
            _ => {}
        }
    }

    /// The exit of a call that may have begun on another CPU.
    fn exit(
        &mut self,
        rules: &IoRules,
        cpu: CpuKey,
        (time, thread): (i64, ThreadKey),
        exit: &Exit,
        taken: &mut Vec<Taken>,
    ) {
        let known = thread.tid != ThreadKey::UNKNOWN;
        if let Some(parked) = self.parked.take(thread).filter(|_| known) {
            match parked.open.end(time, exit, &rules.options.limits) {
                Done::Io(io) => return taken.push((thread, io, parked.types)),
                Done::Change(change) => return self.descriptors.change(thread, time, change),
                Done::Nothing => return,
                Done::Mismatch => self.unfinished(rules, thread, parked.open, parked.cpu),
            }
        }
        stretch::alone(exit, time, thread.tid).for_each(|item| self.item(rules, cpu, item, taken));
    }

    fn drop_parked(&mut self, rules: &IoRules, thread: ThreadKey) {
        if let Some(parked) = self.parked.take(thread) {
            self.unfinished(rules, thread, parked.open, parked.cpu);
        }
    }

    fn unfinished(&mut self, rules: &IoRules, thread: ThreadKey, open: Open, cpu: CpuKey) {
        if open.is_io() && rules.selection.counts(open.time, cpu.cpu) {
            self.losses.get(thread).unfinished += 1;
        }
    }

    /// Types of a call's descriptors when it began, and up to when they stay so.
    fn types(&self, thread: ThreadKey, call: Syscall, fds: (i32, i32), time: i64) -> (Types, Option<i64>) {
        if thread.tid == ThreadKey::UNKNOWN {
            return ((FdType::Unknown, FdType::Unknown), None);
        }
        let from = self.descriptors.kind(thread, fds.0, time);
        if call.action() != Action::Copy {
            return ((from.kind, from.kind), from.until);
        }
        let to = self.descriptors.kind(thread, fds.1, time);
        ((from.kind, to.kind), from.until.into_iter().chain(to.until).min())
    }

    /// Adds up calls whose descriptors are known.
    fn calls(&mut self, trace: u32, calls: &Calls) {
        for group in calls.groups() {
            let thread = ThreadKey {
                trace,
                tid: group.tid,
            };
            let (types, until) = self.types(thread, group.call, group.fds, group.first);
            if group.is_single() || until.is_none_or(|until| until > group.last()) {
                self.add(thread, group.call, &group.tally(), types);
                continue;
            }
            for io in calls.split(group) {
                let (types, _) = self.types(thread, io.call, io.fds, io.entry);
                self.add(thread, io.call, &io.tally(), types);
            }
        }
    }

    fn add(&mut self, thread: ThreadKey, call: Syscall, tally: &Tally, types: Types) {
        let sheet = self.sheets.get(thread);
        let (first, second) = tally.sums(call);
        for (kind, sums) in [(types.0, Some(first)), (types.1, second)] {
            let Some(sums) = sums else { continue };
            match sheet
                .iter_mut()
                .find(|(other, of, _)| *other == call && *of == kind)
            {
                Some((_, _, sum)) => sum.add(&sums),
                None => sheet.push((call, kind, sums)),
            }
        }
    }

    /// Nothing follows: what is parked stays unfinished.
    pub(super) fn finish(&mut self, rules: &IoRules) {
        for (thread, parked) in std::mem::take(&mut self.parked).into_entries() {
            self.unfinished(rules, thread, parked.open, parked.cpu);
        }
    }

    /// Nobody will ask for what was before that time.
    pub(super) fn forget(&mut self, before: i64) {
        self.descriptors.forget(before);
    }
}
