//! Definitions in the XML of Trace Compass's data-driven analyses: state providers with event
//! handlers.
//!
//! Facts about the format are from its documentation (Trace Compass User Guide, "Data driven
//! analysis"). Patterns and their automata, mapping groups and scripts are refused; views are
//! ignored.

use std::collections::HashMap;

use roxmltree::{Document, Node};
use tracebraid_language::Datum;
use tracebraid_language::ast::{Expr, Field, Operator, Where};
use tracebraid_language::glob::Glob;

use crate::user::definition::{
    Condition, Deed, Definition, Operand, Part, Rule, RuleStep, Template,
};
use crate::user::error::DefinitionError;
use crate::user::template;

/// Message for an automaton.
const PATTERN: &str = "patterns with automata (fsm) are not supported, only stateProvider with definedValue, location and \
                       eventHandler; express the automaton as state changes";

/// Nesting deeper than this is refused.
const DEPTH: usize = 100;

/// Parses a definition.
pub(super) fn parse(text: &str) -> Result<Definition, DefinitionError> {
    let document = Document::parse(text).map_err(|error| {
        let pos = error.pos();
        DefinitionError {
            line: pos.row as usize,
            column: (pos.col as usize).max(1),
            message: error.to_string(),
            text: text
                .lines()
                .nth((pos.row as usize).saturating_sub(1))
                .unwrap_or_default()
                .to_owned(),
        }
    })?;
    let mut reader = Reader {
        text,
        definition: Definition {
            text: text.to_owned(),
            ..Definition::default()
        },
        values: HashMap::new(),
        locations: HashMap::new(),
    };
    let root = document.root_element();
    if !is(root, "tmfxml") {
        return Err(reader.unknown(root, "a file", "tmfxml"));
    }
    for node in elements(root) {
        match node.tag_name().name() {
            "stateProvider" => reader.provider(node)?,
            "pattern" => return Err(reader.error(node, PATTERN)),
            // Views only affect display.
            name if name.ends_with("View") => {}
            _ => {
                return Err(reader.unknown(node, "tmfxml", "stateProvider (views are ignored)"));
            }
        }
    }
    if reader.definition.rules.is_empty() {
        let message =
            "the definition has no stateProvider with an eventHandler, so nothing would happen";
        return Err(DefinitionError::at(text, 0, message));
    }
    Ok(reader.definition)
}

struct Reader<'t> {
    text: &'t str,
    definition: Definition,
    values: HashMap<String, String>,
    locations: HashMap<String, Template>,
}

type Read<T> = Result<T, DefinitionError>;

fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.has_tag_name(name)
}

