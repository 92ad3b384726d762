//! Selects event records by options and the filter expression together.

use std::cell::OnceCell;

use jiff::tz::TimeZone;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::NodeId;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_language::ast::{Expr, Field, Operator, Value};
use tracebraid_language::doubts::{Alternatives, Doubt};
use tracebraid_language::glob::Glob;
use tracebraid_language::tasks::{Running, Tasks};
use tracebraid_language::{Cpus, Filter, Subject};

use crate::failure::Failure;
use crate::hints;
use crate::options::{self, SelectArgs, TimeRange};
use crate::output::say;
use crate::time::TimeSpec;
use crate::warnings::Warnings;

/// The current packet of a stream.
#[derive(Debug, Default)]
struct StreamPacket {
    packet: u64,
    trace: usize,
    cpu: Option<u64>,
    values: Vec<(NodeId, u64)>,
}

/// Options that select event records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<'a> {
    pub(crate) select: &'a SelectArgs,
    /// Patterns of `--name`.
    pub(crate) names: &'a [String],
    /// The filter expression.
    pub(crate) expression: Option<&'a str>,
    /// The option with the filter expression.
    pub(crate) option: &'static str,
}

impl Chosen<'_> {
    /// Warns why no event record is selected in the time range; `offset` is added to the times of
    /// the traces. No warning is needed if unknown names were reported before (`is_doubted`).
    pub(crate) fn report_nothing(
        &self,
        set: &TraceSet,
        (range, offset): (TimeRange, i64),
        zone: &TimeZone,
        is_doubted: bool,
        warnings: &mut Warnings,
    ) {
        if hints::nothing_selected(set, self.select, range, offset, zone, warnings) || is_doubted {
            return;
        }
        let given = [
            ("--name", !self.names.is_empty()),
            (self.option, self.expression.is_some()),
        ];
        let given: Vec<&str> = given
            .iter()
            .filter(|given| given.1)
            .map(|given| given.0)
            .collect();
        if given.is_empty() {
            hints::none_in_range(set, range, offset, zone, warnings);
        } else {
            let given = given.join(" and ");
            warnings.note(&format!("no event record matches {given}"));
        }
    }
}

/// Selects event records.
#[derive(Debug)]
pub(crate) struct Selection<'t> {
    set: &'t TraceSet,
    filter: Filter<'t>,
    /// Indexed by trace.
    tasks: Vec<Tasks>,
    /// Location of the CPU in event records, indexed by trace.
    cpus: Vec<Cpus>,
    /// Indexed by the reader's rank.
    lanes: Vec<StreamPacket>,
}

