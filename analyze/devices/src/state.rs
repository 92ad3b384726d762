//! The state after some slices.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tracebraid_clocks::Timeline;

use crate::calls::OpenCalls;
use crate::cuda::{LONGEST, Launch, Ran};
use crate::early::Early;
use crate::item::{Completed, Enqueued, Fact, Handle, Item, Properties, ThreadId, Times};
use crate::level_zero::{Learned, List};
use crate::line::{Blocks, Line, Part, Piece, Placed, Run};
use crate::matching::{DeviceId, Ended, Endings, Map, Played, Ready, Rules, Waiting, bound, place};
use crate::sums::{Name, Row, Sums};
use crate::thapi::Effect;

/// Names of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) properties: Properties,
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queue {
    /// Number among the queues of the process, from 1, in the order of time.
    pub(crate) number: u32,
    pub(crate) device: u64,
}

/// Numbers of names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Names {
    numbers: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &Name) -> u32 {
        let name = match name {
            Name::Known(name) => name.as_str(),
            _ => "",
        };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        number
    }

    /// The name with a number; empty if unknown.
    pub(crate) fn get(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }
}

/// The state after some slices.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    open: BTreeMap<ThreadId, OpenCalls>,
    enqueued: BTreeMap<Handle, Waiting<Name, Handle>>,
    early: Early,
    /// Commands that are queued when their lists are executed.
    lists: BTreeMap<Handle, Vec<(Handle, Waiting<Name, Handle>)>>,
    pub(crate) learned: Learned,
    kernels: BTreeMap<Handle, String>,
    /// Calls of CUDA by their numbers.
    launched: BTreeMap<Handle, Launch>,
    pub(crate) queues: BTreeMap<Handle, Queue>,
    pub(crate) devices: BTreeMap<Handle, Device>,
    pub(crate) sums: Sums,
    pub(crate) names: Names,
    /// Relation of the clock of a device (first) to that of the trace (second).
    pub(crate) clocks: BTreeMap<Handle, Timeline>,
    pub(crate) lines: BTreeMap<Handle, Line>,
    /// Pieces of timelines that can be swept, in order.
    #[serde(skip)]
    due: Vec<(Handle, Piece)>,
}

/// Complete commands by device, while a slice is joined.
type Complete = BTreeMap<Handle, Blocks>;

impl State {
    /// Joins a slice to the earlier ones.
    pub(crate) fn join(&mut self, rules: &Rules, played: Played, until: i64) {
        let Played {
            open,
            waiting,
            renewed,
            lists,
            named,
            launched,
            latest,
            later,
            mut sums,
            devices,
            names,
            mut ended,
        } = played;
        let later = self.end_calls(rules, later);
        self.add_commands(&mut sums);
        self.sums.merge(sums);
        let numbers: Vec<u32> = names
            .into_iter()
            .map(|(process, name)| {
                let name = self.known(process, name);
                self.names.number(&name)
            })
            .collect();
        let mut of_slice: Vec<(Handle, Run)> = Vec::new();
        for (device, run, clock) in devices {
            let device = self.device(device);
            self.clocks.entry(device).or_default().merge(clock);
            of_slice.push((device, run.named(numbers.clone())));
        }
        let waiting: Vec<_> = waiting
            .into_iter()
            .map(|(event, waiting)| (event, self.inherited(event, waiting)))
            .collect();
        let mut complete = Complete::new();
        let first = renewed;
        let mut renewed = self.renewed(&first);
        for Item { time, fact, .. } in later {
            while let Some(next) = renewed.first().filter(|(at, _)| *at <= time) {
                let (_, event) = *next;
                renewed.pop_first();
                self.renew(rules, event);
            }
            match fact {
                Fact::Renewed(event) => self.renew(rules, event),
                Fact::Enqueued(event, enqueued) => {
                    let begin = enqueued.call.begin;
                    self.enqueue(rules, event, enqueued, &named);
                    let known = (rules, &ended);
                    if let Some((device, placed)) = self.complete_early(known, event, begin) {
                        complete.entry(device).or_default().push(placed);
                    }
                }
                Fact::Completed(event, completed) => {
                    if completed.kind == Times::Device {
                        ended.add(event, time, Ended::Command(completed.times[3]));
                    }
                    let known = (rules, &ended);
                    if let Some((device, placed)) = self.complete(known, event, &completed, time) {
                        complete.entry(device).or_default().push(placed);
                    }
                }
                Fact::Ran(call, ran) => {
                    let ran = (call, &*ran);
                    if let Some((device, placed)) = self.run(rules, ran, time, &named) {
                        complete.entry(device).or_default().push(placed);
                    }
                }
                Fact::Executes(by) => {
                    for event in self.execute(&by) {
                        let again = first.get(&event).filter(|at| **at >= time);
                        renewed.extend(again.map(|at| (*at, event)));
                    }
                }
                fact => self.learn(fact, time),
            }
        }
        let renewed = renewed.into_iter();
        renewed.for_each(|(_, event)| self.renew(rules, event));
        self.launched.extend(launched);
        self.launched.retain(|_, launch| launch.is_of(latest));
        for (thread, calls) in open {
            self.open.entry(thread).or_default().append(calls);
        }
        self.open.retain(|_, open| !open.is_empty());
        self.enqueued.extend(waiting);
        let without_call = self.early.drop_before(until);
        self.count_without_call(rules, without_call);
        for (list, commands) in lists {
            let commands = commands.into_iter();
            let commands: Vec<_> = commands
                .map(|(event, waiting)| (event, self.inherited(event, waiting)))
                .collect();
            self.lists.entry(list).or_default().extend(commands);
        }
        for waiting in self.enqueued.values_mut() {
            let Waiting {
                enqueued, ready, ..
            } = waiting;
            ready.add_all(enqueued, &ended, i64::MAX);
        }
        for (_, kernel, name) in named {
            self.kernels.insert(kernel, name);
        }
        let complete = complete.into_iter();
        let complete = complete.map(|(device, commands)| (device, Run::new(&commands)));
        for (device, run) in of_slice.into_iter().chain(complete) {
            self.lines.entry(rules.line(device)).or_default().add(run);
        }
        self.release(rules, until);
    }

