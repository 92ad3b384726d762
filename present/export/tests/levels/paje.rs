//! Pajé, read by pj_dump.

use std::collections::BTreeMap;

use tempfile::TempDir;
use tracebraid_export::levels::PajeWriter;
use tracebraid_levels::exported::{Kind, LinkKind};

use crate::played::{Played, play, tool};

fn nanoseconds(seconds: &str) -> i64 {
    let seconds: f64 = seconds.parse().expect("a number");
    (seconds * 1e9).round() as i64
}

/// Sums of states by container and value, from the lines of pj_dump.
fn sums(dump: &str, kind: &str) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for line in dump.lines().filter(|line| line.starts_with("State, ")) {
        let words: Vec<&str> = line.splitn(8, ", ").collect();
        let [_, container, of, _, _, length, _, value] = words[..] else {
            panic!("{line}");
        };
        if of == kind && value != "ended" && value != "elsewhere" {
            // The container of an LWP is one of several: `LWP 41 on CPU 0`.
            let container = container.split(" on CPU").next().unwrap_or(container);
            let key = (container.replace(" unknown", ""), value.to_owned());
            *sums.entry(key).or_default() += nanoseconds(length);
        }
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

fn expected(played: &Played, kind: Kind) -> BTreeMap<(String, String), i64> {
    let mut sums = BTreeMap::new();
    for ((title, name), sum) in played.of(kind) {
        let name = match kind {
            Kind::Lwp if name == "worker" => "running".to_owned(),
            _ => name,
        };
        *sums.entry((title.replace('"', "'"), name)).or_default() += sum;
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

#[test]
fn sums_of_states_and_numbers_of_links_are_those_of_pj_dump() {
    for seed in 0..3 {
        let directory = TempDir::new().expect("a directory");
        let file = directory.path().join("trace.paje");
        let output = std::fs::File::create(&file).expect("a file");
        let output = std::io::BufWriter::new(output);
        let played = play(seed, 3000, &mut PajeWriter::new(output).expect("written"));
        let arguments = ["-l".as_ref(), "9".as_ref(), file.as_os_str()];
        let Some(dump) = tool("pj_dump", &arguments) else {
            return;
        };
        for (kind, state) in [
            (Kind::Cpu, "CPU state"),
            (Kind::Lwp, "LWP state"),
            (Kind::Thread, "Thread state"),
        ] {
            let found = sums(&dump, state);
            let expected = expected(&played, kind);
            let titles =
                |of: &BTreeMap<(String, String), i64>| of.keys().cloned().collect::<Vec<_>>();
            assert_eq!(titles(&found), titles(&expected), "{kind:?}");
            for (key, sum) in expected {
                // pj_dump computes in seconds as 64-bit floating point.
                assert!(
                    (found[&key] - sum).abs() < 2000,
                    "{key:?}: {} {sum}",
                    found[&key]
                );
            }
        }
        for (kind, name) in [
            (LinkKind::WakeUp, ", Wake-up, "),
            (LinkKind::LwpMigration, ", LWP migration, "),
            (LinkKind::ThreadMigration, ", Thread migration, "),
        ] {
            let links = dump.lines().filter(|line| line.starts_with("Link, "));
            let links = links.filter(|line| line.contains(name)).count() as u64;
            assert_eq!(links, played.links[&kind], "{kind:?}");
        }
        let events = dump
            .lines()
            .filter(|line| line.ends_with(", program:event"));
        assert_eq!(events.count() as u64, played.events);
    }
}
