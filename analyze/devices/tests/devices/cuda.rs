//! The report of made-up CUDA programs is that of a plain model, in every layout of streams, for all
//! threads and chunks.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_testkit::rng::Rng;

use crate::program::{CPUS, THREADS};
use crate::trace::{Event, ORIGIN, bytes};
use crate::{in_every_way, sums};

const CLASSES: &str = r#"
typealias integer { size = 8; align = 8; } := byte;
event { name = "lttng_ust_cudart:cudaLaunchKernel_entry"; id = 1; stream_id = 0; fields := struct { u64 _func; u32 _correlation; }; };
event { name = "lttng_ust_cudart:cudaLaunchKernel_exit"; id = 2; stream_id = 0; fields := struct { i32 _cudaResult; u32 _correlation; }; };
event { name = "lttng_ust_cuda:cuLaunchKernel_entry"; id = 3; stream_id = 0; fields := struct { u64 _f; u32 _correlation; }; };
event { name = "lttng_ust_cuda:cuLaunchKernel_exit"; id = 4; stream_id = 0; fields := struct { i32 _cuResult; u32 _correlation; }; };
event { name = "lttng_ust_cuda:cuMemcpyHtoDAsync_v2_entry"; id = 5; stream_id = 0; fields := struct { u64 _dstDevice; u32 _correlation; }; };
event { name = "lttng_ust_cuda:cuMemcpyHtoDAsync_v2_exit"; id = 6; stream_id = 0; fields := struct { i32 _cuResult; u32 _correlation; }; };
event { name = "tracebraid_cuda:kernel"; id = 7; stream_id = 0; fields := struct {
	u32 _correlation; u64 _kernel; u32 _device; u32 _context; u32 _stream; u64 _queued; u64 _submit; u64 _start; u64 _end;
	u32 __grid_vals_length; u32 _grid_vals[__grid_vals_length]; u32 __block_vals_length; u32 _block_vals[__block_vals_length];
}; };
event { name = "tracebraid_cuda:memcpy"; id = 8; stream_id = 0; fields := struct {
	u32 _correlation; byte _copy_kind; u32 _device; u32 _context; u32 _stream; u64 _bytes; u64 _start; u64 _end;
}; };
event { name = "tracebraid_cuda:kernel_name"; id = 9; stream_id = 0; fields := struct { u64 _kernel; string _name; }; };
event { name = "tracebraid_cuda:stream"; id = 10; stream_id = 0; fields := struct { u32 _context; u32 _stream; u32 _device; }; };
event { name = "tracebraid_cuda:device"; id = 11; stream_id = 0; fields := struct { u32 _device; string _name; }; };
"#;

/// Nanoseconds by which the device's clock is ahead of that of the trace's events, since 1970.
const AHEAD: u64 = 5_000_000;
/// Thread that records commands.
const WORKER: usize = THREADS;

/// A command, and the call that enqueued it.
struct Command {
    /// 0: the call is not in the trace.
    correlation: u32,
    /// The kernel, or else a copy of this kind.
    kernel: Option<u64>,
    copy_kind: u8,
    stream: u32,
    bytes: u64,
    /// Of the device; those of copies begin with two zeros.
    times: [u64; 4],
    grid: u32,
    recorded: u64,
}

#[derive(Default)]
struct Program {
    commands: Vec<Command>,
    events: Vec<Event>,
    /// Calls by function: number, time, errors.
    calls: BTreeMap<String, [u64; 3]>,
}

fn name(kernel: u64) -> String {
    format!("kernel<{kernel}>(int*)")
}

impl Program {
    fn event(&mut self, time: u64, place: (usize, usize), class: u8, fields: &[&[u8]]) {
        self.events.push(Event {
            time,
            thread: place.0,
            cpu: place.1,
            class,
            payload: bytes(fields),
        });
    }

    /// A call that begins and ends with the classes `class` and `class + 1`.
    fn call(
        &mut self,
        function: &str,
        class: u8,
        place: (usize, usize),
        span: [u64; 2],
        of: (u32, i32),
    ) {
        let (correlation, result) = (of.0.to_le_bytes(), of.1);
        self.event(span[0], place, class, &[&7_u64.to_le_bytes(), &correlation]);
        self.event(
            span[1],
            place,
            class + 1,
            &[&result.to_le_bytes(), &correlation],
        );
        let calls = self.calls.entry(function.to_owned()).or_default();
        calls[0] += 1;
        calls[1] += span[1] - span[0];
        calls[2] += u64::from(result != 0 && result != 600);
    }

