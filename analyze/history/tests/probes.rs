//! Attributes of tracebraid's own probes, in a program that is this test binary in another process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_history::{Asked, Definition, History, Since, Value};
use tracebraid_probe::standard::{counter, span_begin, span_end, ult_create, ult_exit, ult_switch};

use crate::model::Values;
use crate::{Scratch, build_asked};

/// The actions of the program, in order: on its first thread, or on the other. The attribute `step`
/// counts them.
const DEEDS: [(bool, fn()); 11] = [
    (true, || {
        span_begin(1, "outer");
        span_begin(2, "inner");
    }),
    (false, || {
        span_begin(3, "other");
        counter("size", 7);
    }),
    // Ends on another thread than it began on, and not in the order of a stack.
    (false, || span_end(1)),
    (true, || span_begin(4, "again")),
    // An id that is used again: the earlier span has not ended as far as is known.
    (true, || span_begin(3, "the same id")),
    (true, || span_end(99)),
    (true, || {
        ult_create(5, "fiber");
        ult_create(6, "fibre");
        ult_switch(0, 5);
    }),
    (true, || ult_switch(5, 6)),
    (false, || ult_switch(0, 5)),
    (false, || {
        ult_switch(5, 0);
        ult_exit(5);
        counter("size", -2);
    }),
    (true, || {
        [2, 4, 3].into_iter().for_each(span_end);
    }),
];

/// Expected attributes after each action; `{1}` and `{2}` are the threads.
const SEEN: [&str; 11] = [
    "span/{1}/1=outer span/{1}/2=inner",
    "span/{1}/1=outer span/{1}/2=inner span/{2}/1=other counter/{1}/size=7",
    "span/{1}/2=inner span/{2}/1=other counter/{1}/size=7",
    "span/{1}/1=again span/{1}/2=inner span/{2}/1=other counter/{1}/size=7",
    "span/{1}/1=again span/{1}/2=inner span/{1}/3=the_same_id counter/{1}/size=7",
    "span/{1}/1=again span/{1}/2=inner span/{1}/3=the_same_id counter/{1}/size=7",
    "span/{1}/1=again span/{1}/2=inner span/{1}/3=the_same_id counter/{1}/size=7 \
     ult/{1}:5/name=fiber ult/{1}:5/state=running ult/{1}:5/tid={1} ult/{1}:6/name=fibre ult/{1}:6/state=new",
    "span/{1}/1=again span/{1}/2=inner span/{1}/3=the_same_id counter/{1}/size=7 \
     ult/{1}:5/name=fiber ult/{1}:5/state=waiting ult/{1}:6/name=fibre ult/{1}:6/state=running ult/{1}:6/tid={1}",
    "span/{1}/1=again span/{1}/2=inner span/{1}/3=the_same_id counter/{1}/size=7 \
     ult/{1}:5/name=fiber ult/{1}:5/state=running ult/{1}:5/tid={2} \
     ult/{1}:6/name=fibre ult/{1}:6/state=running ult/{1}:6/tid={1}",
    "span/{1}/1=again span/{1}/2=inner span/{1}/3=the_same_id counter/{1}/size=-2 \
     ult/{1}:6/name=fibre ult/{1}:6/state=running ult/{1}:6/tid={1}",
    "counter/{1}/size=-2 ult/{1}:6/name=fibre ult/{1}:6/state=running ult/{1}:6/tid={1}",
];

const THREADS: &str = "TRACED_THREADS";

/// Runs in another process.
#[test]
fn program() {
    let Some(to) = std::env::var_os(THREADS) else {
        return;
    };
    let thread = |orders: Receiver<fn()>, done: Sender<String>| {
        move || {
            let own = fs::read_link("/proc/thread-self").unwrap();
            done.send(own.file_name().unwrap().to_string_lossy().into_owned())
                .unwrap();
            for order in orders {
                order();
                done.send(String::new()).unwrap();
            }
        }
    };
    let (mut orders, mut answers, mut threads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..2 {
        let ((order, ordered), (done, answer)) = (channel(), channel());
        orders.push(order);
        answers.push(answer);
        threads.push(std::thread::spawn(thread(ordered, done)));
    }
    let ids: Vec<String> = answers
        .iter()
        .map(|answer| answer.recv().unwrap())
        .collect();
    for (step, (is_first, deed)) in (0..).zip(DEEDS) {
        let thread = usize::from(!is_first);
        orders[thread].send(deed).unwrap();
        answers[thread].recv().unwrap();
        counter("step", step);
    }
    fs::write(to, format!("{} {}", std::process::id(), ids.join(" "))).unwrap();
}

fn recorded(session: &Scratch) -> (TraceSet, [String; 3]) {
    let threads = session.file("threads");
    fs::write(session.file("probe.conf"), "correlation = off\n").unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["--exact", "probes::program"])
        .env(THREADS, &threads)
        .env("TRACEBRAID_SESSION", session.file(""));
    assert!(program.output().unwrap().status.success());
    let threads = fs::read_to_string(threads).unwrap();
    let ids: Vec<String> = threads.split(' ').map(str::to_owned).collect();
    let set = TraceSet::open(&[session.file("ust")]).unwrap();
    (set, ids.try_into().unwrap())
}

