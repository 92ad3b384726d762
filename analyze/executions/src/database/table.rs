//! Executions of one kind, by columns.

use crate::contexts::ContextId;
use crate::counts::ExtraMetric;
use crate::metrics::Metric;

/// A column of executions: a metric, or a captured value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// `ns`, `bytes`, or empty for other numbers.
    pub unit: String,
    /// Description for the user.
    pub description: String,
    /// True for a value of events, false for a metric of the critical path.
    pub is_value: bool,
}

impl Column {
    /// True if `name` is the name of the column, with or without its unit: `duration` is
    /// `duration_ns`.
    pub fn is_called(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        rest.is_some_and(|rest| matches!(rest, "" | "_ns" | "_bytes"))
    }
}

impl Column {
    /// Sets the unit of a value without a unit to the unit in its name.
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

/// Executions of one kind, by column. All columns have one element for each execution.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Ids in the database, ascending.
    pub ids: Vec<u32>,
    /// Begins, in nanoseconds from the origin.
    pub begins: Vec<i64>,
    /// Indexes of the sources among those of the database.
    pub sources: Vec<u32>,
    /// Indexes, among those of the database, of the threads in which executions end.
    pub threads: Vec<Option<u32>>,
    /// Columns of numbers.
    pub figures: Vec<Figures>,
    /// Columns of captured texts.
    pub texts: Vec<Texts>,
    /// Time by calling context.
    pub rows: Rows,
}

/// A column of numbers.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Name, unit and description.
    pub column: Column,
    /// One number for each execution; NaN where it is unknown.
    pub values: Vec<f64>,
}

/// A column of texts.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Name and description.
    pub column: Column,
    /// Distinct texts.
    pub texts: Vec<String>,
    /// Index in `texts` for each execution; `None` without a text.
    pub codes: Vec<Option<u32>>,
}

impl Texts {
    /// The text of an execution, by its index in the table.
    pub fn at(&self, row: usize) -> Option<&str> {
        let code = self.codes.get(row).copied().flatten()?;
        self.texts.get(code as usize).map(String::as_str)
    }
}

/// Times by execution and context; times of 0 are left out.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// End of each execution's entries.
    pub ends: Vec<usize>,
    /// A context, in ascending order within an execution, and the nanoseconds of its own time.
    pub entries: Vec<(ContextId, u64)>,
}

impl Rows {
    /// Entries of an execution, by its index in the table.
    pub fn of(&self, row: usize) -> &[(ContextId, u64)] {
        let end = self.ends.get(row).copied().unwrap_or(0);
        let begin = row
            .checked_sub(1)
            .and_then(|before| self.ends.get(before).copied())
            .unwrap_or(0);
        self.entries.get(begin..end).unwrap_or_default()
    }

    /// Appends the entries of the next execution.
    pub(crate) fn push(&mut self, entries: &[(ContextId, u64)]) {
        self.entries.extend_from_slice(entries);
        self.ends.push(self.entries.len());
    }
}

impl Table {
    /// Number of executions.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if the table has no executions.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The metric with a name, with or without its unit: `duration` is `duration_ns`.
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
