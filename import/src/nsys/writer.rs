//! The traces: one for each process, with the classes that `tracebraid record --gpu` writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::schema::build::{Align, Fields, clock, event, identified};
use tracebraid_ctf::schema::{
    ByteOrder, ClockIndex, ClockOrigin, EnvValue, Scope, TraceClass, Uuid,
};
use tracebraid_ctf::write::fields::Fields as Values;
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::stream::StreamWriter;
use tracebraid_ctf::write::trace::{Options, Session, StreamFiles, TraceWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use super::database::Database;
use super::rows::{Kind, Row};
use crate::error::ImportError;
use crate::output::{payload, sound};
use crate::summary::Summary;

/// Bits of a thread's id in a global id, and of a process's id above it.
const ID_BITS: u32 = 24;

/// Limit for the number of processes: each has files of its own.
const MOST_PROCESSES: usize = 1024;

/// Nanoseconds added to times of devices if the time of day is unknown: 0 would be no time.
const SOMETIME: i64 = 1_000_000_000;

/// The traces while they are written.
pub(super) struct Writer<'a> {
    database: &'a Database,
    session: &'a Session,
    uuid: Uuid,
    /// Nanoseconds from the Epoch to the begin of the session, if known.
    epoch: Option<i64>,
    hostname: String,
    /// Time of the first row.
    begin: Option<i64>,
    /// By global id without the thread.
    processes: BTreeMap<i64, Process>,
    strings: HashMap<i64, String>,
    /// Rows of processes beyond the limit, and rows with invalid values.
    left_out: [u64; 2],
}

struct Process {
    trace: TraceWriter,
    stream: StreamWriter<StreamFiles>,
    pid: i64,
    classes: HashMap<String, Arc<EventPlan>>,
    devices: BTreeSet<i64>,
    streams: BTreeSet<(i64, i64)>,
    kernels: BTreeSet<i64>,
}

/// Fields of an event class.
type Layout = fn(Fields) -> Fields;

/// API of a function: its event classes and the name of its result.
fn api(function: &str) -> (&'static str, &'static str) {
    match function.starts_with("cuda") {
        true => ("lttng_ust_cudart", "cudaResult"),
        false => ("lttng_ust_cuda", "cuResult"),
    }
}

/// A function without the version of CUDA that is part of its name: `cudaLaunchKernel_v7000`.
fn unversioned(function: &str) -> &str {
    match function.rsplit_once("_v") {
        Some((name, version))
            if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => function,
    }
}

fn kernel(fields: Fields) -> Fields {
    let times = ["queued", "submit", "start", "end"];
    let fields = places(fields.uint("correlation", 32).hex("kernel", 64));
    let fields = times
        .iter()
        .fold(fields, |fields, time| fields.uint(time, 64));
    let fields = fields.sequence("grid_vals", 32, |element| element.uint("", 32));
    fields.sequence("block_vals", 32, |element| element.uint("", 32))
}

fn places(fields: Fields) -> Fields {
    let names = ["device", "context", "stream"];
    names
        .iter()
        .fold(fields, |fields, name| fields.uint(name, 32))
}

fn memcpy(fields: Fields) -> Fields {
    let fields = fields.uint("correlation", 32).uint("copy_kind", 8);
    let names = ["bytes", "start", "end"];
    names
        .iter()
        .fold(places(fields), |fields, name| fields.uint(name, 64))
}

fn memset(fields: Fields) -> Fields {
    let fields = places(fields.uint("correlation", 32)).uint("value", 32);
    let names = ["bytes", "start", "end"];
    names
        .iter()
        .fold(fields, |fields, name| fields.uint(name, 64))
}

impl<'a> Writer<'a> {
    pub(super) fn new(database: &'a Database, session: &'a Session, uuid: Uuid) -> Writer<'a> {
        let first = |table: &str, column: &str, rest: &str| {
            let query = format!("SELECT {column} FROM {table} {rest} LIMIT 1");
            database.has_column(table, column).then_some(query)
        };
        let epoch = first("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "");
        let epoch = epoch.and_then(|query| database.first_integer(&query).ok()?);
        let hostname = first("TARGET_INFO_SYSTEM_ENV", "value", "WHERE name = 'Hostname'");
        let hostname = hostname.filter(|_| database.has_column("TARGET_INFO_SYSTEM_ENV", "name"));
        let hostname = hostname.and_then(|query| database.first(&query).ok());
        Writer {
            database,
            session,
            uuid,
            epoch: epoch.filter(|epoch| *epoch > 0),
            hostname: hostname.unwrap_or_default(),
            begin: None,
            processes: BTreeMap::new(),
            strings: HashMap::new(),
            left_out: [0; 2],
        }
    }

