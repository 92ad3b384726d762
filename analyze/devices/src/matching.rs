//! Calls and commands, matched in the order of time.
//!
//! A command is known from two event records of different threads: the end of the call that
//! enqueued it, and its completion. They have the same event, whose handle later commands may get
//! again. Facts are played in slices of time beside each other ([`Slice`]): all that begins and ends
//! within a slice is complete there. The rest is joined to the state of all earlier slices
//! ([`State::join`]): its size is the number of calls and commands that are open at the ends of the
//! slice.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use tracebraid_follow::Window;

use crate::calls::OpenCalls;
use crate::classes::{Classes, Function};
use crate::cuda::{Launch, Ran};
use crate::item::{Completed, Enqueued, Entered, Exited, Fact, Handle, Item, ThreadId};
use crate::kind::Kind;
use crate::sums::{Commands, Name, Row, Sums};

/// Rules that all slices share.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) classes: Classes,
    pub(crate) window: Window,
}

impl Rules {
    fn function(&self, number: u32) -> Option<&Function> {
        self.classes.functions().get(number as usize)
    }

    fn kind(&self, enqueued: &Enqueued) -> Kind {
        let function = self.function(enqueued.call.function);
        function.and_then(|of| of.kind).unwrap_or(Kind::Other)
    }

    /// Counts a call that ends in the window.
    pub(crate) fn count_call(
        &self,
        sums: &mut Sums,
        trace: u32,
        call: &Entered,
        exit: &Exited,
        end: i64,
    ) {
        if self.window.contains(end) {
            let duration = u64::try_from(end.saturating_sub(call.begin)).unwrap_or(0);
            let calls = sums.calls.entry((trace, call.function)).or_default();
            calls.add(duration, exit.status < 0);
        }
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
            trace: thread.trace,
            handle,
        };
        if function.kind.is_some() && exit.event != 0 {
            let enqueued = Enqueued { call, end, thread };
            return Some(Fact::Enqueued(of(exit.event), Box::new(enqueued)));
        }
        (function.creates_queue && exit.queue != 0)
            .then(|| Fact::Queue(of(exit.queue), call.device))
    }
}

/// Names of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) platform: String,
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queue {
    /// Number among the queues of the trace, from 1, in the order of time.
    pub(crate) number: u32,
    pub(crate) device: u64,
}

/// The state after some slices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    open: BTreeMap<ThreadId, OpenCalls>,
    enqueued: BTreeMap<Handle, Waiting>,
    kernels: BTreeMap<Handle, String>,
    /// Calls of CUDA by their numbers.
    launched: BTreeMap<Handle, Launch>,
    pub(crate) queues: BTreeMap<Handle, Queue>,
    pub(crate) devices: BTreeMap<Handle, Device>,
    pub(crate) sums: Sums,
}

/// A command that is not complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Waiting {
    enqueued: Enqueued,
    name: Name,
}

/// Name of a kernel within a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NameId {
    None,
    /// Index among the names of the slice.
    Known(u32),
    Inherited(u64),
}

/// A slice of time that is played without knowledge of earlier ones.
pub(crate) struct Slice<'a> {
    rules: &'a Rules,
    open: HashMap<ThreadId, OpenCalls>,
    enqueued: HashMap<Handle, (Enqueued, NameId)>,
    launched: HashMap<Handle, Launch>,
    names: Vec<String>,
    kernels: HashMap<Handle, u32>,
    /// Commands by queue, kind and name.
    rows: HashMap<(Handle, Kind, NameId), Commands>,
    /// Facts on queues and devices, and those whose other half is in earlier slices.
    later: Vec<Item>,
    /// Names of kernels with their times, for calls that began in earlier slices.
    named: Vec<(i64, Handle, u32)>,
    /// Begin of the last call of CUDA.
    latest: i64,
    sums: Sums,
}

