//! User analyses: the result is the same for all numbers of threads and chunk sizes.

use std::fs;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_history::{Asked, Definition, History, build};
use tracebraid_testkit::recorded::unpacked;

use crate::{Scratch, WAYS, build_in_ways};

fn definition(name: &str) -> Definition {
    let path = format!("{}/../../docs/analyses/{name}", env!("CARGO_MANIFEST_DIR"));
    Definition::parse(&fs::read_to_string(path).unwrap()).unwrap()
}

fn asked(definition: Definition) -> Asked {
    Asked {
        definition: Some(definition),
        files: false,
    }
}

/// Running threads at system calls and interrupts, and times: values that no event record contains
/// by itself.
const THREADS: &str = r#"
name = "threads"
[[on]]
event = "syscall_entry_*"
let = { last = "last/{tid}" }
when = "!(last == \"syscall_entry_read\")"
change = [{ set = "last/{tid}", to = "{name}" }, { push = "stack/{tid}", to = "{name}" }, { add = "calls/{tid}" }]
[[on]]
event = "syscall_exit_*"
change = [{ pop = "stack/{tid}" }, { set = "ended/{cpu}", to = "{time}" }]
[[on]]
event = "irq_handler_entry"
when = "tid > 0 || irq > 1"
change = [{ add = "interrupted/{tid}", by = 3 }]
"#;

#[test]
fn the_file_depends_neither_on_threads_nor_on_chunks() {
    let cases = [
        ("kernel-ust-requests", definition("requests.toml")),
        ("kernel-mix-small", definition("running.xml")),
        ("kernel-mix-small", Definition::parse(THREADS).unwrap()),
        ("kernel-discarded", Definition::parse(THREADS).unwrap()),
        ("ust-cyg-profile", Definition::parse("[[on]]\nevent = \"lttng_ust_cyg_*_entry\"\nchange = [{ push = \"calls/{tid}\", to = \"{addr}\" }]\n[[on]]\nevent = \"lttng_ust_cyg_*_exit\"\nchange = [{ pop = \"calls/{tid}\" }]").unwrap()),
    ];
    for (name, definition) in cases {
        let set = TraceSet::open(&[unpacked(name).join(name)]).unwrap();
        let what = format!("{name}: {}", definition.name);
        let (_place, file) = build_in_ways(&set, &asked(definition), &WAYS, &what);
        let history = History::open(&file).unwrap();
        assert!(!history.meta().custom.is_empty(), "{what}");
        history.verify().unwrap();
    }
}

/// The callers equal the threads that the kernel's own attributes show in the call.
#[test]
fn threads_are_those_that_run() {
    let name = "kernel-mix-small";
    let set = TraceSet::open(&[unpacked(name).join(name)]).unwrap();
    let place = Scratch::new();
    let file = place.file("history");
    let definition = Definition::parse(THREADS).unwrap();
    let control = Control::default();
    build(
        &set,
        &[],
        asked(definition),
        &file,
        Options::default(),
        &control,
    )
    .unwrap();
    let history = History::open(&file).unwrap();
    let meta = history.meta();
    let mut compared = 0;
    for path in meta.custom.iter().filter(|path| path.starts_with("last/")) {
        let own = history.find(path, 0).unwrap();
        let call = format!("thread/{}/syscall", path.trim_start_matches("last/"));
        let call = history.find(&call, 0).unwrap();
        for since in history
            .changes(own, meta.begin, meta.end)
            .unwrap()
            .into_iter()
            .skip(1)
        {
            // The kernel's attributes identify these calls by number.
            if since.value.to_string() == "syscall_entry_unknown" {
                continue;
            }
            let entered = format!("syscall_entry_{}", history.value(call, since.time).unwrap());
            assert_eq!(since.value.to_string(), entered, "{path} at {}", since.time);
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}
