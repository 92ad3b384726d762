//! Commands of GPUs and other devices: how long each waited in the queues of host and device, how
//! long it ran, why devices were idle, what the calls of the API cost.
//!
//! In: traces of programs with the events of calls of OpenCL or CUDA and of the times of commands, by
//! `tracebraid record --gpu` or by THAPI (of HIP and MPI only calls: `cuda`). Out: tables
//! of devices, idle time, queues, kernels, transfers and functions ([`DeviceAnalysis`]); lists for
//! export (`exported`); waits of threads for devices (`waits`). Promise: the law of folding and that
//! of scale.
//!
//! **Calls** are the pairs of entries and exits of a thread. In streams of one thread they are paired
//! while a chunk is folded, otherwise in the order of time.
//!
//! **Commands** (`matching`). The record of a complete command has four times of the device's clock:
//! queued, submitted, started, ended. It names the event that the call returned, whose handle later
//! commands may get again. So both are matched in the order of time, in slices in parallel; a
//! completion may come before the end of the call (`early`). A command of CUDA has all facts in one
//! record (`cuda`). THAPI has other records of commands of CUDA and of Level Zero (`thapi`,
//! `level_zero`).
//!
//! **Lines** (`line`). The timeline of a device has all its commands in the order of its time: it
//! shows when the device was busy, and what the next command waited for while it was idle. `late`
//! explains the idle time for which the host is the cause, by critical paths.
//!
//! **Clocks** (`sums`). A command is queued after its call began, and ends before its completion is
//! recorded: each command bounds the relation of the two clocks from both sides (D. Couturier, M.
//! Dagenais: LTTng CLUST, 2015, section 3.4; `tracebraid_clocks` fits the relation). Waits and
//! executions are differences of times of one device, so they do not depend on that relation.
#![forbid(unsafe_code)]

mod calls;
mod classes;
mod cuda;
mod early;
mod events;
mod exported;
mod item;
mod kind;
mod late;
mod level_zero;
mod line;
mod line_tables;
mod matching;
mod processes;
mod same;
mod state;
mod sums;
mod tables;
mod thapi;
mod waits;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_clocks::Machines;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::parallel;
use tracebraid_engine::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_follow::{Head, Packets, Subjects, Window};
use tracebraid_language::{At, Datum};
use tracebraid_tables::Report;

use calls::OpenCalls;
use classes::{Class, Classes, Meaning, Role};
use cuda::{Api, Launch, Ran};
pub use exported::{Call, Command, Exported};
use item::{Completed, Entered, Exited, Fact, Handle, Item, Properties, ThreadId, Times};
pub use kind::Kind;
pub use late::{HostDid, Late};
use level_zero::{Described, Learned};
use line::{Piece, Spill};
pub use matching::Keep;
use matching::{Directory, Played, Rules, Slice};
use processes::Processes;
use state::State;
use sums::Sums;
use thapi::Effect;

/// Analyses calls and commands.
#[derive(Debug)]
pub struct DeviceAnalysis {
    rules: Rules,
    subjects: Subjects,
    head: Head,
    processes: Processes,
    machines: Machines,
    spill: Spill,
    /// Number of commands in memory from which on more go to a file.
    most_held: usize,
}

/// Facts in a block: slices of time cut few blocks, and whole ones are not copied.
const BLOCK: usize = 1024;

/// Commands in memory that wait for earlier ones take 80 bytes each.
const MOST_HELD: usize = 1 << 20;

/// State after all event records, for [`DeviceAnalysis::report`].
#[derive(Debug, Default)]
pub struct Devices {
    state: State,
}

/// State after some chunks.
///
/// Besides facts that wait to be played, its size is bounded by the number of functions, queues,
/// kernels and devices, and of calls and commands that are open at once.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DevicePartial {
    /// Facts in blocks, each in the order of time.
    runs: Vec<Vec<Item>>,
    /// The last facts of the chunk: a block that is not full.
    run: Vec<Item>,
    /// Open calls at the ends of the chunk's packets, in any order.
    opened: Vec<Item>,
    /// Open calls of the thread of the packet, in streams of one thread.
    open: OpenCalls,
    thread: Option<(ThreadId, u32)>,
    /// Devices of queues in the facts that wait, by time. These and `directory` only save work:
    /// without them, devices are found when slices are joined.
    #[serde(skip)]
    told: Vec<(i64, Handle, Handle)>,
    /// Devices of queues before these facts.
    #[serde(skip)]
    directory: Directory,
    /// Calls that begin and end within chunks.
    sums: Sums,
    state: State,
    #[serde(skip)]
    packets: Packets,
}

