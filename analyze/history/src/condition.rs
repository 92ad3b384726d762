//! Conditions on values of attributes: an operator and a value.

use std::cmp::Ordering;

use crate::{Attribute, AttributeKind, Form, History, ThreadState, Value};

/// Stands for no value.
const NOTHING: &str = "-";

/// Values of `cpu/N/state`.
const CPU_STATES: [&str; 5] = ["idle", "user", "system", "irq", "softirq"];

/// A condition on the value of an attribute: an operator and a value.
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

/// The possible values of attributes.
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

    /// The valid conditions on these values, as text.
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
                    "== or != and a text, or {NOTHING} (no value); <, <=, > and >= compare numbers"
                )
            }
            Values::Any => "==, != and a value, or <, <=, >, >= and a number".to_owned(),
        }
    }
}

impl Condition {
    /// Parses a condition such as `== running`, `!= -` or `> 4`.
    ///
    /// # Errors
    /// If the text is not a condition, or cannot hold for any attribute.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let refused = || {
            format!(
                "a condition is an operator (==, !=, <, <=, > or >=) and a value, such as '== running', '> 4' or '!= {NOTHING}'"
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
            true => Err("<, <=, > and >= compare numbers".to_owned()),
            false => Ok(condition),
        }
    }

    fn is_order(&self) -> bool {
        !matches!(self.operator, Operator::Is | Operator::IsNot)
    }

    fn number(&self) -> Option<i64> {
        self.value.parse().ok()
    }

    /// Whether the condition holds for a value. An unknown value is neither less nor greater than
    /// any other.
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

    /// Refuses a condition that cannot hold for any of the attributes.
    ///
    /// # Errors
    /// The first of the attributes, and the valid conditions on it.
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

    /// The value of the condition, if no text in the history equals it.
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
                .contains("compare numbers")
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
