//! Event classes to typed events, with the ways to their fields.

use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::packet::PacketHead;
use tracebraid_ctf::schema::{Scope, TraceClass};
use tracebraid_ctf::trace::TraceSet;

use crate::comm::Comm;
use crate::field::{Body, IntField, TextField};
use crate::names::{Meaning, meaning};
use crate::numbers::Numbers;
use crate::syscall::{Argument, Syscall, SyscallSpec};

/// What is known of the kernel events of a trace set.
#[derive(Clone, Debug, Default)]
pub struct KernelModel {
    /// By trace.
    pub traces: Vec<TraceModel>,
}

/// What is known of one trace.
#[derive(Clone, Debug, Default)]
pub struct TraceModel {
    /// By stream class.
    pub streams: Vec<StreamModel>,
    /// Name of the machine, if the environment tells.
    pub host: Option<String>,
}

/// What is known of one stream class.
#[derive(Clone, Debug, Default)]
pub struct StreamModel {
    /// By event class: one more than its place among the models; 0 if it is nothing to the model.
    /// Few of a trace's thousand classes occur often: those lie close together.
    places: Vec<u16>,
    models: Vec<EventModel>,
}

/// An event class.
#[derive(Clone, Debug)]
pub struct EventModel {
    /// What it tells.
    pub event: KernelEvent,
    /// What comes with it, if anything does.
    pub context: Option<Box<Context>>,
}

/// Linux has less.
const MOST_CPUS: u32 = 1 << 14;

impl EventModel {
    fn context(&self, of: impl Fn(&Context) -> &Option<IntField>, body: &mut Body<'_, '_>) -> Option<i64> {
        of(self.context.as_ref()?).as_ref()?.get(body)
    }

    /// CPU that the context names; 0 if it does not. What no machine has is all one CPU.
    pub fn cpu(&self, body: &mut Body<'_, '_>) -> u32 {
        let cpu = self.context(|context| &context.cpu, body).unwrap_or(0);
        u32::try_from(cpu)
            .ok()
            .filter(|&cpu| cpu < MOST_CPUS)
            .unwrap_or(MOST_CPUS)
    }

    /// Thread that the context names.
    #[inline(always)]
    pub fn tid(&self, body: &mut Body<'_, '_>) -> Option<i32> {
        self.context(|context| &context.tid, body).map(|tid| tid as i32)
    }

    /// Process that the context names.
    #[inline(always)]
    pub fn pid(&self, body: &mut Body<'_, '_>) -> Option<i32> {
        self.context(|context| &context.pid, body).map(|pid| pid as i32)
    }

    /// Name of the thread that the context gives.
    pub fn name(&self, body: &mut Body<'_, '_>) -> Option<Comm> {
        self.context.as_ref()?.name.as_ref()?.comm(body)
    }

    /// True if the context names the thread.
    pub fn tells_thread(&self) -> bool {
        self.context.as_ref().is_some_and(|context| context.tid.is_some())
    }
}

/// Contexts of an event class: what the tracer adds about where an event happened.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// CPU.
    pub cpu: Option<IntField>,
    /// Thread.
    pub tid: Option<IntField>,
    /// Process.
    pub pid: Option<IntField>,
    /// Name of the thread.
    pub name: Option<TextField>,
}

impl Context {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.tid.is_none() && self.pid.is_none() && self.name.is_none()
    }
}

/// What an event tells.
#[derive(Clone, Debug)]
pub enum KernelEvent {
    /// A CPU goes from one thread to another.
    Switch(Switch),
    /// A thread is made.
    Fork(Fork),
    /// A process executes a program.
    Exec(Exec),
    /// A thread ends: its tid.
    ThreadExit(IntField),
    /// A thread takes another name: its tid and the name.
    Rename(IntField, TextField),
    /// State dump: a thread that is there.
    ProcessState(ProcessState),
    /// State dump: a descriptor that is open.
    StateFd(StateFd),
    /// A system call begins.
    Entry(SyscallEntry),
    /// A system call ends.
    Exit(SyscallExit),
}

/// A CPU goes from one thread to another.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Thread before.
    pub prev_tid: IntField,
    /// Thread after.
    pub next_tid: IntField,
    /// Its name.
    pub prev_name: Option<TextField>,
    /// Its name.
    pub next_name: Option<TextField>,
}

