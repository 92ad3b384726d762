//! Definitions of periods: intervals from an event record that one condition selects to one that
//! another selects. The second condition may refer to fields of the first event record.
//!
//! The language is a superset of lttng-analyses' `--period` and `--period-captures`;
//! `docs/reference/periods.md` describes it.

pub(crate) mod file;
pub(crate) mod parse;

use crate::ast::{Expr, Field, Operator};
use crate::datum::Datum;
use crate::field::OldForms;
use crate::glob::Glob;
use crate::parse::FilterError;

/// Periods, parents before their children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Periods {
    /// In the order in which they were defined.
    pub list: Vec<Period>,
    /// Old forms in the definitions.
    pub old_forms: OldForms,
}

/// A kind of period.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// Unique name.
    pub name: String,
    /// Index of the enclosing period: this one begins only while the parent is open.
    pub parent: Option<usize>,
    /// Selects event records that begin a period.
    pub begin: Condition,
    /// Selects event records that end the period.
    pub end: Condition,
    /// Values captured at the start.
    pub begin_captures: Vec<Capture>,
    /// Values captured at the end.
    pub end_captures: Vec<Capture>,
}

/// A captured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Unique among the captures of the period.
    pub name: String,
    /// The captured field.
    pub reference: Reference,
}

/// A field of one of the event records that a condition can name.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The event record.
    pub source: Source,
    /// The field in it.
    pub field: Field,
}

/// An event record that a condition can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The current event record.
    Event,
    /// `$begin`: the event record that began the period.
    Begin,
    /// `$parent`: the event record that began the parent.
    Parent,
}

/// A condition on an event record and those it can refer to.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A condition on the current event record alone.
    Event(Expr),
    /// Conjunction: every part holds.
    And(Vec<Condition>),
    /// Disjunction: at least one part holds.
    Or(Vec<Condition>),
    /// Negation.
    Not(Box<Condition>),
    /// A comparison of a field.
    Compare(Reference, Operator, Operand),
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// Another field.
    Reference(Reference),
    /// A value.
    Constant(Datum),
    /// A pattern.
    Pattern(Glob),
}

impl Periods {
    /// Adds a period: `NAME(PARENT) : BEGIN : END`. Without an end, the condition of the start also
    /// ends it. Name and parent are optional.
    ///
    /// # Errors
    /// The definition is malformed; the error contains the position.
    pub fn period(&mut self, text: &str) -> Result<(), FilterError> {
        self.period_from(text, 0)
    }

    /// Adds captures of a start and of an end: `NAME : A = FIELD, B = FIELD : C = FIELD`.
    ///
    /// # Errors
    /// The definition is malformed; the error contains the position.
    pub fn captures(&mut self, text: &str) -> Result<(), FilterError> {
        self.captures_from(text, 0)
    }

    /// Index of the period of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|period| period.name == name)
    }

    /// The period's name after the names of the enclosing periods: `outer/inner`.
    pub fn path(&self, index: usize) -> String {
        let mut names = Vec::new();
        let mut next = Some(index);
        while let Some(period) = next.and_then(|index| self.list.get(index)) {
            names.push(period.name.as_str());
            // Terminates: parents precede their children.
            next = period.parent;
        }
        names.reverse();
        names.join("/")
    }
}

impl Condition {
    /// Conjunction; conditions on the current event record become one expression.
    pub(crate) fn all(parts: Vec<Condition>) -> Condition {
        Condition::join(parts, Expr::And, Condition::And)
    }

    /// Disjunction; conditions on the current event record become one expression.
    pub(crate) fn any(parts: Vec<Condition>) -> Condition {
        Condition::join(parts, Expr::Or, Condition::Or)
    }

