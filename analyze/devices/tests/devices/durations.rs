//! The report of made-up CUDA programs, recorded as THAPI does: commands have durations only. It is
//! that of a plain model, in every layout of streams, for all threads and chunks.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_testkit::rng::Rng;

use crate::program::{CPUS, THREADS};
use crate::trace::{Event, bytes};
use crate::{in_every_way, sums};

/// Classes, fields and types of THAPI's models. Structures are sequences of characters.
const CLASSES: &str = r#"
typealias integer { size = 8; align = 8; encoding = UTF8; } := text8;
typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := float32;
event { name = "lttng_ust_cuda:cuModuleGetFunction_entry"; id = 1; stream_id = 0; fields := struct { u64 _hfunc; u64 _hmod; u64 _name; string _name_val; }; };
event { name = "lttng_ust_cuda:cuModuleGetFunction_exit"; id = 2; stream_id = 0; fields := struct { i32 _cuResult; u64 _hfunc_val; }; };
event { name = "lttng_ust_cuda:cuLaunchKernel_entry"; id = 3; stream_id = 0; fields := struct {
	u64 _f; u32 _gridDimX; u32 _gridDimY; u32 _gridDimZ; u32 _blockDimX; u32 _blockDimY; u32 _blockDimZ; u32 _sharedMemBytes;
	u64 _hStream; u64 _kernelParams; u64 _extra; u64 __extra_vals_length; u64 _extra_vals[__extra_vals_length]; }; };
event { name = "lttng_ust_cuda:cuLaunchKernel_exit"; id = 4; stream_id = 0; fields := struct { i32 _cuResult; }; };
event { name = "lttng_ust_cuda:cuMemcpyHtoDAsync_v2_entry"; id = 5; stream_id = 0; fields := struct { u64 _dstDevice; u64 _srcHost; u64 _ByteCount; u64 _hStream; }; };
event { name = "lttng_ust_cuda:cuMemcpyHtoDAsync_v2_exit"; id = 6; stream_id = 0; fields := struct { i32 _cuResult; }; };
event { name = "lttng_ust_cuda:cuMemcpy2D_v2_entry"; id = 7; stream_id = 0; fields := struct {
	u64 _pCopy; u64 __pCopy_val_length; text8 _pCopy_val[__pCopy_val_length]; }; };
event { name = "lttng_ust_cuda:cuMemcpy2D_v2_exit"; id = 8; stream_id = 0; fields := struct { i32 _cuResult; }; };
event { name = "lttng_ust_cuda_profiling:event_profiling"; id = 9; stream_id = 0; fields := struct { u64 _hStart; u64 _hStop; }; };
event { name = "lttng_ust_cuda_profiling:event_profiling_results"; id = 10; stream_id = 0; fields := struct {
	u64 _hStart; u64 _hStop; i32 _startStatus; i32 _stopStatus; i32 _status; float32 _milliseconds; }; };
"#;

const KERNELS: u64 = 0x2000;

/// A command, as its results show it.
struct Command {
    /// Event class of the entry of the call.
    class: u8,
    kernel: u64,
    stream: u64,
    bytes: u64,
    items: u64,
    duration: u64,
    has_failed: bool,
}

#[derive(Default)]
struct Program {
    events: Vec<Event>,
    commands: Vec<Command>,
    unfinished: u64,
    failed_calls: u64,
}

impl Program {
    fn event(&mut self, rng: &mut Rng, at: (u64, usize), class: u8, fields: &[&[u8]]) {
        self.events.push(Event {
            time: at.0,
            thread: at.1,
            cpu: rng.below(CPUS as u64) as usize,
            class,
            payload: bytes(fields),
        });
    }

    fn random(seed: u64, count: u64) -> Program {
        let mut rng = Rng::new(seed);
        let mut program = Program::default();
        for kernel in 0..3_u64 {
            let name = format!("kernel_{kernel}\0");
            let head = [0; 24];
            let at = 10 + 10 * kernel;
            program.event(&mut rng, (at, 0), 1, &[&head, name.as_bytes()]);
            let made = (KERNELS + kernel).to_le_bytes();
            program.event(&mut rng, (at + 5, 0), 2, &[&0_i32.to_le_bytes(), &made]);
        }
        let mut free = [1000_u64; THREADS];
        for number in 0..count {
            let thread = rng.below(THREADS as u64) as usize;
            let entry = free[thread] + rng.between(1, 20_000);
            let exit = entry + rng.between(100, 5000);
            free[thread] = exit + 1;
            program.turn(&mut rng, thread, [entry, exit], 0x7000 + 16 * number);
        }
        program.events.sort_by_key(|event| event.time);
        program
    }