impl DeviceAnalysis {
    /// Analyses the commands in `set` that are complete in the window.
    pub fn new(set: &TraceSet, window: Window) -> DeviceAnalysis {
        let classes = Classes::new(set);
        DeviceAnalysis {
            head: tables::head(set, &classes, window),
            subjects: Subjects::new(set),
            processes: Processes::new(set),
            rules: Rules {
                classes,
                window,
                shared: BTreeMap::new(),
                learned: Learned::default(),
                paths: BTreeMap::new(),
                releases: true,
                keeps: Keep::Nothing,
            },
            machines: Machines::of(set),
            spill: Spill::default(),
            most_held: MOST_HELD,
        }
    }

    /// Sets the number of commands in memory from which on more go to a file.
    pub fn holding(self, most: usize) -> DeviceAnalysis {
        DeviceAnalysis {
            most_held: most,
            ..self
        }
    }

    /// Keeps commands and calls for [`DeviceAnalysis::exported`], which takes memory for each.
    pub fn keeping(mut self, keep: Keep) -> DeviceAnalysis {
        self.rules.keeps = keep;
        self
    }

    /// Learns from a first reading that processes share a device, or that a device queued commands
    /// in another order than that of their calls, and the facts that times of Level Zero need. Returns
    /// true if the traces must be read again.
    pub fn learn(&mut self, found: &Devices) -> bool {
        let shared = same::shared(&found.state, &self.processes, &self.machines);
        let is_late = found.state.lines.values().any(|line| line.is_late);
        let learned = &found.state.learned;
        let is_known = shared == self.rules.shared
            && *learned == self.rules.learned
            && !(is_late && self.rules.releases);
        self.rules.shared = shared;
        self.rules.releases &= !is_late;
        self.rules.learned = learned.clone();
        // The relation of the clocks is that of all commands, which have times now.
        let is_related = learned.is_empty() || !self.rules.paths.is_empty();
        if is_known && !is_related {
            self.rules.paths = late::paths(self, &found.state);
            return !self.rules.paths.is_empty();
        }
        !is_known
    }

    /// The tables.
    pub fn report(&self, found: &Devices, did: &HostDid) -> Report {
        tables::report(self, &found.state, did)
    }

    /// True if the traces have event classes of an API for devices.
    pub fn is_possible(&self) -> bool {
        !self.rules.classes.functions().is_empty()
    }

    /// Packets that begin at or after this time need not be read.
    pub fn until(&self) -> Option<Timestamp> {
        self.rules.window.to
    }

    fn thread(
        &self,
        partial: &DevicePartial,
        class: &Class,
        record: &mut Record<'_>,
    ) -> Option<ThreadId> {
        let subject = self.subjects.subject(&partial.packets, record);
        let mut at = At::new(record.body, record.slots);
        let tid = class.tid()?.get(&mut at, &subject);
        let Datum::Integer(tid) = tid else {
            return None;
        };
        Some(ThreadId {
            process: self.process(partial, class, record),
            tid: i32::try_from(tid).ok()?,
        })
    }

    /// Number of the process of an event record.
    #[inline]
    fn process(&self, partial: &DevicePartial, class: &Class, record: &mut Record<'_>) -> u32 {
        let trace = record.stream.trace;
        if !self.processes.are_several(trace) {
            return trace;
        }
        let subject = self.subjects.subject(&partial.packets, record);
        let mut at = At::new(record.body, record.slots);
        match class.pid().map(|pid| pid.get(&mut at, &subject)) {
            Some(Datum::Integer(pid)) => self.processes.number(trace, pid),
            _ => trace,
        }
    }

    fn is_of_thread(&self, stream: StreamRef) -> bool {
        let class = self.subjects.class(stream);
        class.is_some_and(|class| {
            self.rules
                .classes
                .is_of_thread(stream.trace as usize, class)
        })
    }