/// A thread is made.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Thread that makes it.
    pub parent_tid: Option<IntField>,
    /// Its process.
    pub parent_pid: Option<IntField>,
    /// The new thread.
    pub child_tid: IntField,
    /// Its process: its own tid for a new process. Not with every tracer.
    pub child_pid: Option<IntField>,
    /// Its name.
    pub child_name: Option<TextField>,
}

/// A process executes a program.
#[derive(Clone, Debug)]
pub struct Exec {
    /// The program's path.
    pub path: Option<TextField>,
    /// Thread: the process's first from now on.
    pub tid: Option<IntField>,
    /// Thread that called; another one than `tid` if it was not the process's first.
    pub old_tid: Option<IntField>,
}

/// A thread that is there.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// Thread.
    pub tid: IntField,
    /// Its process.
    pub pid: IntField,
    /// Its name.
    pub name: Option<TextField>,
    /// Address of its table of descriptors, which [`StateFd`]s then name.
    pub table: Option<IntField>,
}

/// A descriptor that is open.
#[derive(Clone, Debug)]
pub struct StateFd {
    /// Process, with tracers that give it.
    pub pid: Option<IntField>,
    /// Else the address of the table.
    pub table: Option<IntField>,
    /// The descriptor.
    pub fd: IntField,
    /// Flags as of `open`.
    pub flags: Option<IntField>,
    /// Path or kind.
    pub path: Option<TextField>,
}

/// A system call begins.
#[derive(Clone, Debug)]
pub struct SyscallEntry {
    which: Which,
    arguments: [Option<IntField>; 3],
    raw: Vec<IntField>,
}

/// A system call ends.
#[derive(Clone, Debug)]
pub struct SyscallExit {
    which: Option<Which>,
    /// What it gives.
    pub result: IntField,
    /// The descriptors that `pipe` and `socketpair` make.
    pub pair: Option<Box<PairField>>,
    /// Address family of the peer that `accept` gives.
    pub family: Option<IntField>,
}

/// Two descriptors.
#[derive(Clone, Debug)]
pub struct PairField(pub IntField, pub IntField);

#[derive(Clone, Debug)]
enum Which {
    Fixed(Syscall),
    Number(Box<(IntField, Numbers)>),
}

impl Which {
    #[inline(always)]
    fn get(&self, body: &mut Body<'_, '_>) -> Syscall {
        match self {
            Which::Fixed(call) => *call,
            Which::Number(number) => number.1.get(number.0.get(body).unwrap_or(-1)),
        }
    }
}

impl SyscallEntry {
    /// The call.
    #[inline(always)]
    pub fn call(&self, body: &mut Body<'_, '_>) -> Syscall {
        self.which.get(body)
    }

    /// The argument in that place of [`crate::Action`]'s description.
    #[inline(always)]
    pub fn argument(&self, call: Syscall, place: usize, body: &mut Body<'_, '_>) -> Option<i64> {
        match self.arguments.get(place) {
            Some(Some(field)) => field.get(body),
            _ if self.raw.is_empty() => None,
            _ => {
                let (_, position) = call.spec()?.arguments.get(place)?;
                self.raw.get(usize::from(*position))?.get(body)
            }
        }
    }

    /// The call, if it is always the same.
    pub fn fixed(&self) -> Option<Syscall> {
        match self.which {
            Which::Fixed(call) => Some(call),
            Which::Number(_) => None,
        }
    }
}

impl SyscallExit {
    /// The call; `None` for whatever call is open.
    #[inline(always)]
    pub fn call(&self, body: &mut Body<'_, '_>) -> Option<Syscall> {
        self.which.as_ref().map(|which| which.get(body))
    }

    /// The call, if it is always the same.
    pub fn fixed(&self) -> Option<Syscall> {
        match self.which {
            Some(Which::Fixed(call)) => Some(call),
            _ => None,
        }
    }
}

/// Where it stands on which CPU a stream's events happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuSource {
    /// All on this one.
    Packet(u32),
    /// A field of each event.
    Event,
    /// Nowhere.
    Unknown,
}

impl KernelModel {
    /// Resolves everything.
    pub fn new(set: &TraceSet) -> KernelModel {
        let traces = set
            .traces
            .iter()
            .map(|trace| TraceModel::new(&trace.layout.class, &trace.layout.streams));
        KernelModel {
            traces: traces.collect(),
        }
    }
}

