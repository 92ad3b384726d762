//! Conditions that select executions: `duration > 50ms && cause == "disk"`.
//!
//! The language is that of filters (`docs/reference/filter.md`). Its fields are the columns of a [`Table`]
//! and the source and thread of each execution. Numbers may have a unit.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tracebraid_language::ast::{Expr, Field, Operator, Value, Where};
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;
use tracebraid_language::parse::parse_with_units;

use crate::contexts::ContextId;
use crate::database::{Database, Table};
use crate::values::{Named, Values, named};

/// For each execution of a table, whether a condition selects it.
///
/// # Errors
/// A message for the user if the text is not a condition, or refers to an unknown column.
pub fn chosen(text: &str, database: &Database, table: &Table) -> Result<Vec<bool>, String> {
    let is_quantity = |text: &str| quantity(text).is_some();
    let expr = parse_with_units(text, &is_quantity).map_err(|error| error.to_string())?;
    Chooser { database, table }.choose(&expr)
}

/// For each execution of a table, the nanoseconds in frames with a name, including inner frames.
/// The name is a pattern, with or without the marks of calls, threads and reasons: `fdatasync`,
/// `fdatasync()`, `<logger>`, `[timer]`.
///
/// # Errors
/// A message for the user if there is no such frame.
pub fn time_within(name: &str, database: &Database, table: &Table) -> Result<Vec<f64>, String> {
    let union = &database.union;
    let pattern = Glob::new(name);
    let count = union.contexts.count() as u32;
    let is_called = |id: u32| {
        union
            .contexts
            .parts(ContextId(id))
            .is_some_and(|(_, frame)| {
                let is_name = pattern.matches(union.names.text(frame.name).as_bytes());
                is_name || union.word(frame) == name
            })
    };
    let called: Vec<bool> = (0..count).map(is_called).collect();
    if !called.contains(&true) {
        let frames = (0..count).filter_map(|id| union.contexts.parts(ContextId(id)));
        let names: BTreeSet<&str> = frames
            .map(|(_, frame)| union.names.text(frame.name))
            .collect();
        let instead = did_you_mean(&pattern, names);
        return Err(format!(
            "no frame matches {name}{instead} (`executions export --format folded` lists all frames)"
        ));
    }
    // The context around a context has a lower number, so one pass in ascending order suffices.
    let mut within = called;
    for id in 0..count {
        let around = union
            .contexts
            .parts(ContextId(id))
            .map_or(0, |parts| parts.0.0);
        let is_within = within.get(around as usize).copied().unwrap_or(false);
        if let Some(of) = within.get_mut(id as usize) {
            *of |= is_within;
        }
    }
    let is_within = |context: ContextId| within.get(context.0 as usize).copied().unwrap_or(false);
    let time = |row: usize| {
        let times = table.rows.of(row).iter();
        let times = times.filter(|(context, _)| is_within(*context));
        times.map(|(_, time)| *time as f64).sum()
    };
    Ok((0..table.len()).map(time).collect())
}

struct Chooser<'t> {
    database: &'t Database,
    table: &'t Table,
}

impl Chooser<'_> {
    fn choose(&self, expr: &Expr) -> Result<Vec<bool>, String> {
        match expr {
            Expr::And(parts) => self.together(parts, true, |all, one| all && one),
            Expr::Or(parts) => self.together(parts, false, |any, one| any || one),
            Expr::Not(part) => Ok(self.choose(part)?.into_iter().map(|is| !is).collect()),
            Expr::Event(name) => Err(format!(
                "`{}` alone is not a condition: compare it with a value, as in `{} > 10ms`",
                name.text(),
                name.text()
            )),
            Expr::Has(field) => Ok(self.values(field)?.values.has()),
            Expr::Compare(field, operator, value) => {
                let Named { name, values } = self.values(field)?;
                check_unit(field, &name, &values, value)?;
                let compared = values.compare(*operator, value);
                compared.map_err(|error| format!("{name}: {error}"))
            }
        }
    }

    fn together(
        &self,
        parts: &[Expr],
        first: bool,
        join: impl Fn(bool, bool) -> bool,
    ) -> Result<Vec<bool>, String> {
        let mut all = vec![first; self.table.len()];
        for part in parts {
            let found = self.choose(part)?;
            all.iter_mut()
                .zip(found)
                .for_each(|(all, one)| *all = join(*all, one));
        }
        Ok(all)
    }

    fn values(&self, field: &Field) -> Result<Named<'_>, String> {
        let name = match field {
            Field::Name => "name".to_owned(),
            Field::Time => "time".to_owned(),
            Field::Cpu => "cpu".to_owned(),
            Field::Tid | Field::OwnTid => "tid".to_owned(),
            Field::Pid => "pid".to_owned(),
            Field::Procname => "thread".to_owned(),
            Field::Environment(name) if name == "hostname" => "host".to_owned(),
            Field::Environment(name) => format!("env.{name}"),
            Field::Path(Where::Context, steps) => {
                let times = time_within(&steps.join("."), self.database, self.table)?;
                return Ok(Named {
                    name: format!("ctx.{}", steps.join(".")),
                    values: Values::Numbers(times.into(), Some(Dimension::Time)),
                });
            }
            Field::Path(_, steps) => steps.join("."),
        };
        named(&name, self.database, self.table)
    }
}