    /// Writes a row; rows come in the order of time.
    pub(super) fn write(&mut self, row: &Row, summary: &mut Summary) -> Result<(), ImportError> {
        self.begin.get_or_insert(row.time);
        let global = row.get("global");
        let key = global >> ID_BITS;
        if !self.processes.contains_key(&key) {
            if self.processes.len() >= MOST_PROCESSES {
                self.left_out[0] += 1;
                return Ok(());
            }
            let process = self.process(key)?;
            self.processes.insert(key, process);
        }
        match row.kind {
            Kind::Entry | Kind::Exit => self.call(row, key, summary),
            _ => self.command(row, key, summary),
        }
    }

    /// Nanoseconds from the first row, in the clock of the traces.
    fn since(&self, time: i64) -> u64 {
        let since = time.saturating_sub(self.begin.unwrap_or(0));
        u64::try_from(since).unwrap_or(0)
    }

    /// A time of a device: that of the session's clock from the Epoch.
    fn device_time(&self, time: i64) -> u64 {
        let begin = self.epoch.map_or(SOMETIME, |epoch| {
            epoch.saturating_add(self.begin.unwrap_or(0)).max(SOMETIME)
        });
        let since = time.saturating_sub(self.begin.unwrap_or(0));
        u64::try_from(begin.saturating_add(since)).unwrap_or(0)
    }

    fn string(&mut self, id: i64) -> Result<String, ImportError> {
        if let Some(known) = self.strings.get(&id) {
            return Ok(known.clone());
        }
        let string = self.database.string(id)?;
        self.strings.insert(id, string.clone());
        Ok(string)
    }

    fn call(&mut self, row: &Row, key: i64, summary: &mut Summary) -> Result<(), ImportError> {
        let function = self.string(row.get("name"))?;
        let function = match unversioned(&function) {
            "" => "unknown",
            function => function,
        };
        let (provider, result) = api(function);
        let is_entry = row.kind == Kind::Entry;
        let side = if is_entry { "entry" } else { "exit" };
        let name = format!("{provider}:{function}_{side}");
        let layout = |fields: Fields| match is_entry {
            true => fields.uint("correlation", 32),
            false => fields.int(result, 32).uint("correlation", 32),
        };
        let tid = row.get("global") & ((1 << ID_BITS) - 1);
        let correlation = row.get("correlationId") as u32;
        self.record(key, (&name, &layout), (row.time, tid), summary, |fields| {
            if !is_entry {
                fields.int(i64::from(row.get("returnValue") as i32));
            }
            fields.uint(u64::from(correlation));
        })
    }

    fn command(&mut self, row: &Row, key: i64, summary: &mut Summary) -> Result<(), ImportError> {
        self.introduce(row, key, summary)?;
        let (name, layout): (&str, Layout) = match row.kind {
            Kind::Kernel => ("tracebraid_cuda:kernel", kernel),
            Kind::Memcpy => ("tracebraid_cuda:memcpy", memcpy),
            _ => ("tracebraid_cuda:memset", memset),
        };
        let number = |column: &str| u64::from(row.get(column) as u32);
        let [start, end] = ["start", "end"].map(|column| self.device_time(row.get(column)));
        let place = (row.time, self.processes.get(&key).map_or(0, |of| of.pid));
        self.record(key, (name, &layout), place, summary, |fields| {
            fields.uint(number("correlationId"));
            match row.kind {
                Kind::Kernel => {
                    fields.uint(kernel_number(row));
                }
                Kind::Memcpy => {
                    fields.uint(number("copyKind") & 0xff);
                }
                _ => {}
            }
            for column in ["deviceId", "contextId", "streamId"] {
                fields.uint(number(column));
            }
            if row.kind == Kind::Kernel {
                fields.uint(0).uint(0).uint(start).uint(end);
                for sizes in [["gridX", "gridY", "gridZ"], ["blockX", "blockY", "blockZ"]] {
                    fields.uint(3);
                    sizes.iter().for_each(|size| {
                        fields.uint(number(size));
                    });
                }
                return;
            }
            if row.kind == Kind::Memset {
                fields.uint(number("value"));
            }
            let bytes = u64::try_from(row.get("bytes")).unwrap_or(0);
            fields.uint(bytes).uint(start).uint(end);
        })
    }

