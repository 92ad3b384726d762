//! The web page of executions: who is answered, what is written. How it behaves in a browser is tested in web/e2e.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::support::{failure, recorded_trace, run, text, tracebraid};

fn database(directory: &TempDir) -> PathBuf {
    let path = directory.path().join("requests.db");
    let period = "request : $evt.$name == \"app:request_begin\" :
        $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";
    let file = path.to_str().expect("UTF-8");
    // A name that a page must not take for its own words.
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

/// A server that ends with the test.
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

fn served(path: &PathBuf) -> Server {
    let mut child = tracebraid()
        .args(["view", "--token", "secret"])
        .arg(path)
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

/// Status and body of an answer.
fn ask(server: &Server, path: &str, headers: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(&server.address).expect("it listens");
    let host = if headers.contains("Host:") {
        String::new()
    } else {
        format!("Host: {}\r\n", server.address)
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
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
    let token = "Authorization: Bearer secret\r\n";
    assert_eq!(ask(&server, "/", "").0, 200);
    for api in ["/api/pack?kind=0", "/api/path?execution=1", "/api/export?kind=0"] {
        assert_eq!(ask(&server, api, "").0, 401, "{api}");
        assert_eq!(
            ask(&server, api, "Authorization: Bearer wrong1\r\n").0,
            401,
            "{api}"
        );
        assert_eq!(ask(&server, api, token).0, 200, "{api}");
    }
    // A page elsewhere whose name leads here.
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
    // What the trace is called stands in the data only, where it is no HTML.
    assert!(!html.contains("onerror=alert"));
    assert_eq!(failure(&["view", file, "--export", file]).0, 2);
    assert_eq!(failure(&["view", "/nothing.db", "--export", output]).0, 3);
}

/// Why nothing can be tested, if the program was built without its page: continuous integration always builds it.
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
