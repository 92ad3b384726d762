//! Quantities that event records of each class contain, in addition to those of the kernel's own
//! events.

use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_language::ClassField;
use tracebraid_language::ast::{Field, Where};
use tracebraid_language::executions::Attached;

/// An event class with fields for counters or values.
#[derive(Debug, Default)]
pub(crate) struct Class {
    pub(crate) tid: Option<ClassField>,
    pub(crate) cpu: Option<ClassField>,
    /// Index of a quantity, and its source in the class.
    pub(crate) tells: Vec<(u16, Tells)>,
}

#[derive(Debug)]
pub(crate) enum Tells {
    /// A counter of the CPU.
    OfCpu(ClassField),
    /// A counter of the thread.
    OfThread(ClassField),
    /// A value of the thread.
    Value(ClassField),
    /// The number of event records.
    Occurs,
}

/// Prefixes of the context fields of counters; the second is that of counters by thread.
const COUNTERS: [&str; 2] = ["perf_cpu_", "perf_thread_"];

/// Maximum number of counters.
const MOST_COUNTERS: usize = 256;

/// Sorted names of all counters in contexts.
pub(crate) fn counters(set: &TraceSet) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for stream in set.traces.iter().flat_map(|trace| &trace.layout.streams) {
        let own = stream.events.iter().map(|event| &event.specific_context);
        for tree in own.chain([&stream.common_context]) {
            let members = tree.root().into_iter().flat_map(|root| root.parts());
            let counters = members.filter(|member| {
                COUNTERS
                    .iter()
                    .any(|prefix| member.name.starts_with(prefix))
            });
            names.extend(counters.map(|member| member.name.to_string()));
        }
        names.sort();
        names.dedup();
    }
    names.truncate(MOST_COUNTERS);
    names
}

/// Quantities of a class, from lists of counters and values with the index of each quantity. `None`
/// without any.
pub(crate) fn class(
    (trace, stream, event): (&Trace, &StreamLayout, usize),
    counters: &[(u16, &str)],
    values: &[(u16, &Attached)],
) -> Option<Class> {
    let name = &stream.events.get(event)?.name;
    let field = |field: &Field| ClassField::new(field, trace, stream, event);
    let mut tells = Vec::new();
    for &(quantity, counter) in counters {
        let path = Field::Path(Where::Context, vec![counter.to_owned()]);
        if let Some(found) = field(&path) {
            let is_of_thread = counter.starts_with(COUNTERS[1]);
            let tell = if is_of_thread {
                Tells::OfThread
            } else {
                Tells::OfCpu
            };
            tells.push((quantity, tell(found)));
        }
    }
    for &(quantity, value) in values {
        if !value.events.matches(name.as_bytes()) {
            continue;
        }
        match &value.field {
            None => tells.push((quantity, Tells::Occurs)),
            Some(of) => tells.extend(field(of).map(|found| (quantity, Tells::Value(found)))),
        }
    }
    (!tells.is_empty()).then(|| Class {
        tid: field(&Field::Tid),
        cpu: field(&Field::Cpu),
        tells,
    })
}
