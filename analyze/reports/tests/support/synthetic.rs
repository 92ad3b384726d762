//! Kernel traces that never were: threads that migrate in the middle of system calls, files that
//! come and go, and events that get lost.

use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;

/// A generator of numbers: the same for the same seed everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound.max(1)
    }
    /// True in so many of a thousand cases.
    pub fn chance(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }
}

/// What a trace is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub cpus: u64,
    pub threads: u64,
    pub steps: u64,
    /// Events of a thousand that are lost without a word.
    pub silent_losses: u64,
    /// Packets of a thousand that are lost, and counted.
    pub lost_packets: u64,
    /// Packets of a thousand before which events are lost, and counted.
    pub counted_losses: u64,
    /// Bytes of a packet.
    pub packet: usize,
    /// The tracer of old: one exit for all system calls.
    pub old_names: bool,
    /// Each event tells its thread.
    pub tid_context: bool,
    /// System calls have streams of their own.
    pub two_streams: bool,
    /// Events may have equal times.
    pub ties: bool,
}

/// The event classes: name and fields (name, bits, signed); `text` fields are 16 characters.
struct Class {
    name: String,
    fields: &'static [(&'static str, u32)],
}

const TEXT: u32 = 128;

struct Tracer {
    classes: Vec<Class>,
    shape: Shape,
    streams: Vec<Stream>,
    /// Decides what gets lost, and nothing else.
    random: Random,
}

#[derive(Default)]
struct Stream {
    cpu: u64,
    bytes: Vec<u8>,
    body: Vec<u8>,
    begin: u64,
    last: u64,
    sequence: u64,
    discarded: u64,
}

const HEAD: usize = 4 + 8 * 6 + 4;

impl Tracer {
    fn new(shape: Shape, seed: u64) -> Self {
        let per_cpu = if shape.two_streams { 2 } else { 1 };
        let streams = (0..shape.cpus * per_cpu)
            .map(|at| Stream {
                cpu: at % shape.cpus,
                begin: 1000,
                last: 1000,
                ..Stream::default()
            })
            .collect();
        Tracer {
            classes: Vec::new(),
            shape,
            streams,
            random: Random::new(seed + 1_000_003),
        }
    }

    fn class(&mut self, name: &str, fields: &'static [(&'static str, u32)]) -> usize {
        match self.classes.iter().position(|class| class.name == name) {
            Some(at) => at,
            None => {
                self.classes.push(Class {
                    name: name.to_owned(),
                    fields,
                });
                self.classes.len() - 1
            }
        }
    }

    fn write(&mut self, cpu: u64, time: u64, tid: i32, name: &str, fields: Fields<'_>) {
        let names: &'static [(&'static str, u32)] = fields.0;
        let class = self.class(name, names);
        if self.random.chance(self.shape.silent_losses) {
            return;
        }
        let mut record = Vec::new();
        record.extend((class as u16).to_le_bytes());
        record.extend(time.to_le_bytes());
        if self.shape.tid_context {
            record.extend(tid.to_le_bytes());
        }
        for (&(_, bits), value) in names.iter().zip(fields.1) {
            match value {
                Value::Int(value) => record.extend(&value.to_le_bytes()[..bits as usize / 8]),
                Value::Text(text) => {
                    let mut bytes = [0u8; 16];
                    bytes[..text.len().min(15)].copy_from_slice(&text.as_bytes()[..text.len().min(15)]);
                    record.extend(bytes);
                }
            }
        }
        let calls = self.shape.two_streams && (name.contains("sys"));
        let at = cpu + if calls { self.shape.cpus } else { 0 };
        let (packet, lost) = (
            self.shape.packet,
            (self.shape.lost_packets, self.shape.counted_losses),
        );
        let stream = &mut self.streams[at as usize];
        if HEAD + stream.body.len() + record.len() > packet {
            stream.close(packet, &mut self.random, lost);
            stream.begin = time;
        }
        stream.last = time;
        stream.body.extend(record);
    }

    fn metadata(&self) -> String {
        let mut text = String::from(
            "/* CTF 1.8 */\n\
             typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n\
             typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n\
             typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n\
             trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; }; };\n\
             env { domain = \"kernel\"; hostname = \"nowhere\"; };\n\
             clock { name = \"monotonic\"; freq = 1000000000; offset = 5000; };\n\
             typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := clock_t;\n\
             stream { packet.context := struct { clock_t timestamp_begin; clock_t timestamp_end;\n\
             uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded;\n\
             uint32_t cpu_id; };\n\
             event.header := struct { uint16_t id; clock_t timestamp; };\n",
        );
        if self.shape.tid_context {
            text += "event.context := struct { integer { size = 32; align = 8; signed = true; } _tid; };\n";
        }
        text += "};\n";
        for (id, class) in self.classes.iter().enumerate() {
            text += &format!(
                "event {{ name = \"{}\"; id = {id}; fields := struct {{\n",
                class.name
            );
            for (name, bits) in class.fields {
                text += &match *bits {
                    TEXT => format!(
                        "integer {{ size = 8; align = 8; signed = true; encoding = UTF8; }} _{name}[16];\n"
                    ),
                    // Two integers of 32 bits.
                    65 => format!("integer {{ size = 32; align = 8; signed = true; }} _{name}[2];\n"),
                    bits => format!("integer {{ size = {bits}; align = 8; signed = true; }} _{name};\n"),
                };
            }
            text += "}; };\n";
        }
        text
    }

    fn save(mut self, directory: &Path) {
        let lost = (self.shape.lost_packets, self.shape.counted_losses);
        let packet = self.shape.packet;
        // Whatever became of the others: the classes are there.
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(directory.join("metadata"), self.metadata()).expect("the metadata can be written");
        for (at, stream) in self.streams.iter_mut().enumerate() {
            stream.close(packet, &mut self.random, lost);
            std::fs::write(directory.join(format!("channel_{at}")), &stream.bytes)
                .expect("a stream can be written");
        }
    }
}

