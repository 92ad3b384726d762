//! Parses text to definitions of periods.

use crate::condition::{Conditions, Scope, Side};
use crate::field::OldForms;
use crate::lexer::{Dialect, OLD_PERIODS, PERIODS, Token, tokens_from};
use crate::logic::{Logic, Tokens};
use crate::parse::FilterError;
use crate::periods::{Capture, Period, Periods};

/// Maximum number of definitions, and of captures in a list.
const MOST: usize = 1000;

impl Periods {
    /// Parses the definition from byte `start` to the end of the text.
    pub(crate) fn period_from(&mut self, text: &str, start: usize) -> Result<(), FilterError> {
        let (period, old) = match self.parsed(text, start, PERIODS) {
            Ok(parsed) => parsed,
            // In the old form, colons without white space around them separate the conditions.
            Err(error) => {
                let Ok((period, mut old)) = self.parsed(text, start, OLD_PERIODS) else {
                    return Err(error);
                };
                old.add(":", " : ".to_owned());
                (period, old)
            }
        };
        if self.list.len() >= MOST {
            return Err(FilterError::new(
                text,
                start,
                "too many periods (at most 1000)",
            ));
        }
        self.old_forms.extend(old);
        self.list.push(period);
        Ok(())
    }

    fn parsed(
        &self,
        text: &str,
        start: usize,
        dialect: Dialect,
    ) -> Result<(Period, OldForms), FilterError> {
        let mut parser = Parser::new(text, start, dialect)?;
        let (name, parent) = parser.head(self)?;
        parser.is_about(false, parent.is_some());
        parser.colon("expected `:` and the condition that begins the period")?;
        let before = parser.conditions.tokens.at;
        let begin = parser.conditions.alternatives()?;
        parser.is_about(true, parent.is_some());
        let end = if parser.conditions.tokens.take(":") {
            parser.conditions.alternatives()?
        } else {
            // Parse the same text again: at the end, `$begin` refers to another event record.
            let after = std::mem::replace(&mut parser.conditions.tokens.at, before);
            let end = parser.conditions.alternatives()?;
            debug_assert_eq!(after, parser.conditions.tokens.at);
            end
        };
        parser.end("expected `&&`, `||`, `:` or the end")?;
        let period = Period {
            name: name.unwrap_or_else(|| format!("period{}", self.list.len() + 1)),
            parent,
            begin,
            end,
            begin_captures: Vec::new(),
            end_captures: Vec::new(),
        };
        Ok((period, parser.conditions.old))
    }

    /// Parses the captures from byte `start` to the end of the text.
    pub(crate) fn captures_from(&mut self, text: &str, start: usize) -> Result<(), FilterError> {
        let mut parser = Parser::new(text, start, OLD_PERIODS)?;
        let index = parser.known(self)?;
        let Some(period) = self.list.get_mut(index) else {
            return Ok(());
        };
        let has_parent = period.parent.is_some();
        parser.is_about(false, has_parent);
        if !period.begin_captures.is_empty() || !period.end_captures.is_empty() {
            return Err(FilterError::new(
                text,
                start,
                "this period already has captures",
            ));
        }
        parser.colon("expected `:` and captures")?;
        period.begin_captures = parser.list()?;
        if parser.conditions.tokens.take(":") {
            parser.is_about(true, has_parent);
            period.end_captures = parser.list()?;
        }
        parser.end("expected `,`, `:` or the end")?;
        self.old_forms.extend(parser.conditions.old);
        Ok(())
    }
}

struct Parser<'a> {
    conditions: Conditions<'a>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, start: usize, dialect: Dialect) -> Result<Self, FilterError> {
        let scope = Scope::Period {
            in_end: false,
            has_parent: false,
        };
        Ok(Parser {
            conditions: Conditions {
                tokens: Tokens::new(text, tokens_from(text, start, dialect)?),
                scope,
                old: OldForms::default(),
            },
        })
    }

    /// Sets the event records that the following conditions may refer to.
    fn is_about(&mut self, in_end: bool, has_parent: bool) {
        self.conditions.scope = Scope::Period { in_end, has_parent };
    }

    fn colon(&mut self, message: &str) -> Result<(), FilterError> {
        match self.conditions.tokens.take(":") {
            true => Ok(()),
            false => Err(self.conditions.tokens.error(message)),
        }
    }

    fn end(&mut self, message: &str) -> Result<(), FilterError> {
        match self.conditions.tokens.peek() {
            Token::End => Ok(()),
            _ => Err(self.conditions.tokens.error(message)),
        }
    }

    /// Consumes an optional name.
    fn name(&mut self) -> Option<String> {
        let is_name = |name: &str| {
            let mut letters = name.chars();
            letters
                .next()
                .is_some_and(|first| first.is_alphabetic() || first == '_')
                && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
        };
        match self.conditions.tokens.peek() {
            Token::Word(name) if is_name(name) => {
                let name = name.clone();
                self.conditions.tokens.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    /// Consumes the name of a defined period.
    fn known(&mut self, periods: &Periods) -> Result<usize, FilterError> {
        let place = self.conditions.tokens.at;
        let name = self.name();
        let known = name.as_deref().and_then(|name| periods.find(name));
        known.ok_or_else(|| {
            self.conditions.tokens.at = place;
            self.conditions.tokens.error(match name {
                Some(name) => format!("no period `{name}` is defined above this one"),
                None => "expected the name of a period".to_owned(),
            })
        })
    }

    /// Parses `NAME(PARENT)`.
    fn head(&mut self, periods: &Periods) -> Result<(Option<String>, Option<usize>), FilterError> {
        let place = self.conditions.tokens.at;
        let Some(name) = self.name() else {
            return Ok((None, None));
        };
        if periods.find(&name).is_some() {
            self.conditions.tokens.at = place;
            return Err(self
                .conditions
                .tokens
                .error(format!("a period `{name}` is already defined")));
        }
        if !self.conditions.tokens.take("(") {
            return Ok((Some(name), None));
        }
        let parent = self.known(periods)?;
        match self.conditions.tokens.take(")") {
            true => Ok((Some(name), Some(parent))),
            false => Err(self.conditions.tokens.error("expected `)`")),
        }
    }

    /// Parses captures separated by commas.
    fn list(&mut self) -> Result<Vec<Capture>, FilterError> {
        let mut captures: Vec<Capture> = Vec::new();
        if !matches!(self.conditions.tokens.peek(), Token::Word(_)) {
            return Ok(captures);
        }
        loop {
            let place = self.conditions.tokens.at;
            let capture = self.capture()?;
            if captures.len() >= MOST || captures.iter().any(|other| other.name == capture.name) {
                self.conditions.tokens.at = place;
                return Err(self
                    .conditions
                    .tokens
                    .error(format!("`{}` is already captured", capture.name)));
            }
            captures.push(capture);
            if !self.conditions.tokens.take(",") {
                return Ok(captures);
            }
        }
    }

    /// Parses `NAME = FIELD`, or a field that is its own name.
    fn capture(&mut self) -> Result<Capture, FilterError> {
        let start = self.conditions.tokens.at;
        let mut name = self.name();
        if name.is_some() && !self.conditions.tokens.take("=") {
            (name, self.conditions.tokens.at) = (None, start);
        }
        let begin = self.conditions.tokens.offset();
        let reference = self.conditions.reference(Side::Left)?;
        let end = self.conditions.tokens.offset();
        let text = self
            .conditions
            .tokens
            .text
            .get(begin..end)
            .unwrap_or_default();
        Ok(Capture {
            name: name.unwrap_or_else(|| text.split_whitespace().collect()),
            reference,
        })
    }
}
