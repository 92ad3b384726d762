//! Definitions in TOML.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use tracebraid_language::Datum;
use tracebraid_language::ast::Expr;
use tracebraid_language::glob::Glob;

use crate::user::definition::{Deed, Definition, Operand, Part, Rule, RuleStep, Template};
use crate::user::error::DefinitionError;
use crate::user::expression;
use crate::user::template::{self, Lets};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    on: Vec<Spanned<On>>,
    #[serde(default)]
    segment: Vec<Spanned<Segment>>,
}

/// A selection of event records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    event: Option<Names>,
    when: Option<Spanned<String>>,
}

/// Changes that event records cause.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct On {
    event: Option<Names>,
    when: Option<Spanned<String>>,
    #[serde(default, rename = "let")]
    lets: BTreeMap<String, Spanned<String>>,
    change: Vec<Spanned<Change>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

/// A change of an attribute: one of the first six. A push with a key puts its value on the lowest
/// free position; the drop of that key removes it from there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    set: Option<Spanned<String>>,
    add: Option<Spanned<String>>,
    clear: Option<Spanned<String>>,
    push: Option<Spanned<String>>,
    pop: Option<Spanned<String>>,
    drop: Option<Spanned<String>>,
    key: Option<Spanned<String>>,
    to: Option<Spanned<Literal>>,
    by: Option<Spanned<Literal>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Literal {
    Number(i64),
    Text(String),
}

/// A segment with a start and an end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Segment {
    name: Spanned<String>,
    key: Spanned<String>,
    label: Option<Spanned<Literal>>,
    begin: Which,
    end: Which,
}

/// Parses a definition.
pub(super) fn parse(text: &str) -> Result<Definition, DefinitionError> {
    let empty = Definition {
        text: text.to_owned(),
        ..Definition::default()
    };
    extend(empty, text)
}

/// Parses more rules, which follow those of a definition.
pub(super) fn extend(definition: Definition, text: &str) -> Result<Definition, DefinitionError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        DefinitionError::at(text, offset, error.message())
    })?;
    let before = definition.rules.len();
    let mut reader = Reader { text, definition };
    if reader.definition.name.is_empty() {
        reader.definition.name = file.name.unwrap_or_else(|| "user".to_owned());
    }
    for on in file.on {
        reader.on(on)?;
    }
    for segment in file.segment {
        reader.segment(segment)?;
    }
    if reader.definition.rules.len() == before {
        let message = "the definition has no [[on]] and no [[segment]], so nothing would happen";
        return Err(DefinitionError::at(text, text.len(), message));
    }
    // In the order of the text.
    reader.definition.rules[before..].sort_by_key(|rule| rule.offset);
    Ok(reader.definition)
}

struct Reader<'t> {
    text: &'t str,
    definition: Definition,
}

