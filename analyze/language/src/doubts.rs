//! Parts of a valid expression that select nothing in the given traces: unknown names of events and
//! fields, and comparisons that hold for no value.

use std::collections::BTreeSet;
use std::fmt;

use tracebraid_ctf::layout::node::NodeKind;
use tracebraid_ctf::layout::tree::{Part, Tree};
use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::ast::{Expr, Field, Operator, Value, Where};
use crate::compile::{Compiler, Filter};
use crate::glob::Glob;
use crate::near::did_you_mean;

/// Maximum number of names of fields that are compared with an unknown name.
const MOST_FIELDS: usize = 10_000;

/// Maximum nesting of structures from which suggestions come.
const DEEPEST: usize = 4;

/// Maximum number of labels of an enumeration that a message lists.
const MOST_LABELS: usize = 30;

/// Maximum number of event classes named in a message.
const MOST_SHOWN: usize = 3;

/// A part of an expression that is probably a mistake. Displayed as a sentence without a full stop,
/// with the nearest names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// No event class has a matching name.
    Event {
        /// The pattern.
        pattern: String,
        /// Suggestion, or empty.
        instead: String,
    },
    /// No event class has the field, or none of the classes that the expression selects by name.
    Field {
        /// The field, as it was written.
        field: String,
        /// Names of the selected event classes; empty for all.
        classes: Vec<String>,
        /// Suggestion, or empty.
        instead: String,
    },
    /// A comparison holds for no value of its field.
    Comparison {
        /// The comparison, as it was written.
        comparison: String,
        /// The reason, with a suggestion.
        why: String,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Event { pattern, instead } => {
                write!(f, "no event class matches '{pattern}'{instead}")
            }
            Doubt::Field {
                field,
                classes,
                instead,
            } => match classes.as_slice() {
                [] => write!(f, "no event class has a field '{field}'{instead}"),
                [only] => write!(f, "'{only}' has no field '{field}'{instead}"),
                [first, .., last] if classes.len() <= MOST_SHOWN => {
                    let between: String = classes[1..classes.len() - 1]
                        .iter()
                        .map(|name| format!(", '{name}'"))
                        .collect();
                    write!(
                        f,
                        "neither '{first}'{between} nor '{last}' has a field '{field}'{instead}"
                    )
                }
                [first, ..] => {
                    let count = classes.len();
                    write!(
                        f,
                        "none of {count} event classes ('{first}', ...) has a field '{field}'{instead}"
                    )
                }
            },
            Doubt::Comparison { comparison, why } => {
                write!(f, "'{comparison}' never holds: {why}")
            }
        }
    }
}

/// Whether all of several alternative event names must exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alternatives {
    /// All: the user wrote the names for these traces.
    Each,
    /// At least one: the others are names of the same event in other tracers.
    OneOf,
}

impl<'t> Filter<'t> {
    /// Probable mistakes in the expression, in its order, without repetitions.
    pub fn doubts(&self, alternatives: Alternatives) -> Vec<Doubt> {
        let mut search = Search {
            all: self.compilers().collect(),
            alternatives,
            found: Vec::new(),
        };
        let everything: Vec<usize> = (0..search.all.len()).collect();
        search.walk(&self.expr, &everything);
        search.found
    }

    fn compilers(&self) -> impl Iterator<Item = Compiler<'t>> {
        let streams = |trace: &'t Trace| {
            trace
                .layout
                .streams
                .iter()
                .map(move |stream| (trace, stream))
        };
        self.traces
            .iter()
            .flat_map(streams)
            .flat_map(|(trace, stream)| {
                (0..stream.events.len()).map(move |event| Compiler {
                    trace,
                    stream,
                    event,
                })
            })
    }
}

