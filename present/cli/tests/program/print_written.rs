//! Traces of the writer: babeltrace2 reads them without a warning and prints the same lines as
//! tracebraid.

use std::path::Path;
use std::process::Command;

use crate::support::{first_difference, recorded, run, skipped, without_known_faults};
use tracebraid_ctf::write::WriteError;
use tracebraid_ctf::write::stream::PacketSize;
use tracebraid_ctf::write::trace::{Options, Session};
use tracebraid_testkit::generate::{Options as Random, generate};
use tracebraid_testkit::rewrite::{copy, write};

const SEEDS: u64 = 120;

/// The output of babeltrace2, which must not write to standard error. `None`, with a message, if it
/// is not installed.
fn babeltrace2(path: &Path) -> Option<Vec<u8>> {
    let mut command = Command::new("babeltrace2");
    command
        .env("BABELTRACE_TERM_COLOR", "never")
        .env("TZ", "UTC")
        .arg(path);
    match command.output() {
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr);
            // These warnings concern properties of random traces: header fields without a meaning
            // for readers, and losses.
            let is_of_writer = |line: &&str| {
                let known = ["WARN-MEANINGLESS-HEADER-FIELDS", "discarded"];
                !known.iter().any(|known| line.contains(known))
            };
            let told: Vec<&str> = told.lines().filter(is_of_writer).collect();
            assert_eq!(told, [""; 0], "{}", path.display());
            assert!(output.status.success(), "{}", path.display());
            Some(output.stdout)
        }
        Err(error) => {
            skipped(format_args!("babeltrace2 does not run: {error}"));
            None
        }
    }
}

/// Compares both outputs; false if babeltrace2 is not installed.
fn compare(path: &Path, what: &str) -> bool {
    let output = run(&["print".as_ref(), "--strict".as_ref(), path.as_os_str()]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{what}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let Some(theirs) = babeltrace2(path) else {
        return false;
    };
    let theirs = without_known_faults(&output.stdout, &theirs);
    assert_eq!(first_difference(&output.stdout, &theirs), None, "{what}");
    true
}

#[test]
fn random_traces() {
    let mut written = 0;
    for seed in 0..SEEDS {
        let generated = generate(&Random {
            seed,
            babeltrace: true,
            ..Random::default()
        })
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let options = Options {
            packet_size: match seed % 2 {
                0 => PacketSize::Fixed(4096),
                _ => PacketSize::UpTo(2048),
            },
            metadata_packets: seed % 3 != 0,
            ..Options::default()
        };
        match write(&generated, Session::create(&path).unwrap(), "", options) {
            Ok(()) => written += 1,
            Err(WriteError::Unsupported { .. } | WriteError::EventTooLarge { .. }) => continue,
            Err(other) => panic!("seed {seed}: {other}"),
        }
        if !compare(&path, &format!("seed {seed}")) {
            return;
        }
    }
    assert!(written > SEEDS / 6, "{written} written");
}

#[test]
fn copies_of_recorded_traces() {
    for archive in ["kernel-mix-small", "ust-cyg-profile", "perf-mix"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(archive);
        let original = recorded(archive).join(archive);
        copy(
            &original,
            Session::create(&path).unwrap(),
            Options::default(),
        )
        .unwrap();
        compare(&path, archive);
        let [ours, theirs] =
            [&path, &original].map(|path| run(&["print".as_ref(), path.as_os_str()]).stdout);
        assert_eq!(first_difference(&ours, &theirs), None, "{archive}");
    }
}
