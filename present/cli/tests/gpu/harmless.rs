//! Programs do the same with and without recording, however they use OpenCL and however they end.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::counted::{Run, WAYS, built, built_with, run, same};
use crate::support::{skipped, text};

/// Runs the program alone, and recorded with each prefix of [`WAYS`].
fn all_ways(program: &Path, arguments: &[&str], check: impl Fn(&Run)) {
    let plain = run(program, arguments, None, &[]);
    for before in WAYS {
        let recorded = run(program, arguments, Some(&["--gpu"]), before);
        same(&plain, &recorded);
        check(&recorded);
    }
}

#[test]
fn rare_functions_and_failing_calls() {
    let Some(program) = built("rare") else { return };
    all_ways(&program, &[], |recorded| {
        recorded.is_complete();
        let events = recorded.events();
        let devices = &events["tracebraid_opencl:device"];
        let parents = devices.iter().filter(|of| of["payload"]["parent"] != "0x0");
        assert!(parents.count() >= 2, "{devices:?}");
        // The arrays of a call with too many dimensions are not read beyond three.
        let kernels = &events["lttng_ust_opencl:clEnqueueNDRangeKernel_entry"];
        let sizes = &kernels[0]["payload"]["global_work_size_vals"];
        assert_eq!(sizes.as_array().map(Vec::len), Some(3), "{kernels:?}");
    });
}

#[test]
fn threads_and_processes() {
    let Some(program) = built("lives") else {
        return;
    };
    for life in ["threads", "fork"] {
        all_ways(&program, &[life], Run::is_complete);
    }
    // The first calls of several threads.
    for _ in 0..5 {
        let before = WAYS.last().expect("exported functions only");
        run(&program, &["together"], Some(&["--gpu"]), before).has_all_calls();
    }
}

#[test]
fn processes_that_end_in_a_callback() {
    let Some(program) = built("lives") else {
        return;
    };
    for (life, code) in [("exit", 4), ("_exit", 5)] {
        all_ways(&program, &[life], |recorded| {
            assert_eq!(recorded.output.status.code(), Some(code));
            // The last call does not return.
            let entries = &recorded.events()["lttng_ust_opencl:clSetUserEventStatus_entry"];
            assert_eq!(entries.len(), 1);
        });
    }
}

#[test]
fn commands_that_are_not_complete_at_the_end_are_reported() {
    let Some(program) = built("lives") else {
        return;
    };
    all_ways(&program, &["unfinished"], |recorded| {
        recorded.has_all_calls();
        let report = text(&["gpu", "--format", "json", &recorded.trace()]);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let total = |key: &str| report["total"][key].as_u64().expect("a number");
        // PoCL 3.1 calls no callback for the command that failed.
        assert_eq!(total("commands") + total("unfinished"), 3, "{report}");
        assert!(total("unfinished") >= 2, "{report}");
    });
}

#[test]
fn loaders_that_come_and_go() {
    let Some(program) = built_with("loaded", &["-ldl"]) else {
        return;
    };
    let plain = run(&program, &[], None, &[]);
    for before in WAYS {
        let recorded = run(&program, &[], Some(&["--gpu"]), before);
        same(&plain, &recorded);
        // Only layers see the calls of functions that a program gets by `dlsym`.
        if !before.contains(&"OPENCL_LAYERS") {
            recorded.is_complete();
        }
    }
}

#[test]
fn loaders_with_few_functions() {
    let options = ["-shared", "-fPIC", "-DLOADER", "-Wl,-soname,libOpenCL.so.1"];
    let Some(built) = built_with("old", &options) else {
        return;
    };
    let loader = built.with_file_name("libOpenCL.so.1");
    fs::rename(built, &loader).expect("a library");
    let directory = loader.parent().expect("a directory").display().to_string();
    let path = format!("-Wl,-rpath,{directory}");
    let program = built_with("old", &[loader.to_str().expect("UTF-8"), &path]);
    let program = program.expect("OpenCL is installed");
    let plain = run(&program, &[], None, &[]);
    let recorded = run(&program, &[], Some(&["--gpu"]), &[]);
    same(&plain, &recorded);
    recorded.has_all_calls();
    // The loader has no callbacks.
    let events = recorded.events();
    let unobserved = &events["lttng_ust_opencl_profiling:event_profiling"];
    assert_eq!(unobserved.len(), 2);
}

#[test]
fn programs_without_opencl() {
    let Some(linked) = built("lives") else { return };
    let directory = linked.parent().expect("a directory");
    let source = "#include <stdio.h>\nint main(void) { puts(\"x\"); return 9; }\n";
    for option in ["-static", "-O1"] {
        let program = crate::support::compiled_with(directory, "alone", source, &[option]);
        let plain = run(&program, &[], None, &[]);
        let recorded = run(&program, &[], Some(&["--gpu"]), &[]);
        same(&plain, &recorded);
        assert_eq!(recorded.output.status.code(), Some(9));
        let error = String::from_utf8_lossy(&recorded.output.stderr);
        assert!(error.contains("no calls of OpenCL or CUDA"), "{error}");
    }
}

/// Neither errors nor leaks have the recorder among their callers.
#[test]
fn no_invalid_access_and_no_leak() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped(format_args!("valgrind is not installed"));
    }
    let Some(program) = built("lives") else {
        return;
    };
    // Without kernels, which PoCL would compile for the CPU that valgrind shows: half a minute.
    let plain = run(&program, &["threads"], None, &[]);
    let directory = program.parent().expect("a directory");
    let log = directory.join("valgrind");
    let suppressed = directory.join("suppressed");
    // By this call the recorder of modules asks the kernel whether a page can be read.
    let asks = "{\n asks\n Memcheck:Param\n rt_sigprocmask(set)\n ...\n obj:*libtracebraid*\n}\n";
    fs::write(&suppressed, asks).expect("a file");
    let (to, ignore) = (
        format!("--log-file={}", log.display()),
        format!("--suppressions={}", suppressed.display()),
    );
    let valgrind = ["valgrind", "--leak-check=full", &to, &ignore];
    let recorded = run(&program, &["threads"], Some(&["--gpu"]), &valgrind);
    let said = fs::read_to_string(log).expect("a log");
    assert!(said.contains("ERROR SUMMARY"), "{said}");
    same(&plain, &recorded);
    recorded.is_complete();
    for error in said.split("== \n") {
        let is_found = ["Invalid", "uninitialised", "definitely lost in", "Syscall"]
            .iter()
            .any(|kind| error.contains(kind));
        assert!(!is_found || !error.contains("tracebraid"), "{error}");
    }
}
