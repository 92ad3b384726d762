//! A Go server, recorded from its pprof endpoint beside the kernel.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tracebraid_testkit::processes::until;

use crate::support::{can_record_kernel, skipped, succeeds, text, tracebraid};

/// Ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The example server; `None`, with a message, where Go is not installed.
fn server(directory: &Path) -> Option<PathBuf> {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/go-server");
    let program = directory.join("go-server");
    for go in ["go", "/usr/local/go/bin/go"] {
        let version = Command::new(go).args(["env", "GOVERSION"]).output();
        let version = version.map(|output| output.stdout).unwrap_or_default();
        let version = String::from_utf8_lossy(&version).into_owned();
        let minor = version
            .trim()
            .strip_prefix("go1.")
            .and_then(|of| of.split('.').next());
        if minor
            .and_then(|minor| minor.parse::<u32>().ok())
            .is_some_and(|minor| minor >= 25)
        {
            let mut build = Command::new(go);
            build
                .current_dir(sources)
                .args(["build", "-o"])
                .arg(&program);
            succeeds(&build.arg(".").output().expect("Go runs"));
            return Some(program);
        }
    }
    skipped("Go 1.25 or later is not installed: https://go.dev/dl");
    None
}

fn free_address() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address").to_string()
}

fn started(program: &Path, arguments: &[&str]) -> Program {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped());
    Program(command.spawn().expect("it starts"))
}

/// Standard error of a recording, which must succeed.
fn recorded(options: &[&str], to: &Path) -> String {
    let mut record = tracebraid();
    record
        .arg("record")
        .args(options.iter().take_while(|option| **option != "--"));
    record
        .arg("-o")
        .arg(to)
        .args(options.iter().skip_while(|option| **option != "--"));
    let output = record.output().expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

/// Number of event records of a class whose text contains a part.
fn counted(trace: &Path, class: &str, part: &str) -> usize {
    let path = trace.to_str().expect("UTF-8");
    let lines = text(&["print", "--filter", class, path]);
    lines.lines().filter(|line| line.contains(part)).count()
}

/// The merged levels are consistent, and requests wait for goroutines that hold the mutex.
fn goes_through_goroutines(directory: &Path, trace: &Path) {
    let [merged, database] = ["super", "requests.db"].map(|name| directory.join(name));
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let mut merge = tracebraid();
    merge
        .args(["levels", "merge"])
        .arg(trace)
        .arg("-o")
        .arg(&merged);
    let output = merge.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // At most a thread or two that Go records late.
    let violations = counted(&merged, "tracebraid_levels:violation", "");
    assert!(violations <= 10, "{violations} violations: {said}");
    assert!(text(&["waits", &path(&merged)]).contains("ult_wait_sync"));
    let build = ["executions", "build", "--span", "request", "-o"];
    text(&[&build[..], &[&path(&database), &path(&merged)]].concat());
    let slowest = text(&["executions", "list", &path(&database)]);
    assert!(slowest.contains("net/htt"), "{slowest}");
    let folded = ["executions", "export", "--format", "folded"];
    let contexts = text(&[&folded[..], &[&path(&database)]].concat());
    assert!(contexts.contains("ult_wait_sync"), "{contexts}");
}

#[test]
fn a_running_server_is_recorded_until_the_end() {
    let directory = TempDir::new().expect("a directory");
    let Some(program) = server(directory.path()) else {
        return;
    };
    let address = free_address();
    let url = format!("http://{address}");
    let server = started(&program, &["serve", &address]);
    until("the server listens", || {
        std::net::TcpStream::connect(&address).is_ok()
    });
    // Starting the recorder takes seconds on a busy machine.
    let _load = started(&program, &["load", &url, "3", "300s"]);
    let to = directory.path().join("trace");
    let mut options = vec!["--go", &url, "--duration", "1500ms"];
    if !can_record_kernel() {
        options.extend(["--kernel", "none", "--syscalls", "none", "--system"]);
    }
    let said = recorded(&options, &to);
    assert!(
        said.contains("of Go from") && !said.contains("warning"),
        "{said}"
    );
    let pid = server.0.id();
    let own = to.join(format!("ust/go-{pid}"));
    let info = text(&["info", own.to_str().expect("UTF-8")]);
    assert!(info.contains("go-server"), "{info}");
    // Requests begin and end, and the log of each has its task.
    let requests = counted(&own, "tracebraid:span_begin", "\"request\"");
    assert!(requests >= 3, "{requests} requests");
    let logs = counted(&own, "go:log", "\"key\"");
    assert!(
        logs.abs_diff(requests) <= 3,
        "{logs} logs of {requests} requests"
    );
    // The end of the trace itself is in it: the handler of the endpoint is the last to run.
    let handler = counted(&own, "tracebraid:ult_create", "\"net/http");
    assert!(handler > 0);
    if can_record_kernel() {
        goes_through_goroutines(directory.path(), &to);
    }
}

#[test]
fn a_command_is_recorded_once_its_endpoint_exists() {
    let directory = TempDir::new().expect("a directory");
    let Some(program) = server(directory.path()) else {
        return;
    };
    let address = free_address();
    let to = directory.path().join("trace");
    let program = program.to_str().expect("UTF-8");
    let mut options = vec!["--go", &address, "--duration", "4s"];
    if !can_record_kernel() {
        options.extend(["--kernel", "none", "--syscalls", "none"]);
    }
    // The server goes on, and must not keep the pipes of the recorder open.
    let quiet = "exec \"$0\" serve \"$1\" >/dev/null 2>&1";
    options.extend(["--", "sh", "-c", quiet, program, &address]);
    let said = recorded(&options, &to);
    let process = said
        .split("(process ")
        .nth(1)
        .and_then(|rest| rest.split(')').next());
    let process = process.and_then(|process| process.parse::<i32>().ok());
    let process = process.unwrap_or_else(|| panic!("the command still runs: {said}"));
    let ended = Command::new("kill").arg(process.to_string()).status();
    assert!(ended.expect("kill runs").success());
    assert!(said.contains("of Go from"), "{said}");
    assert!(counted(&to, "tracebraid:ult_state", "") > 3);
}

#[test]
fn endpoints_that_do_not_answer_are_explained() {
    let directory = TempDir::new().expect("a directory");
    let run = |url: &str, to: &str| {
        let mut record = tracebraid();
        record.args([
            "record",
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "--go",
            url,
            "-o",
        ]);
        record
            .arg(directory.path().join(to))
            .args(["--", "sleep", "0.2"]);
        let output = record.output().expect("the binary runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    let (code, said) = run("https://localhost:6060", "refused");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("https is not supported"), "{said}");
    let (code, said) = run(&free_address(), "none");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no trace of Go was recorded"), "{said}");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address").to_string();
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a client");
        let mut line = String::new();
        let mut reader = BufReader::new(connection.try_clone().expect("a socket"));
        reader.read_line(&mut line).expect("a request");
        let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n";
        std::io::Write::write_all(&mut connection, answer).expect("sent");
        line
    });
    let (_, said) = run(&address, "missing");
    let request = server.join().expect("a request");
    assert_eq!(request, "GET /debug/pprof/trace?seconds=86400 HTTP/1.1\r\n");
    assert!(said.contains("import net/http/pprof"), "{said}");
}