impl TraceModel {
    fn new(class: &TraceClass, streams: &[StreamLayout]) -> TraceModel {
        let host = class.env_str("hostname").map(str::to_owned);
        // A user-space tracepoint may have any name.
        if class.env_str("domain").is_some_and(|domain| domain != "kernel") {
            return TraceModel {
                streams: Vec::new(),
                host,
            };
        }
        let numbers = Numbers::of_machine(class.env_str("machine"));
        let streams = streams
            .iter()
            .map(|layout| StreamModel::new(layout, &numbers))
            .collect();
        TraceModel { streams, host }
    }
}

impl StreamModel {
    fn new(layout: &StreamLayout, numbers: &Numbers) -> StreamModel {
        let meanings: Vec<_> = layout.events.iter().map(|event| meaning(&event.name)).collect();
        // Without exits that close any call, entries of calls outside the table say nothing.
        let any_exit = meanings.contains(&Some(Meaning::AnyExit));
        let mut stream = StreamModel {
            places: vec![0; meanings.len()],
            models: Vec::new(),
        };
        for ((event, meaning), place) in meanings.into_iter().enumerate().zip(&mut stream.places) {
            let Some(meaning) = meaning.filter(|&it| it != Meaning::Entry(Syscall::OTHER) || any_exit) else {
                continue;
            };
            let finder = Finder { layout, event };
            let Some(event) = finder.event(meaning, numbers) else {
                continue;
            };
            let context = Some(finder.context())
                .filter(|context| !context.is_empty())
                .map(Box::new);
            stream.models.push(EventModel { event, context });
            // More classes than that are no kernel's.
            *place = u16::try_from(stream.models.len()).unwrap_or(0);
        }
        stream
    }

    /// The event class of that index, if it is anything to the model.
    #[inline(always)]
    pub fn event(&self, class: usize) -> Option<&EventModel> {
        let place = usize::from(*self.places.get(class)?);
        self.models.get(place.wrapping_sub(1))
    }

    /// Number of event classes, modelled or not.
    pub fn classes(&self) -> usize {
        self.places.len()
    }

    /// All event classes that are something to the model.
    pub fn events(&self) -> &[EventModel] {
        &self.models
    }

    /// Where it stands on which CPU the events of a stream of this class happened; `head` is that
    /// of its first packet.
    pub fn cpu_source(&self, layout: &StreamLayout, head: &PacketHead) -> CpuSource {
        if let Some(cpu) = head
            .value(layout, "cpu_id")
            .and_then(|cpu| u32::try_from(cpu).ok())
        {
            return CpuSource::Packet(cpu);
        }
        let told = |event: &EventModel| {
            event
                .context
                .as_ref()
                .is_some_and(|context| context.cpu.is_some())
        };
        match !self.models.is_empty() && self.models.iter().all(told) {
            true => CpuSource::Event,
            false => CpuSource::Unknown,
        }
    }
}

/// Finds the fields of one event class.
struct Finder<'a> {
    layout: &'a StreamLayout,
    event: usize,
}

