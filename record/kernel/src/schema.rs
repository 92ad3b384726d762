//! The schema of a recording: the events of `events.tsdl` and those of all system calls.

use std::fmt::Write as _;

use tracebraid_ctf::metadata;
use tracebraid_ctf::schema::TraceClass;

use crate::calls::{Call, Field};

/// Id of the entry of the first system call; each has two.
const FIRST_CALL: u16 = 1000;

/// Ids of entry and exit of calls whose arguments are not known: of numbers that the table does not
/// have, and of 32-bit programs.
pub(crate) const UNKNOWN_CALL: [u16; 2] = [990, 991];
pub(crate) const COMPAT_CALL: [u16; 2] = [992, 993];

/// Ids of entry and exit of the call that stands there in the table.
pub(crate) fn call_ids(place: usize) -> [u16; 2] {
    let entry = FIRST_CALL + 2 * place as u16;
    [entry, entry + 1]
}

/// The schema, with an empty environment and a clock that begins at 0.
pub(crate) fn schema(calls: &[Call]) -> TraceClass {
    let mut text = String::from("/* CTF 1.8 */\n");
    text.push_str(include_str!("events.tsdl"));
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
    for (place, call) in calls.iter().enumerate() {
        let [entry, exit] = call_ids(place);
        event(
            &mut text,
            &format!("syscall_entry_{}", call.name),
            entry,
            &members(&call.entry),
        );
        // lttng-modules shows this result as the address that it is.
        let result = if call.name == "mmap" { "x64" } else { "i64" };
        let results = format!("{result} _ret; {}", members(&call.exit));
        event(&mut text, &format!("syscall_exit_{}", call.name), exit, &results);
    }
    metadata::parse(text.as_bytes()).expect("our own metadata is valid: a test reads all of it")
}

fn members(fields: &[Field]) -> String {
    fields.iter().map(Field::tsdl).collect::<Vec<_>>().join(" ")
}

fn event(to: &mut String, name: &str, id: u16, members: &str) {
    let written = writeln!(
        to,
        "event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {members} }}; }};"
    );
    written.expect("a string takes what it is given");
}
