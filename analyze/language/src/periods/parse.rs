//! Text to definitions of periods.

use crate::ast::{Expr, Field, Operator, Value, Where};
use crate::datum::Datum;
use crate::glob::Glob;
use crate::lexer::{PERIODS, Token, tokens_from};
use crate::logic::{Logic, Tokens};
use crate::parse::{FilterError, bare_field, number, operator};
use crate::periods::{Capture, Condition, Operand, Period, Periods, Reference, Source};

/// Definitions that there may be; and captures of one.
const MOST: usize = 1000;

impl Periods {
    /// The definition that begins at that byte and ends with the text.
    pub(crate) fn period_from(&mut self, text: &str, start: usize) -> Result<(), FilterError> {
        let mut parser = Parser::new(text, start)?;
        let (name, parent) = parser.head(self)?;
        parser.has_parent = parent.is_some();
        parser.colon("`:` and the condition of the begin are expected here")?;
        let before = parser.tokens.at;
        let begin = parser.alternatives()?;
        parser.in_end = true;
        let end = if parser.tokens.take(":") {
            parser.alternatives()?
        } else {
            // The same words: `$begin` means something else at the end.
            let after = std::mem::replace(&mut parser.tokens.at, before);
            let end = parser.alternatives()?;
            debug_assert_eq!(after, parser.tokens.at);
            end
        };
        parser.end("`&&`, `||`, `:` or the end is expected here")?;
        if self.list.len() >= MOST {
            return Err(FilterError::new(text, start, "these are too many periods"));
        }
        self.list.push(Period {
            name: name.unwrap_or_else(|| format!("period{}", self.list.len() + 1)),
            parent,
            begin,
            end,
            begin_captures: Vec::new(),
            end_captures: Vec::new(),
        });
        Ok(())
    }

