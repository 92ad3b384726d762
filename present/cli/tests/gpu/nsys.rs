//! A made-up export of Nsight Systems is reported like a plain model of its rows.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::Value;
use tempfile::TempDir;
use tracebraid_testkit::rng::Rng;

use crate::support::text;

const SCHEMA: &str = "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    value INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020'), (3, 'cuMemsetD8Async'),
    (4, 'cuLaunchKernel'), (5, 'made-up'), (100, 'one<int>(int*)'), (101, 'two()'), (102, 'one');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'x', 'Hostname', 'gpu-box');
INSERT INTO TARGET_INFO_GPU VALUES (0, 3, 'Made-up 9000'), (0, 4, 'Made-up 9001');
";

const PIDS: [i64; 2] = [42, 77];

fn global(pid: i64) -> i64 {
    pid << 24
}

/// Sums by table and key: number, nanoseconds, bytes or work items.
type Sums = BTreeMap<(&'static str, String), [i64; 3]>;

struct Export<'c> {
    connection: &'c Connection,
    rng: Rng,
    sums: Sums,
}

impl Export<'_> {
    fn number(&mut self, from: i64, to: i64) -> i64 {
        self.rng.between(from as u64, to as u64) as i64
    }

    fn add(&mut self, table: &'static str, key: &str, time: i64, size: i64) {
        let sum = self.sums.entry((table, key.to_owned())).or_default();
        *sum = [sum[0] + 1, sum[1] + time, sum[2] + size];
    }

    /// A call; returns whether it has commands.
    fn call(&self, span: [i64; 2], tid: i64, correlation: i64, name: i64, result: i64) {
        let insert =
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, NULL)";
        let values = params![span[0], span[1], tid, correlation, name, result];
        self.connection.execute(insert, values).expect("a row");
    }

    fn turn(&mut self, entry: i64, pid: i64, correlation: i64) -> i64 {
        let exit = entry + self.number(100, 5000);
        let tid = global(pid) | (pid + self.number(0, 1));
        let kind = self.number(0, 2);
        let length = exit - entry;
        let (name, function) = [
            (1, "cudaLaunchKernel"),
            (2, "cudaMemcpyAsync"),
            (3, "cuMemsetD8Async"),
        ][kind as usize];
        self.call([entry, exit], tid, correlation, name, 0);
        self.add("functions", function, length, 0);
        if kind == 0 {
            // The runtime calls the driver, also within the same nanoseconds.
            let inner = if self.rng.chance(30) {
                [entry, exit]
            } else {
                [entry + 10, exit - 10]
            };
            self.call(inner, tid, correlation, 4, 0);
            self.add("functions", "cuLaunchKernel", inner[1] - inner[0], 0);
        }
        let start = exit + self.number(1, 100_000);
        let end = start + self.number(1, 100_000);
        let (device, stream) = (self.number(0, 1), self.number(7, 8));
        let place = (device, stream, correlation, global(pid));
        let times = [start, end];
        match kind {
            0 => self.kernel(times, place),
            1 => self.copy(times, place),
            _ => self.fill(times, place),
        }
        self.add(
            "queues",
            &format!("{:#x}", 1_i64 << 32 | stream),
            end - start,
            0,
        );
        exit
    }

    fn kernel(&mut self, [start, end]: [i64; 2], place: (i64, i64, i64, i64)) {
        let (device, stream, correlation, process) = place;
        let name = self.number(100, 101);
        let grid = self.number(1, 99);
        let insert = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, 102, ?8, 2, 1, 32, 1, 1)";
        let values = params![start, end, device, stream, correlation, process, name, grid];
        self.connection.execute(insert, values).expect("a row");
        let key = ["one<int>(int*)", "two()"][(name - 100) as usize];
        self.add("kernels", key, end - start, grid * 64);
    }

    fn copy(&mut self, [start, end]: [i64; 2], place: (i64, i64, i64, i64)) {
        let (device, stream, correlation, process) = place;
        let kind = self.number(1, 2);
        let bytes = self.number(1, 1 << 30);
        let insert =
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)";
        let values = params![
            start,
            end,
            device,
            stream,
            correlation,
            process,
            bytes,
            kind
        ];
        self.connection.execute(insert, values).expect("a row");
        let key = ["write", "read"][(kind - 1) as usize];
        self.add("transfers", key, end - start, bytes);
    }

    fn fill(&mut self, [start, end]: [i64; 2], place: (i64, i64, i64, i64)) {
        let (device, stream, correlation, process) = place;
        let bytes = self.number(1, 1 << 20);
        let insert =
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, 9, ?7, 0)";
        let values = params![start, end, device, stream, correlation, process, bytes];
        self.connection.execute(insert, values).expect("a row");
        self.add("transfers", "fill", end - start, bytes);
    }
}

