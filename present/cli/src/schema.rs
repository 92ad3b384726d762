//! JSON schemas of reports, from their columns.
//!
//! In: a report with all tables and no rows. Out: a JSON Schema (draft 2020-12) of what
//! `tracebraid_tables` makes of such a report. Promise: each property has a description.

mod meanings;

use serde_json::{Map, Value as Json, json};
use tracebraid_tables::{Column, Forms, Report, Section, Total, Unit};

/// The schema of the report of a command.
pub(crate) fn of(command: &str, title: &str, report: &Report) -> Json {
    let mut properties = head();
    properties.insert("total".to_owned(), totals(command, report));
    let sections = report.sections.iter();
    for section in sections.filter(|section| section.forms.contain(Forms::JSON)) {
        properties.insert(section.key.to_owned(), table(command, section));
    }
    // Subcommands are described together with their command.
    let page = command.split('-').next().unwrap_or(command);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("tracebraid {} --format json", command.replace('-', " ")),
        "description": format!(
            "{title}. Tables depend on --view and on the recorded events. With one --table, the \
             output is the array of that table. See docs/reference/{page}.md."
        ),
        "type": "object",
        "properties": properties,
        "required": ["begin_ns", "end_ns", "duration_ns", "hosts", "total"],
        "additionalProperties": false,
        "$defs": { "thread": thread() },
    })
}

/// The properties of `tracebraid_follow::Head`.
fn head() -> Map<String, Json> {
    let trace = || described("integer", "Index of the trace");
    let time = |what: &str| nanoseconds("integer", what);
    let optional_time = |what: &str| nanoseconds(["integer", "null"], what);
    let hosts = object([
        ("trace", trace()),
        (
            "name",
            described(
                ["string", "null"],
                "Name of the host; null if it was not recorded",
            ),
        ),
    ]);
    let mut not_recorded = object([
        ("trace", trace()),
        ("cpu", described("integer", "Number of the CPU")),
        (
            "before_ns",
            time("The CPU was not recorded before this time"),
        ),
        ("after_ns", time("The CPU was not recorded after this time")),
    ]);
    not_recorded["required"] = json!(["trace", "cpu"]);
    let until = "End of the last packet; null for a trace without packets";
    let unended = object([
        ("trace", trace()),
        ("recorded_until_ns", optional_time(until)),
    ]);
    let list =
        |what: &str, items: Json| json!({ "description": what, "type": "array", "items": items });
    let begin =
        "Start of the range, after the origin of the clock; null if the traces have no events";
    let missing = "CPUs that were not recorded, or not all the time; missing without any. A CPU \
                   with neither before_ns nor after_ns was not recorded at all";
    let by_stream = "Indexes of traces without CPU numbers: each of their streams counts as a CPU; \
                     missing without any";
    let unended_what = "Traces whose recorder was killed, or that were cut; missing without any";
    let properties = [
        ("begin_ns", optional_time(begin)),
        (
            "end_ns",
            optional_time("End of the range, after the origin of the clock; null without events"),
        ),
        ("duration_ns", time("Length of the range")),
        ("hosts", list("Hosts of the traces", hosts)),
        ("not_recorded", list(missing, not_recorded)),
        ("unended", list(unended_what, unended)),
        ("cpus_by_stream", list(by_stream, trace())),
    ];
    let properties = properties.into_iter();
    properties
        .map(|(key, schema)| (key.to_owned(), schema))
        .collect()
}

fn totals(command: &str, report: &Report) -> Json {
    let total = |total: &Total| {
        let what = meanings::of(command, "total", total.key);
        let schema = value((total.key, total.unit), total.is_optional, what);
        (total.key.to_owned(), titled(total.title, schema))
    };
    json!({
        "description": "Values about the report as a whole; some depend on --view",
        "type": "object",
        "properties": report.totals.iter().map(total).collect::<Map<_, _>>(),
        "additionalProperties": false,
    })
}

fn table(command: &str, section: &Section) -> Json {
    let mut items = row((command, section.key), &section.columns);
    // The columns of a histogram are those without --by, which `periods` does not have.
    if section.is_limited_by_group && command != "periods" {
        by_group(&mut items, section);
    }
    json!({
        "title": section.title,
        "description": format!("{}: one object for each row", section.title),
        "type": "array",
        "items": items,
    })
}

/// Adds the keys of groups: the key by which `--by` replaces the first column of a histogram, and
/// the keys of threads and processes.
fn by_group(row: &mut Json, histogram: &Section) {
    let thread = Column::new("thread", "Thread", Unit::Thread).optional();
    for (key, schema) in own_fields(&thread) {
        row["properties"][key] = schema;
    }
    let first = histogram.columns.first().map_or("", |column| column.key);
    if first == OF {
        return;
    }
    if let Some(required) = row["required"].as_array_mut() {
        required.retain(|key| key != first);
    }
    let what = format!("Group of the histogram; with --by, instead of {first}");
    row["properties"][OF] = described("string", &what);
}

/// Key of the column of groups in `tracebraid_reports`.
const OF: &str = "of";