    /// Records what a command refers to before its first use.
    fn introduce(&mut self, row: &Row, key: i64, summary: &mut Summary) -> Result<(), ImportError> {
        let [device, context, stream] =
            ["deviceId", "contextId", "streamId"].map(|column| row.get(column));
        let Some(process) = self.processes.get_mut(&key) else {
            return Ok(());
        };
        let place = (row.time, process.pid);
        let is_new_device = process.devices.insert(device);
        let is_new_stream = process.streams.insert((context, stream));
        let is_new_kernel = row.kind == Kind::Kernel && process.kernels.insert(row.get("name"));
        if is_new_device {
            let name = self.device_name(device, place.1)?;
            let layout = |fields: Fields| fields.uint("device", 32).string("name");
            let class: (&str, &dyn Fn(Fields) -> Fields) = ("tracebraid_cuda:device", &layout);
            self.record(key, class, place, summary, |fields| {
                fields.uint(u64::from(device as u32)).string(&name);
            })?;
        }
        if is_new_stream {
            let layout = |fields: Fields| {
                let names = ["context", "stream", "device"];
                names
                    .iter()
                    .fold(fields, |fields, name| fields.uint(name, 32))
            };
            let class: (&str, &dyn Fn(Fields) -> Fields) = ("tracebraid_cuda:stream", &layout);
            self.record(key, class, place, summary, |fields| {
                for number in [context, stream, device] {
                    fields.uint(u64::from(number as u32));
                }
            })?;
        }
        if is_new_kernel {
            let name = self.string(row.get("name"))?;
            let layout = |fields: Fields| fields.hex("kernel", 64).string("name");
            let class: (&str, &dyn Fn(Fields) -> Fields) = ("tracebraid_cuda:kernel_name", &layout);
            self.record(key, class, place, summary, |fields| {
                fields.uint(kernel_number(row)).string(&name);
            })?;
        }
        Ok(())
    }

    /// Name of a device of a process, by CUDA's number of it.
    fn device_name(&self, device: i64, pid: i64) -> Result<String, ImportError> {
        let database = self.database;
        if !database.has_columns("TARGET_INFO_GPU", &["id", "name"]) {
            return Ok(String::new());
        }
        let mut id = device;
        let of_cuda = "TARGET_INFO_CUDA_DEVICE";
        if database.has_columns(of_cuda, &["gpuId", "cudaId", "pid"]) {
            let query = format!(
                "SELECT gpuId FROM {of_cuda} WHERE cudaId = {device} ORDER BY pid = {pid} DESC LIMIT 1"
            );
            id = database.first_integer(&query)?.unwrap_or(id);
        }
        database.first(&format!(
            "SELECT name FROM TARGET_INFO_GPU WHERE id = {id} LIMIT 1"
        ))
    }

