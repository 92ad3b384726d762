//! Executions of one kind, by columns.

use crate::contexts::ContextId;
use crate::counts::ExtraMetric;
use crate::metrics::Metric;

/// A column of executions: a figure, or a value that was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// `ns`, `bytes`, or nothing for other numbers.
    pub unit: String,
    /// What it is, for people.
    pub description: String,
    /// It is a value of events; else a figure of the critical path.
    pub is_value: bool,
}

impl Column {
    /// Whether that is its name, with or without its unit: `duration` is `duration_ns`.
    pub fn is_called(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        rest.is_some_and(|rest| matches!(rest, "" | "_ns" | "_bytes"))
    }
}

impl Column {
    /// A value of which nobody says in which unit it is has the one in its name.
    pub(crate) fn with_unit(mut self) -> Column {
        let named = [("_ns", "ns"), ("_bytes", "bytes")];
        let mut named = named
            .into_iter()
            .filter(|(end, _)| self.name.ends_with(end));
        if let (true, Some((_, unit))) = (self.is_value && self.unit.is_empty(), named.next()) {
            self.unit = unit.to_owned();
        }
        self
    }
}

impl From<Metric> for Column {
    fn from(metric: Metric) -> Column {
        Column {
            name: metric.name(),
            unit: metric.unit().to_owned(),
            description: metric.description(),
            is_value: false,
        }
    }
}

impl From<&ExtraMetric> for Column {
    fn from(metric: &ExtraMetric) -> Column {
        Column {
            name: metric.name.clone(),
            unit: metric.unit.to_owned(),
            description: metric.description.clone(),
            is_value: metric.is_value,
        }
    }
}

/// Executions of one kind, by columns. All columns have as many elements as there are executions.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Their ids in the database, ascending.
    pub ids: Vec<u32>,
    /// When they begin, in nanoseconds from the origin.
    pub begins: Vec<i64>,
    /// Places of their sources among those of the database.
    pub sources: Vec<u32>,
    /// Threads in which they end, by place among those of the database.
    pub threads: Vec<Option<u32>>,
    /// Numbers.
    pub figures: Vec<Figures>,
    /// Texts that were captured.
    pub texts: Vec<Texts>,
    /// Where their time went.
    pub rows: Rows,
}

/// A number of each execution.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// What it is.
    pub column: Column,
    /// Not a number where it is not known.
    pub values: Vec<f64>,
}

/// A text of each execution.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// What it is.
    pub column: Column,
    /// The texts, each once.
    pub texts: Vec<String>,
    /// Which it is.
    pub codes: Vec<Option<u32>>,
}

impl Texts {
    /// That of an execution, by its place in the table.
    pub fn at(&self, row: usize) -> Option<&str> {
        let code = self.codes.get(row).copied().flatten()?;
        self.texts.get(code as usize).map(String::as_str)
    }
}

/// Times by execution and context, without those that are 0.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Where those of each execution end.
    pub ends: Vec<usize>,
    /// A context, in the order of contexts within an execution, and the nanoseconds in it itself.
    pub entries: Vec<(ContextId, u64)>,
}

impl Rows {
    /// Those of an execution, by its place in the table.
    pub fn of(&self, row: usize) -> &[(ContextId, u64)] {
        let end = self.ends.get(row).copied().unwrap_or(0);
        let begin = row
            .checked_sub(1)
            .and_then(|before| self.ends.get(before).copied())
            .unwrap_or(0);
        self.entries.get(begin..end).unwrap_or_default()
    }

    /// Appends those of the next execution.
    pub(crate) fn push(&mut self, entries: &[(ContextId, u64)]) {
        self.entries.extend_from_slice(entries);
        self.ends.push(self.entries.len());
    }
}

impl Table {
    /// How many executions there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The figures of that name, or of that name with its unit: `duration` is `duration_ns`.
    pub fn figure(&self, name: &str) -> Option<&Figures> {
        let exact = self
            .figures
            .iter()
            .find(|figures| figures.column.name == name);
        exact.or_else(|| {
            self.figures
                .iter()
                .find(|figures| figures.column.is_called(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_in_the_names_of_values() {
        let unit = |name: &str, is_value| {
            let column = Column {
                name: name.to_owned(),
                is_value,
                ..Column::default()
            };
            column.with_unit().unit
        };
        assert_eq!(unit("latency_ns", true), "ns");
        assert_eq!(unit("size_bytes", true), "bytes");
        assert_eq!(unit("columns", true), "");
        assert_eq!(unit("migrations_ns", false), "");
    }
}