impl Values<'_> {
    fn has(&self) -> Vec<bool> {
        match self {
            Values::Numbers(numbers, _) => numbers.iter().map(|number| !number.is_nan()).collect(),
            Values::Texts(_, codes) => codes.iter().map(Option::is_some).collect(),
            Values::Both(parts) => either(parts[0].has(), parts[1].has()),
            Values::Unknown(executions) => vec![false; *executions],
        }
    }

    fn compare(&self, operator: Operator, value: &Value) -> Result<Vec<bool>, String> {
        match self {
            Values::Unknown(executions) => Ok(vec![false; *executions]),
            Values::Numbers(numbers, dimension) => {
                let wanted = number(value, *dimension)?;
                if matches!(operator, Operator::Matches | Operator::MatchesNot) {
                    return Err("numbers cannot match a pattern: use ==, !=, < or >".to_owned());
                }
                let holds = |number: &f64| {
                    number
                        .partial_cmp(&wanted)
                        .is_some_and(|order| operator.holds(order))
                };
                Ok(numbers.iter().map(holds).collect())
            }
            Values::Texts(texts, codes) => {
                let wanted = value.text();
                let pattern = Glob::new(&wanted);
                let holds = |text: &String| match operator {
                    Operator::Matches => pattern.matches(text.as_bytes()),
                    Operator::MatchesNot => !pattern.matches(text.as_bytes()),
                    Operator::Equal | Operator::NotEqual => {
                        operator.holds(text.as_str().cmp(&wanted))
                    }
                    _ => order(text, value).is_some_and(|order| operator.holds(order)),
                };
                let held: Vec<bool> = texts.iter().map(holds).collect();
                let of = |code: &Option<u32>| {
                    code.and_then(|code| held.get(code as usize).copied())
                        .unwrap_or(false)
                };
                Ok(codes.iter().map(of).collect())
            }
            Values::Both(parts) => {
                let texts = parts[1].compare(operator, value)?;
                // In a column of numbers and texts, a text has no order relative to a number, and
                // is not equal to it.
                match (parts[0].compare(operator, value), operator) {
                    (Ok(numbers), Operator::Equal | Operator::NotEqual) => {
                        Ok(either(numbers, texts))
                    }
                    (Ok(numbers), _) => Ok(numbers),
                    (Err(why), Operator::Equal)
                        if matches!(value, Value::Integer(_)) && !texts.contains(&true) =>
                    {
                        Err(why)
                    }
                    (Err(_), Operator::NotEqual | Operator::MatchesNot) => {
                        Ok(either(parts[0].has(), texts))
                    }
                    (Err(_), _) => Ok(texts),
                }
            }
        }
    }
}

/// Refuses a number without a unit for a metric that has one, unless the metric is written with its
/// unit, as in `duration_ns > 50`: `duration > 50` might mean seconds, milliseconds or nanoseconds.
fn check_unit(field: &Field, name: &str, values: &Values<'_>, value: &Value) -> Result<(), String> {
    let Values::Numbers(_, Some(dimension)) = values else {
        return Ok(());
    };
    let written = match field {
        Field::Path(Where::Context, _) => name.to_owned(),
        Field::Path(_, steps) => steps.join("."),
        _ => return Ok(()),
    };
    let number = match value {
        Value::Integer(number) if *number != 0 => number.to_string(),
        Value::Float(number, _) if *number != 0.0 => number.to_string(),
        _ => return Ok(()),
    };
    let has_unit = ["_ns", "_bytes"].iter().any(|unit| written.ends_with(unit));
    if has_unit || matches!(name, "begin_ns" | "id" | "tid") {
        return Ok(());
    }
    Err(match dimension {
        Dimension::Time => {
            format!("{written} is a time: give a unit, such as {number}us, {number}ms or {number}s")
        }
        Dimension::Size => {
            format!("{written} is a size: give a unit, such as {number}KiB or {number}MiB")
        }
    })
}

/// Order of a text relative to a value. Integers that are too large for an exact float are stored
/// as texts: such columns are ordered by number, and other texts are unordered in them.
fn order(text: &str, value: &Value) -> Option<Ordering> {
    let integer = text.parse::<i128>().ok();
    match value {
        Value::Integer(number) => integer.map(|integer| integer.cmp(number)),
        Value::Float(number, _) => integer.and_then(|integer| (integer as f64).partial_cmp(number)),
        Value::Text(wanted) => Some(text.cmp(wanted)),
    }
}

fn either(one: Vec<bool>, other: Vec<bool>) -> Vec<bool> {
    one.into_iter()
        .zip(other)
        .map(|(one, other)| one || other)
        .collect()
}

/// Integers beyond 2^53 are not distinguishable from their neighbours as floats.
const EXACT: i128 = 1 << 53;

