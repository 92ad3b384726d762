//! Small traces in the format of tracebraid's recorder, made here: they need no privileges and are
//! always the same.

use std::fs;
use std::path::{Path, PathBuf};

/// Event classes by id.
pub const SWITCH: u8 = 1;
pub const STATE: u8 = 2;
pub const MAP: u8 = 3;
pub const FILE: u8 = 4;
pub const STACK: u8 = 5;
pub const END: u8 = 127;

const CLASSES: &str = r#"
event { name = "sched_switch"; id = 1; stream_id = 0; fields := struct {
	text _prev_comm[16]; i32 _prev_tid; i32 _prev_prio; i64 _prev_state;
	text _next_comm[16]; i32 _next_tid; i32 _next_prio;
}; };
event { name = "tracebraid_stacks_state"; id = 2; stream_id = 0; fields := struct {
	u64 _period_ns; u64 _threshold_ns; u32 _depth;
}; };
event { name = "tracebraid_map_load"; id = 3; stream_id = 0; fields := struct {
	i32 _pid; u64 _baddr; u64 _memsz; u64 _offset; string _path;
	u8 __build_id_length; u8 _build_id[__build_id_length];
}; };
event { name = "tracebraid_map_file"; id = 4; stream_id = 0; fields := struct {
	string _path; u64 _size; i64 _mtime_ns; u64 _hash;
}; };
event { name = "tracebraid_cpu_stack"; id = 5; stream_id = 0; fields := struct {
	i32 _tid; i32 _pid; text _comm[16]; u64 _wait_ns; i32 _syscall;
	u32 __callstack_kernel_length; u64 _callstack_kernel[__callstack_kernel_length];
	u32 _status;
	u32 __callstack_user_length; u64 _callstack_user[__callstack_user_length];
}; };
"#;

const END_CLASS: &str = r#"
event { name = "tracebraid_end"; id = 127; stream_id = 0; fields := struct {
	enum : u8 { asked_to_stop = 0, command_ended = 1 } _reason; u64 _events; u64 _lost;
}; };
"#;

const HEAD: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := text;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = "monotonic"; freq = 1000000000; offset_s = 1700000000; };
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := time64;
stream {
	id = 0;
	packet.context := struct {
		time64 timestamp_begin; time64 timestamp_end; u64 content_size; u64 packet_size; u32 cpu_id;
	};
	event.header := struct { u8 id; time64 timestamp; };
};
"#;

/// A trace of one CPU.
#[derive(Debug, Default)]
pub struct Recording {
    /// Further entries of the environment.
    pub environment: &'static str,
    /// Whether the class of the end mark is described.
    pub has_end_class: bool,
    /// Time, class and payload, in the order of time.
    pub events: Vec<(u64, u8, Vec<u8>)>,
}

impl Recording {
    /// A thread runs for two seconds. The environment is that of a recorder that writes end marks.
    pub fn of_two_seconds() -> Recording {
        Recording {
            environment: "tracebraid_end_mark = 1;",
            has_end_class: true,
            events: vec![
                (1_000_000_000, SWITCH, switch(0, 7)),
                (3_000_000_000, SWITCH, switch(7, 0)),
            ],
        }
    }

    /// Writes the trace into a new directory below `directory`.
    pub fn write(&self, directory: &Path) -> PathBuf {
        let trace = directory.join("kernel");
        fs::create_dir_all(&trace).unwrap();
        let environment = self.environment;
        let environment =
            format!("env {{ domain = \"kernel\"; hostname = \"host\"; {environment} }};\n");
        let end = if self.has_end_class { END_CLASS } else { "" };
        fs::write(
            trace.join("metadata"),
            [HEAD, &environment, CLASSES, end].concat(),
        )
        .unwrap();
        let mut content = Vec::new();
        for (time, class, payload) in &self.events {
            content.push(*class);
            content.extend(time.to_le_bytes());
            content.extend(payload);
        }
        let head = 4 + 4 + 8 * 4 + 4;
        let bits = (head + content.len() as u64) * 8;
        let mut packet = 0xC1FC_1FC1u32.to_le_bytes().to_vec();
        packet.extend(0u32.to_le_bytes());
        let (first, last) = (self.events.first(), self.events.last());
        let times = [first, last].map(|event| event.map_or(0, |(time, ..)| *time));
        for number in [times[0], times[1], bits, bits] {
            packet.extend(number.to_le_bytes());
        }
        packet.extend(0u32.to_le_bytes());
        packet.extend(content);
        fs::write(trace.join("channel0_0"), packet).unwrap();
        trace
    }
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name.iter_mut()
        .zip(text.bytes())
        .for_each(|(to, byte)| *to = byte);
    name
}

/// Payload of a switch between the threads.
pub fn switch(prev: i32, next: i32) -> Vec<u8> {
    let of = |tid| name(if tid == 0 { "swapper/0" } else { "program" });
    let mut payload = of(prev).to_vec();
    payload.extend([prev.to_le_bytes(), 20i32.to_le_bytes()].concat());
    payload.extend(1i64.to_le_bytes());
    payload.extend(of(next));
    payload.extend([next.to_le_bytes(), 20i32.to_le_bytes()].concat());
    payload
}

/// Payload of the end mark with a reason.
pub fn end(reason: u8) -> Vec<u8> {
    [&[reason][..], &2u64.to_le_bytes(), &0u64.to_le_bytes()].concat()
}

/// Payload of the stack options, with a depth.
pub fn state(depth: u32) -> Vec<u8> {
    let times = [1_000_000u64, 100_000].map(u64::to_le_bytes).concat();
    [times, depth.to_le_bytes().to_vec()].concat()
}

/// Payload of a mapping of 64 KiB without a build id.
pub fn map(pid: i32, begin: u64, offset: u64, path: &str) -> Vec<u8> {
    let mut payload = pid.to_le_bytes().to_vec();
    payload.extend([begin, 0x1_0000, offset].map(u64::to_le_bytes).concat());
    payload.extend(path.bytes());
    payload.extend([0, 0]);
    payload
}

/// Payload of the identity of a file.
pub fn file(path: &str, size: u64, mtime_ns: i64, hash: u64) -> Vec<u8> {
    let mut payload = path.as_bytes().to_vec();
    payload.push(0);
    payload.extend([size, mtime_ns as u64, hash].map(u64::to_le_bytes).concat());
    payload
}

/// Payload of a stack of CPU time.
pub fn stack(pid: i32, comm: &str, status: u32, addresses: &[u64]) -> Vec<u8> {
    let mut payload = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
    payload.extend(name(comm));
    payload.extend(0u64.to_le_bytes());
    payload.extend([(-1i32).to_le_bytes(), 0u32.to_le_bytes()].concat());
    payload.extend(status.to_le_bytes());
    payload.extend((addresses.len() as u32).to_le_bytes());
    addresses
        .iter()
        .for_each(|address| payload.extend(address.to_le_bytes()));
    payload
}
