//! Comparisons as text and JSON.

use serde_json::{Value, json};
use tracebraid_executions::{
    Difference, SURE, Separation, Test, TextSeparation, ranked, worth_showing,
};

use super::{CompareArgs, Compared, gate};
use crate::commands::contexts;
use crate::commands::executions::{amount, title};
use crate::table::{self, Cell, Column};
use crate::terminal_text;
use crate::units::{grouped, number_of};
use tracebraid_executions::gate::{About, Decision};

pub(super) fn shown<T>(args: &CompareArgs, mut list: Vec<T>) -> Vec<T> {
    if args.top > 0 {
        list.truncate(args.top);
    }
    list
}

/// A probability, marked if it is not significant; tiny probabilities are shown as a bound.
fn chance(chance: f64) -> String {
    match chance {
        // With three digits, 0.0101 would look significant.
        chance if (SURE..SURE + 0.0005).contains(&chance) => format!("{DOUBTFUL} {chance:.4}"),
        chance if chance >= SURE => format!("{DOUBTFUL} {chance:.3}"),
        chance if chance < 1e-6 => "< 1e-6".to_owned(),
        chance if chance < 0.001 => format!("{chance:.0e}"),
        chance => format!("{chance:.3}"),
    }
}

fn effect(test: &Test) -> String {
    match test.effect {
        effect if effect.abs() >= 1000.0 => {
            if effect > 0.0 { "> 999" } else { "< -999" }.to_owned()
        }
        effect => format!("{effect:.2}"),
    }
}

/// A mean: `-` if it is not finite, empty if it is 0.
fn mean(value: f64, unit: &str) -> String {
    match value {
        0.0 => String::new(),
        value if value.is_finite() => amount(value, unit),
        _ => "-".to_owned(),
    }
}

fn signed(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", amount(value, unit))
}

fn interval(test: &Test, unit: &str) -> String {
    let text = |(low, high): (f64, f64)| format!("{} .. {}", signed(low, unit), signed(high, unit));
    test.interval.map_or_else(String::new, text)
}

const NO_DIFFERENCE: &str = "  no significant difference\n";

/// A comparison as text.
pub(super) fn text(args: &CompareArgs, compared: &Compared<'_>) -> String {
    let mut text = format!("{}\n", terminal_text::safe(compared.kind));
    for (letter, (name, group)) in ["A", "B"]
        .iter()
        .zip(compared.names.iter().zip(&compared.groups))
    {
        text.push_str(&format!(
            "  {letter}: {} ({name})\n",
            grouped(group.len() as u64)
        ));
    }
    text.push_str("\nCalling contexts that differ (average execution)\n");
    let all = ranked(&compared.differences, args.whole);
    let listed = worth_showing(&all);
    if !compared.has_times {
        text.push_str(
            "  unknown: the trace has no scheduling events (sched_switch) for these executions\n",
        );
    } else if !all.iter().any(Difference::is_sure) {
        text.push_str(NO_DIFFERENCE);
    }
    let list = shown(args, listed.to_vec());
    if !list.is_empty() {
        text.push_str(&context_table(compared, &list));
        let doubtful = list.iter().filter(|of| !of.is_sure()).count();
        text.push_str(&notes(doubtful, listed.len() - list.len()));
    }
    text.push_str("\nMetrics that differ\n");
    let telling: Vec<_> = compared
        .apart
        .figures
        .iter()
        .filter(|of| of.tells())
        .collect();
    if !telling.iter().any(|of| of.is_sure()) {
        text.push_str(NO_DIFFERENCE);
    }
    let list = shown(args, telling.clone());
    if !list.is_empty() {
        text.push_str(&figures(&list));
    }
    let doubtful = list.iter().filter(|of| !of.is_sure()).count();
    text.push_str(&notes(doubtful, telling.len() - list.len()));
    let telling: Vec<_> = compared
        .apart
        .texts
        .iter()
        .filter(|of| of.tells())
        .collect();
    let list = shown(args, telling.clone());
    if !list.is_empty() {
        text.push('\n');
        text.push_str(&texts(&list));
        let doubtful = list.iter().filter(|of| !of.is_sure()).count();
        text.push_str(&notes(doubtful, telling.len() - list.len()));
    }
    text
}

/// Mark of probabilities that are not significant.
const DOUBTFUL: &str = "~";

/// Notes below a table: the number of rows that are not significant, and of rows that are hidden.
fn notes(doubtful: usize, left: usize) -> String {
    let mut text = String::new();
    if doubtful > 0 {
        let are = if doubtful == 1 { "row is" } else { "rows are" };
        text.push_str(&format!(
            "{DOUBTFUL} {doubtful} {are} not significant (p >= {SURE})\n"
        ));
    }
    if left > 0 {
        let rows = number_of(left as u64, "more row", "more rows");
        text.push_str(&format!("{rows}; --top 0 shows all\n"));
    }
    text
}

