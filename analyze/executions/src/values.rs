//! What a name is of each execution: a figure, a value that was captured, or where the execution
//! comes from.

use std::borrow::Cow;
use std::cmp::Ordering;

use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;

use crate::condition::{Dimension, time_within};
use crate::contexts::FrameKind;
use crate::database::{Database, Figures, Source, Table, Texts};

/// What is asked for by a name, of each execution.
#[derive(Clone, Debug)]
pub struct Named<'t> {
    /// The name of its column: `duration_ns` of `duration`.
    pub name: String,
    /// What it is.
    pub values: Values<'t>,
}

/// What something is of each execution, in the order of their table.
#[derive(Clone, Debug)]
pub enum Values<'t> {
    /// Numbers, which are none where they are not known, and of what they are, if they have a unit.
    Numbers(Cow<'t, [f64]>, Option<Dimension>),
    /// Texts, and which of them it is.
    Texts(Cow<'t, [String]>, Cow<'t, [Option<u32>]>),
    /// Numbers of some executions, texts of others.
    Both(Box<[Values<'t>; 2]>),
    /// The database has it, and knows it of none of so many executions.
    Unknown(usize),
}

/// What has that name: a figure, also without its unit; a value; `label`, `host`, `trace`,
/// `thread`, `tid`, `id`, `begin_ns`; or `ctx.FRAME`, the time in frames of that name.
///
/// # Errors
/// For people: when executions have nothing of that name, with what they have.
pub fn named<'t>(
    name: &str,
    database: &'t Database,
    table: &'t Table,
) -> Result<Named<'t>, String> {
    if let Some(frame) = name.strip_prefix("ctx.") {
        let times = time_within(frame.trim_matches('"'), database, table)?;
        return Ok(Named {
            name: name.to_owned(),
            values: Values::Numbers(times.into(), Some(Dimension::Time)),
        });
    }
    let column = |name: &str| {
        let values = Values::of_column(table, name)?;
        let name = name.to_owned();
        Some(Named { name, values })
    };
    // What was captured under a name that all executions have, or a column has, stands under
    // another one.
    let captured = || column(&format!("{name}_value"));
    let figure = || table.figure(name).map(Named::from);
    let found = match origin(name, database, table) {
        Some(origin) => column(name).or_else(captured).or(Some(origin)),
        // A figure is one, whatever was captured.
        None => column(name).or_else(figure).or_else(captured),
    };
    found
        .or_else(|| nowhere_known(name, database, table))
        .ok_or_else(|| unknown(name, table))
}

/// What is known of where an execution comes from.
fn origin<'t>(name: &str, database: &'t Database, table: &'t Table) -> Option<Named<'t>> {
    let by_source = |text: fn(&Source) -> String| {
        let texts = database.sources.iter().map(text).collect();
        let codes = table.sources.iter().map(|&source| Some(source)).collect();
        Values::Texts(texts, codes)
    };
    let tid = |id: &Option<u32>| {
        let thread = id.and_then(|id| database.threads.get(id as usize));
        thread.map_or(f64::NAN, |thread| f64::from(thread.tid))
    };
    let (name, values) = match name {
        "label" => (name, by_source(|source| source.label.clone())),
        "host" => (
            name,
            by_source(|source| source.host.clone().unwrap_or_default()),
        ),
        "trace" => (name, by_source(|source| source.path.clone())),
        "thread" => {
            let names = database.threads.iter();
            let names = names.map(|thread| thread.name.clone().unwrap_or_default());
            (
                name,
                Values::Texts(names.collect(), Cow::from(&table.threads)),
            )
        }
        "tid" => (
            name,
            Values::Numbers(table.threads.iter().map(tid).collect(), None),
        ),
        "id" => {
            let ids = table.ids.iter().map(|&id| f64::from(id));
            (name, Values::Numbers(ids.collect(), None))
        }
        "begin" | "begin_ns" => {
            let begins = table.begins.iter().map(|&begin| begin as f64);
            (
                "begin_ns",
                Values::Numbers(begins.collect(), Some(Dimension::Time)),
            )
        }
        _ => return None,
    };
    let name = name.to_owned();
    Some(Named { name, values })
}

/// A column of the database in which none of these executions has anything.
fn nowhere_known<'t>(name: &str, database: &Database, table: &Table) -> Option<Named<'t>> {
    let find = |is: &dyn Fn(&str) -> bool| database.columns.iter().find(|column| is(&column.name));
    let called = || {
        database
            .columns
            .iter()
            .find(|column| column.is_called(name))
    };
    let captured = format!("{name}_value");
    let column = find(&|known| known == name)
        .or_else(called)
        .or_else(|| find(&|known| known == captured))?;
    Some(Named {
        name: column.name.clone(),
        values: Values::Unknown(table.len()),
    })
}

