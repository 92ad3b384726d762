//! Parses tokens to conditions: one parser for filters, periods, executions and user analyses.

use crate::ast::{Expr, Field, Operator, Value, Where};
use crate::datum::Datum;
use crate::field::{OldForms, field, old_field, spelling};
use crate::glob::Glob;
use crate::lexer::Token;
use crate::logic::{Logic, Tokens};
use crate::near::did_you_mean;
use crate::parse::{FilterError, TimeCheck, number, operator};
use crate::periods::{Condition, Operand, Reference, Source};

/// Event records that a condition may refer to besides the current one.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// None.
    Filter {
        /// Returns an error message for text that is not a time.
        check_time: TimeCheck<'a>,
        /// Whether a number and the word after it are together a quantity such as `5ms`.
        is_quantity: &'a dyn Fn(&str) -> bool,
    },
    /// The event records that began the period and its parent.
    Period {
        /// True in the condition of a period's end.
        in_end: bool,
        has_parent: bool,
    },
}

/// A parser of conditions.
pub(crate) struct Conditions<'a> {
    pub(crate) tokens: Tokens<'a>,
    pub(crate) scope: Scope<'a>,
    pub(crate) old: OldForms,
}

impl<'a> Logic<'a> for Conditions<'a> {
    type Tree = Condition;

    fn tokens(&mut self) -> &mut Tokens<'a> {
        &mut self.tokens
    }
    fn and(parts: Vec<Condition>) -> Condition {
        Condition::all(parts)
    }
    fn or(parts: Vec<Condition>) -> Condition {
        Condition::any(parts)
    }
    fn not(inner: Condition) -> Condition {
        match inner {
            Condition::Event(expr) => Condition::Event(Expr::Not(Box::new(expr))),
            inner => Condition::Not(Box::new(inner)),
        }
    }

    fn condition(&mut self) -> Result<Condition, FilterError> {
        match self.tokens.peek() {
            // A quoted name is a pattern, as an unquoted one is.
            Token::Text(name) => {
                let name = name.clone();
                return Ok(self.event(&name));
            }
            Token::Word(word) => {
                let word = word.clone();
                match self.tokens.after() {
                    Token::Sign("(") if word == "has" => return self.presence(),
                    Token::Sign("=") => {}
                    Token::Sign(sign) if operator(sign).is_some() => {}
                    Token::Word(next) if word.ends_with('.') || next.starts_with('.') => {}
                    Token::Text(_) if is_context(&word) => {}
                    _ if word.starts_with('$') => {}
                    _ => return Ok(self.event(&word)),
                }
            }
            Token::End => return Err(self.tokens.error("expected a condition")),
            _ => {
                return Err(self.tokens.error("expected an event name, a field or `(`"));
            }
        }
        let reference = self.reference(Side::Left)?;
        self.comparison(reference)
    }
}

/// The side of an operator on which a field stands. On the right, unprefixed words are text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// True for a scope after which a name may be quoted.
fn is_context(word: &str) -> bool {
    matches!(word, "ctx." | "context.")
}

impl<'a> Conditions<'a> {
    /// Parses one condition that extends to the end of the text.
    pub(crate) fn whole(&mut self) -> Result<Condition, FilterError> {
        let condition = self.alternatives()?;
        match self.tokens.peek() {
            Token::End => Ok(condition),
            _ => Err(self.tokens.error("expected `&&`, `||` or the end")),
        }
    }

    /// Consumes the next token, an event name pattern.
    fn event(&mut self, pattern: &str) -> Condition {
        self.tokens.at += 1;
        Condition::Event(Expr::Event(Glob::new(pattern)))
    }

    /// Parses `has(FIELD)`.
    fn presence(&mut self) -> Result<Condition, FilterError> {
        self.tokens.at += 2;
        let place = self.tokens.at;
        let reference = self.reference(Side::Left)?;
        if reference.source != Source::Event {
            self.tokens.at = place;
            return Err(self.tokens.error("expected a field of the current event"));
        }
        match self.tokens.take(")") {
            true => Ok(Condition::Event(Expr::Has(reference.field))),
            false => Err(self.tokens.error("expected `)`")),
        }
    }

