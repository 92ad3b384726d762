//! A `format` file: name, id and fields of a tracepoint.

use std::collections::HashSet;

use super::field::Field;

/// The format of a tracepoint's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The `common_type` of the records.
    pub id: u32,
    /// `SYSTEM:NAME`
    pub name: String,
    /// Fields in the order of the file; names are distinct.
    pub fields: Vec<Field>,
}

/// Largest number of fields. Tracepoints have a few dozen fields at most.
const MOST_FIELDS: usize = 512;

impl Format {
    /// Parses a file below `events/SYSTEM`; `long` is the size of the kernel's `long`.
    pub fn parse(system: &str, text: &str, long: u32) -> Option<Format> {
        let (mut name, mut id) = (None, None);
        let mut fields = Vec::new();
        let mut names = HashSet::new();
        for line in text.lines().map(str::trim) {
            match line.split_once(':') {
                Some(("name", value)) if name.is_none() => name = Some(value.trim()),
                Some(("ID", value)) if id.is_none() => id = value.trim().parse().ok(),
                Some(("field", value)) => {
                    let field = Field::parse(value, long)?;
                    let is_new = names.insert(field.name.clone());
                    if is_new && fields.len() < MOST_FIELDS {
                        fields.push(field);
                    }
                }
                Some(("print fmt", _)) => break,
                _ => {}
            }
        }
        let is_text =
            |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_control() || c == '"');
        let name = name.filter(|name| is_text(name) && is_text(system))?;
        Some(Format {
            id: id?,
            name: format!("{system}:{name}"),
            fields,
        })
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
