//! Comparisons as CSV and JSON tables.

use tracebraid_executions::gate::{About, Decision};
use tracebraid_executions::{Difference, Separation, Spread, Test, TextSeparation, ranked};
use tracebraid_tables::{Section, Unit, Value};

use super::show::shown;
use super::{CompareArgs, Compared, gate};
use crate::commands::data_tables::table;

/// The tables of a comparison, the main table first.
pub(super) fn tables(
    args: &CompareArgs,
    compared: &Compared<'_>,
    decisions: &[Decision],
) -> Vec<Section> {
    vec![
        contexts(args, compared),
        metrics(args, compared),
        texts(args, compared),
        gates(compared, decisions),
        groups(compared),
    ]
}

/// Columns of a difference, after the columns that name its subject.
const TESTED: [(&str, Unit); 8] = [
    ("mean_a", Unit::Number),
    ("mean_b", Unit::Number),
    ("difference", Unit::Number),
    ("low", Unit::Number),
    ("high", Unit::Number),
    ("effect", Unit::Number),
    ("p", Unit::Number),
    ("is_significant", Unit::Text),
];

/// A number; no value if it is infinite, which JSON cannot represent.
fn finite(value: Option<f64>) -> Value {
    value.filter(|value| value.is_finite()).into()
}

fn tested(groups: &[Spread; 2], test: &Test, is_significant: bool) -> [Value; 8] {
    let (low, high) = test.interval.unzip();
    [
        finite(Some(groups[0].mean)),
        finite(Some(groups[1].mean)),
        finite(Some(test.more)),
        finite(low),
        finite(high),
        finite(Some(test.effect)),
        finite(Some(test.chance)),
        Value::Flag(is_significant),
    ]
}

/// A context's frames are separated by semicolons, the outermost first; times in nanoseconds.
fn contexts(args: &CompareArgs, compared: &Compared<'_>) -> Section {
    let about = [("context", Unit::Text), ("is_total", Unit::Text)];
    let row = |of: Difference| {
        let words = compared.database.union.words(of.context).join(";");
        let about = [Value::Text(words), Value::Flag(of.is_whole)];
        about
            .into_iter()
            .chain(tested(&of.groups, &of.test, of.is_sure()))
            .collect()
    };
    let rows = shown(args, ranked(&compared.differences, args.whole));
    let rows = rows.into_iter().map(row);
    table("contexts", &[&about[..], &TESTED].concat(), rows.collect())
}

fn metrics(args: &CompareArgs, compared: &Compared<'_>) -> Section {
    let about = [
        ("metric", Unit::Text),
        ("unit", Unit::Text),
        ("superiority", Unit::Share),
    ];
    let row = |of: &Separation<'_>| {
        let column = &of.figures.column;
        let about = [
            column.name.as_str().into(),
            column.unit.as_str().into(),
            finite(Some(of.higher)),
        ];
        about
            .into_iter()
            .chain(tested(&of.groups, &of.test, of.is_sure()))
            .collect()
    };
    let rows = shown(args, compared.apart.figures.iter().collect());
    let rows = rows.into_iter().map(row);
    table("metrics", &[&about[..], &TESTED].concat(), rows.collect())
}

fn texts(args: &CompareArgs, compared: &Compared<'_>) -> Section {
    let columns = [
        ("text", Unit::Text),
        ("value", Unit::Text),
        ("share_a", Unit::Share),
        ("share_b", Unit::Share),
        ("cramers_v", Unit::Number),
        ("p", Unit::Number),
        ("is_significant", Unit::Text),
    ];
    let row = |of: &TextSeparation| {
        vec![
            of.name.as_str().into(),
            of.value.as_deref().into(),
            finite(Some(of.shares[0])),
            finite(Some(of.shares[1])),
            finite(Some(of.association)),
            finite(Some(of.chance)),
            Value::Flag(of.is_sure()),
        ]
    };
    let rows = shown(args, compared.apart.texts.iter().collect());
    let rows = rows.into_iter().map(row);
    table("texts", &columns, rows.collect())
}

fn gates(compared: &Compared<'_>, decisions: &[Decision]) -> Section {
    let columns = [
        ("condition", Unit::Text),
        ("outcome", Unit::Text),
        ("metric", Unit::Text),
        ("context", Unit::Text),
        ("unit", Unit::Text),
        ("mean_a", Unit::Number),
        ("mean_b", Unit::Number),
        ("difference", Unit::Number),
        ("allowed", Unit::Number),
        ("p", Unit::Number),
        ("why", Unit::Text),
    ];
    let row = |of: &Decision| {
        let (metric, context) = match &of.about {
            About::Figure(name) => (name.as_str().into(), Value::None),
            About::Context(context) => {
                let words = context.map(|of| compared.database.union.words(of).join(";"));
                (Value::None, words.map_or(Value::None, Value::Text))
            }
        };
        let means = of.means.map_or([None; 2], |means| means.map(Some));
        vec![
            of.condition.as_str().into(),
            of.outcome.name().into(),
            metric,
            context,
            of.unit.as_str().into(),
            finite(means[0]),
            finite(means[1]),
            finite(of.difference()),
            finite(of.allowed),
            finite(of.chance),
            gate::why(of, compared).as_deref().into(),
        ]
    };
    table("gates", &columns, decisions.iter().map(row).collect())
}

fn groups(compared: &Compared<'_>) -> Section {
    let columns = [
        ("group", Unit::Text),
        ("condition", Unit::Text),
        ("executions", Unit::Count),
    ];
    let groups = compared.names.iter().zip(&compared.groups);
    let rows = ["a", "b"].into_iter().zip(groups);
    let rows = rows.map(|(letter, (name, group))| {
        vec![
            letter.into(),
            name.as_str().into(),
            (group.len() as u64).into(),
        ]
    });
    table("groups", &columns, rows.collect())
}