    /// Parses an operator and its right side.
    fn comparison(&mut self, reference: Reference) -> Result<Condition, FilterError> {
        let sign = self.tokens.at;
        let operator = self.operator()?;
        let matching = matches!(operator, Operator::Matches | Operator::MatchesNot);
        if matches!(reference.field, Field::Time) && matching {
            self.tokens.at = sign;
            return Err(self.tokens.error(
                "a time cannot be matched with a pattern; compare it with `==`, `<` or `>`",
            ));
        }
        if self.is_reference() {
            if matching {
                return Err(self.tokens.error("expected a pattern"));
            }
            let other = self.reference(Side::Right)?;
            return Ok(Condition::Compare(
                reference,
                operator,
                Operand::Reference(other),
            ));
        }
        let value = self.constant(&reference.field, matching)?;
        Ok(match (reference.source, value) {
            (Source::Event, value) => {
                Condition::Event(Expr::Compare(reference.field, operator, value))
            }
            (_, Value::Text(text)) if matching => {
                Condition::Compare(reference, operator, Operand::Pattern(Glob::new(&text)))
            }
            (_, value) => Condition::Compare(reference, operator, Operand::Constant(datum(&value))),
        })
    }

    fn operator(&mut self) -> Result<Operator, FilterError> {
        let operator = match self.tokens.peek() {
            Token::Sign("=") => {
                return Err(self.tokens.error("to compare, write `==`"));
            }
            Token::Sign(sign) => operator(sign),
            _ => None,
        };
        let Some(operator) = operator else {
            return Err(self
                .tokens
                .error("expected an operator such as `==` or `=~`"));
        };
        self.tokens.at += 1;
        Ok(operator)
    }

    /// True if the next token is a field, on the right side of an operator.
    fn is_reference(&self) -> bool {
        let Token::Word(word) = self.tokens.peek() else {
            return false;
        };
        match self.scope {
            Scope::Period { .. } => word.starts_with('$'),
            // Other words are text in filters.
            Scope::Filter { .. } => VARIABLES.contains(&word.split('.').next().unwrap_or_default()),
        }
    }

