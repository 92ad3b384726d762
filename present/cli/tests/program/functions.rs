//! Names of functions for addresses: in programs compiled with `-finstrument-functions`, and in
//! programs without symbols.

use std::path::Path;
use std::process::Command;

use crate::support::{compiled_with, succeeds, text, tracebraid};
use tempfile::TempDir;

/// Calls its own functions and those of a library beside it, also in a forked child.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(int n) { return n * 2; }
__attribute__((noinline)) int branch(int n) { return leaf(n) + leaf(n + 1); }
int main(void)
{
	int sum = branch(1);
	void *library = dlopen("./plugged.so", RTLD_NOW);
	int (*plugged)(int) = library ? dlsym(library, "plugged") : 0;
	if (!plugged)
		return 2;
	sum += plugged(1);
	dlclose(library);
	pid_t child = fork();
	if (child == 0)
		_exit(branch(2) != 10);
	int status;
	waitpid(child, &status, 0);
	return sum != 10 || status != 0;
}
"#;

const LIBRARY: &str = "
__attribute__((noinline)) int inner(int n) { return n + 1; }
int plugged(int n) { return inner(n) * 2; }
int main(void) { return 0; }
";

const INSTRUMENTED: &str = "-finstrument-functions";

/// Records a command in the directory; returns the path of the trace.
fn record(directory: &Path, options: &[&str], command: &str) -> String {
    let trace = directory.join("trace").to_str().expect("UTF-8").to_owned();
    let mut record = tracebraid();
    record
        .env("TRACEBRAID_LIBRARIES", crate::support::libraries())
        .current_dir(directory)
        .args([
            "record",
            "--quiet",
            "--kernel",
            "none",
            "--syscalls",
            "none",
        ])
        .args(options)
        .args(["-o", &trace, "--", command]);
    succeeds(&record.output().expect("the binary runs"));
    trace
}

/// The names after each line of an event.
fn named<'t>(printed: &'t str, event: &str) -> Vec<&'t str> {
    let lines = printed.lines().filter(|line| line.contains(event));
    lines
        .map(|line| line.rsplit_once(", { ").expect("a payload").1)
        .collect()
}

#[test]
fn functions_have_names_where_they_were_loaded() {
    let directory = TempDir::new().unwrap();
    let program = compiled_with(
        directory.path(),
        "program",
        PROGRAM,
        &[INSTRUMENTED, "-ldl"],
    );
    let shared = ["-shared", "-fPIC", INSTRUMENTED];
    compiled_with(directory.path(), "plugged.so", LIBRARY, &shared);
    // The program is linked with none of our libraries.
    let trace = record(
        directory.path(),
        &["--probes", "lttng_ust_cyg_profile:*"],
        program.to_str().unwrap(),
    );
    let printed = text(&["print", "--symbols", &trace]);
    assert_eq!(
        named(&printed, "func_entry"),
        [
            "addr = main, call_site = __libc_start_call_main }",
            "addr = branch, call_site = main }",
            "addr = leaf, call_site = branch }",
            "addr = leaf, call_site = branch }",
            "addr = plugged, call_site = main }",
            "addr = inner, call_site = plugged }",
            // In the child.
            "addr = branch, call_site = main }",
            "addr = leaf, call_site = branch }",
            "addr = leaf, call_site = branch }",
        ]
    );
    // The load of a module precedes its functions, in whichever process's trace it was recorded.
    let first = |event: &str| printed.find(event).unwrap();
    assert!(first("lttng_ust_lib:load") < first("func_entry"));
    assert!(first("plugged.so") < first("addr = plugged"));
    // Call stacks were not requested.
    assert!(!printed.contains("tracebraid:stacks_state") && !printed.contains("cpu_stack"));
    let printed = text(&["print", "--symbols", "--format", "json", &trace]);
    let entries = printed.lines().filter(|line| line.contains("func_entry"));
    let entry: serde_json::Value = serde_json::from_str(entries.clone().nth(4).unwrap()).unwrap();
    assert_eq!(entry["symbols"]["addr"], serde_json::json!(["plugged"]));
    assert_eq!(entry["symbols"]["call_site"], serde_json::json!(["main"]));
    // Without the option, lines are those of babeltrace2.
    assert!(!text(&["print", &trace]).contains("addr = main"));
}