fn context_table(compared: &Compared<'_>, list: &[Difference]) -> String {
    let columns = [
        Column::number("difference"),
        Column::number("95 % CI").left_out(2),
        Column::number("effect").left_out(1),
        Column::number("p"),
        Column::number("A").left_out(3),
        Column::number("B").left_out(3),
    ];
    let row = |of: &Difference| {
        let texts = vec![
            signed(of.test.more, "ns"),
            interval(&of.test, "ns"),
            effect(&of.test),
            chance(of.test.chance),
            mean(of.groups[0].mean, "ns"),
            mean(of.groups[1].mean, "ns"),
        ];
        Cell::row(texts, 0, of.is_sure())
    };
    let words = list
        .iter()
        .map(|of| compared.database.union.words(of.context));
    let words: Vec<Vec<String>> = words.collect();
    contexts::below(&table::render(&columns, list.iter().map(row)), &words)
}

fn figures(list: &[&Separation<'_>]) -> String {
    let columns = [
        Column::text("metric"),
        Column::number("P(B > A)"),
        Column::number("difference"),
        Column::number("95 % CI").left_out(2),
        Column::number("effect").left_out(1),
        Column::number("p"),
        Column::number("A").left_out(3),
        Column::number("B").left_out(3),
    ];
    let row = |of: &&Separation<'_>| {
        let unit = &of.figures.column.unit;
        let texts = vec![
            title(&of.figures.column.name),
            format!("{:.0} %", of.higher * 100.0),
            signed(of.test.more, unit),
            interval(&of.test, unit),
            effect(&of.test),
            chance(of.test.chance),
            mean(of.groups[0].mean, unit),
            mean(of.groups[1].mean, unit),
        ];
        Cell::row(texts, 2, of.is_sure())
    };
    table::render(&columns, list.iter().map(row))
}

fn texts(list: &[&TextSeparation]) -> String {
    let columns = [
        Column::text("text"),
        Column::text("strongest text"),
        Column::number("of A"),
        Column::number("of B"),
        Column::number("V").left_out(2),
        Column::number("p"),
    ];
    let row = |of: &&TextSeparation| {
        vec![
            title(&of.name),
            of.value.clone().unwrap_or_else(|| "(none)".to_owned()),
            format!("{:.1} %", of.shares[0] * 100.0),
            format!("{:.1} %", of.shares[1] * 100.0),
            format!("{:.2}", of.association),
            chance(of.chance),
        ]
    };
    table::render(&columns, list.iter().map(row))
}

fn test_json(test: &Test) -> Value {
    json!({
        "difference": test.more, "interval": test.interval.map(|(low, high)| [low, high]),
        // JSON has no infinity, which is the effect if there is no spread.
        "effect": test.effect.is_finite().then_some(test.effect),
        "p": test.chance,
    })
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut value, more) {
        object.extend(more);
    }
    value
}

/// A comparison as JSON.
pub(super) fn json(args: &CompareArgs, compared: &Compared<'_>, decisions: &[Decision]) -> Value {
    let spreads = |groups: &[tracebraid_executions::Spread; 2]| {
        groups.map(|of| {
            json!({"executions": of.executions, "present": of.present, "mean": of.mean, "deviation": of.deviation})
        })
    };
    let context = |of: &Difference| {
        let about = json!({
            "context": compared.database.union.words(of.context), "is_total": of.is_whole,
            "groups": spreads(&of.groups), "is_significant": of.is_sure(),
        });
        with(about, test_json(&of.test))
    };
    let figure = |of: &Separation<'_>| {
        let column = &of.figures.column;
        let about = json!({
            "metric": column.name, "unit": column.unit, "superiority": of.higher, "groups": spreads(&of.groups),
            "is_significant": of.is_sure(),
        });
        with(about, test_json(&of.test))
    };
    let text = |of: &TextSeparation| {
        let groups = [0, 1].map(|at| json!({"executions": of.groups[at], "share": of.shares[at]}));
        json!({
            "text": of.name, "cramers_v": of.association, "value": of.value, "groups": groups, "p": of.chance,
            "is_significant": of.is_sure(),
        })
    };
    let gate = |of: &Decision| {
        let (figure, context) = match &of.about {
            About::Figure(name) => (Some(name), None),
            About::Context(context) => (None, context.map(|of| compared.database.union.words(of))),
        };
        json!({
            "condition": of.condition, "outcome": of.outcome.name(), "metric": figure, "context": context, "unit": of.unit,
            "means": of.means, "difference": of.difference(), "allowed": of.allowed, "p": of.chance, "why": gate::why(of, compared),
        })
    };
    let contexts = shown(args, ranked(&compared.differences, args.whole));
    let groups = compared.names.iter().zip(&compared.groups);
    let groups = groups.map(|(name, group)| json!({"condition": name, "executions": group.len()}));
    json!({
        "kind": compared.kind,
        "groups": groups.collect::<Vec<_>>(),
        "gates": decisions.iter().map(gate).collect::<Vec<_>>(),
        "contexts": contexts.iter().map(context).collect::<Vec<_>>(),
        "metrics": shown(args, compared.apart.figures.iter().collect()).into_iter().map(figure).collect::<Vec<_>>(),
        "texts": shown(args, compared.apart.texts.iter().collect()).into_iter().map(text).collect::<Vec<_>>(),
    })
}
