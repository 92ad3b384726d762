//! Events have the names, fields and layouts of lttng-modules.

use std::collections::HashMap;

use tracebraid_ctf::metadata;
use tracebraid_ctf::schema::{EventClass, FieldClass, TraceClass};

/// The metadata of a trace that lttng-modules 2.13 recorded.
fn recorded() -> TraceClass {
    let directory = tracebraid_testkit::recorded::unpacked("kernel-mix-small");
    let text = std::fs::read(directory.join("kernel-mix-small/kernel/metadata"))
        .expect("the metadata can be read");
    metadata::parse(&text).expect("the recorded metadata is valid")
}

fn events(class: &TraceClass) -> HashMap<&str, &EventClass> {
    let all = class.streams.iter().flat_map(|stream| &stream.events);
    all.map(|event| (&*event.name, event)).collect()
}

/// The fields as text, one on each line.
fn fields(payload: &Option<FieldClass>) -> Vec<String> {
    let Some(FieldClass::Struct(payload)) = payload else {
        return Vec::new();
    };
    let members = payload.members.iter();
    members
        .map(|member| format!("{}: {:?}", &*member.name, member.class))
        .collect()
}

#[test]
fn events_are_those_of_lttng_modules() {
    let (ours, theirs) = (tracebraid_kernel_recorder::trace_class(), recorded());
    let theirs = events(&theirs);
    let mut compared = 0;
    let mut different = Vec::new();
    for (name, event) in events(&ours) {
        let Some(other) = theirs.get(name) else {
            continue;
        };
        compared += 1;
        let (found, expected) = (fields(&event.payload), fields(&other.payload));
        if found != expected {
            different.push(format!(
                "{name}\n  ours:   {found:#?}\n  theirs: {expected:#?}"
            ));
        }
    }
    assert!(
        different.is_empty(),
        "{} of {compared}:\n{}",
        different.len(),
        different.join("\n")
    );
    assert!(compared > 600, "{compared}");
}

#[test]
fn packets_are_those_of_lttng_modules() {
    let (ours, theirs) = (tracebraid_kernel_recorder::trace_class(), recorded());
    assert_eq!(
        format!("{:?}", ours.packet_header),
        format!("{:?}", theirs.packet_header)
    );
    let (ours, theirs) = (&ours.streams[0], &theirs.streams[0]);
    assert_eq!(
        format!("{:?}", ours.packet_context),
        format!("{:?}", theirs.packet_context)
    );
    assert_eq!(
        format!("{:?}", ours.event_header),
        format!("{:?}", theirs.event_header)
    );
}
