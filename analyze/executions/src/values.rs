//! Values of executions by name: a metric, a captured value, or a property of the source.

use std::borrow::Cow;
use std::cmp::Ordering;

use tracebraid_language::near::did_you_mean_name;

use crate::condition::{Dimension, time_within};
use crate::contexts::FrameKind;
use crate::database::{Database, Figures, Source, Table, Texts};

/// A named value of each execution.
#[derive(Clone, Debug)]
pub struct Named<'t> {
    /// Name of the column: `duration_ns` for `duration`.
    pub name: String,
    /// One value for each execution.
    pub values: Values<'t>,
}

/// One value for each execution, in the order of the table.
#[derive(Clone, Debug)]
pub enum Values<'t> {
    /// Numbers, NaN where unknown, and their dimension, if they have a unit.
    Numbers(Cow<'t, [f64]>, Option<Dimension>),
    /// Distinct texts, and the index of each execution's text.
    Texts(Cow<'t, [String]>, Cow<'t, [Option<u32>]>),
    /// Numbers of some executions, texts of others.
    Both(Box<[Values<'t>; 2]>),
    /// The database has the column, but no execution of the table has a value. Contains the number
    /// of executions.
    Unknown(usize),
}

/// The values with a name: a metric, with or without its unit; a captured value; `label`, `host`,
/// `trace`, `thread`, `tid`, `id`, `begin_ns`; or `ctx.FRAME`, the time in frames with that name.
///
/// # Errors
/// A message for the user, with the known names, if executions have no such value.
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
    // A captured value whose name was already taken is in a column with another name.
    let captured = || column(&format!("{name}_value"));
    let figure = || table.figure(name).map(Named::from);
    let found = match origin(name, database, table) {
        Some(origin) => column(name).or_else(captured).or(Some(origin)),
        // A metric takes precedence over a captured value.
        None => column(name).or_else(figure).or_else(captured),
    };
    found
        .or_else(|| nowhere_known(name, database, table))
        .ok_or_else(|| unknown(name, table))
}

/// A property of the source, thread or row of executions.
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

/// A column of the database in which no execution of the table has a value.
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

/// Error message for an unknown name.
fn unknown(name: &str, table: &Table) -> String {
    let columns = table.figures.iter().map(|figures| &figures.column);
    let columns = columns.chain(table.texts.iter().map(|texts| &texts.column));
    let known: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
    let always = ["id", "label", "host", "trace", "thread", "tid", "begin_ns"];
    let short = known.iter().filter_map(|name| name.strip_suffix("_ns"));
    let candidates = known.iter().copied().chain(short).chain(always);
    let instead = did_you_mean_name(name, candidates);
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
    /// The column with a name: its numbers, its texts, or both.
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

    /// Unit of the numbers, as in columns.
    pub fn unit(&self) -> &'static str {
        match self {
            Values::Numbers(_, Some(Dimension::Time)) => "ns",
            Values::Numbers(_, Some(Dimension::Size)) => "bytes",
            Values::Both(parts) => parts[0].unit(),
            _ => "",
        }
    }

    /// True if some values are texts.
    pub fn has_texts(&self) -> bool {
        matches!(self, Values::Texts(..) | Values::Both(_))
    }

    /// Order for sorting two executions: greater numbers first, texts in alphabetical order,
    /// numbers before texts, and unknown values last. Integers that are stored as texts because of
    /// their size count as numbers.
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