impl Stream {
    fn close(&mut self, size: usize, random: &mut Random, (lost_packets, counted): (u64, u64)) {
        let body = std::mem::take(&mut self.body);
        let content = HEAD + body.len();
        let size = size.max(content);
        self.sequence += 1;
        if random.chance(lost_packets) && !self.bytes.is_empty() {
            return;
        }
        if random.chance(counted) {
            // What the counter tells got lost before this packet: its first events.
            self.discarded += 1 + random.below(5);
        }
        self.bytes.extend(0xC1FC_1FC1u32.to_le_bytes());
        for word in [
            self.begin,
            self.last,
            content as u64 * 8,
            size as u64 * 8,
            self.sequence,
            self.discarded,
        ] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend((self.cpu as u32).to_le_bytes());
        self.bytes.extend(&body);
        self.bytes.resize(self.bytes.len() + size - content, 0);
        self.begin = self.last;
    }
}

enum Value<'a> {
    Int(i64),
    Text(&'a str),
}

struct Fields<'a>(&'static [(&'static str, u32)], Vec<Value<'a>>);

use Value::{Int, Text};

#[derive(Clone, Debug)]
struct Task {
    tid: i32,
    pid: i32,
    name: String,
    /// The call it is in: name, and what its exit gives.
    call: Option<(&'static str, i64)>,
    on: Option<u64>,
}

const CALLS: [&str; 12] = [
    "read",
    "write",
    "sendfile64",
    "openat",
    "close",
    "dup2",
    "socket",
    "pipe2",
    "fcntl",
    "accept",
    "recvmsg",
    "futex",
];

/// Writes a trace and opens it.
pub fn trace(seed: u64, shape: Shape) -> (PathBuf, TraceSet) {
    let mut random = Random::new(seed);
    let mut tracer = Tracer::new(shape, seed);
    let mut tasks: Vec<Task> = (0..shape.threads)
        .map(|at| {
            let tid = 100 + at as i32;
            // Some threads share a process.
            let pid = if at % 3 == 2 { tid - 1 } else { tid };
            Task {
                tid,
                pid,
                name: format!("task{at}"),
                call: None,
                on: None,
            }
        })
        .collect();
    let mut running: Vec<Option<usize>> = vec![None; shape.cpus as usize];
    let mut time = 1000u64;
    let mut next_tid = 1000;
    for step in 0..shape.steps {
        // Equal times on different CPUs happen.
        time += if random.chance(150) && shape.ties {
            0
        } else {
            1 + random.below(50)
        };
        let cpu = random.below(shape.cpus);
        let at = cpu as usize;
        if random.chance(25) || step < shape.cpus {
            let now = running[at];
            let free: Vec<usize> = (0..tasks.len())
                .filter(|&task| tasks[task].on.is_none())
                .collect();
            let next = if random.chance(200) || free.is_empty() {
                None
            } else {
                Some(free[random.below(free.len() as u64) as usize])
            };
            if now == next {
                continue;
            }
            let name =
                |task: Option<usize>| task.map_or("swapper".to_owned(), |task| tasks[task].name.clone());
            let tid = |task: Option<usize>| task.map_or(0, |task| tasks[task].tid);
            let (prev_name, next_name, prev, after) = (name(now), name(next), tid(now), tid(next));
            let fields: &'static [(&'static str, u32)] = &[
                ("prev_comm", TEXT),
                ("prev_tid", 32),
                ("prev_prio", 32),
                ("prev_state", 64),
                ("next_comm", TEXT),
                ("next_tid", 32),
                ("next_prio", 32),
            ];
            let values = vec![
                Text(&prev_name),
                Int(prev.into()),
                Int(20),
                Int(0),
                Text(&next_name),
                Int(after.into()),
                Int(20),
            ];
            tracer.write(cpu, time, prev, "sched_switch", Fields(fields, values));
            now.into_iter().for_each(|task| tasks[task].on = None);
            next.into_iter().for_each(|task| tasks[task].on = Some(cpu));
            running[at] = next;
            continue;
        }
        let Some(task) = running[at] else { continue };
        match random.below(200) {
            0 => fork(
                &mut random,
                &mut tracer,
                &mut tasks,
                task,
                cpu,
                time,
                &mut next_tid,
            ),
            1 if tasks[task].call.is_none() => exec(&mut random, &mut tracer, &mut tasks[task], cpu, time),
            2 => state_dump(&mut random, &mut tracer, &tasks, cpu, time),
            3 => tasks[task].name = format!("renamed{step}"),
            _ => call(&mut random, &mut tracer, &mut tasks[task], cpu, time),
        }
    }
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "synthetic-{}-{seed}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    tracer.save(&directory);
    let set = TraceSet::open(&[&directory]).expect("the trace can be opened");
    (directory, set)
}