/// Writes an export, and returns its sums.
fn make(path: &Path) -> Sums {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch(SCHEMA).expect("a schema");
    connection.execute_batch("BEGIN").expect("a transaction");
    let mut export = Export {
        connection: &connection,
        rng: Rng::new(3),
        sums: Sums::new(),
    };
    for pid in PIDS {
        let name = "INSERT INTO ThreadNames VALUES (5, NULL, ?1)";
        let thread = global(pid) | pid;
        connection.execute(name, [thread]).expect("a row");
        let device = "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, ?1), (4, 1, ?1)";
        connection.execute(device, [pid]).expect("rows");
        // The session may begin after the first call.
        let mut at = -1000;
        for correlation in 1..200 {
            at = export.turn(at, pid, correlation) + export.number(0, 2) * 1000;
        }
    }
    connection.execute_batch("COMMIT").expect("a transaction");
    export.sums
}

fn is_as_modelled(sums: &Sums, report: &Value) {
    for (table, key, values) in [
        ("functions", "function", ["calls", "total_ns", ""]),
        ("kernels", "kernel", ["commands", "total_ns", "items"]),
        ("transfers", "kind", ["commands", "total_ns", "bytes"]),
        ("queues", "handle", ["commands", "execution_ns", ""]),
    ] {
        let mut found: BTreeMap<String, [i64; 3]> = BTreeMap::new();
        for row in report[table].as_array().expect("rows") {
            let sum = found.entry(row[key].as_str().expect("a text").to_owned());
            let sum = sum.or_default();
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += row[value].as_i64().unwrap_or(0);
            }
        }
        let expected = sums.iter().filter(|((of, _), _)| *of == table);
        let expected: BTreeMap<_, _> = expected
            .map(|((_, key), sum)| (key.clone(), *sum))
            .collect();
        assert_eq!(found, expected, "{table}");
    }
    let devices = report["devices"].as_array().expect("rows");
    let mut names: Vec<&str> = devices
        .iter()
        .filter_map(|row| row["device"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["Made-up 9000", "Made-up 9001"]);
    // Calls and commands have one clock: its offset is that of the time of day, nearly 0.
    for clock in report["clocks"].as_array().expect("rows") {
        let offset = clock["offset_ns"].as_i64().expect("an offset");
        let error = clock["error_ns"].as_i64().expect("bounds");
        assert!(offset.abs() <= error + 2, "{clock}");
        assert_eq!(clock["name"], "made-up");
    }
}

#[test]
fn exports_are_reported_like_their_rows() {
    let directory = TempDir::new().expect("a directory");
    let [file, to] = ["report.sqlite", "trace"].map(|name| directory.path().join(name));
    let sums = make(&file);
    let [file, to] = [&file, &to].map(|path| path.to_str().expect("UTF-8"));
    text(&["import", file, "-o", to]);
    let of_trace = text(&["gpu", "--format", "json", "--top", "0", to]);
    let of_trace: Value = serde_json::from_str(&of_trace).expect("JSON");
    is_as_modelled(&sums, &of_trace);
    // Without a conversion of its own.
    let of_file = text(&["gpu", "--format", "json", "--top", "0", file]);
    let of_file: Value = serde_json::from_str(&of_file).expect("JSON");
    is_as_modelled(&sums, &of_file);
}
