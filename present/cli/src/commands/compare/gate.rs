//! `--fail-if`: what makes a comparison fail, for tests of performance.

use tracebraid_executions::database::Table;
use tracebraid_executions::{
    ContextId, Difference, Dimension, Group, SURE, Values, chance_of_more, named, quantity,
};

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
    /// In nanoseconds or bytes if it has a unit, else in the figure's.
    Number(f64, Option<Dimension>),
}

/// The word for any calling context.
const CONTEXT: &str = "context";

impl Gate {
    /// `FIGURE > AMOUNT`.
    pub(super) fn parse(text: &str) -> Result<Gate, String> {
        let wrong =
            || format!("`{text}`: FIGURE > AMOUNT is expected, as `duration > 5%` or `context > 1ms`");
        // A frame may be called so.
        let (what, most) = text.rsplit_once('>').ok_or_else(wrong)?;
        let (what, most) = (what.trim(), most.trim());
        let number = match most.strip_suffix('%') {
            Some(part) => part.trim().parse().ok().map(|part: f64| Most::Part(part / 100.0)),
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
        first.iter().map(|value| value + self.most(*value)).collect()
    }

    /// That the amount is one of what it is about: a time of times, without a unit only where the name has it. None is none in
    /// any unit.
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
            (_, _) => Err(format!("{what} is a number without a unit: give one as 5, or 5%")),
        }
    }

    fn says(&self, what: &str) -> String {
        format!("--fail-if {}: {what}", self.text)
    }
}

/// What came of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
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

    pub(super) fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Undecided => "undecided",
            Outcome::Undecidable => "undecidable",
        }
    }
}

/// What a gate is about.
#[derive(Clone, Debug)]
pub(super) enum About {
    /// A figure, or the time in frames of a name.
    Figure(String),
    /// The time in a context itself: that which has most more of those that decide; none if there are none.
    Context(Option<ContextId>),
}

/// What a gate decided, and by what.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    /// As it was given.
    pub(super) condition: String,
    pub(super) outcome: Outcome,
    pub(super) about: About,
    pub(super) unit: String,
    /// The groups' means.
    pub(super) means: Option<[f64; 2]>,
    /// How much more the second group may have.
    pub(super) allowed: Option<f64>,
    /// How probable it is by chance that it has more than that.
    pub(super) chance: Option<f64>,
    /// What was found, in words, if there is more than is allowed.
    pub(super) why: Option<String>,
}

impl Decision {
    /// There are too few executions, as that says.
    fn undecidable(gate: &Gate, what: &str) -> Decision {
        Decision {
            condition: gate.text.clone(),
            outcome: Outcome::Undecidable,
            about: match gate.what.as_str() {
                CONTEXT => About::Context(None),
                figure => About::Figure(figure.to_owned()),
            },
            unit: String::new(),
            means: None,
            allowed: None,
            chance: None,
            why: Some(format!("cannot be decided: {what}")),
        }
    }

    /// How much more the second group has.
    pub(super) fn difference(&self) -> Option<f64> {
        self.means.map(|[first, second]| second - first)
    }

    /// What is said on standard error.
    pub(super) fn says(&self) -> Option<String> {
        self.why
            .as_ref()
            .map(|why| format!("--fail-if {}: {why}", self.condition))
    }
}

/// What came of them.
///
/// # Errors
/// When executions do not have what is asked for.
pub(super) fn decisions(
    gates: &[Gate],
    compared: &Compared<'_>,
    table: &Table,
) -> Result<Vec<Decision>, Failure> {
    let decide = |gate: &Gate| {
        let mut groups = compared.groups.iter().zip(&compared.names);
        if let Some((group, name)) = groups.find(|(group, _)| group.len() < 2) {
            let count = number_of(group.len() as u64, "execution", "executions");
            return Ok(Decision::undecidable(
                gate,
                &format!("group `{name}` has {count}"),
            ));
        }
        match gate.what.as_str() {
            CONTEXT => {
                let fits = gate.fits("ns");
                fits.map_err(|what| Failure::usage(gate.says(&what)))?;
                Ok(contexts(gate, compared, table))
            }
            what => figure(gate, what, compared, table),
        }
    };
    gates.iter().map(decide).collect()
}

