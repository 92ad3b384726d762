//! Gates: whether the second of two groups of executions significantly exceeds the first.

use crate::compare::{Difference, SURE};
use crate::condition::{Dimension, quantity};
use crate::contexts::ContextId;
use crate::database::{Database, Table};
use crate::groups::Group;
use crate::statistics::chance_of_more;
use crate::values::{Values, named};

/// A condition that the second of two groups meets if it does not have more of something than the
/// first by more than that.
#[derive(Clone, Debug)]
pub struct Gate {
    what: String,
    most: Most,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Most {
    /// Part of the first group's mean.
    Part(f64),
    /// In nanoseconds or bytes if it has a unit, else in the figure's.
    Number(f64, Option<Dimension>),
}

/// The word for any calling context.
const CONTEXT: &str = "context";

impl Gate {
    /// `FIGURE > AMOUNT`.
    ///
    /// # Errors
    /// When it is not of that form.
    pub fn parse(text: &str) -> Result<Gate, String> {
        let wrong = || {
            format!("`{text}`: FIGURE > AMOUNT is expected, as `duration > 5%` or `context > 1ms`")
        };
        // A frame may be called so.
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

    /// How much more it may be, given the first group's mean.
    fn most(&self, mean: f64) -> f64 {
        match self.most {
            Most::Part(part) => part * mean.abs(),
            Most::Number(number, _) => number,
        }
    }

    /// The first group's numbers, each as much greater as may be.
    fn shifted(&self, first: &[f64]) -> Vec<f64> {
        first
            .iter()
            .map(|value| value + self.most(*value))
            .collect()
    }

    /// That the amount is one of what it is about: a time of times, without a unit only where the
    /// name has it. None is none in any unit.
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
                "{what} is a time: say in which unit, as 5ms, 20us, 3s, or as a part, 5%"
            )),
            ("bytes", None) => Err(format!(
                "{what} is a size: say in which unit, as 64KiB, 2MiB, 100B, or as a part, 5%"
            )),
            ("ns", Some(Dimension::Size)) => Err(format!(
                "{what} is a time, and the amount is a size: give one as 5ms, or 5%"
            )),
            ("bytes", Some(Dimension::Time)) => Err(format!(
                "{what} is a size, and the amount is a time: give one as 64KiB, or 5%"
            )),
            (_, _) => Err(format!(
                "{what} is a number without a unit: give one as 5, or 5%"
            )),
        }
    }
}

/// What came of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is not surely more, nor may there be.
    Passed,
    /// There is surely more.
    Failed,
    /// There may be more, and that may be chance.
    Undecided,
    /// Too few executions have it.
    Undecidable,
}

impl Outcome {
    /// Of more than is allowed, and how sure that is.
    fn of(is_more: bool, is_sure: bool) -> Outcome {
        match (is_more, is_sure) {
            (false, _) => Outcome::Passed,
            (true, true) => Outcome::Failed,
            (true, false) => Outcome::Undecided,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Undecided => "undecided",
            Outcome::Undecidable => "undecidable",
        }
    }

    /// What came of all gates together: a failure counts most, then what cannot be decided.
    pub fn of_all(decisions: &[Decision]) -> Outcome {
        let has = |outcome| decisions.iter().any(|of| of.outcome == outcome);
        let decided = [Outcome::Failed, Outcome::Undecidable]
            .into_iter()
            .find(|of| has(*of));
        decided.unwrap_or(Outcome::Passed)
    }
}

/// What a gate is about.
#[derive(Clone, Debug)]
pub enum About {
    /// A figure, or the time in frames of a name.
    Figure(String),
    /// The time in a context itself: that which has most more of those that decide; none if there
    /// are none.
    Context(Option<ContextId>),
}

/// Why a gate has its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is that much more, or not.
    Excess,
    /// That group has fewer than two executions: its number, and how many it has.
    FewExecutions(usize, usize),
    /// No execution has a value of that.
    NoValue(String),
    /// Fewer than two executions of a group have that.
    FewValues(String),
    /// That has infinite values.
    Infinite(String),
    /// No execution of either group has that context.
    Nowhere(String),
}

/// What a gate decided, and by what.
#[derive(Clone, Debug)]
pub struct Decision {
    /// As it was given.
    pub condition: String,
    /// The outcome.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// What it is about.
    pub about: About,
    /// The unit of the numbers.
    pub unit: String,
    /// The groups' means.
    pub means: Option<[f64; 2]>,
    /// How much more the second group has, as it was tested.
    pub more: Option<f64>,
    /// How much more the second group may have.
    pub allowed: Option<f64>,
    /// How probable it is by chance that it has more than that.
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

    /// How much more the second group has on average.
    pub fn difference(&self) -> Option<f64> {
        self.means.map(|[first, second]| second - first)
    }
}

/// A gate that is about something that executions do not have, or that its amount does not fit.
#[derive(Clone, Debug)]
pub struct GateError {
    /// The gate, as it was given.
    pub condition: String,
    /// What is wrong.
    pub message: String,
}

/// Two groups of executions that were compared.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'c> {
    /// Where they are kept.
    pub database: &'c Database,
    /// All executions of their kind.
    pub table: &'c Table,
    /// The groups.
    pub groups: &'c [Group; 2],
    /// How they differ by context.
    pub differences: &'c [Difference],
}

/// What came of gates.
///
/// # Errors
/// When executions do not have what is asked for.
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
    // As many are looked at.
    let chance = |of: &Difference| {
        let [first, second] =
            [0, 1].map(|at: usize| own_times(pair.table, &pair.groups[at], of.context));
        (chance_of_more(&gate.shifted(&first), &second) * own.len() as f64).min(1.0)
    };
    let too_much = own.iter().copied().filter(|of| of.test.more > allowed(of));
    // They must differ, and by more than that.
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

/// That with most more.
fn greatest<'d>(list: &[&'d Difference]) -> Option<&'d Difference> {
    let more = |of: &Difference| of.test.more;
    let greatest = list
        .iter()
        .max_by(|one, other| more(one).total_cmp(&more(other)));
    greatest.copied()
}

/// The time of each execution of a group in a context itself.
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

/// Tests any number that conditions take: figures, times in frames, captured values.
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
            ("duration > 5", "ns", "say in which unit"),
            ("duration > 64KiB", "ns", "the amount is a size"),
            ("read > 100", "bytes", "say in which unit"),
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