    fn enters(&self, partial: &mut DevicePartial, class: &Class, record: &mut Record<'_>) {
        let Some(thread) = self.thread(partial, class, record) else {
            return;
        };
        let function = self.rules.classes.functions().get(class.function as usize);
        let is_command = function.is_some_and(|function| function.kind.is_some());
        let effect = function.map_or(Effect::None, |of| of.effect);
        let has_pixels = function.is_some_and(|of| of.has_pixels);
        let is_rect = class.has(Role::Region) && !class.has(Role::Bytes) && !has_pixels;
        let call = Entered {
            function: class.function,
            begin: record.time.0,
            queue: class.number(Role::Queue, record),
            kernel: if is_command {
                class.number(Role::Kernel, record)
            } else {
                0
            },
            device: class.number(Role::Device, record),
            bytes: match function {
                Some(of) if of.kind.is_none() => 0,
                Some(of) if class.has(Role::Copied) => {
                    thapi::copied(&of.name, class.structure(Role::Copied, record))
                }
                _ if is_rect => class.product(Role::Region, record),
                _ => class.number(Role::Bytes, record),
            },
            items: if is_command { class.items(record) } else { 0 },
            waits: match is_command || effect == Effect::Executes {
                true => class.list(Role::Waits, record),
                false => Box::default(),
            },
            name: match effect {
                Effect::Names => class.text(Role::Name, record).into(),
                _ => Box::default(),
            },
        };
        let of_call = |class: &Class, record: &mut Record<'_>| Handle {
            process: thread.process,
            handle: class.number(Role::Event, record),
        };
        if function.is_some_and(|function| function.signals) {
            let event = of_call(class, record);
            partial.push(record, Fact::Signal(event));
        }
        if function.is_some_and(|function| function.launches) {
            let launch = Launch {
                begin: record.time.0,
                thread,
            };
            let call = of_call(class, record);
            partial.push(record, Fact::Launched(call, launch));
        }
        if self.is_of_thread(record.stream) {
            if partial.thread.is_none_or(|(of, _)| of != thread) {
                partial.flush();
                partial.thread = Some((thread, record.number));
            }
            return partial.open.enter(call);
        }
        partial.push(record, Fact::Enters(thread, call));
    }

    fn exits(&self, partial: &mut DevicePartial, class: &Class, record: &mut Record<'_>) {
        let Some(thread) = self.thread(partial, class, record) else {
            return;
        };
        let function = self.rules.classes.functions().get(class.function as usize);
        let api = function.map_or(Api::OPENCL, |function| function.api);
        let exit = Exited {
            function: class.function,
            status: api.status(class.number(Role::Status, record) as i32),
            event: class.number(Role::Event, record),
            queue: class.number(Role::Queue, record),
            kernel: class.number(Role::Kernel, record),
        };
        let is_own = partial.thread.is_some_and(|(of, _)| of == thread);
        match is_own.then(|| partial.open.exit(&exit)).flatten() {
            Some(call) => {
                let end = record.time.0;
                self.rules
                    .count_call(&mut partial.sums, thread, &call, &exit, end);
                if let Some(fact) = self.rules.outcome(thread, call, exit, end) {
                    partial.push(record, fact);
                }
            }
            None => partial.push(record, Fact::Exits(thread, exit)),
        }
    }

    /// A record within a call of the thread: the event that times its command.
    fn profiles(&self, partial: &mut DevicePartial, class: &Class, record: &mut Record<'_>) {
        let Some(thread) = self.thread(partial, class, record) else {
            return;
        };
        if class.number(Role::Status, record) as i32 != 0 {
            return;
        }
        let event = class.number(Role::Event, record);
        let is_own = partial.thread.is_some_and(|(of, _)| of == thread);
        let fact = match partial.open.innermost().filter(|_| is_own) {
            Some(call) => self.rules.profiled(thread, event, call, record.time.0),
            None => Some(Fact::Profiles(thread, event)),
        };
        if let Some(fact) = fact {
            partial.push(record, fact);
        }
    }

    /// The properties of a device of Level Zero.
    fn describes(&self, partial: &mut DevicePartial, class: &Class, record: &mut Record<'_>) {
        let Some(described) = Described::of(class.structure(Role::Name, record)) else {
            return;
        };
        let [handle, parent] = [Role::Device, Role::Parent].map(|role| class.number(role, record));
        let process = self.process(partial, class, record);
        let device = Handle { process, handle };
        let digits = described.uuid.iter().map(|byte| format!("{byte:02x}"));
        let properties = Properties {
            platform: "Level Zero".to_owned(),
            parent: if parent == handle { 0 } else { parent },
            identity: digits.collect(),
        };
        partial.push(record, Fact::Timer(device, described.counter));
        partial.push(record, Fact::DeviceName(device, described.name));
        partial.push(record, Fact::Device(device, Box::new(properties)));
    }

    /// Takes the facts before a time, or all, in the order in which they are played.
    fn take(partial: &mut DevicePartial, before: Option<i64>) -> Vec<Vec<Item>> {
        let mut taken = Vec::new();
        partial.runs.retain_mut(|run| {
            let count = match before {
                Some(before) => run.partition_point(|item| item.time < before),
                None => run.len(),
            };
            if count == 0 {
                return true;
            }
            if count == run.len() {
                taken.push(std::mem::take(run));
                return false;
            }
            let rest = run.split_off(count);
            taken.push(std::mem::replace(run, rest));
            true
        });
        taken.retain(|run| !run.is_empty());
        taken
    }

    fn play(&self, runs: Vec<Vec<Item>>, directory: Directory, spill: Option<&Spill>) -> Played {
        let mut slice = Slice::new(&self.rules, directory);
        slice.play(runs);
        slice.end(spill)
    }
}

