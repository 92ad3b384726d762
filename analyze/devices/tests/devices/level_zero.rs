//! The report of made-up Level Zero programs, recorded as THAPI does, is that of a plain model, in
//! every layout of streams, for all threads and chunks.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_testkit::rng::Rng;

use crate::program::{CPUS, THREADS};
use crate::trace::{Event, bytes};
use crate::{in_every_way, sums};

/// Classes, fields and types of THAPI's models. Structures are sequences of characters.
const CLASSES: &str = r#"
typealias integer { size = 8; align = 8; encoding = UTF8; } := text8;
event { name = "lttng_ust_ze_properties:device"; id = 1; stream_id = 0; fields := struct {
	u64 _hDriver; u64 _hDevice; u64 __pDeviceProperties_val_length; text8 _pDeviceProperties_val[__pDeviceProperties_val_length]; }; };
event { name = "lttng_ust_ze_properties:subdevice"; id = 2; stream_id = 0; fields := struct {
	u64 _hDriver; u64 _hDevice; u64 _hSubDevice; u64 __pDeviceProperties_val_length; text8 _pDeviceProperties_val[__pDeviceProperties_val_length]; }; };
event { name = "lttng_ust_ze_properties:device_timer"; id = 3; stream_id = 0; fields := struct {
	u64 _hDevice; u64 _hostTimestamp; u64 _deviceTimestamp; }; };
event { name = "lttng_ust_ze:zeKernelCreate_entry"; id = 4; stream_id = 0; fields := struct { u64 _hModule; u64 _desc; u64 _phKernel; string _desc__pKernelName_val; }; };
event { name = "lttng_ust_ze:zeKernelCreate_exit"; id = 5; stream_id = 0; fields := struct { i32 _zeResult; u64 _phKernel_val; }; };
event { name = "lttng_ust_ze:zeCommandListCreate_entry"; id = 6; stream_id = 0; fields := struct { u64 _hContext; u64 _hDevice; u64 _desc; u64 _phCommandList; }; };
event { name = "lttng_ust_ze:zeCommandListCreate_exit"; id = 7; stream_id = 0; fields := struct { i32 _zeResult; u64 _phCommandList_val; }; };
event { name = "lttng_ust_ze:zeCommandListCreateImmediate_entry"; id = 8; stream_id = 0; fields := struct { u64 _hContext; u64 _hDevice; u64 _altdesc; u64 _phCommandList; }; };
event { name = "lttng_ust_ze:zeCommandListCreateImmediate_exit"; id = 9; stream_id = 0; fields := struct { i32 _zeResult; u64 _phCommandList_val; }; };
event { name = "lttng_ust_ze:zeCommandListAppendLaunchKernel_entry"; id = 10; stream_id = 0; fields := struct {
	u64 _hCommandList; u64 _hKernel; u64 _pLaunchFuncArgs; u64 _hSignalEvent; u32 _numWaitEvents; u64 _phWaitEvents;
	u64 __phWaitEvents_vals_length; u64 _phWaitEvents_vals[__phWaitEvents_vals_length]; }; };
event { name = "lttng_ust_ze:zeCommandListAppendLaunchKernel_exit"; id = 11; stream_id = 0; fields := struct { i32 _zeResult; }; };
event { name = "lttng_ust_ze:zeCommandListAppendMemoryCopy_entry"; id = 12; stream_id = 0; fields := struct {
	u64 _hCommandList; u64 _dstptr; u64 _srcptr; u64 _size; u64 _hSignalEvent; u32 _numWaitEvents; }; };
event { name = "lttng_ust_ze:zeCommandListAppendMemoryCopy_exit"; id = 13; stream_id = 0; fields := struct { i32 _zeResult; }; };
event { name = "lttng_ust_ze_profiling:event_profiling"; id = 14; stream_id = 0; fields := struct { u64 _hEvent; }; };
event { name = "lttng_ust_ze_profiling:event_profiling_results"; id = 15; stream_id = 0; fields := struct {
	u64 _hEvent; i32 _status; i32 _timestampStatus; u64 _globalStart; u64 _globalEnd; u64 _contextStart; u64 _contextEnd; }; };
event { name = "lttng_ust_ze:zeCommandQueueExecuteCommandLists_entry"; id = 16; stream_id = 0; fields := struct {
	u64 _hCommandQueue; u32 _numCommandLists; u64 _phCommandLists; u64 _hFence; u64 __phCommandLists_vals_length; u64 _phCommandLists_vals[__phCommandLists_vals_length]; }; };
