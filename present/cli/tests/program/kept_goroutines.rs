//! The recording of the case study of goroutines: both schedulers in one trace explain slow requests,
//! and the times of each goroutine are those of Go's own reader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::text;

const STUDY: &str = "goroutine-preemption";
const HOG: &str = "cpu-hog";
const HOLDER: &str = "main.(*shop).renew";

fn kept(file: &str) -> String {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/case-studies");
    let path = studies.join(STUDY).join(file);
    path.to_str().expect("UTF-8").to_owned()
}

/// The unpacked recording, and its super-trace.
struct Recording {
    directory: TempDir,
}

static RECORDING: LazyLock<Recording> = LazyLock::new(|| {
    let directory = TempDir::new().expect("a directory");
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(kept("recording.tar.xz"));
    let unpacked = tar.arg("-C").arg(directory.path()).status();
    assert!(unpacked.expect("tar runs").success());
    let recording = Recording { directory };
    let (trace, merged) = (recording.path(STUDY), recording.path("super"));
    text(&["levels", "merge", &trace, "-o", &merged]);
    recording
});

impl Recording {
    fn path(&self, name: &str) -> String {
        let path = self.directory.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    /// The JSON of a command on the super-trace.
    fn json(&self, command: &[&str]) -> Value {
        let merged = self.path("super");
        let output = text(&[command, &["--format", "json", &merged]].concat());
        serde_json::from_str(&output).expect("JSON")
    }
}

fn rows<'v>(report: &'v Value, table: &str) -> &'v [Value] {
    let rows = report[table].as_array();
    rows.unwrap_or_else(|| panic!("no {table}"))
}

/// Whether these frames occur in this order, with others between them.
fn goes(frames: &Value, way: &[&str]) -> bool {
    let mut frames = frames.as_array().expect("frames").iter();
    way.iter().all(|wanted| frames.any(|frame| frame == wanted))
}

/// Checks that the largest difference of slow requests is the wait for a mutex whose holder was
/// preempted.
fn explains_slow_requests(database: &str) {
    let groups = ["--a", "duration < 5ms", "--b", "duration > 7ms"];
    let compare = ["compare", "--format", "json"];
    let compared = text(&[&compare[..], &groups, &[database]].concat());
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    let first = &compared["contexts"][0];
    let cause = [
        "main.(*shop).lookUp",
        "sync.(*RWMutex).RLock",
        "ult_wait_sync()",
        &format!("<{HOLDER}>"),
        "[preempted]",
        &format!("<{HOG}>"),
    ];
    assert!(first["is_significant"] == true, "{first:#}");
    assert!(goes(&first["context"], &cause), "{first:#}");
}

#[test]
fn the_kept_database_names_the_goroutine_and_who_preempted_it() {
    explains_slow_requests(&kept("requests.db"));
}

#[test]
fn the_kept_recording_gives_it_again() {
    let database = RECORDING.path("requests.db");
    let build = ["executions", "build", "--span", "request", "-o"];
    text(&[&build[..], &[&database, &RECORDING.path("super")]].concat());
    explains_slow_requests(&database);
}

#[test]
fn goroutines_are_delayed_most_by_the_hog() {
    let report = RECORDING.json(&["levels", "--top", "0"]);
    let mut by: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows(&report, "preempted_by") {
        let name = row["preemptor"]["name"].as_str().unwrap_or_default();
        *by.entry(name).or_default() += row["preempted_ns"].as_u64().expect("a number");
    }
    let hog = by[HOG];
    let others: u64 = by.values().sum::<u64>() - hog;
    assert!(hog > others, "{by:?}");
    assert_eq!(rows(&report, "preempted_by")[0]["preemptor"]["name"], HOG);
    assert_eq!(rows(&report, "preempted_by")[0]["name"], HOLDER);
}

/// The path of the slowest request goes through the goroutine that holds the lock, by its full name.
#[test]
fn the_critical_path_of_the_slowest_request_names_both() {
    let list = ["executions", "list", "--format", "json", "--top", "1"];
    let list = text(&[&list[..], &[&kept("requests.db")]].concat());
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let number = |name: &str| list[0][name].as_i64().expect("a number");
    let begin = number("begin_ns");
    let end = begin + number("duration_ns");
    let at = |time: i64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let (tid, begin, end) = (number("tid").to_string(), at(begin), at(end));
    let path = [
        "critical-path",
        "--tid",
        &tid,
        "--from",
        &begin,
        "--to",
        &end,
    ];
    let report = RECORDING.json(&path);
    let tree = &report["paths"][0]["tree"];
    let holder = &tree["waits"][0];
    let name = holder["name"].as_str().expect("a name");
    assert!(name.starts_with(HOLDER), "{tree:#}");
    assert_eq!(holder["link"], "ult_wait_sync, woken by");
    let part = &holder["parts"][0];
    assert_eq!(part["reason"], "preempted", "{holder:#}");
    let detail = part["detail"].as_str().expect("a detail");
    assert!(detail.starts_with(&format!("by {HOG} ")), "{detail}");
    let whole = tree["duration_ns"].as_u64().expect("a number");
    assert!(part["duration_ns"].as_u64() > Some(whole / 2), "{tree:#}");
}

/// Goroutines that begin and end within the recording.
fn whole_goroutines() -> BTreeSet<u64> {
    let printed = |name: &str| -> BTreeSet<u64> {
        let trace = RECORDING.path(&format!("{STUDY}/ust"));
        let lines = text(&["print", "--format", "json", "--name", name, &trace]);
        let id = |line: &str| {
            let record: Value = serde_json::from_str(line).expect("JSON");
            record["payload"]["ult"].as_u64().expect("an id")
        };
        lines.lines().map(id).collect()
    };
    let ended = printed("tracebraid:ult_exit");
    &printed("tracebraid:ult_create") & &ended
}

/// To the nanosecond. Go takes a goroutine whose thread is preempted as running.
#[test]
fn times_of_goroutines_are_those_of_go() {
    let summary = std::fs::read(RECORDING.path(&format!("{STUDY}.truth/summary.json")));
    let summary: Value = serde_json::from_slice(&summary.expect("a summary")).expect("JSON");
    let report = RECORDING.json(&["levels", "--top", "0"]);
    let threads: BTreeMap<u64, &Value> = rows(&report, "threads")
        .iter()
        .map(|row| (row["ult"].as_u64().expect("an id"), row))
        .collect();
    let whole = whole_goroutines();
    assert!(whole.len() > 1000, "{} goroutines", whole.len());
    for of_go in rows(&summary, "goroutines") {
        let id = of_go["id"].as_u64().expect("an id");
        if !whole.contains(&id) {
            continue;
        }
        let number = |name: &str| threads[&id][name].as_i64().expect("a number");
        let go = |name: &str| of_go[name].as_i64().expect("a number");
        let block = of_go["block"].as_object().expect("reasons").values();
        let blocked: i64 = block.map(|time| time.as_i64().expect("a number")).sum();
        let parts = ["active_ns", "preempted_ns", "kernel_ns", "lwp_ready_ns"];
        let with_lwp: i64 = parts.map(number).iter().sum();
        let own = [with_lwp, number("ready_ns"), number("blocked_ns")];
        let with_thread = go("exec") + go("syscall") + go("syscall_block");
        assert_eq!(own, [with_thread, go("sched"), blocked], "{of_go}");
        assert_eq!(number("unknown_ns"), 0, "{of_go}");
    }
}