fn call(random: &mut Random, tracer: &mut Tracer, task: &mut Task, cpu: u64, time: u64) {
    let old = tracer.shape.old_names;
    let tid = task.tid;
    let mut write = |name: &str, fields| tracer.write(cpu, time, tid, name, fields);
    if let Some((name, result)) = task.call.take() {
        let event = if old {
            "exit_syscall".to_owned()
        } else {
            format!("syscall_exit_{name}")
        };
        let fields = match name {
            "pipe2" if !old => Fields(
                &[("ret", 64), ("fildes", 65)],
                vec![Int(0), Int(result | (result + 1) << 32)],
            ),
            "accept" if !old => Fields(&[("ret", 64), ("family", 16)], vec![Int(result), Int(result % 3)]),
            _ => Fields(&[("ret", 64)], vec![Int(result)]),
        };
        write(&event, fields);
        return;
    }
    let name = CALLS[random.below(CALLS.len() as u64) as usize];
    let event = if old {
        format!("sys_{name}")
    } else {
        format!("syscall_entry_{name}")
    };
    let fd = |random: &mut Random| Int(random.below(8) as i64);
    let failed = random.chance(100);
    let made = 3 + random.below(5) as i64;
    let (fields, result) = match name {
        "read" | "write" | "recvmsg" => (
            Fields(&[("fd", 32), ("count", 64)], vec![fd(random), Int(4096)]),
            made * 100,
        ),
        "sendfile64" => {
            let fds = vec![fd(random), fd(random)];
            (Fields(&[("out_fd", 32), ("in_fd", 32)], fds), made * 1000)
        }
        "openat" => {
            let flags = if random.chance(500) { 0x80000 } else { 0 };
            (
                Fields(&[("dfd", 32), ("flags", 32)], vec![Int(-100), Int(flags)]),
                made,
            )
        }
        "close" => (Fields(&[("fd", 32)], vec![fd(random)]), 0),
        "dup2" => (
            Fields(&[("oldfd", 32), ("newfd", 32)], vec![fd(random), Int(made)]),
            made,
        ),
        "socket" => {
            let family = [1, 2, 10, 16][random.below(4) as usize];
            (
                Fields(&[("family", 32), ("type", 32)], vec![Int(family), Int(1)]),
                made,
            )
        }
        "pipe2" => (Fields(&[("flags", 32)], vec![Int(0x80000)]), made),
        "fcntl" => {
            let cmd = [0, 1, 2, 1030][random.below(4) as usize];
            (
                Fields(
                    &[("fd", 32), ("cmd", 32), ("arg", 64)],
                    vec![fd(random), Int(cmd), Int(1)],
                ),
                made,
            )
        }
        "accept" => (Fields(&[("fd", 32)], vec![fd(random)]), made),
        _ => (Fields(&[("uaddr", 64)], vec![Int(0)]), 0),
    };
    write(&event, fields);
    task.call = Some((name, if failed { -11 } else { result }));
}

