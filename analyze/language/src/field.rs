//! The spelling of fields: the same in filters, periods, executions and user analyses.

use crate::ast::{Field, Where};

/// Outdated forms in definitions that are still accepted, each with its current form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldForms(Vec<(String, String)>);

impl OldForms {
    /// Records an old form that occurred.
    pub(crate) fn add(&mut self, old: &str, new: String) {
        let form = (old.to_owned(), new);
        if !self.0.contains(&form) {
            self.0.push(form);
        }
    }

    /// Adds the forms of another text.
    pub fn extend(&mut self, other: OldForms) {
        other
            .0
            .into_iter()
            .for_each(|(old, new)| self.add(&old, new));
    }

    /// A sentence about the old forms; `None` without any.
    pub fn note(&self) -> Option<String> {
        const MOST: usize = 3;
        let (old, new) = self.0.first()?;
        let others = self.0.iter().skip(1).take(MOST - 1);
        let others: String = others
            .map(|(old, new)| format!(", `{new}` for `{old}`"))
            .collect();
        let more = match self.0.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "old syntax: write `{new}` for `{old}`{others}{more}"
        ))
    }
}

/// Scopes by name.
const SCOPES: [(&str, Where); 8] = [
    ("payload", Where::Payload),
    ("ctx", Where::Context),
    ("context", Where::Context),
    ("event_ctx", Where::EventContext),
    ("stream_ctx", Where::StreamContext),
    ("packet", Where::Packet),
    ("event_header", Where::Header),
    ("packet_header", Where::PacketHeader),
];

/// Scopes by the names that follow `$evt.` in the old syntax.
const OLD_SCOPES: [(&str, Where); 6] = [
    ("$payload", Where::Payload),
    ("$ctx", Where::EventContext),
    ("$stream_ctx", Where::StreamContext),
    ("$pkt_ctx", Where::Packet),
    ("$header", Where::Header),
    ("$pkt_header", Where::PacketHeader),
];

fn scope(scopes: &[(&str, Where)], name: &str) -> Option<Where> {
    let mut scopes = scopes.iter();
    scopes
        .find(|(own, _)| *own == name)
        .map(|(_, place)| *place)
}

/// The field of that name that is not looked up in event records.
fn own_field(name: &str) -> Option<Field> {
    Some(match name {
        "name" => Field::Name,
        "time" => Field::Time,
        "cpu" => Field::Cpu,
        "tid" => Field::Tid,
        "pid" => Field::Pid,
        "procname" => Field::Procname,
        "hostname" => Field::Environment(name.to_owned()),
        _ => return None,
    })
}

/// Parses a field.
pub(crate) fn field(text: &str) -> Result<Field, String> {
    if let Some(own) = own_field(text) {
        return Ok(own);
    }
    let wrong = || format!("`{text}` is not the name of a field");
    let (place, path) = match text.split_once('.') {
        Some(("env", name)) if !name.is_empty() => return Ok(Field::Environment(name.to_owned())),
        Some((first, path)) => match scope(&SCOPES, first) {
            Some(place) => (place, path),
            None => (Where::Anywhere, text),
        },
        None => (Where::Anywhere, text),
    };
    let steps = steps(path)
        .filter(|_| !text.starts_with('$'))
        .ok_or_else(wrong)?;
    Ok(Field::Path(place, steps))
}

/// Parses the part of a field after `$evt.` in the old syntax.
pub(crate) fn old_field(text: &str) -> Result<Field, String> {
    match text {
        "$name" => return Ok(Field::Name),
        "$time" => return Ok(Field::Time),
        "$cpu" => return Ok(Field::Cpu),
        _ => {}
    }
    let scoped = text.split_once('.');
    let scoped = scoped.and_then(|(first, path)| Some((scope(&OLD_SCOPES, first)?, path)));
    let (place, path) = scoped.unwrap_or((Where::Anywhere, text));
    if path.contains('$') {
        return Err(format!(
            "`$evt.{text}` is undefined: use $name, $cpu, $time, or fields of $payload, $ctx, \
             $stream_ctx, $header, $pkt_ctx, $pkt_header"
        ));
    }
    let steps = steps(path).ok_or_else(|| format!("`{path}` is not the name of a field"))?;
    Ok(Field::Path(place, steps))
}