fn contexts(gate: &Gate, compared: &Compared<'_>, table: &Table) -> Decision {
    let own: Vec<&Difference> = compared.differences.iter().filter(|of| !of.is_whole).collect();
    let allowed = |of: &Difference| gate.most(of.groups[0].mean);
    // As many are looked at.
    let chance = |of: &Difference| {
        let [first, second] = [0, 1].map(|at: usize| own_times(table, &compared.groups[at], of.context));
        (chance_of_more(&gate.shifted(&first), &second) * own.len() as f64).min(1.0)
    };
    let too_much = own.iter().copied().filter(|of| of.test.more > allowed(of));
    // They must differ, and by more than that.
    let (sure, other): (Vec<_>, Vec<_>) = too_much.partition(|of| of.is_sure() && chance(of) < SURE);
    let is_more = !sure.is_empty() || !other.is_empty();
    let outcome = Outcome::of(is_more, !sure.is_empty());
    let deciding = match outcome {
        Outcome::Failed => greatest(&sure),
        Outcome::Undecided => greatest(&other),
        Outcome::Passed | Outcome::Undecidable => greatest(&own),
    };
    let judged = deciding.map(|of| chance(of).max(of.test.chance));
    let what = |of: &Difference| {
        let context = compared.database.union.words(of.context).join(" > ");
        let context = safe(&context);
        let more = amount(of.test.more, "ns");
        format!("{more} more in {context}")
    };
    Decision {
        condition: gate.text.clone(),
        outcome,
        about: About::Context(deciding.map(|of| of.context)),
        unit: "ns".to_owned(),
        means: deciding.map(|of| of.groups.map(|group| group.mean)),
        allowed: deciding.map(allowed),
        chance: judged,
        why: deciding.and_then(|of| why(outcome, what(of), judged.unwrap_or(1.0))),
    }
}

/// That with most more.
fn greatest<'d>(list: &[&'d Difference]) -> Option<&'d Difference> {
    let more = |of: &Difference| of.test.more;
    let greatest = list.iter().max_by(|one, other| more(one).total_cmp(&more(other)));
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
fn figure(gate: &Gate, what: &str, compared: &Compared<'_>, table: &Table) -> Result<Decision, Failure> {
    let wrong = |error: String| Failure::usage(gate.says(&error));
    let found = named(what, compared.database, table).map_err(wrong)?;
    let name = found.name.as_str();
    let (values, unit) = match &found.values {
        Values::Numbers(numbers, _) => (numbers.as_ref(), found.values.unit()),
        Values::Both(parts) => match &parts[0] {
            Values::Numbers(numbers, _) => (numbers.as_ref(), found.values.unit()),
            _ => return Err(wrong(format!("{name} is a text; --fail-if needs a number"))),
        },
        Values::Texts(..) => return Err(wrong(format!("{name} is a text; --fail-if needs a number"))),
        Values::Unknown(_) => {
            let none = format!("no execution has a value of {name}");
            return Ok(Decision::undecidable(gate, &none));
        }
    };
    gate.fits(unit).map_err(wrong)?;
    let of_group = |group: &Group| -> Vec<f64> {
        let values = group.iter().filter_map(|&row| values.get(row).copied());
        values.filter(|value| !value.is_nan()).collect()
    };
    let [first, second] = [0, 1].map(|at: usize| of_group(&compared.groups[at]));
    if first.len() < 2 || second.len() < 2 {
        let what = format!("too few executions have {what}");
        return Ok(Decision::undecidable(gate, &what));
    }
    let means = [&first, &second].map(|values| values.iter().sum::<f64>() / values.len() as f64);
    if means.iter().any(|mean| !mean.is_finite()) {
        return Ok(Decision::undecidable(
            gate,
            &format!("{name} has infinite values"),
        ));
    }
    let chance = chance_of_more(&gate.shifted(&first), &second);
    let more = means[1] - means[0];
    let allowed = gate.most(means[0]);
    let outcome = Outcome::of(more > allowed, chance < SURE);
    let is_nowhere = what.starts_with("ctx.") && means == [0.0; 2];
    Ok(Decision {
        condition: gate.text.clone(),
        outcome,
        about: About::Figure(name.to_owned()),
        unit: unit.to_owned(),
        means: Some(means),
        allowed: Some(allowed),
        chance: Some(chance),
        why: match (outcome, is_nowhere) {
            (Outcome::Passed, true) => Some(format!("passed: no execution of either group has {what}")),
            _ => why(outcome, format!("{name} has {} more", amount(more, unit)), chance),
        },
    })
}

/// What is said of more than is allowed.
fn why(outcome: Outcome, what: String, chance: f64) -> Option<String> {
    match outcome {
        Outcome::Passed | Outcome::Undecidable => None,
        Outcome::Failed => Some(what),
        Outcome::Undecided => Some(maybe(&what, chance)),
    }
}

fn maybe(what: &str, chance: f64) -> String {
    format!("undecided: {what}, but not significantly (p = {chance:.2}); compare more executions")
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
