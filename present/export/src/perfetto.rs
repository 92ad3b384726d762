//! Traces for Perfetto: tracks with slices, arrows between them, and the kernel's scheduling.
//!
//! The numbers of fields are those of `protos/perfetto/trace` in Perfetto's repository.

use crate::protobuf::Message;

/// A trace under construction.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    tracks: u64,
}

/// Id of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// A slice of a track.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Begin, in nanoseconds.
    pub begin: i64,
    /// End, in nanoseconds.
    pub end: i64,
    /// Label of the slice.
    pub name: &'a str,
    /// Category of the slice.
    pub category: &'a str,
    /// Names and values of further properties.
    pub notes: &'a [(&'a str, &'a str)],
    /// Numbers of arrows that begin or end at the slice; each number must occur in two slices.
    pub arrows: &'a [u64],
}

/// The begin of a slice whose end follows later, or an instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark<'a> {
    /// In nanoseconds.
    pub time: i64,
    /// Label.
    pub name: &'a str,
    /// Category.
    pub category: &'a str,
    /// Names and values of further properties.
    pub notes: &'a [(&'a str, &'a str)],
    /// Arrows that begin here, or lead on.
    pub arrows: &'a [u64],
    /// Arrows that end here.
    pub ends: &'a [u64],
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a> {
    /// Id of its process; unknown ones are taken to have the thread's id.
    pub pid: Option<i32>,
    /// Id of the thread.
    pub tid: i32,
    /// Name of the thread.
    pub name: &'a str,
}