impl<'a> Slice<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Slice<'a> {
        Slice {
            rules,
            open: HashMap::new(),
            enqueued: HashMap::new(),
            launched: HashMap::new(),
            names: Vec::new(),
            kernels: HashMap::new(),
            rows: HashMap::new(),
            later: Vec::new(),
            named: Vec::new(),
            latest: i64::MIN,
            sums: Sums::default(),
        }
    }

    /// Plays facts in their order.
    pub(crate) fn play(&mut self, items: Vec<Item>) {
        for item in items {
            let Item { time, stream, fact } = item;
            match fact {
                Fact::Enters(thread, call) => self.open.entry(thread).or_default().enter(call),
                Fact::Exits(thread, exit) => {
                    let open = self.open.get_mut(&thread);
                    match open.and_then(|open| open.exit(&exit)) {
                        Some(call) => self.ended(thread, call, exit, time),
                        None => self.later.push(Item { time, stream, fact }),
                    }
                }
                Fact::Enqueued(event, enqueued) => self.enqueue(event, *enqueued),
                Fact::Completed(event, completed) => match self.enqueued.remove(&event) {
                    Some((enqueued, name)) => self.complete(&enqueued, name, &completed, time),
                    None => self.later.push(Item { time, stream, fact }),
                },
                Fact::Kernel(kernel, name) => {
                    let number = self.names.len() as u32;
                    self.names.push(name);
                    self.kernels.insert(kernel, number);
                    self.named.push((time, kernel, number));
                }
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
                Fact::Queue(..) | Fact::DeviceName(..) | Fact::Platform(..) => {
                    self.later.push(Item { time, stream, fact });
                }
            }
        }
    }

    fn ended(&mut self, thread: ThreadId, call: Entered, exit: Exited, end: i64) {
        self.rules
            .count_call(&mut self.sums, thread.trace, &call, &exit, end);
        if let Some(fact) = self.rules.outcome(thread, call, exit, end) {
            match fact {
                Fact::Enqueued(event, enqueued) => self.enqueue(event, *enqueued),
                fact => self.later.push(Item {
                    time: end,
                    stream: 0,
                    fact,
                }),
            }
        }
    }

    fn enqueue(&mut self, event: Handle, enqueued: Enqueued) {
        let name = self.name_of(event.trace, enqueued.call.kernel);
        self.enqueued.insert(event, (enqueued, name));
    }

    /// A command of CUDA that is complete.
    fn run(&mut self, call: Handle, launch: &Launch, ran: &Ran, at: i64) {
        let name = self.name_of(call.trace, ran.kernel);
        let function = self.rules.classes.command(ran.kind);
        let enqueued = ran.enqueued(call, Some(launch), function);
        self.complete(&enqueued, name, &ran.completed, at);
    }

    /// The name that a kernel has now.
    fn name_of(&self, trace: u32, kernel: u64) -> NameId {
        let handle = Handle {
            trace,
            handle: kernel,
        };
        match self.kernels.get(&handle) {
            _ if kernel == 0 => NameId::None,
            Some(number) => NameId::Known(*number),
            None => NameId::Inherited(kernel),
        }
    }

    fn complete(&mut self, enqueued: &Enqueued, name: NameId, completed: &Completed, at: i64) {
        if !self.rules.window.contains(at) {
            return;
        }
        let queue = Handle {
            trace: enqueued.thread.trace,
            handle: enqueued.call.queue,
        };
        self.sums.clock(queue, enqueued, completed, at);
        let kind = self.rules.kind(enqueued);
        let row = self.rows.entry((queue, kind, name)).or_default();
        row.add(enqueued, completed);
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
    pub(crate) fn end(mut self) -> Played {
        // Names of one slice may be equal, such as that of a kernel that is made for each call.
        let rows = std::mem::take(&mut self.rows);
        for ((queue, kind, name), commands) in rows {
            let name = self.name(name);
            let row = Row { queue, kind, name };
            self.sums.commands.entry(row).or_default().merge(&commands);
        }
        let waiting = std::mem::take(&mut self.enqueued).into_iter();
        let waiting = waiting.map(|(event, (enqueued, name))| {
            let name = self.name(name);
            (event, Waiting { enqueued, name })
        });
        let waiting = waiting.collect();
        let named = self.named.iter().map(|(time, kernel, number)| {
            let name = self.names.get(*number as usize);
            (*time, *kernel, name.cloned().unwrap_or_default())
        });
        Played {
            named: named.collect(),
            launched: self.launched,
            latest: self.latest,
            waiting,
            open: self.open,
            later: self.later,
            sums: self.sums,
        }
    }
}

/// A played slice.
pub(crate) struct Played {
    open: HashMap<ThreadId, OpenCalls>,
    waiting: Vec<(Handle, Waiting)>,
    named: Vec<(i64, Handle, String)>,
    launched: HashMap<Handle, Launch>,
    latest: i64,
    later: Vec<Item>,
    sums: Sums,
}