/// A number with or without a unit, in nanoseconds for times and in bytes for sizes.
fn number(value: &Value, of: Option<Dimension>) -> Result<f64, String> {
    let text = match value {
        Value::Integer(number) if number.abs() > EXACT => {
            return Err(format!(
                "{number}: integers beyond 2^53 are rounded here: select them with `tracebraid sql`"
            ));
        }
        Value::Integer(number) => return Ok(*number as f64),
        Value::Float(number, _) => return Ok(*number),
        Value::Text(text) => text,
    };
    match (quantity(text), of) {
        (None, _) => Err(format!(
            "`{text}`: not a number: write for example 10, 1.5ms, 20us, 3s, 64KiB or 2MiB"
        )),
        (Some((_, Some(Dimension::Size))), Some(Dimension::Time)) => Err(format!(
            "`{text}` is a size, but the column contains times: write for example 1.5ms, 20us or 3s"
        )),
        (Some((_, Some(Dimension::Time))), Some(Dimension::Size)) => Err(format!(
            "`{text}` is a time, but the column contains sizes: write for example 64KiB or 2MiB"
        )),
        (Some((number, _)), _) => Ok(number),
    }
}

/// Dimension of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Nanoseconds and multiples.
    Time,
    /// Bytes and multiples.
    Size,
}

/// Parses a number with a unit of time (result in nanoseconds) or of memory (result in bytes), or
/// without a unit. Also returns the dimension of the unit. A space may separate number and unit: `5
/// ms`.
pub fn quantity(text: &str) -> Option<(f64, Option<Dimension>)> {
    let at =
        text.find(|digit: char| !digit.is_ascii_digit() && !matches!(digit, '.' | '-' | '+' | '_'));
    let (digits, unit) = text.split_at(at.unwrap_or(text.len()));
    let (factor, dimension) = match unit.trim_start() {
        "" => (1.0, None),
        "ns" => (1.0, Some(Dimension::Time)),
        "us" | "\u{b5}s" | "\u{3bc}s" => (1e3, Some(Dimension::Time)),
        "ms" => (1e6, Some(Dimension::Time)),
        "s" => (1e9, Some(Dimension::Time)),
        "min" => (60e9, Some(Dimension::Time)),
        "B" => (1.0, Some(Dimension::Size)),
        "K" | "k" | "KiB" => (1024.0, Some(Dimension::Size)),
        "M" | "MiB" => (1_048_576.0, Some(Dimension::Size)),
        "G" | "GiB" => (1_073_741_824.0, Some(Dimension::Size)),
        _ => return None,
    };
    Some((
        digits.replace('_', "").parse::<f64>().ok()? * factor,
        dimension,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        let number = |text| quantity(text).map(|(number, _)| number);
        let found = ["20ms", "1.5us", "3", "64KiB", "-2s", "x", "3 apples", ""].map(number);
        let expected = [
            Some(2e7),
            Some(1500.0),
            Some(3.0),
            Some(65536.0),
            Some(-2e9),
            None,
            None,
            None,
        ];
        assert_eq!(found, expected);
        assert_eq!(quantity("5 ms"), quantity("5ms"));
        assert_eq!((quantity("5 ms ms"), quantity(" ms")), (None, None));
        assert_eq!(quantity("64KiB"), Some((65536.0, Some(Dimension::Size))));
        assert_eq!(quantity("2min"), Some((120e9, Some(Dimension::Time))));
        assert_eq!(quantity("7"), Some((7.0, None)));
        let of = |text: &str, of| super::number(&Value::Text(text.to_owned()), of).map_err(|_| ());
        let (time, size) = (Some(Dimension::Time), Some(Dimension::Size));
        assert_eq!(
            [of("1ms", time), of("1ms", None), of("1KiB", size)],
            [Ok(1e6), Ok(1e6), Ok(1024.0)]
        );
        assert_eq!(
            [of("1ms", size), of("1KiB", time), of("x", None)],
            [Err(()); 3]
        );
    }

    #[test]
    fn integers_that_are_texts_have_the_order_of_numbers() {
        let texts = ["2", "17571871944214396930", "-3", "x"].map(str::to_owned);
        let codes = [Some(0), Some(1), Some(2), Some(3), None];
        let column = Values::Texts(texts.to_vec().into(), codes.to_vec().into());
        let greater = |value| column.compare(Operator::Greater, &value).expect("an order");
        assert_eq!(
            greater(Value::Integer(2)),
            [false, true, false, false, false]
        );
        assert_eq!(
            greater(Value::Float(1.5, "1.5".to_owned())),
            [true, true, false, false, false]
        );
        assert_eq!(
            greater(Value::Text("17".to_owned())),
            [true, true, false, true, false]
        );
        let different = column.compare(Operator::NotEqual, &Value::Integer(2));
        assert_eq!(
            different.expect("an order"),
            [false, true, true, true, false]
        );
        let mut order: Vec<usize> = (0..5).collect();
        order.sort_by(|&one, &other| column.order(one, other));
        assert_eq!(order, [1, 0, 2, 3, 4]);
    }
}