impl Reader<'_> {
    fn error(&self, node: Node<'_, '_>, message: impl Into<String>) -> DefinitionError {
        DefinitionError::at(self.text, node.range().start, message)
    }

    fn unknown(&self, node: Node<'_, '_>, within: &str, accepted: &str) -> DefinitionError {
        let name = node.tag_name().name();
        self.error(
            node,
            format!("`{name}` is not supported within {within}, only {accepted}"),
        )
    }

    /// Refuses child elements other than the accepted ones.
    fn only(&self, node: Node<'_, '_>, accepted: &[&str]) -> Read<()> {
        let other = elements(node).find(|part| !accepted.contains(&part.tag_name().name()));
        match other {
            None => Ok(()),
            Some(other) => {
                let within = format!("`{}`", node.tag_name().name());
                Err(self.unknown(other, &within, &accepted.join(", ")))
            }
        }
    }

    fn need<'a>(&self, node: Node<'a, '_>, name: &str) -> Read<&'a str> {
        let missing = || self.error(node, format!("`{}` needs `{name}`", node.tag_name().name()));
        node.attribute(name).ok_or_else(missing)
    }

    /// Replaces `$NAME` by the defined value of that name.
    fn defined(&self, node: Node<'_, '_>, text: &str) -> Read<String> {
        match text.strip_prefix('$') {
            None => Ok(text.to_owned()),
            Some(name) => {
                let value = self.values.get(name).cloned();
                value.ok_or_else(|| {
                    self.error(node, format!("there is no definedValue named {name}"))
                })
            }
        }
    }

    fn provider(&mut self, provider: Node<'_, '_>) -> Read<()> {
        if self.definition.name.is_empty() {
            self.definition.name = provider.attribute("id").unwrap_or("user").to_owned();
        }
        for node in elements(provider) {
            match node.tag_name().name() {
                "head" => {}
                "definedValue" => {
                    let name = self.need(node, "name")?.to_owned();
                    self.values
                        .insert(name, self.need(node, "value")?.to_owned());
                }
                "location" => {
                    self.only(node, &["stateAttribute"])?;
                    let path = self.path(node, 0)?.0;
                    self.locations
                        .insert(self.need(node, "id")?.to_owned(), path);
                }
                "eventHandler" => self.handler(node)?,
                _ => {
                    let accepted = "head, definedValue, location, eventHandler";
                    return Err(self.unknown(node, "a stateProvider", accepted));
                }
            }
        }
        Ok(())
    }

    fn handler(&mut self, handler: Node<'_, '_>) -> Read<()> {
        let name = self.need(handler, "eventName")?;
        let mut steps = Vec::new();
        for node in elements(handler) {
            match node.tag_name().name() {
                "stateChange" => self.change(node, &mut steps)?,
                _ => return Err(self.unknown(node, "an eventHandler", "stateChange")),
            }
        }
        self.definition.rules.push(Rule {
            when: Expr::And(vec![Expr::Event(Glob::new(name))]),
            offset: handler.range().start,
            steps,
        });
        Ok(())
    }

    /// A state change, with or without a condition.
    fn change(&mut self, change: Node<'_, '_>, steps: &mut Vec<RuleStep>) -> Read<()> {
        let Some(condition) = elements(change).find(|node| is(*node, "if")) else {
            let own = elements(change)
                .find(|node| is(*node, "then"))
                .unwrap_or(change);
            steps.push(self.deed(own)?);
            return Ok(());
        };
        let condition = self.all(condition, 0)?;
        let (mut then, mut otherwise) = (Vec::new(), Vec::new());
        for node in elements(change) {
            match node.tag_name().name() {
                "if" => {}
                "then" => then.push(self.deed(node)?),
                "else" => otherwise.push(self.deed(node)?),
                _ => {
                    let within = "a stateChange with a condition";
                    return Err(self.unknown(node, within, "if, then, else"));
                }
            }
        }
        steps.push(RuleStep::If {
            condition,
            then,
            otherwise,
        });
        Ok(())
    }

    /// The conjunction of all conditions in an element.
    fn all(&mut self, node: Node<'_, '_>, depth: usize) -> Read<Condition> {
        Ok(Condition::And(self.conditions(node, depth)?))
    }

    fn conditions(&mut self, node: Node<'_, '_>, depth: usize) -> Read<Vec<Condition>> {
        let mut conditions = Vec::new();
        for part in elements(node) {
            conditions.push(self.condition(part, depth + 1)?);
        }
        match conditions.is_empty() {
            true => Err(self.error(node, "a condition is missing here")),
            false => Ok(conditions),
        }
    }

    fn condition(&mut self, node: Node<'_, '_>, depth: usize) -> Read<Condition> {
        if depth > DEPTH {
            return Err(self.error(node, "the element is nested too deeply"));
        }
        match node.tag_name().name() {
            "and" => self.all(node, depth),
            "or" => Ok(Condition::Or(self.conditions(node, depth)?)),
            "not" => Ok(Condition::Not(Box::new(self.all(node, depth)?))),
            "condition" => self.comparison(node),
            _ => Err(self.unknown(node, "a condition", "and, or, not, condition")),
        }
    }

    /// A comparison of an attribute or a field with a value, or of two values.
    fn comparison(&mut self, node: Node<'_, '_>) -> Read<Condition> {
        self.only(node, &["field", "stateAttribute", "stateValue"])?;
        let operator = match node.attribute("operator").unwrap_or("eq") {
            "eq" => Operator::Equal,
            "ne" => Operator::NotEqual,
            "ge" => Operator::GreaterOrEqual,
            "gt" => Operator::Greater,
            "le" => Operator::LessOrEqual,
            "lt" => Operator::Less,
            other => {
                let message =
                    format!("there is no operator `{other}`, only eq, ne, ge, gt, le, lt");
                return Err(self.error(node, message));
            }
        };
        let mut values = Vec::new();
        if let Some(named) = elements(node).find(|node| is(*node, "field")) {
            let field = field_of(self.need(named, "name")?);
            values.push(Some(Operand::Field(self.definition.field(field))));
        }
        let (path, at) = self.path(node, 0)?;
        if at {
            values.push(Some(Operand::State(path)));
        }
        for value in elements(node).filter(|node| is(*node, "stateValue")) {
            values.push(self.value(value)?);
        }
        let [left, right] = <[Option<Operand>; 2]>::try_from(values).map_err(|_| {
            self.error(
                node,
                "a condition compares stateAttributes or a field with a stateValue",
            )
        })?;
        match (left, right) {
            (Some(left), Some(right)) => Ok(Condition::Compare(left, operator, right)),
            // A comparison with null tests whether there is a value.
            (Some(one), None) | (None, Some(one)) => {
                let has = Condition::Has(one);
                Ok(match operator {
                    Operator::NotEqual => has,
                    Operator::Equal => Condition::Not(Box::new(has)),
                    _ => {
                        return Err(self.error(node, "null has no order; compare it with eq or ne"));
                    }
                })
            }
            (None, None) => Err(self.error(node, "both sides of the comparison are null")),
        }
    }

    /// The path of the attributes that are children of an element, and whether there are any.
    fn path(&mut self, node: Node<'_, '_>, depth: usize) -> Read<(Template, bool)> {
        if depth > DEPTH {
            return Err(self.error(node, "the element is nested too deeply"));
        }
        let mut parts: Vec<Part> = Vec::new();
        for attribute in elements(node).filter(|node| is(*node, "stateAttribute")) {
            let more = self.attribute(attribute, depth)?;
            if !parts.is_empty() && !more.is_empty() {
                parts.push(Part::Text("/".to_owned()));
            }
            parts.extend(more);
        }
        let is_there = !parts.is_empty();
        Ok((Template(parts), is_there))
    }

    fn attribute(&mut self, node: Node<'_, '_>, depth: usize) -> Read<Vec<Part>> {
        let value = node.attribute("value").unwrap_or_default();
        Ok(match self.need(node, "type")? {
            "constant" => vec![Part::Text(self.defined(node, value)?)],
            "eventField" => vec![Part::Of(Operand::Field(
                self.definition.field(field_of(value)),
            ))],
            "eventName" => vec![Part::Of(Operand::Field(self.definition.field(Field::Name)))],
            "query" => vec![Part::Of(Operand::State(self.path(node, depth + 1)?.0))],
            "location" => {
                let known = self.locations.get(value).cloned();
                known
                    .ok_or_else(|| self.error(node, format!("there is no location named {value}")))?
                    .0
            }
            "null" => Vec::new(),
            other => {
                return Err(self.error(
                    node,
                    format!(
                        "attributes of type `{other}` are not supported, only constant, eventField, eventName, query, location, null"
                    ),
                ));
            }
        })
    }

    /// A value; `None` for null.
    fn value(&mut self, node: Node<'_, '_>) -> Read<Option<Operand>> {
        for refused in ["mappingGroup", "forcedType", "update"] {
            if node.has_attribute(refused) {
                return Err(self.error(node, format!("`{refused}` is not supported")));
            }
        }
        let value = node.attribute("value").unwrap_or_default();
        Ok(Some(match self.need(node, "type")? {
            kind @ ("int" | "long") => {
                let text = self.defined(node, value)?;
                let number = text.parse::<i64>();
                let number = number.map_err(|_| {
                    self.error(node, format!("`{text}` is not a number of type {kind}"))
                })?;
                Operand::Constant(Datum::Integer(number.into()))
            }
            "string" => Operand::Constant(Datum::text(self.defined(node, value)?.as_bytes())),
            "eventField" => Operand::Field(self.definition.field(field_of(value))),
            "eventName" => Operand::Field(self.definition.field(Field::Name)),
            "query" if node.attribute("stack") == Some("peek") => {
                Operand::Top(self.path(node, 0)?.0)
            }
            "query" => Operand::State(self.path(node, 0)?.0),
            "null" | "delete" => return Ok(None),
            other => {
                return Err(self.error(
                    node,
                    format!(
                        "values of type `{other}` are not supported, only int, long, string, null, delete, eventField, eventName, query"
                    ),
                ));
            }
        }))
    }

    /// The change that the attributes and the value in an element describe.
    fn deed(&mut self, node: Node<'_, '_>) -> Read<RuleStep> {
        let known = |part: &Node<'_, '_>| is(*part, "stateAttribute") || is(*part, "stateValue");
        if let Some(other) = elements(node).find(|part| !known(part)) {
            return Err(self.unknown(
                other,
                "a stateChange",
                "stateAttribute, stateValue, or if, then, else",
            ));
        }
        let (path, is_there) = self.path(node, 0)?;
        let mut values = elements(node).filter(|node| is(*node, "stateValue"));
        let (true, Some(value), None) = (is_there, values.next(), values.next()) else {
            return Err(self.error(node, "a change needs stateAttributes and one stateValue"));
        };
        let deed = match value.attribute("stack") {
            Some("pop") => Deed::Pop,
            Some("popAll") => Deed::PopAll,
            stack => {
                let new = self.value(value)?.map(Template::of);
                match (stack, new, value.attribute("increment")) {
                    (Some("push"), Some(new), _) => Deed::Push(new),
                    (Some("push"), None, _) => {
                        return Err(self.error(value, "null cannot be pushed"));
                    }
                    (Some(other), ..) if other != "peek" => {
                        let message = format!(
                            "there is no stack operation `{other}`, only push, pop, popAll, peek"
                        );
                        return Err(self.error(value, message));
                    }
                    (_, Some(new), Some("true")) => Deed::Add(new),
                    (_, Some(new), _) => Deed::Set(new),
                    (_, None, _) => Deed::Clear,
                }
            }
        };
        Ok(RuleStep::Change { path, deed })
    }
}

