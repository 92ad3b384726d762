//! Definitions of executions: what delimits them, and what programs attach to them.
//!
//! Periods are one kind of delimiter; the others are what begins and ends by itself: a system call,
//! a function, a span, a process. `docs/reference/executions.md` describes the language.

use crate::ast::Field;
use crate::field::{field, old_field, spelling};
use crate::glob::Glob;
use crate::parse::FilterError;
use crate::periods::Periods;
use crate::periods::file::without_comments;

/// What executions there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// In the order in which they were defined.
    pub list: Vec<Definition>,
    /// Those that are delimited by conditions on event records.
    pub periods: Periods,
    /// What programs attach to executions.
    pub values: Vec<Attached>,
}

/// A kind of executions.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What begins and ends one.
    pub delimiter: Delimiter,
}

/// What begins and ends an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Delimiter {
    /// Event records that conditions choose: that one of [`Definitions::periods`].
    Period(usize),
    /// Entry and exit of a system call of such a name.
    Call(Glob),
    /// Entry and exit of a function of such a name.
    Function(Glob),
    /// Begin and end of a span of such a name.
    Span(Glob),
    /// The making and the end of a process of such a name.
    Process(Glob),
}

/// A value that a program attaches to its executions: event records of a thread while it is on
/// their critical path.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    /// Its name.
    pub name: String,
    /// To which executions, by place among the definitions; none: to all.
    pub kind: Option<usize>,
    /// Names of the event records.
    pub events: Glob,
    /// What is taken of them; none: nothing but how many there are.
    pub field: Option<Field>,
    /// What is made of several.
    pub how: How,
}

/// What is made of several values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// What they add up to.
    #[default]
    Sum,
    /// That of the last event record.
    Last,
    /// The greatest.
    Max,
    /// How many event records there are.
    Count,
}

/// Definitions that there may be, and values.
const MOST: usize = 1000;

impl Delimiter {
    /// Names of what is kept of each execution: at its begin, and at its end. Periods tell it in
    /// their definitions.
    pub fn captures(&self) -> [&'static [&'static str]; 2] {
        match self {
            Delimiter::Period(_) => [&[], &[]],
            Delimiter::Call(_) => [&["call", "fd"], &["ret"]],
            Delimiter::Function(_) => [&["function"], &[]],
            Delimiter::Span(_) => [&["span", "id"], &[]],
            Delimiter::Process(_) => [&["pid"], &["name"]],
        }
    }
}

impl How {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            How::Sum => "sum",
            How::Last => "last",
            How::Max => "max",
            How::Count => "count",
        }
    }
}

impl From<Periods> for Definitions {
    fn from(periods: Periods) -> Definitions {
        let definition = |(place, period): (usize, &crate::periods::Period)| Definition {
            name: period.name.clone(),
            delimiter: Delimiter::Period(place),
        };
        Definitions {
            list: periods.list.iter().enumerate().map(definition).collect(),
            periods,
            values: Vec::new(),
        }
    }
}

impl Definitions {
    /// Adds one definition: `period ...`, `captures ...`, `call ...`, `function ...`, `span ...`,
    /// `process ...` or `value ...`.
    ///
    /// # Errors
    /// With the place of what cannot be understood.
    pub fn add(&mut self, text: &str) -> Result<(), FilterError> {
        let start = text.len() - text.trim_start().len();
        self.statement(text, start)
    }