    fn random(seed: u64, count: u32) -> Program {
        let mut rng = Rng::new(seed);
        let mut program = Program::default();
        let at_begin = (WORKER, 0);
        program.event(1, at_begin, 11, &[&0_u32.to_le_bytes(), b"Made-up 9000\0"]);
        for stream in 1..4_u32 {
            let fields = [1, stream, 0].map(u32::to_le_bytes);
            program.event(2, at_begin, 10, &[&fields.concat()]);
        }
        for kernel in 0..4_u64 {
            let text = [name(kernel).as_bytes(), &[0]].concat();
            program.event(3, at_begin, 9, &[&(100 + kernel).to_le_bytes(), &text]);
        }
        let mut free = [1000_u64; THREADS];
        for correlation in 1..=count {
            let thread = rng.below(THREADS as u64) as usize;
            let cpu = rng.below(CPUS as u64) as usize;
            let entry = free[thread] + rng.between(1, 20_000);
            let exit = entry + rng.between(1000, 5000);
            free[thread] = exit + 1;
            program.turn(&mut rng, (thread, cpu), [entry, exit], correlation);
        }
        for _ in 0..rng.below(4) {
            let time = rng.between(2000, free[0]);
            program.command(&mut rng, [time, time], 0, None);
        }
        program.events.sort_by_key(|event| event.time);
        program
    }

    /// A call with its commands: a graph has several, a failed call none.
    fn turn(&mut self, rng: &mut Rng, place: (usize, usize), span: [u64; 2], correlation: u32) {
        let [entry, exit] = span;
        let result = [0, 0, 0, 0, 0, 0, 0, 1, 600][rng.below(9) as usize];
        let is_kernel = rng.chance(60);
        if is_kernel && rng.chance(50) {
            // The runtime calls the driver, with the number of the outer call.
            let within = [entry + 100, exit - 100];
            self.call("cuLaunchKernel", 3, place, within, (correlation, result));
            self.call("cudaLaunchKernel", 1, place, span, (correlation, result));
        } else if is_kernel {
            self.call("cuLaunchKernel", 3, place, span, (correlation, result));
        } else {
            self.call(
                "cuMemcpyHtoDAsync_v2",
                5,
                place,
                span,
                (correlation, result),
            );
        }
        let commands = if result != 0 { 0 } else { rng.between(1, 2) };
        for _ in 0..commands {
            let kernel = is_kernel.then(|| rng.below(4));
            self.command(rng, span, correlation, kernel);
        }
    }

    fn command(
        &mut self,
        rng: &mut Rng,
        [entry, exit]: [u64; 2],
        correlation: u32,
        kernel: Option<u64>,
    ) {
        let queued = rng.between(entry + 200, exit.max(entry + 201));
        let start = queued + 50 + rng.below(20_000);
        let end = start + rng.between(1, 30_000);
        let mut times = [queued, queued + 50, start, end].map(|time| time + AHEAD);
        let has_no_times = kernel.is_some() && rng.chance(5);
        if kernel.is_none() {
            times = [0, 0, times[2], times[3]];
        } else if has_no_times {
            times = [0; 4];
        }
        self.commands.push(Command {
            correlation,
            kernel,
            copy_kind: [1, 2, 8][rng.below(3) as usize],
            stream: rng.between(1, 3) as u32,
            bytes: rng.between(1, 1 << 20),
            times,
            grid: rng.between(1, 100) as u32,
            // Some records come before the end of the call.
            recorded: end + rng.between(10, 100_000),
        });
        self.record();
    }

