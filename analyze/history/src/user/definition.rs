//! Definitions of analyses, whatever they were written in.

use tracebraid_language::ast::{Expr, Field, Operator};
use tracebraid_language::glob::Glob;
use tracebraid_language::{Datum, OldForms};

use crate::user::error::DefinitionError;
use crate::user::{rule_file, xml};

/// An analysis that a user defines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its source text.
    pub text: String,
    /// Old forms in its expressions.
    pub old_forms: OldForms,
    /// Rules, in the order of the text.
    pub(crate) rules: Vec<Rule>,
    /// Fields that steps name; they name them by their places here.
    pub(crate) fields: Vec<Field>,
}

/// Steps that event records of a kind cause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// Which of them.
    pub(crate) when: Expr,
    /// Where it stands in the text, in bytes.
    pub(crate) offset: usize,
    pub(crate) steps: Vec<RuleStep>,
}

/// A part of what an event record does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RuleStep {
    /// If something holds, or does not.
    If {
        condition: Condition,
        then: Vec<RuleStep>,
        otherwise: Vec<RuleStep>,
    },
    /// An attribute changes.
    Change { path: Template, deed: Deed },
}

/// How an attribute changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// It takes a value.
    Set(Template),
    /// A number is added to it.
    Add(Template),
    /// It has no value any longer.
    Clear,
    /// A value is put on a stack: attributes below this one, which are called 1, 2, ...
    Push(Template),
    /// The last one is taken off.
    Pop,
    /// All are taken off.
    PopAll,
    /// A value is put on the lowest free place of a stack, and remembered by its key.
    Keep { key: Template, value: Template },
    /// The value that was pushed with that key, which stands in place of the path, is taken off.
    Drop,
    /// A segment begins: it takes a value.
    Begin(Template),
    /// It ends: it has no value any longer; below the other path it is counted.
    End(Template),
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Operand, Operator, Operand),
    Matches(Operand, Glob),
    Has(Operand),
}

/// Something with a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Constant(Datum),
    /// A field of the event record, by its place.
    Field(usize),
    /// The value of the attribute with that path before the event record.
    State(Template),
    /// The last value of a stack.
    Top(Template),
}

/// Texts and values one behind the other. As a value, a single one keeps its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Template(pub(crate) Vec<Part>);

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Of(Operand),
}

impl Definition {
    /// Reads a definition: TOML, or XML of Trace Compass (which begins with `<`), all whose state
    /// providers become one.
    ///
    /// # Errors
    /// With the place of what cannot be understood.
    pub fn parse(text: &str) -> Result<Definition, DefinitionError> {
        match text
            .trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with('<')
        {
            true => xml::parse(text),
            false => rule_file::parse(text),
        }
    }

    /// The place of a field among those that are named.
    pub(crate) fn field(&mut self, field: Field) -> usize {
        let known = self.fields.iter().position(|other| *other == field);
        known.unwrap_or_else(|| {
            self.fields.push(field);
            self.fields.len() - 1
        })
    }
}

impl Template {
    /// A text alone.
    pub(crate) fn text(text: &str) -> Template {
        Template(vec![Part::Text(text.to_owned())])
    }

    /// A value alone.
    pub(crate) fn of(operand: Operand) -> Template {
        Template(vec![Part::Of(operand)])
    }

    /// Calls for each operand.
    pub(crate) fn operands(&self, to: &mut impl FnMut(&Operand)) {
        for part in &self.0 {
            if let Part::Of(operand) = part {
                operand.each(to);
            }
        }
    }
}

impl Operand {
    /// Calls for it, and those that its path is made of.
    pub(crate) fn each(&self, to: &mut impl FnMut(&Operand)) {
        to(self);
        if let Operand::State(path) | Operand::Top(path) = self {
            path.operands(to);
        }
    }
}

impl Condition {
    /// Calls for each operand.
    pub(crate) fn operands(&self, to: &mut impl FnMut(&Operand)) {
        match self {
            Condition::And(parts) | Condition::Or(parts) => {
                parts.iter().for_each(|part| part.operands(to))
            }
            Condition::Not(inner) => inner.operands(to),
            Condition::Compare(left, _, right) => {
                left.each(to);
                right.each(to);
            }
            Condition::Matches(operand, _) | Condition::Has(operand) => operand.each(to),
        }
    }
}

impl RuleStep {
    /// Calls for each operand.
    pub(crate) fn operands(&self, to: &mut impl FnMut(&Operand)) {
        match self {
            RuleStep::If {
                condition,
                then,
                otherwise,
            } => {
                condition.operands(to);
                then.iter()
                    .chain(otherwise)
                    .for_each(|step| step.operands(to));
            }
            RuleStep::Change { path, deed } => {
                path.operands(to);
                match deed {
                    Deed::Set(value)
                    | Deed::Add(value)
                    | Deed::Push(value)
                    | Deed::Begin(value)
                    | Deed::End(value) => value.operands(to),
                    Deed::Keep { key, value } => {
                        key.operands(to);
                        value.operands(to);
                    }
                    Deed::Clear | Deed::Pop | Deed::PopAll | Deed::Drop => {}
                }
            }
        }
    }
}