    /// Adds the definitions of a file, of which this is the text: each begins at the beginning of a
    /// line and goes on over the lines that begin with white space; `#` begins a line of comment.
    ///
    /// # Errors
    /// With the place of what cannot be understood.
    pub fn file(&mut self, text: &str) -> Result<(), FilterError> {
        let text = &without_comments(text);
        let mut statement = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if line.starts_with(|first: char| !first.is_whitespace())
                && let Some(start) = statement.replace(at)
            {
                self.statement(text.get(..at).unwrap_or(text), start)?;
            }
            at += line.len();
        }
        statement.map_or(Ok(()), |start| self.statement(text, start))
    }

    /// The place of the definition of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.list
            .iter()
            .position(|definition| definition.name == name)
    }

    /// Names of what is kept of executions of a definition, those of the begin before those of the
    /// end.
    pub fn captures(&self, kind: usize) -> Vec<String> {
        match self.list.get(kind).map(|definition| &definition.delimiter) {
            Some(Delimiter::Period(place)) => {
                let period = self.periods.list.get(*place);
                let captures =
                    period.map(|period| period.begin_captures.iter().chain(&period.end_captures));
                captures
                    .into_iter()
                    .flatten()
                    .map(|capture| capture.name.clone())
                    .collect()
            }
            Some(delimiter) => {
                let names = delimiter.captures();
                names
                    .iter()
                    .copied()
                    .flatten()
                    .map(|&name| name.to_owned())
                    .collect()
            }
            None => Vec::new(),
        }
    }

    /// What a definition is called, behind the names of the periods around it.
    pub fn path(&self, kind: usize) -> String {
        match self.list.get(kind) {
            Some(Definition {
                delimiter: Delimiter::Period(place),
                ..
            }) => self.periods.path(*place),
            found => found.map_or_else(String::new, |definition| definition.name.clone()),
        }
    }

    /// The definition that begins at that byte and ends with the text.
    fn statement(&mut self, text: &str, start: usize) -> Result<(), FilterError> {
        let mut words = Words { text, at: start };
        let delimiter: fn(Glob) -> Delimiter = match words.name() {
            "period" => return self.period(text, words.at),
            "captures" => return self.periods.captures_from(text, words.at),
            "value" => return self.value(words),
            "call" => Delimiter::Call,
            "function" => Delimiter::Function,
            "span" => Delimiter::Span,
            "process" => Delimiter::Process,
            _ => {
                return Err(FilterError::new(
                    text,
                    start,
                    "a definition begins with `period`, `captures`, `call`, `function`, `span`, `process` or `value`",
                ));
            }
        };
        let (place, name) = words.named();
        let at = words.skip();
        let pattern = words.rest();
        if pattern.is_empty() {
            return Err(FilterError::new(
                text,
                at,
                "a name or a pattern of names is missing here",
            ));
        }
        let name = name.unwrap_or(pattern).to_owned();
        self.define(name, delimiter(Glob::new(pattern)), text, place)
    }

    fn period(&mut self, text: &str, start: usize) -> Result<(), FilterError> {
        let before = self.periods.list.len();
        let old_forms = self.periods.old_forms.clone();
        self.periods.period_from(text, start)?;
        let Some(period) = self.periods.list.get(before) else {
            return Ok(());
        };
        let added = self.define(period.name.clone(), Delimiter::Period(before), text, start);
        if added.is_err() {
            self.periods.list.truncate(before);
            self.periods.old_forms = old_forms;
        }
        added
    }

    fn define(
        &mut self,
        name: String,
        delimiter: Delimiter,
        text: &str,
        place: usize,
    ) -> Result<(), FilterError> {
        let wrong = |message| Err(FilterError::new(text, place, message));
        if self.find(&name).is_some() {
            return wrong(format!(
                "`{name}` is defined already: give this one another name, as in `other : {name}` for a pattern"
            ));
        }
        if self.list.len() >= MOST {
            return wrong("these are too many definitions".to_owned());
        }
        self.list.push(Definition { name, delimiter });
        Ok(())
    }

    /// `NAME(KIND) = PATTERN . FIELD HOW`.
    fn value(&mut self, mut words: Words<'_>) -> Result<(), FilterError> {
        let text = words.text;
        let wrong = |place, message: &str| Err(FilterError::new(text, place, message));
        let place = words.skip();
        let name = words.name().to_owned();
        if name.is_empty() {
            return wrong(place, "the name of a value is expected here");
        }
        if self.values.iter().any(|value| value.name == name) {
            return wrong(place, "a value of that name is defined already");
        }
        let kind = self.kind_of_value(&mut words)?;
        if !words.take("=") {
            return wrong(
                words.skip(),
                "`=` and a pattern of names of events are expected here",
            );
        }
        let at = words.skip();
        let events = words.word();
        if events.is_empty() {
            return wrong(at, "a pattern of names of events is expected here");
        }
        let field = self.field_of_value(&mut words)?;
        let how = how_to_attach(&mut words, field.is_some())?;
        let at = words.skip();
        if !words.rest().is_empty() {
            return wrong(at, "the end is expected here");
        }
        if self.values.len() >= MOST {
            return wrong(place, "these are too many values");
        }
        self.values.push(Attached {
            name,
            kind,
            events: Glob::new(events),
            field,
            how,
        });
        Ok(())
    }

    /// Parses `(KIND)`, if it comes next.
    fn kind_of_value(&self, words: &mut Words<'_>) -> Result<Option<usize>, FilterError> {
        if !words.take("(") {
            return Ok(None);
        }
        let at = words.skip();
        // Names of definitions may be patterns.
        let name = words.until(")").trim_end();
        let kind = self.find(name);
        if kind.is_none() {
            let message = "no definition of that name stands before this";
            return Err(FilterError::new(words.text, at, message));
        }
        if !words.take(")") {
            return Err(FilterError::new(
                words.text,
                words.skip(),
                "`)` is expected here",
            ));
        }
        Ok(kind)
    }

    /// Parses `. FIELD`, if it comes next.
    fn field_of_value(&mut self, words: &mut Words<'_>) -> Result<Option<Field>, FilterError> {
        if !words.take(".") {
            return Ok(None);
        }
        let at = words.skip();
        let word = words.word();
        let found = match word.starts_with('$') {
            true => {
                old_field(word).inspect(|field| self.periods.old_forms.add(word, spelling(field)))
            }
            false => field(word),
        };
        let found = found.map_err(|message| FilterError::new(words.text, at, message))?;
        Ok(Some(found))
    }
}

