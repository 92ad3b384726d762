//! Lines of random traces equal those of babeltrace2, except for its known faults.

use crate::support::{babeltrace2, first_difference, run, without_known_faults};
use tracebraid_testkit::generate::{Options, generate};

const SEEDS: u64 = 60;

#[test]
fn random_traces() {
    for seed in 0..SEEDS {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            seed,
            events: 100,
            babeltrace: true,
            ..Options::default()
        };
        generate(&options).unwrap().save(directory.path()).unwrap();
        let path = directory.path().to_str().unwrap();
        let output = run(&["print", "--strict", path]);
        assert_eq!(output.status.code(), Some(0), "seed {seed}");
        assert!(!output.stdout.is_empty(), "seed {seed}");
        let Some(theirs) = babeltrace2(&[path]) else {
            return;
        };
        let theirs = without_known_faults(&output.stdout, &theirs);
        assert_eq!(
            first_difference(&output.stdout, &theirs),
            None,
            "seed {seed}"
        );
    }
}