/// The field with that name: `cpu`, `timestamp`, contexts as `context._NAME`, or members separated
/// by dots.
fn field_of(name: &str) -> Field {
    match name {
        "cpu" => Field::Cpu,
        "timestamp" => Field::Time,
        "hostname" => Field::Environment("hostname".to_owned()),
        _ => match name.strip_prefix("context._") {
            Some(context) => Field::Path(Where::Context, vec![context.to_owned()]),
            None => template::member(name),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"<tmfxml><stateProvider id="mine" version="0">
<definedValue name="BUSY" value="1"/>
<location id="Current"><stateAttribute type="constant" value="CPUs"/>
<stateAttribute type="eventField" value="cpu"/></location>
"#;

    fn whole(changes: &str) -> String {
        format!(
            "{HEAD}<eventHandler eventName=\"a_*\">{changes}</eventHandler></stateProvider></tmfxml>"
        )
    }

    #[test]
    fn state_changes_are_steps() {
        let text = whole(
            r#"<stateChange>
<if><not><condition operator="ge"><field name="n"/><stateValue type="long" value="$BUSY"/></condition></not></if>
<then><stateAttribute type="location" value="Current"/><stateAttribute type="constant" value="x"/>
<stateValue type="null"/></then>
<else><stateAttribute type="query"><stateAttribute type="constant" value="q"/></stateAttribute>
<stateValue type="int" value="2" increment="true"/></else>
</stateChange>
<stateChange><stateAttribute type="constant" value="calls"/><stateValue type="eventField" value="f" stack="push"/></stateChange>"#,
        );
        let definition = parse(&text).unwrap();
        assert_eq!(definition.name, "mine");
        let [
            If {
                then, otherwise, ..
            },
            Change { path, deed },
        ] = &definition.rules[0].steps[..]
        else {
            panic!("{definition:?}");
        };
        use RuleStep::{Change, If};
        let current = vec![
            Part::Text("CPUs".to_owned()),
            Part::Text("/".to_owned()),
            Part::Of(Operand::Field(0)),
            Part::Text("/".to_owned()),
            Part::Text("x".to_owned()),
        ];
        let expected = Change {
            path: Template(current),
            deed: Deed::Clear,
        };
        assert_eq!(then[..], [expected]);
        assert!(matches!(
            &otherwise[..],
            [Change {
                deed: Deed::Add(_),
                ..
            }]
        ));
        assert_eq!(*path, Template::text("calls"));
        assert!(matches!(deed, Deed::Push(_)));
        assert_eq!(definition.fields[0], Field::Cpu);
    }

    #[test]
    fn what_is_not_read_is_named_with_its_place() {
        let cases = [
            ("<stateChange><then/></stateChange>", (5, 44), "stateValue"),
            ("<action/>", (5, 31), "`action` is not supported"),
            (
                "<stateChange><stateAttribute type=\"self\"/></stateChange>",
                (5, 44),
                "`self`",
            ),
            (
                "<stateChange><stateAttribute type=\"constant\" value=\"$NO\"/></stateChange>",
                (5, 44),
                "NO",
            ),
            (
                "<stateChange><stateAttribute type=\"constant\" value=\"a\"/><stateValue type=\"script\"/></stateChange>",
                (5, 87),
                "only int, long",
            ),
            (
                "<stateChange><stateAttribute type=\"constant\" value=\"a\"/><stateValue type=\"int\" value=\"1\" stack=\"top\"/></stateChange>",
                (5, 87),
                "only push, pop, popAll, peek",
            ),
            (
                "<stateChange><if><condition operator=\"like\"/></if></stateChange>",
                (5, 48),
                "only eq, ne",
            ),
            (
                "<stateChange><if><xor/></if></stateChange>",
                (5, 48),
                "only and, or, not, condition",
            ),
            (
                "<stateChange><if><condition operator=\"gt\"><field name=\"a\"/><stateValue type=\"null\"/></condition></if></stateChange>",
                (5, 48),
                "eq or ne",
            ),
            (
                "<stateChange><if><condition><fied name=\"a\"/></condition></if></stateChange>",
                (5, 59),
                "only field, stateAttribute, stateValue",
            ),
            (
                "<stateChange><when/></stateChange>",
                (5, 44),
                "only stateAttribute, stateValue",
            ),
        ];
        for (changes, place, message) in cases {
            let error = parse(&whole(changes)).unwrap_err();
            assert_eq!((error.line, error.column), place, "{error}");
            assert!(error.message.contains(message), "{error}");
        }
        assert_eq!(parse("<tmfxml>\n<a></b></tmfxml>").unwrap_err().line, 2);
        let pattern = "<tmfxml>\n  <pattern version=\"0\" id=\"p\"><patternHandler><fsm id=\"f\"/></patternHandler></pattern></tmfxml>";
        let error = parse(pattern).unwrap_err();
        assert_eq!((error.line, error.column), (2, 3), "{error}");
        assert!(
            error.message.contains("fsm") && error.message.contains("stateProvider"),
            "{error}"
        );
        assert!(
            parse("<other/>")
                .unwrap_err()
                .message
                .contains("only tmfxml")
        );
        let misspelt = parse("<tmfxml>\n<stateProvidr/></tmfxml>").unwrap_err();
        assert_eq!((misspelt.line, misspelt.column), (2, 1), "{misspelt}");
        assert!(
            misspelt.message.contains("only stateProvider"),
            "{misspelt}"
        );
    }
}
