//! Warnings about names in definitions that the traces do not contain.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_language::ClassField;
use tracebraid_language::ast::{Expr, Field};
use tracebraid_language::doubts::Alternatives;
use tracebraid_language::periods::{Capture, Condition, Period, Periods, Source};

use crate::running::{Running, is_thread};

/// Messages about names in the definitions that the traces do not contain. Each field is looked up
/// in the event classes that its condition selects by name. Fields of the running thread are not
/// required if the traces contain switches.
pub(super) fn of(set: &TraceSet, periods: &Periods, running: Option<&Running>) -> Vec<String> {
    let told = |expr: Expr| match running {
        Some(_) => without_thread(&expr),
        None => Some(expr),
    };
    let mut parts = Vec::new();
    for period in &periods.list {
        let around = period.parent.and_then(|parent| periods.list.get(parent));
        let begins = |period: &Period| expression(&period.begin, Source::Event);
        for (condition, captures) in [
            (&period.begin, &period.begin_captures),
            (&period.end, &period.end_captures),
        ] {
            let captured = |source| captured(captures, source);
            let own = vec![
                expression(condition, Source::Event),
                captured(Source::Event),
            ];
            let begin = vec![
                begins(period),
                expression(condition, Source::Begin),
                captured(Source::Begin),
            ];
            let parent = around.map(|around| {
                vec![
                    begins(around),
                    expression(condition, Source::Parent),
                    captured(Source::Parent),
                ]
            });
            parts.extend([own, begin].into_iter().chain(parent).map(Expr::And));
        }
    }
    let parts: Vec<Expr> = parts.into_iter().filter_map(told).collect();
    let doubts = tracebraid_language::doubts::of(&parts, set, Alternatives::Each);
    let doubts = doubts.iter().map(ToString::to_string);
    doubts.chain(untold(set, periods)).collect()
}

/// The part of a condition that applies to the event record `source`. Fields compared with other
/// fields only need to exist.
fn expression(condition: &Condition, source: Source) -> Expr {
    let all = |parts: &[Condition]| parts.iter().map(|part| expression(part, source)).collect();
    match condition {
        Condition::Event(expr) if source == Source::Event => expr.clone(),
        Condition::Event(_) => Expr::And(Vec::new()),
        Condition::And(parts) => Expr::And(all(parts)),
        Condition::Or(parts) => Expr::Or(all(parts)),
        Condition::Not(inner) => Expr::Not(Box::new(expression(inner, source))),
        Condition::Compare(..) => {
            let mut fields = Vec::new();
            condition.references(&mut |reference| {
                if reference.source == source {
                    fields.push(Expr::Has(reference.field.clone()));
                }
            });
            Expr::And(fields)
        }
    }
}

/// Captured fields of the event record `source`.
fn captured(captures: &[Capture], source: Source) -> Expr {
    let own = captures
        .iter()
        .filter(|capture| capture.reference.source == source);
    Expr::And(
        own.map(|capture| Expr::Has(capture.reference.field.clone()))
            .collect(),
    )
}

/// Messages for `pid` and `procname` where no event class has such a context.
fn untold(set: &TraceSet, periods: &Periods) -> Vec<String> {
    let mut asked: Vec<&Field> = Vec::new();
    let mut exprs = Vec::new();
    for period in &periods.list {
        for condition in [&period.begin, &period.end] {
            condition.exprs(&mut |expr| exprs.push(expr));
            condition.references(&mut |reference| asked.push(&reference.field));
        }
        let captures = period.begin_captures.iter().chain(&period.end_captures);
        asked.extend(captures.map(|capture| &capture.reference.field));
    }
    while let Some(expr) = exprs.pop() {
        match expr {
            Expr::And(parts) | Expr::Or(parts) => exprs.extend(parts),
            Expr::Not(inner) => exprs.push(inner),
            Expr::Compare(field, ..) | Expr::Has(field) => asked.push(field),
            Expr::Event(_) => {}
        }
    }
    let is_told = |field: &Field| {
        let mut classes = set.traces.iter().flat_map(|trace| {
            let streams = trace.layout.streams.iter();
            streams.flat_map(move |stream| {
                (0..stream.events.len()).map(move |event| (trace, stream, event))
            })
        });
        classes.any(|(trace, stream, event)| ClassField::new(field, trace, stream, event).is_some())
    };
    let people = [(Field::Pid, "pid"), (Field::Procname, "procname")];
    let untold = people
        .iter()
        .filter(|(field, _)| asked.contains(&field) && !is_told(field));
    untold
        .map(|(_, name)| {
            format!(
                "no event class has the context '{name}', which periods need: use tid, or record \
                 with --context {name} (LTTng: add-context --kernel --type={name})"
            )
        })
        .collect()
}

/// An expression without its comparisons of the running thread.
fn without_thread(expr: &Expr) -> Option<Expr> {
    Some(match expr {
        Expr::And(parts) => Expr::And(parts.iter().filter_map(without_thread).collect()),
        Expr::Or(parts) => Expr::Or(parts.iter().filter_map(without_thread).collect()),
        Expr::Not(inner) => Expr::Not(Box::new(without_thread(inner)?)),
        Expr::Compare(field, ..) | Expr::Has(field) if is_thread(field) => return None,
        other => other.clone(),
    })
}