impl<'t> Selection<'t> {
    /// Makes a selection from the options; `None` if they select all event records.
    ///
    /// # Errors
    /// When the filter expression is wrong.
    pub(crate) fn new(
        set: &'t TraceSet,
        chosen: &Chosen<'_>,
        extent: impl Fn() -> Option<(i64, i64)>,
        zone: &TimeZone,
    ) -> Result<Option<Self>, Failure> {
        let Chosen {
            select,
            names,
            expression,
            option,
        } = chosen;
        let mut parts = of_options(set, select);
        let known = OnceCell::new();
        let time_of = |text: &str| {
            text.parse::<TimeSpec>()?
                .resolve(*known.get_or_init(&extent), zone)
        };
        if !names.is_empty() {
            parts.push(Expr::Or(
                names
                    .iter()
                    .map(|name| Expr::Event(Glob::new(name)))
                    .collect(),
            ));
        }
        if let Some(text) = expression {
            let check = |text: &str| time_of(text).map(drop);
            let parsed = tracebraid_language::parse_noting(text, &check);
            let (parsed, old) =
                parsed.map_err(|error| Failure::usage(format!("{option}: {error}")))?;
            if let Some(note) = old.note() {
                say!("note: {option}: {note}");
            }
            parts.push(parsed);
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let filter = Filter::new(Expr::And(parts), set, &time_of)
            .map_err(|error| Failure::usage(format!("{option}: {error}")))?;
        let tasks = set.traces.iter().map(|_| Tasks::default()).collect();
        Ok(Some(Selection {
            set,
            filter,
            tasks,
            cpus: set.traces.iter().map(Cpus::new).collect(),
            lanes: Vec::new(),
        }))
    }

    /// Probable mistakes in the options and the filter expression.
    pub(crate) fn doubts(&self) -> Vec<Doubt> {
        self.filter.doubts(Alternatives::Each)
    }

    /// False if no event record of a class can be selected. The indices are those of the trace, of
    /// its stream class and of the event class in it.
    pub(crate) fn may_select(&self, trace: usize, stream_class: usize, event: usize) -> bool {
        self.filter.may_accept(trace, stream_class, event)
    }

    /// Whether event records before the time range affect the selection in it.
    pub(crate) fn needs_past(&self) -> bool {
        self.filter.needs_tasks()
    }

    /// Whether the reader's next event record is selected. Must be called for all event records, in
    /// order.
    pub(crate) fn wants(&mut self, time: Timestamp, reader: &mut StreamReader<'_>) -> bool {
        let rank = reader.rank();
        if self
            .lanes
            .get(rank)
            .is_none_or(|lane| lane.packet != reader.packets_begun())
        {
            self.begin_packet(rank, reader);
        }
        let Some(lane) = self.lanes.get(rank) else {
            return false;
        };
        let stream_class = reader.stream().class;
        let Some(mut event) = reader.event() else {
            return false;
        };
        let class = (stream_class, event.class_index);
        let of_event = |event: &mut Event<'_>| {
            let cpus = self.cpus.get(lane.trace)?;
            cpus.of_event(class, event.body, event.slots)
        };
        let cpu = lane.cpu.or_else(|| of_event(&mut event));
        let running = match self.tasks.get_mut(lane.trace) {
            Some(tasks) if self.filter.needs_tasks() => tasks.see(stream_class, &mut event, cpu),
            _ => Running::default(),
        };
        let subject = Subject {
            time: time.0,
            cpu,
            tid: running.tid,
            pid: running.pid,
            procname: running.name,
            packet: &lane.values,
        };
        self.filter
            .accepts(lane.trace, stream_class, &mut event, &subject)
    }

    fn begin_packet(&mut self, rank: usize, reader: &StreamReader<'_>) {
        if self.lanes.len() <= rank {
            self.lanes.resize_with(rank + 1, StreamPacket::default);
        }
        let trace = self
            .set
            .traces
            .iter()
            .position(|trace| std::ptr::eq(trace, reader.trace()));
        let head = reader.packet_head();
        if let Some(lane) = self.lanes.get_mut(rank) {
            lane.packet = reader.packets_begun();
            lane.trace = trace.unwrap_or(usize::MAX);
            let cpus = trace.and_then(|trace| self.cpus.get(trace));
            lane.cpu = cpus.and_then(|cpus| cpus.of_packet(reader.stream().class, head));
            lane.values.clone_from(&head.values);
        }
    }
}

/// Conditions of the options, all of which must hold.
fn of_options(set: &TraceSet, select: &SelectArgs) -> Vec<Expr> {
    let mut parts = Vec::new();
    if !select.cpu.is_empty() {
        let cpus = crate::numbers::all(&select.cpu).into_iter();
        parts.push(is_one_of(&Field::Cpu, cpus.map(Into::into)));
    }
    if !select.tid.is_empty() {
        parts.push(is_one_of(
            &Field::Tid,
            select.tid.iter().map(|&tid| tid.into()),
        ));
    }
    if !select.pid.is_empty() {
        parts.push(is_one_of(
            &Field::Pid,
            select.pid.iter().map(|&pid| pid.into()),
        ));
    }
    if !select.procname.is_empty() {
        let one = |name: &String| {
            Expr::Compare(
                Field::Procname,
                Operator::Matches,
                Value::Text(name.clone()),
            )
        };
        parts.push(Expr::Or(select.procname.iter().map(one).collect()));
    }
    let recorders = if select.no_recorder {
        options::recorders(set)
    } else {
        Vec::new()
    };
    for (_, pid) in recorders {
        // On another host, the same process id belongs to another process.
        let named = Field::Environment(options::RECORDER.to_owned());
        let recorder = Expr::And(vec![
            equals(Field::Pid, pid.into()),
            equals(named, pid.into()),
        ]);
        parts.push(Expr::Not(Box::new(recorder)));
    }
    parts
}

fn is_one_of(field: &Field, values: impl Iterator<Item = i128>) -> Expr {
    Expr::Or(values.map(|value| equals(field.clone(), value)).collect())
}

fn equals(field: Field, value: i128) -> Expr {
    Expr::Compare(field, Operator::Equal, Value::Integer(value))
}