    fn turn(&mut self, rng: &mut Rng, thread: usize, [entry, exit]: [u64; 2], event: u64) {
        let class = [3, 5, 7][rng.below(3) as usize];
        let mut command = Command {
            class,
            kernel: rng.below(3),
            stream: if class == 7 { 0 } else { 0x100 * rng.below(3) },
            bytes: rng.between(1, 1 << 16),
            items: 0,
            duration: 0,
            has_failed: rng.chance(5),
        };
        let stream = command.stream.to_le_bytes();
        let fields = match class {
            3 => {
                let sizes = [1, 2, 3, 32, 2, 1].map(|of| of + u32::from(rng.chance(50)));
                command.items = sizes.iter().map(|of| u64::from(*of)).product();
                command.bytes = 0;
                let sizes = sizes.map(u32::to_le_bytes).concat();
                let kernel = (KERNELS + command.kernel).to_le_bytes();
                bytes(&[&kernel, &sizes, &[0; 4], &stream, &[0; 24]])
            }
            5 => bytes(&[&[1; 16], &command.bytes.to_le_bytes(), &stream]),
            _ => {
                let mut copy = vec![0; 112];
                copy.extend(command.bytes.to_le_bytes());
                copy.extend(7_u64.to_le_bytes());
                command.bytes *= 7;
                bytes(&[&[1; 8], &(copy.len() as u64).to_le_bytes(), &copy])
            }
        };
        self.event(rng, (entry, thread), class, &[&fields]);
        let has_failed = rng.chance(5);
        let result = if has_failed { 1 } else { 0_i32 };
        self.event(rng, (exit, thread), class + 1, &[&result.to_le_bytes()]);
        if has_failed {
            self.failed_calls += 1;
            return;
        }
        let events = [event, event + 8].map(u64::to_le_bytes).concat();
        let between = rng.between(entry + 1, exit - 1);
        self.event(rng, (between, thread), 9, &[&events]);
        if rng.chance(5) {
            self.unfinished += 1;
            return;
        }
        let microseconds = rng.between(1, 1 << 14);
        let milliseconds = microseconds as f32 / 1024.0;
        command.duration = microseconds * 1_000_000 / 1024;
        let status = if command.has_failed { 700 } else { 0_i32 };
        // Results may be recorded before the call ends.
        let recorded = between + rng.between(1, 1_000_000);
        let fields = bytes(&[
            &events,
            &[0; 8],
            &status.to_le_bytes(),
            &milliseconds.to_le_bytes(),
        ]);
        self.event(rng, (recorded, THREADS), 10, &[&fields]);
        self.commands.push(command);
    }

    fn sums(
        &self,
        by: impl Fn(&Command) -> Option<String>,
        value: impl Fn(&Command) -> u64,
    ) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for command in &self.commands {
            if let Some(group) = by(command) {
                *sums.entry(group).or_insert(0) += value(command);
            }
        }
        sums
    }
}

fn execution(command: &Command) -> u64 {
    if command.has_failed {
        0
    } else {
        command.duration
    }
}

fn is_as_modelled(what: &str, program: &Program, report: &Value) {
    let total = |key: &str| report["total"][key].as_u64().expect("a number");
    let count = program.commands.len() as u64;
    let failed = program.commands.iter().filter(|of| of.has_failed).count() as u64;
    for (key, expected) in [
        ("commands", count),
        ("errors", failed),
        ("unprofiled", failed),
        ("only_durations", count - failed),
        ("unfinished", program.unfinished),
        ("without_call", 0),
    ] {
        assert_eq!(total(key), expected, "{what}: {key}");
    }
    let queue = |of: &Command| Some(format!("{:#x}", of.stream));
    let found = sums(report, "queues", "handle", "execution_ns");
    assert_eq!(found, program.sums(queue, execution), "{what}: executing");
    for key in ["host_queue_ns", "device_queue_ns"] {
        let found = sums(report, "queues", "handle", key);
        assert_eq!(found, program.sums(queue, |_| 0), "{what}: {key}");
    }
    let kernel = |of: &Command| (of.class == 3).then(|| format!("kernel_{}", of.kernel));
    let found = sums(report, "kernels", "kernel", "total_ns");
    assert_eq!(found, program.sums(kernel, execution), "{what}: kernels");
    let found = sums(report, "kernels", "kernel", "items");
    assert_eq!(found, program.sums(kernel, |of| of.items), "{what}: items");
    let kind = |of: &Command| match of.class {
        5 => Some("write".to_owned()),
        7 => Some("copy".to_owned()),
        _ => None,
    };
    let found = sums(report, "transfers", "kind", "bytes");
    assert_eq!(found, program.sums(kind, |of| of.bytes), "{what}: bytes");
    let found = sums(report, "transfers", "kind", "total_ns");
    assert_eq!(found, program.sums(kind, execution), "{what}: transfers");
    let errors = sums(report, "functions", "function", "errors");
    assert_eq!(errors.values().sum::<u64>(), program.failed_calls, "{what}");
    for table in ["devices", "idle"] {
        assert_eq!(report[table], Value::Array(Vec::new()), "{what}: {table}");
    }
    assert_eq!(report["clocks"][0]["relation"], "absent", "{what}");
}

/// Event classes and records of a random program.
pub(crate) fn made_up(seed: u64) -> (String, Vec<Event>) {
    (CLASSES.to_owned(), Program::random(seed, 150).events)
}

#[test]
fn durations_are_as_modelled() {
    for seed in 0..4 {
        let program = Program::random(seed, 150);
        let what = format!("seed {seed}");
        in_every_way(&what, CLASSES, &program.events, |what, whole| {
            is_as_modelled(what, &program, whole);
        });
    }
}
