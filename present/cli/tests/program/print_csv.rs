//! Rows of CSV contain the same values as JSON lines.

use std::path::Path;

use crate::support::small::Small;
use crate::support::{failure, recorded, recorded_trace, run, text};
use serde_json::Value;
use tracebraid_ctf::schema::CtfVersion;
use tracebraid_testkit::generate::{Options, generate};

/// The rows of CSV text (RFC 4180), with the names of the columns first.
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = csv.chars().peekable();
    while let Some(character) = characters.next() {
        let cell = row.last_mut().unwrap();
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(String::new()),
            '\n' if !is_quoted => rows.push(std::mem::replace(&mut row, vec![String::new()])),
            character => cell.push(character),
        }
    }
    assert!(!is_quoted && row == [""], "{csv}");
    rows
}

/// The rows that `print` writes for the options.
fn printed(options: &[&str]) -> Vec<Vec<String>> {
    rows(&text(&[&["print", "--format", "csv"], options].concat()))
}

/// Whether a cell contains a value of JSON.
fn is_same(cell: &str, value: &Value) -> bool {
    match value {
        Value::Null => cell.is_empty(),
        Value::String(text) => cell == text,
        value => serde_json::from_str::<Value>(cell).is_ok_and(|cell| cell == *value),
    }
}

/// A record of JSON that is compared with a row.
struct Comparison<'a> {
    names: &'a [String],
    row: &'a [String],
    /// Number of cells that are not empty in the JSON.
    filled: usize,
}

impl Comparison<'_> {
    fn cell(&self, name: &str) -> Option<&str> {
        let column = self.names.iter().position(|other| other == name)?;
        Some(&self.row[column])
    }

    fn value(&mut self, name: &str, value: &Value) {
        let cell = self.cell(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(is_same(cell, value), "{name}: {cell} {value}");
        self.filled += usize::from(!cell.is_empty());
    }

    /// Compares a field, or the members of a structure.
    fn field(&mut self, group: &str, path: &str, value: &Value) {
        let value = match value {
            Value::Object(object) if object.len() == 2 && object.contains_key("labels") => {
                &object["value"]
            }
            value => value,
        };
        let names = [format!("{group}.{path}"), path.to_owned()];
        let is_found = |name: &&String| self.cell(name).is_some_and(|cell| is_same(cell, value));
        match (names.iter().find(is_found), value) {
            (Some(name), value) => self.value(name, value),
            (None, Value::Object(members)) => {
                for (name, member) in members {
                    self.field(group, &format!("{path}.{name}"), member);
                }
            }
            (None, value) => panic!("no column has {path}: {value}"),
        }
    }

    fn record(&mut self, json: &Value) {
        self.value("time_ns", &json["timestamp"]);
        self.value("event", &json["name"]);
        for (name, key) in [("cpu", "cpu"), ("host", "hostname"), ("trace", "trace")] {
            if self.cell(name).is_some() {
                self.value(name, &json[key]);
            }
        }
        for scope in [
            "packet_context",
            "common_context",
            "specific_context",
            "payload",
        ] {
            let group = if scope == "payload" { scope } else { "context" };
            for (name, value) in json[scope].as_object().into_iter().flatten() {
                let is_cpu = ["cpu_id", "cpu"].contains(&name.as_str());
                if scope == "packet_context" && is_cpu {
                    assert_eq!(value, &json["cpu"]);
                } else {
                    self.field(group, name, value);
                }
            }
        }
        let filled = self.row.iter().filter(|cell| !cell.is_empty()).count();
        assert_eq!(filled, self.filled, "{:?}\n{json}", self.row);
    }
}

/// Checks that CSV and JSON have the same values; returns the number of records.
fn equals_json(options: &[&str]) -> usize {
    let csv = printed(options);
    let json = text(&[&["print", "--format", "json"], options].concat());
    let (names, rows) = csv.split_first().unwrap();
    assert_eq!(rows.len(), json.lines().count());
    for (row, json) in rows.iter().zip(json.lines()) {
        assert_eq!(row.len(), names.len());
        let json = serde_json::from_str(json).unwrap();
        let mut comparison = Comparison {
            names,
            row,
            filled: 0,
        };
        comparison.record(&json);
    }
    rows.len()
}