/// That there is nothing of that name, for people.
fn unknown(name: &str, table: &Table) -> String {
    let columns = table.figures.iter().map(|figures| &figures.column);
    let columns = columns.chain(table.texts.iter().map(|texts| &texts.column));
    let known: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
    let always = ["id", "label", "host", "trace", "thread", "tid", "begin_ns"];
    let instead = did_you_mean(&Glob::literal(name), known.iter().copied().chain(always));
    let names: String = known.iter().map(|name| format!("{name}, ")).collect();
    let but = if instead.is_empty() {
        "; they have"
    } else {
        " They have"
    };
    format!(
        "executions have no `{name}`{instead}{but} {names}id, label, host, trace, thread, tid, begin_ns, and ctx.FRAME, the time in \
         frames of a name ({}; ctx.\"FRAME\" if the name is not a single word)",
        FrameKind::ALL.map(FrameKind::word).join(", ")
    )
}

impl<'t> From<&'t Figures> for Named<'t> {
    fn from(figures: &'t Figures) -> Named<'t> {
        Named {
            name: figures.column.name.clone(),
            values: Values::from(figures),
        }
    }
}

impl<'t> From<&'t Figures> for Values<'t> {
    fn from(figures: &'t Figures) -> Values<'t> {
        let dimension = match figures.column.unit.as_str() {
            "ns" => Some(Dimension::Time),
            "bytes" => Some(Dimension::Size),
            _ => None,
        };
        Values::Numbers(Cow::from(&figures.values), dimension)
    }
}

impl<'t> From<&'t Texts> for Values<'t> {
    fn from(texts: &'t Texts) -> Values<'t> {
        Values::Texts(Cow::from(&texts.texts), Cow::from(&texts.codes))
    }
}

impl<'t> Values<'t> {
    /// The column of that name: its numbers, its texts, or both.
    pub fn of_column(table: &'t Table, name: &str) -> Option<Values<'t>> {
        let figures = table.figures.iter().find(|of| of.column.name == name);
        let texts = table.texts.iter().find(|of| of.column.name == name);
        match (figures.map(Values::from), texts.map(Values::from)) {
            (Some(numbers), Some(texts)) => Some(Values::Both(Box::new([numbers, texts]))),
            (numbers, texts) => numbers.or(texts),
        }
    }

    /// The number of an execution, if it has one.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Values::Numbers(numbers, _) => {
                numbers.get(row).copied().filter(|number| !number.is_nan())
            }
            Values::Both(parts) => parts[0].number(row),
            Values::Texts(..) | Values::Unknown(_) => None,
        }
    }

    /// The text of an execution, if it has one.
    pub fn text(&self, row: usize) -> Option<&str> {
        match self {
            Values::Texts(texts, codes) => {
                let code = codes.get(row).copied().flatten()?;
                texts.get(code as usize).map(String::as_str)
            }
            Values::Both(parts) => parts[1].text(row),
            Values::Numbers(..) | Values::Unknown(_) => None,
        }
    }

    /// The unit of its numbers, as columns have it.
    pub fn unit(&self) -> &'static str {
        match self {
            Values::Numbers(_, Some(Dimension::Time)) => "ns",
            Values::Numbers(_, Some(Dimension::Size)) => "bytes",
            Values::Both(parts) => parts[0].unit(),
            _ => "",
        }
    }

    /// Whether there are texts among them.
    pub fn has_texts(&self) -> bool {
        matches!(self, Values::Texts(..) | Values::Both(_))
    }

    /// Which of two executions stands first: that with the greater number, or the text that comes
    /// first in the alphabet; numbers before texts, and last what is not known. Integers that are
    /// texts, since they are too large, count as numbers.
    pub fn order(&self, one: usize, other: usize) -> Ordering {
        let unknown_last = |is_known: [bool; 2]| is_known[1].cmp(&is_known[0]);
        let [first, second] = [one, other].map(|row| self.number(row));
        let numbers = match (first, second) {
            (Some(first), Some(second)) => second.total_cmp(&first),
            _ => unknown_last([first.is_some(), second.is_some()]),
        };
        numbers.then_with(|| {
            let [first, second] = [one, other].map(|row| self.text(row));
            match (first, second) {
                (Some(first), Some(second)) => {
                    match [first, second].map(|text| text.parse::<i128>().ok()) {
                        [Some(first), Some(second)] => second.cmp(&first),
                        [None, None] => first.cmp(second),
                        [first, second] => unknown_last([first.is_some(), second.is_some()]),
                    }
                }
                _ => unknown_last([first.is_some(), second.is_some()]),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_before_texts_and_both_before_what_is_not_known() {
        let none = f64::NAN;
        let numbers = Values::Numbers(vec![none, 1.0, none, 7.0, none].into(), None);
        let texts = Values::Texts(
            vec!["b".to_owned(), "a".to_owned()].into(),
            vec![None, None, Some(0), None, Some(1)].into(),
        );
        let both = Values::Both(Box::new([numbers, texts]));
        let mut order: Vec<usize> = (0..5).collect();
        order.sort_by(|&one, &other| both.order(one, other));
        assert_eq!(order, [3, 1, 4, 2, 0]);
        assert_eq!(Values::Unknown(2).order(0, 1), Ordering::Equal);
    }
}
