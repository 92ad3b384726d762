//! From events to items that wait to be played, for each CPU alone.

use tracebraid_descriptors::Deed;
use tracebraid_follow::{
    ChosenCalls, CpuKey, EndedCall, Event, Limits, Packet, Selection, ThreadKey,
};
use tracebraid_kernel_model::{Action, Body, FdType, KernelEvent};
use tracebraid_language::glob::Glob;

use crate::call::{Call, Entered, Exited, Stretch};
use crate::events;
use crate::item::{FileAction, FileItem, FileStep, Made};
use crate::queue::Queue;
use crate::seen::Seen;

/// Requested calls.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// Requested durations in nanoseconds.
    pub durations: Limits,
    /// Requested sizes in bytes; a call without a size matches any.
    pub sizes: Limits,
    /// Requested system calls.
    pub chosen: ChosenCalls,
}

/// Selection of files by name and type.
#[derive(Clone, Debug, Default)]
pub struct FileChoice {
    /// Patterns of names; empty for all.
    pub paths: Vec<Glob>,
    /// Patterns of names of types; empty for all.
    pub types: Vec<Glob>,
}

impl FileChoice {
    /// True if all files are selected.
    pub fn is_all(&self) -> bool {
        self.paths.is_empty() && self.types.is_empty()
    }

    /// True if a file of this name and type is selected.
    pub fn contains(&self, name: &str, kind: FdType) -> bool {
        let is_of = |globs: &[Glob], text: &str| {
            globs.is_empty() || globs.iter().any(|glob| glob.matches(text.as_bytes()))
        };
        is_of(&self.paths, name) && is_of(&self.types, kind.name())
    }
}

/// Rules for following calls on files.
#[derive(Clone, Debug, Default)]
pub struct FileRules {
    /// Selected part of the traces.
    pub selection: Selection,
    /// Selected calls.
    pub calls: CallFilter,
    /// Selected files.
    pub files: FileChoice,
    /// Times, in ascending order, at which the state can be taken, in nanoseconds from the origin.
    pub marks: Vec<i64>,
}

