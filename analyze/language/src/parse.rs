//! Tokens to the syntax tree.

use std::fmt;

use crate::ast::{Expr, Field, Operator, Value, Where};
use crate::glob::Glob;
use crate::lexer::{Token, tokens};
use crate::logic::{Logic, Tokens};
use crate::periods;

/// What is wrong with an expression, and where.
///
/// Displayed as the message, the expression, and a caret below the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The expression.
    pub text: String,
    /// Byte offset in it.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

impl FilterError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        FilterError {
            text: text.to_owned(),
            offset,
            message: message.into(),
        }
    }
}

impl FilterError {
    /// Line and column of the place in the text; both begin with 1.
    pub fn place(&self) -> (usize, usize) {
        let before = self.text.get(..self.offset).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).unwrap_or_default().chars().count();
        (before.matches('\n').count() + 1, column + 1)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The expression may have several lines: the one in question is shown.
        let (line, column) = self.place();
        let line = self.text.lines().nth(line - 1).unwrap_or_default();
        write!(f, "{}\n  {line}\n  {:2$}^", self.message, "", column - 1)
    }
}

impl std::error::Error for FilterError {}

/// Parses an expression.
///
/// # Errors
/// With the place of what cannot be understood.
pub fn parse(text: &str) -> Result<Expr, FilterError> {
    parse_with_times(text, &|_| Ok(()))
}

/// Parses an expression in which numbers may have a unit that stands apart, as in `duration > 5 ms`, where that is a quantity when
/// both stand together: it is the text `5ms` then.
///
/// # Errors
/// With the place of what cannot be understood.
pub fn parse_with_units(text: &str, is_quantity: &dyn Fn(&str) -> bool) -> Result<Expr, FilterError> {
    Parser {
        tokens: Tokens::new(text, tokens(text)?),
        check_time: &|_| Ok(()),
        is_quantity,
    }
    .whole()
}

/// Says why a text is not a time.
pub type TimeCheck<'c> = &'c dyn Fn(&str) -> Result<(), String>;

/// Parses an expression whose times must pass that check.
///
/// # Errors
/// With the place of what cannot be understood.
pub fn parse_with_times(text: &str, check_time: TimeCheck<'_>) -> Result<Expr, FilterError> {
    Parser {
        tokens: Tokens::new(text, tokens(text)?),
        check_time,
        is_quantity: &|_| false,
    }
    .whole()
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    check_time: TimeCheck<'a>,
    /// Whether a number and what stands behind it are one.
    is_quantity: &'a dyn Fn(&str) -> bool,
}

impl<'a> Logic<'a> for Parser<'a> {
    type Tree = Expr;

    fn tokens(&mut self) -> &mut Tokens<'a> {
        &mut self.tokens
    }
    fn and(parts: Vec<Expr>) -> Expr {
        Expr::And(parts)
    }
    fn or(parts: Vec<Expr>) -> Expr {
        Expr::Or(parts)
    }
    fn not(inner: Expr) -> Expr {
        Expr::Not(Box::new(inner))
    }

    fn condition(&mut self) -> Result<Expr, FilterError> {
        let word = match self.peek() {
            Token::Word(word) => word.clone(),
            // A name in quotes is a pattern like one without.
            Token::Text(name) => {
                let glob = Glob::new(name);
                self.tokens.at += 1;
                return Ok(Expr::Event(glob));
            }
            Token::End => return Err(self.error("a condition is missing here")),
            _ => return Err(self.error("an event name, a field or `(` is expected here")),
        };
        self.tokens.at += 1;
        if word == "has" && self.tokens.take("(") {
            let Token::Word(name) = self.peek().clone() else {
                return Err(self.error("a field is expected here"));
            };
            let field = self.field(&name)?;
            self.tokens.at += 1;
            return if self.tokens.take(")") {
                Ok(Expr::Has(field))
            } else {
                Err(self.error("`)` is expected here"))
            };
        }
        let quoted = match self.peek() {
            Token::Text(name) if matches!(word.as_str(), "ctx." | "context.") => Some(name.clone()),
            _ => None,
        };
        self.tokens.at += usize::from(quoted.is_some());
        let Some(operator) = self.operator() else {
            return match quoted {
                Some(_) => Err(self.error("an operator is expected here")),
                None => Ok(Expr::Event(Glob::new(&word))),
            };
        };
        let field = match quoted {
            // A name that is no word: `ctx."operator new(unsigned long)"`.
            Some(name) => Field::Path(Where::Context, vec![name]),
            None => {
                self.tokens.at -= 1;
                let field = self.field(&word)?;
                self.tokens.at += 1;
                field
            }
        };
        let sign = self.tokens.at;
        self.tokens.at += 1;
        let value = self.value()?;
        let matching = matches!(operator, Operator::Matches | Operator::MatchesNot);
        if matching && !matches!(value, Value::Text(_)) {
            return Err(self.error("a pattern is expected here"));
        }
        let numeric = matches!(field, Field::Cpu | Field::Tid | Field::Pid);
        if numeric && !matches!(value, Value::Integer(_)) {
            return Err(self.error(match field {
                Field::Cpu => "a whole number is expected here, such as 42",
                _ => "a whole number is expected here, such as 42; use procname for names",
            }));
        }
        if matches!(field, Field::Time) && matching {
            self.tokens.at = sign;
            return Err(self.error("times have no pattern"));
        }
        if matches!(field, Field::Time) {
            (self.check_time)(&value.text()).map_err(|message| self.error(message))?;
        }
        let whole = match numeric {
            true => None,
            false => self.quantity(),
        };
        self.tokens.at += 1 + usize::from(whole.is_some());
        let value = whole.map_or(value, Value::Text);
        Ok(Expr::Compare(field, operator, value))
    }
}

