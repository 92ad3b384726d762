//! Gates: conditions on how much the second of two groups of executions may exceed the first.

use crate::compare::{Difference, SURE};
use crate::condition::{Dimension, quantity};
use crate::contexts::ContextId;
use crate::database::{Database, Table};
use crate::groups::Group;
use crate::statistics::chance_of_more;
use crate::values::{Values, named};

/// A condition that the second group meets unless its mean exceeds the first group's by more than
/// the allowed amount.
#[derive(Clone, Debug)]
pub struct Gate {
    what: String,
    most: Most,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Most {
    /// Fraction of the first group's mean.
    Part(f64),
    /// Nanoseconds or bytes if the amount has a unit, otherwise in the unit of the metric.
    Number(f64, Option<Dimension>),
}

/// The word for any calling context.
const CONTEXT: &str = "context";

impl Gate {
    /// Parses `METRIC > AMOUNT`.
    ///
    /// # Errors
    /// A message for the user if the text does not have that form.
    pub fn parse(text: &str) -> Result<Gate, String> {
        let wrong = || {
            format!("`{text}`: write METRIC > AMOUNT, such as `duration > 5%` or `context > 1ms`")
        };
        // The name of a frame may contain `>`.
        let (what, most) = text.rsplit_once('>').ok_or_else(wrong)?;
        let (what, most) = (what.trim(), most.trim());
        let number = match most.strip_suffix('%') {
            Some(part) => part
                .trim()
                .parse()
                .ok()
                .map(|part: f64| Most::Part(part / 100.0)),
            None => quantity(most).map(|(number, dimension)| Most::Number(number, dimension)),
        };
        let is_finite = |most: &Most| match most {
            Most::Part(number) | Most::Number(number, _) => number.is_finite(),
        };
        let number = number.filter(is_finite);
        Ok(Gate {
            what: Some(what)
                .filter(|what| !what.is_empty())
                .ok_or_else(wrong)?
                .to_owned(),
            most: number.ok_or_else(wrong)?,
            text: text.to_owned(),
        })
    }

    /// Allowed excess over the first group's mean.
    fn most(&self, mean: f64) -> f64 {
        match self.most {
            Most::Part(part) => part * mean.abs(),
            Most::Number(number, _) => number,
        }
    }

    /// The first group's numbers, each increased by the allowed amount.
    fn shifted(&self, first: &[f64]) -> Vec<f64> {
        first
            .iter()
            .map(|value| value + self.most(*value))
            .collect()
    }

    /// Checks the unit of the amount against the unit of the metric. An amount without a unit is
    /// allowed only if the metric's name contains the unit; 0 is allowed without a unit.
    fn fits(&self, unit: &str) -> Result<(), String> {
        let Most::Number(number, dimension) = self.most else {
            return Ok(());
        };
        let what = &self.what;
        match (unit, dimension) {
            _ if number == 0.0 => Ok(()),
            ("ns", Some(Dimension::Time)) | ("bytes", Some(Dimension::Size)) | ("", None) => Ok(()),
            ("ns", None) if what.ends_with("_ns") => Ok(()),
            ("bytes", None) if what.ends_with("_bytes") => Ok(()),
            ("ns", None) => Err(format!(
                "{what} is a time: give a unit, such as 5ms, 20us or 3s, or a percentage such as 5%"
            )),
            ("bytes", None) => Err(format!(
                "{what} is a size: give a unit, such as 64KiB, 2MiB or 100B, or a percentage such as 5%"
            )),
            ("ns", Some(Dimension::Size)) => Err(format!(
                "{what} is a time, but the amount is a size: write for example 5ms or 5%"
            )),
            ("bytes", Some(Dimension::Time)) => Err(format!(
                "{what} is a size, but the amount is a time: write for example 64KiB or 5%"
            )),
            (_, _) => Err(format!(
                "{what} is a number without a unit: write for example 5 or 5%"
            )),
        }
    }
}

/// Result of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The excess is at most the allowed amount.
    Passed,
    /// The excess is significantly greater than allowed.
    Failed,
    /// The excess is greater than allowed, but not significantly.
    Undecided,
    /// Too few executions have the metric.
    Undecidable,
}

impl Outcome {
    /// Result of whether the excess is greater than allowed, and significantly so.
    fn of(is_more: bool, is_sure: bool) -> Outcome {
        match (is_more, is_sure) {
            (false, _) => Outcome::Passed,
            (true, true) => Outcome::Failed,
            (true, false) => Outcome::Undecided,
        }
    }

    /// Name in output.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Undecided => "undecided",
            Outcome::Undecidable => "undecidable",
        }
    }

    /// Result of several gates: failed if one failed, otherwise undecidable if one is undecidable,
    /// otherwise passed.
    pub fn of_all(decisions: &[Decision]) -> Outcome {
        let has = |outcome| decisions.iter().any(|of| of.outcome == outcome);
        let decided = [Outcome::Failed, Outcome::Undecidable]
            .into_iter()
            .find(|of| has(*of));
        decided.unwrap_or(Outcome::Passed)
    }
}

