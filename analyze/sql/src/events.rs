//! The table `events`: event records of traces, in the order of time.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::Value;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::reader::{MergedReader, StreamReader};
use tracebraid_ctf::schema::Scope;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_language::Cpus;
use tracebraid_language::tasks::Tasks;

use crate::asked::Asked;
use crate::fields::{Part, json};
use crate::interrupted::Interrupted;
use crate::table::{Column, Rows, Table, integer, text};
use crate::traces::Traces;

const TIME: usize = 1;
const TID: usize = 4;
const INTERRUPT: usize = 5;
const FIELDS: usize = 6;

pub(crate) struct EventTable {
    traces: Arc<Traces>,
}

impl EventTable {
    pub(crate) fn new(traces: Arc<Traces>) -> EventTable {
        EventTable { traces }
    }
}

impl Table for EventTable {
    fn name(&self) -> &'static str {
        "events"
    }

    fn about(&self) -> &'static str {
        "event records of the traces, in the order of time"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 8] = [
            Column::text("trace", "the trace"),
            Column::integer("time_ns", "time since the origin of the traces' clock"),
            Column::integer("cpu", "CPU that recorded it"),
            Column::text("name", "name of the event"),
            Column::integer(
                "tid",
                "the running thread, interrupted or not; from a context or from switches, else NULL",
            ),
            Column::text(
                "interrupt",
                "the interrupt, softirq or timer during which the event was recorded; NULL in thread context",
            ),
            Column::text("fields", "as JSON: json_extract(fields, '$.ret')"),
            Column::text("context", "contexts of the event, as JSON"),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        TIME
    }

    fn size(&self) -> f64 {
        1e7
    }

    fn start(&self) -> f64 {
        1e4
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        let set = self.traces.set()?;
        // The thread that runs on a CPU follows from earlier records.
        let tasks = asked.wants(TID);
        let tasks = tasks.then(|| set.traces.iter().map(|_| Tasks::default()).collect());
        let interrupted = asked.wants(INTERRUPT).then(|| Interrupted::new(set));
        let needs_all = tasks.is_some() || interrupted.is_some();
        let from = (!needs_all).then_some(Timestamp(asked.from));
        let from = from.filter(|from| from.0 > i64::MIN);
        let until = asked.to.checked_add(1).map(Timestamp);
        let reader = MergedReader::within(set, from, until);
        Ok(Box::new(EventRows {
            traces: self.traces.clone(),
            set,
            names: self.traces.names()?,
            reader,
            asked: *asked,
            tasks,
            tids: HashMap::new(),
            interrupted,
            interrupt: None,
            lanes: Vec::new(),
            cpus: set.traces.iter().map(Cpus::new).collect(),
            now: None,
            lane: PacketCpu::default(),
            tid: None,
            since_check: 0,
            total: set.streams().map(|(_, stream)| stream.bytes()).sum(),
        }))
    }
}

/// State of a stream's current packet.
#[derive(Clone, Copy, Debug, Default)]
struct PacketCpu {
    packet: u64,
    /// Index of the trace.
    trace: usize,
    cpu: Option<u64>,
}

struct EventRows {
    traces: Arc<Traces>,
    set: &'static TraceSet,
    /// By trace.
    names: Vec<String>,
    reader: MergedReader<'static>,
    asked: Asked,
    /// By trace, if the query uses `tid`.
    tasks: Option<Vec<Tasks>>,
    /// By trace, stream class and event class: the field that contains the thread's id.
    tids: HashMap<(usize, usize, usize), Option<FieldRef>>,
    /// Interruptions of threads, if the column is selected.
    interrupted: Option<Interrupted>,
    /// The interruption at the row's event record.
    interrupt: Option<String>,
    /// By rank of the stream reader.
    lanes: Vec<PacketCpu>,
    /// By trace: location of the CPU of its event records.
    cpus: Vec<Cpus>,
    /// The time of the event record, and the rank of its stream.
    now: Option<(Timestamp, usize)>,
    lane: PacketCpu,
    tid: Option<i64>,
    since_check: u32,
    /// Bytes of all streams.
    total: u64,
}

/// Event records that are skipped between two checks for cancellation.
const PATIENCE: u32 = 1 << 14;

