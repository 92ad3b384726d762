//! `--fail-if`: what makes a comparison fail, for tests of performance.

use tracebraid_executions::{SURE, Test, with_unit};

use super::Compared;
use crate::commands::executions::amount;
use crate::failure::Failure;

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

    /// Whether a difference is surely greater, given the first group's mean.
    fn fails(&self, mean: f64, test: &Test) -> bool {
        let most = match self.most {
            Most::Part(part) => part * mean.abs(),
            Most::Number(number) => number,
        };
        test.chance < SURE && test.more > most
    }
}

/// What was to be found and was, in words.
///
/// # Errors
/// When executions do not have what is asked for.
pub(super) fn found(gates: &[Gate], compared: &Compared<'_>) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for gate in gates {
        match gate.what.as_str() {
            CONTEXT => found.extend(contexts(gate, compared)),
            what => found.extend(figure(gate, what, compared)?),
        }
    }
    Ok(found)
}

fn contexts(gate: &Gate, compared: &Compared<'_>) -> Option<String> {
    let own = compared.differences.iter().filter(|of| !of.is_whole);
    let failing = own.filter(|of| gate.fails(of.groups[0].mean, &of.test));
    let most = failing.max_by(|one, other| one.test.more.total_cmp(&other.test.more))?;
    let context = compared.database.union.words(most.context).join(" > ");
    Some(format!(
        "--fail-if {}: {} more in {context}",
        gate.text,
        amount(most.test.more, "ns")
    ))
}

fn figure(gate: &Gate, what: &str, compared: &Compared<'_>) -> Result<Option<String>, Failure> {
    let of = compared
        .separations
        .iter()
        .find(|of| of.figures.column.is_called(what));
    let of = of.ok_or_else(|| {
        Failure::usage(format!(
            "--fail-if {}: executions have no figure {what}",
            gate.text
        ))
    })?;
    let more = amount(of.test.more, &of.figures.column.unit);
    let fails = gate.fails(of.groups[0].mean, &of.test);
    Ok(fails.then(|| {
        format!(
            "--fail-if {}: {} has {more} more",
            gate.text, of.figures.column.name
        )
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_amounts_or_parts() {
        let part = Gate::parse("duration > 5%").unwrap();
        let test = |more, chance| Test {
            more,
            chance,
            interval: None,
            effect: 0.0,
        };
        assert!(part.fails(100.0, &test(6.0, 0.001)) && !part.fails(100.0, &test(4.0, 0.001)));
        assert!(!part.fails(100.0, &test(60.0, 0.2)));
        assert!(Gate::parse("context>2ms").unwrap().fails(0.0, &test(3e6, 0.0)));
        for wrong in ["duration", "> 5%", "duration > much", "duration < 5%"] {
            assert!(Gate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
