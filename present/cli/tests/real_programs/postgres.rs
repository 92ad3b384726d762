//! PostgreSQL under pgbench: each transaction has a fixed number of messages, and its log is on the
//! disk when it ends.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::checks::{calls, events, is_sound, json, number, rows};
use crate::programs::{Program, program};
use crate::server::{PATIENCE, Recorded, client, free_port, process_in, signal};
use crate::support::recording_directory;

/// Transactions of pgbench's only client.
const TRANSACTIONS: u64 = 200;
/// Messages of pgbench's default transaction: BEGIN, three times UPDATE, SELECT, INSERT, END.
const MESSAGES: u64 = 7;

/// PostgreSQL refuses to run as root, so it runs as the user `nobody`, which needs no account.
const NOBODY: u32 = 65534;
const AS_NOBODY: [&str; 6] = [
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "65534",
    "--clear-groups",
];

/// A database cluster in a directory that belongs to the user `nobody`.
struct Cluster {
    data: String,
    port: String,
    server: Program,
}

impl Cluster {
    fn new(directory: &TempDir, server: Program, initdb: &Program) -> Cluster {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        chown(&data, Some(NOBODY), Some(NOBODY)).expect("recording is for root, who may do this");
        let data = data.to_str().unwrap().to_owned();
        let mut init = Command::new(AS_NOBODY[0]);
        initdb.prepare(&mut init);
        init.args(&AS_NOBODY[1..]).arg(initdb.name());
        client(init.args([
            "-D",
            &data,
            "-U",
            "bench",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
            "--locale=C",
        ]));
        Cluster {
            data,
            port: free_port().to_string(),
            server,
        }
    }

    /// The command of the server, without background work.
    fn command(&self) -> Vec<&str> {
        let server = [
            self.server.name(),
            "-D",
            &self.data,
            "-k",
            "",
            "-p",
            &self.port,
            "-h",
            "127.0.0.1",
        ];
        let quiet = ["-c", "autovacuum=off", "-c", "shared_buffers=16MB"];
        [&AS_NOBODY[..], &server, &quiet].concat()
    }

    fn bench(&self, pgbench: &Program, arguments: &[&str]) -> String {
        let mut command = pgbench.command();
        command.args(["-h", "127.0.0.1", "-p", &self.port, "-U", "bench"]);
        client(command.args(arguments).arg("postgres"))
    }

    /// The server's file with its state.
    fn state(&self) -> PathBuf {
        Path::new(&self.data).join("postmaster.pid")
    }

    fn process(&self) -> Option<String> {
        process_in(&self.state())
    }

    /// Whether the server accepts commands; earlier it accepts connections, but rejects commands.
    fn is_ready(&self) -> bool {
        fs::read_to_string(self.state()).is_ok_and(|state| state.contains("ready"))
    }
}

/// Runs the server without recording it while `client` runs.
fn unrecorded(cluster: &Cluster, client: impl FnOnce()) {
    let command = cluster.command();
    let mut server = Command::new(command[0]);
    cluster.server.prepare(&mut server);
    let null = std::process::Stdio::null;
    let mut server = server
        .args(&command[1..])
        .stderr(null())
        .stdout(null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while !cluster.is_ready() {
        assert!(since.elapsed() < PATIENCE, "the server does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    client();
    signal("-INT", &server.id().to_string());
    assert!(server.wait().unwrap().success());
}

#[test]
fn postgresql_writes_its_log_for_each_transaction() {
    let found = ["postgres", "initdb", "pgbench"].map(program);
    let [Some(server), Some(initdb), Some(pgbench)] = found else {
        return;
    };
    let Some(directory) = recording_directory() else {
        return;
    };
    let cluster = Cluster::new(&directory, server, &initdb);
    unrecorded(&cluster, || {
        cluster.bench(&pgbench, &["-i", "-q"]);
    });
    // Without stacks: a user who cannot write to the trace's directory gets none.
    let options = ["--kernel", "sched,irq,net,block"];
    let mut recorded = Recorded::start(&directory, &cluster.server, &options, &cluster.command());
    recorded.wait_until("the server is ready", || cluster.is_ready());
    let transactions = TRANSACTIONS.to_string();
    let told = cluster.bench(&pgbench, &["-n", "-c", "1", "-t", &transactions]);
    assert!(
        told.contains(&format!("{TRANSACTIONS}/{TRANSACTIONS}")),
        "{told}"
    );
    signal("-INT", &cluster.process().unwrap());
    let trace = recorded.end();
    is_sound(&trace);
    // Each message of the client is one call, as is each answer; the rest occurs when it connects.
    let sent = calls(&trace, "sendto");
    let expected = TRANSACTIONS * MESSAGES;
    assert!((expected..expected + 50).contains(&sent), "{sent}");
    assert!(calls(&trace, "recvfrom") >= expected);
    // The end of a transaction waits for its log, as do checkpoints.
    let synced = calls(&trace, "fdatasync");
    assert!(synced >= TRANSACTIONS, "{synced}");
    assert!(log_written(&trace) >= TRANSACTIONS * 8192);
    let processes = json("processes", &trace);
    let of_server = rows(&processes["processes"]).iter().filter(|row| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.contains("postgres"))
    });
    assert!(of_server.count() >= 5);
    assert!(!events(&trace, "sched_process_fork").is_empty());
}

/// Bytes written to the transaction log.
fn log_written(trace: &str) -> u64 {
    let report = json("files", trace);
    let is_log = |path: &str| path.contains("pg_wal/");
    let logs = rows(&report["files"])
        .iter()
        .filter(|row| row["path"].as_str().is_some_and(is_log));
    logs.map(|row| number(&row["written_bytes"])).sum()
}
