//! The web page of executions: access and export. Its behaviour in a browser is tested in web/e2e.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::{failure, recorded_trace, run, text, tracebraid};

fn database(directory: &TempDir) -> PathBuf {
    let path = directory.path().join("requests.db");
    let period = "request : app:request_begin :
        app:request_end && id == $begin.id";
    let file = path.to_str().expect("UTF-8");
    // A name that a page must not interpret as HTML.
    let label = "</script><img src=x onerror=alert(1)>";
    let trace = recorded_trace("kernel-ust-requests");
    text(&[
        "executions",
        "build",
        &trace,
        "-o",
        file,
        "--period",
        period,
        "--label",
        label,
    ]);
    path
}

/// A server that is killed on drop.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A token of sufficient length.
const TOKEN: &str = "not-a-secret-0123456789";

fn served(path: &PathBuf) -> Server {
    let mut command = tracebraid();
    command.args(["view", "--token", TOKEN]).arg(path);
    start(command)
}

/// Starts a server.
fn start(mut command: Command) -> Server {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("an address");
    let address = line
        .trim()
        .strip_prefix("http://")
        .and_then(|line| line.split('/').next());
    Server {
        address: address.expect("an address").to_owned(),
        child,
    }
}

/// The header that requests must have.
fn authorized() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

/// Status and body of a response.
fn ask(server: &Server, path: &str, headers: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(&server.address).expect("the server listens");
    let host = if headers.contains("Host:") {
        String::new()
    } else {
        format!("Host: {}\r\n", server.address)
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n"
    )
    .expect("the server reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server answers");
    let end = answer
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    (status, answer.split_off(end + 4))
}

#[test]
fn only_who_has_the_token_is_answered() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = database(&directory);
    if let Some(why) = without_page(&path) {
        return crate::support::skipped(why);
    }
    let server = served(&path);
    let token = &*authorized();
    assert_eq!(ask(&server, "/", "").0, 200);
    for api in [
        "/api/pack?kind=0",
        "/api/path?execution=1",
        "/api/export?kind=0",
    ] {
        assert_eq!(ask(&server, api, "").0, 401, "{api}");
        assert_eq!(
            ask(&server, api, "Authorization: Bearer wrong1\r\n").0,
            401,
            "{api}"
        );
        assert_eq!(ask(&server, api, token).0, 200, "{api}");
    }
    // A page on another host whose name resolves to this address.
    assert_eq!(ask(&server, "/", "Host: elsewhere.example\r\n").0, 403);
    for (wrong, status) in [
        ("/api/pack?kind=7", 404),
        ("/api/path?execution=0", 404),
        ("/api/path?execution=x", 400),
        ("/api/path", 400),
        ("/etc/passwd", 404),
        ("/../requests.db", 404),
    ] {
        assert_eq!(ask(&server, wrong, token).0, status, "{wrong}");
    }
    let (_, pack) = ask(&server, "/api/pack", token);
    assert!(pack.starts_with(b"TBXPACK1"));
    let (_, path) = ask(&server, "/api/path?execution=1", token);
    let path: serde_json::Value = serde_json::from_slice(&path).expect("JSON");
    assert!(
        path["segments"]
            .as_array()
            .is_some_and(|segments| !segments.is_empty()),
        "{path}"
    );
}

#[test]
fn the_page_is_written_as_one_file() {
    let directory = TempDir::new().expect("a temporary directory");
    let path = database(&directory);
    if let Some(why) = without_page(&path) {
        return crate::support::skipped(why);
    }
    let page = directory.path().join("requests.html");
    let (file, output) = (path.to_str().expect("UTF-8"), page.to_str().expect("UTF-8"));
    text(&["view", file, "--export", output]);
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("id=\"pack\" data-encoding=\"gzip+base64\""));
    // The name of the trace occurs only in the data, which is not HTML.
    assert!(!html.contains("onerror=alert"));
    assert_eq!(failure(&["view", file, "--export", file]).0, 2);
    assert_eq!(failure(&["view", "/nothing.db", "--export", output]).0, 3);
}

/// The reason why the page cannot be tested, if the program was built without it. Continuous
/// integration always builds the page.
fn without_page(path: &Path) -> Option<String> {
    let output = run(&[
        "view",
        path.to_str().expect("UTF-8"),
        "--export",
        "/nowhere/page.html",
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_without = said.contains("built without its web page");
    assert!(!(is_without && std::env::var_os("CI").is_some()), "{said}");
    is_without.then_some(said)
}

/// The database of a case study, from which a page can be made.
fn kept() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/case-studies/lock-contention/requests.db");
    match without_page(&path) {
        Some(why) => {
            crate::support::skipped(why);
            None
        }
        None => Some(path),
    }
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    let Some(path) = kept() else { return };
    // Few descriptors, so that silent connections would use them up.
    let mut command = Command::new("sh");
    let script = r#"ulimit -n 256; exec "$0" view --token "$1" "$2""#;
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_tracebraid"), TOKEN])
        .arg(path);
    let server = start(command);
    let half = |part: &str| {
        let mut stream = TcpStream::connect(&server.address).expect("the server listens");
        stream.write_all(part.as_bytes()).expect("the server reads");
        stream
    };
    let open: Vec<TcpStream> = (0..400)
        .map(|number| {
            half(if number % 2 == 0 {
                ""
            } else {
                "GET / HTTP/1.1\r\nHost: loc"
            })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(ask(&server, "/api/path?execution=1", &authorized()).0, 200);
    }
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()))
        .expect("the command runs")
        .count();
    assert!(descriptors < 200, "{descriptors}");
    drop(open);
}

