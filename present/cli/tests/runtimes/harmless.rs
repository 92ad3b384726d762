//! Programs do the same with and without recording of their schedulers.

use std::process::{Command, Output};

use tempfile::TempDir;

use crate::asyncio::python;
use crate::openmp::compiled;
use crate::recorded::record;

/// Compares what a program prints, and how it ends.
fn same(command: &mut Command) -> Option<(Output, Output)> {
    let plain = command.output().expect("the program runs");
    let recorded = record(command, &[])?.output;
    let shown = |output: &Output| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    assert_eq!(shown(&plain), shown(&recorded));
    Some((plain, recorded))
}

#[test]
fn programs_without_a_known_runtime() {
    same(Command::new("sh").args(["-c", "echo out; echo error >&2; exit 3"]));
    if let Some(mut command) = python(
        "python3",
        "import sys; print(sys.path, sys.argv); sys.exit(4)",
    ) {
        same(&mut command);
    }
}

/// A program's own sitecustomize runs, once, under its name; errors in it are reported as ever.
#[test]
fn python_programs_with_their_own_sitecustomize() {
    let directory = TempDir::new().expect("a temporary directory");
    let program = "import sys, sitecustomize as s, asyncio; print(s.__file__, s.value, sys.path)";
    for content in [
        "value = 7\nprint('once')\n",
        "value = 7\nraise ValueError('wrong')\n",
        "import missing\n",
    ] {
        std::fs::write(directory.path().join("sitecustomize.py"), content).expect("a file");
        let Some(mut command) = python("python3", program) else {
            return;
        };
        same(command.env("PYTHONPATH", directory.path()));
    }
}

/// Task factories, eager tasks, exceptions that nothing retrieves, errors of callbacks, exit codes.
#[test]
fn asyncio_programs() {
    for program in [
        include_str!("programs/factories.py"),
        "import asyncio\nasync def main(): raise SystemExit(5)\nasyncio.run(main())",
        "import asyncio\nasync def main():\n    asyncio.create_task(asyncio.sleep(9))\n    return 1\nprint(asyncio.run(main(), debug=True))",
    ] {
        if let Some(mut command) = python("python3", program) {
            same(&mut command);
        }
    }
}

#[test]
fn openmp_programs() {
    let Some(program) = compiled() else { return };
    let run = |environment: &[(&str, &str)]| {
        let mut command = Command::new(program);
        command.args(["fib"]).env_remove("OMP_TOOL_LIBRARIES");
        command.envs(environment.iter().copied());
        same(&mut command)
    };
    // Without its second argument the program prints its usage and fails.
    run(&[]);
    // A tool of the user that does not exist, and no tools at all.
    run(&[("OMP_TOOL_LIBRARIES", "/nonexistent/tool.so")]);
    run(&[("OMP_TOOL", "disabled")]);
}

/// A tool of the user comes first: the runtime loads only one.
#[test]
fn a_tool_of_the_user_stays_the_tool() {
    let Some(program) = compiled() else { return };
    let directory = TempDir::new().expect("a temporary directory");
    let source = "#include <stdio.h>\nstatic int begin(void *l, int d, void *t) { (void)l; (void)d; (void)t; puts(\"own tool\"); return 1; }\n\
                  static void end(void *t) { (void)t; }\nstatic struct { void *begin, *end; unsigned long data; } result = { begin, end, 0 };\n\
                  void *ompt_start_tool(unsigned v, const char *r) { (void)v; (void)r; return &result; }\n";
    let tool =
        crate::support::compiled_with(directory.path(), "tool.so", source, &["-shared", "-fPIC"]);
    let mut command = Command::new(program);
    command
        .args(["fib", "3"])
        .env("OMP_NUM_THREADS", "2")
        .env("OMP_TOOL_LIBRARIES", &tool);
    let Some(run) = record(&command, &[]) else {
        return;
    };
    assert!(run.log().contains("own tool"));
}
