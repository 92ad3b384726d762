//! Parses tokens to the syntax tree.

use std::fmt;

use crate::ast::{Expr, Operator, Value};
use crate::condition::{Conditions, Scope};
use crate::field::OldForms;
use crate::lexer::tokens;
use crate::logic::Tokens;
use crate::periods::Condition;

/// A syntax error.
///
/// Displayed as the message, the line of the expression, and a caret below the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The whole expression.
    pub text: String,
    /// Byte offset of the error in `text`.
    pub offset: usize,
    /// Message without position.
    pub message: String,
}

impl FilterError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if lacks_variable(text, offset) {
            message += "; the shell may have expanded a variable such as `$begin`: put the \
                        expression in single quotes";
        }
        FilterError {
            text: text.to_owned(),
            offset,
            message,
        }
    }
}

/// Whether a word begins with a point at the offset, as in `cpu == .cpu`: what a shell leaves of
/// `"cpu == $begin.cpu"`.
fn lacks_variable(text: &str, offset: usize) -> bool {
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let mut after = after.chars();
    after.next() == Some('.')
        && after
            .next()
            .is_some_and(|next| next.is_alphabetic() || next == '_')
        && !before.ends_with(|last: char| last.is_alphanumeric() || "_])".contains(last))
}

impl FilterError {
    /// Line and column of the error in the text, from 1.
    pub fn place(&self) -> (usize, usize) {
        let before = self.text.get(..self.offset).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).unwrap_or_default().chars().count();
        (before.matches('\n').count() + 1, column + 1)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // For an expression of several lines, show the line with the error.
        let (line, column) = self.place();
        let line = self.text.lines().nth(line - 1).unwrap_or_default();
        write!(f, "{}\n  {line}\n  {:2$}^", self.message, "", column - 1)
    }
}

impl std::error::Error for FilterError {}

/// Returns an error message for text that is not a time.
pub type TimeCheck<'c> = &'c dyn Fn(&str) -> Result<(), String>;

/// Parses an expression.
///
/// # Errors
/// The expression is malformed; the error contains the position.
pub fn parse(text: &str) -> Result<Expr, FilterError> {
    parse_with_times(text, &|_| Ok(()))
}

/// Parses an expression in which white space may separate a number from its unit, as in `duration >
/// 5 ms`. If `is_quantity` accepts the two joined, the value is the text `5ms`.
///
/// # Errors
/// The expression is malformed; the error contains the position.
pub fn parse_with_units(
    text: &str,
    is_quantity: &dyn Fn(&str) -> bool,
) -> Result<Expr, FilterError> {
    let check_time: TimeCheck<'_> = &|_| Ok(());
    let (expr, _) = parse_as(
        text,
        Scope::Filter {
            check_time,
            is_quantity,
        },
    )?;
    Ok(expr)
}

/// Parses an expression whose times `check_time` must accept.
///
/// # Errors
/// The expression is malformed; the error contains the position.
pub fn parse_with_times(text: &str, check_time: TimeCheck<'_>) -> Result<Expr, FilterError> {
    parse_noting(text, check_time).map(|(expr, _)| expr)
}

/// [`parse_with_times`], also returning the old forms in the expression.
///
/// # Errors
/// The expression is malformed; the error contains the position.
pub fn parse_noting(
    text: &str,
    check_time: TimeCheck<'_>,
) -> Result<(Expr, OldForms), FilterError> {
    let is_quantity = &|_: &str| false;
    parse_as(
        text,
        Scope::Filter {
            check_time,
            is_quantity,
        },
    )
}

fn parse_as(text: &str, scope: Scope<'_>) -> Result<(Expr, OldForms), FilterError> {
    let mut parser = Conditions {
        tokens: Tokens::new(text, tokens(text)?),
        scope,
        old: OldForms::default(),
    };
    match parser.whole()? {
        Condition::Event(expr) => Ok((expr, parser.old)),
        // Fields of the same event record compared with each other.
        _ => Err(FilterError::new(
            text,
            0,
            "expected a number or a text: a filter cannot compare a field with another field",
        )),
    }
}

/// The operator of a sign.
pub(crate) fn operator(sign: &str) -> Option<Operator> {
    Some(match sign {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "=~" => Operator::Matches,
        "!~" => Operator::MatchesNot,
        _ => return None,
    })
}

