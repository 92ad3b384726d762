//! Exports of Nsight Systems: complete, of other versions, and damaged.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rusqlite::Connection;
use tempfile::TempDir;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_import::{ImportError, Summary, import, is_importable};
use tracebraid_testkit::rng::Rng;

/// Ids of a process and one of its threads.
const PROCESS: i64 = 42 << 24;
const THREAD: i64 = PROCESS | 43;

const SCHEMA: &str = "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE SCHED_EVENTS (start INTEGER NOT NULL, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
    eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
    returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cuMemcpyHtoDAsync_v2'), (3, 'add<int>(int*)'), (4, 'add');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'Made-up 9000');
";

fn make(path: &Path, more: &str) {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch(SCHEMA).expect("a schema");
    connection
        .execute(
            "INSERT INTO PROCESSES VALUES (?1, 42, '/usr/bin/made-up')",
            [PROCESS],
        )
        .expect("a row");
    let rows = format!(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 200, 0, {THREAD}, 1, 1, 0, NULL),
            (200, 300, 0, {THREAD}, 2, 2, 1, NULL), (300, 300, 0, {THREAD}, 3, 1, 0, NULL);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (150, 400, 0, 1, 7, 1, {PROCESS}, 3, 4, 1, 2, 3, 4, 5, 6);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (260, 500, 0, 1, 7, 2, {PROCESS}, 4096, 1);"
    );
    connection.execute_batch(&rows).expect("rows");
    connection.execute_batch(more).expect("changes");
}

fn imported(more: &str) -> Result<(TempDir, Summary), ImportError> {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("report.sqlite");
    make(&file, more);
    assert!(is_importable(&file));
    let to = directory.path().join("to");
    let summary = import(&file, &to, &AtomicBool::new(false));
    assert_eq!(summary.is_ok(), to.exists());
    Ok((directory, summary?))
}

#[test]
fn a_process_becomes_a_trace() {
    let (directory, summary) = imported("").expect("it is imported");
    assert_eq!(summary.damage, [] as [&str; 0]);
    let lacks = [
        "no fills (CUPTI_ACTIVITY_KIND_MEMSET)",
        "scheduling (SCHED_EVENTS) is not imported",
    ];
    assert_eq!(summary.lacks, lacks);
    // Six sides of calls, two commands, a device, a stream and the name of a kernel.
    assert_eq!(summary.events, 11);
    let classes: Vec<&str> = summary.classes.iter().map(String::as_str).collect();
    assert_eq!(
        classes,
        [
            "lttng_ust_cuda:cuMemcpyHtoDAsync_v2_entry",
            "lttng_ust_cuda:cuMemcpyHtoDAsync_v2_exit",
            "lttng_ust_cudart:cudaLaunchKernel_entry",
            "lttng_ust_cudart:cudaLaunchKernel_exit",
            "tracebraid_cuda:device",
            "tracebraid_cuda:kernel",
            "tracebraid_cuda:kernel_name",
            "tracebraid_cuda:memcpy",
            "tracebraid_cuda:stream",
        ]
    );
    let set = TraceSet::open(&[directory.path().join("to")]).expect("a trace");
    let [trace] = &set.traces[..] else {
        panic!("{} traces", set.traces.len());
    };
    assert_eq!(trace.layout.class.env_str("procname"), Some("made-up"));
}

#[test]
fn other_versions_lack_tables_and_columns() {
    let without =
        "DROP TABLE PROCESSES; DROP TABLE TARGET_INFO_SESSION_START_TIME; DROP TABLE SCHED_EVENTS;
        DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;
        ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid;
        ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName;";
    let (directory, summary) = imported(without).expect("it is imported");
    assert_eq!(
        summary.lacks,
        [
            "CUPTI_ACTIVITY_KIND_KERNEL has no globalPid",
            "no copies (CUPTI_ACTIVITY_KIND_MEMCPY)",
            "no fills (CUPTI_ACTIVITY_KIND_MEMSET)",
            "the time of day is unknown (TARGET_INFO_SESSION_START_TIME)",
        ]
    );
    assert_eq!(summary.events, 10);
    let set = TraceSet::open(&[directory.path().join("to")]).expect("a trace");
    assert_eq!(set.traces.len(), 1);
}

/// A view may be a query that never ends.
#[test]
fn only_plain_tables_are_read() {
    let view = "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;
        CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS WITH RECURSIVE n(start) AS
            (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start AS end FROM n;";
    let (_directory, summary) = imported(view).expect("it is imported");
    let lack = "no copies (CUPTI_ACTIVITY_KIND_MEMCPY)";
    assert!(summary.lacks.iter().any(|of| of == lack), "{summary:?}");
}

#[test]
fn other_databases_are_refused() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("other.sqlite");
    let connection = Connection::open(&file).expect("a database");
    connection
        .execute_batch("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        .expect("a table");
    assert!(!is_importable(&file));
    let to = directory.path().join("to");
    let error = import(&file, &to, &AtomicBool::new(false)).expect_err("it is refused");
    assert!(error.to_string().contains("nsys export"), "{error}");
    assert!(!to.exists());
}

#[test]
fn an_import_can_be_stopped() {
    let directory = TempDir::new().expect("a directory");
    let [file, to] = ["report.sqlite", "to"].map(|name| directory.path().join(name));
    make(&file, "");
    let stopped = import(&file, &to, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(ImportError::Interrupted)));
    assert!(!to.exists());
}

/// Cut files, and files with changed bytes: they are imported as far as SQLite reads them, or refused
/// with a reason.
#[test]
fn damage_is_an_error_or_harmless() {
    let directory = TempDir::new().expect("a directory");
    let [file, to] = ["report.sqlite", "to"].map(|name| directory.path().join(name));
    make(&file, "");
    let whole = std::fs::read(&file).expect("the file");
    let mut rng = Rng::new(1);
    let mut refused = 0;
    for number in 0..200 {
        let mut damaged = whole.clone();
        match number % 2 {
            0 => damaged.truncate(rng.between(16, whole.len() as u64 - 1) as usize),
            _ => {
                for _ in 0..rng.between(1, 200) {
                    let at = rng.between(16, whole.len() as u64 - 1) as usize;
                    damaged[at] = rng.below(256) as u8;
                }
            }
        }
        std::fs::write(&file, &damaged).expect("written");
        match import(&file, &to, &AtomicBool::new(false)) {
            Ok(_) => std::fs::remove_dir_all(&to).expect("removed"),
            Err(error) => {
                assert!(error.to_string().contains("export"), "{error}");
                refused += 1;
            }
        }
        assert!(!to.exists() && !directory.path().join("to.part").exists());
    }
    assert!(refused > 50, "{refused} of 200 were refused");
}
