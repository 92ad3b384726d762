//! LAMI 1.0, the machine interface of lttng-analyses. Trace Compass uses it to run an analysis, to
//! show its tables and to draw charts of them. `docs/how-to/lami.md` explains how to register
//! tracebraid there.
//!
//! A program answers in four phases: `--mi-version`, `--metadata`, `--test-compatibility TRACE`,
//! and the results. Trace Compass asks for the version without a command and for the metadata
//! without a trace, so the arguments are inspected before clap parses them.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value as Json, json};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{Head, KernelAnalysis, Selection, Thread, Views};
use tracebraid_tables::{Column, Forms, Report, Section, Unit, Value, View};

use crate::commands::Show;
use crate::output::Output;

/// Version of the interface.
const VERSION: &str = "1.0";

/// Requests other than the one for results.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The version of the interface.
    Version,
    /// Titles and columns of a command's tables.
    Metadata(String),
    /// Whether a command can analyse a trace.
    Compatibility(String, PathBuf),
}

impl Phase {
    /// Recognizes a request in the arguments after the program's name; `None` for other command
    /// lines.
    pub(crate) fn of(arguments: &[String]) -> Option<Phase> {
        let has = |option: &str| arguments.iter().any(|argument| argument == option);
        let command = || {
            arguments
                .first()
                .filter(|command| !command.starts_with('-'))
                .cloned()
        };
        if has("--mi-version") {
            Some(Phase::Version)
        } else if has("--metadata") {
            command().map(Phase::Metadata)
        } else if has("--test-compatibility") {
            let trace = arguments.last().map(PathBuf::from)?;
            command().map(|command| Phase::Compatibility(command, trace))
        } else {
            None
        }
    }

    /// Answers the request; `of` finds a command that supports LAMI.
    pub(crate) fn answer(self, of: impl Fn(&str) -> Option<Analysis>) -> ExitCode {
        let command =
            |name: &str| of(name).ok_or_else(|| format!("tracebraid {name} does not support LAMI"));
        let answer = match self {
            Phase::Version => Ok(Some(VERSION.to_owned())),
            Phase::Metadata(name) => {
                command(&name).map(|analysis| Some(analysis.metadata(&name).to_string()))
            }
            Phase::Compatibility(name, trace) => {
                command(&name).and_then(|analysis| analysis.test(&trace).map(|()| None))
            }
        };
        let (text, code) = match answer {
            Ok(text) => (text.unwrap_or_default(), ExitCode::SUCCESS),
            Err(message) => (
                json!({ "error-message": message }).to_string(),
                ExitCode::FAILURE,
            ),
        };
        let newline = if text.is_empty() { "" } else { "\n" };
        match Output::print(&format!("{text}{newline}")) {
            Ok(_) => code,
            Err(failure) => failure.report(),
        }
    }
}

/// A command that supports LAMI.
pub(crate) struct Analysis {
    /// One-line description of the report.
    pub(crate) title: &'static str,
    /// Makes an empty report: all tables, without rows.
    pub(crate) empty: fn() -> Report,
    /// Explains why traces cannot be analysed; `None` if they can.
    pub(crate) lacks: fn(&TraceSet) -> Option<&'static str>,
}

impl Analysis {
    /// LAMI description of a kernel analysis.
    pub(crate) fn of<A: KernelAnalysis<Report: Default + Show, Options: From<Views>>>(
        title: &'static str,
    ) -> Analysis {
        Analysis {
            title,
            empty: empty::<A>,
            lacks: |set| A::new(set, Selection::default()).lacks(),
        }
    }

    fn metadata(&self, name: &str) -> Json {
        let classes = shown(&(self.empty)()).map(class).collect::<Map<_, _>>();
        json!({
            "mi-version": { "major": 1, "minor": 0 },
            "version": version(),
            "title": format!("tracebraid {name}"),
            "description": self.title,
            "authors": [],
            "tags": ["linux-kernel", "tracebraid"],
            "table-classes": classes,
        })
    }

    fn test(&self, trace: &PathBuf) -> Result<(), String> {
        let paths = crate::imported::resolve(std::slice::from_ref(trace))
            .map_err(|failure| failure.message().to_owned())?;
        let set = TraceSet::open(&paths).map_err(|error| error.to_string())?;
        (self.lacks)(&set).map_or(Ok(()), |lack| Err(lack.to_owned()))
    }
}

/// The report on an empty set of traces, with every view.
pub(crate) fn empty<A: KernelAnalysis<Report: Default + Show, Options: From<Views>>>() -> Report {
    let set = TraceSet::default();
    let views = Views {
        views: View::ALL.to_vec(),
        ..Views::default()
    };
    let analysis = A::with(&set, Selection::default(), views.into());
    let outcome = fold(&set, &analysis, Options::default(), &Control::default());
    let mut report = outcome.map(|outcome| outcome.report).unwrap_or_default();
    std::mem::take(report.sections())
}

fn version() -> Json {
    let mut numbers = env!("CARGO_PKG_VERSION")
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    json!({ "major": next(), "minor": next(), "patch": next() })
}

