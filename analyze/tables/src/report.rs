//! Reports.

use tracebraid_follow::{Head, KernelReport, Thread, ThreadFilter};
use tracebraid_statistics::Ranges;

use crate::{Section, Sentence, Unit, Value};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The range and the machines.
    pub head: Head,
    /// What is said of all of it together.
    pub totals: Vec<Total>,
    /// What stands above the tables in text; if nothing, the totals do.
    pub summary: Vec<Sentence>,
    /// The tables.
    pub sections: Vec<Section>,
    /// Whether anything was chosen, where the tables do not tell.
    pub is_chosen: Option<bool>,
    /// For a second pass; not shown.
    pub ranges: Ranges,
    /// What of the choice chose nothing, in sentences for people; no part of the tables.
    pub notes: Vec<String>,
}

/// Something that is said of all together.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// For programs.
    pub key: &'static str,
    /// For people, behind the value: `system calls`.
    pub title: &'static str,
    /// The same behind 1: `system call`.
    pub one: &'static str,
    /// How much.
    pub value: Value,
    /// Of what.
    pub unit: Unit,
}

impl Total {
    /// That of which there is so much.
    pub fn new(key: &'static str, title: &'static str, value: Value) -> Total {
        Total {
            key,
            title,
            one: title,
            value,
            unit: Unit::Count,
        }
    }

    /// Says what stands behind 1.
    pub fn or_one(self, one: &'static str) -> Total {
        Total { one, ..self }
    }

    /// Says that it is no number of things.
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

    /// What is said of all together under that key.
    pub fn total(&self, key: &str) -> Value {
        let total = self.totals.iter().find(|total| total.key == key);
        total.map_or(Value::None, |total| total.value.clone())
    }

    /// The same, if it is a number without sign; else 0.
    pub fn unsigned(&self, key: &str) -> u64 {
        match self.total(key) {
            Value::Unsigned(number) => number,
            _ => 0,
        }
    }
}

/// True for the value of a thread that is shown.
fn is_shown(filter: &ThreadFilter, unit: Unit, value: &Value) -> bool {
    match (unit, value) {
        // It is named after its first thread, whichever were asked for.
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

    /// Tables of what belongs to nobody have rows all the same.
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