#[test]
fn values_of_recorded_traces_equal_those_of_json() {
    let kernel = recorded_trace("kernel-mix-small");
    let some = "sched_*,irq_*,block_*,syscall_exit_*,lttng_statedump_process_state";
    assert!(equals_json(&["--name", some, &kernel]) > 10_000);
    let of_call = "syscall_*_poll || syscall_entry_open* && filename =~ '/proc/*'";
    assert!(equals_json(&["--filter", of_call, &kernel]) > 50);
    assert!(equals_json(&[&recorded_trace("ust-counters")]) > 3000);
    let probes = recorded_trace("probe-requests");
    let of_calls = equals_json(&["--name", "syscall_*", &probes]);
    let of_others = equals_json(&["--filter", "!*syscall_*", &probes]);
    assert!(of_calls > 100 && of_calls + of_others > 3000);
    let both = recorded("twohost");
    let [client, server] = ["client", "server"].map(|host| both.join(format!("twohost-{host}")));
    let both = [client.to_str().unwrap(), server.to_str().unwrap()];
    assert!(equals_json(&[&["--name", "net_*,sched_wakeup"], &both[..]].concat()) > 1000);
}

#[test]
fn values_of_random_traces_equal_those_of_json() {
    let mut compared = 0;
    for seed in 0..80 {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            seed,
            version: [CtfVersion::V1_8, CtfVersion::V2_0][seed as usize % 2],
            events: 100,
            ..Options::default()
        };
        generate(&options).unwrap().save(directory.path()).unwrap();
        let path = directory.path().to_str().unwrap();
        // Some of the traces have too many columns.
        if run(&["print", "--format", "csv", path]).status.code() == Some(0) {
            compared += equals_json(&[path]);
        }
    }
    assert!(compared > 1000, "{compared}");
}

fn small(directory: &Path) -> String {
    let trace = Small::default().write(&directory.join("small"));
    trace.to_str().unwrap().to_owned()
}

#[test]
fn every_kind_of_field_is_a_column() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    assert_eq!(equals_json(&[&trace]), 9);
    let csv = text(&["print", "--format", "csv", "--name", "compound", &trace]);
    let expected = "\
time_ns,cpu,event,vtid,nested.a,nested.inner.b,numbers,count,sequence,points,label,tag,choice
1700000001000000001,3,compound,102,1,2,\"[7,8,9]\",2,\"[0,1000]\",\"[{\"\"x\"\":1,\"\"y\"\":2},{\"\"x\"\":3,\"\"y\"\":4}]\",0,0,5
1700000003000000000,3,compound,105,1,2,\"[7,8,9]\",1,[0],\"[{\"\"x\"\":1,\"\"y\"\":2},{\"\"x\"\":3,\"\"y\"\":4}]\",3,1,else
1700090000000000000,3,compound,108,1,2,\"[7,8,9]\",0,[],\"[{\"\"x\"\":1,\"\"y\"\":2},{\"\"x\"\":3,\"\"y\"\":4}]\",9,0,5
";
    assert_eq!(csv, expected);
}

#[test]
fn cells_are_quoted_only_if_they_must_be() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    let csv = text(&[
        "print", "--format", "csv", "--name", "strings*", "--limit", "1", &trace,
    ]);
    let expected = "\
time_ns,cpu,event,vtid,where,plain,escaped,fixed,length,counted
1700000001000000001,3,\"strings:\"\"quoted\"\"\",101,in a context,\"a string of more than sixteen bytes, and then some more\",\"it's \"\"so\"\"?\\\n\t\u{7}\u{8}\u{1b}\u{c}\r\u{b}\u{1}\u{7f} déjà\",fix,4,four
";
    assert_eq!(csv, expected);
}

#[test]
fn a_payload_field_with_the_name_of_a_context_is_qualified() {
    let trace = recorded_trace("probe-requests");
    let names = &printed(&["--filter", "!*syscall_*", &trace])[0];
    assert!(names.contains(&"tid".to_owned()), "{names:?}");
    assert!(names.contains(&"payload.tid".to_owned()), "{names:?}");
    let alone = &printed(&["--name", "sched_wakeup", "--limit", "0", &trace]);
    assert_eq!(
        alone,
        &[[
            "time_ns",
            "cpu",
            "event",
            "comm",
            "tid",
            "prio",
            "target_cpu"
        ]]
    );
}