    /// Another command has the event of earlier commands and completions.
    fn renew(&mut self, rules: &Rules, event: Handle) {
        self.enqueued.remove(&event);
        let without_call = self.early.remove(event);
        self.count_without_call(rules, without_call);
    }

    /// Events that the slice uses anew, with the times from which it does.
    fn renewed(&self, first: &Map<Handle, i64>) -> BTreeSet<(i64, Handle)> {
        let open = self.enqueued.keys().chain(self.early.events());
        open.filter_map(|event| Some((*first.get(event)?, *event)))
            .collect()
    }

    /// Ends calls that began in earlier slices: their outcomes replace them. Names of kernels are
    /// known at once, since commands of this slice may have them.
    fn end_calls(&mut self, rules: &Rules, later: Vec<Item>) -> Vec<Item> {
        let outcome = |item: Item| -> Option<Item> {
            let Item { time, stream, fact } = item;
            let fact = match fact {
                Fact::Exits(thread, exit) => {
                    let call = self.open.get_mut(&thread)?.exit(&exit)?;
                    rules.count_call(&mut self.sums, thread, &call, &exit, time);
                    rules.outcome(thread, call, exit, time)?
                }
                Fact::Profiles(thread, event) => {
                    let call = self.open.get(&thread)?.innermost()?;
                    rules.profiled(thread, event, call, time)?
                }
                fact => fact,
            };
            if let Fact::Kernel(kernel, name) = fact {
                self.kernels.insert(kernel, name);
                return None;
            }
            Some(Item { time, stream, fact })
        };
        later.into_iter().filter_map(outcome).collect()
    }

    /// Makes pieces of the timelines, where all facts before a time are known.
    fn release(&mut self, rules: &Rules, until: i64) {
        if !rules.releases {
            return;
        }
        let calls = self.open.values().flat_map(OpenCalls::iter);
        let calls = calls.filter(|call| {
            rules
                .function(call.function)
                .is_some_and(|of| of.kind.is_some() || of.effect == Effect::Executes)
        });
        // Of CUDA's calls, nothing shows which enqueued a command that is not recorded yet.
        let until = match rules.classes.has_commands() {
            true => until.saturating_sub(LONGEST),
            false => until,
        };
        let earliest = calls.map(|call| call.begin).fold(until, i64::min);
        let mut of_line: BTreeMap<Handle, i64> = BTreeMap::new();
        for waiting in self.enqueued.values() {
            let entry = of_line
                .entry(rules.line(waiting.device))
                .or_insert(earliest);
            *entry = waiting.enqueued.call.begin.min(*entry);
        }
        for (device, line) in &mut self.lines {
            let entry = of_line.get(device).copied().unwrap_or(earliest);
            let pieces = line.release(entry).into_iter();
            self.due.extend(pieces.map(|piece| (*device, piece)));
        }
    }

    /// Makes pieces of all that is left.
    pub(crate) fn release_all(&mut self) {
        for (device, line) in &mut self.lines {
            let pieces = line.cut(u64::MAX).into_iter();
            self.due.extend(pieces.map(|piece| (*device, piece)));
        }
    }