    fn join(
        parts: Vec<Condition>,
        exprs: fn(Vec<Expr>) -> Expr,
        both: fn(Vec<Condition>) -> Condition,
    ) -> Condition {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Condition::Event(expr) => own.push(expr),
                other => others.push(other),
            }
        }
        if others.is_empty() {
            return Condition::Event(exprs(own));
        }
        if !own.is_empty() {
            others.insert(0, Condition::Event(exprs(own)));
        }
        both(others)
    }

    /// Calls a function for each reference in a comparison of fields.
    pub fn references<'c>(&'c self, with: &mut dyn FnMut(&'c Reference)) {
        match self {
            Condition::Event(_) => {}
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.references(with));
            }
            Condition::Not(inner) => inner.references(with),
            Condition::Compare(reference, _, operand) => {
                with(reference);
                if let Operand::Reference(other) = operand {
                    with(other);
                }
            }
        }
    }

    /// Calls a function for each condition on the current event record alone.
    pub fn exprs<'c>(&'c self, with: &mut dyn FnMut(&'c Expr)) {
        match self {
            Condition::Event(expr) => with(expr),
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.exprs(with))
            }
            Condition::Not(inner) => inner.exprs(with),
            Condition::Compare(..) => {}
        }
    }

    /// Pairs of fields that must be equal for the condition to hold: of the current event record,
    /// and of the one that `source` selects.
    pub fn equalities(&self, source: Source) -> Vec<(&Field, &Field)> {
        match self {
            Condition::And(parts) => {
                let parts = parts.iter().flat_map(|part| part.equalities(source));
                parts.collect()
            }
            Condition::Compare(a, Operator::Equal, Operand::Reference(b)) => {
                let pair = match (a.source, b.source) {
                    (Source::Event, other) if other == source => (&a.field, &b.field),
                    (other, Source::Event) if other == source => (&b.field, &a.field),
                    _ => return Vec::new(),
                };
                vec![pair]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Period {
        let mut periods = Periods::default();
        periods.period("outer : $evt.$name == \"a\"").unwrap();
        periods
            .period(text)
            .unwrap_or_else(|error| panic!("{error}"));
        periods.list.pop().unwrap()
    }

    #[test]
    fn the_examples_of_lttng_analyses() {
        let switch = one(
            "switch : $evt.$name == \"sched_switch\" && $evt.next_tid != 0 : $evt.$name == \
             \"sched_switch\" && $evt.prev_tid == $begin.$evt.next_tid && $evt.cpu_id == $begin.$evt.cpu_id",
        );
        assert!(matches!(&switch.begin, Condition::Event(Expr::And(parts)) if parts.len() == 2));
        assert_eq!(switch.end.equalities(Source::Begin).len(), 2);
        let irq = one(
            "irq(outer) : $evt.$name =* \"irq_*_entry\" && $evt.cpu_id == $parent.$begin.$evt.cpu_id : \
             $evt.$name == \"irq_handler_exit\" && $evt.$pkt_ctx.cpu_id == $begin.$evt . cpu_id",
        );
        assert_eq!(irq.parent, Some(0));
        assert_eq!(irq.begin.equalities(Source::Parent).len(), 1);
        assert_eq!(irq.begin.equalities(Source::Begin).len(), 0);
        assert_eq!(irq.end.equalities(Source::Begin).len(), 1);
    }

    /// Both spellings have the same meaning.
    #[test]
    fn conditions_may_be_written_as_filters_are() {
        let pairs = [
            (
                "name == sched_switch && next_tid != 0",
                "$evt.$name == \"sched_switch\" && $evt.next_tid != 0",
            ),
            (
                "name =~ 'irq_*' || cpu < 2",
                "$evt.$name =* \"irq_*\" || $evt.$cpu < 2",
            ),
            ("payload.a.b ~ x*", "$evt.$payload.a.b =* \"x*\""),
            ("a == $begin.$evt.b", "$evt.a == $begin.$evt.b"),
            (
                "!(a == 1) : b == x : ",
                "!($evt.a == 1) : $evt.b == \"x\" : ",
            ),
        ];
        for (one, other) in pairs {
            let one = one.trim_end_matches(" : ");
            let other = other.trim_end_matches(" : ");
            let of = |text: &str| {
                let period = super::tests::one(&format!("p : {text}"));
                (period.begin, period.end)
            };
            assert_eq!(of(one), of(other), "{one}");
        }
        let named = one("p : sched_* && has(next_tid) : 'irq_*' || has($evt.irq)");
        let event = |pattern| Expr::Event(Glob::new(pattern));
        let has = |name: &str| {
            Expr::Has(Field::Path(
                crate::ast::Where::Anywhere,
                vec![name.to_owned()],
            ))
        };
        assert_eq!(
            named.begin,
            Condition::Event(Expr::And(vec![event("sched_*"), has("next_tid")]))
        );
        assert_eq!(
            named.end,
            Condition::Event(Expr::Or(vec![event("irq_*"), has("irq")]))
        );
        let not = one("p : $evt.x == 1 : $begin.$evt.x !~ 'a*'").end;
        assert!(
            matches!(
                not,
                Condition::Compare(_, Operator::MatchesNot, Operand::Pattern(_))
            ),
            "{not:?}"
        );
    }

    #[test]
    fn without_an_end_the_begin_ends() {
        let period = one("p : $evt.$name==\"s\" && $evt.a == $begin.$evt.a");
        assert_eq!(
            period.begin.equalities(Source::Event).len(),
            1,
            "{:?}",
            period.begin
        );
        assert_eq!(period.end.equalities(Source::Begin).len(), 1);
        assert_eq!(one(": $evt.x == 1 : $evt.x == +2").name, "period2");
    }

    #[test]
    fn fields_are_nested_and_indexed() {
        let period = one("p : $evt.$payload.a.b[2][0].c == 18446744073709551615");
        let Condition::Event(Expr::Compare(Field::Path(place, path), _, value)) = period.begin
        else {
            panic!("a comparison");
        };
        assert_eq!(place, crate::ast::Where::Payload);
        assert_eq!(path, ["a", "b", "2", "0", "c"]);
        assert_eq!(value, crate::ast::Value::Integer(u64::MAX.into()));
    }

    #[test]
    fn captures_are_of_begin_and_end() {
        let mut periods = Periods::default();
        periods.period("p : $evt.$name == \"a/b\"").unwrap();
        periods
            .captures("p : x = $evt.x, $evt.$name : y = $begin.$evt.y, $evt . $ctx . z")
            .unwrap();
        let names = |captures: &[Capture]| {
            captures
                .iter()
                .map(|one| one.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&periods.list[0].begin_captures), ["x", "$evt.$name"]);
        assert_eq!(names(&periods.list[0].end_captures), ["y", "$evt.$ctx.z"]);
        assert_eq!(
            periods.list[0].end_captures[0].reference.source,
            Source::Begin
        );
    }

    #[test]
    fn errors_have_their_place() {
        let cases = [
            ("p : $evt.x = 3", 11, "`==`"),
            ("p : $evt.x == ", 14, "expected"),
            (
                "p : $x == 3",
                4,
                "`$x` is undefined: the variables are $evt, $begin, $parent",
            ),
            (
                "p : $evnt.x == 3",
                4,
                "`$evnt` is undefined; did you mean '$evt'?",
            ),
            ("p : a == 1 : b == $begn.x", 18, "did you mean '$begin'?"),
            ("p : $evt == 3", 4, "expected a field after `$evt`"),
            ("p : x. == 3", 4, "not the name of a field"),
            ("p : tid == x", 11, "a whole number"),
            ("p : has($begin.$evt.x", 21, "`)`"),
            ("p : a =~ $evt.x", 9, "a pattern"),
            ("p : $evt.$pid == 3", 4, "undefined"),
            ("p : $evt.x == 3 $evt", 16, "or the end"),
            ("p(q) : $evt.x == 3", 2, "no period `q`"),
            ("outer : $evt.x == 3", 0, "already defined"),
            ("p : $parent.$begin.$evt.x == 1", 4, "no parent"),
            ("p(outer) : $parent.$evt.x == 1", 11, "after `$parent.`"),
            ("p : $evt.$name == 3", 18, "expected a name"),
            ("p : $evt.$name =* $evt.x", 18, "a pattern"),
            ("p : $evt.$cpu == \"x\"", 17, "a whole number"),
            ("p : $evt.x == 1z", 14, "not a number"),
            ("p : $evt.a[x] == 1", 4, "not the name of a field"),
            ("p $evt.x == 1", 2, "`:`"),
            ("p : ($evt.x == 1", 16, "`)`"),
            ("", 0, "`:`"),
        ];
        for (text, offset, message) in cases {
            let mut periods = Periods::default();
            periods.period("outer : $evt.$name == \"a\"").unwrap();
            let error = periods.period(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
        let mut periods = Periods::default();
        assert!(
            periods
                .period(&format!("p : {}", "(".repeat(100_000)))
                .is_err()
        );
        periods.period("p : $evt.x == 1").unwrap();
        for (text, offset) in [
            ("q : $evt.x", 0),
            ("p : a = $evt.x, a = $evt.y", 16),
            ("p : a b", 6),
        ] {
            assert_eq!(periods.captures(text).unwrap_err().offset, offset, "{text}");
        }
    }

    #[test]
    fn files_hold_several_over_lines() {
        let mut periods = Periods::default();
        let text = "# first\nperiod a : $evt.$name == \"x\"\n  # why\n  : $evt.$name == \"y\"\n\ncaptures a : k = \
                    $evt.k\nperiod b(a) : $evt.k == 1\n";
        periods.file(text).unwrap();
        assert_eq!(periods.list.len(), 2);
        assert_eq!(periods.path(1), "a/b");
        assert_eq!(periods.list[0].begin_captures.len(), 1);
        let error = periods
            .file("\nperiod c\n  : $evt.x ==\n  )\n")
            .unwrap_err();
        assert_eq!(error.place(), (4, 3), "{error}");
        assert!(error.to_string().ends_with("\n    )\n    ^"), "{error}");
        assert_eq!(periods.file("x\n").unwrap_err().place(), (1, 1));
    }

    /// Each prefix of a definition, alone and with any character inserted, yields a definition or
    /// an error with a position in the text.
    #[test]
    fn no_text_panics() {
        let whole = "p(outer) : !($evt.a.b[2] =* \"x*\") && $parent.$begin.$evt.$cpu >= -0x10 || $evt.é == 1.5 : $evt . \
                     $name == \"\\\"é\"";
        let captures = "outer : a = $evt.x, $evt.$ctx.y : b = $begin.$evt.$time";
        let mut texts: Vec<(String, bool)> = Vec::new();
        for (text, defines) in [(whole, true), (captures, false)] {
            for (at, _) in text.char_indices() {
                let (before, behind) = text.split_at(at);
                texts.push((before.to_owned(), defines));
                let strange = [
                    "", "(", ")", ":", "=", "\"", "\\", "$", ".", "[", "]", "9", "ü", "\n", "\0",
                    "&",
                ];
                texts
                    .extend(strange.map(|strange| (format!("{before}{strange}{behind}"), defines)));
            }
        }
        for (text, defines) in texts {
            let mut periods = Periods::default();
            periods.period("outer : $evt.$name == \"a\"").unwrap();
            let result = match defines {
                true => periods.period(&text),
                false => periods.captures(&text),
            };
            if let Err(error) = result {
                assert!(text.is_char_boundary(error.offset), "{text}: {error}");
                assert!(error.to_string().ends_with('^'), "{text}");
            }
            let _ = Periods::default().file(&format!("period {text}"));
        }
    }
}
