//! Outcomes of gates as text.

use tracebraid_executions::gate::{About, Decision, Outcome, Reason};

use super::Compared;
use crate::commands::executions::{amount, title};
use crate::terminal_text::safe;
use crate::units::{grouped, number_of};

/// The reason for an outcome; `None` if the gate passed because B does not exceed A, or only by
/// less than is allowed.
pub(super) fn why(decision: &Decision, compared: &Compared<'_>) -> Option<String> {
    let found = match &decision.reason {
        Reason::Excess => return excess(decision, compared),
        Reason::Nowhere(what) => {
            return Some(format!("passed: no execution of either group has {what}"));
        }
        Reason::FewExecutions(group, executions) => {
            let name = compared.names.get(*group).map_or("", String::as_str);
            let count = number_of(*executions as u64, "execution", "executions");
            format!("group `{name}` has {count}")
        }
        Reason::NoValue(name) => format!("no execution has a value of {name}"),
        Reason::FewValues(what) => format!("too few executions have {what}"),
        Reason::Infinite(name) => format!("{name} has infinite values"),
    };
    Some(format!("cannot be decided: {found}"))
}

fn excess(decision: &Decision, compared: &Compared<'_>) -> Option<String> {
    let what = difference(decision, compared)?;
    match decision.outcome {
        Outcome::Passed | Outcome::Undecidable => None,
        Outcome::Failed => Some(what),
        Outcome::Undecided => {
            let chance = decision.chance.unwrap_or(1.0);
            Some(format!(
                "undecided: {what}, but not significantly (p = {chance:.2}); compare more executions"
            ))
        }
    }
}

/// By how much B exceeds A, and in which metric or context.
fn difference(decision: &Decision, compared: &Compared<'_>) -> Option<String> {
    let more = decision.more?;
    let share = decision.means.map(|[a, _]| 100.0 * more / a);
    let share = share.filter(|share| share.is_finite());
    let share = share.map_or_else(String::new, |share| match share {
        ..100.0 => format!(" ({share:.1} %)"),
        share => format!(" ({} %)", grouped(share.round() as u64)),
    });
    let more = amount(more, &decision.unit) + &share;
    Some(match &decision.about {
        About::Figure(name) => format!("B exceeds A by {more} in {}", title(name)),
        About::Context(context) => {
            let context = compared.database.union.words((*context)?).join(" > ");
            format!("B exceeds A by {more} in {}", safe(&context))
        }
    })
}

/// The line on standard error: the outcome of a gate and its reason.
pub(super) fn line(decision: &Decision, compared: &Compared<'_>) -> String {
    let found = why(decision, compared).unwrap_or_else(|| match decision.more {
        Some(more) if more > 0.0 => match difference(decision, compared) {
            Some(what) => format!("passed: {what}"),
            None => "passed".to_owned(),
        },
        _ => "passed: B does not exceed A".to_owned(),
    });
    let outcome = match decision.outcome {
        Outcome::Failed => "failed: ",
        Outcome::Passed | Outcome::Undecided | Outcome::Undecidable => "",
    };
    format!("--fail-if {}: {outcome}{found}", decision.condition)
}
