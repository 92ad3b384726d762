//! The schema of a recording: the events of `events.tsdl` and those of all system calls.

use std::fmt::Write as _;

use tracebraid_ctf::metadata;
use tracebraid_ctf::schema::TraceClass;

use crate::calls::{Call, Calls, Field};
use crate::contexts::ContextLayout;

/// Ids of the entries of the first system calls, of 64-bit and of 32-bit programs; each call has
/// two ids.
const FIRST_CALL: u16 = 1000;
const FIRST_COMPAT_CALL: u16 = 3000;

/// Ids of entry and exit of calls with unknown arguments: of numbers that are missing in the table,
/// and of 32-bit programs.
pub(crate) const UNKNOWN_CALL: [u16; 2] = [990, 991];
pub(crate) const COMPAT_CALL: [u16; 2] = [992, 993];

/// Ids of entry and exit of the call at an index of its table.
pub(crate) fn call_ids(is_compat: bool, place: usize) -> [u16; 2] {
    let first = if is_compat {
        FIRST_COMPAT_CALL
    } else {
        FIRST_CALL
    };
    let entry = first + 2 * place as u16;
    [entry, entry + 1]
}

/// The end of the stream class in `events.tsdl`.
const STREAM_END: &str = "\t} align(8);\n};\n";

/// The schema of event records without contexts.
pub(crate) fn schema(calls: &Calls) -> TraceClass {
    schema_with(calls, &ContextLayout::default())
}

/// The schema, with an empty environment and a clock that begins at 0.
pub(crate) fn schema_with(calls: &Calls, contexts: &ContextLayout) -> TraceClass {
    let mut text = String::from("/* CTF 1.8 */\n");
    let events = include_str!("events.tsdl");
    match contexts.tsdl() {
        Some(members) => {
            let context =
                format!("\t}} align(8);\n\tevent.context := struct {{ {members}}};\n}};\n");
            text.push_str(&events.replacen(STREAM_END, &context, 1));
        }
        None => text.push_str(events),
    }
    let args = "u64 _args[6];";
    for ([entry, exit], prefix) in [(UNKNOWN_CALL, ""), (COMPAT_CALL, "compat_")] {
        event(
            &mut text,
            &format!("{prefix}syscall_entry_unknown"),
            entry,
            &format!("i32 _id; {args}"),
        );
        event(
            &mut text,
            &format!("{prefix}syscall_exit_unknown"),
            exit,
            &format!("i32 _id; i64 _ret; {args}"),
        );
    }
    for (is_compat, calls) in [(false, &calls.own), (true, &calls.compat)] {
        for (place, call) in calls.iter().enumerate() {
            events_of(&mut text, call, is_compat, call_ids(is_compat, place));
        }
    }
    metadata::parse(text.as_bytes()).expect("our own metadata is valid: a test reads all of it")
}

/// The two events of a call.
fn events_of(to: &mut String, call: &Call, is_compat: bool, [entry, exit]: [u16; 2]) {
    let prefix = if is_compat { "compat_" } else { "" };
    let name = format!("{prefix}syscall_entry_{}", call.name);
    event(to, &name, entry, &members(&call.entry));
    // lttng-modules declares this result as an address.
    let is_address = ["mmap", "mmap2"].contains(&call.name);
    let result = if is_address { "x64" } else { "i64" };
    let results = format!("{result} _ret; {}", members(&call.exit));
    let name = format!("{prefix}syscall_exit_{}", call.name);
    event(to, &name, exit, &results);
}

fn members(fields: &[Field]) -> String {
    fields.iter().map(Field::tsdl).collect::<Vec<_>>().join(" ")
}

fn event(to: &mut String, name: &str, id: u16, members: &str) {
    let written = writeln!(
        to,
        "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {members} }}; }};"
    );
    written.expect("writing to a string cannot fail");
}
