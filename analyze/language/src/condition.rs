//! Tokens to conditions: one parser for filters, periods, executions and user analyses.

use crate::ast::{Expr, Field, Operator, Value, Where};
use crate::datum::Datum;
use crate::field::{OldForms, field, old_field, spelling};
use crate::glob::Glob;
use crate::lexer::Token;
use crate::logic::{Logic, Tokens};
use crate::parse::{FilterError, TimeCheck, number, operator};
use crate::periods::{Condition, Operand, Reference, Source};

/// What a condition may be about, besides the event record at hand.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// Nothing else.
    Filter {
        /// Says why a text is not a time.
        check_time: TimeCheck<'a>,
        /// Whether a number and what stands behind it are one.
        is_quantity: &'a dyn Fn(&str) -> bool,
    },
    /// The event records that began a period and the one around it.
    Period {
        /// It is about the end of a period.
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
            // A name in quotes is a pattern like one without.
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
            Token::End => return Err(self.tokens.error("a condition is missing here")),
            _ => {
                return Err(self
                    .tokens
                    .error("an event name, a field or `(` is expected here"));
            }
        }
        let reference = self.reference(Side::Left)?;
        self.comparison(reference)
    }
}

/// On which side of an operator a field stands: on the right one words are text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// True for the scope behind which a name may stand in quotes.
fn is_context(word: &str) -> bool {
    matches!(word, "ctx." | "context.")
}

impl<'a> Conditions<'a> {
    /// The condition up to the end.
    pub(crate) fn whole(&mut self) -> Result<Condition, FilterError> {
        let condition = self.alternatives()?;
        match self.tokens.peek() {
            Token::End => Ok(condition),
            _ => Err(self.tokens.error("`&&`, `||` or the end is expected here")),
        }
    }

    /// The event's name matches; takes what comes next.
    fn event(&mut self, pattern: &str) -> Condition {
        self.tokens.at += 1;
        Condition::Event(Expr::Event(Glob::new(pattern)))
    }

    /// `has(FIELD)`, which comes next.
    fn presence(&mut self) -> Result<Condition, FilterError> {
        self.tokens.at += 2;
        let place = self.tokens.at;
        let reference = self.reference(Side::Left)?;
        if reference.source != Source::Event {
            self.tokens.at = place;
            return Err(self
                .tokens
                .error("a field of the current event is expected here"));
        }
        match self.tokens.take(")") {
            true => Ok(Condition::Event(Expr::Has(reference.field))),
            false => Err(self.tokens.error("`)` is expected here")),
        }
    }