/// A CPU takes up another thread.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    /// Number of the CPU.
    pub cpu: u32,
    /// In nanoseconds.
    pub time: i64,
    /// Id and name of the thread that leaves; 0 for the idle task.
    pub from: (i32, &'a str),
    /// State of the thread that leaves, as in the kernel's `sched_switch`.
    pub state: u64,
    /// Id and name of the thread that comes.
    pub to: (i32, &'a str),
}

/// A thread is woken.
#[derive(Clone, Copy, Debug)]
pub struct Waking<'a> {
    /// The CPU on which it could run.
    pub cpu: u32,
    /// In nanoseconds.
    pub time: i64,
    /// Id of the thread that wakes it; 0 if unknown.
    pub by: i32,
    /// Id and name of the thread.
    pub woken: (i32, &'a str),
}

/// `Trace`, `TracePacket`.
const PACKET: u32 = 1;
const FTRACE: u32 = 1;
const PROCESSES: u32 = 2;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const DESCRIPTOR: u32 = 60;
/// `TrackDescriptor`.
const UUID: u32 = 1;
const NAME: u32 = 2;
const PARENT: u32 = 5;
const THREAD: u32 = 4;
/// `ThreadDescriptor`.
const THREAD_PID: u32 = 1;
const THREAD_TID: u32 = 2;
const THREAD_NAME: u32 = 5;
/// `ProcessTree`.
const TREE_PROCESS: u32 = 1;
const TREE_THREAD: u32 = 2;
/// `ProcessTree.Process`, `ProcessTree.Thread`.
const PROCESS_PID: u32 = 1;
const PROCESS_NAME: u32 = 3;
const TID: u32 = 1;
const TGID: u32 = 3;
const TREE_THREAD_NAME: u32 = 5;
/// `FtraceEventBundle`, `FtraceEvent`.
const CPU: u32 = 1;
const FTRACE_EVENT: u32 = 2;
const FTRACE_TIME: u32 = 1;
const FTRACE_PID: u32 = 2;
const SWITCH: u32 = 4;
const WAKING: u32 = 20;
/// `SchedSwitchFtraceEvent`.
const PREVIOUS_NAME: u32 = 1;
const PREVIOUS_ID: u32 = 2;
const PREVIOUS_PRIORITY: u32 = 3;
const PREVIOUS_STATE: u32 = 4;
const NEXT_NAME: u32 = 5;
const NEXT_ID: u32 = 6;
const NEXT_PRIORITY: u32 = 7;
/// `SchedWakingFtraceEvent`.
const WOKEN_NAME: u32 = 1;
const WOKEN_ID: u32 = 2;
const WOKEN_PRIORITY: u32 = 3;
const WOKEN_CPU: u32 = 5;
/// Default priority of a thread.
const PRIORITY: u64 = 120;
/// `TrackEvent`.
const NOTE: u32 = 4;
const KIND: u32 = 9;
const TRACK: u32 = 11;
const CATEGORY: u32 = 22;
const EVENT_NAME: u32 = 23;
const ARROW: u32 = 47;
const ARROW_END: u32 = 48;
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
/// `DebugAnnotation`.
const NOTE_TEXT: u32 = 6;
const NOTE_NAME: u32 = 10;

fn id(id: i32) -> u64 {
    u64::from(id.max(0).unsigned_abs())
}

impl Trace {
    /// Adds a track, below `parent` if it is given.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> Track {
        self.tracks += 1;
        let mut descriptor = Message::default()
            .number(UUID, self.tracks)
            .text(NAME, name);
        if let Some(Track(parent)) = parent {
            descriptor = descriptor.number(PARENT, parent);
        }
        self.describe(descriptor)
    }

    /// Adds the track of a thread, with its state where scheduling is in the trace.
    pub fn thread(&mut self, thread: Thread<'_>) -> Track {
        self.tracks += 1;
        let of_thread = Message::default()
            .number(THREAD_PID, id(thread.pid.unwrap_or(thread.tid)))
            .number(THREAD_TID, id(thread.tid))
            .text(THREAD_NAME, thread.name);
        let descriptor = Message::default()
            .number(UUID, self.tracks)
            .message(THREAD, of_thread);
        self.describe(descriptor)
    }

    fn describe(&mut self, descriptor: Message) -> Track {
        let mut packet = Message::default().message(DESCRIPTOR, descriptor);
        if self.tracks == 1 {
            // The first packet of a sequence must clear the incremental state.
            packet = packet.number(SEQUENCE_FLAGS, 1);
        }
        self.packet(packet);
        Track(self.tracks)
    }

    /// Adds names and processes of threads.
    pub fn threads<'a>(&mut self, threads: impl Iterator<Item = Thread<'a>>) {
        let mut tree = Message::default();
        for thread in threads {
            let pid = thread.pid.unwrap_or(thread.tid);
            if pid == thread.tid {
                let process = Message::default()
                    .number(PROCESS_PID, id(pid))
                    .text(PROCESS_NAME, thread.name);
                tree = tree.message(TREE_PROCESS, process);
            }
            let of_thread = Message::default()
                .number(TID, id(thread.tid))
                .number(TGID, id(pid))
                .text(TREE_THREAD_NAME, thread.name);
            tree = tree.message(TREE_THREAD, of_thread);
        }
        self.packet(Message::default().message(PROCESSES, tree));
    }

    /// Adds a switch of a CPU. Those of a CPU must be in the order of time.
    pub fn switch(&mut self, switch: &Switch<'_>) {
        let (from, to) = (switch.from, switch.to);
        let fields = Message::default()
            .text(PREVIOUS_NAME, from.1)
            .number(PREVIOUS_ID, id(from.0))
            .number(PREVIOUS_PRIORITY, PRIORITY)
            .number(PREVIOUS_STATE, switch.state)
            .text(NEXT_NAME, to.1)
            .number(NEXT_ID, id(to.0))
            .number(NEXT_PRIORITY, PRIORITY);
        self.kernel(switch.cpu, (switch.time, from.0), (SWITCH, fields));
    }

    /// Adds a wake-up.
    pub fn waking(&mut self, waking: &Waking<'_>) {
        let fields = Message::default()
            .text(WOKEN_NAME, waking.woken.1)
            .number(WOKEN_ID, id(waking.woken.0))
            .number(WOKEN_PRIORITY, PRIORITY)
            .number(WOKEN_CPU, u64::from(waking.cpu));
        self.kernel(waking.cpu, (waking.time, waking.by), (WAKING, fields));
    }

    /// Adds an event of the kernel, by a thread.
    fn kernel(&mut self, cpu: u32, (time, by): (i64, i32), (kind, fields): (u32, Message)) {
        let event = Message::default()
            .number(FTRACE_TIME, time.max(0) as u64)
            .number(FTRACE_PID, id(by))
            .message(kind, fields);
        let bundle = Message::default()
            .number(CPU, u64::from(cpu))
            .message(FTRACE_EVENT, event);
        self.packet(Message::default().message(FTRACE, bundle));
    }

    /// Adds a slice to a track. The slices of a track must be in the order of time and must not
    /// overlap.
    pub fn slice(&mut self, Track(track): Track, slice: &Slice<'_>) {
        let mut begin = Message::default()
            .number(KIND, BEGIN)
            .number(TRACK, track)
            .text(CATEGORY, slice.category)
            .text(EVENT_NAME, slice.name);
        for (name, value) in slice.notes {
            let note = Message::default()
                .text(NOTE_NAME, name)
                .text(NOTE_TEXT, value);
            begin = begin.message(NOTE, note);
        }
        for &arrow in slice.arrows {
            begin = begin.fixed(ARROW, arrow);
        }
        let end = Message::default().number(KIND, END).number(TRACK, track);
        for (time, event) in [(slice.begin, begin), (slice.end, end)] {
            let packet = Message::default().number(TIMESTAMP, time.max(0) as u64);
            self.packet(packet.message(EVENT, event));
        }
    }

    /// Begins a slice on a track, within the slice that is open there.
    pub fn begin(&mut self, track: Track, mark: &Mark<'_>) {
        self.mark(BEGIN, track, mark);
    }

    /// Ends the last open slice of a track.
    pub fn end(&mut self, Track(track): Track, time: i64) {
        let event = Message::default().number(KIND, END).number(TRACK, track);
        let packet = Message::default().number(TIMESTAMP, time.max(0) as u64);
        self.packet(packet.message(EVENT, event));
    }

    /// Adds an instant to a track.
    pub fn instant(&mut self, track: Track, mark: &Mark<'_>) {
        self.mark(INSTANT, track, mark);
    }

    fn mark(&mut self, kind: u64, Track(track): Track, mark: &Mark<'_>) {
        let mut event = Message::default()
            .number(KIND, kind)
            .number(TRACK, track)
            .text(CATEGORY, mark.category)
            .text(EVENT_NAME, mark.name);
        for (name, value) in mark.notes {
            let note = Message::default()
                .text(NOTE_NAME, name)
                .text(NOTE_TEXT, value);
            event = event.message(NOTE, note);
        }
        for (field, arrows) in [(ARROW, mark.arrows), (ARROW_END, mark.ends)] {
            for arrow in arrows {
                event = event.fixed(field, *arrow);
            }
        }
        let packet = Message::default().number(TIMESTAMP, mark.time.max(0) as u64);
        self.packet(packet.message(EVENT, event));
    }

    /// Takes the bytes so far: the parts, one after another, are the trace file.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Number of bytes that have not been taken.
    pub fn pending(&self) -> usize {
        self.bytes.len()
    }

    fn packet(&mut self, packet: Message) {
        let packet = packet.number(SEQUENCE, 1);
        let bytes = Message::default().message(PACKET, packet).into_bytes();
        self.bytes.extend(bytes);
    }

    /// The bytes of a trace file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