impl EventRows {
    /// The state of the packet that contains the reader's current event record.
    fn lane(
        lanes: &mut Vec<PacketCpu>,
        set: &TraceSet,
        cpus: &[Cpus],
        reader: &mut StreamReader<'_>,
    ) -> PacketCpu {
        let rank = reader.rank();
        if lanes.len() <= rank {
            lanes.resize_with(rank + 1, PacketCpu::default);
        }
        let Some(lane) = lanes.get_mut(rank) else {
            return PacketCpu::default();
        };
        if lane.packet != reader.packets_begun() {
            let trace = reader.trace();
            let place = set.traces.iter().position(|one| std::ptr::eq(one, trace));
            let cpus = place.and_then(|place| cpus.get(place));
            *lane = PacketCpu {
                packet: reader.packets_begun(),
                trace: place.unwrap_or(usize::MAX),
                cpu: cpus
                    .and_then(|cpus| cpus.of_packet(reader.stream().class, reader.packet_head())),
            };
        }
        let mut known = *lane;
        if let (None, Some(cpus)) = (known.cpu, cpus.get(known.trace)) {
            let class = reader.stream().class;
            known.cpu = reader
                .event()
                .filter(|_| cpus.are_mixed(class))
                .and_then(|event| {
                    cpus.of_event((class, event.class_index), event.body, event.slots)
                });
        }
        known
    }

    fn ends(&mut self) -> Result<bool, String> {
        self.now = None;
        self.traces.cancelled().progress(0, 0);
        self.traces.damaged(&self.reader.take_damage());
        Ok(false)
    }

    /// The stream whose next event record is the row.
    fn current(&mut self) -> Option<&mut StreamReader<'static>> {
        self.now?;
        self.reader.current()
    }
}

impl Rows for EventRows {
    fn next(&mut self) -> Result<bool, String> {
        loop {
            self.since_check += 1;
            if self.since_check >= PATIENCE {
                self.since_check = 0;
                self.traces.cancelled().check()?;
                let position = self.reader.position();
                self.traces.cancelled().progress(position, self.total);
                self.traces.damaged(&self.reader.take_damage());
            }
            let Some((time, reader)) = self.reader.next() else {
                return self.ends();
            };
            let lane = EventRows::lane(&mut self.lanes, self.set, &self.cpus, reader);
            if let Some(tasks) = self
                .tasks
                .as_mut()
                .and_then(|tasks| tasks.get_mut(lane.trace))
            {
                let (trace, class) = (reader.trace(), reader.stream().class);
                let Some(mut event) = reader.event() else {
                    continue;
                };
                let key = (lane.trace, class, event.class_index);
                let field = self.tids.entry(key);
                let field =
                    field.or_insert_with(|| tid_field(trace, event.stream, event.class_index));
                let own = field.as_ref().and_then(|field| tid_of(field, &mut event));
                let running = tasks.see(class, &mut event, lane.cpu).tid;
                self.tid = own.or(running);
            }
            if let Some(interrupted) = &mut self.interrupted {
                let class = reader.stream().class;
                let Some(mut event) = reader.event() else {
                    continue;
                };
                let cpu = lane.cpu.unwrap_or(u64::MAX);
                self.interrupt = interrupted.see(lane.trace, class, &mut event, cpu);
            }
            if (self.asked.from..=self.asked.to).contains(&time.0) {
                self.now = Some((time, reader.rank()));
                self.lane = lane;
                return Ok(true);
            }
        }
    }

    fn value(&mut self, column: usize) -> Result<Value, String> {
        let Some((time, _)) = self.now else {
            return Ok(Value::Null);
        };
        let lane = self.lane;
        let tid = self.tid;
        let part = match column {
            0 => {
                return Ok(self
                    .names
                    .get(lane.trace)
                    .map_or(Value::Null, |name| Value::Text(name.clone())));
            }
            2 => return Ok(integer(lane.cpu.and_then(|cpu| i64::try_from(cpu).ok()))),
            TID => return Ok(integer(tid)),
            INTERRUPT => return Ok(text(self.interrupt.clone())),
            FIELDS => Part::Payload,
            _ => Part::Context,
        };
        let Some(mut event) = self.current().and_then(StreamReader::event) else {
            return Ok(Value::Null);
        };
        Ok(match column {
            // Streams without a clock have no times.
            TIME => integer(event.stream.clock.map(|_| time.0)),
            3 => Value::Text(event.class.name.to_string()),
            _ => Value::Text(json(&mut event, part).map_err(|error| error.to_string())?),
        })
    }
}

/// The field with the thread's id in event records of a class, as in the filter language.
fn tid_field(trace: &Trace, stream: &StreamLayout, class: usize) -> Option<FieldRef> {
    let contexts = [Scope::CommonContext, Scope::SpecificContext];
    let find = |scope: Scope, name: &str| stream.field(class, scope, &[name]);
    let mut found = ["tid", "vtid"]
        .iter()
        .flat_map(|name| contexts.map(|scope| find(scope, name)))
        .flatten();
    let domain = trace.layout.class.env_str("domain");
    let may_be_perf = domain.is_none_or(|domain| domain == "kernel");
    let perf = || {
        ["common_pid", "perf_tid"]
            .iter()
            .find_map(|name| find(Scope::Payload, name))
    };
    found.next().or_else(|| perf().filter(|_| may_be_perf))
}

fn tid_of(field: &FieldRef, event: &mut Event<'_>) -> Option<i64> {
    let raw = field.integer(event.body, event.slots).ok()?;
    Some(raw as i64)
}
