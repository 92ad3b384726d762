//! Definitions of executions: their delimiters, and the values that programs attach to them.
//!
//! Periods are one kind of delimiter. The others have a fixed start and end: a system call, a
//! function, a span, a process, a kernel of a GPU, a frame. `docs/reference/executions.md` describes the language.

use crate::ast::Field;
use crate::field::{field, old_field, spelling};
use crate::glob::Glob;
use crate::parse::FilterError;
use crate::periods::Periods;
use crate::periods::file::without_comments;

/// Definitions of executions and of attached values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// In the order in which they were defined.
    pub list: Vec<Definition>,
    /// The definitions that are delimited by conditions on event records.
    pub periods: Periods,
    /// Values that programs attach to executions.
    pub values: Vec<Attached>,
}

/// A kind of execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Unique name.
    pub name: String,
    /// Rule for the start and the end.
    pub delimiter: Delimiter,
}

/// Rule for the start and the end of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Delimiter {
    /// Event records that conditions select: an index into [`Definitions::periods`].
    Period(usize),
    /// Entry and exit of a system call whose name matches.
    Call(Glob),
    /// Entry and exit of a function whose name matches.
    Function(Glob),
    /// Start and end of a span whose name matches.
    Span(Glob),
    /// Creation and end of a process whose name matches.
    Process(Glob),
    /// Call that enqueues a kernel of a device whose name matches, and completion of the kernel.
    Kernel(Glob),
    /// Call that enqueues a kernel of a device whose name matches, and the next such call of the
    /// thread.
    Frame(Glob),
}

/// A value that a program attaches to its executions by event records of a thread while the thread
/// is on the critical path.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    /// Unique name.
    pub name: String,
    /// Index of the definition whose executions have the value; `None`: of all.
    pub kind: Option<usize>,
    /// Names of the event records.
    pub events: Glob,
    /// Field that contains the value; `None`: event records are counted.
    pub field: Option<Field>,
    /// How several values are combined.
    pub how: How,
}

/// How the values of one execution are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// Their sum.
    #[default]
    Sum,
    /// The value of the last event record.
    Last,
    /// The greatest value.
    Max,
    /// Number of event records.
    Count,
}

/// Maximum number of definitions, and of values.
const MOST: usize = 1000;

impl Delimiter {
    /// Names of the values captured at the start and at the end of each execution. For periods, the
    /// definition lists them.
    pub fn captures(&self) -> [&'static [&'static str]; 2] {
        match self {
            Delimiter::Period(_) => [&[], &[]],
            Delimiter::Call(_) => [&["call", "fd"], &["ret"]],
            Delimiter::Function(_) => [&["function"], &[]],
            Delimiter::Span(_) => [&["span", "id"], &[]],
            Delimiter::Process(_) => [&["pid"], &["name"]],
            Delimiter::Kernel(_) => [&["kernel_name", "device_name", "queue"], &[]],
            Delimiter::Frame(_) => [&["kernel_name"], &[]],
        }
    }
}

impl How {
    /// The word for it in a definition.
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
    /// `process ...`, `kernel ...`, `frame ...` or `value ...`.
    ///
    /// # Errors
    /// The definition is malformed; the error contains the position.
    pub fn add(&mut self, text: &str) -> Result<(), FilterError> {
        let start = text.len() - text.trim_start().len();
        self.statement(text, start)
    }

    /// Adds the definitions of a file with this text. A definition begins at the beginning of a
    /// line and extends over the following lines that begin with white space; a line that begins
    /// with `#` is a comment.
    ///
    /// # Errors
    /// A definition is malformed; the error contains the position.
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

