//! Calls and commands, matched in the order of time.
//!
//! A command is known from two event records of different threads: the end of the call that
//! enqueued it, and its completion. They have the same event, whose handle later commands may get
//! again. Facts are played in slices of time in parallel ([`Slice`]): all that begins and ends
//! within a slice is complete there. The rest is joined to the state of all earlier slices
//! (`state`): its size is the number of calls and commands that are open at the ends of the slice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_clocks::{Path, Timeline};
use tracebraid_follow::{KeyHasher, Window};

use crate::calls::OpenCalls;
use crate::classes::{Classes, Function};
use crate::cuda::{self, Launch, Ran};
use crate::early::MayBeEarly;
use crate::events::{Completion, Events, New};
use crate::item::{Completed, Enqueued, Entered, Exited, Fact, Handle, Item, ThreadId, Times};
use crate::kind::Kind;
use crate::level_zero::{Learned, List, timed};
use crate::line::{Blocks, Placed, Run, Spill};
use crate::sums::{Commands, KeptCall, Name, QueueSums, Row, Sums};
use crate::thapi::Effect;

/// Handles are addresses, so a fast hash is good enough.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// Devices of queues.
pub(crate) type Directory = Arc<BTreeMap<Handle, Handle>>;

/// Lists of commands and calls that are kept, beside sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None.
    #[default]
    Nothing,
    /// Commands, and the calls that may wait for them.
    Waits,
    /// Commands and calls.
    All,
}

/// Rules that all slices share.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) classes: Classes,
    pub(crate) window: Window,
    /// Devices that share the timeline of another.
    pub(crate) shared: BTreeMap<Handle, Handle>,
    /// Lists and timers of Level Zero.
    pub(crate) learned: Learned,
    /// Relations of the clocks of timelines, if times of calls become times of devices.
    pub(crate) paths: BTreeMap<Handle, Path>,
    /// Timelines grow while the trace is read.
    pub(crate) releases: bool,
    pub(crate) keeps: Keep,
}

impl Rules {
    /// The device whose timeline has the commands of a device.
    pub(crate) fn line(&self, device: Handle) -> Handle {
        self.shared.get(&device).copied().unwrap_or(device)
    }

    pub(crate) fn function(&self, number: u32) -> Option<&Function> {
        self.classes.functions().get(number as usize)
    }

    /// A list of commands of Level Zero at a time.
    pub(crate) fn list(&self, process: u32, list: u64, at: i64) -> Option<List> {
        let list = Handle {
            process,
            handle: list,
        };
        self.learned.list(list, at)
    }

    /// A complete command in nanoseconds.
    pub(crate) fn timed(&self, enqueued: &Enqueued, completed: Completed) -> Completed {
        if completed.kind != Times::Cycles {
            return completed;
        }
        let Enqueued { call, thread, .. } = enqueued;
        let device = self.list(thread.process, call.queue, call.begin);
        let device = Handle {
            process: thread.process,
            handle: device.map_or(0, |list| list.device),
        };
        let line = self.line(device);
        let timer = self.learned.timer(device, line);
        timed(completed, timer, call.begin, self.paths.get(&line))
    }

    pub(crate) fn kind(&self, enqueued: &Enqueued) -> Kind {
        let function = self.function(enqueued.call.function);
        function.and_then(|of| of.kind).unwrap_or(Kind::Other)
    }

    /// Counts a call that ends in the window.
    pub(crate) fn count_call(
        &self,
        sums: &mut Sums,
        thread: ThreadId,
        call: &Entered,
        exit: &Exited,
        end: i64,
    ) {
        if self.window.contains(end) {
            let duration = u64::try_from(end.saturating_sub(call.begin)).unwrap_or(0);
            let calls = sums
                .calls
                .entry((thread.process, call.function))
                .or_default();
            calls.add(duration, exit.status < 0);
            let waits = || self.function(call.function).is_some_and(|of| of.may_wait);
            if self.keeps == Keep::All || self.keeps == Keep::Waits && waits() {
                sums.kept.push(KeptCall {
                    begin: call.begin,
                    end,
                    thread,
                    function: call.function,
                });
            }
        }
    }

