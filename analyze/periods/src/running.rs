//! The thread that runs on each CPU, for event records that do not contain theirs.
//!
//! Few kernel traces have the context `tid`. In the others, `$evt.tid` is the thread that runs on
//! the CPU. Switches record it. They become candidates as the event records of periods do, so
//! playing the candidates in the order of time yields the running thread at each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::KernelEvent;
use tracebraid_language::Datum;
use tracebraid_language::ast::{Expr, Field, Where};
use tracebraid_language::periods::Periods;

use tracebraid_follow::{Candidate, Candidates, Input, Packet, Selection, taken_over};

/// The class of candidates that record the thread that runs from then on.
pub(super) const RUNNER: u32 = u32::MAX;

/// Reads the running threads from switches.
#[derive(Debug)]
pub(super) struct Running {
    input: Input,
}

/// Whether the field is `$evt.tid` without a scope, or `tid`.
pub(super) fn is_thread(field: &Field) -> bool {
    matches!(field, Field::Tid)
        || matches!(field, Field::Path(Where::Anywhere, path) if path.len() == 1 && path.iter().all(|name| name == "tid"))
}

/// Whether an expression uses the running thread.
pub(super) fn mentions_thread(expr: &Expr) -> bool {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(mentions_thread),
        Expr::Not(inner) => mentions_thread(inner),
        Expr::Compare(field, ..) | Expr::Has(field) => is_thread(field),
        Expr::Event(_) => false,
    }
}

impl Running {
    /// `None` if no definition uses the running thread, or no trace records it.
    pub(super) fn new(set: &TraceSet, periods: &Periods) -> Option<Running> {
        if !asks(periods) {
            return None;
        }
        let input = Input::new(set, Selection::default(), |event| {
            matches!(event, KernelEvent::Switch(_) | KernelEvent::Exec(_))
        });
        let running = Running { input };
        let is_told = (0..set.traces.len()).any(|trace| running.is_told(trace));
        is_told.then_some(running)
    }

    /// Whether a trace records the running thread.
    pub(super) fn is_told(&self, trace: usize) -> bool {
        self.input.sources.tells_switches(trace)
    }

    /// The streams that record the running thread.
    pub(super) fn streams(&self) -> Vec<StreamRef> {
        self.input.groups().concat()
    }

    /// Whether event records of a class record the running thread.
    pub(super) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.input.wants(trace, stream_class, class)
    }

    /// Adds a candidate for an event record that changes the running thread.
    pub(super) fn event(&self, candidates: &mut Candidates, record: &mut Record<'_>) {
        let number = record.number;
        self.input.event(record, |event, body| {
            let next = match &event.model.event {
                KernelEvent::Switch(switch) => switch.next_tid.get(body),
                // The thread takes over the id of its process's first thread.
                KernelEvent::Exec(exec) => taken_over(exec, body).map(|(_, tid)| i64::from(tid)),
                _ => None,
            };
            if let Some(next) = next {
                let value = std::iter::once(Datum::Integer(next.into()));
                let about = (event.time, number, RUNNER, 0);
                candidates.add(about, Some(event.cpu.cpu), value);
            }
        });
    }

    /// The packet for each CPU, if switches were lost before it.
    pub(super) fn lost(&self, place: &StreamPlace<'_>) -> impl Iterator<Item = Packet> + '_ {
        self.input
            .packets(place)
            .filter(|packet| packet.lost_before)
    }

    /// The rest of a packet from a time on, for each CPU.
    pub(super) fn cut(
        &self,
        place: &StreamPlace<'_>,
        time: i64,
    ) -> impl Iterator<Item = Packet> + '_ {
        self.input
            .packets(place)
            .map(move |packet| packet.cut(time))
    }
}

/// Whether a definition uses the running thread.
fn asks(periods: &Periods) -> bool {
    let mut asks = false;
    for period in &periods.list {
        for condition in [&period.begin, &period.end] {
            condition.exprs(&mut |expr| asks |= mentions_thread(expr));
            condition.references(&mut |reference| asks |= is_thread(&reference.field));
        }
        let mut captures = period.begin_captures.iter().chain(&period.end_captures);
        asks |= captures.any(|capture| is_thread(&capture.reference.field));
    }
    asks
}

/// The running thread by trace and CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Runners(BTreeMap<u64, Datum>);

impl Runners {
    /// Sets the thread that runs from a candidate on, or marks it as unknown.
    pub(super) fn take(&mut self, trace: u32, candidate: &Candidate, values: &[Datum]) {
        if let (Some(cpu), Some(next)) = (candidate.cpu, values.first()) {
            self.0.insert(place(trace, cpu), next.clone());
        }
    }

    /// The running thread at a candidate.
    pub(super) fn at(&self, trace: u32, candidate: &Candidate) -> Datum {
        let found = candidate.cpu.and_then(|cpu| self.0.get(&place(trace, cpu)));
        found.cloned().unwrap_or_default()
    }
}

/// Packs a trace and a CPU into one number.
fn place(trace: u32, cpu: u32) -> u64 {
    u64::from(trace) << 32 | u64::from(cpu)
}