    /// Records the last command.
    fn record(&mut self) {
        let Some(of) = self.commands.last() else {
            return;
        };
        let head = of.correlation.to_le_bytes();
        let places = [0, 1, of.stream].map(u32::to_le_bytes).concat();
        let times = of.times.map(u64::to_le_bytes);
        let (recorded, cpu) = (of.recorded, of.stream as usize % CPUS);
        let place = (WORKER, cpu);
        match of.kernel {
            Some(kernel) => {
                let kernel = (100 + kernel).to_le_bytes();
                let sizes = [3, of.grid, 1, 1, 3, 32, 2, 1]
                    .map(u32::to_le_bytes)
                    .concat();
                let fields: [&[u8]; 5] = [&head, &kernel, &places, &times.concat(), &sizes];
                let fields = bytes(&fields);
                self.event(recorded, place, 7, &[&fields]);
            }
            None => {
                let kind = [of.copy_kind];
                let bytes_of = of.bytes.to_le_bytes();
                let times = times[2..].concat();
                let fields: [&[u8]; 5] = [&head, &kind, &places, &bytes_of, &times];
                let fields = bytes(&fields);
                self.event(recorded, place, 8, &[&fields]);
            }
        }
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

fn is_as_modelled(what: &str, program: &Program, report: &Value) {
    let total = |key: &str| report["total"][key].as_u64().expect("a number");
    assert_eq!(total("commands"), program.commands.len() as u64, "{what}");
    assert_eq!(total("unfinished"), 0, "{what}");
    let unprofiled = program.commands.iter().filter(|of| of.times[3] == 0);
    assert_eq!(total("unprofiled"), unprofiled.count() as u64, "{what}");
    let queue = |of: &Command| Some(format!("{:#x}", 1_u64 << 32 | u64::from(of.stream)));
    let execution = |of: &Command| of.times[3] - of.times[2];
    for (key, value) in [
        (
            "commands",
            &(|_: &Command| 1_u64) as &dyn Fn(&Command) -> u64,
        ),
        ("execution_ns", &execution),
        ("host_queue_ns", &|of| of.times[1] - of.times[0]),
        ("device_queue_ns", &|of| match of.kernel {
            Some(_) => of.times[2] - of.times[1],
            None => 0,
        }),
    ] {
        let found = sums(report, "queues", "handle", key);
        assert_eq!(found, program.sums(queue, value), "{what}: {key}");
    }
    let kernel = |of: &Command| of.kernel.map(name);
    let found = sums(report, "kernels", "kernel", "total_ns");
    assert_eq!(found, program.sums(kernel, execution), "{what}: kernels");
    let found = sums(report, "kernels", "kernel", "items");
    let items = |of: &Command| u64::from(of.grid) * 64;
    assert_eq!(found, program.sums(kernel, items), "{what}: items");
    let kind = |of: &Command| match (of.kernel, of.copy_kind) {
        (Some(_), _) => None,
        (None, 1) => Some("write".to_owned()),
        (None, 2) => Some("read".to_owned()),
        (None, _) => Some("copy".to_owned()),
    };
    let found = sums(report, "transfers", "kind", "bytes");
    assert_eq!(found, program.sums(kind, |of| of.bytes), "{what}: bytes");
    for (key, place) in [("calls", 0), ("total_ns", 1), ("errors", 2)] {
        let found = sums(report, "functions", "function", key);
        let of_calls = program.calls.iter();
        let of_calls = of_calls.map(|(function, of)| (function.clone(), of[place]));
        assert_eq!(found, of_calls.collect(), "{what}: {key}");
    }
}

/// Each command bounds the offset: it is queued after its call began, and ends before it is recorded.
fn clock_is_within_bounds(what: &str, report: &Value) {
    let device = &report["clocks"][0];
    assert_eq!(device["device"], "Made-up 9000", "{what}");
    let offset = device["offset_ns"].as_i64().expect("an offset");
    let error = device["error_ns"].as_u64().expect("bounds");
    let truth = ORIGIN - AHEAD as i64;
    assert!(
        offset.abs_diff(truth) <= error + 2,
        "{what}: {offset} is {} ns off: {device}",
        offset - truth
    );
    assert!(error < 1_000_000, "{what}: {device}");
}

/// Event classes and records of a random program.
pub(crate) fn made_up(seed: u64) -> (String, Vec<Event>) {
    (CLASSES.to_owned(), Program::random(seed, 150).events)
}

#[test]
fn made_up_cuda_programs_are_as_modelled() {
    for seed in 0..8 {
        let program = Program::random(seed, 150);
        let what = format!("seed {seed}");
        in_every_way(&what, CLASSES, &program.events, |what, whole| {
            is_as_modelled(what, &program, whole);
            clock_is_within_bounds(what, whole);
        });
    }
}