/// Runs in another process: nested spans, some of which never end, and counters, on two threads.
#[test]
fn program_of_many() {
    if std::env::var_os(MANY).is_none() {
        return;
    }
    // Keeps both threads at about the same position on a busy machine.
    let barrier = Arc::new(Barrier::new(2));
    let thread = |first: u64| {
        let barrier = barrier.clone();
        move || {
            for number in 0..MOST {
                if number % 32 == 0 {
                    barrier.wait();
                }
                let id = first + number;
                span_begin(id, ["outer", "inner", "more"][number as usize % 3]);
                counter("size", number as i64);
                // The previous span encloses this one; some remain open.
                if number % 2 == 1 {
                    span_end(id);
                    if number % 512 != 5 {
                        span_end(id - 1);
                    }
                }
            }
        }
    };
    let threads = [0, 1 << 32].map(|first| std::thread::spawn(thread(first)));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

const MANY: &str = "TRACED_MANY";
const MOST: u64 = 12_000;

/// The trace of that program.
pub(crate) fn many(session: &Scratch) -> TraceSet {
    fs::write(session.file("probe.conf"), "correlation = off\n").unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["--exact", "probes::program_of_many"])
        .env(MANY, "1")
        .env("TRACEBRAID_SESSION", session.file(""));
    assert!(program.output().unwrap().status.success());
    TraceSet::open(&[session.file("ust")]).unwrap()
}

/// With another analysis, which reads spans.
fn asked() -> Asked {
    let own = r#"
[[on]]
event = "tracebraid:counter"
let = { open = "span/{packet.tid}/1" }
when = "payload.name == size"
change = [{ set = "sized", to = "{open}" }]
"#;
    Asked {
        definition: Some(Definition::parse(own).unwrap()),
        ..Asked::default()
    }
}

#[test]
fn spans_counters_and_user_level_threads_are_what_the_program_did() {
    let session = Scratch::new();
    let (set, [process, first, second]) = recorded(&session);
    let file = session.file("history");
    let mut whole = None;
    for (threads, chunk) in [(1, u64::MAX), (2, 1), (2, 0)] {
        build_asked(&set, asked(), &file, threads, chunk);
        let bytes = fs::read(&file).unwrap();
        assert!(
            *whole.get_or_insert_with(|| bytes.clone()) == bytes,
            "{threads} threads"
        );
    }
    let history = History::open(&file).unwrap();
    let meta = history.meta();
    let step = format!("counter/{process}/step");
    let step = history.find(&step, 0).unwrap();
    for (at, seen) in (0..).zip(SEEN) {
        let is_there = |value: &Value| *value == Value::Number(at);
        let reached = history.changes(step, meta.begin, meta.end + 1).unwrap();
        let reached = reached.iter().find(|since| is_there(&since.value)).unwrap();
        let found = history.at(reached.time, |_| true).unwrap();
        let found = found
            .iter()
            .map(|(attribute, value)| (history.path(*attribute), value.to_string()));
        let mut found: Values = found.collect();
        found.retain(|path, _| !path.ends_with("/step"));
        let seen = seen
            .replace("counter/{1}", "counter/{p}")
            .replace("ult/{1}", "ult/{p}");
        let seen = seen
            .replace("{1}", &first)
            .replace("{2}", &second)
            .replace("{p}", &process);
        let pairs = seen
            .split_whitespace()
            .map(|pair| pair.split_once('=').unwrap());
        let mut expected: Values = pairs
            .map(|(path, value)| (path.to_owned(), value.replace('_', " ")))
            .collect();
        if at >= 1 {
            expected.insert("sized".to_owned(), "other".to_owned());
        }
        // The span of that thread has ended by then.
        if at >= 9 {
            expected.remove("sized");
        }
        assert_eq!(found, expected, "step {at}");
    }
}

/// Copies a directory, and sets the machine of its traces.
fn copied(from: &Path, to: &Path, machine: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, name) = {
            let entry = entry.unwrap();
            (entry.path(), entry.file_name())
        };
        if from.is_dir() {
            copied(&from, &to.join(name), machine);
        } else if name == "metadata" {
            let text = fs::read_to_string(&from).unwrap();
            let (before, rest) = text.split_once("hostname = \"").unwrap();
            let (_, behind) = rest.split_once('"').unwrap();
            fs::write(
                to.join(name),
                format!("{before}hostname = \"{machine}\"{behind}"),
            )
            .unwrap();
        } else {
            fs::copy(&from, to.join(name)).unwrap();
        }
    }
}

/// Processes, threads and spans of two machines may have the same numbers.
#[test]
fn machines_are_told_apart() {
    let session = Scratch::new();
    let (_, [process, ..]) = recorded(&session);
    let machines = ["one", "other"].map(|machine| {
        let to = session.file(machine);
        copied(&session.file("ust"), &to, machine);
        to
    });
    let changes = |traces: &[PathBuf]| {
        let file = session.file("history");
        build_asked(
            &TraceSet::open(traces).unwrap(),
            Asked::default(),
            &file,
            2,
            1,
        );
        let history = History::open(&file).unwrap();
        let (begin, end) = (history.meta().begin, history.meta().end + 1);
        let met = history.met(begin, end, |_| true).unwrap().into_iter();
        let of = |attribute| history.changes(attribute, begin, end).unwrap();
        let changes = met.map(|attribute| (history.path(attribute), of(attribute)));
        changes.collect::<BTreeMap<String, Vec<Since>>>()
    };
    let alone = changes(&machines[..1]);
    assert!(alone.contains_key(&format!("counter/{process}/size")) && alone.len() > 8);
    let both = changes(&machines);
    let expected = ["one", "other"].into_iter().flat_map(|machine| {
        let of = |(path, changes): (&String, &Vec<Since>)| {
            (format!("{machine}/{path}"), changes.clone())
        };
        alone.iter().map(of).collect::<Vec<_>>()
    });
    assert_eq!(both, expected.collect());
}