    /// The command of an open call, which is enqueued when the event that times it is recorded: its
    /// results may be recorded before the call ends.
    pub(crate) fn profiled(
        &self,
        thread: ThreadId,
        event: u64,
        call: &Entered,
        at: i64,
    ) -> Option<Fact> {
        let event = Handle {
            process: thread.process,
            handle: event,
        };
        let enqueued = Enqueued {
            call: call.clone(),
            end: at,
            thread,
            is_executed: false,
        };
        let is_command = self.function(call.function)?.kind.is_some();
        is_command.then(|| Fact::Enqueued(event, Box::new(enqueued)))
    }

    /// The command or queue that a call made.
    pub(crate) fn outcome(
        &self,
        thread: ThreadId,
        call: Entered,
        exit: Exited,
        end: i64,
    ) -> Option<Fact> {
        let function = self.function(call.function)?;
        let of = |handle: u64| Handle {
            process: thread.process,
            handle,
        };
        if function.kind.is_some() && exit.event != 0 {
            let enqueued = Enqueued {
                call,
                end,
                thread,
                is_executed: false,
            };
            return Some(Fact::Enqueued(of(exit.event), Box::new(enqueued)));
        }
        if function.effect != Effect::None {
            let done = exit.status >= 0;
            return done.then(|| effect(function.effect, thread, call, exit, end))?;
        }
        (function.creates_queue && exit.queue != 0)
            .then(|| Fact::Queue(of(exit.queue), call.device))
    }
}

/// Effect of a call without a command of its own, as a fact.
fn effect(effect: Effect, thread: ThreadId, call: Entered, exit: Exited, end: i64) -> Option<Fact> {
    let of = |handle: u64| Handle {
        process: thread.process,
        handle,
    };
    match effect {
        Effect::Names => {
            (exit.kernel != 0).then(|| Fact::Kernel(of(exit.kernel), call.name.into()))
        }
        Effect::CreatesList(is_immediate) => {
            let list = List {
                device: call.device,
                is_immediate,
            };
            (exit.queue != 0).then(|| Fact::List(of(exit.queue), list))
        }
        Effect::Executes => Some(Fact::Executes(Box::new(Enqueued {
            call,
            end,
            thread,
            is_executed: false,
        }))),
        Effect::Resets => Some(Fact::Resets(of(call.queue))),
        Effect::None => None,
    }
}

/// A command that is not complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Waiting<N, D> {
    pub(crate) enqueued: Box<Enqueued>,
    pub(crate) name: N,
    pub(crate) device: D,
    pub(crate) ready: Ready,
}

impl<N, D> Waiting<N, D> {
    /// The command of a list, queued by a call that executes the list.
    pub(crate) fn executed(mut self, by: &Enqueued) -> Waiting<N, D> {
        self.enqueued.call.begin = by.call.begin;
        self.enqueued.end = by.end;
        self.enqueued.thread = by.thread;
        self.enqueued.is_executed = true;
        self
    }
}

/// When the events were complete that a command waits for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The last that the program completed, by the clock of the trace.
    signal: Option<i64>,
    /// The last command, by the clock of its device.
    end: u64,
}

/// An event is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// The program completed it, at a time of the trace.
    Signal(i64),
    /// The command of the event ended, in nanoseconds of the device's clock.
    Command(u64),
}

/// The events that were completed in a slice, with the times of the trace.
#[derive(Debug, Default)]
pub(crate) struct Endings(Map<Handle, Vec<(i64, Ended)>>);

impl Endings {
    pub(crate) fn add(&mut self, event: Handle, at: i64, ended: Ended) {
        self.0.entry(event).or_default().push((at, ended));
    }

    /// The first completion within some time. Handles are used again: a later one is of another event.
    fn first(&self, handle: u64, of: &(u32, RangeInclusive<i64>)) -> Option<Ended> {
        let (process, within) = of;
        let process = *process;
        let all = self.0.get(&Handle { process, handle })?.iter();
        let first = all
            .filter(|(at, _)| within.contains(at))
            .min_by_key(|(at, _)| *at);
        first.map(|(_, ended)| *ended)
    }
}

impl Ready {
    fn add(&mut self, ended: Ended) {
        match ended {
            Ended::Signal(at) => self.signal = self.signal.max(Some(at)),
            Ended::Command(end) => self.end = self.end.max(end),
        }
    }

