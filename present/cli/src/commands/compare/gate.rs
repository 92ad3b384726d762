//! `--fail-if`: what makes a comparison fail, for tests of performance.

use tracebraid_executions::database::{Column, Table};
use tracebraid_executions::{Difference, Group, SURE, chance_of_more, time_within, with_unit};

use super::Compared;
use crate::commands::executions::amount;
use crate::failure::Failure;
use crate::table::{number_of, safe};

/// The second group is to have more of something than the first by less than that.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    what: String,
    most: Most,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Most {
    /// Part of the first group's mean.
    Part(f64),
    /// In the figure's unit.
    Number(f64),
}

/// The word for any calling context.
const CONTEXT: &str = "context";

impl Gate {
    /// `FIGURE > AMOUNT`.
    pub(super) fn parse(text: &str) -> Result<Gate, String> {
        let wrong =
            || format!("`{text}`: FIGURE > AMOUNT is expected, as `duration > 5%` or `context > 1ms`");
        let (what, most) = text.split_once('>').ok_or_else(wrong)?;
        let (what, most) = (what.trim(), most.trim());
        let number = match most.strip_suffix('%') {
            Some(part) => part.trim().parse().ok().map(|part: f64| Most::Part(part / 100.0)),
            None => with_unit(most).map(Most::Number),
        };
        Ok(Gate {
            what: Some(what)
                .filter(|what| !what.is_empty())
                .ok_or_else(wrong)?
                .to_owned(),
            most: number.ok_or_else(wrong)?,
            text: text.to_owned(),
        })
    }

    /// How much more it may be, given the first group's mean.
    fn most(&self, mean: f64) -> f64 {
        match self.most {
            Most::Part(part) => part * mean.abs(),
            Most::Number(number) => number,
        }
    }

    fn says(&self, what: &str) -> String {
        format!("--fail-if {}: {what}", self.text)
    }
}

/// What came of gates, in words.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// What was to be found and was.
    pub(super) failed: Vec<String>,
    /// What may be so, and may be chance.
    pub(super) undecided: Vec<String>,
}

/// What came of them.
///
/// # Errors
/// When executions do not have what is asked for, or groups have too few of them to tell anything.
pub(super) fn verdict(gates: &[Gate], compared: &Compared<'_>, table: &Table) -> Result<Verdict, Failure> {
    let mut verdict = Verdict::default();
    for gate in gates {
        let mut groups = compared.groups.iter().zip(&compared.names);
        if let Some((group, name)) = groups.find(|(group, _)| group.len() < 2) {
            let count = number_of(group.len() as u64, "execution", "executions");
            let what = format!("cannot be decided: group `{name}` has {count}");
            return Err(Failure::usage(gate.says(&what)));
        }
        match gate.what.as_str() {
            CONTEXT => contexts(gate, compared, &mut verdict),
            what => figure(gate, what, compared, table, &mut verdict)?,
        }
    }
    Ok(verdict)
}

fn contexts(gate: &Gate, compared: &Compared<'_>, verdict: &mut Verdict) {
    let own = compared.differences.iter().filter(|of| !of.is_whole);
    let too_much = own.filter(|of| of.test.more > gate.most(of.groups[0].mean));
    let (sure, other): (Vec<&Difference>, Vec<_>) = too_much.partition(|of| of.is_sure());
    let greatest = |list: Vec<&Difference>| {
        let most = list
            .into_iter()
            .max_by(|one, other| one.test.more.total_cmp(&other.test.more))?;
        let context = compared.database.union.words(most.context).join(" > ");
        let context = safe(&context);
        let more = amount(most.test.more, "ns");
        Some((format!("{more} more in {context}"), most.test.chance))
    };
    match (greatest(sure), greatest(other)) {
        (Some((what, _)), _) => verdict.failed.push(gate.says(&what)),
        (None, Some((what, chance))) => verdict.undecided.push(gate.says(&maybe(&what, chance))),
        (None, None) => {}
    }
}

/// A figure of executions, or their time in frames.
fn figure(
    gate: &Gate,
    what: &str,
    compared: &Compared<'_>,
    table: &Table,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let wrong = |error: String| Failure::usage(gate.says(&error));
    let (values, name, unit) = match what.strip_prefix("ctx.") {
        Some(frame) => {
            let frame = frame.trim_matches('"');
            let values = time_within(frame, compared.database, table).map_err(wrong)?;
            (values, what, "ns")
        }
        None => {
            let figures = table.figure(what);
            let figures = figures.ok_or_else(|| wrong(format!("executions have no figure {what}")))?;
            let Column { name, unit, .. } = &figures.column;
            (figures.values.clone(), name.as_str(), unit.as_str())
        }
    };
    let of_group = |group: &Group| -> Vec<f64> {
        let values = group.iter().filter_map(|&row| values.get(row).copied());
        values.filter(|value| !value.is_nan()).collect()
    };
    let [first, second] = [0, 1].map(|at: usize| of_group(&compared.groups[at]));
    if first.len() < 2 || second.len() < 2 {
        return Err(wrong(format!(
            "cannot be decided: too few executions have {what}"
        )));
    }
    let means = [&first, &second].map(|values| values.iter().sum::<f64>() / values.len() as f64);
    let shifted: Vec<f64> = match gate.most {
        Most::Part(part) => first.iter().map(|value| value + value.abs() * part).collect(),
        Most::Number(number) => first.iter().map(|value| value + number).collect(),
    };
    let chance = chance_of_more(&shifted, &second);
    let more = means[1] - means[0];
    let what = format!("{name} has {} more", amount(more, unit));
    if chance < SURE {
        verdict.failed.push(gate.says(&what));
    } else if more > gate.most(means[0]) {
        verdict.undecided.push(gate.says(&maybe(&what, chance)));
    }
    Ok(())
}

fn maybe(what: &str, chance: f64) -> String {
    format!(
        "undecided: {what}, which may be chance ({:.0} %): more executions would tell",
        chance * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_amounts_or_parts() {
        let part = Gate::parse("duration > 5%").unwrap();
        assert!((part.most(100.0) - 5.0).abs() < 1e-9);
        assert!((Gate::parse("context>2ms").unwrap().most(7.0) - 2e6).abs() < 1e-9);
        for wrong in ["duration", "> 5%", "duration > much", "duration < 5%"] {
            assert!(Gate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