    /// Takes the pieces that can be swept, in the order in which they are joined.
    pub(crate) fn take_due(&mut self) -> Vec<(Handle, Piece)> {
        std::mem::take(&mut self.due)
    }

    pub(crate) fn join_line(&mut self, device: Handle, part: Part) {
        self.lines.entry(device).or_default().join(part);
    }

    /// Complete commands in memory that wait for earlier ones.
    pub(crate) fn held(&self) -> usize {
        self.lines.values().map(Line::waiting).sum()
    }

    fn device(&self, device: DeviceId) -> Handle {
        match device {
            DeviceId::Known(device) => device,
            DeviceId::Inherited(queue) => self.device_of(queue),
        }
    }

    /// Name of a device; empty if unknown.
    pub(crate) fn device_name(&self, device: Handle) -> String {
        let known = self.devices.get(&device);
        known.map_or_else(String::new, |device| device.name.clone())
    }

    /// The device of a queue; its handle is 0 if unknown.
    pub(crate) fn device_of(&self, queue: Handle) -> Handle {
        let known = self.queues.get(&queue);
        Handle {
            handle: known.map_or(0, |of| of.device),
            ..queue
        }
    }

    fn inherited(&self, event: Handle, waiting: Waiting<Name, DeviceId>) -> Waiting<Name, Handle> {
        Waiting {
            enqueued: waiting.enqueued,
            name: self.known(event.process, waiting.name),
            device: self.device(waiting.device),
            ready: waiting.ready,
        }
    }

    /// Counts completions whose commands are not known, by their times.
    fn count_without_call(&mut self, rules: &Rules, at: impl IntoIterator<Item = i64>) {
        let at = at.into_iter().filter(|at| rules.window.contains(*at));
        self.sums.without_call += at.count() as u64;
    }

    /// Number of completions whose commands are not known.
    pub(crate) fn without_call(&self, rules: &Rules) -> u64 {
        let left = self.early.times().filter(|at| rules.window.contains(*at));
        self.sums.without_call + left.count() as u64
    }

    /// Number of commands that are not complete.
    pub(crate) fn waiting(&self) -> u64 {
        self.enqueued.len() as u64
    }

    /// Adds the commands of a slice, with the names that it inherits.
    fn add_commands(&mut self, sums: &mut Sums) {
        for (mut row, commands) in std::mem::take(&mut sums.commands) {
            row.name = self.known(row.process, row.name);
            let sum = self.sums.commands.entry(row).or_default();
            sum.merge(&commands);
        }
    }

    /// A name, where earlier slices are known; unknown names are empty.
    fn known(&self, process: u32, name: Name) -> Name {
        match name {
            Name::Inherited(handle) => {
                let name = self.kernels.get(&Handle { process, handle });
                Name::Known(name.cloned().unwrap_or_default())
            }
            name => name,
        }
    }

    /// The name that a kernel has at a time of a slice, whose names are `named`.
    fn name_at(&self, kernel: Handle, at: i64, named: &[(i64, Handle, String)]) -> Name {
        let in_slice = named.iter().rev();
        let mut in_slice = in_slice.filter(|(time, of, _)| *of == kernel && *time <= at);
        match in_slice.next() {
            _ if kernel.handle == 0 => Name::None,
            Some((_, _, name)) => Name::Known(name.clone()),
            None => self.known(kernel.process, Name::Inherited(kernel.handle)),
        }
    }

    /// A command of CUDA whose call is in an earlier slice, or not in the trace.
    fn run(
        &mut self,
        rules: &Rules,
        (call, ran): (Handle, &Ran),
        at: i64,
        named: &[(i64, Handle, String)],
    ) -> Option<(Handle, Placed)> {
        if !rules.window.contains(at) {
            return None;
        }
        let [kernel, device] = [ran.kernel, ran.device].map(|handle| Handle { handle, ..call });
        let launch = self.launched.get(&call).filter(|of| of.is_of(at));
        let function = rules.classes.command(ran.kind);
        let waiting = Waiting {
            enqueued: Box::new(ran.enqueued(call, launch, (function, at))),
            name: self.name_at(kernel, at, named),
            device,
            ready: Ready::default(),
        };
        self.count(rules, waiting, &ran.completed, at)
    }

