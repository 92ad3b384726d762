//! Attributes of tracebraid's own probes (`record/probe`): spans, counters, user-level threads. The
//! definition, in the form that users write, is added if the traces contain such events.

use std::collections::HashSet;

use tracebraid_ctf::trace::{Trace, TraceSet};

use crate::user::definition::Definition;
use crate::user::rule_file;

/// Rules by event class: each part is used if its class exists. `@` stands for the machine if there
/// are several, since machines may use the same process ids.
const PARTS: [(&str, &str); 7] = [
    (
        // The span remains open on the thread on which it began, whichever thread ends it.
        "tracebraid:span_begin",
        r#"
[[on]]
event = "tracebraid:span_begin"
change = [{ push = "@span/{packet.tid}", key = "@{env.vpid}/{payload.id}", to = "{payload.name}" }]
"#,
    ),
    (
        "tracebraid:span_end",
        r#"
[[on]]
event = "tracebraid:span_end"
change = [{ drop = "@{env.vpid}/{payload.id}" }]
"#,
    ),
    (
        "tracebraid:counter",
        r#"
[[on]]
event = "tracebraid:counter"
change = [{ set = "@counter/{env.vpid}/{payload.name}", to = "{payload.value}" }]
"#,
    ),
    (
        "tracebraid:ult_create",
        r#"
[[on]]
event = "tracebraid:ult_create"
change = [
  { set = "@ult/{env.vpid}:{payload.ult}/name", to = "{payload.name}" },
  { set = "@ult/{env.vpid}:{payload.ult}/state", to = "new" },
]
"#,
    ),
    (
        "tracebraid:ult_switch",
        r#"
[[on]]
event = "tracebraid:ult_switch"
when = "payload.prev_ult > 0"
change = [
  { set = "@ult/{env.vpid}:{payload.prev_ult}/state", to = "waiting" },
  { clear = "@ult/{env.vpid}:{payload.prev_ult}/tid" },
]
"#,
    ),
    (
        "tracebraid:ult_switch",
        r#"
[[on]]
event = "tracebraid:ult_switch"
when = "payload.next_ult > 0"
change = [
  { set = "@ult/{env.vpid}:{payload.next_ult}/state", to = "running" },
  { set = "@ult/{env.vpid}:{payload.next_ult}/tid", to = "{packet.tid}" },
]
"#,
    ),
    (
        "tracebraid:ult_exit",
        r#"
[[on]]
event = "tracebraid:ult_exit"
change = [
  { clear = "@ult/{env.vpid}:{payload.ult}/name" },
  { clear = "@ult/{env.vpid}:{payload.ult}/state" },
  { clear = "@ult/{env.vpid}:{payload.ult}/tid" },
]
"#,
    ),
];

/// The machine's name, as the prefix of paths.
const MACHINE: &str = "{env.hostname}/";

/// Whether the traces are of several machines, as far as they record it.
pub(crate) fn has_machines(set: &TraceSet) -> bool {
    let name = |trace: &Trace| {
        let class = &trace.layout.class;
        class
            .env_str("hostname")
            .or(class.env_str("host"))
            .map(str::to_owned)
    };
    let names: HashSet<String> = set.traces.iter().filter_map(name).collect();
    names.len() > 1
}

/// The user's definition with the rules for probes that the traces contain. `None` without either.
pub(crate) fn with_probes(set: &TraceSet, definition: Option<Definition>) -> Option<Definition> {
    let layouts = set.traces.iter().flat_map(|trace| &trace.layout.streams);
    let events = layouts.flat_map(|stream| &stream.events);
    let names: HashSet<&str> = events.map(|event| &*event.name).collect();
    let there = |(event, _): &&(&str, &str)| names.contains(event);
    let text: String = PARTS.iter().filter(there).map(|(_, text)| *text).collect();
    let text = text.replace('@', if has_machines(set) { MACHINE } else { "" });
    if text.is_empty() {
        return definition;
    }
    let before = definition.clone().unwrap_or_else(|| Definition {
        name: "probes".to_owned(),
        ..Definition::default()
    });
    // A test checks that the rules can be parsed.
    rule_file::extend(before, &text).ok().or(definition)
}

/// Whether a path, with or without the machine, is that of the thread id of a user-level thread's
/// carrier.
pub(crate) fn names_thread(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let last = (parts.next(), parts.next(), parts.next());
    matches!(last, (Some("tid"), Some(id), Some("ult")) if id.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_user_level_threads_are_known() {
        for (path, expected) in [
            ("ult/12:3/tid", true),
            ("srv/ult/12:3/tid", true),
            ("ult/12:3/state", false),
            ("ult/12/tid", false),
            ("counter/12/tid", false),
            ("tid", false),
        ] {
            assert_eq!(names_thread(path), expected, "{path}");
        }
    }

    #[test]
    fn what_probes_tell_can_be_read() {
        let text: String = PARTS.iter().map(|(_, text)| *text).collect();
        let text = text.replace('@', MACHINE);
        let own = "[[on]]\nevent = \"a\"\nchange = [{ set = \"a/{payload.id}\", to = \"{b}\" }]";
        let own = Definition::parse(own).unwrap();
        let both = rule_file::extend(own.clone(), &text).unwrap();
        assert_eq!(both.rules[..1], own.rules);
        assert_eq!(both.fields[..2], own.fields);
        assert_eq!(both.rules.len(), PARTS.len() + 1);
    }
}