/// Probable mistakes in several expressions, without repetitions. Times in the expressions are
/// nanoseconds.
pub fn of(parts: &[Expr], set: &TraceSet, alternatives: Alternatives) -> Vec<Doubt> {
    let time = |text: &str| text.parse().map_err(|_| text.to_owned());
    let mut doubts = Vec::new();
    for part in parts {
        let Ok(filter) = Filter::new(part.clone(), set, &time) else {
            continue;
        };
        for doubt in filter.doubts(alternatives) {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
    }
    doubts
}

struct Search<'t> {
    all: Vec<Compiler<'t>>,
    alternatives: Alternatives,
    found: Vec<Doubt>,
}

impl<'t> Search<'t> {
    /// Examines an expression that applies to `classes`, indices of event classes.
    fn walk(&mut self, expr: &Expr, classes: &[usize]) {
        match expr {
            Expr::And(_) => {
                let mut parts = Vec::new();
                conjunction(expr, &mut parts);
                let mut chosen = classes.to_vec();
                for part in parts.iter().filter(|part| is_of_names(part)) {
                    chosen.retain(|&class| {
                        self.compiler(class)
                            .is_some_and(|class| class.may_hold(part))
                    });
                }
                // Names that exclude each other select no class, and so no fields to check against.
                let chosen = if chosen.is_empty() { classes } else { &chosen };
                parts.into_iter().for_each(|part| self.walk(part, chosen));
            }
            Expr::Or(parts) => {
                let is_known = |part: &Expr| match pattern(part) {
                    Some(glob) => self.matches_any(&glob),
                    None => true,
                };
                let excused =
                    self.alternatives == Alternatives::OneOf && parts.iter().any(is_known);
                let parts = parts
                    .iter()
                    .filter(|part| !(excused && pattern(part).is_some()));
                parts.for_each(|part| self.walk(part, classes));
            }
            Expr::Not(inner) => self.walk(inner, classes),
            Expr::Event(_) | Expr::Compare(Field::Name, ..) => self.event(expr),
            Expr::Compare(field @ Field::Path(place, path), operator, value) => {
                if !self.field(field, (*place, path), classes) {
                    self.comparison((field, path), *operator, value);
                }
            }
            Expr::Has(field @ Field::Path(place, path)) => {
                self.field(field, (*place, path), classes);
            }
            Expr::Compare(..) | Expr::Has(_) => {}
        }
    }

    fn compiler(&self, class: usize) -> Option<Compiler<'t>> {
        self.all.get(class).copied()
    }

    fn matches_any(&self, glob: &Glob) -> bool {
        self.all
            .iter()
            .any(|class| glob.matches(class.name().as_bytes()))
    }

    /// Reports a name that no event class matches.
    fn event(&mut self, expr: &Expr) {
        let Some(glob) = pattern(expr).filter(|glob| !self.matches_any(glob)) else {
            return;
        };
        let names: BTreeSet<&str> = self.all.iter().map(|class| class.name()).collect();
        self.add(Doubt::Event {
            pattern: glob.text().to_owned(),
            instead: did_you_mean(&glob, names),
        });
    }

    /// Reports a field that no class of `classes` has; true if reported.
    fn field(
        &mut self,
        field: &Field,
        (place, path): (Where, &[String]),
        classes: &[usize],
    ) -> bool {
        let has = |class: &usize| self.compiler(*class).is_some_and(|class| class.has(field));
        if classes.iter().any(has) {
            return false;
        }
        let is_known = (0..self.all.len()).any(|class| has(&class));
        let mut names = BTreeSet::new();
        for class in classes.iter().filter_map(|&class| self.compiler(class)) {
            fields(class, place, &mut names);
        }
        let asked = Glob::literal(&path.join("."));
        let classes: BTreeSet<&str> = match is_known || classes.len() < self.all.len() {
            true => classes
                .iter()
                .filter_map(|&class| self.compiler(class))
                .map(|class| class.name())
                .collect(),
            false => BTreeSet::new(),
        };
        self.add(Doubt::Field {
            field: asked.text().to_owned(),
            classes: classes.into_iter().map(str::to_owned).collect(),
            instead: did_you_mean(&asked, names.iter().map(String::as_str)),
        });
        true
    }

    /// Reports a comparison that holds for no value of the fields of that name, in any trace.
    fn comparison(
        &mut self,
        (field, path): (&Field, &[String]),
        operator: Operator,
        value: &Value,
    ) {
        let mut outcomes = self.all.iter().filter(|class| class.has(field));
        if outcomes.any(|class| class.may_compare(field, operator, value)) {
            return;
        }
        let (path, sign, text) = (path.join("."), operator.sign(), value.text());
        self.add(Doubt::Comparison {
            comparison: format!("{path} {sign} {text}"),
            why: self.why_never(field, operator, &text),
        });
    }

    /// Why a comparison holds for no value. For enumerations, with the nearest labels or all.
    fn why_never(&self, field: &Field, operator: Operator, text: &str) -> String {
        let labels: BTreeSet<String> = self
            .all
            .iter()
            .flat_map(|class| class.labels(field))
            .collect();
        if labels.is_empty() || !matches!(operator, Operator::Equal | Operator::Matches) {
            return "no value of the field can be compared with this one".to_owned();
        }
        let instead = did_you_mean(&Glob::new(text), labels.iter().map(String::as_str));
        let all = match instead.is_empty() && labels.len() <= MOST_LABELS {
            true => format!(
                "; its labels are {}",
                labels.into_iter().collect::<Vec<_>>().join(", ")
            ),
            false => instead,
        };
        format!("the field has no such value{all}")
    }

    fn add(&mut self, doubt: Doubt) {
        if !self.found.contains(&doubt) {
            self.found.push(doubt);
        }
    }
}

