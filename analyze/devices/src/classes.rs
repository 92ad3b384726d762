//! Meaning of event classes, and the locations of their fields.

use std::collections::BTreeMap;

use tracebraid_ctf::layout::node::NodeKind;
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::Record;
use tracebraid_language::ClassField;
use tracebraid_language::ast::Field;

use crate::cuda::{self, Api};
use crate::early::MayBeEarly;
use crate::kind::Kind;
use crate::thapi::{self, Effect};

/// Meaning of an event class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Begin of a call.
    Entry,
    /// End of a call.
    Exit,
    /// Times of a complete command.
    Completed,
    /// Name of a kernel.
    Kernel,
    /// Device of a queue.
    Queue,
    /// Name of a device.
    DeviceName,
    /// Platform of a device.
    Device,
    /// A complete command with all facts about it, of this kind unless a field has the kind.
    Command(Kind),
    /// The event that times the command of the open call.
    Profiles,
    /// Start and end of a complete command in cycles.
    Cycles,
    /// Duration of a complete command.
    Duration,
    /// Properties of a device.
    Properties,
    /// A reading of the timer of a device of Level Zero.
    Reading,
    /// A reading of the clock of a device.
    Clock,
}

/// Fields of event classes that are read.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Role {
    Queue,
    Kernel,
    Device,
    Bytes,
    Region,
    Items,
    Status,
    Event,
    Queued,
    Submit,
    Start,
    End,
    /// Status of the time of the end, which is that of all four.
    Profiled,
    Name,
    /// Events that a command waits for.
    Waits,
    /// The device of which a device is a part.
    Parent,
    /// UUID of a device, and its address on the bus.
    Uuid,
    Pci,
    /// Number of the context, of which a queue has its number.
    Context,
    /// Direction of a copy of CUDA.
    CopyKind,
    /// Description of a copy of CUDA in several dimensions.
    Copied,
}

const ROLES: usize = Role::Copied as usize + 1;

/// An event class with a meaning.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) meaning: Meaning,
    /// Index of the function among [`Classes::functions`], of entries and exits.
    pub(crate) function: u32,
    fields: [Option<FieldRef>; ROLES],
    /// Numbers whose product is the number of work items.
    sizes: Box<[FieldRef]>,
    tid: Option<ClassField>,
    pid: Option<ClassField>,
}

/// The event classes with a meaning.
#[derive(Debug)]
pub(crate) struct Classes {
    classes: Vec<Class>,
    /// By trace, stream class and event class: 1 + index in `classes`, or 0.
    places: Vec<Vec<Vec<u32>>>,
    /// Names of functions.
    functions: Vec<Function>,
    /// By kind: a function that stands for commands with all facts in one record.
    commands: BTreeMap<Kind, u32>,
    /// Commands of OpenCL are known from a record within their call.
    has_thapi: bool,
    /// By trace and stream class: whether all event records of a packet are of one thread.
    of_thread: Vec<Vec<bool>>,
}

/// A function of the API.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Kind of its commands.
    pub(crate) kind: Option<Kind>,
    pub(crate) creates_queue: bool,
    /// Some calls of it wait for commands.
    pub(crate) may_wait: bool,
    /// Regions in its arguments are in pixels, of unknown size.
    pub(crate) has_pixels: bool,
    /// Completes an event of the program, by which commands may wait for the host.
    pub(crate) signals: bool,
    pub(crate) api: Api,
    /// True if commands may have the number of its calls.
    pub(crate) launches: bool,
    pub(crate) effect: Effect,
}

impl Classes {
    pub(crate) fn new(set: &TraceSet) -> Classes {
        let mut found = Classes {
            classes: Vec::new(),
            places: Vec::new(),
            functions: Vec::new(),
            commands: BTreeMap::new(),
            has_thapi: false,
            of_thread: Vec::new(),
        };
        for trace in &set.traces {
            let streams = trace.layout.streams.iter();
            let is_thapi = has_events_of_thapi(trace);
            found.has_thapi |= is_thapi;
            let places = streams
                .clone()
                .map(|stream| found.stream((trace, is_thapi), stream));
            let places = places.collect();
            found.places.push(places);
            let of_thread = streams.map(|stream| stream.packet_context_member("tid").is_some());
            found.of_thread.push(of_thread.collect());
        }
        found
    }