/// Subject of a gate.
#[derive(Clone, Debug)]
pub enum About {
    /// A metric, or the time in frames with a name.
    Figure(String),
    /// Own time of a context: of those that decide the result, the context with the greatest
    /// excess. `None` if there is no context.
    Context(Option<ContextId>),
}

/// Reason for a gate's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The size of the excess.
    Excess,
    /// A group has fewer than two executions: its index, and its number of executions.
    FewExecutions(usize, usize),
    /// No execution has a value of the metric.
    NoValue(String),
    /// Fewer than two executions of a group have the metric.
    FewValues(String),
    /// The metric has infinite values.
    Infinite(String),
    /// No execution of either group has the context.
    Nowhere(String),
}

/// Result of a gate, with the numbers that led to it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The condition, as the user wrote it.
    pub condition: String,
    /// Result.
    pub outcome: Outcome,
    /// Reason for the result.
    pub reason: Reason,
    /// Subject of the gate.
    pub about: About,
    /// Unit of the numbers.
    pub unit: String,
    /// Mean of each group.
    pub means: Option<[f64; 2]>,
    /// Excess of the second group over the first, as it was tested.
    pub more: Option<f64>,
    /// Allowed excess.
    pub allowed: Option<f64>,
    /// Probability that chance alone leads to an excess over the allowed amount.
    pub chance: Option<f64>,
}

impl Decision {
    fn undecidable(gate: &Gate, reason: Reason) -> Decision {
        Decision {
            condition: gate.text.clone(),
            outcome: Outcome::Undecidable,
            reason,
            about: match gate.what.as_str() {
                CONTEXT => About::Context(None),
                figure => About::Figure(figure.to_owned()),
            },
            unit: String::new(),
            means: None,
            more: None,
            allowed: None,
            chance: None,
        }
    }

    /// Difference of the means: second group minus first.
    pub fn difference(&self) -> Option<f64> {
        self.means.map(|[first, second]| second - first)
    }
}

/// Error of a gate whose metric does not exist, or whose amount does not fit the metric.
#[derive(Clone, Debug)]
pub struct GateError {
    /// The condition, as the user wrote it.
    pub condition: String,
    /// Message for the user.
    pub message: String,
}

/// Two groups of executions that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'c> {
    /// Database of the executions.
    pub database: &'c Database,
    /// All executions of the kind.
    pub table: &'c Table,
    /// The groups.
    pub groups: &'c [Group; 2],
    /// Differences by context.
    pub differences: &'c [Difference],
}

/// Evaluates gates.
///
/// # Errors
/// If executions do not have a metric of a gate.
pub fn decisions(gates: &[Gate], pair: Pair<'_>) -> Result<Vec<Decision>, GateError> {
    let decide = |gate: &Gate| {
        let wrong = |message| GateError {
            condition: gate.text.clone(),
            message,
        };
        let mut groups = pair.groups.iter().enumerate();
        if let Some((at, group)) = groups.find(|(_, group)| group.len() < 2) {
            let reason = Reason::FewExecutions(at, group.len());
            return Ok(Decision::undecidable(gate, reason));
        }
        match gate.what.as_str() {
            CONTEXT => {
                gate.fits("ns").map_err(wrong)?;
                Ok(contexts(gate, pair))
            }
            what => figure(gate, what, pair).map_err(wrong),
        }
    };
    gates.iter().map(decide).collect()
}

fn contexts(gate: &Gate, pair: Pair<'_>) -> Decision {
    let own: Vec<&Difference> = pair.differences.iter().filter(|of| !of.is_whole).collect();
    let allowed = |of: &Difference| gate.most(of.groups[0].mean);
    // Corrected for the number of contexts that are tested.
    let chance = |of: &Difference| {
        let [first, second] =
            [0, 1].map(|at: usize| own_times(pair.table, &pair.groups[at], of.context));
        (chance_of_more(&gate.shifted(&first), &second) * own.len() as f64).min(1.0)
    };
    let too_much = own.iter().copied().filter(|of| of.test.more > allowed(of));
    // The difference must be significant, and so must be its excess over the allowed amount.
    let (sure, other): (Vec<_>, Vec<_>) =
        too_much.partition(|of| of.is_sure() && chance(of) < SURE);
    let is_more = !sure.is_empty() || !other.is_empty();
    let outcome = Outcome::of(is_more, !sure.is_empty());
    let deciding = match outcome {
        Outcome::Failed => greatest(&sure),
        Outcome::Undecided => greatest(&other),
        Outcome::Passed | Outcome::Undecidable => greatest(&own),
    };
    Decision {
        condition: gate.text.clone(),
        outcome,
        reason: Reason::Excess,
        about: About::Context(deciding.map(|of| of.context)),
        unit: "ns".to_owned(),
        means: deciding.map(|of| of.groups.map(|group| group.mean)),
        more: deciding.map(|of| of.test.more),
        allowed: deciding.map(allowed),
        chance: deciding.map(|of| chance(of).max(of.test.chance)),
    }
}