    fn enqueue(
        &mut self,
        rules: &Rules,
        event: Handle,
        enqueued: Box<Enqueued>,
        named: &[(i64, Handle, String)],
    ) {
        let kernel = Handle {
            handle: enqueued.call.kernel,
            ..event
        };
        let name = self.name_at(kernel, enqueued.end, named);
        let queue = Handle {
            handle: enqueued.call.queue,
            ..event
        };
        let list = rules.list(event.process, queue.handle, enqueued.call.begin);
        let of_list = list.map(|list| Handle {
            handle: list.device,
            ..event
        });
        let waiting = Waiting {
            device: of_list.unwrap_or_else(|| self.device_of(queue)),
            enqueued,
            name,
            ready: Ready::default(),
        };
        let is_executed = waiting.enqueued.is_executed;
        if list.is_some_and(|list| !list.is_immediate && !is_executed) {
            self.lists.entry(queue).or_default().push((event, waiting));
            return;
        }
        self.enqueued.insert(event, waiting);
    }

    fn complete(
        &mut self,
        (rules, ended): (&Rules, &Endings),
        event: Handle,
        completed: &Completed,
        at: i64,
    ) -> Option<(Handle, Placed)> {
        let Some(mut waiting) = self.enqueued.remove(&event) else {
            let may_be_early = rules.classes.may_be_early();
            let without_call = match may_be_early.is_possible(completed) {
                true => self.early.keep(event, at, *completed),
                false => Some(at),
            };
            self.count_without_call(rules, without_call);
            return None;
        };
        if !rules.window.contains(at) {
            return None;
        }
        waiting.ready.add_all(&mut waiting.enqueued, ended, at);
        self.count(rules, waiting, completed, at)
    }

    /// Completes a command that was enqueued by a call that began at `begin`, if its completion came
    /// before.
    fn complete_early(
        &mut self,
        known: (&Rules, &Endings),
        event: Handle,
        begin: i64,
    ) -> Option<(Handle, Placed)> {
        match self.early.take(event, begin) {
            Ok((at, completed)) => self.complete(known, event, &completed, at),
            Err(without_call) => {
                self.count_without_call(known.0, without_call);
                None
            }
        }
    }

    /// Counts a complete command; returns its device and its times there.
    fn count(
        &mut self,
        rules: &Rules,
        waiting: Waiting<Name, Handle>,
        completed: &Completed,
        at: i64,
    ) -> Option<(Handle, Placed)> {
        let Waiting {
            enqueued,
            name,
            device,
            ready,
        } = waiting;
        let completed = &rules.timed(&enqueued, *completed);
        let queue = Handle {
            process: enqueued.thread.process,
            handle: enqueued.call.queue,
        };
        let clock = self.clocks.entry(device).or_default();
        bound(clock, &enqueued, completed, at);
        let kind = rules.kind(&enqueued);
        let number = self.names.number(&name);
        self.sums.queues.entry(queue).or_default().add(completed);
        let process = queue.process;
        let row = Row {
            process,
            kind,
            name,
        };
        let commands = self.sums.commands.entry(row).or_default();
        commands.add(&enqueued, completed);
        let placed = place(rules, &enqueued, completed, ready, number)?;
        Some((device, placed))
    }

    fn learn_queue(&mut self, queue: Handle, device: u64) {
        if let Some(known) = self.queues.get_mut(&queue) {
            known.device = device;
            return;
        }
        let of_process = self.queues.keys().filter(|of| of.process == queue.process);
        let number = of_process.count() as u32 + 1;
        self.queues.insert(queue, Queue { number, device });
    }

    /// A call executes lists: the commands of earlier slices. Returns their events.
    fn execute(&mut self, by: &Enqueued) -> Vec<Handle> {
        let mut events = Vec::new();
        for list in &by.call.waits {
            let list = Handle {
                process: by.thread.process,
                handle: *list,
            };
            for (event, command) in self.lists.get(&list).into_iter().flatten() {
                self.enqueued.insert(*event, command.clone().executed(by));
                events.push(*event);
            }
        }
        events
    }

    fn learn(&mut self, fact: Fact, at: i64) {
        match fact {
            Fact::Queue(queue, device) => self.learn_queue(queue, device),
            Fact::List(queue, list) => {
                self.learned.add_list(queue, at, list);
                let List { device, .. } = list;
                self.learn_queue(queue, device);
            }
            Fact::Resets(list) => {
                self.lists.remove(&list);
            }
            Fact::Reading(device, cycles) => self.learned.add_reading(device, at, cycles),
            Fact::Timer(device, counter) => self.learned.add_counter(device, counter),
            Fact::DeviceName(device, name) => {
                self.devices.entry(device).or_default().name = name;
            }
            Fact::Device(device, properties) => {
                self.devices.entry(device).or_default().properties = *properties;
            }
            _ => {}
        }
    }
}