/// The member names and element indexes that lead to a field: `a.b[2]`.
fn steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    for step in path.split('.') {
        let mut parts = step.split('[');
        steps.push(parts.next().unwrap_or_default().to_owned());
        for index in parts {
            let digits = index.strip_suffix(']')?;
            let is_number =
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            steps.push(is_number.then(|| digits.to_owned())?);
        }
    }
    let is_wrong = |step: &String| step.is_empty() || step.contains(['[', ']', '+', '*', '?']);
    (!steps.iter().any(is_wrong)).then_some(steps)
}

/// The field as written in current syntax.
pub(crate) fn spelling(field: &Field) -> String {
    match field {
        Field::Name => "name".to_owned(),
        Field::Time => "time".to_owned(),
        Field::Cpu => "cpu".to_owned(),
        Field::Tid | Field::OwnTid => "tid".to_owned(),
        Field::Pid => "pid".to_owned(),
        Field::Procname => "procname".to_owned(),
        Field::Environment(name) => format!("env.{name}"),
        Field::Path(place, steps) => {
            let path = joined(steps);
            // Without a scope, the path may be the name of another field, such as `tid`.
            let is_other = field_of(&path) != *field && *place == Where::Anywhere;
            let place = if is_other { Where::Payload } else { *place };
            let scope = SCOPES.iter().find(|(_, own)| *own == place);
            scope.map_or(path.clone(), |(scope, _)| format!("{scope}.{path}"))
        }
    }
}

fn field_of(text: &str) -> Field {
    field(text).unwrap_or(Field::Name)
}

fn joined(steps: &[String]) -> String {
    let mut path = String::new();
    for step in steps {
        if step.bytes().all(|digit| digit.is_ascii_digit()) {
            path += &format!("[{step}]");
        } else {
            path += if path.is_empty() { "" } else { "." };
            path += step;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let all = [
            "name",
            "tid",
            "env.domain",
            "a",
            "a.b[2][0].c",
            "payload.tid",
            "ctx.x",
            "event_ctx.x",
            "stream_ctx.x",
            "packet.cpu_id",
            "event_header.id",
            "packet_header.stream_id",
        ];
        for text in all {
            assert_eq!(spelling(&field(text).unwrap()), text);
        }
        for wrong in [
            "", "a.", ".a", "a[", "a[x]", "a[1", "f*", "$a", "payload.", "a[1]b",
        ] {
            assert!(field(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_old_syntax_has_a_new_one() {
        let pairs = [
            ("$name", "name"),
            ("next_tid", "next_tid"),
            ("$payload.a.b", "payload.a.b"),
            ("$ctx.x", "event_ctx.x"),
            ("$pkt_ctx.cpu_id", "packet.cpu_id"),
            ("a[2]", "a[2]"),
            // A payload field named `tid`, not the thread.
            ("tid", "payload.tid"),
            ("packet.x", "payload.packet.x"),
        ];
        for (old, new) in pairs {
            assert_eq!(spelling(&old_field(old).unwrap()), new, "{old}");
        }
    }

    #[test]
    fn old_forms_are_told_once() {
        let mut forms = OldForms::default();
        assert_eq!(forms.note(), None);
        for name in ["a", "b", "a", "c", "d"] {
            forms.add(&format!("$evt.{name}"), name.to_owned());
        }
        let note = forms.note().unwrap();
        assert_eq!(
            note,
            "old syntax: write `a` for `$evt.a`, `b` for `$evt.b`, `c` for `$evt.c` and 1 more"
        );
    }
}
