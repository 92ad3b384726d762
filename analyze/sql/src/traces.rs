//! Traces that queries read; opened by the first query that needs them.

use std::sync::{Mutex, OnceLock, PoisonError};

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::index::IndexCheck;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{FoldError, Options, Outcome, fold};
use tracebraid_executions::database::trace_path;
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_graph::{Graph, GraphAnalysis};

use crate::questions::Cancelled;

/// Opens traces with this check of their indexes. The traces live until the program ends, since
/// SQLite holds rows that refer to them.
pub type OpenTraces = Box<dyn Fn(IndexCheck) -> Result<&'static TraceSet, String> + Send + Sync>;

/// Traces and their execution graph.
pub struct Traces {
    open: OpenTraces,
    heard: Box<dyn Fn(&str) + Send + Sync>,
    options: Options,
    cancelled: Cancelled,
    set: OnceLock<Result<&'static TraceSet, String>>,
    /// The traces opened again with [`IndexCheck::Every`], after an index turned out to be wrong. A
    /// statement may have returned rows before that, so the command itself cannot restart.
    checked: OnceLock<Result<&'static TraceSet, String>>,
    graph: OnceLock<Result<Graph, String>>,
    /// Messages that were already passed to `heard`.
    told: Mutex<Vec<String>>,
}

/// Most messages of damage that are passed on. The limit bounds memory: a query may read the same
/// packets again and again.
const MOST_TOLD: usize = 1000;

impl Traces {
    /// Traces that `open` opens on first use; `heard` receives each message of damage once.
    pub fn new(
        open: OpenTraces,
        heard: Box<dyn Fn(&str) + Send + Sync>,
        options: Options,
    ) -> Traces {
        Traces {
            open,
            heard,
            options,
            cancelled: Cancelled::default(),
            set: OnceLock::new(),
            checked: OnceLock::new(),
            graph: OnceLock::new(),
            told: Mutex::default(),
        }
    }

    pub(crate) fn watched(self, cancelled: Cancelled) -> Traces {
        Traces { cancelled, ..self }
    }

    pub(crate) fn cancelled(&self) -> &Cancelled {
        &self.cancelled
    }

    pub(crate) fn set(&self) -> Result<&'static TraceSet, String> {
        let first = || self.set.get_or_init(|| (self.open)(IndexCheck::Ends));
        self.checked.get().unwrap_or_else(first).clone()
    }

    fn checked(&self) -> Result<&'static TraceSet, String> {
        self.checked
            .get_or_init(|| (self.open)(IndexCheck::Every))
            .clone()
    }

    /// Paths of the traces, as in the table `source`.
    pub(crate) fn names(&self) -> Result<Vec<String>, String> {
        Ok(self.set()?.traces.iter().map(trace_path).collect())
    }

    /// The execution graph, built on first use.
    pub(crate) fn graph(&self) -> Result<&Graph, String> {
        let graph = self.graph.get_or_init(|| {
            let outcome = match self.folded(self.set()?) {
                Err(FoldError::WrongIndexes(_)) => self.folded(self.checked()?),
                outcome => outcome,
            };
            let outcome = outcome.map_err(|error| match error {
                FoldError::Cancelled => "interrupted".to_owned(),
                FoldError::WrongIndexes(_) => error.to_string(),
            })?;
            self.damaged(&outcome.damage);
            Ok(outcome.report)
        });
        graph.as_ref().map_err(String::clone)
    }

    fn folded(&self, set: &TraceSet) -> Result<Outcome<Graph>, FoldError> {
        let analysis = GraphAnalysis::new(set, Selection::default());
        if let Some(lack) = analysis.lacks() {
            (self.heard)(lack);
        }
        if let Some(missing) = analysis.input().head().note() {
            (self.heard)(&missing);
        }
        fold(set, &analysis, self.options, &self.cancelled.0)
    }

    /// Passes on messages of damage that are new.
    pub(crate) fn damaged(&self, damage: &[Damage]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for damage in damage {
            let text = damage.to_string();
            if told.len() < MOST_TOLD && !told.contains(&text) {
                (self.heard)(&text);
                told.push(text);
            }
        }
    }
}
