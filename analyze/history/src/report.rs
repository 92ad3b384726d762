//! Durations of the values of attributes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::attribute::Attribute;
use crate::file::HistoryError;
use crate::history::History;
use crate::user;
use crate::value::Value;

/// Maximum number of values that a report lists for numbers that measure or count. If there are
/// more, or if no value recurs, the report has minimum, average and maximum instead.
const FEW: usize = 16;

/// The values of one or several attributes over a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// By value: texts, states, numbers that identify, and numbers with few values.
    pub values: BTreeMap<Value, Times>,
    /// For numbers that measure or count and have many values.
    pub numbers: Option<Numbers>,
}

/// Number and durations of the occurrences of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Total duration in nanoseconds.
    pub total_ns: u64,
    /// Number of occurrences, including one at the start of the range.
    pub times: u64,
    /// Duration of the longest occurrence, in nanoseconds.
    pub longest_ns: u64,
}

/// Statistics of a number over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// Minimum.
    pub min: i64,
    /// Average over the time in which the attribute had a value.
    pub average: f64,
    /// Maximum.
    pub max: i64,
    /// Value at the start of the range, or the first value after it.
    pub first: i64,
    /// Value at the end of the range, or the last value before it.
    pub last: i64,
    /// Duration with a value, in nanoseconds.
    pub known_ns: u64,
    /// Number of changes.
    pub changes: u64,
}

impl Times {
    fn add(&mut self, nanoseconds: u64) {
        self.total_ns += nanoseconds;
        self.times += 1;
        self.longest_ns = self.longest_ns.max(nanoseconds);
    }

    fn join(&mut self, other: Times) {
        self.total_ns += other.total_ns;
        self.times += other.times;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl Report {
    /// Adds the report of another attribute, by value; does not combine `numbers`.
    pub fn join(&mut self, other: Report) {
        for (value, times) in other.values {
            self.values.entry(value).or_default().join(times);
        }
    }
}

impl History {
    /// The values of an attribute from `from` on and before `to`.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn report(
        &self,
        attribute: Attribute,
        (from, to): (i64, i64),
    ) -> Result<Report, HistoryError> {
        let mut values: BTreeMap<Value, Times> = BTreeMap::new();
        let (mut before, mut value): (i64, Option<Value>) = (from, None);
        let mut numbers: Option<Folded> = None;
        for since in self.changes(attribute, from, to)? {
            let lasted = since.time.abs_diff(before);
            if let Some(value) = value.take() {
                end(&mut values, &mut numbers, value, lasted);
            }
            (before, value) = (since.time, Some(since.value));
        }
        if let Some(value) = value {
            end(&mut values, &mut numbers, value, to.abs_diff(before));
        }
        values.remove(&Value::Null);
        let are_numbers = values.keys().all(|value| matches!(value, Value::Number(_)));
        // Sums only grow, so none of their values recurs.
        let is_sum = values.len() > 2 && values.values().all(|times| times.times == 1);
        let are_many = are_numbers && self.is_quantity(attribute) && (is_sum || values.len() > FEW);
        let numbers = numbers.filter(|_| are_many).map(Folded::finish);
        if are_many {
            values.clear();
        }
        Ok(Report { values, numbers })
    }

    /// Whether the average of the attribute's numbers is meaningful: see
    /// `AttributeKind::is_quantity`. Also known for attributes of probes.
    fn is_quantity(&self, attribute: Attribute) -> bool {
        attribute.kind().is_quantity() && !user::names_thread(&self.path(attribute))
    }
}

/// Records the end of a value that lasted `lasted` nanoseconds.
fn end(
    values: &mut BTreeMap<Value, Times>,
    numbers: &mut Option<Folded>,
    value: Value,
    lasted: u64,
) {
    if let Value::Number(number) = value {
        numbers
            .get_or_insert_with(|| Folded::new(number))
            .add(number, lasted);
    }
    values.entry(value).or_default().add(lasted);
}

/// Statistics of a number, with weights by time.
struct Folded {
    min: i64,
    max: i64,
    first: i64,
    last: i64,
    weighted: i128,
    known_ns: u64,
    stretches: u64,
}

impl Folded {
    fn new(first: i64) -> Folded {
        Folded {
            min: first,
            max: first,
            first,
            last: first,
            weighted: 0,
            known_ns: 0,
            stretches: 0,
        }
    }

    fn add(&mut self, number: i64, lasted: u64) {
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.last = number;
        let product = i128::from(number).saturating_mul(lasted.into());
        self.weighted = self.weighted.saturating_add(product);
        self.known_ns += lasted;
        self.stretches += 1;
    }

    fn finish(self) -> Numbers {
        Numbers {
            min: self.min,
            average: self.weighted as f64 / self.known_ns.max(1) as f64,
            max: self.max,
            first: self.first,
            last: self.last,
            known_ns: self.known_ns,
            changes: self.stretches - 1,
        }
    }
}
