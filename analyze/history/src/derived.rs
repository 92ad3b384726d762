//! Attributes that are not stored but follow from others: the state of a CPU.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::attribute::{Attribute, AttributeKind};
use crate::file::HistoryError;
use crate::history::{History, Level};
use crate::kernel::UNKNOWN;
use crate::query::Since;
use crate::value::Value;

/// The process that is the parent of all kernel threads (kthreadd).
const KTHREADD: i64 = 2;

/// Nanoseconds that the first step of a search covers; later steps are longer.
const FIRST_SPAN: i64 = 1_000_000;

/// The values that determine the state of a CPU.
#[derive(Clone, Debug, Default)]
struct Parts {
    thread: Value,
    irq: Value,
    softirq: Value,
    /// System call of the running thread.
    syscall: Value,
    parent: Value,
    /// True if system calls were not recorded.
    lacks_calls: bool,
}

impl Parts {
    fn state(&self) -> Value {
        let text = match self {
            Parts { irq, .. } if *irq != Value::Null => "irq",
            Parts { softirq, .. } if *softirq != Value::Null => "softirq",
            Parts {
                thread: Value::Number(0),
                ..
            } => "idle",
            Parts {
                thread: Value::Null,
                ..
            } => return Value::Null,
            parts if parts.is_kernel() => "system",
            Parts {
                syscall: Value::Text(call),
                ..
            } if &**call == UNKNOWN => return Value::Null,
            Parts { syscall, .. } if *syscall != Value::Null => "system",
            // The thread may be a kernel thread, or in an unrecorded call.
            Parts {
                parent: Value::Null,
                ..
            }
            | Parts {
                lacks_calls: true, ..
            } => return Value::Null,
            _ => "user",
        };
        Value::Text(Arc::from(text))
    }

    fn is_kernel(&self) -> bool {
        let kthreadd = Value::Number(KTHREADD);
        self.thread == kthreadd || self.parent == kthreadd
    }
}

/// A change of one of these values.
enum Part {
    Thread(Value),
    Irq(Value),
    Softirq(Value),
    Syscall(Value),
    Parent(Value),
}

/// Another attribute of the same CPU.
fn of_cpu(state: Attribute, kind: AttributeKind) -> Attribute {
    Attribute::new(kind, state.host(), state.id())
}

/// An attribute of the thread that runs on the CPU, if any.
fn of_thread(state: Attribute, thread: &Value, kind: AttributeKind) -> Option<Attribute> {
    match thread {
        Value::Number(tid) if *tid != 0 => Some(Attribute::new(kind, state.host(), *tid as u32)),
        _ => None,
    }
}

impl History {
    /// The state of a CPU: idle, user, system, irq or softirq.
    pub(crate) fn cpu_state(&self, state: Attribute, time: i64) -> Result<Value, HistoryError> {
        let value = |attribute: Option<Attribute>| {
            attribute.map_or(Ok(Value::Null), |attribute| self.value(attribute, time))
        };
        let thread = value(Some(of_cpu(state, AttributeKind::CpuThread)))?;
        let parent = value(of_thread(state, &thread, AttributeKind::ThreadParent))?;
        let parts = Parts {
            irq: value(Some(of_cpu(state, AttributeKind::CpuIrq)))?,
            softirq: value(Some(of_cpu(state, AttributeKind::CpuSoftirq)))?,
            syscall: value(of_thread(state, &thread, AttributeKind::ThreadSyscall))?,
            parent,
            lacks_calls: self.lacks_calls(state),
            thread,
        };
        Ok(parts.state())
    }

    /// True if system calls of that machine were not recorded.
    fn lacks_calls(&self, state: Attribute) -> bool {
        self.meta().without_calls.contains(&state.host())
    }

    /// Changes of the state of a CPU; see [`History::changes`].
    pub(crate) fn cpu_state_changes(
        &self,
        state: Attribute,
        from: i64,
        to: i64,
    ) -> Result<Vec<Since>, HistoryError> {
        let threads = self.changes(of_cpu(state, AttributeKind::CpuThread), from, to)?;
        let mut steps: Vec<(i64, Part)> = Vec::new();
        let irqs = self.changes(of_cpu(state, AttributeKind::CpuIrq), from, to)?;
        let softirqs = self.changes(of_cpu(state, AttributeKind::CpuSoftirq), from, to)?;
        steps.extend(
            irqs.into_iter()
                .map(|since| (since.time, Part::Irq(since.value))),
        );
        steps.extend(
            softirqs
                .into_iter()
                .map(|since| (since.time, Part::Softirq(since.value))),
        );
        let ends = threads.iter().skip(1).map(|since| since.time).chain([to]);
        for (thread, end) in threads.iter().zip(ends) {
            steps.push((thread.time, Part::Thread(thread.value.clone())));
            let of: [(AttributeKind, fn(Value) -> Part); 2] = [
                (AttributeKind::ThreadSyscall, Part::Syscall),
                (AttributeKind::ThreadParent, Part::Parent),
            ];
            for (kind, part) in of {
                if let Some(attribute) = of_thread(state, &thread.value, kind) {
                    let changes = self.changes(attribute, thread.time, end)?.into_iter();
                    steps.extend(changes.map(|since| (since.time, part(since.value))));
                }
            }
        }
        steps.sort_by_key(|step| step.0);
        Ok(self.sweep(state, steps))
    }