impl DevicePartial {
    fn push(&mut self, record: &Record<'_>, fact: Fact) {
        if self.run.len() == BLOCK {
            let full = std::mem::replace(&mut self.run, Vec::with_capacity(BLOCK));
            self.runs.push(full);
        }
        self.run.push(Item {
            time: record.time.0,
            stream: record.number,
            fact,
        });
    }

    /// Adds to the directory what facts before a time contain.
    fn tell_until(&mut self, until: i64) {
        if self.told.is_empty() {
            return;
        }
        self.told.sort();
        let after = self.told.partition_point(|(time, ..)| *time < until);
        let directory = Arc::make_mut(&mut self.directory);
        for (_, queue, device) in self.told.drain(..after) {
            directory.insert(queue, device);
        }
    }

    /// The packets of a thread end: its open calls may end in a later chunk.
    fn flush(&mut self) {
        let calls = self.open.take();
        if let Some((thread, stream)) = self.thread.take() {
            self.opened.extend(calls.into_iter().map(|call| Item {
                time: call.begin,
                stream,
                fact: Fact::Enters(thread, call),
            }));
        }
    }
}

impl Analysis for DeviceAnalysis {
    type Partial = DevicePartial;
    type Report = Devices;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let is_read = |stream: &StreamRef| {
            let class = self.subjects.class(*stream);
            class.is_some_and(|class| self.rules.classes.reads(stream.trace as usize, class))
        };
        StreamRef::all(set)
            .filter(is_read)
            .map(|stream| vec![stream])
            .collect()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.rules.classes.get(trace, stream_class, class).is_some()
    }

    fn begin(&self, _: &Chunk) -> DevicePartial {
        DevicePartial::default()
    }

    fn packet(&self, partial: &mut DevicePartial, packet: &StreamPlace<'_>) {
        self.subjects.packet(&mut partial.packets, packet);
    }

    fn exchange(&self, partial: &mut DevicePartial, resident: &mut DevicePartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    #[inline]
    fn event(&self, partial: &mut DevicePartial, record: &mut Record<'_>) {
        let Some(stream_class) = self.subjects.class(record.stream) else {
            return;
        };
        let trace = record.stream.trace;
        let Some(class) = self
            .rules
            .classes
            .get(trace as usize, stream_class, record.class)
        else {
            return;
        };
        if self.rules.window.is_over(record.time.0) {
            return;
        }
        let process = self.process(partial, class, record);
        let of = |handle: u64| Handle { process, handle };
        let event = |record: &mut Record<'_>| of(class.number(Role::Event, record));
        let fact = match class.meaning {
            Meaning::Entry => return self.enters(partial, class, record),
            Meaning::Exit => return self.exits(partial, class, record),
            Meaning::Completed => {
                let times = [Role::Queued, Role::Submit, Role::Start, Role::End];
                let completed = Completed {
                    status: class.number(Role::Status, record) as i32,
                    is_profiled: class.number(Role::Profiled, record) as i32 == 0,
                    times: times.map(|role| class.number(role, record)),
                    kind: Times::Device,
                };
                Fact::Completed(event(record), completed)
            }
            Meaning::Kernel => Fact::Kernel(
                of(class.number(Role::Kernel, record)),
                class.text(Role::Name, record),
            ),
            Meaning::Queue => {
                let queue = of(class.queue(record));
                let device = class.number(Role::Device, record);
                partial.told.push((record.time.0, queue, of(device)));
                Fact::Queue(queue, device)
            }
            Meaning::Command(kind) => {
                Fact::Ran(event(record), Box::new(Ran::of(kind, class, record)))
            }
            Meaning::Profiles => return self.profiles(partial, class, record),
            Meaning::Cycles => match thapi::cycles(class, record) {
                Some(completed) => Fact::Completed(event(record), completed),
                None => return,
            },
            Meaning::Duration => match thapi::duration(class, record) {
                Some(completed) => Fact::Completed(event(record), completed),
                None => return,
            },
            Meaning::Properties => return self.describes(partial, class, record),
            Meaning::Clock => {
                let device = of(class.number(Role::Device, record));
                if let Ok(read) = i64::try_from(class.number(Role::Start, record)) {
                    let clock = partial.sums.readings.entry(device).or_default();
                    clock.sends(read, record.time.0);
                }
                return;
            }
            Meaning::Reading => Fact::Reading(
                of(class.number(Role::Device, record)),
                class.number(Role::Start, record),
            ),
            Meaning::DeviceName => Fact::DeviceName(
                of(class.number(Role::Device, record)),
                class.text(Role::Name, record),
            ),
            Meaning::Device => {
                let texts = [Role::Uuid, Role::Pci].map(|role| class.text(role, record));
                let properties = Properties {
                    platform: class.text(Role::Name, record),
                    parent: class.number(Role::Parent, record),
                    identity: texts.concat(),
                };
                let device = of(class.number(Role::Device, record));
                Fact::Device(device, Box::new(properties))
            }
        };
        partial.push(record, fact);
    }

    fn end(&self, partial: &mut DevicePartial, _: &Chunk) {
        partial.flush();
        let run = std::mem::take(&mut partial.run);
        let mut opened = std::mem::take(&mut partial.opened);
        opened.sort_by_key(Item::order);
        partial.runs.extend([run, opened]);
        partial.runs.retain(|run| !run.is_empty());
        partial.packets = Packets::default();
    }

    /// The later part has no state: only the state from the beginning of the trace is joined.
    fn merge(&self, earlier: &mut DevicePartial, later: DevicePartial) {
        earlier.runs.extend(later.runs);
        earlier.told.extend(later.told);
        earlier.sums.merge(later.sums);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut DevicePartial,
        watermark: Timestamp,
    ) -> Vec<tracebraid_engine::Slice<'a, DevicePartial>> {
        let taken = DeviceAnalysis::take(partial, Some(watermark.0));
        if taken.is_empty() {
            return Vec::new();
        }
        let directory = Arc::clone(&partial.directory);
        partial.tell_until(watermark.0);
        let is_crowded = partial.state.held() > self.most_held;
        let spill = is_crowded.then_some(&self.spill);
        vec![Box::new(move |_: &mut DevicePartial| {
            let played = self.play(taken, directory, spill);
            Box::new(move |partial: &mut DevicePartial| {
                partial.state.join(&self.rules, played, watermark.0);
            })
        })]
    }

    fn follow_up<'a>(
        &'a self,
        partial: &mut DevicePartial,
    ) -> Vec<tracebraid_engine::Slice<'a, DevicePartial>> {
        let sweep =
            |(device, piece): (Handle, Piece)| -> tracebraid_engine::Slice<'a, DevicePartial> {
                Box::new(move |_: &mut DevicePartial| {
                    let part = piece.play(self.rules.keeps != Keep::Nothing);
                    Box::new(move |partial: &mut DevicePartial| {
                        partial.state.join_line(device, part)
                    })
                })
            };
        partial.state.take_due().into_iter().map(sweep).collect()
    }

    fn finish(&self, mut partial: DevicePartial) -> Devices {
        let rest = DeviceAnalysis::take(&mut partial, None);
        let played = self.play(rest, Directory::default(), None);
        let mut state = partial.state;
        state.join(&self.rules, played, i64::MAX);
        state.release_all();
        let (devices, pieces): (Vec<_>, Vec<_>) = state.take_due().into_iter().unzip();
        let parts = parallel::map_large(pieces, |piece| {
            piece.play(self.rules.keeps != Keep::Nothing)
        });
        for (device, part) in devices.into_iter().zip(parts) {
            state.join_line(device, part);
        }
        state.sums.merge(partial.sums);
        Devices { state }
    }
}