    fn stream(&mut self, (trace, is_thapi): (&Trace, bool), stream: &StreamLayout) -> Vec<u32> {
        let place = |event: usize| {
            let name = &stream.events[event].name;
            let Some((meaning, api, function)) = meaning(name) else {
                return 0;
            };
            if name == PROFILES && !is_thapi {
                return 0;
            }
            let function = self.function(api, function);
            if let Meaning::Command(_) = meaning {
                self.add_commands();
            }
            let mut class = Class::new((trace, stream, event), meaning, function);
            if is_thapi && meaning == Meaning::Exit {
                // Known from a record within the call, also where the program wants no event.
                class.fields[Role::Event as usize] = None;
            }
            self.classes.push(class);
            self.classes.len() as u32
        };
        (0..stream.events.len()).map(place).collect()
    }

    /// Adds functions that stand for commands of each kind.
    fn add_commands(&mut self) {
        for kind in Kind::ALL {
            let next = self.functions.len() as u32;
            if *self.commands.entry(kind).or_insert(next) == next {
                self.functions.push(Function {
                    name: String::new(),
                    kind: Some(kind),
                    creates_queue: false,
                    may_wait: false,
                    has_pixels: false,
                    signals: false,
                    api: Api::OPENCL,
                    launches: false,
                    effect: Effect::None,
                });
            }
        }
    }

    /// Which completions may be recorded before their commands are known.
    pub(crate) fn may_be_early(&self) -> MayBeEarly {
        MayBeEarly::new(self.has_thapi)
    }

    /// True if traces may have commands with all facts in one record.
    pub(crate) fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// The function that stands for commands of a kind.
    pub(crate) fn command(&self, kind: Kind) -> u32 {
        self.commands.get(&kind).copied().unwrap_or(0)
    }

    fn function(&mut self, api: Api, name: &str) -> u32 {
        let known = self
            .functions
            .iter()
            .position(|of| of.name == name && of.api == api);
        let place = known.unwrap_or_else(|| {
            self.functions.push(Function {
                name: name.to_owned(),
                kind: Kind::of_function(name).or_else(|| thapi::kind(api, name)),
                creates_queue: name.starts_with("clCreateCommandQueue"),
                may_wait: crate::kind::may_wait(name),
                has_pixels: name.contains("Image"),
                signals: ["clSetUserEventStatus", "zeEventHostSignal"].contains(&name),
                api,
                launches: api.launches(name),
                effect: thapi::effect(name),
            });
            self.functions.len() - 1
        });
        place as u32
    }

    /// The class with indexes of trace, stream class and event class, if it has a meaning.
    #[inline]
    pub(crate) fn get(&self, trace: usize, stream: usize, class: usize) -> Option<&Class> {
        let place = *self.places.get(trace)?.get(stream)?.get(class)?;
        self.classes.get((place as usize).checked_sub(1)?)
    }

    /// True if a stream class has event records with a meaning.
    pub(crate) fn reads(&self, trace: usize, stream: usize) -> bool {
        let classes = self.places.get(trace).and_then(|of| of.get(stream));
        classes.is_some_and(|classes| classes.iter().any(|place| *place > 0))
    }

    /// True if the packets of a stream class are of one thread each.
    pub(crate) fn is_of_thread(&self, trace: usize, stream: usize) -> bool {
        let of_trace = self.of_thread.get(trace);
        of_trace
            .and_then(|of| of.get(stream))
            .copied()
            .unwrap_or(false)
    }

    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }
}

/// The event class by which THAPI records the event that times a command of OpenCL, within its call.
/// tracebraid records that an event cannot time its command.
const PROFILES: &str = "lttng_ust_opencl_profiling:event_profiling";

/// True if a trace has [`PROFILES`] of THAPI.
fn has_events_of_thapi(trace: &Trace) -> bool {
    let streams = trace.layout.streams.iter();
    let names = streams.flat_map(|stream| stream.events.iter().map(|event| &event.name));
    let (mut has_events, mut is_ours) = (false, false);
    for name in names {
        has_events |= **name == *PROFILES;
        is_ours |= name.starts_with("tracebraid_opencl:");
    }
    has_events && !is_ours
}