/// The difference with the greatest excess.
fn greatest<'d>(list: &[&'d Difference]) -> Option<&'d Difference> {
    let more = |of: &Difference| of.test.more;
    let greatest = list
        .iter()
        .max_by(|one, other| more(one).total_cmp(&more(other)));
    greatest.copied()
}

/// Own time of each execution of a group in a context.
fn own_times(table: &Table, group: &Group, context: ContextId) -> Vec<f64> {
    let time = |&row: &usize| {
        let times = table.rows.of(row);
        let found = times.binary_search_by_key(&context, |(of, _)| *of);
        found
            .ok()
            .and_then(|at| times.get(at))
            .map_or(0.0, |(_, time)| *time as f64)
    };
    group.iter().map(time).collect()
}

/// Tests any number that conditions accept: metrics, times in frames, captured values.
fn figure(gate: &Gate, what: &str, pair: Pair<'_>) -> Result<Decision, String> {
    let found = named(what, pair.database, pair.table)?;
    let name = found.name.as_str();
    let text = || Err(format!("{name} is a text; --fail-if needs a number"));
    let (values, unit) = match &found.values {
        Values::Numbers(numbers, _) => (numbers.as_ref(), found.values.unit()),
        Values::Both(parts) => match &parts[0] {
            Values::Numbers(numbers, _) => (numbers.as_ref(), found.values.unit()),
            _ => return text(),
        },
        Values::Texts(..) => return text(),
        Values::Unknown(_) => {
            return Ok(Decision::undecidable(
                gate,
                Reason::NoValue(name.to_owned()),
            ));
        }
    };
    gate.fits(unit)?;
    let of_group = |group: &Group| -> Vec<f64> {
        let values = group.iter().filter_map(|&row| values.get(row).copied());
        values.filter(|value| !value.is_nan()).collect()
    };
    let [first, second] = [0, 1].map(|at: usize| of_group(&pair.groups[at]));
    if first.len() < 2 || second.len() < 2 {
        return Ok(Decision::undecidable(
            gate,
            Reason::FewValues(what.to_owned()),
        ));
    }
    let means = [&first, &second].map(|values| values.iter().sum::<f64>() / values.len() as f64);
    if means.iter().any(|mean| !mean.is_finite()) {
        return Ok(Decision::undecidable(
            gate,
            Reason::Infinite(name.to_owned()),
        ));
    }
    let chance = chance_of_more(&gate.shifted(&first), &second);
    let more = means[1] - means[0];
    let allowed = gate.most(means[0]);
    let outcome = Outcome::of(more > allowed, chance < SURE);
    let is_nowhere = outcome == Outcome::Passed && what.starts_with("ctx.") && means == [0.0; 2];
    Ok(Decision {
        condition: gate.text.clone(),
        outcome,
        reason: match is_nowhere {
            true => Reason::Nowhere(what.to_owned()),
            false => Reason::Excess,
        },
        about: About::Figure(name.to_owned()),
        unit: unit.to_owned(),
        means: Some(means),
        more: Some(more),
        allowed: Some(allowed),
        chance: Some(chance),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_unit_of_what_they_are_about() {
        let fits = |text: &str, unit| Gate::parse(text).unwrap().fits(unit);
        for (text, unit) in [
            ("duration > 5ms", "ns"),
            ("duration > 5%", "ns"),
            ("duration > 0", "ns"),
            ("duration_ns > 5000", "ns"),
            ("read > 64KiB", "bytes"),
            ("read_bytes > 100", "bytes"),
            ("switches > 3", ""),
        ] {
            assert_eq!(fits(text, unit), Ok(()), "{text}");
        }
        for (text, unit, what) in [
            ("duration > 5", "ns", "give a unit"),
            ("duration > 64KiB", "ns", "the amount is a size"),
            ("read > 100", "bytes", "give a unit"),
            ("read > 1ms", "bytes", "the amount is a time"),
            ("switches > 1ms", "", "without a unit"),
            ("switches > 1KiB", "", "without a unit"),
        ] {
            let error = fits(text, unit).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn gates_are_amounts_or_parts() {
        let part = Gate::parse("duration > 5%").unwrap();
        assert!((part.most(100.0) - 5.0).abs() < 1e-9);
        assert!((Gate::parse("context>2ms").unwrap().most(7.0) - 2e6).abs() < 1e-9);
        let template = Gate::parse("ctx.\"Map<int>::at\" > 1us").unwrap();
        assert_eq!(template.what, "ctx.\"Map<int>::at\"");
        for wrong in [
            "duration",
            "> 5%",
            "duration > much",
            "duration < 5%",
            "duration > nan%",
            "duration > NaN",
            "duration > inf%",
        ] {
            assert!(Gate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
