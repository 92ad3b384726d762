//! redis-server under redis-benchmark: the server counts its bytes itself.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::checks::{calls, events, field, has_stacks_of, is_sound, network_bytes};
use crate::programs::program;
use crate::server::{Recorded, client, free_port};
use crate::support::recording_directory;

/// Number of requests of each kind.
const REQUESTS: u64 = 2000;

/// The server's answer to a question.
fn ask(stream: &mut TcpStream, question: &str) -> String {
    stream
        .write_all(question.as_bytes())
        .expect("the server listens");
    let mut answer = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).expect("the server answers");
        answer.extend_from_slice(&bytes[..count]);
        let text = String::from_utf8_lossy(&answer).into_owned();
        // `$SIZE`, then SIZE bytes.
        let whole = text.split_once("\r\n").and_then(|(size, rest)| {
            let size: usize = size.strip_prefix('$')?.parse().ok()?;
            Some(rest.len() >= size + 2)
        });
        if count == 0 || whole == Some(true) {
            return text;
        }
    }
}

fn value(info: &str, key: &str) -> u64 {
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    let found = lines
        .find(|(name, _)| *name == key)
        .expect("the value is reported")
        .1;
    found.trim().parse().expect("a number")
}

/// Bytes written to accepted connections. The server has a single thread.
fn answered(trace: &str) -> u64 {
    let mut connections = HashSet::new();
    let (mut writes, mut sum) = (false, 0);
    for line in events(
        trace,
        "syscall_exit_accept4,syscall_entry_close,syscall_*_write",
    ) {
        let of = |name: &str| field(&line, name).and_then(|value| value.parse::<i64>().ok());
        if line.contains("_exit_accept4:") {
            connections.extend(of("ret"));
        } else if line.contains("_entry_close:") {
            if let Some(fd) = of("fd") {
                connections.remove(&fd);
            }
        } else if line.contains("_entry_write:") {
            writes = of("fd").is_some_and(|fd| connections.contains(&fd));
        } else if writes {
            sum += of("ret").expect("a result").max(0);
        }
    }
    sum as u64
}

#[test]
fn redis_received_and_sent_what_it_says() {
    let (Some(server), Some(benchmark)) = (program("redis-server"), program("redis-benchmark"))
    else {
        return;
    };
    let Some(directory) = recording_directory() else {
        return;
    };
    let port = free_port().to_string();
    let command = [
        server.name(),
        "--port",
        &port,
        "--save",
        "",
        "--bind",
        "127.0.0.1",
    ];
    let mut recorded = Recorded::start(&directory, &server, &["--stacks"], &command);
    recorded.wait_for(port.parse().unwrap());
    let requests = REQUESTS.to_string();
    client(benchmark.command().args([
        "-p", &port, "-c", "10", "-t", "set,get", "-q", "-n", &requests,
    ]));
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    // The short requests above may all run between two stack samples.
    ask(
        &mut stream,
        "EVAL 'local sum = 0; for i = 1, 3e7 do sum = sum + i end; return tostring(sum)' 0\r\n",
    );
    let info = ask(&mut stream, "INFO stats\r\n");
    // The server ends without an answer, and closes the connection.
    let last = "SHUTDOWN NOSAVE\r\n";
    ask(&mut stream, last);
    let trace = recorded.end();
    is_sound(&trace);
    // The server counts a request before it reads the counters, and an answer after that.
    let received = value(&info, "total_net_input_bytes") + last.len() as u64;
    let sent = value(&info, "total_net_output_bytes") + info.len() as u64;
    let (read, written) = network_bytes(&trace);
    assert_eq!(read, received);
    // Output on standard output may be among the unknown bytes.
    assert!(
        (sent..sent + 4096).contains(&written),
        "{written} and {sent}"
    );
    assert_eq!(answered(&trace), sent);
    assert!(value(&info, "total_commands_processed") >= 2 * REQUESTS);
    // Each client has one outstanding request at a time.
    assert!(calls(&trace, "write") >= 2 * REQUESTS);
    assert!(calls(&trace, "read") >= 2 * REQUESTS);
    assert!(calls(&trace, "epoll_wait") > 0);
    has_stacks_of(&trace, &["aeMain", "readQueryFromClient"]);
}