/// Meaning of an event class, with API and name of its function.
fn meaning(name: &str) -> Option<(Meaning, Api, &str)> {
    if let Some(found) = cuda::meaning(name) {
        return Some(found);
    }
    if let Some(found) = thapi::meaning(name) {
        return Some((found, Api::OPENCL, ""));
    }
    let meaning = match name {
        "lttng_ust_opencl_profiling:event_profiling_results" => Meaning::Completed,
        "lttng_ust_opencl_arguments:kernel_info" => Meaning::Kernel,
        "lttng_ust_opencl_devices:device_name" => Meaning::DeviceName,
        "lttng_ust_opencl_devices:device_timer" => Meaning::Clock,
        "tracebraid_opencl:queue" => Meaning::Queue,
        "tracebraid_opencl:device" => Meaning::Device,
        _ => return None,
    };
    Some((meaning, Api::OPENCL, ""))
}

impl Class {
    fn new(
        (trace, stream, event): (&Trace, &StreamLayout, usize),
        meaning: Meaning,
        function: u32,
    ) -> Class {
        let mut fields = [const { None }; ROLES];
        let mut set = |role: Role, names: &[&str]| {
            let found = names
                .iter()
                .find_map(|name| stream.field(event, Scope::Payload, &[name]));
            fields[role as usize] = found;
        };
        match meaning {
            Meaning::Entry => {
                set(
                    Role::Queue,
                    &["command_queue", "queue", "hCommandList", "hStream"],
                );
                set(Role::Kernel, &["kernel", "hKernel", "f"]);
                set(Role::Device, &["device", "hDevice"]);
                set(Role::Bytes, &["size", "cb", "ByteCount"]);
                set(Role::Copied, &["pCopy_val"]);
                set(Role::Region, &["region_vals"]);
                set(Role::Items, &["global_work_size_vals"]);
                set(Role::Event, &["event", "correlation", "hEvent"]);
                set(
                    Role::Waits,
                    &["event_wait_list_vals", "phCommandLists_vals"],
                );
                set(Role::Name, &["desc__pKernelName_val", "name_val"]);
            }
            Meaning::Exit => {
                set(Role::Status, &cuda::RESULTS);
                set(Role::Event, &["event_val"]);
                set(Role::Queue, &["command_queue", "phCommandList_val"]);
                set(Role::Kernel, &["phKernel_val", "hfunc_val", "pKernel_val"]);
            }
            Meaning::Completed => {
                set(Role::Event, &["event"]);
                set(Role::Status, &["event_command_exec_status"]);
                set(Role::Queued, &["queued"]);
                set(Role::Submit, &["submit"]);
                set(Role::Start, &["start"]);
                set(Role::End, &["end"]);
                set(Role::Profiled, &["end_status"]);
            }
            Meaning::Kernel => {
                set(Role::Kernel, &["kernel"]);
                set(Role::Name, &["function_name", "name"]);
            }
            Meaning::Queue => {
                set(Role::Queue, &["queue", "stream"]);
                set(Role::Device, &["device"]);
                // Only streams of CUDA have numbers in their context.
                if stream.field(event, Scope::Payload, &["stream"]).is_some() {
                    set(Role::Context, &["context"]);
                }
            }
            Meaning::Command(_) => {
                for (role, name) in cuda::FIELDS {
                    set(role, &[name]);
                }
            }
            Meaning::DeviceName => {
                set(Role::Device, &["device"]);
                set(Role::Name, &["name"]);
            }
            Meaning::Clock => {
                set(Role::Device, &["device"]);
                set(Role::Start, &["device_timestamp"]);
            }
            Meaning::Device => {
                set(Role::Device, &["device"]);
                set(Role::Name, &["platform_name"]);
                set(Role::Parent, &["parent"]);
                set(Role::Uuid, &["uuid"]);
                set(Role::Pci, &["pci"]);
            }
            _ => {
                for (role, names) in thapi::fields(meaning) {
                    set(*role, names);
                }
            }
        }
        let sizes = thapi::SIZES.iter().filter(|_| meaning == Meaning::Entry);
        let sizes = sizes.filter_map(|name| stream.field(event, Scope::Payload, &[name]));
        Class {
            meaning,
            function,
            fields,
            sizes: sizes.collect(),
            tid: ClassField::new(&Field::Tid, trace, stream, event),
            pid: ClassField::new(&Field::Pid, trace, stream, event),
        }
    }