impl Reader<'_> {
    fn error(&self, at: &Range<usize>, message: impl Into<String>) -> DefinitionError {
        DefinitionError::at(self.text, at.start, message)
    }

    /// Offset of the content of a string literal.
    fn content(&self, at: &Range<usize>) -> usize {
        let written = self.text.get(at.clone()).unwrap_or_default();
        let quotes = match written {
            long if long.starts_with("\"\"\"") || long.starts_with("'''") => 3,
            quoted if quoted.starts_with(['"', '\'']) => 1,
            _ => 0,
        };
        at.start + quotes
    }

    fn template(
        &mut self,
        text: &Spanned<String>,
        lets: &Lets,
    ) -> Result<Template, DefinitionError> {
        let parsed = template::parse(text.get_ref(), &mut self.definition, lets);
        parsed.map_err(|(offset, message)| {
            DefinitionError::at(self.text, self.content(&text.span()) + offset, message)
        })
    }

    /// Parses a path: not empty, and without empty parts.
    fn path(&mut self, text: &Spanned<String>, lets: &Lets) -> Result<Template, DefinitionError> {
        let path = text.get_ref();
        if path.is_empty() || path.split('/').any(str::is_empty) {
            let message =
                "a path consists of non-empty parts separated by /, such as requests/{id}/state";
            return Err(self.error(&text.span(), message));
        }
        self.template(text, lets)
    }

    fn value(
        &mut self,
        value: &Spanned<Literal>,
        lets: &Lets,
    ) -> Result<Template, DefinitionError> {
        match value.get_ref() {
            Literal::Number(number) => Ok(Template::of(Operand::Constant(Datum::Integer(
                (*number).into(),
            )))),
            Literal::Text(text) => self.template(&Spanned::new(value.span(), text.clone()), lets),
        }
    }

    /// The condition that selects event records.
    fn when(
        &mut self,
        events: Option<Names>,
        when: Option<&Spanned<String>>,
        at: &Range<usize>,
    ) -> Result<Expr, DefinitionError> {
        let names = events.map(|events| match events {
            Names::One(name) => vec![name],
            Names::Several(names) => names,
        });
        let is_any = match &names {
            Some(names) => names.is_empty(),
            None => when.is_none(),
        };
        if is_any {
            return Err(self.error(
                at,
                "no event is named; add event = \"NAME\" or when = \"NAME && ...\"",
            ));
        }
        let named = |names: Vec<String>| {
            Expr::Or(
                names
                    .iter()
                    .map(|name| Expr::Event(Glob::new(name)))
                    .collect(),
            )
        };
        let mut parts: Vec<Expr> = names.map(named).into_iter().collect();
        if let Some(when) = when {
            let no_times = |_: &str| {
                Err("a rule cannot compare times; use --from and --to of a query".to_owned())
            };
            let parsed = tracebraid_language::parse_noting(when.get_ref(), &no_times);
            let place = self.content(&when.span());
            let (expr, old) =
                parsed.map_err(|error| DefinitionError::within(self.text, place, &error))?;
            self.definition.old_forms.extend(old);
            match expr {
                Expr::And(more) => parts.extend(more),
                one => parts.push(one),
            }
        }
        Ok(Expr::And(parts))
    }

    fn on(&mut self, on: Spanned<On>) -> Result<(), DefinitionError> {
        let at = on.span();
        let on = on.into_inner();
        let mut lets = Lets::new();
        for (name, path) in on.lets {
            // A path may use the names that precede its own alphabetically.
            let path = self.path(&path, &lets)?;
            lets.push((name, path));
        }
        let when = self.when(on.event, on.when.as_ref(), &at)?;
        if on.change.is_empty() {
            return Err(self.error(&at, "the rule has no changes"));
        }
        let mut steps = Vec::new();
        for change in on.change {
            steps.push(self.change(change, &lets)?);
        }
        let (when, condition) = expression::split(when, &mut self.definition, &lets);
        if let Some(condition) = condition {
            let (then, otherwise) = (steps, Vec::new());
            steps = vec![RuleStep::If {
                condition,
                then,
                otherwise,
            }];
        }
        self.definition.rules.push(Rule {
            when: when.unwrap_or_else(|| Expr::And(Vec::new())),
            offset: at.start,
            steps,
        });
        Ok(())
    }

    fn change(
        &mut self,
        change: Spanned<Change>,
        lets: &Lets,
    ) -> Result<RuleStep, DefinitionError> {
        let at = change.span();
        let Change {
            set,
            add,
            clear,
            push,
            pop,
            drop,
            key,
            to,
            by,
        } = change.into_inner();
        let deeds = [&set, &add, &clear, &push, &pop, &drop];
        let mut named = deeds.into_iter().flatten();
        let (Some(path), None) = (named.next(), named.next()) else {
            let message = "a change needs exactly one of set, add, clear, push, pop and drop";
            return Err(self.error(&at, message));
        };
        let path = self.path(path, lets)?;
        let takes = set.is_some() || push.is_some();
        let misplaced = match (&to, &by) {
            (Some(to), _) if !takes => Some((to.span(), "`to` belongs to set and push")),
            (_, Some(by)) if add.is_none() => Some((by.span(), "`by` belongs to add")),
            (None, _) if takes => Some((at.clone(), "set and push need `to`: the value")),
            _ => None,
        };
        let no_key = key.as_ref().filter(|_| push.is_none());
        let no_key = no_key.map(|key| (key.span(), "`key` belongs to push"));
        if let Some((span, message)) = misplaced.or(no_key) {
            return Err(self.error(&span, message));
        }
        let one = Template::of(Operand::Constant(Datum::Integer(1)));
        let to = to
            .map(|to| self.value(&to, lets))
            .transpose()?
            .unwrap_or_default();
        let key = key.map(|key| self.template(&key, lets)).transpose()?;
        let by = by
            .map(|by| self.value(&by, lets))
            .transpose()?
            .unwrap_or(one);
        let deed = match (&set, &add, &clear, &push, key) {
            (Some(_), ..) => Deed::Set(to),
            (_, Some(_), ..) => Deed::Add(by),
            (_, _, Some(_), ..) => Deed::Clear,
            (_, _, _, Some(_), None) => Deed::Push(to),
            (_, _, _, Some(_), Some(key)) => Deed::Keep { key, value: to },
            _ if drop.is_some() => Deed::Drop,
            _ => Deed::Pop,
        };
        Ok(RuleStep::Change { path, deed })
    }

    /// Translates a segment into two rules.
    fn segment(&mut self, segment: Spanned<Segment>) -> Result<(), DefinitionError> {
        let at = segment.span();
        let segment = segment.into_inner();
        let lets = Lets::new();
        let name = self.path(&segment.name, &lets)?;
        let mut path = name.clone();
        path.0.push(Part::Text("/".to_owned()));
        path.0.extend(self.path(&segment.key, &lets)?.0);
        let label = segment
            .label
            .map(|label| self.value(&label, &lets))
            .transpose()?;
        let label = label.unwrap_or_else(|| Template::text("active"));
        let sides = [
            (segment.begin, Deed::Begin(label), 0),
            (segment.end, Deed::End(name), 1),
        ];
        for (which, deed, offset) in sides {
            let when = self.when(which.event, which.when.as_ref(), &at)?;
            let path = path.clone();
            self.definition.rules.push(Rule {
                when,
                offset: at.start + offset,
                steps: vec![RuleStep::Change { path, deed }],
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_say_what_changes() {
        let text = r#"
name = "requests"
[[on]]
event = "app:request_begin"
let = { before = "requests/{id}/state" }
when = "before != running && size > 3"
change = [
  { set = "requests/{id}/state", to = "running" },
  { add = "requests/begun" },
]
[[segment]]
name = "served"
key = "{id}"
begin = { event = "app:request_begin" }
end = { event = ["app:request_end", "app:request_failed"], when = "id > 0" }
"#;
        let definition = parse(text).unwrap();
        assert_eq!(definition.name, "requests");
        assert_eq!(definition.rules.len(), 3);
        assert!(
            matches!(&definition.rules[0].steps[..], [RuleStep::If { then, .. }] if then.len() == 2)
        );
        let deed = |at: usize| match &definition.rules[at].steps[0] {
            RuleStep::Change { deed, .. } => deed.clone(),
            RuleStep::If { .. } => Deed::Clear,
        };
        assert_eq!(deed(1), Deed::Begin(Template::text("active")));
        assert_eq!(deed(2), Deed::End(Template::text("served")));
    }

    #[test]
    fn old_forms_are_noted() {
        let noted = |when: &str, path: &str| {
            let text = format!("[[on]]\nwhen = \"{when}\"\nchange = [{{ add = \"{path}\" }}]");
            parse(&text).unwrap().old_forms.note()
        };
        assert_eq!(noted("a && ctx.x == 3", "n/{payload.y}"), None);
        let note = noted("a && $evt.$ctx.x == 3", "n/{$evt.y}").unwrap();
        assert!(note.contains("`event_ctx.x` for `$evt.$ctx.x`"), "{note}");
        assert!(note.contains("`y` for `$evt.y`"), "{note}");
    }

    /// A condition as in a filter, without `event`.
    #[test]
    fn a_condition_may_name_the_event() {
        let rule = |which: &str| {
            let text = format!("[[on]]\n{which}\nchange = [{{ add = \"n\" }}]");
            parse(&text).map(|definition| definition.rules[0].when.clone())
        };
        let expected = Expr::And(vec![
            Expr::Event(Glob::new("sched_switch")),
            tracebraid_language::parse("prev_tid == 3").unwrap(),
        ]);
        assert_eq!(
            rule("when = \"sched_switch && prev_tid == 3\"").unwrap(),
            expected
        );
        let segment = "[[segment]]\nname = \"s\"\nkey = \"k\"\nbegin = { when = \"a\" }\nend = { when = \"b && x > 1\" }";
        assert_eq!(parse(segment).unwrap().rules.len(), 2);
        assert!(rule("").unwrap_err().message.contains("no event is named"));
        assert!(rule("event = []\nwhen = \"x > 1\"").is_err());
    }

    #[test]
    fn errors_name_line_and_column() {
        let on = |change: &str| format!("[[on]]\nevent = \"a\"\nchange = [{change}]");
        let cases = [
            ("[[on]]\nevnt = 3".to_owned(), (2, 1), "unknown field"),
            ("name = ".to_owned(), (1, 8), ""),
            ("name = \"x\"".to_owned(), (1, 11), "nothing would happen"),
            (on("{ set = \"a\" }"), (3, 11), "need `to`"),
            (on("{ set = \"a//b\", to = 1 }"), (3, 19), "empty"),
            (on("{ set = \"a/{b\", to = 1 }"), (3, 22), "not closed"),
            (on("{ clear = \"a\", by = 1 }"), (3, 31), "belongs to add"),
            (on("{ clear = \"a\", pop = \"a\" }"), (3, 11), "one of"),
            (
                on("{ pop = \"a\", key = \"b\" }"),
                (3, 30),
                "belongs to push",
            ),
            (
                "[[on]]\nevent = \"a\"\nwhen = \"b === 3\"\nchange = []".to_owned(),
                (3, 13),
                "",
            ),
        ];
        for (text, place, message) in cases {
            let error = parse(&text).unwrap_err();
            assert_eq!((error.line, error.column), place, "{text}\n{error}");
            assert!(error.message.contains(message), "{error}");
        }
    }
}
