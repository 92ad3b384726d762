//! Names of functions at the end of a line.

use tracebraid_profile::Named;

use super::buffer::Buffer;
use super::csv::put_quoted_if_needed;

/// Appends the function names for an event record's addresses to its complete line.
pub(crate) fn put(buffer: &mut Buffer, json: bool, names: &[Named<'_>]) {
    if names.is_empty() {
        return;
    }
    let text = if json { as_json(names) } else { as_text(names) };
    let end = if json { "}\n" } else { "\n" };
    buffer.truncate(buffer.len().saturating_sub(end.len()));
    buffer.put(text.as_bytes());
    buffer.put(end.as_bytes());
}

/// `, { addr = work, callstack_user = [ work, main ] }`
fn as_text(names: &[Named<'_>]) -> String {
    let field = |(field, names): &Named<'_>| match names.as_slice() {
        [name] => format!("{field} = {name}"),
        names => format!("{field} = [ {} ]", names.join(", ")),
    };
    let fields: Vec<String> = names.iter().map(field).collect();
    format!(", {{ {} }}", fields.join(", "))
}

/// Replaces the last cell of a complete row, which must be empty, by the names of functions.
pub(crate) fn put_cell(buffer: &mut Buffer, names: &[Named<'_>]) {
    if names.is_empty() {
        return;
    }
    buffer.truncate(buffer.len().saturating_sub(1));
    put_quoted_if_needed(buffer, object(names).to_string().as_bytes());
    buffer.put_byte(b'\n');
}

/// `,"symbols":{"addr":["work"]}`
fn as_json(names: &[Named<'_>]) -> String {
    format!(",\"symbols\":{}", object(names))
}

/// `{"addr":["work"]}`
fn object(names: &[Named<'_>]) -> serde_json::Value {
    let fields = names.iter().map(|(field, names)| {
        let names = names.iter().map(|&name| name.into()).collect();
        ((*field).to_owned(), serde_json::Value::Array(names))
    });
    serde_json::Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_the_end_of_the_line() {
        let names: [Named<'_>; 2] = [("addr", vec!["wo\"rk"]), ("callstack_user", vec!["a", "b"])];
        for (json, line, expected) in [
            (
                false,
                "x: { a = 1 }\n",
                "x: { a = 1 }, { addr = wo\"rk, callstack_user = [ a, b ] }\n",
            ),
            (
                true,
                "{\"x\":1}\n",
                "{\"x\":1,\"symbols\":{\"addr\":[\"wo\\\"rk\"],\"callstack_user\":[\"a\",\"b\"]}}\n",
            ),
        ] {
            let mut buffer = Buffer::new(64);
            buffer.put(line.as_bytes());
            put(&mut buffer, json, &names);
            assert_eq!(std::str::from_utf8(buffer.bytes()).unwrap(), expected);
        }
    }
}
