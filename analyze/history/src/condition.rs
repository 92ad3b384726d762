//! Conditions on what attributes are: an operator and a value.

use std::cmp::Ordering;

use crate::{Attribute, AttributeKind, Form, History, ThreadState, Value};

/// What stands for no value.
const NOTHING: &str = "-";

/// What CPUs do.
const CPU_STATES: [&str; 5] = ["idle", "user", "system", "irq", "softirq"];

/// A condition on what an attribute is: an operator and a value.
#[derive(Debug)]
pub struct Condition {
    operator: Operator,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Is,
    IsNot,
    Less,
    Most,
    More,
    Least,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Is),
    ("!=", Operator::IsNot),
    ("<=", Operator::Most),
    (">=", Operator::Least),
    ("<", Operator::Less),
    (">", Operator::More),
];

/// What values of attributes can be.
enum Values {
    Numbers,
    Of(Vec<&'static str>),
    Texts,
    Any,
}

impl Values {
    fn of(kind: AttributeKind) -> Values {
        match (kind, kind.form()) {
            (AttributeKind::CpuState, _) => Values::Of(CPU_STATES.to_vec()),
            (_, Form::State) => Values::Of(ThreadState::ALL.map(ThreadState::name).to_vec()),
            (_, Form::Number | Form::Counter) => Values::Numbers,
            (_, Form::Text) => Values::Texts,
            (_, Form::Any) => Values::Any,
        }
    }

    /// What a condition on them may be.
    fn allowed(&self) -> String {
        match self {
            Values::Numbers => {
                format!("==, !=, <, <=, >, >= and a number, or == or != and {NOTHING} (no value)")
            }
            Values::Of(names) => format!(
                "== or != and one of {}, {NOTHING} (no value)",
                names.join(", ")
            ),
            Values::Texts => {
                format!(
                    "== or != and a text, or {NOTHING} (no value); less and more are for numbers"
                )
            }
            Values::Any => "==, != and a value, or <, <=, >, >= and a number".to_owned(),
        }
    }
}

impl Condition {
    /// `== running`, `!= -`, `> 4`.
    ///
    /// # Errors
    /// When it is none, or could never hold, whatever it is about.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let refused = || {
            format!(
                "a condition is ==, !=, <, <=, > or >= and a value, as '== running', '> 4' or '!= {NOTHING}'"
            )
        };
        let found = OPERATORS
            .into_iter()
            .find_map(|(sign, operator)| Some((operator, text.trim().strip_prefix(sign)?)));
        let (operator, value) = found.ok_or_else(refused)?;
        let value = value.trim();
        if value.is_empty() || value.starts_with(['=', '<', '>', '!']) {
            return Err(refused());
        }
        let quoted = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        let condition = Condition {
            operator,
            value: quoted.unwrap_or(value).to_owned(),
        };
        match condition.is_order() && condition.number().is_none() {
            true => Err("less and more are for numbers".to_owned()),
            false => Ok(condition),
        }
    }

    fn is_order(&self) -> bool {
        !matches!(self.operator, Operator::Is | Operator::IsNot)
    }

    fn number(&self) -> Option<i64> {
        self.value.parse().ok()
    }

    /// Whether it holds. What is not known is neither less nor more than anything.
    pub fn holds(&self, value: &Value) -> bool {
        let is_it = || match (value, self.number()) {
            (Value::Number(number), Some(asked)) => *number == asked,
            _ => value.to_string() == self.value,
        };
        let order = || match value {
            Value::Number(number) => Some(number.cmp(&self.number()?)),
            _ => None,
        };
        match self.operator {
            Operator::Is => is_it(),
            Operator::IsNot => !is_it(),
            Operator::Less => order().is_some_and(Ordering::is_lt),
            Operator::Most => order().is_some_and(Ordering::is_le),
            Operator::More => order().is_some_and(Ordering::is_gt),
            Operator::Least => order().is_some_and(Ordering::is_ge),
        }
    }

    /// Refuses what makes no sense for any of these attributes.
    ///
    /// # Errors
    /// When it does not: the first of the attributes, and what a condition on it may be.
    pub fn check(&self, attributes: &[Attribute]) -> Result<(), (Attribute, String)> {
        let makes_sense = |attribute: &Attribute| self.suits(&Values::of(attribute.kind()));
        match attributes
            .first()
            .filter(|_| !attributes.iter().any(makes_sense))
        {
            Some(first) => Err((*first, Values::of(first.kind()).allowed())),
            None => Ok(()),
        }
    }

    fn suits(&self, values: &Values) -> bool {
        match values {
            _ if self.value == NOTHING => !self.is_order(),
            Values::Numbers => self.number().is_some(),
            Values::Of(names) => !self.is_order() && names.contains(&&*self.value),
            Values::Texts => !self.is_order(),
            Values::Any => true,
        }
    }

    /// The value, if no attribute at all is ever called so.
    pub fn unknown_value(&self, history: &History, attributes: &[Attribute]) -> Option<&str> {
        let is_text = |attribute: &Attribute| {
            matches!(Values::of(attribute.kind()), Values::Texts | Values::Any)
        };
        let is_plain = self.value == NOTHING || self.number().is_some();
        let is_strange =
            !is_plain && attributes.iter().all(is_text) && !history.has_text(&self.value);
        is_strange.then_some(self.value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_texts_and_numbers() {
        let holds =
            |condition: &str, value: &Value| Condition::parse(condition).unwrap().holds(value);
        let four = Value::Number(4);
        for (condition, expected) in [
            ("== 4", true),
            ("==04", true),
            ("!= 4", false),
            (">=4", true),
            ("> 4", false),
            ("< 5", true),
            ("> -5", true),
        ] {
            assert_eq!(holds(condition, &four), expected, "{condition}");
        }
        assert!(holds("== read", &Value::Text("read".into())));
        assert!(holds("== \"a b\"", &Value::Text("a b".into())));
        assert!(!holds("> 3", &Value::Text("write".into())));
        assert!(
            holds("== -", &Value::Null)
                && holds("!= 4", &Value::Null)
                && !holds("< 4", &Value::Null)
        );
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in [
            "foo", "4", "", "==", "=> 4", "= 4", "== < 4", "~ read", "=== 4",
        ] {
            let refused = Condition::parse(text).unwrap_err();
            assert!(refused.contains("==, !=, <, <=, > or >="), "{text}");
        }
        assert!(
            Condition::parse("> read")
                .unwrap_err()
                .contains("for numbers")
        );
    }

    #[test]
    fn conditions_suit_values() {
        let suits = |condition: &str, kind| {
            Condition::parse(condition)
                .unwrap()
                .suits(&Values::of(kind))
        };
        for (condition, kind, expected) in [
            ("== foo", AttributeKind::CpuThread, false),
            ("!= foo", AttributeKind::CpuThread, false),
            ("> 4", AttributeKind::CpuThread, true),
            ("== -", AttributeKind::CpuThread, true),
            ("> 4", AttributeKind::ThreadState, false),
            ("== runing", AttributeKind::ThreadState, false),
            ("== running", AttributeKind::ThreadState, true),
            ("!= idle", AttributeKind::CpuState, true),
            ("== running", AttributeKind::CpuState, false),
            ("== foo", AttributeKind::ThreadSyscall, true),
            ("< 4", AttributeKind::ThreadSyscall, false),
            ("< 4", AttributeKind::Custom, true),
        ] {
            assert_eq!(suits(condition, kind), expected, "{condition} {kind:?}");
        }
    }
}
