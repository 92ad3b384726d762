//! The relation of the clocks of device and trace, where a layer gives devices a clock with a known
//! offset and drift.

use std::path::Path;

use serde_json::Value;
use tracebraid_testkit::rng::Rng;

use crate::counted::{Run, built, built_with, run};
use crate::support::text;

/// A clock of devices: nanoseconds, and billionths.
#[derive(Clone, Copy, Debug)]
struct Skew {
    offset: i64,
    drift: i64,
}

impl Skew {
    fn random(rng: &mut Rng) -> Skew {
        let offset = rng.below(1 << 50) as i64;
        let drift = rng.below(400_000) as i64 - 200_000;
        Skew { offset, drift }
    }

    /// A time of the clock that PoCL's devices have, given one of this clock.
    fn raw(self, device: i64) -> i64 {
        let since = i128::from(device - self.offset) * 1_000_000_000;
        (since / i128::from(1_000_000_000 + self.drift)) as i64
    }
}

fn recorded(program: &Path, layer: &Path, skew: Skew, has_timer: bool) -> Run {
    let Skew { offset, drift } = skew;
    // The first layer is that which the others call last.
    let timer = if has_timer { "TIMER=1" } else { "" };
    let line = format!(
        "{timer} SKEW='{offset} {drift}' OPENCL_LAYERS={}:$OPENCL_LAYERS exec \"$@\"",
        layer.display()
    );
    run(program, &[], Some(&["--gpu"]), &["sh", "-c", &line, "sh"])
}

/// The times that the program printed: raw, monotonic, error.
fn clocks(run: &Run) -> Vec<[i64; 3]> {
    let output = String::from_utf8(run.output.stdout.clone()).expect("UTF-8");
    let lines = output
        .lines()
        .filter_map(|line| line.strip_prefix("clocks "));
    let numbers = lines.map(|line| {
        let numbers = line
            .split(' ')
            .map(|number| number.parse().expect("a number"));
        numbers
            .collect::<Vec<i64>>()
            .try_into()
            .expect("three numbers")
    });
    numbers.collect()
}

/// Nanoseconds from 1970 to the zero of the trace's clock.
fn zero(run: &Run) -> i64 {
    let files = walk(Path::new(&run.trace()));
    let metadata = files
        .iter()
        .find(|path| path.ends_with("metadata") && path.to_string_lossy().contains("/ust/"));
    let metadata =
        std::fs::read_to_string(metadata.expect("a trace of the program")).expect("metadata");
    let number = |key: &str| -> i64 {
        let (_, rest) = metadata
            .split_once(&format!("\t{key} = "))
            .expect("a clock");
        let (number, _) = rest.split_once(';').expect("a number");
        number.parse().expect("a number")
    };
    number("offset_s") * 1_000_000_000 + number("offset")
}

fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let of = |path: std::path::PathBuf| {
        if path.is_dir() {
            walk(&path)
        } else {
            vec![path]
        }
    };
    entries
        .flat_map(|entry| of(entry.expect("an entry").path()))
        .collect()
}

/// The largest error that the report states, which the true one must not exceed.
fn known_within(skew: Skew, run: &Run) -> u64 {
    let json = text(&["gpu", "--format", "json", &run.trace()]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let [clock] = report["clocks"].as_array().expect("rows").as_slice() else {
        panic!("one device: {report:#}");
    };
    assert_eq!(clock["relation"], "accurate", "{skew:?}: {clock}");
    let number = |key: &str| clock[key].as_i64().expect("a number");
    let at = number("at_device_ns");
    let raw = skew.raw(at);
    let clocks = clocks(run);
    let [[first, monotonic, one], [last, later, other]] = clocks.as_slice() else {
        panic!("two times: {clocks:?}");
    };
    assert!(*first < raw && raw < *last, "{skew:?}: {clock}");
    let part = (raw - first) as f64 / (last - first) as f64;
    let truth = monotonic + ((later - monotonic) as f64 * part) as i64 + zero(run) - at;
    let error = number("offset_ns").abs_diff(truth);
    let known = clock["error_ns"].as_u64().expect("bounds");
    assert!(
        error <= known + (*one).max(*other) as u64,
        "{skew:?}: {error} ns off: {clock}"
    );
    known
}

/// Ten of a hundred: `TRACEBRAID_CLOCK_RUNS` sets the number.
#[test]
fn clocks_of_devices_are_recovered_within_their_bounds() {
    let (Some(program), Some(layer)) = (built("skewed"), built_with("skew", &["-shared", "-fPIC"]))
    else {
        return;
    };
    let runs =
        std::env::var("TRACEBRAID_CLOCK_RUNS").map_or(10, |runs| runs.parse().expect("a number"));
    let mut rng = Rng::new(1);
    for _ in 0..runs {
        let skew = Skew::random(&mut rng);
        let has_timer = rng.chance(50);
        let run = recorded(&program, &layer, skew, has_timer);
        assert!(run.output.status.success(), "{:?}", run.output);
        let timers = run.events().remove("lttng_ust_opencl_devices:device_timer");
        assert_eq!(timers.is_some(), has_timer);
        let known = known_within(skew, &run);
        println!("{skew:?}, timer: {has_timer}: known within {known} ns");
    }
}
