//! Probable mistakes in a definition that can be found without the traces.

use tracebraid_language::Datum;

use crate::user::definition::{Deed, Definition, Operand, Part, RuleStep, Template};

/// Probable mistakes, as messages.
pub(super) fn of(definition: &Definition) -> Vec<String> {
    let mut changes: Vec<(&Template, &Deed)> = Vec::new();
    let steps = definition.rules.iter().flat_map(|rule| &rule.steps);
    steps.for_each(|step| each_change(step, &mut |path, deed| changes.push((path, deed))));
    let set: Vec<String> = changes
        .iter()
        .flat_map(|(path, deed)| paths(path, deed))
        .collect();
    let mut doubts = Vec::new();
    for (rule, number) in definition.rules.iter().zip(1..) {
        let mut asks = |operand: &Operand| {
            let (Operand::State(path) | Operand::Top(path)) = operand else {
                return;
            };
            let asked = shape(path);
            let doubt = format!(
                "rule {number} reads {asked}, which no rule of this analysis sets, so it never has a value (attributes that \
                 the history has by itself cannot be read)"
            );
            if !set.iter().any(|set| may_be_one(set, &asked)) && !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        };
        rule.steps.iter().for_each(|step| step.operands(&mut asks));
    }
    for (path, deed) in changes {
        if let Deed::Add(value) = deed
            && let Some(text) = constant(value)
            && text.parse::<i64>().is_err()
        {
            let path = shape(path);
            doubts.push(format!(
                "{text} is added to {path}, but is not a 64-bit integer, so nothing is added"
            ));
        }
    }
    doubts
}

fn each_change<'s>(step: &'s RuleStep, to: &mut dyn FnMut(&'s Template, &'s Deed)) {
    match step {
        RuleStep::If {
            then, otherwise, ..
        } => {
            for step in then.iter().chain(otherwise) {
                each_change(step, to);
            }
        }
        RuleStep::Change { path, deed } => to(path, deed),
    }
}

/// The paths at and below which a change sets attributes.
fn paths(path: &Template, deed: &Deed) -> Vec<String> {
    match deed {
        Deed::End(counted) => vec![shape(path), shape(counted)],
        _ => vec![shape(path)],
    }
}

/// A template as text, with `*` for unknown parts.
fn shape(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Of(Operand::Constant(value)) => text_of(value),
        Part::Of(_) => "*".to_owned(),
    };
    template.0.iter().map(part).collect()
}

/// True if the path that is read may equal a path that is set, or be above or below it, judging by
/// the constant prefixes of both.
fn may_be_one(set: &str, asked: &str) -> bool {
    let known = |shape: &str| shape.split('*').next().unwrap_or_default().to_owned();
    let (set, asked) = (known(set), known(asked));
    set.starts_with(&asked) || asked.starts_with(&set)
}

/// The text of a template without operands from events.
fn constant(template: &Template) -> Option<String> {
    let is_constant = |part: &Part| matches!(part, Part::Text(_) | Part::Of(Operand::Constant(_)));
    template.0.iter().all(is_constant).then(|| shape(template))
}

fn text_of(value: &Datum) -> String {
    match value {
        Datum::Integer(number) => number.to_string(),
        value => String::from_utf8_lossy(value.bytes().unwrap_or_default()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(rules: &str) -> Vec<String> {
        of(&Definition::parse(&format!("name = \"x\"\n{rules}")).unwrap())
    }

    #[test]
    fn what_no_rule_sets_is_doubted() {
        let asks = |path: &str| {
            doubts(&format!(
                "[[on]]\nevent = \"sched_switch\"\nlet = {{ a = \"{path}\" }}\nwhen = \"has(a)\"\nchange = [{{ add = \"n\" }}, {{ set = \"of/{{next_tid}}/a\", to = 1 }}]"
            ))
        };
        assert_eq!(asks("n"), [""; 0]);
        assert_eq!(asks("of/{prev_tid}/a"), [""; 0]);
        let found = asks("thread/{tid}/name");
        assert!(
            found.len() == 1 && found[0].starts_with("rule 1 reads thread/*/name, "),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_added_is_a_number() {
        let adds = |value: &str| {
            doubts(&format!(
                "[[on]]\nevent = \"sched_switch\"\nchange = [{{ add = \"n\", by = {value} }}]"
            ))
        };
        assert_eq!(adds("5"), [""; 0]);
        assert_eq!(adds("\"{prev_tid}\""), [""; 0]);
        let found = adds("\"abc\"");
        assert!(
            found.len() == 1 && found[0].starts_with("abc is added to n, "),
            "{found:?}"
        );
    }
}