#[test]
fn an_export_that_nobody_takes_keeps_nobody_waiting() {
    let Some(path) = kept() else { return };
    let server = served(&path);
    let mut stream = TcpStream::connect(&server.address).expect("the server listens");
    write!(
        stream,
        "GET /api/export?kind=0 HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        authorized()
    )
    .expect("the server reads");
    // The export has begun.
    let mut first = [0; 12];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(ask(&server, "/api/path?execution=1", &authorized()).0, 200);
    assert_eq!(ask(&server, "/api/pack?kind=0", &authorized()).0, 200);
    // The next export waits until the first one has been read or abandoned.
    drop(stream);
    assert_eq!(ask(&server, "/api/export?kind=0", &authorized()).0, 200);
}

#[test]
fn other_machines_are_answered_without_a_token_only_if_that_is_meant() {
    let Some(path) = kept() else { return };
    let file = path.to_str().expect("UTF-8");
    let (code, said) = failure(&["view", file, "--listen", "0.0.0.0:0", "--no-token"]);
    assert!(code == 2 && said.contains("--public"), "{code}: {said}");
    for (token, why) in [
        ("a", "a token needs at least 16 characters"),
        ("secret", "a token needs at least 16 characters"),
        ("aaaaaaaaaaaaaaaaaaaaaaaa", "8 of them different"),
        ("0123456789 abcdef", "a token may contain"),
    ] {
        let (code, said) = failure(&["view", file, "--token", token]);
        assert!(code == 2 && said.contains(why), "{token}: {code}: {said}");
    }
    for (wrong, why) in [
        ("127.0.0.1:x", "invalid port"),
        (":80", "the address is missing"),
        ("no.such.name.invalid:80", "localhost:8080"),
    ] {
        let (code, said) = failure(&["view", file, "--listen", wrong]);
        assert!(code == 2 && said.contains(why), "{wrong}: {code}: {said}");
    }
    let mut command = tracebraid();
    command.args([
        "view",
        file,
        "--listen",
        "0.0.0.0:0",
        "--no-token",
        "--public",
        "--host",
        "build-7.example",
    ]);
    let server = start(command);
    // An address that a browser can open.
    assert!(
        server.address.starts_with("127.0.0.1:"),
        "{}",
        server.address
    );
    for (host, status) in [
        ("build-7.example:8080", 200),
        ("192.0.2.7:8080", 200),
        ("localhost", 200),
        ("elsewhere.example", 403),
    ] {
        let headers = format!("Host: {host}\r\n");
        assert_eq!(
            ask(&server, "/api/path?execution=1", &headers).0,
            status,
            "{host}"
        );
    }
}

#[test]
fn localhost_is_a_name_of_this_machine() {
    let Some(path) = kept() else { return };
    let mut command = tracebraid();
    command
        .arg("view")
        .arg(path)
        .args(["--listen", "localhost", "--token", TOKEN]);
    let server = start(command);
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"] {
        let headers = format!("Host: {host}\r\n{}", authorized());
        assert_eq!(
            ask(&server, "/api/path?execution=1", &headers).0,
            200,
            "{host}"
        );
    }
    assert_eq!(ask(&server, "/", "Host: elsewhere.example\r\n").0, 403);
}

/// A database in which the executions of a case study are repeated.
fn many(directory: &TempDir, path: &Path, executions: u32) -> PathBuf {
    let copy = directory.path().join("many.db");
    std::fs::copy(path, &copy).expect("a copy of the database");
    let script = "
import sqlite3, sys
file, wanted = sys.argv[1], int(sys.argv[2])
database = sqlite3.connect(file)
columns = [row[1] for row in database.execute('PRAGMA table_info(execution)')]
rest = ', '.join('\"' + name + '\"' for name in columns if name != 'id')
count, last = database.execute('SELECT count(*), max(id) FROM execution').fetchone()
for round in range(1, wanted // count + 1):
    database.execute(f'INSERT INTO execution (id, {rest}) SELECT id + ?, {rest} FROM execution WHERE id <= ?', (round * last, last))
database.commit()
";
    let mut python = Command::new("python3");
    let output = python
        .args(["-c", script])
        .arg(&copy)
        .arg(executions.to_string())
        .output();
    crate::support::succeeds(&output.expect("python3 runs"));
    copy
}

#[test]
fn a_page_of_very_many_executions_is_written_in_little_memory() {
    let Some(path) = kept() else { return };
    let directory = TempDir::new().expect("a temporary directory");
    let database = many(&directory, &path, 100_000);
    let page = directory.path().join("page.html");
    let mut command = tracebraid();
    command
        .arg("view")
        .arg(&database)
        .arg("--export")
        .arg(&page)
        .args(["--paths", "20"]);
    let mut child = command.spawn().expect("the binary runs");
    let (most, status) = crate::memory_bound::largest("VmHWM:", &mut child);
    assert!(status.success());
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(
        html.contains("id=\"pack\"")
            && html.contains("id=\"paths\"")
            && html.trim_end().ends_with("</html>")
    );
    // With all executions in memory, it was more than 90 MiB.
    assert!(most > 0 && most < 48 << 10, "{most} KiB");
    // No other file is left.
    assert_eq!(
        std::fs::read_dir(directory.path())
            .expect("the directory")
            .count(),
        2
    );
}