    /// What follows a field.
    fn comparison(&mut self, reference: Reference) -> Result<Condition, FilterError> {
        let sign = self.tokens.at;
        let operator = self.operator()?;
        let matching = matches!(operator, Operator::Matches | Operator::MatchesNot);
        if matches!(reference.field, Field::Time) && matching {
            self.tokens.at = sign;
            return Err(self.tokens.error("times have no pattern"));
        }
        if self.is_reference() {
            if matching {
                return Err(self.tokens.error("a pattern is expected here"));
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
            Token::Sign("=") => return Err(self.tokens.error("to compare, write `==`")),
            Token::Sign(sign) => operator(sign),
            _ => None,
        };
        let Some(operator) = operator else {
            return Err(self
                .tokens
                .error("an operator is expected here, such as `==` or `=~`"));
        };
        self.tokens.at += 1;
        Ok(operator)
    }

    /// True if a field comes next, on the right side of an operator.
    fn is_reference(&self) -> bool {
        let Token::Word(word) = self.tokens.peek() else {
            return false;
        };
        match self.scope {
            Scope::Period { .. } => word.starts_with('$'),
            // Other words are text there.
            Scope::Filter { .. } => {
                let sources = ["$evt", "$begin", "$parent"];
                sources.contains(&word.split('.').next().unwrap_or_default())
            }
        }
    }

    /// The value that comes next.
    fn constant(&mut self, field: &Field, matching: bool) -> Result<Value, FilterError> {
        let value = self.value()?;
        let wrong = match (field, &value) {
            (_, Value::Integer(_) | Value::Float(..)) if matching => "a pattern is expected here",
            (Field::Name, Value::Integer(_) | Value::Float(..)) => "a name is expected here",
            (Field::Cpu, Value::Float(..) | Value::Text(_)) => {
                "a whole number is expected here, such as 42"
            }
            (Field::Tid | Field::Pid, Value::Float(..) | Value::Text(_)) => {
                "a whole number is expected here, such as 42; use procname for names"
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

    /// The value that comes next, which is not taken.
    fn value(&self) -> Result<Value, FilterError> {
        match (self.tokens.peek(), self.scope) {
            (Token::Text(text) | Token::Word(text), _) => Ok(Value::Text(text.clone())),
            (Token::Number(text), Scope::Filter { .. }) => Ok(number(text)),
            (Token::Number(text), Scope::Period { .. }) => {
                match number(text.trim_start_matches('+')) {
                    Value::Text(_) => Err(self.tokens.error("this is not a number")),
                    value => Ok(value),
                }
            }
            _ => Err(self
                .tokens
                .error("a number, a string or a word is expected here")),
        }
    }

    fn check_time(&self, value: &Value) -> Result<(), FilterError> {
        match self.scope {
            Scope::Filter { check_time, .. } => {
                check_time(&value.text()).map_err(|message| self.tokens.error(message))
            }
            Scope::Period { .. } if matches!(value, Value::Integer(_)) => Ok(()),
            Scope::Period { .. } => Err(self.tokens.error("nanoseconds are expected here")),
        }
    }

    /// The number that comes next with the unit that stands behind it, neither of which is taken.
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

    /// A field of an event record.
    pub(crate) fn reference(&mut self, side: Side) -> Result<Reference, FilterError> {
        let place = self.tokens.at;
        let Token::Word(first) = self.tokens.peek() else {
            return Err(self.tokens.error("a field is expected here"));
        };
        let mut word = first.clone();
        self.tokens.at += 1;
        // A name that is no word: `ctx."operator new(unsigned long)"`.
        if let (true, Token::Text(name)) = (is_context(&word), self.tokens.peek()) {
            let field = Field::Path(Where::Context, vec![name.clone()]);
            self.tokens.at += 1;
            let source = Source::Event;
            return Ok(Reference { source, field });
        }
        // There may be white space around points.
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
            let field = field(rest)?;
            return Ok(Reference { source, field });
        };
        let field = old_field(old)?;
        // On the right side it says that this is no word.
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

    /// The event record that a field is of, what is written for that, and the field.
    fn source<'w>(&self, word: &'w str) -> Result<(Source, &'static str, &'w str), String> {
        let (in_end, has_parent) = match self.scope {
            Scope::Period { in_end, has_parent } => (in_end, has_parent),
            Scope::Filter { .. } if word.starts_with("$begin.") || word.starts_with("$parent.") => {
                return Err(
                    "`$begin` and `$parent` have no meaning here: only periods have them"
                        .to_owned(),
                );
            }
            Scope::Filter { .. } => (false, false),
        };
        if let Some(rest) = word.strip_prefix("$parent.") {
            if !has_parent {
                return Err("`$parent` has no meaning here: this period has no parent".to_owned());
            }
            let behind = rest.strip_prefix("$begin.");
            if behind.is_none() && rest.starts_with('$') {
                return Err(
                    "behind `$parent.` comes a field, or `$begin.$evt.` and a field".to_owned(),
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

fn datum(value: &Value) -> Datum {
    match value {
        Value::Integer(number) => Datum::Integer(*number),
        Value::Float(number, _) => Datum::float(*number),
        Value::Text(text) => Datum::text(text.as_bytes()),
    }
}
