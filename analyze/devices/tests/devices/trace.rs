//! The trace of a made-up program, in the layout of two tracers.

use std::fs;
use std::path::Path;

use tracebraid_testkit::rng::Rng;

use crate::program::{CPUS, Command, Program, QUEUES, THREADS};

/// Nanoseconds from the origin of times to the zero of the clock.
pub(crate) const ORIGIN: i64 = 1_700_000_000_000_000_000;

/// Which event records share a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Those of a thread, whose id is in the packet, as tracebraid's.
    ByThread,
    /// Those of a CPU, with the thread in each event record, as LTTng's.
    ByCpu,
}

/// Event records in a packet.
const PACKET: usize = 16;

const HEAD: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 32; align = 8; signed = true; } := i32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
env { hostname = "box"; domain = "ust"; tracer_name = "lttng-ust"; procname = "made-up"; vpid = 42; };
clock { name = "monotonic"; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time64;
"#;

const CLASSES: &str = r#"
event { name = "lttng_ust_opencl:clEnqueueNDRangeKernel_entry"; id = 1; stream_id = 0; fields := struct {
	u64 _command_queue; u64 _kernel; u32 __global_work_size_vals_length; u64 _global_work_size_vals[__global_work_size_vals_length];
	u32 _event_wait_list_vals_length; u64 _event_wait_list_vals[_event_wait_list_vals_length];
}; };
event { name = "lttng_ust_opencl:clEnqueueNDRangeKernel_exit"; id = 2; stream_id = 0; fields := struct { i32 _errcode_ret_val; u64 _event_val; }; };
event { name = "lttng_ust_opencl:clEnqueueReadBuffer_entry"; id = 3; stream_id = 0; fields := struct { u64 _command_queue; u64 _size;
	u32 _event_wait_list_vals_length; u64 _event_wait_list_vals[_event_wait_list_vals_length];
}; };
event { name = "lttng_ust_opencl:clEnqueueReadBuffer_exit"; id = 4; stream_id = 0; fields := struct { i32 _errcode_ret_val; u64 _event_val; }; };
event { name = "lttng_ust_opencl:clEnqueueWriteBuffer_entry"; id = 5; stream_id = 0; fields := struct { u64 _command_queue; u64 _size;
	u32 _event_wait_list_vals_length; u64 _event_wait_list_vals[_event_wait_list_vals_length];
}; };
event { name = "lttng_ust_opencl:clEnqueueWriteBuffer_exit"; id = 6; stream_id = 0; fields := struct { i32 _errcode_ret_val; u64 _event_val; }; };
event { name = "lttng_ust_opencl_profiling:event_profiling_results"; id = 7; stream_id = 0; fields := struct {
	u64 _event; i32 _event_command_exec_status; i32 _queued_status; u64 _queued; i32 _submit_status; u64 _submit;
	i32 _start_status; u64 _start; i32 _end_status; u64 _end;
}; };
event { name = "lttng_ust_opencl_arguments:kernel_info"; id = 8; stream_id = 0; fields := struct { u64 _kernel; string _function_name; }; };
event { name = "lttng_ust_opencl:clSetUserEventStatus_entry"; id = 9; stream_id = 0; fields := struct { u64 _event; i32 _execution_status; }; };
event { name = "lttng_ust_opencl_profiling:event_profiling"; id = 12; stream_id = 0; fields := struct { i32 _status; u64 _event; }; };
event { name = "lttng_ust_opencl_devices:device_name"; id = 10; stream_id = 0; fields := struct { u64 _device; string _name; }; };
event { name = "lttng_ust_opencl:clCreateCommandQueue_entry"; id = 13; stream_id = 0; fields := struct { u64 _device; }; };
event { name = "lttng_ust_opencl:clCreateCommandQueue_exit"; id = 14; stream_id = 0; fields := struct { i32 _errcode_ret_val; u64 _command_queue; }; };
"#;

/// A class that THAPI does not have.
const OURS: &str = r#"
event { name = "tracebraid_opencl:queue"; id = 11; stream_id = 0; fields := struct { u64 _queue; u64 _context; u64 _device; }; };
"#;

fn classes(program: &Program) -> String {
    let ours = if program.is_thapi { "" } else { OURS };
    [CLASSES, ours].concat()
}

/// An event record.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) thread: usize,
    pub(crate) cpu: usize,
    pub(crate) class: u8,
    pub(crate) payload: Vec<u8>,
}