    fn record(
        &mut self,
        key: i64,
        (name, layout): (&str, &dyn Fn(Fields) -> Fields),
        (time, tid): (i64, i64),
        summary: &mut Summary,
        mut give: impl FnMut(&mut Values<'_>),
    ) -> Result<(), ImportError> {
        let time = self.since(time);
        let Some(process) = self.processes.get_mut(&key) else {
            return Ok(());
        };
        let Some(class) = process.class(name, layout)? else {
            self.left_out[1] += 1;
            return Ok(());
        };
        let written = process.stream.record(&class, time, |fields| {
            fields.int(tid);
            give(fields);
        });
        match written {
            Ok(()) => summary.event(name),
            Err(WriteError::Field { .. } | WriteError::EventTooLarge { .. }) => {
                self.left_out[1] += 1;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn process(&self, key: i64) -> Result<Process, ImportError> {
        let pid = key & ((1 << ID_BITS) - 1);
        let name = self.process_name(key, pid)?;
        let below = format!("cuda-{pid}-{:x}", key >> ID_BITS);
        let class = self.schema(pid, &name);
        let mut trace = self
            .session
            .trace(Path::new(&below), &class, Options::default())?;
        let stream = trace.stream(0, "channel0_0", 0, &[])?;
        Ok(Process {
            trace,
            stream,
            pid,
            classes: HashMap::new(),
            devices: BTreeSet::new(),
            streams: BTreeSet::new(),
            kernels: BTreeSet::new(),
        })
    }

    /// Name of a process, or of its first thread.
    fn process_name(&self, key: i64, pid: i64) -> Result<String, ImportError> {
        let global = key << ID_BITS;
        if self
            .database
            .has_columns("PROCESSES", &["globalPid", "name"])
        {
            let query = format!("SELECT name FROM PROCESSES WHERE globalPid = {global} LIMIT 1");
            let name = self.database.first(&query)?;
            if !name.is_empty() {
                return Ok(name);
            }
        }
        let columns = ["nameId", "globalTid"];
        if !self.database.has_columns("ThreadNames", &columns) {
            return Ok(String::new());
        }
        let thread = global | pid;
        let query = format!("SELECT nameId FROM ThreadNames WHERE globalTid = {thread} LIMIT 1");
        match self.database.first_integer(&query)? {
            Some(id) => self.database.string(id),
            None => Ok(String::new()),
        }
    }

    fn schema(&self, pid: i64, name: &str) -> TraceClass {
        let order = ByteOrder::Little;
        // Traces of one file are distinct, and have one clock.
        let mut uuid = self.uuid;
        for (byte, of_pid) in uuid.iter_mut().zip(pid.to_le_bytes()) {
            *byte ^= of_pid;
        }
        let mut class = trace_class(uuid, order);
        let offset = self.epoch.unwrap_or(0);
        let offset = offset.saturating_add(self.begin.unwrap_or(0));
        let mut session = clock("nsys", 1_000_000_000, offset);
        if self.epoch.is_none() {
            session.origin = ClockOrigin::Unknown;
        }
        class.clocks.push(identified(session, self.uuid));
        let mut stream = stream_class(0, order, ClockIndex::default(), HeaderKind::Large, &[]);
        let context = Fields::new(Scope::CommonContext, order, Align::Bytes);
        stream.common_context = Some(context.int("vtid", 32).build());
        class.streams.push(stream);
        let text = |text: &str| EnvValue::Str(sound(text));
        let known = [
            ("hostname", text(&self.hostname)),
            ("domain", text("ust")),
            ("tracer_name", text("nsys")),
            ("procname", text(name.rsplit('/').next().unwrap_or(name))),
            ("vpid", EnvValue::Int(pid.into())),
        ];
        let known = known.into_iter();
        class.environment = known
            .filter(|(_, value)| !matches!(value, EnvValue::Str(text) if text.is_empty()))
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        class
    }

    pub(super) fn finish(self, summary: &mut Summary) -> Result<(), ImportError> {
        for process in self.processes.into_values() {
            process.stream.finish()?;
        }
        let words = [
            "rows of more than 1,024 processes",
            "rows with invalid values",
        ];
        for (count, what) in self.left_out.into_iter().zip(words) {
            if count > 0 {
                summary.damage.push(format!("{count} {what} were left out"));
            }
        }
        if self.epoch.is_none() {
            let what = "the time of day is unknown (TARGET_INFO_SESSION_START_TIME)";
            summary.lacks.push(what.to_owned());
        }
        Ok(())
    }
}

/// Number of a kernel in the trace: 0 would be no kernel.
fn kernel_number(row: &Row) -> u64 {
    (row.get("name") as u64).wrapping_add(1)
}

impl Process {
    /// The class with a name; `None` if CTF cannot express it.
    fn class(
        &mut self,
        name: &str,
        layout: &dyn Fn(Fields) -> Fields,
    ) -> Result<Option<Arc<EventPlan>>, ImportError> {
        if let Some(known) = self.classes.get(name) {
            return Ok(Some(Arc::clone(known)));
        }
        let id = self.classes.len() as u64;
        match self.trace.add_event(0, &event(id, name, layout(payload()))) {
            Ok(plan) => {
                self.classes.insert(name.to_owned(), Arc::clone(&plan));
                Ok(Some(plan))
            }
            Err(error @ WriteError::Io { .. }) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }
}
