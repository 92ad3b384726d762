//! OTF2, read by otf2-print and by Score-P's Python module.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tracebraid_export::levels::Otf2Writer;
use tracebraid_levels::exported::Kind;
use tracebraid_testkit::skip::skipped;

use crate::played::{BEGIN, Played, play, tool};

fn write(directory: &Path, seed: u64, steps: u64) -> Played {
    play(
        seed,
        steps,
        &mut Otf2Writer::new(directory).expect("a directory"),
    )
}

/// Titles of locations by number.
fn locations(definitions: &str) -> BTreeMap<u64, String> {
    let lines = definitions
        .lines()
        .filter(|line| line.starts_with("LOCATION "));
    let location = |line: &str| {
        let number = line.split_whitespace().nth(1)?.parse().ok()?;
        let title = line.split("Name: \"").nth(1)?;
        let end = title.find("\" <")?;
        Some((number, title[..end].to_owned()))
    };
    lines
        .map(|line| location(line).expect("a location"))
        .collect()
}

/// An event as otf2-print shows it: kind, location, time, region.
fn event(line: &str) -> Option<(bool, u64, i64, String)> {
    let mut words = line.split_whitespace();
    let is_enter = match words.next()? {
        "ENTER" => true,
        "LEAVE" => false,
        _ => return None,
    };
    let location = words.next()?.parse().ok()?;
    let time = words.next()?.parse().ok()?;
    let region = line.split("Region: \"").nth(1)?;
    let end = region.rfind("\" <")?;
    Some((is_enter, location, time, region[..end].to_owned()))
}

/// Exclusive times by location and region; functions count as the thread's running.
fn sums(events: &str, titles: &BTreeMap<u64, String>) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    let mut stacks: BTreeMap<u64, (Vec<String>, i64)> = BTreeMap::new();
    for (is_enter, location, time, region) in events.lines().filter_map(event) {
        let (stack, since) = stacks.entry(location).or_default();
        if let Some(top) = stack.last() {
            let name = if top == "function" { "running" } else { top };
            let key = (titles[&location].clone(), name.to_owned());
            *sums.entry(key).or_default() += time - *since;
        }
        *since = time;
        match is_enter {
            true => stack.push(region),
            false => assert_eq!(stack.pop(), Some(region)),
        }
    }
    assert!(stacks.values().all(|(stack, _)| stack.is_empty()));
    sums.retain(|_, sum| *sum > 0);
    sums
}

#[test]
fn exclusive_times_are_the_sums_of_states() {
    for seed in 0..3 {
        let directory = TempDir::new().expect("a directory");
        let played = write(directory.path(), seed, 3000);
        let anchor = directory.path().join("traces.otf2");
        let print = |option: &str| tool("otf2-print", &[option.as_ref(), anchor.as_os_str()]);
        let (Some(definitions), Some(events)) = (print("-G"), print("-Werror")) else {
            return;
        };
        let titles = locations(&definitions);
        assert_eq!(titles.len(), 13);
        let found = sums(&events, &titles);
        let mut expected = BTreeMap::new();
        for kind in [Kind::Cpu, Kind::Lwp, Kind::Thread] {
            expected.extend(played.of(kind).into_iter().filter(|(_, sum)| *sum > 0));
        }
        assert_eq!(found.len(), expected.len());
        for (key, sum) in expected {
            assert_eq!(found.get(&key), Some(&sum), "{key:?}");
        }
        let length = played.end - BEGIN;
        assert!(
            definitions.contains(&format!("Length: {length}")),
            "{definitions}"
        );
    }
}

/// More events than a chunk has room for, and many definitions.
#[test]
fn chunks_follow_each_other() {
    let directory = TempDir::new().expect("a directory");
    let played = write(directory.path(), 1, 2_000_000);
    let anchor = directory.path().join("traces.otf2");
    let Some(events) = tool("otf2-print", &["-Werror".as_ref(), anchor.as_os_str()]) else {
        return;
    };
    let entered = events.lines().filter(|line| line.starts_with("ENTER"));
    let entered = entered.filter(|line| line.contains("\"function\"")).count() as u64;
    assert_eq!(entered, played.functions.values().sum::<u64>());
    let size = std::fs::metadata(directory.path().join("traces/1.evt"))
        .expect("a file")
        .len();
    assert!(size > 2 << 20, "{size}");
}

#[test]
fn the_python_reader_finds_the_same_events() {
    const READ: &str = "
import otf2, sys
with otf2.reader.open(sys.argv[1]) as trace:
    print(sum(1 for _ in trace.events), len(list(trace.definitions.locations)))
";
    let directory = TempDir::new().expect("a directory");
    write(directory.path(), 5, 2000);
    let anchor = directory.path().join("traces.otf2");
    let has_module = Command::new("/usr/bin/python3")
        .args(["-c", "import otf2"])
        .status();
    if !has_module.is_ok_and(|status| status.success()) {
        return skipped("python3-otf2 is missing: run scripts/setup test");
    }
    let mut python = Command::new("/usr/bin/python3");
    let output = python
        .args(["-c", READ])
        .arg(&anchor)
        .output()
        .expect("python");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8(output.stdout).expect("text");
    let events = tool("otf2-print", &[anchor.as_os_str()]).expect("otf2-print");
    let count = events.lines().filter_map(event).count();
    assert_eq!(said.trim(), format!("{count} 13"));
}
