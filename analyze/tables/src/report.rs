//! A report: a head, totals, sentences and tables.

use tracebraid_follow::{Head, KernelReport, Thread, ThreadFilter};
use tracebraid_statistics::Ranges;

use crate::{Section, Sentence, Unit, Value};

/// The result of an analysis, in the form from which every format is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The time range and the hosts.
    pub head: Head,
    /// Values about the report as a whole.
    pub totals: Vec<Total>,
    /// Sentences above the tables in text; if empty, text shows the totals there.
    pub summary: Vec<Sentence>,
    /// The tables.
    pub sections: Vec<Section>,
    /// Whether the options selected any data, where the tables do not show it.
    pub is_chosen: Option<bool>,
    /// Bounds of histograms for a second pass; not shown.
    pub ranges: Ranges,
    /// Warnings about options that selected nothing; not part of the tables.
    pub notes: Vec<String>,
}

/// A value about the report as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// Name in JSON and CSV.
    pub key: &'static str,
    /// Plural noun after the value: `system calls`.
    pub title: &'static str,
    /// Noun after the value 1: `system call`.
    pub one: &'static str,
    /// The value.
    pub value: Value,
    /// Unit of the value.
    pub unit: Unit,
    /// True if the value may be unknown ([`Value::None`]).
    pub is_optional: bool,
}

impl Total {
    /// A count.
    pub fn new(key: &'static str, title: &'static str, value: Value) -> Total {
        Total {
            key,
            title,
            one: title,
            value,
            unit: Unit::Count,
            is_optional: false,
        }
    }

    /// Sets the singular noun.
    pub fn or_one(self, one: &'static str) -> Total {
        Total { one, ..self }
    }

    /// Allows an unknown value.
    pub fn optional(self) -> Total {
        Total {
            is_optional: true,
            ..self
        }
    }

    /// Sets a unit other than a count.
    pub fn of(self, unit: Unit) -> Total {
        Total { unit, ..self }
    }
}

impl Report {
    /// The table with that key.
    pub fn section(&self, key: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.key == key)
    }

    /// The rows of the table with that key.
    pub fn rows(&self, key: &str) -> impl Iterator<Item = crate::Row<'_>> {
        self.section(key).into_iter().flat_map(Section::iter)
    }

    /// The total with that key, or [`Value::None`].
    pub fn total(&self, key: &str) -> Value {
        let total = self.totals.iter().find(|total| total.key == key);
        total.map_or(Value::None, |total| total.value.clone())
    }

    /// The total with that key if it is [`Value::Unsigned`], else 0.
    pub fn unsigned(&self, key: &str) -> u64 {
        match self.total(key) {
            Value::Unsigned(number) => number,
            _ => 0,
        }
    }
}

/// True for a value that contains a selected thread.
fn is_shown(filter: &ThreadFilter, unit: Unit, value: &Value) -> bool {
    match (unit, value) {
        // A process is shown by its first thread, whichever threads were selected.
        (Unit::Process, Value::Thread(_)) | (_, Value::Process(_)) => true,
        (_, Value::Thread(thread)) => filter.shows(thread as &Thread),
        _ => false,
    }
}

impl KernelReport for Report {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        let has_rows = || self.sections.iter().any(|section| !section.rows.is_empty());
        !self.is_chosen.unwrap_or_else(has_rows)
    }

    /// Tables that are not about threads have rows whichever threads were selected, so they are
    /// ignored.
    fn lacks_threads(&self, filter: &ThreadFilter) -> bool {
        if let Some(is_chosen) = self.is_chosen {
            return !is_chosen;
        }
        let tells = |section: &&Section| {
            let mut units = section.columns.iter().map(|column| column.unit);
            units.any(|unit| matches!(unit, Unit::Thread | Unit::ProcessThread | Unit::Process))
        };
        let has = |section: &Section| {
            let units: Vec<Unit> = section.columns.iter().map(|column| column.unit).collect();
            let mut cells = section.rows.iter().flat_map(|row| units.iter().zip(row));
            cells.any(|(unit, value)| is_shown(filter, *unit, value))
        };
        let mut telling = self.sections.iter().filter(tells).peekable();
        telling.peek().is_some() && !telling.any(has)
    }

    fn truncate(&mut self, rows: usize) {
        let sections = self.sections.iter_mut();
        sections.for_each(|section| section.truncate(rows));
    }
}