event { name = "lttng_ust_ze:zeCommandQueueExecuteCommandLists_exit"; id = 17; stream_id = 0; fields := struct { i32 _zeResult; }; };
event { name = "lttng_ust_ze:zeCommandListReset_entry"; id = 18; stream_id = 0; fields := struct { u64 _hCommandList; }; };
event { name = "lttng_ust_ze:zeCommandListReset_exit"; id = 19; stream_id = 0; fields := struct { i32 _zeResult; }; };
event { name = "lttng_ust_ze:zeEventHostSignal_entry"; id = 20; stream_id = 0; fields := struct { u64 _hEvent; }; };
event { name = "lttng_ust_ze:zeEventHostSignal_exit"; id = 21; stream_id = 0; fields := struct { i32 _zeResult; }; };
"#;

/// Nanoseconds of a cycle.
const RESOLUTION: u64 = 80;
/// The counters wrap every 1.3 ms.
const BITS: u32 = 14;
/// Handles of a device, of a part of it, and of another device.
const DEVICES: [u64; 3] = [0xd0, 0xd1, 0xd2];
const LISTS: u64 = 0x1000;
const KERNELS: u64 = 0x2000;

/// A list of commands: first an immediate list for each device, then a list for each thread.
fn list(number: usize) -> u64 {
    LISTS + 8 * number as u64
}

/// A command as it was executed.
#[derive(Clone)]
struct Command {
    list: u64,
    device: usize,
    /// The kernel, or else a copy.
    kernel: Option<u64>,
    bytes: u64,
    /// Begin of the call that queued it, start and end, in cycles of the device that do not wrap.
    begin: u64,
    cycles: [u64; 2],
    has_failed: bool,
}

struct Program {
    rng: Rng,
    drift: f64,
    events: Vec<Event>,
    commands: Vec<Command>,
    calls: BTreeMap<&'static str, u64>,
    next_event: u64,
}

impl Program {
    fn random(seed: u64, count: usize) -> Program {
        let mut rng = Rng::new(seed);
        let drift = (rng.below(2000) as f64 - 1000.0) * 1e-6;
        let mut program = Program {
            rng,
            drift,
            events: Vec::new(),
            commands: Vec::new(),
            calls: BTreeMap::new(),
            next_event: 0x7000,
        };
        program.begin();
        let mut free = [10_000_u64; THREADS];
        for _ in 0..count {
            let thread = program.rng.below(THREADS as u64) as usize;
            let entry = free[thread] + program.rng.between(1, 60_000);
            let end = match program.rng.below(5) {
                0 => program.regular(thread, entry),
                1 => program.signal(thread, entry),
                _ => program.immediate(thread, entry),
            };
            free[thread] = end + 1;
        }
        program.events.sort_by_key(|event| event.time);
        program
    }

    fn event(&mut self, time: u64, thread: usize, class: u8, fields: &[&[u8]]) {
        let cpu = self.rng.below(CPUS as u64) as usize;
        self.events.push(Event {
            time,
            thread,
            cpu,
            class,
            payload: bytes(fields),
        });
    }

    fn call(&mut self, name: &'static str, of: (usize, [u64; 2]), class: u8, fields: [&[u8]; 2]) {
        let (thread, [entry, exit]) = of;
        self.event(entry, thread, class, &[fields[0]]);
        self.event(exit, thread, class + 1, &[&0_i32.to_le_bytes(), fields[1]]);
        *self.calls.entry(name).or_default() += 1;
    }

    /// Cycles of the device, which do not wrap, at a time of the host.
    fn cycles(&self, device: usize, time: u64) -> u64 {
        let of_device = time as f64 * (1.0 + self.drift);
        // A part counts as the device.
        let ahead = [3_000_000, 3_000_000, 1_234_560][device];
        (of_device as u64 + ahead) / RESOLUTION
    }

    /// Properties, lists and kernels.
    fn begin(&mut self) {
        let name = |device: usize| format!("Made-up {}", device / 2);
        for device in 0..3 {
            let mut of = vec![0; 368];
            of[0] = 3;
            of[80..88].copy_from_slice(&RESOLUTION.to_le_bytes());
            of[88..92].copy_from_slice(&64_u32.to_le_bytes());
            of[92..96].copy_from_slice(&BITS.to_le_bytes());
            of[96] = device as u8 + 1;
            of[112..112 + name(device).len()].copy_from_slice(name(device).as_bytes());
            let length = (of.len() as u64).to_le_bytes();
            let handles = match device {
                1 => [1, DEVICES[0], DEVICES[1]].map(u64::to_le_bytes).concat(),
                _ => [1, DEVICES[device]].map(u64::to_le_bytes).concat(),
            };
            let class = if device == 1 { 2 } else { 1 };
            self.event(2, 0, class, &[&handles, &length, &of]);
            if device != 1 {
                let read = self.cycles(device, 3);
                let fields = [DEVICES[device], 0, read].map(u64::to_le_bytes);
                self.event(4, 0, 3, &[&fields.concat()]);
            }
        }
        for (number, device) in [0, 1, 2].into_iter().chain([0; THREADS]).enumerate() {
            let span = (0, [100 + 20 * number as u64, 110 + 20 * number as u64]);
            let fields = [1, DEVICES[device], 0, 0].map(u64::to_le_bytes).concat();
            let made = list(number).to_le_bytes();
            match number {
                0..3 => self.call("zeCommandListCreateImmediate", span, 8, [&fields, &made]),
                _ => self.call("zeCommandListCreate", span, 6, [&fields, &made]),
            }
        }
        for kernel in 0..3_u64 {
            let span = (0, [1000 + 20 * kernel, 1010 + 20 * kernel]);
            let fields = [&[0; 24], format!("kernel_{kernel}\0").as_bytes()].concat();
            let made = (KERNELS + kernel).to_le_bytes();
            self.call("zeKernelCreate", span, 4, [&fields, &made]);
        }
    }

