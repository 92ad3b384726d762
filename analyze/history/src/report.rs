//! How long attributes had which values.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::attribute::Attribute;
use crate::file::HistoryError;
use crate::history::History;
use crate::user;
use crate::value::Value;

/// Numbers that measure or count something, with more values than that or of which no value comes
/// back, are told by their least, average and greatest value.
const FEW: usize = 16;

/// What one attribute, or several together, had as values over a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Texts, states, numbers that name something, and others of few values: by value.
    pub values: BTreeMap<Value, Times>,
    /// Of numbers with many values that measure or count something.
    pub numbers: Option<Numbers>,
}

/// How often and how long there was a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Nanoseconds in all.
    pub total_ns: u64,
    /// How often it began, with that at the beginning of the range.
    pub times: u64,
    /// The longest stretch.
    pub longest_ns: u64,
}

/// What a number was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// The least one.
    pub min: i64,
    /// The average over the time in which it had a value.
    pub average: f64,
    /// The greatest one.
    pub max: i64,
    /// At the beginning of the range, or when it first had a value.
    pub first: i64,
    /// At the end of the range, or when it last had a value.
    pub last: i64,
    /// Nanoseconds with a value.
    pub known_ns: u64,
    /// How often it became another one.
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
    /// Adds another attribute's, by value; numbers of many values stay apart.
    pub fn join(&mut self, other: Report) {
        for (value, times) in other.values {
            self.values.entry(value).or_default().join(times);
        }
    }
}

impl History {
    /// What an attribute had as values from a time on until before another one.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
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
        // Sums only grow: none of their values comes back.
        let is_sum = values.len() > 2 && values.values().all(|times| times.times == 1);
        let are_many = are_numbers && self.is_quantity(attribute) && (is_sum || values.len() > FEW);
        let numbers = numbers.filter(|_| are_many).map(Folded::finish);
        if are_many {
            values.clear();
        }
        Ok(Report { values, numbers })
    }

    /// Whether an average of its numbers means something: see [`Kind::is_quantity`]. Of what probes
    /// tell it is known, too.
    fn is_quantity(&self, attribute: Attribute) -> bool {
        attribute.kind().is_quantity() && !user::names_thread(&self.path(attribute))
    }
}

/// A value ends that lasted so long.
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

/// A number over time.
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