    /// Value of an integer field; 0 without it.
    #[inline]
    pub(crate) fn number(&self, role: Role, record: &mut Record<'_>) -> u64 {
        match &self.fields[role as usize] {
            Some(field) => field.integer(record.body, record.slots).unwrap_or(0),
            None => 0,
        }
    }

    /// Value of a floating-point number; 0 without it.
    pub(crate) fn float(&self, role: Role, record: &mut Record<'_>) -> f64 {
        let field = self.fields[role as usize].as_ref();
        field.map_or(0.0, |field| {
            field.float(record.body, record.slots).unwrap_or(0.0)
        })
    }

    /// Work items of a kernel: 0 without sizes.
    pub(crate) fn items(&self, record: &mut Record<'_>) -> u64 {
        let sizes = self.sizes.iter();
        let sizes = sizes.map(|field| field.integer(record.body, record.slots).unwrap_or(0));
        let of_sizes = sizes.reduce(u64::saturating_mul);
        of_sizes.unwrap_or_else(|| self.product(Role::Items, record))
    }

    /// Handle of a queue. Those of CUDA have a number in their context.
    pub(crate) fn queue(&self, record: &mut Record<'_>) -> u64 {
        let queue = self.number(Role::Queue, record);
        self.number(Role::Context, record) << 32 | queue
    }

    /// Elements of an array of integers.
    fn elements<'r>(
        &self,
        role: Role,
        record: &'r mut Record<'_>,
    ) -> impl Iterator<Item = u64> + use<'r> {
        let field = self.fields[role as usize].as_ref();
        let read = match field.and_then(FieldRef::element) {
            Some(NodeKind::Int(read, _)) => Some((usize::from(read.length / 8), read.big)),
            _ => None,
        };
        let (size, is_big) = read.unwrap_or((1, false));
        let field = field.filter(|_| read.is_some());
        let bytes = field.and_then(|field| field.bytes(record.body, record.slots).ok());
        let number = move |bytes: &[u8]| {
            let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            match is_big {
                true => bytes.iter().fold(0, add),
                false => bytes.iter().rev().fold(0, add),
            }
        };
        let numbers = bytes.unwrap_or_default().chunks_exact(size.max(1));
        numbers.map(number)
    }

    /// Product of the elements of an array; 0 without elements.
    pub(crate) fn product(&self, role: Role, record: &mut Record<'_>) -> u64 {
        let product = self.elements(role, record).reduce(u64::saturating_mul);
        product.unwrap_or(0)
    }

    /// The elements of an array.
    pub(crate) fn list(&self, role: Role, record: &mut Record<'_>) -> Box<[u64]> {
        self.elements(role, record).collect()
    }

    /// A text; empty without it.
    pub(crate) fn text(&self, role: Role, record: &mut Record<'_>) -> String {
        let Some(field) = &self.fields[role as usize] else {
            return String::new();
        };
        let bytes = field.bytes(record.body, record.slots).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// A structure as bytes; empty without it.
    pub(crate) fn structure<'r>(&self, role: Role, record: &'r mut Record<'_>) -> &'r [u8] {
        let field = self.fields[role as usize].as_ref();
        let bytes = field.and_then(|field| field.raw_bytes(record.body, record.slots).ok());
        bytes.unwrap_or_default()
    }

    pub(crate) fn has(&self, role: Role) -> bool {
        self.fields[role as usize].is_some()
    }

    pub(crate) fn tid(&self) -> Option<&ClassField> {
        self.tid.as_ref()
    }

    pub(crate) fn pid(&self) -> Option<&ClassField> {
        self.pid.as_ref()
    }
}