    /// A call that appends a command. Returns the end of the call, the event and the command.
    fn append(&mut self, thread: usize, entry: u64, number: usize) -> (u64, u64, Command) {
        let exit = entry + self.rng.between(100, 5000);
        let event = self.next_event;
        self.next_event += 8;
        let kernel = self.rng.chance(60).then(|| self.rng.below(3));
        let size = self.rng.between(1, 1 << 20);
        let list = list(number);
        match kernel {
            Some(kernel) => {
                let head = [list, KERNELS + kernel, 0, 0]
                    .map(u64::to_le_bytes)
                    .concat();
                let fields = bytes(&[&head, &[0; 12], &1_u64.to_le_bytes(), &[9; 8]]);
                let name = "zeCommandListAppendLaunchKernel";
                self.call(name, (thread, [entry, exit]), 10, [&fields, &[]]);
            }
            None => {
                let fields = [list, 1, 2, size, 0].map(u64::to_le_bytes).concat();
                let fields = bytes(&[&fields, &0_u32.to_le_bytes()]);
                let name = "zeCommandListAppendMemoryCopy";
                self.call(name, (thread, [entry, exit]), 12, [&fields, &[]]);
            }
        }
        let between = self.rng.between(entry + 1, exit - 1);
        self.event(between, thread, 14, &[&event.to_le_bytes()]);
        let command = Command {
            list,
            device: number.min(3) % 3,
            kernel,
            bytes: if kernel.is_some() { 0 } else { size },
            begin: 0,
            cycles: [0; 2],
            has_failed: false,
        };
        (exit, event, command)
    }

    /// The device executes a command that a call queued; returns the time at which it is recorded.
    fn execute(&mut self, (event, mut command): (u64, Command), begin: u64, exit: u64) -> u64 {
        let start = begin + self.rng.between(300, 200_000);
        let end = start + self.rng.between(1, 300_000);
        let device = command.device;
        command.begin = self.cycles(device, begin);
        command.cycles = [start, end].map(|time| self.cycles(device, time));
        command.has_failed = self.rng.chance(3);
        let wrapped = command.cycles.map(|of| of % (1 << BITS));
        let times = [wrapped, wrapped].concat();
        let times: Vec<u8> = times.iter().flat_map(|of| of.to_le_bytes()).collect();
        let status = [0, i32::from(command.has_failed) * 0x7800_0001].map(i32::to_le_bytes);
        let recorded = end.max(exit) + self.rng.between(1, 9000);
        self.event(
            recorded,
            THREADS,
            15,
            &[&event.to_le_bytes(), &status.concat(), &times],
        );
        self.commands.push(command);
        recorded
    }

    fn immediate(&mut self, thread: usize, entry: u64) -> u64 {
        let number = self.rng.below(3) as usize;
        let (exit, event, command) = self.append(thread, entry, number);
        self.execute((event, command), entry, exit);
        exit
    }

