//! Expressions of the filter language in which names may stand for values of attributes.

use tracebraid_language::Datum;
use tracebraid_language::ast::{Expr, Field, Operator, Value, Where};
use tracebraid_language::glob::Glob;

use crate::user::definition::{Condition, Definition, Operand, Template};
use crate::user::template::Lets;

/// Splits an expression into conditions on the event record and on attributes; both must hold.
pub(crate) fn split(
    expr: Expr,
    definition: &mut Definition,
    lets: &Lets,
) -> (Option<Expr>, Option<Condition>) {
    let parts = match expr {
        Expr::And(parts) => parts,
        one => vec![one],
    };
    let (of_state, of_event): (Vec<Expr>, Vec<Expr>) =
        parts.into_iter().partition(|part| asks(part, lets));
    let conditions = of_state
        .iter()
        .map(|part| condition(part, definition, lets));
    let conditions: Vec<Condition> = conditions.collect();
    (
        (!of_event.is_empty()).then_some(Expr::And(of_event)),
        (!conditions.is_empty()).then_some(Condition::And(conditions)),
    )
}

fn let_of<'l>(field: &Field, lets: &'l Lets) -> Option<&'l (String, Template)> {
    match field {
        Field::Path(Where::Anywhere, path) => lets.iter().find(|(name, _)| *name == path.join(".")),
        _ => None,
    }
}

/// Whether any name in the expression stands for the value of an attribute.
fn asks(expr: &Expr, lets: &Lets) -> bool {
    match expr {
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(|part| asks(part, lets)),
        Expr::Not(inner) => asks(inner, lets),
        Expr::Event(_) => false,
        Expr::Compare(field, ..) | Expr::Has(field) => let_of(field, lets).is_some(),
    }
}

fn condition(expr: &Expr, definition: &mut Definition, lets: &Lets) -> Condition {
    let mut all = |parts: &[Expr]| -> Vec<Condition> {
        let parts = parts.iter().map(|part| condition(part, definition, lets));
        parts.collect()
    };
    match expr {
        Expr::And(parts) => Condition::And(all(parts)),
        Expr::Or(parts) => Condition::Or(all(parts)),
        Expr::Not(inner) => Condition::Not(Box::new(condition(inner, definition, lets))),
        Expr::Event(glob) => {
            Condition::Matches(Operand::Field(definition.field(Field::Name)), glob.clone())
        }
        Expr::Has(field) => Condition::Has(operand(field, definition, lets)),
        Expr::Compare(field, operator, value) => {
            let operand = operand(field, definition, lets);
            let glob = || Glob::new(&value.text());
            match operator {
                Operator::Matches => Condition::Matches(operand, glob()),
                Operator::MatchesNot => {
                    Condition::Not(Box::new(Condition::Matches(operand, glob())))
                }
                operator => Condition::Compare(operand, *operator, Operand::Constant(datum(value))),
            }
        }
    }
}

fn operand(field: &Field, definition: &mut Definition, lets: &Lets) -> Operand {
    match let_of(field, lets) {
        Some((_, path)) => Operand::State(path.clone()),
        None => Operand::Field(definition.field(field.clone())),
    }
}

fn datum(value: &Value) -> Datum {
    match value {
        Value::Integer(number) => Datum::Integer(*number),
        Value::Float(number, _) => Datum::float(*number),
        Value::Text(text) => Datum::text(text.as_bytes()),
    }
}
