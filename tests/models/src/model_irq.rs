//! The irq report, by one plain pass over the events of each CPU.

use std::collections::BTreeMap;

use tracebraid_ctf::trace::TraceSet;

use crate::events::{Entry, ModelEvent, by_cpu};
use crate::law::Asked;

/// A completed run of a handler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handled {
    pub cpu: u32,
    /// `irq`, `softirq`, `hrtimer` or `timer`.
    pub kind: &'static str,
    /// Number of the interrupt or softirq, or address of the timer's function.
    pub number: i64,
    pub begin: i64,
    pub end: i64,
    pub raised: Option<i64>,
    /// Positions of begin and end among the CPU's events.
    steps: (usize, usize),
}

impl Handled {
    pub fn duration(&self) -> u64 {
        self.end.abs_diff(self.begin)
    }

    pub fn latency(&self) -> Option<u64> {
        self.raised.map(|raised| self.begin.abs_diff(raised))
    }
}

/// Result of the pass.
#[derive(Debug, Default)]
pub struct Found {
    pub handled: Vec<Handled>,
    /// By softirq number.
    pub raises: BTreeMap<i64, u64>,
    /// Names of interrupts.
    pub names: BTreeMap<i64, Vec<String>>,
    /// Nanoseconds in interrupts and in softirqs.
    pub cpus: BTreeMap<u32, (u64, u64)>,
    pub unfinished: u64,
    pub orphans: u64,
}

/// A running handler: kind, object named by its end, number, begin, step of the begin, time of the
/// raise.
type Open = (&'static str, i64, i64, i64, usize, Option<i64>);

/// The report for the first trace, with LTTng's event names, old or new.
pub fn find(set: &TraceSet, asked: Asked) -> Found {
    let mut found = Found::default();
    let wanted = |name: &str| name.contains("irq_") || name.contains("expire_e");
    for entries in by_cpu(set, wanted) {
        let cpu = entries.first().map_or(0, |entry| entry.cpu);
        if asked.cpus.is_none_or(|cpus| cpus.contains(&cpu)) {
            of_cpu(&mut found, &entries, asked);
        } else {
            // Names are learned from all CPUs.
            let mut others = Found::default();
            of_cpu(&mut others, &entries, asked);
            merge_names(&mut found.names, others.names);
        }
    }
    found
}

fn merge_names(names: &mut BTreeMap<i64, Vec<String>>, others: BTreeMap<i64, Vec<String>>) {
    for (irq, others) in others {
        let names = names.entry(irq).or_default();
        names.extend(others);
        names.sort();
        names.dedup();
    }
}

fn of_cpu(found: &mut Found, entries: &[Entry], asked: Asked) {
    let (from, to) = asked.range;
    let mut open: Vec<Open> = Vec::new();
    let mut pending: BTreeMap<i64, i64> = BTreeMap::new();
    // All completed handlers, including those before the range.
    let mut all: Vec<Handled> = Vec::new();
    for (step, entry) in entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.time < to)
    {
        let event = match &entry.what {
            ModelEvent::Packet { lost, .. } => {
                if *lost {
                    open.clear();
                    pending.clear();
                }
                continue;
            }
            ModelEvent::Event(event) => event,
            ModelEvent::Cut => continue,
        };
        let is_in = entry.time >= from;
        let is_soft = event.name.contains("softirq");
        let number = event.int(if is_soft { "vec" } else { "irq" });
        let (kind, key) = match (number, event.int("hrtimer"), event.int("timer")) {
            (Some(number), ..) => (if is_soft { "softirq" } else { "irq" }, number),
            (None, Some(timer), _) => ("hrtimer", timer),
            (None, None, Some(timer)) => ("timer", timer),
            _ => continue,
        };
        if event.name.ends_with("_raise") {
            pending.entry(key).or_insert(entry.time);
            *found.raises.entry(key).or_default() += u64::from(is_in);
        } else if event.name.ends_with("_entry") {
            let raised = if is_soft { pending.remove(&key) } else { None };
            let number = event.int("function").unwrap_or(key);
            if let Some(name) = event.text("name") {
                merge_names(
                    &mut found.names,
                    BTreeMap::from([(key, vec![name.to_owned()])]),
                );
            }
            open.push((kind, key, number, entry.time, step, raised));
            if open.len() > 16 {
                open.remove(0);
            }
        } else if let Some(at) = open
            .iter()
            .rposition(|open| (open.0, open.1) == (kind, key))
        {
            let (_, _, number, begin, begun, raised) = open[at];
            open.truncate(at);
            all.push(Handled {
                cpu: entry.cpu,
                kind,
                number,
                begin,
                end: entry.time,
                raised,
                steps: (begun, step),
            });
        } else {
            open.clear();
            found.orphans += u64::from(is_in);
        }
    }
    found.unfinished += open.len() as u64;
    times(found, &all, from);
    found
        .handled
        .extend(all.into_iter().filter(|handled| handled.end >= from));
}

/// Subtracts from each handler's time the time of nested interrupts. Handlers are sorted by end.
fn times(found: &mut Found, all: &[Handled], from: i64) {
    let in_range = |handled: &Handled| (handled.end.max(from) - handled.begin.max(from)) as u64;
    for (at, handled) in all
        .iter()
        .enumerate()
        .filter(|(_, handled)| handled.end >= from)
    {
        let (cpu, mut outermost) = (found.cpus.entry(handled.cpu).or_default(), handled.steps.1);
        let mut own = in_range(handled);
        // Backwards, an enclosing handler precedes the handlers that it contains.
        let inner = all[..at]
            .iter()
            .rev()
            .take_while(|inner| inner.steps.1 > handled.steps.0);
        for inner in inner.filter(|inner| inner.kind == "irq") {
            if inner.steps.1 < outermost {
                own -= in_range(inner);
                outermost = inner.steps.0;
            }
        }
        match handled.kind {
            "irq" => cpu.0 += own,
            "softirq" => cpu.1 += own,
            _ => {}
        }
    }
}