    /// Commands of a list that is executed several times, and emptied.
    fn regular(&mut self, thread: usize, entry: u64) -> u64 {
        let mut at = entry;
        let mut commands = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            let (exit, event, command) = self.append(thread, at, 3 + thread);
            commands.push((event, command));
            at = exit + self.rng.between(1, 3000);
        }
        let list = list(3 + thread).to_le_bytes();
        for _ in 0..self.rng.between(1, 3) {
            let exit = at + self.rng.between(10, 3000);
            let fields = bytes(&[&[0; 28], &1_u64.to_le_bytes(), &list]);
            let name = "zeCommandQueueExecuteCommandLists";
            self.call(name, (thread, [at, exit]), 16, [&fields, &[]]);
            let executed = commands.clone().into_iter();
            let recorded = executed.map(|command| self.execute(command, at, exit));
            at = recorded.fold(exit, u64::max) + 1;
        }
        self.call(
            "zeCommandListReset",
            (thread, [at, at + 5]),
            18,
            [&list, &[]],
        );
        at + 5
    }

    /// THAPI times this event, although the call enqueues nothing.
    fn signal(&mut self, thread: usize, entry: u64) -> u64 {
        let event = 0x6000_u64.to_le_bytes();
        self.call(
            "zeEventHostSignal",
            (thread, [entry, entry + 9]),
            20,
            [&event, &[]],
        );
        self.event(entry + 5, thread, 14, &[&event]);
        entry + 9
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

    /// Cycles in which a device executed at least one command; parts count as the device.
    fn busy(&self, device: usize) -> u64 {
        let of = self.commands.iter();
        let of = of.filter(|of| of.device / 2 == device / 2 && !of.has_failed);
        let mut spans: Vec<[u64; 2]> = of.map(|of| of.cycles).collect();
        spans.sort_unstable();
        let mut until = 0;
        let lengths = spans.into_iter().map(|[start, end]| {
            let length = end.saturating_sub(start.max(until));
            until = until.max(end);
            length
        });
        lengths.sum()
    }
}

fn execution(command: &Command) -> u64 {
    match command.has_failed {
        true => 0,
        false => (command.cycles[1] - command.cycles[0]) * RESOLUTION,
    }
}

fn is_as_modelled(what: &str, program: &Program, report: &Value) {
    let total = |key: &str| report["total"][key].as_u64().expect("a number");
    let failed = program.commands.iter().filter(|of| of.has_failed).count() as u64;
    assert_eq!(total("commands"), program.commands.len() as u64, "{what}");
    for (key, expected) in [
        ("unfinished", 0),
        ("without_call", 0),
        ("unprofiled", failed),
        ("errors", failed),
        ("only_durations", 0),
        ("calls", program.calls.values().sum()),
    ] {
        assert_eq!(total(key), expected, "{what}: {key}");
    }
    let queue = |of: &Command| Some(format!("{:#x}", of.list));
    let found = sums(report, "queues", "handle", "execution_ns");
    assert_eq!(found, program.sums(queue, execution), "{what}: executing");
    let kernel = |of: &Command| of.kernel.map(|kernel| format!("kernel_{kernel}"));
    let found = sums(report, "kernels", "kernel", "total_ns");
    assert_eq!(found, program.sums(kernel, execution), "{what}: kernels");
    let copy = |of: &Command| of.kernel.is_none().then(|| "copy".to_owned());
    let found = sums(report, "transfers", "kind", "bytes");
    assert_eq!(found, program.sums(copy, |of| of.bytes), "{what}: bytes");
    let found = sums(report, "functions", "function", "calls");
    let calls = program.calls.iter();
    let calls = calls.map(|(name, count)| ((*name).to_owned(), *count));
    assert_eq!(found, calls.collect(), "{what}: calls");
    let devices = report["devices"].as_array().expect("rows");
    assert_eq!(devices.len(), 2, "{what}");
    for (name, device) in [("Made-up 0", 0), ("Made-up 1", 2)] {
        let row = devices.iter().find(|row| row["device"] == name);
        let row = row.unwrap_or_else(|| panic!("{what}: no {name}: {devices:?}"));
        let busy = program.busy(device) * RESOLUTION;
        assert_eq!(row["busy_ns"].as_u64(), Some(busy), "{what}: {name}");
    }
}

/// Commands are queued when their calls begin, as far as the relation of the clocks is known.
fn waits_are_nearly_as_modelled(what: &str, program: &Program, report: &Value) {
    let waits = |of: &Command| match of.has_failed {
        true => 0,
        false => (of.cycles[0] - of.begin) * RESOLUTION,
    };
    let expected: u64 = program.commands.iter().map(waits).sum();
    let found: u64 = sums(report, "queues", "handle", "device_queue_ns")
        .values()
        .sum();
    let errors = sums(report, "clocks", "device", "error_ns");
    let error = errors.values().max().expect("a relation of the clocks");
    assert!(*error < 30_000, "{what}: {errors:?}");
    let most = (error + 2 * RESOLUTION) * program.commands.len() as u64;
    assert!(
        found.abs_diff(expected) < most,
        "{what}: {found} instead of {expected}, by {most}"
    );
}

/// Event classes and records of a random program.
pub(crate) fn made_up(seed: u64) -> (String, Vec<Event>) {
    (CLASSES.to_owned(), Program::random(seed, 150).events)
}

#[test]
fn made_up_level_zero_programs_are_as_modelled() {
    for seed in 0..6 {
        let program = Program::random(seed, 150);
        let what = format!("seed {seed}");
        in_every_way(&what, CLASSES, &program.events, |what, whole| {
            is_as_modelled(what, &program, whole);
            waits_are_nearly_as_modelled(what, &program, whole);
        });
    }
}
