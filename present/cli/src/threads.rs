//! The threads of traces, for messages about unknown threads.

use std::collections::{BTreeSet, HashMap};

use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_language::ast::Field;
use tracebraid_language::{At, ClassField, Datum, Subject};
use tracebraid_reports::cpu::CpuAnalysis;

/// Maximum number of event records searched for contexts: a hint must not cost reading a large
/// trace.
const MOST_READ: usize = 1 << 18;

/// Maximum number of names kept.
const MOST_NAMES: usize = 100_000;

/// Threads by id, process and name.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) names: BTreeSet<String>,
    pub(crate) tids: BTreeSet<i64>,
    pub(crate) pids: BTreeSet<i64>,
}

impl Known {
    /// The threads that ran in kernel traces, and those in the contexts of the first event records.
    pub(crate) fn of(set: &TraceSet) -> Known {
        let mut known = Known::default();
        known.ran(set);
        known.contexts(set);
        known
    }

    fn ran(&mut self, set: &TraceSet) {
        let analysis = CpuAnalysis::new(set, Selection::default());
        // Wrong indexes do not matter: the set of threads does not depend on packet times.
        let options = Options {
            accepts_wrong_indexes: true,
            ..Options::default()
        };
        let Ok(outcome) = fold(set, &analysis, options, &Control::default()) else {
            return;
        };
        for thread in outcome
            .report
            .rows("threads")
            .filter_map(|row| row.thread())
        {
            self.tids.extend(thread.tid.map(i64::from));
            self.pids.extend(thread.pid.map(i64::from));
            self.names.extend(thread.name.clone());
        }
    }

    fn contexts(&mut self, set: &TraceSet) {
        let mut classes: HashMap<(*const (), usize), [Option<ClassField>; 3]> = HashMap::new();
        let mut merged = MergedReader::new(set);
        for _ in 0..MOST_READ {
            let Some((_, reader)) = merged.next() else {
                break;
            };
            let trace = reader.trace();
            let packet = reader.packet_head().values.clone();
            let Some(event) = reader.event() else {
                continue;
            };
            let key = (std::ptr::from_ref(event.stream).cast(), event.class_index);
            let fields = classes.entry(key).or_insert_with(|| {
                [Field::Procname, Field::Tid, Field::Pid]
                    .map(|field| ClassField::new(&field, trace, event.stream, event.class_index))
            });
            let subject = Subject {
                packet: &packet,
                ..Subject::default()
            };
            let mut at = At::new(event.body, event.slots);
            let values = fields.each_ref().map(|field| match field {
                Some(field) => field.get(&mut at, &subject),
                None => Datum::Missing,
            });
            self.add(&values);
        }
    }

    fn add(&mut self, [name, tid, pid]: &[Datum; 3]) {
        if let Some(name) = name.bytes().filter(|_| self.names.len() < MOST_NAMES) {
            self.names
                .insert(String::from_utf8_lossy(name).into_owned());
        }
        for (value, to) in [(tid, &mut self.tids), (pid, &mut self.pids)] {
            if let Datum::Integer(number) = value {
                to.extend(
                    i64::try_from(*number)
                        .ok()
                        .filter(|_| to.len() < MOST_NAMES),
                );
            }
        }
    }
}
