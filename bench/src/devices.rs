//! Writes a trace of a program that enqueues many kernels in many queues of a GPU, with the event
//! classes of `record --gpu`: `tracebraid-bench-devices DIRECTORY COMMANDS QUEUES`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 16; align = 8; } := u16;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 32; align = 8; signed = true; } := i32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
env { hostname = "bench"; domain = "ust"; tracer_name = "tracebraid"; procname = "kernels"; vpid = 42; };
clock { name = "monotonic"; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time64;
stream { id = 0;
  packet.context := struct { time64 timestamp_begin; time64 timestamp_end; u64 content_size; u64 packet_size; u32 tid; };
  event.header := struct { u16 id; time64 timestamp; }; };
event { name = "lttng_ust_opencl:clEnqueueNDRangeKernel_entry"; id = 1; stream_id = 0; fields := struct {
  u64 _command_queue; u64 _kernel; u32 _work_dim;
  u8 __global_work_offset_vals_length; u64 _global_work_offset_vals[__global_work_offset_vals_length];
  u8 __global_work_size_vals_length; u64 _global_work_size_vals[__global_work_size_vals_length];
  u8 __local_work_size_vals_length; u64 _local_work_size_vals[__local_work_size_vals_length];
  u32 _num_events_in_wait_list; u8 __event_wait_list_vals_length; u64 _event_wait_list_vals[__event_wait_list_vals_length];
  u64 _event; }; };
event { name = "lttng_ust_opencl:clEnqueueNDRangeKernel_exit"; id = 2; stream_id = 0; fields := struct { i32 _errcode_ret_val; u64 _event_val; }; };
event { name = "lttng_ust_opencl_profiling:event_profiling_results"; id = 3; stream_id = 0; fields := struct {
  u64 _event; i32 _event_command_exec_status; i32 _queued_status; u64 _queued; i32 _submit_status; u64 _submit;
  i32 _start_status; u64 _start; i32 _end_status; u64 _end; }; };
event { name = "lttng_ust_opencl_arguments:kernel_info"; id = 4; stream_id = 0; fields := struct { u64 _kernel; string _function_name; }; };
event { name = "tracebraid_opencl:queue"; id = 5; stream_id = 0; fields := struct { u64 _queue; u64 _device; }; };
event { name = "lttng_ust_opencl_devices:device_name"; id = 6; stream_id = 0; fields := struct { u64 _device; string _name; }; };
"#;

/// Threads that enqueue.
const THREADS: usize = 4;
/// Bytes of event records in a packet.
const PACKET: usize = 128 << 10;
/// Nanoseconds between two calls of all threads.
const PERIOD: u64 = 800;
/// Nanoseconds by which the device's clock is ahead.
const AHEAD: u64 = 7_000_000_000;
const DEVICE: u64 = 0xd0;

/// A stream of a thread.
struct Stream {
    file: BufWriter<File>,
    tid: u32,
    body: Vec<u8>,
    times: [u64; 2],
}

impl Stream {
    fn create(directory: &Path, number: usize) -> io::Result<Stream> {
        let file = File::create(directory.join(format!("stream_{number}")))?;
        Ok(Stream {
            file: BufWriter::new(file),
            tid: 100 + number as u32,
            body: Vec::new(),
            times: [0; 2],
        })
    }

    fn event(&mut self, class: u16, time: u64, fields: &[&[u8]]) -> io::Result<()> {
        if self.body.is_empty() {
            self.times[0] = time;
        }
        self.times[1] = time;
        self.body.extend(class.to_le_bytes());
        self.body.extend(time.to_le_bytes());
        fields.iter().for_each(|field| self.body.extend(*field));
        if self.body.len() >= PACKET {
            return self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.body.is_empty() {
            return Ok(());
        }
        let bits = (8 + 4 * 8 + 4 + self.body.len() as u64) * 8;
        self.file.write_all(&0xC1FC_1FC1_u32.to_le_bytes())?;
        self.file.write_all(&0_u32.to_le_bytes())?;
        for number in [self.times[0], self.times[1], bits, bits] {
            self.file.write_all(&number.to_le_bytes())?;
        }
        self.file.write_all(&self.tid.to_le_bytes())?;
        self.file.write_all(&self.body)?;
        self.body.clear();
        Ok(())
    }
}

fn names(stream: &mut Stream, queues: u64) -> io::Result<()> {
    stream.event(6, 1, &[&DEVICE.to_le_bytes(), b"bench\0"])?;
    for queue in 0..queues {
        let queue = 0x1000 + queue;
        stream.event(5, 2, &[&queue.to_le_bytes(), &DEVICE.to_le_bytes()])?;
    }
    for kernel in 0..8_u64 {
        let name = format!("kernel_{kernel}\0");
        stream.event(4, 3, &[&(0x9000 + kernel).to_le_bytes(), name.as_bytes()])?;
    }
    Ok(())
}

/// Numbers that look random (P. L'Ecuyer's parameters of a linear congruential generator).
fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(3_935_559_000_370_003_845)
        .wrapping_add(2_691_343_689_449_507_681);
    *state >> 33
}

fn enqueue(
    stream: &mut Stream,
    at: u64,
    (queue, kernel, event): (u64, u64, u64),
) -> io::Result<()> {
    let size = [2_u8].as_slice();
    let sizes = [1024_u64.to_le_bytes(), 1024_u64.to_le_bytes()].concat();
    let fields: [&[u8]; 12] = [
        &queue.to_le_bytes(),
        &kernel.to_le_bytes(),
        &2_u32.to_le_bytes(),
        &[0],
        size,
        &sizes,
        size,
        &sizes,
        &0_u32.to_le_bytes(),
        &[0],
        &0x7fff_0000_u64.to_le_bytes(),
        &[],
    ];
    stream.event(1, at, &fields)?;
    let exit: [&[u8]; 2] = [&0_i32.to_le_bytes(), &event.to_le_bytes()];
    stream.event(2, at + 600, &exit)
}

fn complete(stream: &mut Stream, at: u64, event: u64, times: [u64; 4]) -> io::Result<()> {
    let zero = 0_i32.to_le_bytes();
    let times = times.map(|time| (time + AHEAD).to_le_bytes());
    let [queued, submit, start, end] = &times;
    let event = event.to_le_bytes();
    let fields: [&[u8]; 10] = [
        &event, &zero, &zero, queued, &zero, submit, &zero, start, &zero, end,
    ];
    stream.event(3, at, &fields)
}

fn write(directory: &Path, commands: u64, queues: u64) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join("metadata"), METADATA)?;
    let mut streams = Vec::new();
    for number in 0..=THREADS {
        streams.push(Stream::create(directory, number)?);
    }
    let Some((runtime, threads)) = streams.split_last_mut() else {
        return Ok(());
    };
    names(runtime, queues)?;
    let mut state = 1;
    let mut free = vec![0_u64; queues as usize];
    let mut running: BinaryHeap<Reverse<(u64, u64, [u64; 4])>> = BinaryHeap::new();
    let mut events: Vec<u64> = Vec::new();
    let mut made = 0;
    for number in 0..commands {
        let at = 10_000 + number * PERIOD;
        while let Some(Reverse((end, event, times))) = running.peek().copied()
            && end < at
        {
            running.pop();
            complete(runtime, end, event, times)?;
            events.push(event);
        }
        let event = events.pop().unwrap_or_else(|| {
            made += 64;
            made
        });
        let queue = random(&mut state) % queues;
        let queued = at + 200;
        let submit = queued + 1000 + random(&mut state) % 1000;
        // On average, a queue is busy for half of the time.
        let length = 1 + random(&mut state) % (PERIOD * queues);
        let start = submit.max(free[queue as usize]) + 500;
        let end = start + length;
        free[queue as usize] = end;
        let command = (0x1000 + queue, 0x9000 + queue % 8, event);
        enqueue(&mut threads[number as usize % THREADS], at, command)?;
        running.push(Reverse((end + 5000, event, [queued, submit, start, end])));
    }
    while let Some(Reverse((end, event, times))) = running.pop() {
        complete(runtime, end, event, times)?;
    }
    streams.iter_mut().try_for_each(|stream| {
        stream.flush()?;
        stream.file.flush()
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, commands, queues] = arguments.as_slice() else {
        return Err("tracebraid-bench-devices DIRECTORY COMMANDS QUEUES".into());
    };
    write(Path::new(directory), commands.parse()?, queues.parse()?)?;
    Ok(())
}