fn fork(
    random: &mut Random,
    tracer: &mut Tracer,
    tasks: &mut Vec<Task>,
    parent: usize,
    cpu: u64,
    time: u64,
    next_tid: &mut i32,
) {
    // Ids are used again, with a new process behind them.
    let reuse = random.chance(300).then(|| {
        tasks
            .iter()
            .position(|task| task.on.is_none() && task.call.is_none())
    });
    let (tid, at) = match reuse.flatten() {
        Some(at) => (tasks[at].tid, at),
        None => {
            *next_tid += 1;
            (*next_tid, tasks.len())
        }
    };
    let parent = tasks[parent].clone();
    let pid = if random.chance(500) { parent.pid } else { tid };
    let pid = if tid == parent.pid { tid } else { pid };
    let child = Task {
        tid,
        pid,
        name: format!("child{tid}"),
        call: None,
        on: None,
    };
    let fields: &'static [(&'static str, u32)] = &[
        ("parent_comm", TEXT),
        ("parent_tid", 32),
        ("parent_pid", 32),
        ("child_comm", TEXT),
        ("child_tid", 32),
        ("child_pid", 32),
    ];
    let values = vec![
        Text(&parent.name),
        Int(parent.tid.into()),
        Int(parent.pid.into()),
        Text(&child.name),
        Int(tid.into()),
        Int(pid.into()),
    ];
    tracer.write(
        cpu,
        time,
        parent.tid,
        "sched_process_fork",
        Fields(fields, values),
    );
    match tasks.get_mut(at) {
        Some(task) => *task = child,
        None => tasks.push(child),
    }
}

fn exec(random: &mut Random, tracer: &mut Tracer, task: &mut Task, cpu: u64, time: u64) {
    // A thread that is not its process's first takes over the id of that one: only when it is not
    // in the way of the simulation, with an id of its own.
    let old = task.tid;
    if random.chance(300) {
        task.tid += 100_000;
    }
    let name = format!("exec{}", task.tid);
    let fields: &'static [(&'static str, u32)] = &[("filename", TEXT), ("tid", 32), ("old_tid", 32)];
    let values = vec![Text(&name), Int(task.tid.into()), Int(old.into())];
    tracer.write(cpu, time, task.tid, "sched_process_exec", Fields(fields, values));
    let (tid, pid) = (task.tid, task.pid);
    let leaves: &'static [(&'static str, u32)] = &[("comm", TEXT), ("tid", 32), ("prio", 32)];
    if tid != old && pid != old {
        tracer.write(
            cpu,
            time,
            tid,
            "sched_process_exit",
            Fields(leaves, vec![Text("x"), Int(old.into()), Int(20)]),
        );
    }
    task.name = name;
}

fn state_dump(random: &mut Random, tracer: &mut Tracer, tasks: &[Task], cpu: u64, time: u64) {
    let Some(task) = tasks.get(random.below(tasks.len() as u64) as usize) else {
        return;
    };
    let fields: &'static [(&'static str, u32)] = &[
        ("tid", 32),
        ("pid", 32),
        ("name", TEXT),
        ("file_table_address", 64),
    ];
    let values = vec![
        Int(task.tid.into()),
        Int(task.pid.into()),
        Text(&task.name),
        Int(i64::from(task.pid) << 8),
    ];
    tracer.write(
        cpu,
        time,
        task.tid,
        "lttng_statedump_process_state",
        Fields(fields, values),
    );
    let path = ["/tmp/file", "socket:[12]", "pipe:[7]", "anon_inode:[e]"][random.below(4) as usize];
    let fields: &'static [(&'static str, u32)] = &[
        ("file_table_address", 64),
        ("fd", 32),
        ("flags", 32),
        ("filename", TEXT),
    ];
    let values = vec![
        Int(i64::from(task.pid) << 8),
        Int(random.below(8) as i64),
        Int(0),
        Text(path),
    ];
    tracer.write(
        cpu,
        time,
        task.tid,
        "lttng_statedump_file_descriptor",
        Fields(fields, values),
    );
}
