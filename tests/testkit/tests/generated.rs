//! Generated traces: the reference reader returns the generated values, and the written metadata
//! parses to the schema from which it was written.

use tracebraid_ctf::schema::CtfVersion;
use tracebraid_testkit::generate::{Options, generate};
use tracebraid_testkit::{compare, metadata};

/// Seeds of each kind; `TESTKIT_SEEDS` changes their number.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("TESTKIT_SEEDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(300);
    0..count
}

fn check_all(version: CtfVersion, babeltrace: bool) {
    let mut events = 0;
    let mut failures = Vec::new();
    for seed in seeds() {
        let options = Options {
            seed,
            version,
            babeltrace,
            ..Options::default()
        };
        let generated = generate(&options).unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        events += generated.event_count();
        if let Err(difference) = compare::check(&generated, &generated.class) {
            failures.push(format!("seed {seed}: {difference}"));
            continue;
        }
        match metadata::parse(&generated.metadata) {
            Ok(class) => {
                if class != generated.class {
                    failures.push(format!(
                        "seed {seed}: the schema read differs from that written"
                    ));
                }
                if let Err(difference) = compare::check(&generated, &class) {
                    failures.push(format!("seed {seed}, as parsed: {difference}"));
                }
            }
            Err(error) => failures.push(format!("seed {seed}: {error:#}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures, the first: {}",
        failures.len(),
        failures[0]
    );
    assert!(
        events as u64 > seeds().end * 20,
        "only {events} events in {} traces",
        seeds().end
    );
}

#[test]
fn ctf_1_8_is_read_as_written() {
    check_all(CtfVersion::V1_8, false);
}

#[test]
fn ctf_1_8_for_babeltrace_is_read_as_written() {
    check_all(CtfVersion::V1_8, true);
}

#[test]
fn ctf_2_is_read_as_written() {
    check_all(CtfVersion::V2_0, false);
}
