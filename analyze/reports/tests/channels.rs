//! Traces with system calls in a channel of their own, as `lttng enable-event --channel` makes
//! them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{CpuSet, Selection};
use tracebraid_reports::count::Count;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;

use tracebraid_models::law::{ALL, Lawful, SMALL, as_in_one_piece};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := ts_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
env { domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; };
clock { name = "monotonic"; freq = 1000000000; };
stream { id = 0; event.header := struct { uint32_t id; ts_t timestamp; }; packet.context := struct {
    ts_t timestamp_begin; ts_t timestamp_end; uint64_t content_size; uint64_t packet_size;
    uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id; }; };
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
    string prev_comm; uint32_t prev_tid; uint32_t prev_prio; int64_t prev_state;
    string next_comm; uint32_t next_tid; uint32_t next_prio; }; };
stream { id = 1; event.header := struct { uint32_t id; ts_t timestamp; }; packet.context := struct {
    ts_t timestamp_begin; ts_t timestamp_end; uint64_t content_size; uint64_t packet_size;
    uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id; }; };
event { name = "syscall_entry_read"; id = 0; stream_id = 1; fields := struct { uint32_t fd; uint64_t count; }; };
event { name = "syscall_exit_read"; id = 1; stream_id = 1; fields := struct { int64_t ret; }; };
"#;

/// A packet of a stream class, with its start and end times, and the number of events lost before
/// it.
fn packet(
    class: u32,
    (begin, end): (u64, u64),
    (sequence, lost): (u64, u64),
    events: &[Vec<u8>],
) -> Vec<u8> {
    let body = events.concat();
    let bits = (60 + body.len() as u64) * 8;
    let words = [begin, end, bits, bits, sequence, lost];
    let head = [0xC1FC_1FC1_u32.to_le_bytes(), class.to_le_bytes()].concat();
    let words = words.map(u64::to_le_bytes).concat();
    [head, words, 0_u32.to_le_bytes().to_vec(), body].concat()
}

fn event(id: u32, time: u64, fields: &[&[u8]]) -> Vec<u8> {
    [
        id.to_le_bytes().as_slice(),
        &time.to_le_bytes(),
        &fields.concat(),
    ]
    .concat()
}

fn switch(time: u64, prev: u32, next: u32) -> Vec<u8> {
    let thread = |tid: u32| {
        [
            b"x\0".as_slice(),
            &tid.to_le_bytes(),
            &120_u32.to_le_bytes(),
        ]
        .concat()
    };
    event(
        0,
        time,
        &[&thread(prev), &1_i64.to_le_bytes(), &thread(next)],
    )
}

fn enters(time: u64) -> Vec<u8> {
    event(0, time, &[&3_u32.to_le_bytes(), &10_u64.to_le_bytes()])
}

fn exits(time: u64) -> Vec<u8> {
    event(1, time, &[&10_i64.to_le_bytes()])
}

/// A directory with a packet of two switches, and the given packets of calls.
fn with_calls(name: &str, calls: &[Vec<u8>]) -> (PathBuf, TraceSet) {
    let directory = std::env::temp_dir().join(format!("channels-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(Path::new(&directory).join(name), bytes).expect("it can be written");
    };
    write("metadata", METADATA.as_bytes());
    let switches = [switch(1000, 0, 7), switch(99_000, 7, 0)];
    write("switches_0", &packet(0, (0, 100_000), (0, 0), &switches));
    write("calls_0", &calls.concat());
    let set = TraceSet::open(std::slice::from_ref(&directory)).expect("it can be opened");
    (directory, set)
}

/// A thread reads four times; the exit of the second read and the entry of the third are lost.
/// `lost` is the number of lost events in the channel of calls.
fn trace(lost: u64) -> (PathBuf, TraceSet) {
    let first = packet(
        1,
        (0, 10_000),
        (0, 0),
        &[enters(2000), exits(3000), enters(9000)],
    );
    let second = [exits(80_000), enters(81_000), exits(82_000)];
    let second = packet(1, (10_000, 90_000), (1, lost), &second);
    with_calls(&lost.to_string(), &[first, second])
}

/// A chunk may have lost all events of a CPU.
#[test]
fn losses_of_a_stream_without_events_are_counted() {
    let packets = [
        packet(1, (0, 10_000), (0, 0), &[]),
        packet(1, (10_000, 90_000), (1, 500), &[]),
    ];
    let (directory, set) = with_calls("empty", &packets);
    let count = Count::new(&set, Default::default(), CpuSet::default(), 7);
    let outcome = fold(&set, &count, Options::default(), &Control::default());
    let found = outcome.expect("not cancelled").report;
    assert_eq!((found.events, found.discarded_events), (2, 500));
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

fn report<A: Lawful>(set: &TraceSet) -> Value {
    as_in_one_piece::<A>("channels", set, ALL, SMALL);
    let analysis = A::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(outcome.expect("not cancelled").report)
        .expect("a report can be serialized")
}

/// The running thread is known all the time; whether the open call ends is not.
#[test]
fn losses_among_calls_leave_the_open_one_unfinished() {
    for (lost, calls) in [(0, 3), (500, 2)] {
        let (directory, set) = trace(lost);
        for (key, found) in [
            ("calls", report::<SyscallAnalysis>(&set)),
            ("calls", report::<WaitAnalysis>(&set)),
            ("calls", report::<FilesAnalysis>(&set)),
            ("calls", report::<IoAnalysis>(&set)),
            ("syscalls", report::<ProcessAnalysis>(&set)),
        ] {
            assert_eq!(
                found["total"][key], calls,
                "{lost} lost: {}",
                found["total"]
            );
        }
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}