impl FileRules {
    /// Whether an event matters.
    pub fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        event.is_of_latencies()
            || matches!(
                event,
                Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
            )
    }

    /// Handles the beginning or continuation of a packet of a CPU.
    pub fn packet(&self, seen: &mut Seen, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if packet.lost_before && packet.tells_switches {
            self.goes_over(seen, packet.cpu, time, None);
        } else if packet.lost_before && packet.tells_calls {
            let (tid, pid, what) = (None, None, FileAction::Lose);
            self.rare(seen, packet.cpu, time, FileStep { tid, pid, what });
        }
    }

    /// Handles an event.
    #[inline(always)]
    pub fn event(&self, seen: &mut Seen, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let what = match &event.model.event {
            // Not all paths read later events, so later events must not matter.
            _ if self.selection.window.is_over(event.time) => return,
            KernelEvent::Entry(entry) => events::enters(seen, event, entry, body),
            KernelEvent::Exit(exit) => match self.exits(seen, event, exit, body) {
                Some(what) => what,
                None => return,
            },
            _ => return self.other(seen, event, body),
        };
        let (tid, pid) = (event.model.tid(body), event.model.pid(body));
        self.step(seen, event.cpu, event.time, FileStep { tid, pid, what });
    }

    /// Merges the state of later chunks into that of earlier ones.
    pub fn merge(&self, earlier: &mut Seen, mut later: Seen) {
        // Open calls may end in the later chunks, so their texts move there.
        for (cpu, _) in later.lanes.iter() {
            let open = earlier.lanes.get(*cpu).now();
            if let Some(open) = open.and_then(|now| now.calls.open_mut()) {
                let text = earlier
                    .dictionaries
                    .get(open.text)
                    .or(earlier.texts.0.of(open.text));
                open.text = text.map_or(open.text, |text| later.texts.0.number(text));
            }
        }
        earlier.people.merge(later.people);
        let step = |earlier: &mut _, cpu, time, step| self.rare(earlier, cpu, time, step);
        let begin = |earlier: &mut _, cpu, time, stretch| self.begins(earlier, cpu, time, stretch);
        later.lanes.join(earlier, step, begin);
        earlier.queue.append(later.queue);
        earlier.dictionaries.append(later.dictionaries);
        earlier
            .dictionaries
            .add(later.texts.0, earlier.queue.items.latest());
        earlier.nobodys += later.nobodys;
    }

    /// Ends the trace: threads leave their CPUs in their open calls.
    pub fn end(&self, seen: &mut Seen) {
        for (cpu, lane) in std::mem::take(&mut seen.lanes) {
            if let Some(stretch) = lane.into_now() {
                Self::leaves(seen, cpu, i64::MAX, stretch);
            }
        }
    }

    /// Another thread runs on the CPU from now on; `None` if it is unknown.
    pub(crate) fn goes_over(&self, seen: &mut Seen, cpu: CpuKey, time: i64, tid: Option<i32>) {
        self.begins(seen, cpu, time, Stretch::new(tid, self.mark_after(time)));
    }

    fn begins(&self, seen: &mut Seen, cpu: CpuKey, time: i64, stretch: Stretch) {
        if let Some(mut ended) = seen.lanes.get(cpu).goes_over(time, stretch) {
            self.marks(&mut seen.queue, (cpu, time), &mut ended);
            Self::leaves(seen, cpu, time, ended);
        }
    }

    /// The first marked time after `time`.
    #[inline]
    fn mark_after(&self, time: i64) -> i64 {
        let after = self.marks.iter().find(|&&mark| mark > time);
        after.copied().unwrap_or(i64::MAX)
    }

    /// Called before an event on a CPU: records the state of the CPU at the latest marked time, if
    /// one has passed since.
    #[inline(always)]
    fn marks(&self, items: &mut Queue, at: (CpuKey, i64), stretch: &mut Stretch) {
        if at.1 >= stretch.until {
            self.mark(items, at, stretch);
        }
    }

    #[inline(never)]
    fn mark(&self, items: &mut Queue, (cpu, time): (CpuKey, i64), stretch: &mut Stretch) {
        let until = std::mem::replace(&mut stretch.until, i64::MIN);
        if until != i64::MIN {
            items.push(cpu, until - 1, FileItem::Stands(Box::new(*stretch)));
        }
        stretch.until = self.mark_after(time);
    }

    #[inline]
    fn leaves(seen: &mut Seen, cpu: CpuKey, time: i64, stretch: Stretch) {
        if let Some((tid, entered)) = stretch.calls.into_open() {
            seen.queue
                .push(cpu, time, FileItem::Leaves(tid, Box::new(entered)));
        }
    }

    /// Applies a rare step, out of line.
    #[inline(never)]
    pub(crate) fn rare(&self, seen: &mut Seen, cpu: CpuKey, time: i64, step: FileStep) {
        self.step(seen, cpu, time, step);
    }

    /// Applies a step of a CPU.
    #[inline(always)]
    pub(crate) fn step(&self, seen: &mut Seen, cpu: CpuKey, time: i64, step: FileStep) {
        let Some(mut stretch) = seen.lanes.get(cpu).now_or_first(seen.is_first, time) else {
            return seen.lanes.get(cpu).wait(time, step);
        };
        self.marks(&mut seen.queue, (cpu, time), stretch);
        if let FileAction::Item(item) = step.what {
            return seen.queue.push(cpu, time, item);
        }
        if stretch.calls.is_left(step.tid) {
            self.goes_over(seen, cpu, time, step.tid);
            match seen.lanes.get(cpu).now() {
                Some(now) => stretch = now,
                None => return,
            }
        }
        // The idle thread makes no calls: the switch to the calling thread was lost.
        let Some(tid) = stretch.calls.caller() else {
            seen.nobodys += u64::from(matches!(
                step.what,
                FileAction::Enter(..) | FileAction::Exit(_)
            ));
            return;
        };
        if let Some(pid) = step.pid
            && stretch.pid.replace(pid) != Some(pid)
        {
            let trace = cpu.trace;
            let person = seen.people.get(ThreadKey { trace, tid });
            person.learn_pid(time, cpu, pid);
            seen.queue.push(cpu, time, FileItem::Context { tid, pid });
        }
        match step.what {
            FileAction::Enter(entered, change) => {
                if stretch.calls.enter_any(entered) {
                    seen.queue.push(cpu, time, FileItem::Enters(tid));
                }
                if let Some(change) = change {
                    seen.queue.push(cpu, time, FileItem::Change(tid, change));
                }
            }
            FileAction::Exit(exited) => match stretch.calls.exit(&exited) {
                EndedCall::Call(entered) => {
                    if let Some(item) = self.ended(tid, &entered, &exited) {
                        seen.queue.push(cpu, time, item);
                    }
                }
                EndedCall::Elsewhere => {
                    let arrives = FileItem::Arrives(tid, Box::new(exited));
                    seen.queue.push(cpu, time, arrives);
                }
                EndedCall::Nothing => {}
            },
            FileAction::Lose => {
                if stretch.calls.lose() {
                    seen.queue.push(cpu, time, FileItem::Enters(tid));
                }
            }
            FileAction::Fork(forked) => seen.queue.push(cpu, time, FileItem::Fork(tid, forked)),
            FileAction::Exec => seen.queue.push(cpu, time, FileItem::Exec(tid)),
            FileAction::Item(_) => {}
        }
    }

    /// The item for a call, once its end is known.
    #[inline(always)]
    pub fn ended(&self, tid: i32, entered: &Entered, exited: &Exited) -> Option<FileItem> {
        let open = &entered.open;
        let call = entered.class.map(|class| Call {
            begin: open.time,
            duration: open.time.abs_diff(exited.time),
            result: exited.exit.result,
            fds: open.fds,
            tid,
            call: open.call,
            class,
        });
        let call = call.filter(|call| exited.exit.counts && self.counts(call));
        let changes = match open.deed {
            Deed::Io => false,
            Deed::Nothing => matches!(
                open.call.action(),
                Action::Connect | Action::ChangeDirectory
            ),
            _ => true,
        };
        if !changes {
            return call.map(FileItem::Call);
        }
        let (entered, exited) = (*entered, *exited);
        Some(FileItem::Made(Box::new(Made {
            tid,
            entered,
            exited,
            call,
        })))
    }

    /// True if duration, size and call are requested. A call without a size matches any.
    #[inline(always)]
    fn counts(&self, call: &Call) -> bool {
        let CallFilter {
            durations,
            sizes,
            chosen,
        } = &self.calls;
        durations.contain(call.duration)
            && call.bytes().is_none_or(|bytes| sizes.contain(bytes))
            && chosen.contain(call.call)
    }
}