    /// Adds the events of the wait list that were complete by `until`, and takes them off the list.
    pub(crate) fn add_all(&mut self, enqueued: &mut Enqueued, ended: &Endings, until: i64) {
        let of = (enqueued.thread.process, enqueued.end..=until);
        for event in enqueued.call.waits.iter_mut().filter(|event| **event != 0) {
            if let Some(found) = ended.first(*event, &of) {
                self.add(found);
                *event = 0;
            }
        }
    }

    /// The last time, by the clock of the device of a command that was queued at `queued`. The
    /// clocks are taken to be apart as they are between the begin of its call and that time: the
    /// error is at most the duration of the call.
    fn by_device(self, queued: u64, enqueued: &Enqueued) -> u64 {
        let since = |at: i64| u64::try_from(at.saturating_sub(enqueued.call.begin)).unwrap_or(0);
        let signal = self.signal.map_or(0, |at| queued.saturating_add(since(at)));
        signal.max(self.end)
    }
}

/// The device of a queue within a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DeviceId {
    Known(Handle),
    /// That which the queue has at the begin of the slice.
    Inherited(Handle),
}

/// Adds what a complete command shows of the clock of its device. It was enqueued after its call
/// began, and ended before its completion was recorded.
pub(crate) fn bound(clock: &mut Timeline, enqueued: &Enqueued, completed: &Completed, at: i64) {
    if !completed.is_profiled || completed.kind == Times::Duration {
        return;
    }
    let [queued, _, start, end] = completed.times.map(|time| i64::try_from(time).ok());
    // Times of the call follow from this relation.
    let queued = match completed.kind {
        Times::OfCall => start,
        _ => queued,
    };
    let begin = enqueued.call.begin;
    if let Some(queued) = queued.filter(|_| begin != cuda::UNKNOWN) {
        clock.receives(queued, begin);
    }
    if let Some(end) = end {
        clock.sends(end, at);
    }
}

/// The place of a complete command on the timeline of its device.
pub(crate) fn place(
    rules: &Rules,
    enqueued: &Enqueued,
    completed: &Completed,
    ready: Ready,
    name: u32,
) -> Option<Placed> {
    let is_placed = completed.is_profiled && completed.kind != Times::Duration;
    if !is_placed || completed.times[3] == 0 {
        return None;
    }
    let [queued, submit, start, end] = Placed::times(completed.times);
    let call = &enqueued.call;
    Some(Placed {
        queued,
        submit,
        start,
        end,
        ready: ready.by_device(queued, enqueued),
        entry: call.begin,
        exit: enqueued.end,
        queue: call.queue,
        process: enqueued.thread.process,
        tid: enqueued.thread.tid,
        name,
        kind: rules.kind(enqueued),
    })
}

/// Name of a kernel within a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NameId {
    None,
    /// Index among the names of the slice.
    Known(u32),
    Inherited(u64),
}

/// Commands by list, with the events that time them.
pub(crate) type Lists<N, D> = Map<Handle, Vec<(Handle, Waiting<N, D>)>>;

/// Key by which the commands of a slice are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RowKey {
    queue: Handle,
    device: DeviceId,
    kind: Kind,
    name: NameId,
}

/// Commands with one key.
struct RowOfSlice {
    key: RowKey,
    /// Index in the devices of the slice.
    device: usize,
    /// Index in the commands of the slice.
    commands: usize,
    sums: QueueSums,
}

/// Complete commands of a device.
struct DeviceOfSlice {
    device: DeviceId,
    /// Relation of the device's clock to that of the trace.
    clock: Timeline,
    /// Commands whose names are indexes of rows.
    placed: Blocks,
}