#[test]
fn columns_are_those_of_the_selected_events() {
    let trace = recorded_trace("kernel-mix-small");
    let switch = "\
time_ns,cpu,event,prev_comm,prev_tid,prev_prio,prev_state,next_comm,next_tid,next_prio
";
    let by_name = text(&["print", "--format", "csv", "--name", "sched_switch", &trace]);
    assert!(by_name.starts_with(switch), "{by_name:.200}");
    let filter = "sched_switch && next_tid == 284";
    let filtered = text(&["print", "--format", "csv", "--filter", filter, &trace]);
    assert!(filtered.starts_with(switch), "{filtered:.200}");
    let several = printed(&["--name", "sched_switch,sched_wakeup", &trace]);
    assert!(several.iter().all(|row| row.len() == several[0].len()));
    let events: std::collections::BTreeSet<&str> =
        several[1..].iter().map(|row| row[2].as_str()).collect();
    assert_eq!(
        events.into_iter().collect::<Vec<_>>(),
        ["sched_switch", "sched_wakeup"]
    );
}

#[test]
fn several_hosts_and_traces_have_columns() {
    let both = recorded("twohost");
    let [client, server] = ["client", "server"].map(|host| both.join(format!("twohost-{host}")));
    let rows = printed(&[
        "--name",
        "sched_wakeup",
        client.to_str().unwrap(),
        server.to_str().unwrap(),
    ]);
    assert_eq!(rows[0][..5], ["time_ns", "host", "trace", "cpu", "event"]);
    let hosts: std::collections::BTreeSet<&str> =
        rows[1..].iter().map(|row| row[1].as_str()).collect();
    assert_eq!(hosts.len(), 2, "{hosts:?}");
}

#[test]
fn the_names_of_the_columns_are_printed_even_without_records() {
    let trace = recorded_trace("kernel-mix-small");
    let output = run(&["print", "--format", "csv", "--name", "no_such", &trace]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "time_ns,event\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no_such"));
    let nothing = "sched_switch && next_tid == 99999999";
    let rows = printed(&["--filter", nothing, &trace]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].len(), 10);
    let rows = printed(&["--name", "sched_switch", "--limit", "2", &trace]);
    assert_eq!(rows.len(), 3);
}

#[test]
fn a_file_gets_the_same_rows_and_options_of_text_lines_have_no_effect() {
    let directory = tempfile::tempdir().unwrap();
    let trace = recorded_trace("kernel-mix-small");
    let file = directory.path().join("rows.csv");
    let options = ["print", "--format", "csv", "--name", "irq_*", &trace];
    let expected = text(&options);
    let written = text(&[&options[..], &["-w", file.to_str().unwrap()]].concat());
    assert_eq!(written, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    let of_text = [
        "--clock-cycles",
        "--clock-date",
        "--no-delta",
        "--fields",
        "all",
        "--names",
        "none",
        "--color",
        "always",
    ];
    assert_eq!(text(&[&options[..], &of_text].concat()), expected);
}

#[test]
fn times_have_the_offset() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    let rows = printed(&["--clock-offset", "-1", "--clock-offset-ns", "5", &trace]);
    assert_eq!(rows[1][0], "1700000000000000005");
}

#[test]
fn functions_are_in_the_last_column() {
    let trace = recorded_trace("ust-cyg-profile");
    let options = [
        "--symbols",
        "--name",
        "lttng_ust_cyg*",
        "--limit",
        "1",
        &trace,
    ];
    let rows = printed(&options);
    assert_eq!(rows[0].last().unwrap(), "symbols");
    let json = text(&[&["print", "--format", "json"], &options[..]].concat());
    let json: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    let symbols: Value = serde_json::from_str(rows[1].last().unwrap()).unwrap();
    assert_eq!(symbols, json["symbols"]);
    let without = ["--symbols", "--name", "lttng_ust_statedump:start", &trace];
    assert!(
        printed(&without)[1..]
            .iter()
            .all(|row| row.last().unwrap().is_empty())
    );
}

#[test]
fn too_many_columns_are_refused_before_the_file_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.csv");
    let trace = recorded("twohost").join("twohost-client");
    let trace = trace.to_str().unwrap();
    let options = [
        "print",
        "--format",
        "csv",
        "-w",
        file.to_str().unwrap(),
        trace,
    ];
    let (code, message) = failure(&options);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("--name"), "{message}");
    assert!(!file.exists());
}
