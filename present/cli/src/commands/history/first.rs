//! `tracebraid history query --first`: the first time at which a condition holds.

use tracebraid_history::{Attribute, Condition, History, Report, Since};

use super::query::each;
use super::select::{attributes, path};
use super::show::Answer;
use super::unreadable;
use crate::failure::Failure;
use crate::output::say;
use crate::units::{grouped, number_of};

/// Maximum number of attributes whose values explain an empty result.
const MOST_ATTRIBUTES: usize = 3;

/// Maximum number of values of an attribute in an explanation.
const MOST_VALUES: usize = 8;

/// The first time at which each attribute satisfies a condition.
///
/// # Errors
/// When the condition is wrong, or cannot hold for an attribute.
pub(super) fn times(
    history: &History,
    attributes: &[Attribute],
    (from, to): (i64, i64),
    text: &str,
) -> Result<Answer, Failure> {
    let wrong = |message| Failure::usage(format!("--first {text}: {message}"));
    let condition = Condition::parse(text).map_err(wrong)?;
    condition.check(attributes).map_err(|(first, allowed)| {
        let path = path(history, first);
        wrong(format!(
            "this condition cannot apply to {path}, which allows {allowed}"
        ))
    })?;
    if let Some(value) = condition.unknown_value(history, attributes) {
        say!("warning: --first {text}: the value `{value}` never occurs in the history");
    }
    each(attributes, |attribute| {
        let first = history.first(attribute, (from, to), |value| condition.holds(value))?;
        let since = |time| {
            Ok(Since {
                time,
                value: history.value(attribute, time)?,
            })
        };
        first.map(since).transpose()
    })
}

/// Warns that the condition never holds, with the values that the attributes have.
///
/// # Errors
/// When the history cannot be read.
pub(super) fn explain(
    history: &History,
    patterns: &[String],
    range: (i64, i64),
    condition: &str,
) -> Result<(), Failure> {
    let chosen = attributes(history, patterns, range)?;
    for &attribute in chosen.iter().take(MOST_ATTRIBUTES) {
        let report = history.report(attribute, range);
        let values = values(&report.map_err(|error| unreadable(&error))?);
        let path = path(history, attribute);
        say!("warning: --first {condition} never holds in the range: {path} has {values}");
    }
    let more = chosen.len().saturating_sub(MOST_ATTRIBUTES) as u64;
    if more > 0 {
        say!(
            "warning: the condition never holds for {} either",
            number_of(more, "other attribute", "other attributes")
        );
    }
    Ok(())
}

/// The values of an attribute in a range, as the end of a sentence.
fn values(report: &Report) -> String {
    if let Some(numbers) = &report.numbers {
        return format!("values from {} to {}", numbers.min, numbers.max);
    }
    let all: Vec<String> = report.values.keys().map(ToString::to_string).collect();
    let shown = all
        .iter()
        .take(MOST_VALUES)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(MOST_VALUES) as u64 {
        _ if all.is_empty() => "no value".to_owned(),
        0 => format!("only the values {shown}"),
        more => format!("the values {shown} and {} more", grouped(more)),
    }
}
