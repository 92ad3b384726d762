//! Spans: pieces of work that programs identify by a number, on any threads.

use serde::{Deserialize, Serialize};
use tracebraid_follow::Pairs;
use tracebraid_language::Datum;
use tracebraid_periods::Bound;

use crate::delimit::fitting;
use crate::delimit::log::{Log, bound};
use crate::delimit::user::{Told, User, UserEdge};
use crate::turns::{Label, RecordThread, Turn};

/// Open and ended spans.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spans {
    /// By trace, process and number.
    open: Pairs<(u32, i64, i128), Open>,
    /// Number of entries in `open`.
    count: usize,
    /// Spans that are not selected: time and thread of the beginning, and their label.
    others: Pairs<(u32, i64, i128), (i64, RecordThread, Label)>,
    others_count: usize,
    pub(crate) log: Log,
}

/// A begun span.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    kinds: Vec<usize>,
    number: u64,
    begin: Bound,
}

/// Maximum number of open spans.
const MOST_OPEN: usize = 1 << 20;

impl Spans {
    /// Begins of the open spans.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.open.open().map(|(_, open)| open.begin.time)
    }

    /// Applies the beginning or end of a span.
    pub(crate) fn step(&mut self, user: &User, told: &Told<'_>) {
        let Datum::Integer(id) = *told.of else {
            return;
        };
        let key = (told.trace, told.process, id);
        let open = self.open.end(key);
        self.count -= usize::from(open.is_some());
        let other = self.others.end(key);
        self.others_count -= usize::from(other.is_some());
        let thread = RecordThread {
            trace: told.trace,
            cpu: told.cpu,
            tid: told.tid,
        };
        let of = |captures| bound(told.time, (told.trace, told.cpu), told.tid, captures);
        if told.kind == UserEdge::SpanEnd {
            if let Some((begin, first, label)) = other {
                let turn = Turn::ends(label, (begin, first), (told.time, thread));
                self.log.turns.extend(turn);
            }
            if let Some(open) = open {
                for kind in open.kinds {
                    let bounds = [open.begin.clone(), of(Vec::new())];
                    self.log.ends(kind, vec![open.number], bounds);
                }
            }
            return;
        }
        let name = told.name.bytes().unwrap_or_default();
        let label = Label::of_span(name);
        self.log.turns.push(Turn {
            time: told.time,
            thread,
            label,
            begun: None,
        });
        let kinds = fitting(&user.spans, name);
        if kinds.is_empty() {
            if self.others_count < MOST_OPEN {
                self.others.begin(key, (told.time, thread, label));
                self.others_count += 1;
            }
            return;
        }
        if self.count >= MOST_OPEN {
            self.log.refused += 1;
            return;
        }
        kinds.iter().for_each(|&kind| self.log.begins(kind));
        let open = Open {
            kinds,
            number: self.log.number(),
            begin: of(vec![told.name.clone(), Datum::Integer(id)]),
        };
        self.open.begin(key, open);
        self.count += 1;
    }
}