/// Parses `HOW`; without it, the values of a field are added up.
fn how_to_attach(words: &mut Words<'_>, has_field: bool) -> Result<How, FilterError> {
    let (text, at) = (words.text, words.skip());
    let wrong = |message: &str| Err(FilterError::new(text, at, message));
    match words.word() {
        "" | "sum" if has_field => Ok(How::Sum),
        "last" if has_field => Ok(How::Last),
        "max" if has_field => Ok(How::Max),
        "count" => Ok(How::Count),
        "" | "sum" | "last" | "max" => {
            wrong("` . ` and a field are expected before this, or `count`")
        }
        _ => wrong("`sum`, `last`, `max`, `count` or the end is expected here"),
    }
}

/// A text that is taken word by word.
#[derive(Clone, Copy)]
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    fn left(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Where the next word begins; behind the last one, where that ends.
    fn skip(&mut self) -> usize {
        let next = self.left().trim_start();
        if !next.is_empty() {
            self.at = self.text.len() - next.len();
        }
        self.at
    }

    fn advance(&mut self, bytes: usize) -> &'t str {
        let taken = self.left().get(..bytes).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    /// A name, which may be empty.
    fn name(&mut self) -> &'t str {
        self.skip();
        let rest = self.left();
        let is_of_it = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        self.advance(rest.find(|letter| !is_of_it(letter)).unwrap_or(rest.len()))
    }

    /// What stands up to the next white space.
    fn word(&mut self) -> &'t str {
        self.skip();
        let rest = self.left();
        self.advance(rest.find(char::is_whitespace).unwrap_or(rest.len()))
    }

    /// What stands before that.
    fn until(&mut self, end: &str) -> &'t str {
        let rest = self.left();
        self.advance(rest.find(end).unwrap_or(rest.len()))
    }

    fn take(&mut self, sign: &str) -> bool {
        self.skip();
        let found = self.left().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// `NAME :`, if that comes next, and where; names of functions may have `::`.
    fn named(&mut self) -> (usize, Option<&'t str>) {
        let mut ahead = *self;
        let place = ahead.skip();
        let name = ahead.name();
        let is_name = !name.is_empty() && ahead.take(":") && !ahead.left().starts_with(':');
        if !is_name {
            return (place, None);
        }
        *self = ahead;
        (place, Some(name))
    }

    fn rest(&mut self) -> &'t str {
        self.skip();
        self.left().trim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(texts: &[&str]) -> Definitions {
        let mut definitions = Definitions::default();
        for text in texts {
            definitions
                .add(text)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        definitions
    }

    #[test]
    fn each_delimiter_has_its_form() {
        let definitions = defined(&[
            "call open*",
            "call reads : read",
            "function shop::Cart::add(int)",
            "  function f:main",
            "span checkout page",
            "process ng: nginx",
            "period p : $evt.$name == \"a\"",
            "captures p : x = $evt.x : y = $evt.y",
        ]);
        let names: Vec<_> = (definitions.list.iter())
            .map(|definition| definition.name.as_str())
            .collect();
        let expected = [
            "open*",
            "reads",
            "shop::Cart::add(int)",
            "f",
            "checkout page",
            "ng",
            "p",
        ];
        assert_eq!(names, expected);
        let delimiter = |place: usize| definitions.list[place].delimiter.clone();
        assert_eq!(delimiter(1), Delimiter::Call(Glob::new("read")));
        assert_eq!(delimiter(3), Delimiter::Function(Glob::new("main")));
        assert_eq!(delimiter(5), Delimiter::Process(Glob::new("nginx")));
        assert_eq!(delimiter(6), Delimiter::Period(0));
        assert_eq!(definitions.captures(1), ["call", "fd", "ret"]);
        assert_eq!(definitions.captures(6), ["x", "y"]);
    }

    #[test]
    fn values_say_of_what_and_how() {
        let definitions = defined(&[
            "period p : $evt.$name == \"a\"",
            "value items(p) = app:batch . count max",
            "value rows = app:* . event_ctx.rows[2]",
            "value batches ( p )= app:batch count",
            "value old = app:* . $ctx.rows[2]",
        ]);
        let [items, rows, batches, old] = &definitions.values[..] else {
            panic!("{definitions:?}");
        };
        assert_eq!(
            (items.kind, items.how, rows.kind, rows.how),
            (Some(0), How::Max, None, How::Sum)
        );
        assert_eq!(rows.field, field("event_ctx.rows[2]").ok());
        assert_eq!(old.field, rows.field);
        let note = definitions.periods.old_forms.note().expect("old forms");
        assert!(
            note.ends_with("`event_ctx.rows[2]` for `$ctx.rows[2]`"),
            "{note}"
        );
        assert_eq!(
            (batches.kind, batches.how, &batches.field),
            (Some(0), How::Count, &None)
        );
    }

    #[test]
    fn errors_have_their_place() {
        let cases = [
            ("", 0, "begins with"),
            ("cal read", 0, "begins with"),
            ("call", 4, "is missing"),
            ("call reads:  ", 11, "is missing"),
            ("call read", 5, "defined already"),
            ("period read : $evt.$name == \"x\"", 6, "defined already"),
            ("period : $evt.x = 1", 16, "`==`"),
            ("value", 5, "the name of a value"),
            ("value v = a . b", 6, "defined already"),
            ("value w(x) = a . b", 8, "no definition"),
            ("value w(read = a . b", 8, "no definition"),
            ("value w a . b", 8, "`=`"),
            ("value w =", 9, "names of events"),
            ("value w = a", 11, "a field"),
            ("value w = a max", 12, "a field"),
            ("value w = a . b mean", 16, "`sum`"),
            ("value w = a . b sum x", 20, "the end"),
            ("value w = a . [", 14, "not the name of a field"),
        ];
        for (text, offset, message) in cases {
            let mut definitions = defined(&["call read", "value v = a . b"]);
            let error = definitions.add(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
            assert_eq!(
                definitions,
                defined(&["call read", "value v = a . b"]),
                "{text}"
            );
        }
    }

    #[test]
    fn files_hold_several_over_lines() {
        let mut definitions = Definitions::default();
        let text = "# first\ncall read\nperiod a : $evt.$name == \"x\"\n  # why\n  : $evt.$name == \"y\"\n\nspan s*\n";
        definitions.file(text).unwrap();
        assert_eq!(
            (definitions.list.len(), definitions.periods.list.len()),
            (3, 1)
        );
        let error = definitions.file("call write\n\nspan\n").unwrap_err();
        assert_eq!(error.place(), (3, 5), "{error}");
    }

    /// Cut anywhere, and with anything anywhere: an error with a place in the text, or a
    /// definition.
    #[test]
    fn no_text_panics() {
        for whole in [
            "value a(read) = é:* . $ctx.b max",
            "function é : ü::f",
            "span \u{a0}x",
        ] {
            for (at, _) in whole.char_indices() {
                let (before, behind) = whole.split_at(at);
                for strange in [
                    "", "(", ")", ":", "=", "\"", "\\", "$", ".", "[", "ü", "\n", "\0", "\u{a0}",
                ] {
                    for text in [before.to_owned(), format!("{before}{strange}{behind}")] {
                        if let Err(error) = defined(&["call read"]).add(&text) {
                            assert!(text.is_char_boundary(error.offset), "{text}: {error}");
                            assert!(error.to_string().ends_with('^'), "{text}");
                        }
                        let _ = Definitions::default().file(&text);
                    }
                }
            }
        }
    }
}
