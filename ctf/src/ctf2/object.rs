//! Typed access to the properties of a JSON object, with the checks that all CTF 2 objects share.

use super::fault::{Fault, Result};
use super::json::{JsonContent, Property, Value};
use crate::schema::{IntRange, Name};

/// A JSON object that is read as a CTF 2 object.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    pub(super) at: usize,
    /// The kind of object, for messages: "structure field class".
    what: &'a str,
    properties: &'a [Property],
}

impl<'a> Object<'a> {
    pub(super) fn of(value: &'a Value, what: &'a str) -> Result<Self> {
        Ok(Object {
            at: value.at,
            what,
            properties: properties_of(value, what)?,
        })
    }

    /// The same object under a more specific name.
    pub(super) fn called(self, what: &'a str) -> Self {
        Object { what, ..self }
    }

    /// Checks that the object has no other properties than these, and that the properties which the
    /// caller does not read (`attributes`, `extensions`) are valid.
    pub(super) fn only(&self, allowed: &[&[&str]]) -> Result<()> {
        for Property { key, value } in self.properties {
            match key.as_str() {
                "attributes" | "extensions"
                    if !allowed.iter().any(|keys| keys.contains(&key.as_str())) =>
                {
                    return Err(self.unknown(key, value));
                }
                "attributes" => {
                    properties_of(value, "`attributes` property")?;
                }
                "extensions" => check_extensions(value)?,
                key if allowed.iter().any(|keys| keys.contains(&key)) => {}
                key => return Err(self.unknown(key, value)),
            }
        }
        Ok(())
    }

    fn unknown(&self, key: &str, value: &Value) -> Fault {
        Fault::new(
            value.at,
            format!("unknown property `{}` of a {}", shown(key), self.what),
        )
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.properties
            .iter()
            .find(|property| property.key == key)
            .map(|property| &property.value)
    }

    /// Byte offset of the property's value, or of the object if it lacks the property.
    pub(super) fn place(&self, key: &str) -> usize {
        self.get(key).map_or(self.at, |value| value.at)
    }

    pub(super) fn need(&self, key: &str) -> Result<&'a Value> {
        self.get(key).ok_or_else(|| {
            Fault::new(
                self.at,
                format!("missing property `{key}` of a {}", self.what),
            )
        })
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<String>> {
        self.get(key)
            .map(|value| string_of(value, key).map(str::to_owned))
            .transpose()
    }

    /// An optional string that becomes part of the schema.
    pub(super) fn name(&self, key: &str) -> Result<Option<Name>> {
        self.get(key)
            .map(|value| string_of(value, key).map(Name::from))
            .transpose()
    }

    pub(super) fn uint(&self, key: &str, min: u64, max: u64) -> Result<Option<u64>> {
        self.get(key)
            .map(|value| uint_of(value, key, min, max))
            .transpose()
    }

    pub(super) fn need_uint(&self, key: &str, min: u64, max: u64) -> Result<u64> {
        uint_of(self.need(key)?, key, min, max)
    }

    /// An optional alignment: a power of two, default 1.
    pub(super) fn alignment(&self, key: &str) -> Result<u32> {
        let Some(value) = self.get(key) else {
            return Ok(1);
        };
        let alignment = uint_of(value, key, 0, u64::MAX)?;
        if !alignment.is_power_of_two() {
            return Err(Fault::new(
                value.at,
                format!("`{key}` {alignment} is not a power of two"),
            ));
        }
        u32::try_from(alignment).map_err(|_| {
            Fault::new(
                value.at,
                format!(
                    "`{key}` {alignment} is too large: expecting at most {}",
                    1u32 << 31
                ),
            )
        })
    }

    /// An optional string with a fixed set of choices.
    pub(super) fn one_of<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = string_of(value, key)?;
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                let message = format!(
                    "unexpected `{key}` `{}`: expecting {}",
                    shown(text),
                    listed(&names)
                );
                Err(Fault::new(value.at, message))
            }
        }
    }
}

pub(super) fn string_of<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    match &value.kind {
        JsonContent::Str(text) => Ok(text),
        _ => Err(wrong_type(value, key, "a string")),
    }
}