/// The pattern that an expression compares the event name with.
fn pattern(expr: &Expr) -> Option<Glob> {
    match expr {
        Expr::Event(glob) => Some(glob.clone()),
        Expr::Compare(Field::Name, Operator::Equal, value) => Some(Glob::literal(&value.text())),
        Expr::Compare(Field::Name, Operator::Matches, value) => Some(Glob::new(&value.text())),
        _ => None,
    }
}

/// The parts of a conjunction, with those of nested conjunctions.
fn conjunction<'e>(expr: &'e Expr, to: &mut Vec<&'e Expr>) {
    match expr {
        Expr::And(parts) => parts.iter().for_each(|part| conjunction(part, to)),
        other => to.push(other),
    }
}

/// Whether an expression depends on the event name alone.
fn is_of_names(expr: &Expr) -> bool {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().all(is_of_names),
        Expr::Not(inner) => is_of_names(inner),
        Expr::Event(_) | Expr::Compare(Field::Name, ..) => true,
        Expr::Compare(..) | Expr::Has(_) => false,
    }
}

/// Adds the names of the fields that an event class has in the scopes that `place` lists.
fn fields(class: Compiler<'_>, place: Where, to: &mut BTreeSet<String>) {
    let mut add = |tree: &Tree| {
        if let Some(root) = tree.root() {
            members(root, "", DEEPEST, to);
        }
    };
    let Some(event) = class.stream.events.get(class.event) else {
        return;
    };
    if matches!(place, Where::Anywhere | Where::Payload) {
        add(&event.payload);
    }
    if matches!(
        place,
        Where::Anywhere | Where::Context | Where::EventContext
    ) {
        add(&event.specific_context);
    }
    if matches!(
        place,
        Where::Anywhere | Where::Context | Where::StreamContext
    ) {
        add(&class.stream.common_context);
    }
    if matches!(place, Where::Anywhere | Where::Packet) {
        add(&class.stream.packet_context);
    }
}

fn members(part: Part<'_>, before: &str, deepest: usize, to: &mut BTreeSet<String>) {
    if !matches!(part.kind, NodeKind::Struct(_)) {
        return;
    }
    for member in part.parts() {
        if to.len() >= MOST_FIELDS {
            return;
        }
        let name = format!("{before}{}", member.name);
        if deepest > 0 {
            members(member, &format!("{name}."), deepest - 1, to);
        }
        to.insert(name);
    }
}