impl Parser<'_> {
    /// The expression up to the end.
    fn whole(mut self) -> Result<Expr, FilterError> {
        let expr = self.alternatives()?;
        match self.peek() {
            Token::End => Ok(expr),
            _ => Err(self.error("`&&`, `||` or the end is expected here")),
        }
    }

    /// The number that comes next with the unit that stands behind it, neither of which is taken.
    fn quantity(&self) -> Option<String> {
        let (Token::Number(number), Token::Word(unit)) = (self.peek(), self.tokens.after()) else {
            return None;
        };
        let quantity = format!("{number}{unit}");
        (self.is_quantity)(&quantity).then_some(quantity)
    }

    fn peek(&self) -> &Token {
        self.tokens.peek()
    }

    fn error(&self, message: impl Into<String>) -> FilterError {
        self.tokens.error(message)
    }

    /// The operator that comes next, which is not taken.
    fn operator(&self) -> Option<Operator> {
        let Token::Sign(sign) = self.peek() else {
            return None;
        };
        operator(sign)
    }

    /// The value that comes next, which is not taken.
    fn value(&self) -> Result<Value, FilterError> {
        match self.peek() {
            Token::Text(text) | Token::Word(text) => Ok(Value::Text(text.clone())),
            Token::Number(text) => Ok(number(text)),
            _ => Err(self.error("a number, a string or a word is expected here")),
        }
    }

    fn field(&self, name: &str) -> Result<Field, FilterError> {
        // Syntax of period definitions.
        if let Some(path) = name.strip_prefix("$evt.") {
            return periods::parse::field(path).map_err(|message| self.error(message));
        }
        bare_field(name).map_err(|message| self.error(message))
    }
}

/// The operator that a sign stands for.
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

/// The field of that name, as it is written in filters: without `$evt.`.
pub(crate) fn bare_field(name: &str) -> Result<Field, String> {
    let mut steps: Vec<String> = name.split('.').map(str::to_owned).collect();
    if steps.iter().any(String::is_empty) || name.contains(['*', '?', '[', ']']) {
        return Err(format!("`{name}` is not the name of a field"));
    }
    if let [own] = steps.as_slice() {
        return Ok(match own.as_str() {
            "name" => Field::Name,
            "time" => Field::Time,
            "cpu" => Field::Cpu,
            "tid" => Field::Tid,
            "pid" => Field::Pid,
            "procname" => Field::Procname,
            "hostname" => Field::Environment(own.clone()),
            _ => Field::Path(Where::Anywhere, steps),
        });
    }
    let place = match steps.first().map(String::as_str) {
        Some("payload") => Where::Payload,
        Some("ctx" | "context") => Where::Context,
        Some("packet") => Where::Packet,
        Some("env") => return Ok(Field::Environment(steps.split_off(1).join("."))),
        _ => return Ok(Field::Path(Where::Anywhere, steps)),
    };
    Ok(Field::Path(place, steps.split_off(1)))
}

/// A number; what only looks like one (a date) is text.
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
        // `+5` as a time is relative: its text counts there.
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
        // Syntax of period definitions.
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
            parse("has(payload.fd)").unwrap(),
            Expr::Has(path(Where::Payload, &["fd"]))
        );
        assert_eq!(
            parse("time < 2026-11-21T01:43:15.2").unwrap(),
            Expr::Compare(
                Field::Time,
                Operator::Less,
                Value::Text("2026-11-21T01:43:15.2".into())
            )
        );
        assert_eq!(
            parse("lttng_ust_statedump:*").unwrap(),
            Expr::Event(Glob::new("lttng_ust_statedump:*"))
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
            assert!(message.contains("the end is expected"), "{wrong}: {message}");
        }
        assert!(parse("a > 5 ms").is_err());
    }

    #[test]
    fn errors_have_their_place() {
        let cases = [
            ("a && ", 5, "missing"),
            ("a = 3", 2, "`==`"),
            ("(a", 2, "`)`"),
            ("a b", 2, "expected"),
            ("x == ", 5, "expected"),
            (
                "tid == abc",
                7,
                "a whole number is expected here, such as 42; use procname for names",
            ),
            ("cpu > 1.5", 6, "a whole number is expected here, such as 42"),
            ("f =~ 3", 5, "pattern"),
            ("f == \"abc", 5, "no end"),
            ("f* == 3", 0, "not the name"),
            ("a & b", 2, "&&"),
            ("", 0, "missing"),
            ("a # b", 2, "no meaning"),
            ("$evt.$pid == 3", 0, "no meaning"),
        ];
        for (text, offset, message) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
        let error = parse("tid == abc").unwrap_err().to_string();
        assert!(error.ends_with("\n  tid == abc\n         ^"), "{error}");
        let error = parse_with_times("a && time > foo", &|text| Err(format!("{text}?"))).unwrap_err();
        assert_eq!((error.offset, error.message.as_str()), (12, "foo?"));
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"!".repeat(100_000)).is_err());
    }
}