/// Two user-level threads call functions in turn.
const THREADS: &str = r#"
#define TB_OPTIONAL
#include <tracebraid/probe.h>
__attribute__((noinline)) int leaf(int n) { return n * 2; }
__attribute__((noinline)) int branch(int n) { return leaf(n) + leaf(n + 1); }
__attribute__((no_instrument_function)) int main(void)
{
	int sum = 0;
	tb_ult_create(1, "first");
	tb_ult_create(2, "second");
	for (int i = 0; i < 6; i++) {
		tb_ult_switch(0, 1 + i % 2);
		sum += branch(i);
		tb_ult_switch(1 + i % 2, 0);
	}
	return sum == 0;
}
"#;

#[test]
fn functions_of_user_level_threads_have_names() {
    let directory = TempDir::new().unwrap();
    let include = concat!(
        "-I",
        env!("CARGO_MANIFEST_DIR"),
        "/../../record/probe/include"
    );
    let options = [INSTRUMENTED, include, "-ldl"];
    let program = compiled_with(directory.path(), "threads", THREADS, &options);
    let trace = record(
        directory.path(),
        &["--probes", "*", "--probes", "lttng_ust_cyg_profile:*"],
        program.to_str().unwrap(),
    );
    let rows = |options: &[&str]| {
        let levels = ["levels", "--table", "functions", "--format", "json", &trace];
        let rows = text(&[&levels, options].concat());
        let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).expect("JSON");
        let mut calls: Vec<(String, String, u64)> = rows
            .iter()
            .map(|row| {
                let text = |key: &str| row[key].as_str().expect("a text").to_owned();
                (
                    text("name"),
                    text("function"),
                    row["calls"].as_u64().expect("a number"),
                )
            })
            .collect();
        calls.sort();
        calls
    };
    let call =
        |thread: &str, function: &str, calls| (thread.to_owned(), function.to_owned(), calls);
    let (first, second) = ("first", "second");
    let leaves = [call(first, "leaf", 6), call(second, "leaf", 6)];
    let branches = [call(first, "branch", 3), call(second, "branch", 3)];
    assert_eq!(rows(&["--function", "l*"]), leaves);
    let mut all = [branches, leaves].concat();
    all.sort();
    assert_eq!(rows(&[]), all);
}

#[test]
fn modules_that_lttng_tells_of_count_as_well() {
    let trace = crate::support::recorded("ust-cyg-profile").join("ust-cyg-profile");
    let printed = text(&[
        "print",
        "--symbols",
        "--limit",
        "5000",
        trace.to_str().unwrap(),
    ]);
    let names = named(&printed, "func_entry");
    // The program does not exist here, so its functions have no names; but from some time on the
    // trace records that it was loaded.
    let behind = names
        .iter()
        .skip_while(|names| !names.starts_with("addr = [cyg+0x"));
    let behind: Vec<_> = behind.collect();
    assert!(
        behind.len() > 1000
            && behind
                .iter()
                .all(|names| names.starts_with("addr = [cyg+0x")),
        "{names:?}"
    );
}

#[test]
fn traces_that_cannot_name_anything_say_so() {
    let trace = crate::support::recorded_trace("perf-mix");
    let output = crate::support::run(&["print", "--symbols", "--limit", "1", &trace]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        said.contains("the trace does not record loaded modules"),
        "{said}"
    );
}

#[test]
fn a_function_without_a_name_is_one_row() {
    const SPIN: &str = "
static double __attribute__((noinline)) work(int n)
{
	volatile double sum = 1;
	for (int i = 0; i < n; i++)
		sum = sum * 1.0000001 + i;
	return sum;
}
int main(void)
{
	double sum = 0;
	for (int i = 0; i < 300; i++)
		sum += work(100000);
	return sum == 0;
}
";
    let directory = TempDir::new().unwrap();
    let program = compiled_with(directory.path(), "spin", SPIN, &["-O1", "-s"]);
    let trace = record(directory.path(), &["--stacks"], program.to_str().unwrap());
    let profile: serde_json::Value =
        serde_json::from_str(&text(&["stacks", "--format", "json", &trace])).unwrap();
    let rows = profile["functions"].as_array().unwrap();
    let own = |row: &serde_json::Value| row["own"]["cpu_samples"].as_u64().unwrap();
    let of_program = rows
        .iter()
        .filter(|row| row["name"].as_str().unwrap().starts_with("[spin+") && own(row) > 0);
    let samples: Vec<u64> = of_program.map(own).collect();
    assert!(samples.iter().sum::<u64>() > 10, "{profile:#}");
    // Nearly all samples are in `work`, at many addresses.
    assert!(samples.len() <= 2, "{profile:#}");
    let stripped = Command::new("nm").arg(&program).output().unwrap();
    assert!(stripped.stdout.is_empty());
}
