//! Templates as users write them: text with names of fields, or of attributes' values, in braces:
//! `requests/{id}/state`.

use tracebraid_language::OldForms;
use tracebraid_language::ast::{Field, Where};

use crate::user::definition::{Definition, Operand, Part, Template};

/// Names that a rule gives to values of attributes.
pub(crate) type Lets = Vec<(String, Template)>;

/// Parses a template. `{{` and `}}` stand for braces.
///
/// # Errors
/// The byte offset of the error in the text, and a message.
pub(crate) fn parse(
    text: &str,
    definition: &mut Definition,
    lets: &Lets,
) -> Result<Template, (usize, String)> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let offset = text.len() - rest.len() + at;
        plain.push_str(&rest[..at]);
        let behind = &rest[at..];
        if let Some(doubled) = behind
            .strip_prefix("{{")
            .or_else(|| behind.strip_prefix("}}"))
        {
            plain.push_str(&behind[..1]);
            rest = doubled;
            continue;
        }
        if behind.starts_with('}') {
            return Err((
                offset,
                "this brace closes nothing; write }} for a brace in the text".to_owned(),
            ));
        }
        let Some(end) = behind.find('}') else {
            return Err((
                offset,
                "this brace is not closed; write {{ for a brace in the text".to_owned(),
            ));
        };
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        let name = behind[1..end].trim();
        let operand = operand(name, definition, lets).map_err(|message| (offset + 1, message))?;
        parts.push(Part::Of(operand));
        rest = &behind[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(Template(parts))
}

/// The operand that a name stands for.
pub(crate) fn operand(
    name: &str,
    definition: &mut Definition,
    lets: &Lets,
) -> Result<Operand, String> {
    if let Some((_, path)) = lets.iter().find(|(known, _)| known == name) {
        return Ok(Operand::State(path.clone()));
    }
    let (field, old) = field(name)?;
    definition.old_forms.extend(old);
    Ok(Operand::Field(definition.field(field)))
}

/// The field that a name stands for, as in filters.
pub(crate) fn field(name: &str) -> Result<(Field, OldForms), String> {
    // Parsed as in a filter, so that a name means the same everywhere.
    match tracebraid_language::parse_noting(&format!("has({name})"), &|_| Ok(())) {
        Ok((tracebraid_language::Expr::Has(field), old)) => Ok((field, old)),
        _ => Err(format!("`{name}` is not a field name")),
    }
}

/// The member with that name, in any scope.
pub(crate) fn member(name: &str) -> Field {
    Field::Path(
        Where::Anywhere,
        name.split('.').map(str::to_owned).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_fields_or_what_attributes_are() {
        let mut definition = Definition::default();
        let lets = vec![("owner".to_owned(), Template::text("lock/owner"))];
        let template = parse("a/{{{ id }}}/{owner}", &mut definition, &lets).unwrap();
        let expected = [
            Part::Text("a/{".to_owned()),
            Part::Of(Operand::Field(0)),
            Part::Text("}/".to_owned()),
            Part::Of(Operand::State(Template::text("lock/owner"))),
        ];
        assert_eq!(template.0, expected);
        assert_eq!(definition.fields, [member("id")]);
    }

    #[test]
    fn errors_have_their_place() {
        for (text, offset) in [
            ("a/{id", 2),
            ("a}b", 1),
            ("a/{i d}", 3),
            ("{}", 1),
            ("{a*}", 1),
        ] {
            let error = parse(text, &mut Definition::default(), &Vec::new()).unwrap_err();
            assert_eq!(error.0, offset, "{text}: {}", error.1);
        }
    }
}