pub(super) fn items_of<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    match &value.kind {
        JsonContent::Array(items) => Ok(items),
        _ => Err(wrong_type(value, key, "an array")),
    }
}

/// The value's properties; `what` names the expected object.
pub(super) fn properties_of<'a>(value: &'a Value, what: &str) -> Result<&'a [Property]> {
    match &value.kind {
        JsonContent::Object(properties) => Ok(properties),
        _ => {
            let message = format!(
                "{}: expecting an object ({what})",
                capital(value.kind_name())
            );
            Err(Fault::new(value.at, message))
        }
    }
}

/// The value as an integer in `min..=max`.
pub(super) fn uint_of(value: &Value, key: &str, min: u64, max: u64) -> Result<u64> {
    let int = match value.kind {
        JsonContent::Int(int) => int,
        JsonContent::HugeInt => {
            let message = format!("`{key}`: integer out of range: expecting {min} to {max}");
            return Err(Fault::new(value.at, message));
        }
        _ => return Err(wrong_type(value, key, "an integer")),
    };
    if int < i128::from(min) {
        return Err(Fault::new(
            value.at,
            format!("`{key}` {int} is too small: expecting at least {min}"),
        ));
    }
    u64::try_from(int)
        .ok()
        .filter(|&int| int <= max)
        .ok_or_else(|| {
            Fault::new(
                value.at,
                format!("`{key}` {int} is too large: expecting at most {max}"),
            )
        })
}

/// The value as an integer in `min..=max`, which may be negative.
pub(super) fn int_of(value: &Value, key: &str, min: i128, max: i128) -> Result<i128> {
    match value.kind {
        JsonContent::Int(int) if (min..=max).contains(&int) => Ok(int),
        JsonContent::Int(_) | JsonContent::HugeInt => {
            let message = format!(
                "`{}`: integer out of range: expecting {min} to {max}",
                shown(key)
            );
            Err(Fault::new(value.at, message))
        }
        _ => Err(wrong_type(value, key, "an integer")),
    }
}

/// The value as an integer range set with bounds in `min..=max`.
pub(super) fn range_set(value: &Value, key: &str, min: i128, max: i128) -> Result<Vec<IntRange>> {
    let items = items_of(value, key)?;
    if items.is_empty() {
        return Err(Fault::new(
            value.at,
            format!("`{key}`: expecting at least one integer range"),
        ));
    }
    items
        .iter()
        .map(|item| range(item, key, min, max))
        .collect()
}

fn range(value: &Value, key: &str, min: i128, max: i128) -> Result<IntRange> {
    let [lower, upper] = items_of(value, key)? else {
        let message = format!("`{key}`: an integer range has two bounds: expecting [LOWER, UPPER]");
        return Err(Fault::new(value.at, message));
    };
    let lower = int_of(lower, key, min, max)?;
    let upper = int_of(upper, key, min, max)?;
    if lower > upper {
        let message = format!("`{key}`: integer range: {lower} is greater than {upper}");
        return Err(Fault::new(value.at, message));
    }
    Ok(IntRange { lower, upper })
}

/// Rejects all extensions: no CTF 2 extension is supported.
fn check_extensions(value: &Value) -> Result<()> {
    for namespace in properties_of(value, "`extensions` property")? {
        let is_empty = matches!(&namespace.value.kind, JsonContent::Object(extensions) if extensions.is_empty());
        if !is_empty {
            let message = format!(
                "the extensions of `{}` are not supported: no CTF 2 extension is",
                shown(&namespace.key)
            );
            return Err(Fault::new(value.at, message));
        }
    }
    Ok(())
}

fn wrong_type(value: &Value, key: &str, expecting: &str) -> Fault {
    Fault::new(
        value.at,
        format!(
            "`{}`: expecting {expecting}, not {}",
            shown(key),
            value.kind_name()
        ),
    )
}

/// Text from the metadata, cut to 80 characters for a message.
pub(super) fn shown(text: &str) -> String {
    const MAX: usize = 80;
    match text.char_indices().nth(MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// "`a`, `b`, or `c`".
pub(super) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::from("nothing"),
        [one] => one.clone(),
        [one, two] => format!("{one} or {two}"),
        [most @ .., last] => format!("{}, or {last}", most.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
