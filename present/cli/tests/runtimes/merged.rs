//! Kernel and OpenMP in one super-trace: what delays tasks, and by whom.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::openmp::compiled_from;
use crate::recorded::installed;
use crate::support::{can_record_kernel, compiled, succeeds, text, tracebraid};

/// Tasks in the order of a factorization: each depends on earlier ones.
const SOLVER: &str = include_str!("programs/solver.c");

/// A process that uses a CPU until it is dropped.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With other tests beside it, their programs preempt the tasks.
mod alone {
    #[test]
    fn the_critical_path_goes_through_tasks_and_names_who_preempts_them() {
        super::the_critical_path_goes_through_tasks();
    }
}

fn the_critical_path_goes_through_tasks() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().expect("a temporary directory");
    let Some(solver) = compiled_from(directory.path(), "solver", SOLVER) else {
        return;
    };
    let Some(libraries) = installed() else { return };
    let hog = compiled(
        directory.path(),
        "cpu-hog",
        "int main(void) { for (volatile int x = 0;; x++) ; }",
    );
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    let start = |_| {
        Hog(Command::new(&hog)
            .stdin(Stdio::null())
            .spawn()
            .expect("a hog runs"))
    };
    let hogs: Vec<Hog> = (0..2 * cpus).map(start).collect();
    let (recording, merged) = (
        directory.path().join("trace"),
        directory.path().join("merged"),
    );
    let mut record = tracebraid();
    record
        .env("TRACEBRAID_LIBRARIES", libraries)
        .env_remove("OMP_TOOL_LIBRARIES");
    record
        .args(["record", "--quiet", "--levels", "-o"])
        .arg(&recording)
        .arg("--")
        .arg(&solver);
    succeeds(&record.output().expect("the binary runs"));
    drop(hogs);
    let [recording, merged] = [&recording, &merged].map(|path| path.to_str().expect("UTF-8"));
    text(&["levels", "merge", recording, "-o", merged]);
    let path = text(&[
        "critical-path",
        "--longest",
        "ult_wait_parallel",
        "--width",
        "200",
        merged,
    ]);
    let through = path
        .matches("ult_wait_dependence, woken by main task")
        .count();
    assert!(through >= 4, "{path}");
    assert!(path.contains("by cpu-hog"), "{path}");
    let waits = text(&["waits", "--width", "200", merged]);
    for wait in ["ult_wait_dependence", "ult_wait_parallel"] {
        assert!(waits.contains(wait), "{waits}");
    }
}
