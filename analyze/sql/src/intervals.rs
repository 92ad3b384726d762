//! The table `intervals`: the states of threads over time.

use std::sync::Arc;

use rusqlite::types::Value;
use tracebraid_graph::{Actor, ActorId, Graph, State};

use crate::asked::Asked;
use crate::table::{Column, Rows, Table, duration, integer, text};
use crate::traces::Traces;

const TID: usize = 1;

/// Intervals of the time lines of threads.
pub(crate) struct IntervalTable {
    traces: Arc<Traces>,
}

impl IntervalTable {
    pub(crate) fn new(traces: Arc<Traces>) -> IntervalTable {
        IntervalTable { traces }
    }
}

impl Table for IntervalTable {
    fn name(&self) -> &'static str {
        "intervals"
    }

    fn about(&self) -> &'static str {
        "states of threads over time, from kernel traces"
    }

    fn columns(&self) -> &'static [Column] {
        const COLUMNS: [Column; 9] = [
            Column::text("trace", "the trace"),
            Column::integer("tid", "the thread's id"),
            Column::text("thread", "its last known name"),
            Column::integer("begin_ns", "time since the origin of the traces' clock"),
            Column::integer("end_ns", "start of the thread's next interval"),
            Column::integer("duration_ns", "length of the interval"),
            Column::text("state", "running, or the wait reason"),
            Column::integer("cpu", "CPU on which the thread runs, or would run"),
            Column::text(
                "detail",
                "device, connection, waker and call of a wait; the interrupt or thread that had the CPU",
            ),
        ];
        &COLUMNS
    }

    fn key(&self) -> usize {
        TID
    }

    fn is_sorted(&self) -> bool {
        false
    }

    fn size(&self) -> f64 {
        1e6
    }

    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String> {
        self.traces.graph()?;
        Ok(Box::new(IntervalRows {
            names: self.traces.names()?,
            traces: self.traces.clone(),
            asked: *asked,
            actor: 0,
            next: 0,
            now: None,
        }))
    }
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: i64,
    end: i64,
    state: State,
}

struct IntervalRows {
    traces: Arc<Traces>,
    /// By trace.
    names: Vec<String>,
    asked: Asked,
    /// Index of the thread.
    actor: u32,
    /// Index of the next interval of that thread.
    next: usize,
    now: Option<Interval>,
}

/// An interval of a thread, unless it is empty. The last interval ends where the trace does.
fn interval(graph: &Graph, actor: &Actor, place: usize) -> Option<Interval> {
    let stretch = actor.line.get(place)?;
    let known = graph.known_until_of(actor.key.trace);
    let next = actor.line.get(place.saturating_add(1));
    let end = next.map_or(known, |next| next.begin);
    let is_told = end > stretch.begin && stretch.state != State::Ended;
    is_told.then_some(Interval {
        begin: stretch.begin,
        end,
        state: stretch.state,
    })
}

impl Rows for IntervalRows {
    fn next(&mut self) -> Result<bool, String> {
        let graph = self.traces.graph()?;
        self.now = None;
        while let Some(actor) = graph.actor(ActorId(self.actor)) {
            let tid = i64::from(actor.key.tid);
            let is_wanted = self.asked.from <= tid && tid <= self.asked.to;
            if !is_wanted || self.next >= actor.line.len() {
                self.actor += 1;
                self.next = 0;
                continue;
            }
            self.next += 1;
            self.now = interval(graph, actor, self.next - 1);
            if self.now.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn value(&mut self, column: usize) -> Result<Value, String> {
        let graph = self.traces.graph()?;
        let (Some(actor), Some(now)) = (graph.actor(ActorId(self.actor)), self.now) else {
            return Ok(Value::Null);
        };
        let trace = actor.key.trace;
        Ok(match column {
            0 => text(self.names.get(trace as usize).cloned()),
            TID => Value::Integer(i64::from(actor.key.tid)),
            2 => text(actor.name.clone()),
            3 => Value::Integer(now.begin),
            4 => Value::Integer(now.end),
            5 => duration(now.begin.abs_diff(now.end)),
            6 => text(graph.reason_of(now.state).map(|reason| reason.name())),
            7 => integer(cpu(now.state)),
            _ => text(
                Some(graph.detail_of(trace, now.state, now.begin))
                    .filter(|detail| !detail.is_empty()),
            ),
        })
    }
}

fn cpu(state: State) -> Option<i64> {
    match state {
        State::Running(cpu)
        | State::Interrupted(cpu, _)
        | State::Preempted(cpu)
        | State::Runnable(cpu) => Some(i64::from(cpu)).filter(|&cpu| cpu != i64::from(u16::MAX)),
        _ => None,
    }
}
