//! A recorded program agrees with its own log, segment by segment.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The example that cargo built with this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples/tasks")
}

/// An event record.
struct Event {
    time: u64,
    tid: u64,
    name: String,
    text: String,
}

impl Event {
    fn field(&self, name: &str) -> &str {
        let (_, rest) = self.text.split_once(&format!(" {name} = ")).unwrap();
        rest.split([',', '}'])
            .next()
            .unwrap()
            .trim()
            .trim_matches('"')
    }

    fn number(&self, name: &str) -> u64 {
        self.field(name).parse().unwrap()
    }
}

/// The event records of a trace, with the raw values of its clock, CLOCK_MONOTONIC.
fn events(trace: &Path) -> Vec<Event> {
    let babeltrace2 = Command::new("babeltrace2")
        .args(["--clock-cycles", "--no-delta"])
        .arg(trace)
        .output();
    let output = babeltrace2.expect("babeltrace2 is installed");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let event = |line: &str| {
        let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
        let name = rest
            .split_whitespace()
            .find(|word| word.starts_with("tracebraid:"))?;
        let mut event = Event {
            time: time.parse().unwrap(),
            tid: 0,
            name: name.trim_matches(':').to_owned(),
            text: rest.to_owned(),
        };
        event.tid = event.number("tid");
        Some(event)
    };
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(event)
        .collect()
}

/// Begin, end and user-level thread of each time that one ran, by thread.
type Intervals = HashMap<u64, Vec<(u64, u64, u64)>>;

/// Follows the event records: intervals, and reasons of waits with their wakers.
fn follow(events: &[Event]) -> (Intervals, BTreeSet<(String, bool)>) {
    let mut current: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut blocked: HashMap<u64, String> = HashMap::new();
    let mut intervals = Intervals::new();
    let mut waits = BTreeSet::new();
    for event in events {
        match event.name.as_str() {
            "tracebraid:ult_switch" => {
                let (prev, next) = (event.number("prev_ult"), event.number("next_ult"));
                let (running, since) = current
                    .insert(event.tid, (next, event.time))
                    .unwrap_or_default();
                assert_eq!(running, prev);
                assert!(!blocked.contains_key(&next), "{next} runs and is blocked");
                intervals
                    .entry(event.tid)
                    .or_default()
                    .push((since, event.time, prev));
            }
            "tracebraid:ult_block" => {
                let old = blocked.insert(event.number("ult"), event.field("reason").to_owned());
                assert_eq!(old, None);
            }
            "tracebraid:ult_wake" => {
                let reason = blocked.remove(&event.number("ult")).expect("blocked");
                let waker = current.get(&event.tid).map_or(0, |of| of.0);
                waits.insert((reason, waker > 0));
            }
            _ => {}
        }
    }
    (intervals, waits)
}

#[test]
fn tasks_run_where_they_say() {
    let session = std::env::temp_dir().join(format!("tracebraid-tokio-{}", std::process::id()));
    std::fs::create_dir(&session).unwrap();
    let output = Command::new(example())
        .arg("3")
        .env("TRACEBRAID_SESSION", &session)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let events = events(&session);
    std::fs::remove_dir_all(&session).unwrap();
    let (intervals, waits) = follow(&events);
    let mut ult_of: HashMap<&str, u64> = HashMap::new();
    let log = String::from_utf8(output.stdout).unwrap();
    for line in log.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [tid, begin, end] = [1, 2, 3].map(|at| words[at].parse::<u64>().unwrap());
        // The clocks differ by some nanoseconds.
        let covers = |of: &&(u64, u64, u64)| of.0 <= begin + 100 && of.1 + 100 >= end;
        let found = intervals[&tid].iter().find(covers);
        let ult = found
            .unwrap_or_else(|| panic!("no task ran during {line}"))
            .2;
        assert!(
            ult > 0 && *ult_of.entry(words[0]).or_insert(ult) == ult,
            "{line}"
        );
    }
    let tasks: BTreeSet<u64> = ult_of.values().copied().collect();
    assert_eq!((ult_of.len(), tasks.len()), (23, 23));
    // A task that releases the mutex wakes the next one; timers are the runtime's.
    for wait in [("mutex", true), ("sleep", false)] {
        assert!(waits.contains(&(wait.0.to_owned(), wait.1)), "{waits:?}");
    }
    let exits = events
        .iter()
        .filter(|event| event.name == "tracebraid:ult_exit");
    assert!(exits.count() >= 22);
}

#[test]
fn without_a_session_the_program_runs_as_ever() {
    let output = Command::new(example())
        .env_remove("TRACEBRAID_SESSION")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
