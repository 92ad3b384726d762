//! Which executions a condition chooses: `duration > 50ms && cause == "disk"`.
//!
//! The language is that of filters (`docs/filter.md`); its fields are columns of a [`Table`], and what is known of each
//! execution's source and thread. Numbers may have a unit.

use tracebraid_filter::ast::{Expr, Field, Operator, Value, Where};
use tracebraid_filter::glob::Glob;
use tracebraid_filter::parse;

use crate::contexts::{ContextId, FrameKind};
use crate::database::{Database, Figures, Table};

/// For each execution of a table whether a condition chooses it.
///
/// # Errors
/// For people: when the text is no condition, or is about what executions do not have.
pub fn chosen(text: &str, database: &Database, table: &Table) -> Result<Vec<bool>, String> {
    let expr = parse(text).map_err(|error| error.to_string())?;
    Chooser { database, table }.choose(&expr)
}

/// For each execution of a table the nanoseconds in frames that are called so, with all within them. Names are patterns, with or
/// without what marks calls, threads and reasons: `fdatasync`, `fdatasync()`, `<logger>`, `[timer]`.
///
/// # Errors
/// For people: when there are no such frames.
pub fn time_within(name: &str, database: &Database, table: &Table) -> Result<Vec<f64>, String> {
    let union = &database.union;
    let pattern = Glob::new(name);
    let count = union.contexts.count() as u32;
    let is_called = |id: u32| {
        union.contexts.parts(ContextId(id)).is_some_and(|(_, frame)| {
            let is_name = pattern.matches(union.names.text(frame.name).as_bytes());
            is_name || union.word(frame) == name
        })
    };
    let called: Vec<bool> = (0..count).map(is_called).collect();
    if !called.contains(&true) {
        return Err(format!(
            "no frame is called {name}: `executions export --format folded` shows what there is"
        ));
    }
    // A context stands behind the one around it.
    let mut within = called;
    for id in 0..count {
        let around = union.contexts.parts(ContextId(id)).map_or(0, |parts| parts.0.0);
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

/// What a field is of each execution.
enum Values {
    /// Numbers, and of what they are, if they have a unit.
    Numbers(Vec<f64>, Option<Dimension>),
    /// Texts, and which of them it is.
    Texts(Vec<String>, Vec<Option<u32>>),
    /// Numbers of some executions, texts of others.
    Both(Box<[Values; 2]>),
}

impl Chooser<'_> {
    fn choose(&self, expr: &Expr) -> Result<Vec<bool>, String> {
        match expr {
            Expr::And(parts) => self.together(parts, true, |all, one| all && one),
            Expr::Or(parts) => self.together(parts, false, |any, one| any || one),
            Expr::Not(part) => Ok(self.choose(part)?.into_iter().map(|is| !is).collect()),
            Expr::Event(name) => Err(format!(
                "`{}` alone chooses nothing: compare it, as in `{} > 10ms`",
                name.text(),
                name.text()
            )),
            Expr::Has(field) => Ok(self.values(field)?.has()),
            Expr::Compare(field, operator, value) => {
                let values = self.values(field)?;
                values.compare(*operator, value)
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

    fn values(&self, field: &Field) -> Result<Values, String> {
        let name = match field {
            Field::Name => "name".to_owned(),
            Field::Time => "time".to_owned(),
            Field::Cpu => "cpu".to_owned(),
            Field::Tid => "tid".to_owned(),
            Field::Pid => "pid".to_owned(),
            Field::Procname => "thread".to_owned(),
            Field::Environment(name) if name == "hostname" => "host".to_owned(),
            Field::Environment(name) => format!("env.{name}"),
            Field::Path(Where::Context, steps) => {
                let times = time_within(&steps.join("."), self.database, self.table)?;
                return Ok(Values::Numbers(times, Some(Dimension::Time)));
            }
            Field::Path(_, steps) => steps.join("."),
        };
        // What was captured under a name that all executions have, or a column has, stands under another one.
        let captured = || self.column(&format!("{name}_value"));
        let figure = || self.table.figure(&name).map(Values::of);
        let found = match self.of_origin(&name) {
            Some(values) => self.column(&name).or_else(captured).or(Some(values)),
            // A figure is one, whatever was captured.
            None => self.column(&name).or_else(figure).or_else(captured),
        };
        found.ok_or_else(|| self.unknown(&name))
    }

    /// The column of that name: its numbers, its texts, or both.
    fn column(&self, name: &str) -> Option<Values> {
        let mut figures = self.table.figures.iter();
        let figures = figures.find(|figures| figures.column.name == name);
        let mut texts = self.table.texts.iter();
        let texts = texts.find(|texts| texts.column.name == name);
        let of_texts = texts.map(|texts| Values::Texts(texts.texts.clone(), texts.codes.clone()));
        match (figures.map(Values::of), of_texts) {
            (Some(numbers), Some(texts)) => Some(Values::Both(Box::new([numbers, texts]))),
            (numbers, texts) => numbers.or(texts),
        }
    }

    /// What is known of where an execution comes from.
    fn of_origin(&self, name: &str) -> Option<Values> {
        let (database, table) = (self.database, self.table);
        let by_source = |text: fn(&crate::database::Source) -> String| {
            let texts = database.sources.iter().map(text).collect();
            Values::Texts(texts, table.sources.iter().map(|&source| Some(source)).collect())
        };
        let threads = || table.threads.iter();
        Some(match name {
            "label" => by_source(|source| source.label.clone()),
            "host" => by_source(|source| source.host.clone().unwrap_or_default()),
            "trace" => by_source(|source| source.path.clone()),
            "thread" => {
                let texts = database
                    .threads
                    .iter()
                    .map(|thread| thread.name.clone().unwrap_or_default());
                Values::Texts(texts.collect(), table.threads.clone())
            }
            "tid" => {
                let tid = |id: &u32| {
                    database
                        .threads
                        .get(*id as usize)
                        .map(|thread| f64::from(thread.tid))
                };
                Values::Numbers(
                    threads()
                        .map(|id| id.as_ref().and_then(tid).unwrap_or(f64::NAN))
                        .collect(),
                    None,
                )
            }
            "id" => Values::Numbers(table.ids.iter().map(|&id| f64::from(id)).collect(), None),
            "begin" | "begin_ns" => {
                let begins = table.begins.iter().map(|&begin| begin as f64);
                Values::Numbers(begins.collect(), Some(Dimension::Time))
            }
            _ => return None,
        })
    }

    fn unknown(&self, name: &str) -> String {
        let columns = self.table.figures.iter().map(|figures| &figures.column);
        let columns = columns.chain(self.table.texts.iter().map(|texts| &texts.column));
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let names: String = names.iter().map(|name| format!("{name}, ")).collect();
        format!(
            "executions have no `{name}`, but {names}id, label, host, trace, thread, tid, begin_ns, and ctx.FRAME, the time in \
             frames of a name ({}); ctx.\"FRAME\" where that is no word",
            FrameKind::ALL.map(FrameKind::word).join(", ")
        )
    }
}

impl Values {
    fn of(figures: &Figures) -> Values {
        let dimension = match figures.column.unit.as_str() {
            "ns" => Some(Dimension::Time),
            "bytes" => Some(Dimension::Size),
            _ => None,
        };
        Values::Numbers(figures.values.clone(), dimension)
    }

    fn has(&self) -> Vec<bool> {
        match self {
            Values::Numbers(numbers, _) => numbers.iter().map(|number| !number.is_nan()).collect(),
            Values::Texts(_, codes) => codes.iter().map(Option::is_some).collect(),
            Values::Both(parts) => either(parts[0].has(), parts[1].has()),
        }
    }

    fn compare(&self, operator: Operator, value: &Value) -> Result<Vec<bool>, String> {
        match self {
            Values::Numbers(numbers, dimension) => {
                let wanted = number(value, *dimension)?;
                if matches!(operator, Operator::Matches | Operator::MatchesNot) {
                    return Err("numbers have no pattern".to_owned());
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
                    operator => operator.holds(text.as_str().cmp(wanted.as_str())),
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
                // Of a text a number is none of those: it has no order among them, and is not equal.
                match (parts[0].compare(operator, value), operator) {
                    (Ok(numbers), Operator::Equal | Operator::NotEqual) => Ok(either(numbers, texts)),
                    (Ok(numbers), _) => Ok(numbers),
                    (Err(why), Operator::Equal)
                        if matches!(value, Value::Integer(_)) && !texts.contains(&true) =>
                    {
                        Err(why)
                    }
                    (Err(_), Operator::NotEqual | Operator::MatchesNot) => Ok(either(parts[0].has(), texts)),
                    (Err(_), _) => Ok(texts),
                }
            }
        }
    }
}

fn either(one: Vec<bool>, other: Vec<bool>) -> Vec<bool> {
    one.into_iter()
        .zip(other)
        .map(|(one, other)| one || other)
        .collect()
}

/// Integers beyond are not told from their neighbours.
const EXACT: i128 = 1 << 53;

/// A number with or without a unit: nanoseconds of times, bytes of sizes.
fn number(value: &Value, of: Option<Dimension>) -> Result<f64, String> {
    let text = match value {
        Value::Integer(number) if number.abs() > EXACT => {
            return Err(format!(
                "{number}: integers beyond 2^53 are rounded here: ask for them by `tracebraid executions sql`"
            ));
        }
        Value::Integer(number) => return Ok(*number as f64),
        Value::Float(number, _) => return Ok(*number),
        Value::Text(text) => text,
    };
    match (quantity(text), of) {
        (None, _) => Err(format!(
            "`{text}`: a number is expected, as 10, 1.5ms, 20us, 3s, 64KiB or 2MiB"
        )),
        (Some((_, Some(Dimension::Size))), Some(Dimension::Time)) => Err(format!(
            "`{text}` is a size, and it is compared with a time: give one as 1.5ms, 20us or 3s"
        )),
        (Some((_, Some(Dimension::Time))), Some(Dimension::Size)) => Err(format!(
            "`{text}` is a time, and it is compared with a size: give one as 64KiB or 2MiB"
        )),
        (Some((number, _)), _) => Ok(number),
    }
}

/// Of what a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Nanoseconds and their multiples.
    Time,
    /// Bytes and their multiples.
    Size,
}

/// A number with a unit of time, in nanoseconds, or of memory, in bytes; and what its unit is of, if it has one.
pub fn quantity(text: &str) -> Option<(f64, Option<Dimension>)> {
    let at = text.find(|digit: char| !digit.is_ascii_digit() && !matches!(digit, '.' | '-' | '+' | '_'));
    let (digits, unit) = text.split_at(at.unwrap_or(text.len()));
    let (factor, dimension) = match unit {
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
    Some((digits.replace('_', "").parse::<f64>().ok()? * factor, dimension))
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
        assert_eq!(quantity("64KiB"), Some((65536.0, Some(Dimension::Size))));
        assert_eq!(quantity("2min"), Some((120e9, Some(Dimension::Time))));
        assert_eq!(quantity("7"), Some((7.0, None)));
        let of = |text: &str, of| super::number(&Value::Text(text.to_owned()), of).map_err(|_| ());
        let (time, size) = (Some(Dimension::Time), Some(Dimension::Size));
        assert_eq!(
            [of("1ms", time), of("1ms", None), of("1KiB", size)],
            [Ok(1e6), Ok(1e6), Ok(1024.0)]
        );
        assert_eq!([of("1ms", size), of("1KiB", time), of("x", None)], [Err(()); 3]);
    }
}