    /// Consumes the next value.
    fn constant(&mut self, field: &Field, matching: bool) -> Result<Value, FilterError> {
        let value = self.value()?;
        let wrong = match (field, &value) {
            (_, Value::Integer(_) | Value::Float(..)) if matching => "expected a pattern",
            (Field::Name, Value::Integer(_) | Value::Float(..)) => "expected a name",
            (Field::Cpu, Value::Float(..) | Value::Text(_)) => "expected a whole number such as 42",
            (Field::Tid | Field::Pid, Value::Float(..) | Value::Text(_)) => {
                "expected a whole number such as 42; to select by name, use procname"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(self.tokens.error(wrong));
        }
        if matches!(field, Field::Time) {
            self.check_time(&value)?;
        }
        let numeric = matches!(field, Field::Cpu | Field::Tid | Field::Pid);
        let quantity = self.quantity().filter(|_| !numeric);
        self.tokens.at += 1 + usize::from(quantity.is_some());
        Ok(quantity.map_or(value, Value::Text))
    }

    /// The next value; consumes no token.
    fn value(&self) -> Result<Value, FilterError> {
        match (self.tokens.peek(), self.scope) {
            (Token::Text(text) | Token::Word(text), _) => Ok(Value::Text(text.clone())),
            (Token::Number(text), Scope::Filter { .. }) => Ok(number(text)),
            (Token::Number(text), Scope::Period { .. }) => {
                match number(text.trim_start_matches('+')) {
                    Value::Text(_) => Err(self.tokens.error("not a number")),
                    value => Ok(value),
                }
            }
            _ => Err(self.tokens.error("expected a number, a string or a word")),
        }
    }

    fn check_time(&self, value: &Value) -> Result<(), FilterError> {
        match self.scope {
            Scope::Filter { check_time, .. } => {
                check_time(&value.text()).map_err(|message| self.tokens.error(message))
            }
            Scope::Period { .. } if matches!(value, Value::Integer(_)) => Ok(()),
            Scope::Period { .. } => Err(self.tokens.error("expected a time in nanoseconds")),
        }
    }

    /// The next number with the unit after it, as one text; consumes no token.
    fn quantity(&self) -> Option<String> {
        let Scope::Filter { is_quantity, .. } = self.scope else {
            return None;
        };
        let (Token::Number(number), Token::Word(unit)) = (self.tokens.peek(), self.tokens.after())
        else {
            return None;
        };
        let quantity = format!("{number}{unit}");
        is_quantity(&quantity).then_some(quantity)
    }

    /// Parses a field of an event record.
    pub(crate) fn reference(&mut self, side: Side) -> Result<Reference, FilterError> {
        let place = self.tokens.at;
        let Token::Word(first) = self.tokens.peek() else {
            return Err(self.tokens.error("expected a field"));
        };
        let mut word = first.clone();
        self.tokens.at += 1;
        // A quoted name is not one word: `ctx."operator new(unsigned long)"`.
        if let (true, Token::Text(name)) = (is_context(&word), self.tokens.peek()) {
            let field = Field::Path(Where::Context, vec![name.clone()]);
            self.tokens.at += 1;
            let source = Source::Event;
            return Ok(Reference { source, field });
        }
        // White space is allowed around points.
        while let Token::Word(next) = self.tokens.peek()
            && (word.ends_with('.') || next.starts_with('.'))
        {
            word += next;
            self.tokens.at += 1;
        }
        self.resolve(&word, side).map_err(|message| {
            self.tokens.at = place;
            self.tokens.error(message)
        })
    }

    fn resolve(&mut self, word: &str, side: Side) -> Result<Reference, String> {
        let (source, prefix, rest) = self.source(word)?;
        let Some(old) = rest.strip_prefix("$evt.") else {
            if rest.starts_with('$') {
                return Err(no_variable(rest));
            }
            let field = field(rest)?;
            return Ok(Reference { source, field });
        };
        let field = old_field(old)?;
        // On the right side `$evt.` is not an old form: it marks a field.
        let is_current = prefix.is_empty() && side == Side::Right && !old.contains('$');
        if !is_current {
            let prefix = match side {
                Side::Right if prefix.is_empty() => "$evt.",
                _ => prefix,
            };
            self.old.add(word, format!("{prefix}{}", spelling(&field)));
        }
        Ok(Reference { source, field })
    }

    /// The event record whose field is named, the prefix that selects it, and the field.
    fn source<'w>(&self, word: &'w str) -> Result<(Source, &'static str, &'w str), String> {
        let (in_end, has_parent) = match self.scope {
            Scope::Period { in_end, has_parent } => (in_end, has_parent),
            Scope::Filter { .. } if word.starts_with("$begin.") || word.starts_with("$parent.") => {
                return Err(
                    "`$begin` and `$parent` are defined only in the conditions of periods"
                        .to_owned(),
                );
            }
            Scope::Filter { .. } => (false, false),
        };
        if let Some(rest) = word.strip_prefix("$parent.") {
            if !has_parent {
                return Err("`$parent` is undefined: this period has no parent".to_owned());
            }
            let behind = rest.strip_prefix("$begin.");
            if behind.is_none() && rest.starts_with('$') {
                return Err(
                    "expected a field, or `$begin.$evt.` and a field, after `$parent.`".to_owned(),
                );
            }
            return Ok((Source::Parent, "$parent.", behind.unwrap_or(rest)));
        }
        match word.strip_prefix("$begin.") {
            Some(rest) if in_end => Ok((Source::Begin, "$begin.", rest)),
            Some(rest) => Ok((Source::Event, "$begin.", rest)),
            None => Ok((Source::Event, "", word)),
        }
    }
}

/// Names that stand for event records.
const VARIABLES: [&str; 3] = ["$evt", "$begin", "$parent"];

/// The message for a word that begins with `$` but is not a field of a variable.
fn no_variable(word: &str) -> String {
    let name = word.split('.').next().unwrap_or_default();
    if VARIABLES.contains(&name) {
        return format!("expected a field after `{name}`, as in `{name}.next_tid`");
    }
    let instead = did_you_mean(&Glob::literal(name), VARIABLES);
    match instead.is_empty() {
        true => format!(
            "`{name}` is undefined: the variables are {}",
            VARIABLES.join(", ")
        ),
        false => format!("`{name}` is undefined{instead}"),
    }
}

fn datum(value: &Value) -> Datum {
    match value {
        Value::Integer(number) => Datum::Integer(*number),
        Value::Float(number, _) => Datum::float(*number),
        Value::Text(text) => Datum::text(text.as_bytes()),
    }
}