/// A slice of time that is played without knowledge of earlier ones.
pub(crate) struct Slice<'a> {
    rules: &'a Rules,
    open: Map<ThreadId, OpenCalls>,
    /// Commands that are not complete, with the index in `rows`.
    events: Events,
    /// Commands of lists that are queued when their lists are executed.
    lists: Lists<u32, ()>,
    /// Devices whose timer was read.
    read: HashSet<Handle>,
    /// Calls of CUDA by their numbers.
    launched: Map<Handle, Launch>,
    /// Begin of the last call of CUDA.
    latest: i64,
    /// Devices of queues, by facts of the slice.
    queues: Map<Handle, Handle>,
    /// Devices of queues by earlier facts, as far as they are known.
    directory: Directory,
    /// Events that commands wait for.
    awaited: HashSet<Handle, BuildHasherDefault<KeyHasher>>,
    ended: Endings,
    names: Vec<String>,
    kernels: Map<Handle, u32>,
    rows: Vec<RowOfSlice>,
    /// By process, kind and name.
    commands: Vec<((u32, Kind, NameId), Commands)>,
    /// Indexes in `commands`.
    command_numbers: Map<(u32, Kind, NameId), usize>,
    /// Indexes in `rows`.
    row_numbers: Map<RowKey, u32>,
    devices: Vec<DeviceOfSlice>,
    /// Facts on queues and devices, and those whose other half is in earlier slices.
    later: Vec<Item>,
    /// Names of kernels with their times, for calls that began in earlier slices.
    named: Vec<(i64, Handle, u32)>,
    sums: Sums,
}