    /// The captures that begin at that byte and end with the text.
    pub(crate) fn captures_from(&mut self, text: &str, start: usize) -> Result<(), FilterError> {
        let mut parser = Parser::new(text, start)?;
        let index = parser.known(self)?;
        let Some(period) = self.list.get_mut(index) else {
            return Ok(());
        };
        parser.has_parent = period.parent.is_some();
        if !period.begin_captures.is_empty() || !period.end_captures.is_empty() {
            return Err(FilterError::new(text, start, "this period has captures already"));
        }
        parser.colon("`:` and captures are expected here")?;
        period.begin_captures = parser.list()?;
        if parser.tokens.take(":") {
            parser.in_end = true;
            period.end_captures = parser.list()?;
        }
        parser.end("`,`, `:` or the end is expected here")
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    /// What is parsed is about the end of a period.
    in_end: bool,
    has_parent: bool,
}

impl<'a> Logic<'a> for Parser<'a> {
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
        if matches!(self.tokens.peek(), Token::End) {
            return Err(self.tokens.error("a condition is missing here"));
        }
        if let Some(condition) = self.name_or_presence()? {
            return Ok(condition);
        }
        let reference = self.reference()?;
        let operator = self.operator()?;
        let is_reference = matches!(self.tokens.peek(), Token::Word(word) if word.starts_with('$'));
        if is_reference {
            if matches!(operator, Operator::Matches | Operator::MatchesNot) {
                return Err(self.tokens.error("a pattern is expected here"));
            }
            let other = self.reference()?;
            return Ok(Condition::Compare(reference, operator, Operand::Reference(other)));
        }
        self.constant(reference, operator)
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, start: usize) -> Result<Self, FilterError> {
        Ok(Parser {
            tokens: Tokens::new(text, tokens_from(text, start, PERIODS)?),
            in_end: false,
            has_parent: false,
        })
    }

    fn colon(&mut self, message: &str) -> Result<(), FilterError> {
        match self.tokens.take(":") {
            true => Ok(()),
            false => Err(self.tokens.error(message)),
        }
    }

    fn end(&mut self, message: &str) -> Result<(), FilterError> {
        match self.tokens.peek() {
            Token::End => Ok(()),
            _ => Err(self.tokens.error(message)),
        }
    }

    /// A name, if one comes next.
    fn name(&mut self) -> Option<String> {
        let is_name = |name: &str| {
            let mut letters = name.chars();
            letters
                .next()
                .is_some_and(|first| first.is_alphabetic() || first == '_')
                && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '-')
        };
        match self.tokens.peek() {
            Token::Word(name) if is_name(name) => {
                let name = name.clone();
                self.tokens.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    /// A condition that is no comparison, as in filters: the name of an event, or `has(FIELD)`.
    fn name_or_presence(&mut self) -> Result<Option<Condition>, FilterError> {
        let pattern = match self.tokens.peek() {
            Token::Text(name) => name.clone(),
            Token::Word(word) if !word.starts_with('$') => match self.tokens.after() {
                Token::Sign("(") if word == "has" => return self.presence().map(Some),
                Token::Sign("&&" | "||" | ":" | ")") | Token::End => word.clone(),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.tokens.at += 1;
        Ok(Some(Condition::Event(Expr::Event(Glob::new(&pattern)))))
    }

    /// `has(FIELD)`, which comes next.
    fn presence(&mut self) -> Result<Condition, FilterError> {
        self.tokens.at += 2;
        let place = self.tokens.at;
        let reference = self.reference()?;
        if reference.source != Source::Event {
            self.tokens.at = place;
            return Err(self.tokens.error("a field of the current event is expected here"));
        }
        match self.tokens.take(")") {
            true => Ok(Condition::Event(Expr::Has(reference.field))),
            false => Err(self.tokens.error("`)` is expected here")),
        }
    }

    /// The name of a period that is defined.
    fn known(&mut self, periods: &Periods) -> Result<usize, FilterError> {
        let place = self.tokens.at;
        let name = self.name();
        let known = name.as_deref().and_then(|name| periods.find(name));
        known.ok_or_else(|| {
            self.tokens.at = place;
            self.tokens.error(match name {
                Some(name) => format!("no period `{name}` is defined before this"),
                None => "the name of a period is expected here".to_owned(),
            })
        })
    }

    /// `NAME(PARENT)`.
    fn head(&mut self, periods: &Periods) -> Result<(Option<String>, Option<usize>), FilterError> {
        let place = self.tokens.at;
        let Some(name) = self.name() else {
            return Ok((None, None));
        };
        if periods.find(&name).is_some() {
            self.tokens.at = place;
            return Err(self.tokens.error(format!("a period `{name}` is defined already")));
        }
        if !self.tokens.take("(") {
            return Ok((Some(name), None));
        }
        let parent = self.known(periods)?;
        match self.tokens.take(")") {
            true => Ok((Some(name), Some(parent))),
            false => Err(self.tokens.error("`)` is expected here")),
        }
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

    /// The constant that comes next, and the comparison with it.
    fn constant(&mut self, reference: Reference, operator: Operator) -> Result<Condition, FilterError> {
        let value = match self.tokens.peek() {
            Token::Text(text) | Token::Word(text) => Value::Text(text.clone()),
            Token::Number(text) => match number(text.trim_start_matches('+')) {
                Value::Text(_) => return Err(self.tokens.error("this is not a number")),
                value => value,
            },
            _ => {
                return Err(self
                    .tokens
                    .error("a number, a string in quotes or a field is expected here"));
            }
        };
        let wrong = match (&value, &reference.field, operator) {
            (Value::Integer(_) | Value::Float(..), _, Operator::Matches | Operator::MatchesNot) => {
                "a pattern is expected here"
            }
            (Value::Integer(_) | Value::Float(..), Field::Name, _) => "a name is expected here",
            (Value::Float(..) | Value::Text(_), Field::Time, _) => "nanoseconds are expected here",
            (Value::Float(..) | Value::Text(_), Field::Cpu, _) => "the number of a CPU is expected here",
            (Value::Float(..) | Value::Text(_), Field::Tid | Field::Pid, _) => {
                "a whole number is expected here, such as 42; use procname for names"
            }
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(self.tokens.error(wrong));
        }
        self.tokens.at += 1;
        Ok(match (reference.source, value) {
            (Source::Event, value) => Condition::Event(Expr::Compare(reference.field, operator, value)),
            (_, Value::Text(text)) if matches!(operator, Operator::Matches | Operator::MatchesNot) => {
                Condition::Compare(reference, operator, Operand::Pattern(Glob::new(&text)))
            }
            (_, value) => Condition::Compare(reference, operator, Operand::Constant(datum(&value))),
        })
    }

    /// Captures with commas between them.
    fn list(&mut self) -> Result<Vec<Capture>, FilterError> {
        let mut captures: Vec<Capture> = Vec::new();
        if !matches!(self.tokens.peek(), Token::Word(_)) {
            return Ok(captures);
        }
        loop {
            let place = self.tokens.at;
            let capture = self.capture()?;
            if captures.len() >= MOST || captures.iter().any(|other| other.name == capture.name) {
                self.tokens.at = place;
                return Err(self
                    .tokens
                    .error(format!("`{}` is captured already", capture.name)));
            }
            captures.push(capture);
            if !self.tokens.take(",") {
                return Ok(captures);
            }
        }
    }

    fn capture(&mut self) -> Result<Capture, FilterError> {
        let start = self.tokens.offset();
        let name = self.name();
        if name.is_some() && !self.tokens.take("=") {
            return Err(self.tokens.error("`=` and a field are expected here"));
        }
        let reference = self.reference()?;
        let end = self.tokens.offset();
        let text = self.tokens.text.get(start..end).unwrap_or_default().trim();
        Ok(Capture {
            name: name.unwrap_or_else(|| text.split_whitespace().collect()),
            reference,
        })
    }

    /// A field of an event record.
    fn reference(&mut self) -> Result<Reference, FilterError> {
        let place = self.tokens.at;
        let Token::Word(first) = self.tokens.peek() else {
            return Err(self
                .tokens
                .error("a field is expected here, such as `$evt.tid` or `$evt.$name`"));
        };
        let mut word = first.clone();
        self.tokens.at += 1;
        // There may be white space around points.
        while let Token::Word(next) = self.tokens.peek()
            && (word.ends_with('.') || next.starts_with('.'))
        {
            word += next;
            self.tokens.at += 1;
        }
        self.resolve(&word).map_err(|message| {
            self.tokens.at = place;
            self.tokens.error(message)
        })
    }

    fn resolve(&self, word: &str) -> Result<Reference, String> {
        // Syntax of filters.
        if !word.starts_with('$') {
            let (source, field) = (Source::Event, bare_field(word)?);
            return Ok(Reference { source, field });
        }
        let (mut source, mut rest) = (Source::Event, word);
        if let Some(behind) = rest.strip_prefix("$parent.") {
            if !self.has_parent {
                return Err("`$parent` has no meaning here: this period has no parent".to_owned());
            }
            (source, rest) = (Source::Parent, behind);
        }
        if let Some(behind) = rest.strip_prefix("$begin.") {
            rest = behind;
            if source == Source::Event && self.in_end {
                source = Source::Begin;
            }
        } else if source == Source::Parent {
            return Err("behind `$parent` comes `$begin`".to_owned());
        }
        let Some(rest) = rest.strip_prefix("$evt.") else {
            return Err(format!("`{word}` is not a field: they begin with `$evt.`"));
        };
        let field = field(rest)?;
        Ok(Reference { source, field })
    }
}

/// The field behind `$evt.`.
pub(crate) fn field(text: &str) -> Result<Field, String> {
    match text {
        "$name" => return Ok(Field::Name),
        "$time" => return Ok(Field::Time),
        "$cpu" => return Ok(Field::Cpu),
        _ => {}
    }
    let (place, path) = match text.split_once('.') {
        Some(("$payload", path)) => (Where::Payload, path),
        Some(("$ctx", path)) => (Where::EventContext, path),
        Some(("$stream_ctx", path)) => (Where::StreamContext, path),
        Some(("$pkt_ctx", path)) => (Where::Packet, path),
        Some(("$header", path)) => (Where::Header, path),
        Some(("$pkt_header", path)) => (Where::PacketHeader, path),
        _ => (Where::Anywhere, text),
    };
    if path.contains('$') {
        return Err(format!(
            "`$evt.{text}` has no meaning: there are $name, $cpu, $time, and fields of $payload, $ctx, \
             $stream_ctx, $header, $pkt_ctx, $pkt_header"
        ));
    }
    let wrong = || format!("`{path}` is not the name of a field");
    let mut steps = Vec::new();
    for step in path.split('.') {
        let mut parts = step.split('[');
        steps.push(parts.next().unwrap_or_default().to_owned());
        for index in parts {
            let digits = index.strip_suffix(']').ok_or_else(wrong)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            steps.push(is_number.then(|| digits.to_owned()).ok_or_else(wrong)?);
        }
    }
    let is_wrong = |step: &String| step.is_empty() || step.contains(['[', ']', '+', '@']);
    if steps.iter().any(is_wrong) {
        return Err(wrong());
    }
    Ok(Field::Path(place, steps))
}

fn datum(value: &Value) -> Datum {
    match value {
        Value::Integer(number) => Datum::Integer(*number),
        Value::Float(number, _) => Datum::float(*number),
        Value::Text(text) => Datum::text(text.as_bytes()),
    }
}