    /// Index of the definition of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.list
            .iter()
            .position(|definition| definition.name == name)
    }

    /// Names of the values captured in executions of a definition: those of the start, then those
    /// of the end.
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

    /// The definition's name after the names of the enclosing periods: `outer/inner`.
    pub fn path(&self, kind: usize) -> String {
        match self.list.get(kind) {
            Some(Definition {
                delimiter: Delimiter::Period(place),
                ..
            }) => self.periods.path(*place),
            found => found.map_or_else(String::new, |definition| definition.name.clone()),
        }
    }

    /// Parses the definition from byte `start` to the end of the text.
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
            "kernel" => Delimiter::Kernel,
            "frame" => Delimiter::Frame,
            _ => {
                return Err(FilterError::new(
                    text,
                    start,
                    "expected a definition, which begins with `period`, `captures`, `call`, `function`, `span`, `process`, \
                     `kernel`, `frame` or `value`",
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
                "expected a name or a pattern of names",
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
                "`{name}` is already defined: choose another name, as in `other : {name}` for a pattern"
            ));
        }
        if self.list.len() >= MOST {
            return wrong("too many definitions (at most 1000)".to_owned());
        }
        self.list.push(Definition { name, delimiter });
        Ok(())
    }

    /// Parses `NAME(KIND) = PATTERN . FIELD HOW`.
    fn value(&mut self, mut words: Words<'_>) -> Result<(), FilterError> {
        let text = words.text;
        let wrong = |place, message: &str| Err(FilterError::new(text, place, message));
        let place = words.skip();
        let name = words.name().to_owned();
        if name.is_empty() {
            return wrong(place, "expected the name of a value");
        }
        if self.values.iter().any(|value| value.name == name) {
            return wrong(place, "a value of that name is already defined");
        }
        let kind = self.kind_of_value(&mut words)?;
        if !words.take("=") {
            return wrong(words.skip(), "expected `=` and a pattern of event names");
        }
        let at = words.skip();
        let events = words.word();
        if events.is_empty() {
            return wrong(at, "expected a pattern of event names");
        }
        let field = self.field_of_value(&mut words)?;
        let how = how_to_attach(&mut words, field.is_some())?;
        let at = words.skip();
        if !words.rest().is_empty() {
            return wrong(at, "expected the end");
        }
        if self.values.len() >= MOST {
            return wrong(place, "too many values (at most 1000)");
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

    /// Parses an optional `(KIND)`.
    fn kind_of_value(&self, words: &mut Words<'_>) -> Result<Option<usize>, FilterError> {
        if !words.take("(") {
            return Ok(None);
        }
        let at = words.skip();
        // Names of definitions may be patterns.
        let name = words.until(")").trim_end();
        let kind = self.find(name);
        if kind.is_none() {
            let message = "no definition of that name precedes this one";
            return Err(FilterError::new(words.text, at, message));
        }
        if !words.take(")") {
            return Err(FilterError::new(words.text, words.skip(), "expected `)`"));
        }
        Ok(kind)
    }

    /// Parses an optional `. FIELD`.
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

/// Parses `HOW`; the default for a field is the sum.
fn how_to_attach(words: &mut Words<'_>, has_field: bool) -> Result<How, FilterError> {
    let (text, at) = (words.text, words.skip());
    let wrong = |message: &str| Err(FilterError::new(text, at, message));
    match words.word() {
        "" | "sum" if has_field => Ok(How::Sum),
        "last" if has_field => Ok(How::Last),
        "max" if has_field => Ok(How::Max),
        "count" => Ok(How::Count),
        "" | "sum" | "last" | "max" => wrong("expected `count`, or ` . ` and a field before this"),
        _ => wrong("expected `sum`, `last`, `max`, `count` or the end"),
    }
}

/// A cursor over the words of a text.
#[derive(Clone, Copy)]
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    fn left(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Offset of the next word; at the end of the text, the end of the last word.
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

    /// Consumes a name, which may be empty.
    fn name(&mut self) -> &'t str {
        self.skip();
        let rest = self.left();
        let is_of_it = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        self.advance(rest.find(|letter| !is_of_it(letter)).unwrap_or(rest.len()))
    }

    /// Consumes the text up to the next white space.
    fn word(&mut self) -> &'t str {
        self.skip();
        let rest = self.left();
        self.advance(rest.find(char::is_whitespace).unwrap_or(rest.len()))
    }

    /// Consumes the text up to `end`, or all.
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

    /// Consumes an optional `NAME :`; returns the offset and the name. A function name may contain
    /// `::`.
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
            "kernel blur*",
            "frame f2 : blur",
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
            "blur*",
            "f2",
            "p",
        ];
        assert_eq!(names, expected);
        let delimiter = |place: usize| definitions.list[place].delimiter.clone();
        assert_eq!(delimiter(1), Delimiter::Call(Glob::new("read")));
        assert_eq!(delimiter(3), Delimiter::Function(Glob::new("main")));
        assert_eq!(delimiter(5), Delimiter::Process(Glob::new("nginx")));
        assert_eq!(delimiter(6), Delimiter::Kernel(Glob::new("blur*")));
        assert_eq!(delimiter(7), Delimiter::Frame(Glob::new("blur")));
        assert_eq!(delimiter(8), Delimiter::Period(0));
        assert_eq!(definitions.captures(1), ["call", "fd", "ret"]);
        assert_eq!(
            definitions.captures(6),
            ["kernel_name", "device_name", "queue"]
        );
        assert_eq!(definitions.captures(8), ["x", "y"]);
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
            ("call", 4, "expected a name"),
            ("call reads:  ", 11, "expected a name"),
            ("call read", 5, "already defined"),
            ("period read : $evt.$name == \"x\"", 6, "already defined"),
            ("period : $evt.x = 1", 16, "`==`"),
            ("value", 5, "the name of a value"),
            ("value v = a . b", 6, "already defined"),
            ("value w(x) = a . b", 8, "no definition"),
            ("value w(read = a . b", 8, "no definition"),
            ("value w a . b", 8, "`=`"),
            ("value w =", 9, "event names"),
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

    /// Each prefix of a definition, alone and with any character inserted, yields a definition or
    /// an error with a position in the text.
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