/// Parses a number. Text that only begins like a number, such as a date, is text.
pub(crate) fn number(text: &str) -> Value {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (
            false,
            text.strip_prefix('+')
                .filter(|_| !text.contains('.'))
                .unwrap_or(text),
        ),
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (digits.get(2..).unwrap_or_default(), 16),
        Some("0b" | "0B") => (digits.get(2..).unwrap_or_default(), 2),
        Some("0o") => (digits.get(2..).unwrap_or_default(), 8),
        _ => (digits, 10),
    };
    if let Ok(number) = i128::from_str_radix(digits, radix) {
        // `+5` as a time is relative, so its text is kept.
        if !text.starts_with('+') {
            return Value::Integer(if negative { -number } else { number });
        }
    }
    match text.parse::<f64>() {
        Ok(number) => Value::Float(number, text.to_owned()),
        Err(_) => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{Field, Where};
    use crate::glob::Glob;

    fn path(place: Where, steps: &[&str]) -> Field {
        Field::Path(place, steps.iter().map(|&step| step.to_owned()).collect())
    }

    #[test]
    fn expressions() {
        let and = parse("sched_switch && next_tid == 42").unwrap();
        let expected = Expr::And(vec![
            Expr::Event(Glob::new("sched_switch")),
            Expr::Compare(
                path(Where::Anywhere, &["next_tid"]),
                Operator::Equal,
                Value::Integer(42),
            ),
        ]);
        assert_eq!(and, expected);
        let matches = parse("payload.filename ~ \"*.so\" || !(syscall_* && ret < -1)").unwrap();
        let Expr::Or(parts) = matches else {
            panic!("{matches:?}")
        };
        assert_eq!(
            parts[0],
            Expr::Compare(
                path(Where::Payload, &["filename"]),
                Operator::Matches,
                Value::Text("*.so".into())
            )
        );
        assert!(matches!(&parts[1], Expr::Not(_)));
        let quoted = parse("ctx.\"new (unsigned long)\" > 5").unwrap();
        let expected = path(Where::Context, &["new (unsigned long)"]);
        assert_eq!(
            quoted,
            Expr::Compare(expected, Operator::Greater, Value::Integer(5))
        );
        assert_eq!(
            parse("has(payload.fd)").unwrap(),
            Expr::Has(path(Where::Payload, &["fd"]))
        );
        assert_eq!(
            parse("lttng_ust_statedump:*").unwrap(),
            Expr::Event(Glob::new("lttng_ust_statedump:*"))
        );
    }

    #[test]
    fn fields_are_compared_with_values() {
        assert!(parse("ctx.\"x\"").is_err() && parse("payload.\"x\" > 5").is_err());
        assert_eq!(
            parse("ctx.vtid >= 0x10").unwrap(),
            Expr::Compare(
                path(Where::Context, &["vtid"]),
                Operator::GreaterOrEqual,
                Value::Integer(16)
            )
        );
        assert_eq!(
            parse("env.domain=='ust'").unwrap(),
            Expr::Compare(
                Field::Environment("domain".into()),
                Operator::Equal,
                Value::Text("ust".into())
            )
        );
        assert_eq!(
            parse("time < 2026-11-21T01:43:15.2").unwrap(),
            Expr::Compare(
                Field::Time,
                Operator::Less,
                Value::Text("2026-11-21T01:43:15.2".into())
            )
        );
    }

    #[test]
    fn syntax_of_period_definitions_is_old_syntax_of_expressions() {
        for (one, other) in [
            ("$evt.$name =* 'sched_*'", "name =~ 'sched_*'"),
            ("$evt.next_tid == 3", "next_tid == 3"),
            (
                "$evt.$cpu < 2 && $evt.$payload.a.b == 1",
                "cpu < 2 && payload.a.b == 1",
            ),
            ("f =* \"x*\" || has($evt.fd)", "f ~ \"x*\" || has(fd)"),
        ] {
            assert_eq!(parse(one).unwrap(), parse(other).unwrap(), "{one}");
        }
        let note = |text: &str| parse_noting(text, &|_| Ok(())).unwrap().1.note();
        assert_eq!(note("next_tid == 3 && has(ctx.vtid)"), None);
        assert_eq!(
            note("$evt.$name == 'a' && $evt.next_tid == 3").unwrap(),
            "old syntax: write `name` for `$evt.$name`, `next_tid` for `$evt.next_tid`"
        );
    }

    #[test]
    fn units_may_stand_apart_from_numbers() {
        let of = |text: &str| parse_with_units(text, &|quantity| quantity.ends_with("ms"));
        assert_eq!(of("a > 5 ms").unwrap(), parse("a > 5ms").unwrap());
        assert_eq!(
            of("(a > 5 ms) && b == 1.5 ms").unwrap(),
            parse("(a > 5ms) && b == 1.5ms").unwrap()
        );
        for wrong in ["a > 5 s", "a > 5 ms ms", "a > x ms", "tid == 5 ms"] {
            let message = of(wrong).unwrap_err().message;
            assert!(message.contains("or the end"), "{wrong}: {message}");
        }
        assert!(parse("a > 5 ms").is_err());
    }

    #[test]
    fn variables_that_the_shell_expanded_are_recognized() {
        for text in ["cpu == .cpu", "sched_switch && .next_tid == 3", ".ret < 0"] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("single quotes"), "{message}");
        }
        let message = parse("cpu == ").unwrap_err().to_string();
        assert!(!message.contains("single quotes"), "{message}");
    }

    #[test]
    fn errors_have_their_place() {
        let cases = [
            ("a && ", 5, "expected a condition"),
            ("a = 3", 2, "`==`"),
            ("(a", 2, "`)`"),
            ("a b", 2, "expected"),
            ("x == ", 5, "expected"),
            (
                "tid == abc",
                7,
                "expected a whole number such as 42; to select by name, use procname",
            ),
            ("cpu > 1.5", 6, "expected a whole number such as 42"),
            ("f =~ 3", 5, "pattern"),
            ("f == \"abc", 5, "unterminated"),
            ("f* == 3", 0, "not the name"),
            ("a & b", 2, "&&"),
            ("", 0, "expected a condition"),
            ("a # b", 2, "unexpected"),
            ("$evt.$pid == 3", 0, "undefined"),
            ("$begin.x == 3", 0, "only in the conditions of periods"),
            ("a == $begin.x", 5, "only in the conditions of periods"),
            ("a == $evt.x", 0, "with another field"),
            ("a[x] == 3", 0, "not the name"),
        ];
        for (text, offset, message) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
        let error = parse("tid == abc").unwrap_err().to_string();
        assert!(error.ends_with("\n  tid == abc\n         ^"), "{error}");
        let error =
            parse_with_times("a && time > foo", &|text| Err(format!("{text}?"))).unwrap_err();
        assert_eq!((error.offset, error.message.as_str()), (12, "foo?"));
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"!".repeat(100_000)).is_err());
    }
}