    /// The states of all CPUs.
    pub(crate) fn cpu_states(&self) -> impl Iterator<Item = Attribute> + '_ {
        let cpus = self.meta().cpus.iter();
        cpus.map(|&(host, cpu)| Attribute::new(AttributeKind::CpuState, host, cpu))
    }

    /// Passes the changes after `from` and before `to` to `tell` until it returns false. Reads
    /// intervals of increasing length.
    pub(crate) fn each_cpu_state(
        &self,
        state: Attribute,
        from: i64,
        to: i64,
        mut tell: impl FnMut(i64, Value) -> bool,
    ) -> Result<(), HistoryError> {
        let to = to.min(self.meta().end.saturating_add(1));
        let (mut begin, mut span) = (from, FIRST_SPAN);
        let mut value = self.cpu_state(state, from)?;
        while begin < to {
            let end = begin.saturating_add(span).min(to);
            for since in self.cpu_state_changes(state, begin, end)? {
                if since.value != value && !tell(since.time, since.value.clone()) {
                    return Ok(());
                }
                value = since.value;
            }
            (begin, span) = (end, span.saturating_mul(2));
        }
        Ok(())
    }

    /// The last change before a time.
    pub(crate) fn previous_cpu_state(
        &self,
        state: Attribute,
        time: i64,
    ) -> Result<Option<Since>, HistoryError> {
        let first = self.meta().begin.saturating_sub(1);
        let (mut end, mut span) = (time, FIRST_SPAN);
        while end > first {
            let begin = end.saturating_sub(span).max(first);
            let changes = self.cpu_state_changes(state, begin, end)?;
            if let Some(last) = changes.into_iter().skip(1).last() {
                return Ok(Some(last));
            }
            // A change at the start of an interval is the last one of the preceding interval.
            (end, span) = (
                begin.saturating_add(i64::from(begin > first)),
                span.saturating_mul(2),
            );
            if begin == first {
                break;
            }
        }
        Ok(None)
    }

    /// The states at ascending times, with the resolution of a level.
    pub(crate) fn cpu_state_row(
        &self,
        level: &Level,
        state: Attribute,
        times: &[i64],
    ) -> Result<Vec<Value>, HistoryError> {
        let rows = [
            AttributeKind::CpuThread,
            AttributeKind::CpuIrq,
            AttributeKind::CpuSoftirq,
        ]
        .map(|kind| self.row(level, of_cpu(state, kind), times));
        let [threads, irqs, softirqs] = rows;
        let (threads, irqs, softirqs) = (threads?, irqs?, softirqs?);
        let mut calls: HashMap<Attribute, Vec<Value>> = HashMap::new();
        let mut states = Vec::with_capacity(times.len());
        for (at, ((thread, irq), softirq)) in
            threads.into_iter().zip(irqs).zip(softirqs).enumerate()
        {
            let mut of = |kind| -> Result<Value, HistoryError> {
                let Some(attribute) = of_thread(state, &thread, kind) else {
                    return Ok(Value::Null);
                };
                let row = match calls.entry(attribute) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(self.row(level, attribute, times)?),
                };
                Ok(row.get(at).cloned().unwrap_or_default())
            };
            let (syscall, parent) = (
                of(AttributeKind::ThreadSyscall)?,
                of(AttributeKind::ThreadParent)?,
            );
            let parts = Parts {
                thread,
                irq,
                softirq,
                syscall,
                parent,
                lacks_calls: self.lacks_calls(state),
            };
            states.push(parts.state());
        }
        Ok(states)
    }

    /// Computes the states from the changes of the values that determine them.
    fn sweep(&self, state: Attribute, steps: Vec<(i64, Part)>) -> Vec<Since> {
        let mut parts = Parts {
            lacks_calls: self.lacks_calls(state),
            ..Parts::default()
        };
        let mut found: Vec<Since> = Vec::new();
        let mut steps = steps.into_iter().peekable();
        while let Some((time, part)) = steps.next() {
            match part {
                Part::Irq(irq) => parts.irq = irq,
                Part::Softirq(softirq) => parts.softirq = softirq,
                Part::Syscall(syscall) => parts.syscall = syscall,
                Part::Parent(parent) => parts.parent = parent,
                Part::Thread(thread) => {
                    parts.thread = thread;
                    (parts.syscall, parts.parent) = (Value::Null, Value::Null);
                }
            }
            if steps.peek().is_some_and(|next| next.0 == time) {
                continue;
            }
            let value = parts.state();
            if found.last().is_none_or(|last| last.value != value) {
                found.push(Since { time, value });
            }
        }
        found
    }
}
