//! Shared by the tests: a database of a recorded trace, and answers as values.

use std::path::PathBuf;
use std::sync::OnceLock;

use tempfile::TempDir;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_executions::database::{About, Writer};
use tracebraid_executions::{BuildRules, Union, build};
use tracebraid_language::executions::Definitions;
use tracebraid_profile::Samples;
use tracebraid_sql::{Questions, Sink, SqlError, Traces, Value, ValueRef};

/// A recorded trace.
pub(crate) fn set(name: &str) -> &'static TraceSet {
    let directory = tracebraid_testkit::recorded::unpacked(name);
    let set = TraceSet::open(&[directory.join(name)]).expect("a trace");
    Box::leak(Box::new(set))
}

pub(crate) fn folded<A: Analysis>(set: &TraceSet, analysis: &A, options: Options) -> A::Report {
    let outcome = fold(set, analysis, options, &Control::default());
    outcome.expect("not cancelled").report
}

/// Traces that are already open.
pub(crate) fn opened(set: &'static TraceSet, options: Options) -> Traces {
    let heard = |what: &str| panic!("{what}");
    Traces::new(Box::new(move |_| Ok(set)), Box::new(heard), options)
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

const REQUESTS: &str = "
period request : app:request_begin :
    app:request_end && id == $begin.id
captures request : id = id
";

fn write(path: &std::path::Path) {
    let set = set("kernel-ust-requests");
    let mut definitions = Definitions::default();
    definitions.file(REQUESTS).expect("definitions");
    let about = About::new(set, |_| "test".to_owned(), &definitions, REQUESTS);
    let rules = BuildRules {
        definitions,
        ..BuildRules::default()
    };
    let mut writer = Writer::create(path, &about).expect("a database");
    let how = (Options::default(), &Control::default());
    let built = build(
        set,
        &rules,
        &Samples::default(),
        Union::default(),
        how,
        &mut writer,
    );
    writer.finish(&built.expect("executions")).expect("a file");
}

/// All rows of all answers.
#[derive(Default)]
pub(crate) struct All {
    pub(crate) columns: Vec<Vec<String>>,
    pub(crate) rows: Vec<Vec<Value>>,
    /// Takes at most this number of rows.
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

/// The only value of an answer, an integer.
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
