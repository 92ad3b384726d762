//! nginx under wrk: the server's log has a line for each request, with the number of bytes sent.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use tracebraid_testkit::processes::{cpu_time, until};

use crate::checks::{events, field, has_stacks_of, is_sound, written_by};
use crate::programs::{Program, program};
use crate::server::{Recorded, client, free_port, process_in, signal};
use crate::support::recording_directory;

/// Size of the page in bytes.
const PAGE: u64 = 3000;

/// A configuration with one process, and with all files in the directory.
fn configuration(directory: &Path, port: u16) -> String {
    let at = directory.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {at}/{name};"))
        .join(" ");
    format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/errors; events {{}}
        http {{
            log_format sent '$connection $bytes_sent $status'; access_log {at}/access sent; {temporary}
            server {{ listen 127.0.0.1:{port}; root {at}/pages; }}
        }}"
    )
}

/// Writes a page and the configuration; returns the command of the server.
fn serves(server: &Program, at: &Path, configuration: &str) -> [String; 5] {
    fs::create_dir(at.join("pages")).unwrap();
    fs::write(at.join("pages/page"), "x".repeat(PAGE as usize)).unwrap();
    let path = at.join("conf");
    fs::write(&path, configuration).unwrap();
    [
        server.name(),
        "-p",
        at.to_str().unwrap(),
        "-c",
        path.to_str().unwrap(),
    ]
    .map(str::to_owned)
}

#[test]
fn nginx_sent_what_its_log_says() {
    let (Some(server), Some(wrk)) = (program("nginx"), program("wrk")) else {
        return;
    };
    let Some(directory) = recording_directory() else {
        return;
    };
    let at = directory.path();
    let port = free_port();
    let command = serves(&server, at, &configuration(at, port));
    let command = command.each_ref().map(String::as_str);
    let options = ["--stacks", "--kernel", "sched,irq,net,block"];
    let mut recorded = Recorded::start(&directory, &server, &options, &command);
    recorded.wait_for(port);
    recorded.wait_until("the server writes its process id", || {
        process_in(&at.join("pid")).is_some()
    });
    let page = format!("http://127.0.0.1:{port}/page");
    let process = process_in(&at.join("pid")).unwrap();
    // Until the server has used enough CPU time to be sampled, however busy the machine is.
    let number: u32 = process.parse().unwrap();
    let mut runs = 0;
    until("the server has worked", || {
        client(wrk.command().args(["-t1", "-c4", "-d1s", &page]));
        runs += 1;
        let lines = fs::read_to_string(at.join("access"))
            .unwrap()
            .lines()
            .count();
        lines > 200 && cpu_time(number).is_some_and(|used| used >= Duration::from_millis(200))
    });
    signal("-QUIT", &process);
    let trace = recorded.end();
    is_sound(&trace);
    agrees(
        &trace,
        &fs::read_to_string(at.join("access")).unwrap(),
        runs,
    );
    has_stacks_of(&trace, &["ngx_process_events_and_timers", "ngx_writev"]);
}

#[test]
fn workers_of_a_daemon_are_followed() {
    let Some(server) = program("nginx") else {
        return;
    };
    let Some(directory) = recording_directory() else {
        return;
    };
    let at = directory.path();
    let port = free_port();
    let daemon = configuration(at, port).replace(
        "daemon off; master_process off;",
        "daemon on; master_process on; worker_processes 2; user root;",
    );
    let command = serves(&server, at, &daemon);
    let command = command.each_ref().map(String::as_str);
    // The command ends as soon as the daemon listens.
    let mut recorded = Recorded::start(&directory, &server, &["--follow-daemons"], &command);
    recorded.wait_for(port);
    recorded.wait_until("the server writes its process id", || {
        process_in(&at.join("pid")).is_some()
    });
    let process = process_in(&at.join("pid")).unwrap();
    for _ in 0..20 {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = b"GET /page HTTP/1.0\r\n\r\n";
        connection.write_all(request).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        assert!(answer.len() as u64 > PAGE);
    }
    signal("-QUIT", &process);
    let trace = recorded.end();
    is_sound(&trace);
    let lines = fs::read_to_string(at.join("access"))
        .unwrap()
        .lines()
        .count();
    assert!(lines >= 20, "{lines}");
    assert_eq!(log_writes(&trace), lines);
}

/// Checks that the trace agrees with the log of `runs` runs of wrk.
fn agrees(trace: &str, log: &str, runs: usize) {
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    let whole = lines.iter().filter(|line| line[2] == "200").count() as u64;
    assert!(whole > 100, "{whole}");
    let sent: u64 = lines
        .iter()
        .map(|line| line[1].parse::<u64>().unwrap())
        .sum();
    // Only answers are written in pieces.
    assert_eq!(written_by(trace, "writev"), sent);
    assert!(sent >= whole * PAGE);
    assert_eq!(log_writes(trace), lines.len());
    let connections: HashSet<&str> = lines.iter().map(|line| line[0]).collect();
    let accepted = events(trace, "syscall_exit_accept4");
    let accepted = accepted
        .iter()
        .filter(|line| !field(line, "ret").unwrap().starts_with('-'));
    // No requests come from the test that checks whether the server listens, nor from the first
    // connection of each wrk. Connections of wrk whose first answer was too late have no line in
    // the log either.
    let idle = accepted.count() - connections.len();
    assert!(idle <= 1 + runs * 5, "{idle} in {runs} runs");
    let opened = events(trace, "syscall_entry_openat");
    let pages = opened
        .iter()
        .filter(|line| field(line, "filename").is_some_and(|name| name.ends_with("/pages/page")));
    assert_eq!(pages.count(), lines.len());
}

/// Number of writes to nginx's log: one for each line.
fn log_writes(trace: &str) -> usize {
    let mut opens = false;
    let mut log = None;
    let mut count = 0;
    for line in events(trace, "syscall_*_openat,syscall_entry_write") {
        if line.contains("_entry_openat:") {
            opens = field(&line, "filename").is_some_and(|name| name.ends_with("/access"));
        } else if line.contains("_exit_openat:") && opens {
            log = field(&line, "ret").map(str::to_owned);
        } else if log.is_some() && field(&line, "fd") == log.as_deref() {
            count += 1;
        }
    }
    count
}