impl<'a> Slice<'a> {
    pub(crate) fn new(rules: &'a Rules, directory: Directory) -> Slice<'a> {
        Slice {
            rules,
            open: Map::default(),
            events: Events::new(rules.classes.may_be_early()),
            lists: Lists::default(),
            read: HashSet::new(),
            launched: Map::default(),
            latest: i64::MIN,
            queues: Map::default(),
            directory,
            awaited: HashSet::default(),
            ended: Endings::default(),
            names: Vec::new(),
            kernels: Map::default(),
            rows: Vec::new(),
            commands: Vec::new(),
            command_numbers: Map::default(),
            row_numbers: Map::default(),
            devices: Vec::new(),
            later: Vec::new(),
            named: Vec::new(),
            sums: Sums::default(),
        }
    }

    /// Plays the facts of runs, each in the order of its events.
    pub(crate) fn play(&mut self, mut runs: Vec<Vec<Item>>) {
        let count = runs.iter().map(Vec::len).sum();
        let mut order: Vec<(i64, u32, u32)> = Vec::with_capacity(count);
        for (number, run) in (0_u32..).zip(&runs) {
            let items = (0_u32..).zip(run);
            order.extend(items.map(|(place, item)| (item.time, number, place)));
        }
        let item = |run: u32, place: u32| {
            let run = runs.get(run as usize)?;
            run.get(place as usize).map(Item::order)
        };
        // Facts of a stream keep their order. The stable sort merges what is sorted already.
        order.sort_by(|(time, run, place), (other, other_run, other_place)| {
            let of_time = time.cmp(other);
            of_time.then_with(|| item(*run, *place).cmp(&item(*other_run, *other_place)))
        });
        let first = order.first().map_or(i64::MIN, |(time, ..)| *time);
        self.events.begin(first);
        for (time, run, place) in order {
            let run = runs.get_mut(run as usize);
            let Some(item) = run.and_then(|run| run.get_mut(place as usize)) else {
                continue;
            };
            let stream = item.stream;
            let fact = std::mem::take(&mut item.fact);
            match fact {
                Fact::None => {}
                Fact::Enters(thread, call) => self.open.entry(thread).or_default().enter(call),
                Fact::Exits(thread, exit) => {
                    let open = self.open.get_mut(&thread);
                    match open.and_then(|open| open.exit(&exit)) {
                        Some(call) => self.ended(thread, call, exit, time),
                        None => {
                            if exit.event != 0 {
                                let event = Handle {
                                    process: thread.process,
                                    handle: exit.event,
                                };
                                self.events.leave(event, time, &mut self.later);
                            }
                            self.later.push(Item { time, stream, fact });
                        }
                    }
                }
                Fact::Enqueued(event, enqueued) => self.enqueue((event, time), enqueued),
                Fact::Completed(event, completed) => {
                    // Wait lists of Level Zero are not followed: its completions come late.
                    if completed.kind == Times::Device && self.awaited.remove(&event) {
                        let ended = Ended::Command(completed.times[3]);
                        self.ended.add(event, time, ended);
                    }
                    let item = Item { time, stream, fact };
                    let later = &mut self.later;
                    match self.events.complete(event, &completed, item, later) {
                        Completion::Of(waiting) => self.complete(*waiting, &completed, time),
                        Completion::Left(item) => self.later.push(item),
                        Completion::Kept => {}
                    }
                }
                Fact::Signal(event) => {
                    self.ended.add(event, time, Ended::Signal(time));
                }
                Fact::Kernel(kernel, name) => self.name_kernel(kernel, name, time),
                Fact::Launched(call, launch) => {
                    self.latest = self.latest.max(launch.begin);
                    self.launched.insert(call, launch);
                }
                Fact::Ran(call, ran) => {
                    let launch = self.launched.get(&call).filter(|of| of.is_of(time));
                    match launch.copied() {
                        Some(launch) => self.run(call, &launch, &ran, time),
                        None => {
                            let fact = Fact::Ran(call, ran);
                            self.later.push(Item { time, stream, fact });
                        }
                    }
                }
                fact => self.play_other(Item { time, stream, fact }),
            }
        }
    }

    /// Plays facts of which earlier slices may have a part.
    fn play_other(&mut self, item: Item) {
        match &item.fact {
            Fact::Profiles(thread, event) => {
                let open = self.open.get(thread).and_then(OpenCalls::innermost);
                if let Some(call) = open {
                    let fact = self.rules.profiled(*thread, *event, call, item.time);
                    if let Some(Fact::Enqueued(event, enqueued)) = fact {
                        self.enqueue((event, item.time), enqueued);
                    }
                    return;
                }
                let event = Handle {
                    process: thread.process,
                    handle: *event,
                };
                self.events.leave(event, item.time, &mut self.later);
            }
            Fact::Queue(queue, device) => self.learn(*queue, *device),
            Fact::Executes(by) => self.execute(by, item.time),
            Fact::Resets(list) => {
                self.lists.remove(list);
            }
            Fact::Reading(device, cycles) => {
                let timer = self.rules.learned.timer(*device, self.rules.line(*device));
                let read = timer.and_then(|timer| timer.nanoseconds(*cycles, item.time));
                if let Some(read) = read.and_then(|read| i64::try_from(read).ok()) {
                    let clock = self.sums.readings.entry(*device).or_default();
                    clock.sends(read, item.time);
                }
                if !self.read.insert(*device) {
                    return;
                }
            }
            _ => {}
        }
        self.later.push(item);
    }

    /// A call executes lists: those of this slice.
    fn execute(&mut self, by: &Enqueued, at: i64) {
        for list in &by.call.waits {
            let list = Handle {
                process: by.thread.process,
                handle: *list,
            };
            for (event, command) in self.lists.get(&list).into_iter().flatten() {
                let command = command.clone().executed(by);
                self.events.renew(*event, at, command, &mut self.later);
            }
        }
    }

    fn name_kernel(&mut self, kernel: Handle, name: String, at: i64) {
        let number = self.names.len() as u32;
        self.names.push(name);
        self.kernels.insert(kernel, number);
        self.named.push((at, kernel, number));
    }

    fn learn(&mut self, queue: Handle, device: u64) {
        let device = Handle {
            handle: device,
            ..queue
        };
        self.queues.insert(queue, device);
    }

    fn ended(&mut self, thread: ThreadId, call: Entered, exit: Exited, end: i64) {
        self.rules
            .count_call(&mut self.sums, thread, &call, &exit, end);
        if let Some(fact) = self.rules.outcome(thread, call, exit, end) {
            match fact {
                Fact::Enqueued(event, enqueued) => self.enqueue((event, end), enqueued),
                Fact::Kernel(kernel, name) => self.name_kernel(kernel, name, end),
                fact => self.play_other(Item {
                    time: end,
                    stream: 0,
                    fact,
                }),
            }
        }
    }

    fn enqueue(&mut self, (event, time): (Handle, i64), enqueued: Box<Enqueued>) {
        let queue = Handle {
            handle: enqueued.call.queue,
            ..event
        };
        let begin = enqueued.call.begin;
        let list = self.rules.list(event.process, queue.handle, begin);
        if list.is_some_and(|list| !list.is_immediate) {
            let waiting = self.waiting((event, queue), list, enqueued);
            self.lists.entry(queue).or_default().push((event, waiting));
            return;
        }
        match self.events.enqueue(event, (begin, time), &mut self.later) {
            New::Open => {
                let waiting = self.waiting((event, queue), list, enqueued);
                self.events.keep(event, waiting);
            }
            New::Complete(at, completed) => {
                let waiting = self.waiting((event, queue), list, enqueued);
                self.complete(waiting, &completed, at);
            }
            New::Left => self.later.push(Item {
                time,
                stream: 0,
                fact: Fact::Enqueued(event, enqueued),
            }),
        }
    }

    /// A new command with the index of its row.
    fn waiting(
        &mut self,
        (event, queue): (Handle, Handle),
        list: Option<List>,
        enqueued: Box<Enqueued>,
    ) -> Waiting<u32, ()> {
        let name = self.name_of(event.process, enqueued.call.kernel);
        let of_list = list.map(|list| Handle {
            handle: list.device,
            ..event
        });
        let known = of_list.or_else(|| self.queues.get(&queue).copied());
        let device = match known.or_else(|| self.directory.get(&queue).copied()) {
            Some(device) => DeviceId::Known(device),
            None => DeviceId::Inherited(queue),
        };
        for awaited in &enqueued.call.waits {
            self.awaited.insert(Handle {
                handle: *awaited,
                ..event
            });
        }
        Waiting {
            name: self.row(RowKey {
                queue,
                device,
                kind: self.rules.kind(&enqueued),
                name,
            }),
            device: (),
            enqueued,
            ready: Ready::default(),
        }
    }

    /// Index of the row of a command.
    fn row(&mut self, key: RowKey) -> u32 {
        let next = self.rows.len() as u32;
        let row = *self.row_numbers.entry(key).or_insert(next);
        if row == next {
            let mut devices = self.devices.iter();
            let known = devices.position(|of| of.device == key.device);
            let device = known.unwrap_or(self.devices.len());
            if known.is_none() {
                self.devices.push(DeviceOfSlice {
                    device: key.device,
                    clock: Timeline::default(),
                    placed: Blocks::default(),
                });
            }
            let of = (key.queue.process, key.kind, key.name);
            let next = self.commands.len();
            let commands = *self.command_numbers.entry(of).or_insert(next);
            if commands == next {
                self.commands.push((of, Commands::default()));
            }
            self.rows.push(RowOfSlice {
                key,
                device,
                commands,
                sums: QueueSums::default(),
            });
        }
        row
    }

    /// The name that a kernel has now.
    fn name_of(&self, process: u32, kernel: u64) -> NameId {
        let handle = Handle {
            process,
            handle: kernel,
        };
        match self.kernels.get(&handle) {
            _ if kernel == 0 => NameId::None,
            Some(number) => NameId::Known(*number),
            None => NameId::Inherited(kernel),
        }
    }

    /// A command of CUDA that is complete.
    fn run(&mut self, call: Handle, launch: &Launch, ran: &Ran, at: i64) {
        let function = self.rules.classes.command(ran.kind);
        let enqueued = ran.enqueued(call, Some(launch), (function, at));
        let of = |handle: u64| Handle { handle, ..call };
        let row = self.row(RowKey {
            queue: of(enqueued.call.queue),
            device: DeviceId::Known(of(ran.device)),
            kind: ran.kind,
            name: self.name_of(call.process, ran.kernel),
        });
        let waiting = Waiting {
            enqueued: Box::new(enqueued),
            name: row,
            device: (),
            ready: Ready::default(),
        };
        self.complete(waiting, &ran.completed, at);
    }

    fn complete(&mut self, waiting: Waiting<u32, ()>, completed: &Completed, at: i64) {
        if !self.rules.window.contains(at) {
            return;
        }
        let Waiting {
            mut enqueued,
            name: number,
            mut ready,
            ..
        } = waiting;
        let completed = &self.rules.timed(&enqueued, *completed);
        ready.add_all(&mut enqueued, &self.ended, at);
        let Some(row) = self.rows.get_mut(number as usize) else {
            return;
        };
        row.sums.add(completed);
        if let Some((_, commands)) = self.commands.get_mut(row.commands) {
            commands.add(&enqueued, completed);
        }
        if let Some(device) = self.devices.get_mut(row.device) {
            bound(&mut device.clock, &enqueued, completed, at);
            let placed = place(self.rules, &enqueued, completed, ready, number);
            placed
                .into_iter()
                .for_each(|placed| device.placed.push(placed));
        }
    }

    fn name(&self, name: NameId) -> Name {
        match name {
            NameId::None => Name::None,
            NameId::Known(number) => {
                let known = self.names.get(number as usize);
                Name::Known(known.cloned().unwrap_or_default())
            }
            NameId::Inherited(handle) => Name::Inherited(handle),
        }
    }

    /// Ends the slice, with its rest to be joined.
    pub(crate) fn end(mut self, spill: Option<&Spill>) -> Played {
        // Names of one slice may be equal, such as that of a kernel that is made for each call.
        let rows = std::mem::take(&mut self.rows);
        let names: Vec<(u32, Name)> = rows
            .iter()
            .map(|row| (row.key.queue.process, self.name(row.key.name)))
            .collect();
        for row in rows.iter().filter(|row| row.sums.count > 0) {
            let queue = self.sums.queues.entry(row.key.queue).or_default();
            queue.merge(&row.sums);
        }
        let commands = std::mem::take(&mut self.commands).into_iter();
        for ((process, kind, name), commands) in commands.filter(|(_, of)| of.count > 0) {
            let name = self.name(name);
            let row = Row {
                process,
                kind,
                name,
            };
            self.sums.commands.entry(row).or_default().merge(&commands);
        }
        let events = std::mem::replace(&mut self.events, Events::new(MayBeEarly::default()));
        let (waiting, renewed) = events.end(&mut self.later);
        self.later.sort_by_key(Item::order);
        let lists = std::mem::take(&mut self.lists);
        let to_name = |(event, waiting): (Handle, Waiting<u32, ()>)| {
            let row = rows.get(waiting.name as usize)?;
            let waiting = Waiting {
                enqueued: waiting.enqueued,
                name: self.name(row.key.name),
                device: row.key.device,
                ready: waiting.ready,
            };
            Some((event, waiting))
        };
        let waiting = waiting.into_iter().filter_map(to_name).collect();
        let lists = lists.into_iter();
        let lists = lists.map(|(list, of)| (list, of.into_iter().filter_map(to_name).collect()));
        let lists = lists.collect();
        let named = self.named.iter().map(|(time, kernel, number)| {
            let name = self.names.get(*number as usize);
            (*time, *kernel, name.cloned().unwrap_or_default())
        });
        let named = named.collect();
        // Devices whose commands are not complete follow from those, when they are.
        let complete = rows.iter().filter(|row| row.sums.count > 0);
        let complete: HashSet<usize> = complete.map(|row| row.device).collect();
        let devices = self.devices.into_iter().enumerate();
        let devices = devices.filter(|(place, _)| complete.contains(place));
        let devices = devices.map(|(_, of)| {
            let mut run = Run::new(&of.placed);
            spill.into_iter().for_each(|spill| run.spill(spill));
            (of.device, run, of.clock)
        });
        Played {
            launched: self.launched,
            latest: self.latest,
            devices: devices.collect(),
            names,
            ended: self.ended,
            named,
            waiting,
            renewed,
            lists,
            open: self.open,
            later: self.later,
            sums: self.sums,
        }
    }
}

/// A played slice.
pub(crate) struct Played {
    pub(crate) open: Map<ThreadId, OpenCalls>,
    pub(crate) waiting: Vec<(Handle, Waiting<Name, DeviceId>)>,
    /// When the first command with an event was enqueued: those of earlier slices are not complete
    /// any more.
    pub(crate) renewed: Map<Handle, i64>,
    pub(crate) lists: Lists<Name, DeviceId>,
    pub(crate) named: Vec<(i64, Handle, String)>,
    pub(crate) launched: Map<Handle, Launch>,
    pub(crate) latest: i64,
    pub(crate) later: Vec<Item>,
    pub(crate) sums: Sums,
    /// Complete commands by device, and the relation of its clock.
    pub(crate) devices: Vec<(DeviceId, Run, Timeline)>,
    /// Traces and names of the commands in runs, by their numbers.
    pub(crate) names: Vec<(u32, Name)>,
    pub(crate) ended: Endings,
}