/// Fields, one after the other.
pub(crate) fn bytes(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

fn class(command: &Command) -> u8 {
    match command.function() {
        "clEnqueueNDRangeKernel" => 1,
        "clEnqueueReadBuffer" => 3,
        _ => 5,
    }
}

fn handle(kernel: u64) -> u64 {
    0x9000 + 0x10 * kernel
}

fn entry(command: &Command) -> Vec<u8> {
    let queue = command.queue.to_le_bytes();
    let waits: Vec<u8> = match command.signal {
        Some((event, _)) => bytes(&[&2_u32.to_le_bytes(), &event.to_le_bytes(), &[9; 8]]),
        None => bytes(&[&0_u32.to_le_bytes()]),
    };
    let arguments = match command.kernel {
        Some(kernel) => bytes(&[
            &queue,
            &handle(kernel).to_le_bytes(),
            &1_u32.to_le_bytes(),
            &64_u64.to_le_bytes(),
        ]),
        None => bytes(&[&queue, &command.bytes.to_le_bytes()]),
    };
    [arguments, waits].concat()
}

fn results(event: u64, times: [u64; 4]) -> Vec<u8> {
    let zero = 0_i32.to_le_bytes();
    let mut all = bytes(&[&event.to_le_bytes(), &zero]);
    for time in times {
        all.extend(bytes(&[&zero, &time.to_le_bytes()]));
    }
    all
}

const DEVICE: u64 = 0xd0;

/// An event record before all calls.
fn early(class: u8, payload: Vec<u8>) -> Event {
    Event {
        time: 1,
        thread: THREADS + 1,
        cpu: 0,
        class,
        payload,
    }
}

fn events(program: &Program) -> Vec<Event> {
    let mut events = Vec::new();
    for command in &program.commands {
        let mut add = |time, thread, cpu, class, payload| {
            events.push(Event {
                time,
                thread,
                cpu,
                class,
                payload,
            });
        };
        let (thread, [begin, end]) = (command.thread, command.cpus);
        add(command.entry, thread, begin, class(command), entry(command));
        if let Some(at) = command.profiled {
            let payload = bytes(&[&0_i32.to_le_bytes(), &command.event.to_le_bytes()]);
            add(at, thread, end, 12, payload);
        }
        let event = if command.is_wanted { command.event } else { 0 };
        let exit = bytes(&[&0_i32.to_le_bytes(), &event.to_le_bytes()]);
        add(command.exit, thread, end, class(command) + 1, exit);
        if let Some((event, at)) = command.signal {
            let payload = bytes(&[&event.to_le_bytes(), &0_i32.to_le_bytes()]);
            add(at, thread, end, 9, payload);
        }
        if command.is_recorded {
            // Most callbacks come on a thread of the runtime.
            let payload = results(command.event, command.times);
            let of = if command.is_own_thread {
                thread
            } else {
                THREADS
            };
            add(command.recorded, of, begin, 7, payload);
        }
    }
    for queue in 1..=QUEUES {
        let queue = (0x100 * queue).to_le_bytes();
        let device = DEVICE.to_le_bytes();
        match program.is_thapi {
            true => {
                events.push(early(13, bytes(&[&device])));
                events.push(early(14, bytes(&[&0_i32.to_le_bytes(), &queue])));
            }
            false => events.push(early(11, bytes(&[&queue, &7_u64.to_le_bytes(), &device]))),
        }
    }
    let name = bytes(&[&DEVICE.to_le_bytes(), b"made-up device\0"]);
    events.push(early(10, name));
    for named in &program.named {
        let name = [named.name.as_bytes(), &[0]].concat();
        events.push(Event {
            time: named.time,
            thread: THREADS + 1,
            cpu: 0,
            class: 8,
            payload: bytes(&[&handle(named.kernel).to_le_bytes(), &name]),
        });
    }
    for time in &program.strangers {
        events.push(Event {
            time: *time,
            thread: THREADS,
            cpu: 1,
            class: 7,
            payload: results(0xdead_0000, [5, 6, 7, 8]),
        });
    }
    events.sort_by_key(|event| event.time);
    events
}

/// Event classes and records of a program.
pub(crate) fn made_up(program: &Program) -> (String, Vec<Event>) {
    (classes(program), events(program))
}

/// The records with some left out, and some with other bytes.
pub(crate) fn damaged(events: &[Event], rng: &mut Rng) -> Vec<Event> {
    let mut kept: Vec<Event> = events.iter().filter(|_| !rng.chance(5)).cloned().collect();
    for event in &mut kept {
        let bytes = event.payload.len() as u64;
        if bytes == 0 || !rng.chance(8) {
            continue;
        }
        let first = rng.below(bytes) as usize;
        let last = event.payload.len().min(first + 1 + rng.below(8) as usize);
        let byte = [0, 0xff, 0x7f, rng.below(256) as u8][rng.below(4) as usize];
        event.payload[first..last].fill(byte);
    }
    kept
}

/// Writes the trace of a program to a directory.
pub(crate) fn write(program: &Program, layout: Layout, directory: &Path) {
    write_events(&classes(program), &events(program), layout, directory);
}

/// Writes one trace of the processes 1000, 1001, … to a directory, with the process id in each event
/// record, as LTTng does.
pub(crate) fn write_together(programs: &[&Program], directory: &Path) {
    let mut all = Vec::new();
    for (pid, program) in (1000_i32..).zip(programs) {
        let of_process = events(program).into_iter().map(|event| Event {
            payload: bytes(&[&pid.to_le_bytes(), &event.payload]),
            ..event
        });
        all.extend(of_process);
    }
    all.sort_by_key(|event| event.time);
    let head = HEAD.replace(" vpid = 42;", "");
    let context = "context := struct { i32 _vpid; }; fields :=";
    let classes = [CLASSES, OURS].concat().replace("fields :=", context);
    write_with_head((&head, &classes), &all, Layout::ByCpu, directory);
}

/// Writes event records, in the order of time, to a directory.
pub(crate) fn write_events(classes: &str, events: &[Event], layout: Layout, directory: &Path) {
    write_with_head((HEAD, classes), events, layout, directory);
}

fn write_with_head(
    (head, classes): (&str, &str),
    events: &[Event],
    layout: Layout,
    directory: &Path,
) {
    let (context, of_event) = match layout {
        Layout::ByThread => ("u32 tid;", ""),
        Layout::ByCpu => ("u32 cpu_id;", "event.context := struct { i32 _vtid; };"),
    };
    let stream = format!(
        "stream {{ id = 0; packet.context := struct {{ time64 timestamp_begin; time64 timestamp_end; \
         u64 content_size; u64 packet_size; {context} }}; \
         event.header := struct {{ u8 id; time64 timestamp; }}; {of_event} }};\n"
    );
    let metadata = format!("{head}{stream}{classes}");
    fs::write(directory.join("metadata"), metadata).expect("written");
    let streams = match layout {
        Layout::ByThread => THREADS + 2,
        Layout::ByCpu => CPUS,
    };
    for stream in 0..streams {
        let of_stream = events.iter().filter(|event| match layout {
            Layout::ByThread => event.thread == stream,
            Layout::ByCpu => event.cpu == stream,
        });
        let of_stream: Vec<&Event> = of_stream.collect();
        let packets = of_stream.chunks(PACKET);
        let packets = packets.map(|events| packet(stream as u32, layout, events));
        let path = directory.join(format!("stream_{stream}"));
        fs::write(path, packets.collect::<Vec<_>>().concat()).expect("written");
    }
}

fn packet(stream: u32, layout: Layout, events: &[&Event]) -> Vec<u8> {
    let mut body = Vec::new();
    for event in events {
        body.push(event.class);
        body.extend(event.time.to_le_bytes());
        if layout == Layout::ByCpu {
            body.extend(tid(event.thread).to_le_bytes());
        }
        body.extend(&event.payload);
    }
    let number = match layout {
        Layout::ByThread => tid(stream as usize) as u32,
        Layout::ByCpu => stream,
    };
    let times = [events.first(), events.last()].map(|event| event.map_or(0, |event| event.time));
    let bits = (8 + 4 * 8 + 4 + body.len() as u64) * 8;
    let head = bytes(&[
        &0xC1FC_1FC1_u32.to_le_bytes(),
        &0_u32.to_le_bytes(),
        &times[0].to_le_bytes(),
        &times[1].to_le_bytes(),
        &bits.to_le_bytes(),
        &bits.to_le_bytes(),
        &number.to_le_bytes(),
    ]);
    [head, body].concat()
}

fn tid(thread: usize) -> i32 {
    100 + thread as i32
}
