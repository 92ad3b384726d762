//! Reports as JSON: the head, `total`, and each section as a list of objects.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::section::is_about;
use crate::{Column, Forms, Report, Section, Total, Value};
use tracebraid_follow::share;

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let head = &self.head;
        map.serialize_entry("begin_ns", &head.begin.map(|time| time.0))?;
        map.serialize_entry("end_ns", &head.end.map(|time| time.0))?;
        map.serialize_entry("duration_ns", &head.duration_ns)?;
        map.serialize_entry("hosts", &head.hosts)?;
        if !head.not_recorded.is_empty() {
            map.serialize_entry("not_recorded", &head.not_recorded)?;
        }
        if !head.unended.is_empty() {
            map.serialize_entry("unended", &head.unended)?;
        }
        if !head.cpus_by_stream.is_empty() {
            map.serialize_entry("cpus_by_stream", &head.cpus_by_stream)?;
        }
        map.serialize_entry("total", &Totals(&self.totals))?;
        let sections = self.sections.iter();
        for section in sections.filter(|section| section.forms.contain(Forms::JSON)) {
            map.serialize_entry(section.key, section)?;
        }
        map.end()
    }
}

struct Totals<'a>(&'a [Total]);

impl Serialize for Totals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|total| {
            debug_assert!(
                total.is_optional || total.value != Value::None,
                "the total {} is missing",
                total.key
            );
            (total.key, &total.value)
        }))
    }
}

impl Serialize for Section {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for values in &self.rows {
            rows.serialize_element(&Row {
                columns: &self.columns,
                values,
            })?;
        }
        rows.end()
    }
}

struct Row<'a> {
    columns: &'a [Column],
    values: &'a [Value],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let cells = self.columns.iter().zip(self.values);
        for (column, value) in cells.filter(|(column, _)| column.forms.contain(Forms::JSON)) {
            // The JSON schemas rely on it.
            debug_assert!(
                column.is_optional || *value != Value::None,
                "a value of the column {} is missing",
                column.key
            );
            match value {
                // The thread or process that a row is about has its fields in the row's object
                // itself.
                Value::Thread(thread) if is_about(column) => {
                    map.serialize_entry("trace", &thread.trace)?;
                    map.serialize_entry("tid", &thread.tid)?;
                    map.serialize_entry("pid", &thread.pid)?;
                    map.serialize_entry("name", &thread.name)?;
                }
                Value::Process(process) if is_about(column) => {
                    map.serialize_entry("trace", &process.trace)?;
                    map.serialize_entry("pid", &process.pid)?;
                    map.serialize_entry("tid", &process.tid)?;
                    map.serialize_entry("name", &process.name)?;
                }
                Value::None if is_about(column) => {
                    for key in ["trace", "tid", "pid", "name"] {
                        map.serialize_entry(key, &())?;
                    }
                }
                Value::Row(values) => map.serialize_entry(column.key, &Row::of(column, values))?,
                Value::Rows(rows) => map.serialize_entry(column.key, &Rows(column, rows))?,
                value => map.serialize_entry(column.key, value)?,
            }
        }
        map.end()
    }
}

impl<'a> Row<'a> {
    /// A row of the nested table in a column.
    fn of(column: &'a Column, values: &'a [Value]) -> Row<'a> {
        Row {
            columns: column.nested,
            values,
        }
    }
}

/// The nested table in a column.
struct Rows<'a>(&'a Column, &'a [Vec<Value>]);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|values| Row::of(self.0, values)))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::None => serializer.serialize_none(),
            Value::Unsigned(number) => serializer.serialize_u64(*number),
            Value::Signed(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::Flag(is_so) => serializer.serialize_bool(*is_so),
            Value::Part(part, whole) => serializer.serialize_f64(share(*part, *whole)),
            Value::Time(time) => serializer.serialize_i64(time.0),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Thread(thread) => thread.serialize(serializer),
            Value::Process(process) => process.serialize(serializer),
            Value::Branch(branch) => branch.thread.serialize(serializer),
            Value::List(values) | Value::Row(values) => serializer.collect_seq(values.iter()),
            Value::Rows(rows) => serializer.collect_seq(rows.iter()),
            Value::Named(values) => {
                serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}