/// The object of a row.
fn row(table: (&str, &str), columns: &[Column]) -> Json {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for column in columns
        .iter()
        .filter(|column| column.forms.contain(Forms::JSON))
    {
        if is_about(column) {
            properties.extend(own_fields(column));
            required.extend(["trace", "tid", "pid", "name"]);
        } else {
            properties.insert(column.key.to_owned(), cell(table, column));
            required.push(column.key);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// True for the thread or process that a row is about, whose fields are in the row itself.
fn is_about(column: &Column) -> bool {
    matches!(
        (column.unit, column.key),
        (Unit::Thread | Unit::ProcessThread, "thread") | (Unit::Process, "process")
    )
}

fn cell((command, section): (&str, &str), column: &Column) -> Json {
    let what = meanings::of(command, section, column.key);
    let nested = || row((command, column.key), column.nested);
    let schema = match column.unit {
        Unit::Row if column.is_optional => json!({
            "description": what,
            "anyOf": [nested(), { "type": "null" }],
        }),
        Unit::Row => {
            let mut schema = nested();
            schema["description"] = what.into();
            schema
        }
        Unit::Table => json!({ "description": what, "type": "array", "items": nested() }),
        unit => value((column.key, unit), column.is_optional, what),
    };
    titled(column.title, schema)
}

/// The schema of a value.
fn value((key, unit): (&str, Unit), is_optional: bool, what: &str) -> Json {
    let number = |name: &str| match is_optional {
        true => json!([name, "null"]),
        false => json!(name),
    };
    let is_mean = ["average", "deviation"]
        .iter()
        .any(|word| key.contains(word));
    let whole = match is_mean || ["from_ns", "to_ns"].contains(&key) {
        true => number("number"),
        false => number("integer"),
    };
    match unit {
        // A process is shown by its first thread.
        Unit::Thread | Unit::ProcessThread | Unit::Process | Unit::Tree => {
            thread_reference(is_optional, what)
        }
        Unit::Duration | Unit::Time => nanoseconds(whole, what),
        Unit::Bytes => with_unit("bytes", described(whole, what)),
        Unit::Share => with_unit("1", described(number("number"), what)),
        Unit::Number => described(number("number"), what),
        Unit::Count | Unit::Id | Unit::Priority | Unit::Cpu | Unit::Descriptor => {
            described(whole, what)
        }
        Unit::List => json!({
            "description": what,
            "type": "array",
            "items": { "type": "integer" },
        }),
        Unit::Named => json!({
            "description": what,
            "type": "object",
            "additionalProperties": { "type": ["integer", "number", "string", "null"] },
        }),
        _ => described(number("string"), what),
    }
}

fn described(kind: impl Into<Json>, what: &str) -> Json {
    json!({ "description": what, "type": kind.into() })
}

/// `x-unit` is no keyword of JSON Schema: validators ignore it.
fn with_unit(unit: &str, mut schema: Json) -> Json {
    schema["x-unit"] = unit.into();
    schema
}

fn nanoseconds(kind: impl Into<Json>, what: &str) -> Json {
    with_unit("ns", described(kind, what))
}

fn titled(title: &str, schema: Json) -> Json {
    let mut titled = json!({});
    if !title.is_empty() {
        titled["title"] = title.into();
    }
    if let (Json::Object(titled), Json::Object(schema)) = (&mut titled, schema) {
        titled.extend(schema);
    }
    titled
}

fn thread_reference(is_optional: bool, what: &str) -> Json {
    match is_optional {
        true => json!({
            "description": what,
            "anyOf": [{ "$ref": "#/$defs/thread" }, { "type": "null" }],
        }),
        false => json!({ "description": what, "$ref": "#/$defs/thread" }),
    }
}

/// An object that has all these properties and no others.
fn object<const N: usize>(properties: [(&str, Json); N]) -> Json {
    let required = properties
        .iter()
        .map(|(key, _)| json!(key))
        .collect::<Json>();
    let properties = properties
        .into_iter()
        .map(|(key, schema)| (key.to_owned(), schema));
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

fn thread() -> Json {
    let fields = object([
        ("trace", described("integer", "Index of the trace")),
        (
            "tid",
            described(["integer", "null"], "Thread id; null for unknown threads"),
        ),
        (
            "pid",
            described(
                ["integer", "null"],
                "Process id; null if no event records the process",
            ),
        ),
        (
            "name",
            described(["string", "null"], "Last known name; null if unknown"),
        ),
    ]);
    titled("Thread", fields)
}

/// The properties that a row has for the thread or process that it is about.
fn own_fields(column: &Column) -> [(String, Json); 4] {
    let (tid, name) = match column.unit {
        Unit::Process => (
            "Id of the first thread of the process, or of the thread whose process is unknown",
            "Last known name of the first thread; null if unknown",
        ),
        _ => (
            "Thread id; null for unknown threads",
            "Last known name of the thread; null if unknown",
        ),
    };
    let trace = match column.is_optional {
        true => described(
            ["integer", "null"],
            "Index of the trace; null if the row has no thread",
        ),
        false => described("integer", "Index of the trace"),
    };
    [
        ("trace", trace),
        ("tid", described(["integer", "null"], tid)),
        (
            "pid",
            described(
                ["integer", "null"],
                "Process id; null if no event records the process",
            ),
        ),
        ("name", described(["string", "null"], name)),
    ]
    .map(|(key, schema)| (key.to_owned(), schema))
}