impl Finder<'_> {
    fn ints(&self, scope: Scope, names: &[&str]) -> Option<IntField> {
        self.find(scope, names, IntField::new)
    }

    fn int(&self, names: &[&str]) -> Option<IntField> {
        self.ints(Scope::Payload, names)
    }

    fn text(&self, names: &[&str]) -> Option<TextField> {
        self.find(Scope::Payload, names, TextField::new)
    }

    /// The first of those names that the event has and that is what is wanted; writers of CTF 1.8
    /// escape names by underscores, of which the schema takes away one.
    fn find<T>(
        &self,
        scope: Scope,
        names: &[&str],
        make: impl Fn(tracebraid_ctf::layout::FieldRef) -> Option<T>,
    ) -> Option<T> {
        names.iter().find_map(|name| {
            let escaped = format!("_{name}");
            let found = |name: &str| self.layout.field(self.event, scope, &[name]).and_then(&make);
            found(name).or_else(|| found(&escaped))
        })
    }

    fn element(&self, name: &str, index: &str) -> Option<IntField> {
        self.layout
            .field(self.event, Scope::Payload, &[name, index])
            .and_then(IntField::new)
    }

    fn context(&self) -> Context {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        let int = |names: &[&str]| scopes.iter().find_map(|scope| self.ints(*scope, names));
        Context {
            cpu: int(&["cpu_id", "perf_cpu", "cpu"]).or_else(|| self.int(&["common_cpu"])),
            tid: int(&["tid", "perf_tid"]).or_else(|| self.int(&["common_pid"])),
            pid: int(&["pid", "perf_pid"]),
            name: scopes
                .iter()
                .find_map(|scope| self.find(*scope, &["procname"], TextField::new)),
        }
    }

    fn event(&self, meaning: Meaning, numbers: &Numbers) -> Option<KernelEvent> {
        Some(match meaning {
            Meaning::Switch => KernelEvent::Switch(Switch {
                prev_tid: self.int(&["prev_tid", "prev_pid"])?,
                next_tid: self.int(&["next_tid", "next_pid"])?,
                prev_name: self.text(&["prev_comm"]),
                next_name: self.text(&["next_comm"]),
            }),
            Meaning::Fork => KernelEvent::Fork(self.fork()?),
            Meaning::Exec => KernelEvent::Exec(Exec {
                path: self.text(&["filename"]),
                tid: self.int(&["tid", "pid"]),
                old_tid: self.int(&["old_tid", "old_pid"]),
            }),
            Meaning::ThreadExit => KernelEvent::ThreadExit(self.int(&["tid", "pid"])?),
            Meaning::Rename => {
                KernelEvent::Rename(self.int(&["tid", "pid"])?, self.text(&["newcomm", "new_comm"])?)
            }
            Meaning::ProcessState => KernelEvent::ProcessState(ProcessState {
                tid: self.int(&["tid"])?,
                pid: self.int(&["pid"])?,
                name: self.text(&["name"]),
                table: self.int(&["file_table_address"]),
            }),
            Meaning::FileDescriptor => KernelEvent::StateFd(StateFd {
                pid: self.int(&["pid"]),
                table: self.int(&["file_table_address"]),
                fd: self.int(&["fd"])?,
                flags: self.int(&["flags"]),
                path: self.text(&["filename"]),
            }),
            Meaning::Entry(call) => KernelEvent::Entry(self.entry(call)),
            Meaning::RawEntry => {
                let raw = ["0", "1", "2", "3", "4", "5"]
                    .iter()
                    .map_while(|index| self.element("args", index));
                let number = self.int(&["id", "nr"])?;
                let which = Which::Number(Box::new((number, numbers.clone())));
                KernelEvent::Entry(SyscallEntry {
                    which,
                    arguments: [None, None, None],
                    raw: raw.collect(),
                })
            }
            Meaning::Exit(call) => KernelEvent::Exit(self.exit(Some(Which::Fixed(call)))?),
            Meaning::AnyExit => KernelEvent::Exit(self.exit(None)?),
            Meaning::RawExit => {
                let number = Box::new((self.int(&["id", "nr"])?, numbers.clone()));
                KernelEvent::Exit(self.exit(Some(Which::Number(number)))?)
            }
        })
    }

    /// LTTng calls a thread `tid` and a process `pid`; ftrace calls a thread `pid`.
    fn fork(&self) -> Option<Fork> {
        let lttng = self.int(&["child_tid"]).is_some();
        Some(Fork {
            parent_tid: if lttng {
                self.int(&["parent_tid"])
            } else {
                self.int(&["parent_pid"])
            },
            parent_pid: if lttng { self.int(&["parent_pid"]) } else { None },
            child_tid: if lttng {
                self.int(&["child_tid"])?
            } else {
                self.int(&["child_pid"])?
            },
            child_pid: if lttng { self.int(&["child_pid"]) } else { None },
            child_name: self.text(&["child_comm"]),
        })
    }

    fn entry(&self, call: Syscall) -> SyscallEntry {
        let arguments: &[Argument] = call
            .spec()
            .map_or(&[], |spec: &'static SyscallSpec| spec.arguments);
        let field = |place: usize| arguments.get(place).and_then(|(names, _)| self.int(names));
        SyscallEntry {
            which: Which::Fixed(call),
            arguments: [field(0), field(1), field(2)],
            raw: Vec::new(),
        }
    }

    fn exit(&self, which: Option<Which>) -> Option<SyscallExit> {
        let pair = ["fildes", "socket", "usockvec"].iter().find_map(|name| {
            Some(Box::new(PairField(
                self.element(name, "0")?,
                self.element(name, "1")?,
            )))
        });
        Some(SyscallExit {
            which,
            result: self.int(&["ret"])?,
            pair,
            family: self.int(&["family"]),
        })
    }
}