impl State {
    /// Joins a slice to the earlier ones.
    pub(crate) fn join(&mut self, rules: &Rules, played: Played) {
        let Played {
            open,
            waiting,
            named,
            launched,
            latest,
            later,
            mut sums,
        } = played;
        self.inherit(&mut sums);
        self.sums.merge(sums);
        for Item { time, fact, .. } in later {
            match fact {
                Fact::Exits(thread, exit) => {
                    let open = self.open.get_mut(&thread);
                    if let Some(call) = open.and_then(|open| open.exit(&exit)) {
                        rules.count_call(&mut self.sums, thread.trace, &call, &exit, time);
                        match rules.outcome(thread, call, exit, time) {
                            Some(Fact::Enqueued(event, enqueued)) => {
                                self.enqueue(event, *enqueued, &named);
                            }
                            Some(fact) => self.learn(fact),
                            None => {}
                        }
                    }
                }
                Fact::Completed(event, completed) => {
                    self.complete(rules, event, &completed, time);
                }
                Fact::Ran(call, ran) => self.run(rules, (call, &ran), time, &named),
                fact => self.learn(fact),
            }
        }
        self.launched.extend(launched);
        self.launched.retain(|_, launch| launch.is_of(latest));
        for (thread, calls) in open {
            self.open.entry(thread).or_default().append(calls);
        }
        self.open.retain(|_, open| !open.is_empty());
        for (event, mut waiting) in waiting {
            waiting.name = self.known(event.trace, waiting.name);
            self.enqueued.insert(event, waiting);
        }
        for (_, kernel, name) in named {
            self.kernels.insert(kernel, name);
        }
    }

    /// Number of commands that are not complete.
    pub(crate) fn waiting(&self) -> u64 {
        self.enqueued.len() as u64
    }

    /// Resolves the names that a slice inherits.
    fn inherit(&self, sums: &mut Sums) {
        for (mut row, commands) in std::mem::take(&mut sums.commands) {
            row.name = self.known(row.queue.trace, row.name);
            sums.commands.entry(row).or_default().merge(&commands);
        }
    }

    /// A name, where earlier slices are known; unknown names are empty.
    fn known(&self, trace: u32, name: Name) -> Name {
        match name {
            Name::Inherited(handle) => {
                let name = self.kernels.get(&Handle { trace, handle });
                Name::Known(name.cloned().unwrap_or_default())
            }
            name => name,
        }
    }

    fn enqueue(&mut self, event: Handle, enqueued: Enqueued, named: &[(i64, Handle, String)]) {
        let kernel = Handle {
            handle: enqueued.call.kernel,
            ..event
        };
        let name = self.name_at(kernel, enqueued.end, named);
        self.enqueued.insert(event, Waiting { enqueued, name });
    }

    /// The name that a kernel has at a time of a slice, whose names are `named`.
    fn name_at(&self, kernel: Handle, at: i64, named: &[(i64, Handle, String)]) -> Name {
        let in_slice = named.iter().rev();
        let mut in_slice = in_slice.filter(|(time, of, _)| *of == kernel && *time <= at);
        match in_slice.next() {
            _ if kernel.handle == 0 => Name::None,
            Some((_, _, name)) => Name::Known(name.clone()),
            None => self.known(kernel.trace, Name::Inherited(kernel.handle)),
        }
    }

    /// A command of CUDA whose call is in an earlier slice, or not in the trace.
    fn run(
        &mut self,
        rules: &Rules,
        (call, ran): (Handle, &Ran),
        at: i64,
        named: &[(i64, Handle, String)],
    ) {
        if !rules.window.contains(at) {
            return;
        }
        let kernel = Handle {
            handle: ran.kernel,
            ..call
        };
        let name = self.name_at(kernel, at, named);
        let launch = self.launched.get(&call).filter(|of| of.is_of(at));
        let enqueued = ran.enqueued(call, launch, rules.classes.command(ran.kind));
        self.count(rules, (&enqueued, name), &ran.completed, at);
    }

    fn complete(&mut self, rules: &Rules, event: Handle, completed: &Completed, at: i64) {
        let waiting = self.enqueued.remove(&event);
        if !rules.window.contains(at) {
            return;
        }
        let Some(Waiting { enqueued, name }) = waiting else {
            self.sums.without_call += 1;
            return;
        };
        self.count(rules, (&enqueued, name), completed, at);
    }

    fn count(
        &mut self,
        rules: &Rules,
        (enqueued, name): (&Enqueued, Name),
        completed: &Completed,
        at: i64,
    ) {
        let queue = Handle {
            trace: enqueued.thread.trace,
            handle: enqueued.call.queue,
        };
        self.sums.clock(queue, enqueued, completed, at);
        let kind = rules.kind(enqueued);
        let row = Row { queue, kind, name };
        let commands = self.sums.commands.entry(row).or_default();
        commands.add(enqueued, completed);
    }

    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Queue(queue, device) => {
                if let Some(known) = self.queues.get_mut(&queue) {
                    known.device = device;
                    return;
                }
                let of_trace = self.queues.keys().filter(|of| of.trace == queue.trace);
                let number = of_trace.count() as u32 + 1;
                self.queues.insert(queue, Queue { number, device });
            }
            Fact::DeviceName(device, name) => {
                self.devices.entry(device).or_default().name = name;
            }
            Fact::Platform(device, platform) => {
                self.devices.entry(device).or_default().platform = platform;
            }
            _ => {}
        }
    }
}