/// A section as a table class.
fn class(section: &Section) -> (String, Json) {
    let columns = section.columns.iter().filter(|column| is_shown(column));
    let columns: Vec<Json> = columns.map(column).collect();
    let class = json!({ "title": section.title, "column-descriptions": columns });
    (section.key.to_owned(), class)
}

fn column(column: &Column) -> Json {
    let mut description = json!({ "title": column.title, "class": class_of(column.unit) });
    if column.unit == Unit::Count {
        description["unit"] = json!(column.title.to_lowercase());
    }
    description
}

/// The LAMI class of a column's values.
fn class_of(unit: Unit) -> &'static str {
    match unit {
        Unit::Count | Unit::Id | Unit::Number | Unit::Priority => "number",
        Unit::Row | Unit::Table => "number",
        Unit::Bytes => "size",
        Unit::Duration => "duration",
        Unit::Time => "timestamp",
        Unit::Share => "ratio",
        Unit::Text | Unit::Irq | Unit::Command | Unit::List | Unit::Named => "string",
        Unit::Thread | Unit::ProcessThread | Unit::Process | Unit::Tree => "process",
        Unit::Cpu => "cpu",
        Unit::Syscall => "syscall",
        Unit::Disk => "disk",
        Unit::Interface => "netif",
        Unit::Path => "path",
        Unit::Descriptor => "fd",
    }
}

/// The tables that LAMI shows.
fn shown(report: &Report) -> impl Iterator<Item = &Section> {
    let sections = report.sections.iter();
    sections.filter(|section| section.forms.contain(Forms::LAMI))
}

fn is_shown(column: &Column) -> bool {
    column.forms.contain(Forms::LAMI)
}

/// A report as LAMI's results.
pub(crate) fn results(report: &Report) -> String {
    let sections = shown(report).filter(|section| !section.rows.is_empty());
    let tables: Vec<Json> = sections
        .map(|section| table(&report.head, section))
        .collect();
    json!({ "results": tables }).to_string() + "\n"
}

fn table(head: &Head, section: &Section) -> Json {
    let time =
        |time: Option<tracebraid_ctf::clock::Timestamp>| timestamp(time.map_or(0, |time| time.0));
    let row = |values: &Vec<Value>| -> Json {
        let cells = section.columns.iter().zip(values);
        let cells = cells.filter(|(column, _)| is_shown(column));
        cells
            .map(|(column, value)| cell(column.unit, value))
            .collect()
    };
    json!({
        "class": section.key,
        "time-range": { "class": "time-range", "begin": time(head.begin), "end": time(head.end) },
        "data": section.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn timestamp(time: i64) -> Json {
    json!({ "class": "timestamp", "value": time })
}

fn cell(unit: Unit, value: &Value) -> Json {
    let class = class_of(unit);
    let plain = match value {
        Value::None => return Json::Null,
        Value::Flag(is_so) => json!(is_so),
        Value::Thread(thread) => return process(class, thread),
        Value::Process(own) => return process(class, &Thread::from(&**own)),
        Value::Branch(branch) => return process(class, &branch.thread),
        Value::Time(time) => return timestamp(time.0),
        Value::Unsigned(number) => json!(number),
        Value::Signed(number) => json!(number),
        Value::Float(_) | Value::Part(..) => json!(value.number()),
        Value::List(values) | Value::Row(values) => json!(plain_list(values)),
        Value::Rows(rows) => json!(rows.len()),
        Value::Text(text) => json!(text),
        Value::Named(values) => json!(Value::named_text(values)),
    };
    let key = match class {
        "cpu" => "id",
        "syscall" | "disk" | "netif" => "name",
        "path" => "path",
        "fd" => "fd",
        _ => "value",
    };
    json!({ "class": class, key: plain })
}

/// A cell for a thread or a process.
fn process(class: &str, thread: &Thread) -> Json {
    let mut cell = json!({ "class": class });
    let fields: [(&str, Json); 3] = [
        ("pid", thread.pid.into()),
        ("tid", thread.tid.into()),
        ("name", thread.name.clone().into()),
    ];
    for (key, field) in fields.into_iter().filter(|(_, field)| !field.is_null()) {
        cell[key] = field;
    }
    cell
}

/// A list of numbers or texts, separated by spaces.
fn plain_list(values: &[Value]) -> String {
    let texts = values.iter().filter_map(|value| match value {
        Value::Unsigned(number) => Some(number.to_string()),
        Value::Signed(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(arguments: &[&str]) -> Option<Phase> {
        Phase::of(
            &arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn phases_are_told_from_results() {
        assert_eq!(phase(&["--mi-version"]), Some(Phase::Version));
        let metadata = Phase::Metadata("irq".to_owned());
        assert_eq!(
            phase(&["irq", "--format", "lami", "--metadata"]),
            Some(metadata)
        );
        let compatibility = Phase::Compatibility("irq".to_owned(), PathBuf::from("a trace"));
        assert_eq!(
            phase(&["irq", "--test-compatibility", "a trace"]),
            Some(compatibility)
        );
        assert_eq!(phase(&["irq", "--format", "lami", "a trace"]), None);
        assert_eq!(phase(&["--metadata"]), None);
    }
}
