//! What tests share: a database of a recorded trace, and answers as values.

use std::path::PathBuf;
use std::sync::OnceLock;

use tempfile::TempDir;
use tracebraid_critical_path::GraphAnalysis;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_executions::database::{About, Column, KindAbout, SourceAbout, Writer};
use tracebraid_executions::{Metric, Union, build, with_threads};
use tracebraid_filter::periods::Periods;
use tracebraid_fold::{Analysis, Control, Options, fold};
use tracebraid_kernel_fold::{KernelAnalysis, Selection, Window};
use tracebraid_profile::Samples;
use tracebraid_reports::periods::EndedAnalysis;
use tracebraid_sql::{Questions, Sink, SqlError, Traces, Value, ValueRef};

/// A recorded trace.
pub(crate) fn set(name: &str) -> &'static TraceSet {
    let directory = tracebraid_testkit::recorded::unpacked(name);
    let set = TraceSet::open(&[directory.join(name)]).expect("a trace");
    Box::leak(Box::new(set))
}

pub(crate) fn folded<A: Analysis>(set: &TraceSet, analysis: &A, options: Options) -> A::Report {
    let outcome = fold(set, analysis, options, &Control::default());
    outcome.expect("nobody cancels").report
}

/// Traces that are opened already.
pub(crate) fn opened(set: &'static TraceSet, options: Options) -> Traces {
    let heard = |what: &str| panic!("{what}");
    Traces::new(Box::new(move || Ok(set)), Box::new(heard), options)
}

/// A database of the requests of a recorded trace.
pub(crate) fn database() -> PathBuf {
    static DONE: OnceLock<TempDir> = OnceLock::new();
    let directory = DONE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        write(&directory.path().join("requests.db"));
        directory
    });
    directory.path().join("requests.db")
}

fn write(path: &std::path::Path) {
    let set = set("kernel-ust-requests");
    let mut periods = Periods::default();
    let definition = "request : $evt.$name == \"app:request_begin\" :
        $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";
    periods.period(definition).expect("a definition");
    periods.captures("request : id = $evt.id").expect("captures");
    let analysis = EndedAnalysis::new(set, with_threads(periods), Window::default()).expect("a plan");
    let ended = folded(set, &analysis, Options::default());
    let graph = folded(
        set,
        &GraphAnalysis::new(set, Selection::default()),
        Options::default(),
    );
    let about = About {
        sources: set
            .traces
            .iter()
            .map(|trace| SourceAbout {
                label: "test".to_owned(),
                path: trace.paths[0].display().to_string(),
                host: None,
            })
            .collect(),
        kinds: vec![KindAbout {
            name: "request".to_owned(),
            definition: definition.to_owned(),
            values: vec!["id".to_owned()],
        }],
        figures: Metric::all().map(Column::from).collect(),
        renames: Vec::new(),
    };
    let mut writer = Writer::create(path, &about).expect("a database");
    let samples = Samples::default();
    let union = build(set, &graph, &samples, ended, Union::default(), &mut writer);
    writer.finish(&union.expect("executions")).expect("a file");
}

/// All rows of all answers.
#[derive(Default)]
pub(crate) struct All {
    pub(crate) columns: Vec<Vec<String>>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// Takes no more than that, if it is given.
    pub(crate) most: Option<usize>,
}

impl Sink for All {
    fn begin(&mut self, columns: &[String]) -> bool {
        self.columns.push(columns.to_vec());
        true
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<bool, SqlError> {
        self.rows.push(
            row.iter()
                .map(|value| Value::try_from(*value).expect("UTF-8"))
                .collect(),
        );
        Ok(self.most.is_none_or(|most| self.rows.len() < most))
    }

    fn end(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}

pub(crate) fn try_ask(questions: &Questions, text: &str) -> Result<Vec<Vec<Value>>, SqlError> {
    let mut all = All::default();
    questions.answer(text, &mut all).map(|()| all.rows)
}

pub(crate) fn ask(questions: &Questions, text: &str) -> Vec<Vec<Value>> {
    try_ask(questions, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The one value of an answer, an integer.
pub(crate) fn number(questions: &Questions, text: &str) -> i64 {
    match ask(questions, text).as_slice() {
        [row] => integer(&row[0]),
        rows => panic!("{text}: {rows:?}"),
    }
}

pub(crate) fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number,
        other => panic!("a number is expected: {other:?}"),
    }
}

pub(crate) fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        other => panic!("a text is expected: {other:?}"),
    }
}
