//! Definitions of analyses, independent of the format of their files.

use tracebraid_language::ast::{Expr, Field, Operator};
use tracebraid_language::glob::Glob;
use tracebraid_language::{Datum, OldForms};

use crate::user::error::DefinitionError;
use crate::user::{rule_file, xml};

/// A user analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Name of the analysis.
    pub name: String,
    /// Source text of the definition.
    pub text: String,
    /// Deprecated forms in its expressions.
    pub old_forms: OldForms,
    /// Rules, in the order of the text.
    pub(crate) rules: Vec<Rule>,
    /// Fields that steps refer to, by index.
    pub(crate) fields: Vec<Field>,
}

/// Steps that matching event records cause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The condition on event records.
    pub(crate) when: Expr,
    /// Position in the text, in bytes.
    pub(crate) offset: usize,
    pub(crate) steps: Vec<RuleStep>,
}

/// A step of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RuleStep {
    /// Alternatives, by a condition.
    If {
        condition: Condition,
        then: Vec<RuleStep>,
        otherwise: Vec<RuleStep>,
    },
    /// Changes an attribute.
    Change { path: Template, deed: Deed },
}

/// A change of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// Sets a value.
    Set(Template),
    /// Adds a number.
    Add(Template),
    /// Removes the value.
    Clear,
    /// Pushes a value on a stack: attributes below this one, named 1, 2, …
    Push(Template),
    /// Removes the top of a stack.
    Pop,
    /// Removes all values of a stack.
    PopAll,
    /// Puts a value on the lowest free position of a stack, and remembers it by its key.
    Keep { key: Template, value: Template },
    /// Removes the value that was pushed with a key, which the path contains.
    Drop,
    /// Begins a segment: sets a value.
    Begin(Template),
    /// Ends a segment: removes the value, and counts the segment below the other path.
    End(Template),
}

/// A condition on values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Compare(Operand, Operator, Operand),
    Matches(Operand, Glob),
    Has(Operand),
}

/// A source of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Constant(Datum),
    /// A field of the event record, by index in `fields`.
    Field(usize),
    /// The value of the attribute with that path before the event record.
    State(Template),
    /// The top of a stack.
    Top(Template),
}

/// A sequence of texts and values. A template of a single value keeps the type of that value.
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
    /// providers are combined.
    ///
    /// # Errors
    /// The position and the description of the first error.
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

    /// The index of a field; adds the field if it is new.
    pub(crate) fn field(&mut self, field: Field) -> usize {
        let known = self.fields.iter().position(|other| *other == field);
        known.unwrap_or_else(|| {
            self.fields.push(field);
            self.fields.len() - 1
        })
    }
}

impl Template {
    /// A template of a text.
    pub(crate) fn text(text: &str) -> Template {
        Template(vec![Part::Text(text.to_owned())])
    }

    /// A template of a value.
    pub(crate) fn of(operand: Operand) -> Template {
        Template(vec![Part::Of(operand)])
    }

    /// Calls `to` for each operand.
    pub(crate) fn operands(&self, to: &mut impl FnMut(&Operand)) {
        for part in &self.0 {
            if let Part::Of(operand) = part {
                operand.each(to);
            }
        }
    }
}

impl Operand {
    /// Calls `to` for the operand and those in its path.
    pub(crate) fn each(&self, to: &mut impl FnMut(&Operand)) {
        to(self);
        if let Operand::State(path) | Operand::Top(path) = self {
            path.operands(to);
        }
    }
}

impl Condition {
    /// Calls `to` for each operand.
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
    /// Calls `to` for each operand.
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
