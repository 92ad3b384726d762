//! Contexts: values of the running thread and of performance counters in each event record, with
//! the names, types and layouts of lttng-modules, so that readers of its traces support them.
//!
//! BPF programs write them in front of each record's head (`bpf/contexts.h`). Events that the
//! recorder itself writes (the state at the beginning, names of symbols) have the context of the
//! recorder, as in lttng-modules; their counters are copied from the previous event record on the
//! same CPU, so that counters never decrease.

mod counter;

use std::fmt::Write as _;
use std::ops::Range;
use std::str::FromStr;

use perf_event::Counter as PerfCounter;

use crate::error::RecordError;
use crate::shared::{CONTEXT_LAYOUT_SIZE, MOST_COUNTERS, NAME_SLOT, NO_CONTEXT};

pub use counter::Counter;
use counter::OF_CPU;

/// A value added to each event record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// A value of the running thread.
    Thread(ThreadContext),
    /// A performance counter of the CPU.
    Counter(Counter),
}

/// Values of the running thread, by the names of lttng-modules. The discriminants are offsets in
/// `struct context_layout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ThreadContext {
    /// Process id in the initial PID namespace.
    Pid = 3,
    /// Thread id in the initial PID namespace.
    Tid = 4,
    /// Parent process id in the initial PID namespace.
    Ppid = 5,
    /// Process id in the innermost PID namespace of the thread.
    Vpid = 6,
    /// Thread id in the innermost PID namespace of the thread.
    Vtid = 7,
    /// Parent process id in the innermost PID namespace of the thread; 0 if the parent is outside.
    Vppid = 8,
    /// Priority as `top` shows it: negative for real-time threads, 20 for nice value 0.
    Prio = 9,
    /// Nice value.
    Nice = 10,
    /// Name of the thread.
    Procname = 11,
    /// Inode number of the innermost PID namespace.
    PidNs = 12,
    /// User id, in the initial user namespace.
    Uid = 13,
    /// Group id, in the initial user namespace.
    Gid = 14,
}

const THREAD: [(&str, ThreadContext); 12] = [
    ("pid", ThreadContext::Pid),
    ("tid", ThreadContext::Tid),
    ("ppid", ThreadContext::Ppid),
    ("vpid", ThreadContext::Vpid),
    ("vtid", ThreadContext::Vtid),
    ("vppid", ThreadContext::Vppid),
    ("prio", ThreadContext::Prio),
    ("nice", ThreadContext::Nice),
    ("procname", ThreadContext::Procname),
    ("pid_ns", ThreadContext::PidNs),
    ("uid", ThreadContext::Uid),
    ("gid", ThreadContext::Gid),
];

impl ThreadContext {
    fn name(self) -> &'static str {
        let found = THREAD.iter().find(|(_, context)| *context == self);
        found.map_or("", |(name, _)| name)
    }

    fn bytes(self) -> usize {
        match self {
            ThreadContext::Procname => NAME_SLOT,
            _ => 4,
        }
    }

    fn tsdl(self) -> String {
        let name = self.name();
        match self {
            ThreadContext::Procname => format!("text _{name}[{NAME_SLOT}];"),
            ThreadContext::PidNs | ThreadContext::Uid | ThreadContext::Gid => {
                format!("u32 _{name};")
            }
            _ => format!("i32 _{name};"),
        }
    }
}

impl FromStr for Context {
    type Err = String;

    fn from_str(text: &str) -> Result<Context, String> {
        if let Some((_, context)) = THREAD.iter().find(|(name, _)| *name == text) {
            return Ok(Context::Thread(*context));
        }
        if let Some(counter) = text.strip_prefix(OF_CPU).and_then(Counter::named) {
            return Ok(Context::Counter(counter));
        }
        if text.starts_with("perf:") {
            let counters: Vec<String> = Counter::names()
                .map(|name| format!("{OF_CPU}{name}"))
                .collect();
            return Err(format!(
                "unknown counter `{text}`; the counters are {}",
                counters.join(", ")
            ));
        }
        let names: Vec<&str> = THREAD.iter().map(|(name, _)| *name).collect();
        Err(format!(
            "unknown context `{text}`; the contexts are {}, and counters such as {OF_CPU}page-faults",
            names.join(", ")
        ))
    }
}

/// Context of events that the recorder writes in the stream of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnContext {
    /// Empty if there are no contexts.
    pub(crate) bytes: Vec<u8>,
    /// Byte range of the counters in a context.
    counters: Range<usize>,
}

impl OwnContext {
    /// Stores the counters of an event record with a context.
    pub(crate) fn see(&mut self, body: &[u8]) {
        if self.counters.is_empty() {
            return;
        }
        let seen = body.get(self.counters.clone());
        if let (Some(own), Some(seen)) = (self.bytes.get_mut(self.counters.clone()), seen) {
            own.copy_from_slice(seen);
        }
    }

    /// Sets the counters in an event record's context to the stored ones.
    pub(crate) fn put_counters(&self, body: &mut [u8]) {
        let seen = self.bytes.get(self.counters.clone());
        if let (Some(place), Some(seen)) = (body.get_mut(self.counters.clone()), seen) {
            place.copy_from_slice(seen);
        }
    }
}

/// The contexts of a recording without duplicates: values of threads first, then counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextLayout {
    thread: Vec<ThreadContext>,
    counters: Vec<Counter>,
}

/// Ids of the recorder itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnThread {
    /// Process id in the initial PID namespace.
    pub(crate) process: u32,
    pub(crate) parent: u32,
}

impl ContextLayout {
    /// # Errors
    /// If there are more counters than records have room for.
    pub(crate) fn new(contexts: &[Context]) -> Result<ContextLayout, RecordError> {
        let mut layout = ContextLayout::default();
        for context in contexts {
            match *context {
                Context::Thread(context) if !layout.thread.contains(&context) => {
                    layout.thread.push(context)
                }
                Context::Counter(counter) if !layout.counters.contains(&counter) => {
                    layout.counters.push(counter);
                }
                _ => {}
            }
        }
        if layout.counters.len() > MOST_COUNTERS {
            return Err(RecordError::TooManyCounters(MOST_COUNTERS));
        }
        Ok(layout)
    }

    fn bytes_of_thread(&self) -> usize {
        self.thread.iter().map(|context| context.bytes()).sum()
    }

    /// Size of a context in an event record.
    pub(crate) fn bytes(&self) -> usize {
        self.counters_in().end
    }

    /// Size of a context in a record of BPF programs.
    pub(crate) fn padded_bytes(&self) -> usize {
        self.bytes().next_multiple_of(8)
    }

    /// Byte range of the counters in a context.
    fn counters_in(&self) -> Range<usize> {
        let begin = self.bytes_of_thread();
        begin..begin + 8 * self.counters.len()
    }

    /// Encodes `struct context_layout` for a machine with `cpus` CPUs.
    pub(crate) fn encode(&self, cpus: usize) -> [u8; CONTEXT_LAYOUT_SIZE] {
        let mut fields = [NO_CONTEXT as u8; CONTEXT_LAYOUT_SIZE - 4];
        fields[0] = self.padded_bytes() as u8;
        fields[1] = self.counters.len() as u8;
        fields[2] = self.bytes_of_thread() as u8;
        let mut at = 0;
        for &context in &self.thread {
            if let Some(offset) = fields.get_mut(context as usize) {
                *offset = at as u8;
            }
            at += context.bytes();
        }
        let mut bytes = [0; CONTEXT_LAYOUT_SIZE];
        let all = fields.into_iter().chain((cpus as u32).to_ne_bytes());
        bytes
            .iter_mut()
            .zip(all)
            .for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// Members of the event records' common context in TSDL; `None` without contexts.
    pub(crate) fn tsdl(&self) -> Option<String> {
        let mut members = String::new();
        for context in &self.thread {
            let _ = write!(members, "{} ", context.tsdl());
        }
        for counter in &self.counters {
            let _ = write!(members, "u64 _{}; ", counter.field());
        }
        (!members.is_empty()).then_some(members)
    }

    /// The context of events that the recorder writes.
    pub(crate) fn own(&self, own: OwnThread) -> OwnContext {
        let mut bytes = Vec::new();
        let inner = std::process::id();
        let user = (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        );
        for context in &self.thread {
            let value = match context {
                ThreadContext::Pid | ThreadContext::Tid => own.process,
                ThreadContext::Ppid => own.parent,
                ThreadContext::Vpid | ThreadContext::Vtid => inner,
                ThreadContext::Vppid => std::os::unix::process::parent_id(),
                ThreadContext::Prio => USUAL_PRIORITY,
                ThreadContext::Nice => 0,
                ThreadContext::PidNs => own_namespace(),
                ThreadContext::Uid => user.0,
                ThreadContext::Gid => user.1,
                ThreadContext::Procname => {
                    bytes.extend_from_slice(&own_name());
                    continue;
                }
            };
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.resize(self.bytes(), 0);
        OwnContext {
            bytes,
            counters: self.counters_in(),
        }
    }

    /// Opens the counters by counter and CPU, with their indices in the array that BPF programs
    /// read. CPUs that are offline have none.
    ///
    /// # Errors
    /// If the machine, or the kernel, does not have a counter.
    pub(crate) fn open_counters(
        &self,
        cpus: usize,
    ) -> Result<Vec<(u32, PerfCounter)>, RecordError> {
        let mut opened = Vec::new();
        for (place, &counter) in self.counters.iter().enumerate() {
            let before = opened.len();
            let mut why = None;
            for cpu in 0..cpus {
                match counter.open(cpu) {
                    Ok(event) => opened.push(((place * cpus + cpu) as u32, event)),
                    Err(error) => why = Some(error),
                }
            }
            if let (Some(why), true) = (why, opened.len() == before) {
                return Err(RecordError::Counter {
                    name: counter.to_string(),
                    reason: reason(&why, counter.is_hardware()),
                });
            }
        }
        Ok(opened)
    }

    /// Number of elements of the array of counters.
    pub(crate) fn elements(&self, cpus: usize) -> u32 {
        (self.counters.len() * cpus).max(1) as u32
    }
}

/// `prio` of a thread with nice value 0.
const USUAL_PRIORITY: u32 = 20;

fn own_name() -> [u8; NAME_SLOT] {
    let mut name = [0; NAME_SLOT];
    let text = std::fs::read("/proc/self/comm").unwrap_or_else(|_| b"tracebraid".to_vec());
    let text = text.trim_ascii_end().iter().take(NAME_SLOT - 1);
    name.iter_mut()
        .zip(text)
        .for_each(|(place, &byte)| *place = byte);
    name
}

/// The inode number of this process's PID namespace; 0 without `/proc`.
fn own_namespace() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino() as u32)
}

fn reason(error: &std::io::Error, is_hardware: bool) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::Unsupported if is_hardware => {
            "this machine has no such hardware counter (virtual machines often have none); use a software counter: \
             perf:cpu:page-faults, perf:cpu:context-switches, perf:cpu:cpu-migrations or perf:cpu:cpu-clock"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(names: &str) -> ContextLayout {
        let contexts: Vec<Context> = names.split(',').map(|name| name.parse().unwrap()).collect();
        ContextLayout::new(&contexts).unwrap()
    }

    #[test]
    fn fields_follow_each_other_and_counters_come_last() {
        let layout = layout("perf:cpu:page-faults,vpid,procname,vpid,nice,perf:cpu:cpu-clock");
        assert_eq!(
            (layout.bytes(), layout.padded_bytes()),
            (4 + 16 + 4 + 16, 40)
        );
        assert_eq!(
            layout.tsdl().unwrap(),
            "i32 _vpid; text _procname[16]; i32 _nice; u64 _perf_cpu_page_faults; u64 _perf_cpu_cpu_clock; "
        );
        let encoded = layout.encode(3);
        assert_eq!(encoded[..3], [40, 2, 24]);
        // `vpid`, `procname`, `nice`, and `tid`, which is not requested.
        assert_eq!(
            [encoded[6], encoded[11], encoded[10], encoded[4]],
            [0, 4, 20, 255]
        );
        assert_eq!(encoded[16..], 3u32.to_ne_bytes());
        assert_eq!(layout.elements(3), 6);
    }

    #[test]
    fn without_contexts_there_is_nothing() {
        let layout = ContextLayout::new(&[]).unwrap();
        assert_eq!(
            (layout.bytes(), layout.tsdl(), layout.encode(2)[0]),
            (0, None, 0)
        );
        assert!(layout.own(OwnThread::default()).bytes.is_empty());
    }

    #[test]
    fn events_of_the_recorder_have_its_numbers() {
        let own = OwnThread {
            process: 70,
            parent: 7,
        };
        let bytes = layout("pid,ppid,vpid,prio,procname,perf:cpu:cs")
            .own(own)
            .bytes;
        let value = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(
            [value(0), value(4), value(8), value(12)],
            [70, 7, std::process::id(), 20]
        );
        assert_eq!((bytes.len(), &bytes[32..]), (40, &[0; 8][..]));
        assert_ne!(bytes[16], 0);
    }

    #[test]
    fn counters_of_the_recorder_are_those_before() {
        let mut own = layout("tid,perf:cpu:cs").own(OwnThread::default());
        own.see(&[9; 30]);
        let mut body = [1; 14];
        own.put_counters(&mut body);
        assert_eq!(body, [1, 1, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9, 1, 1]);
        let mut none = OwnContext::default();
        none.see(&[9; 3]);
        none.put_counters(&mut body);
        assert_eq!(body[0], 1);
    }

    #[test]
    fn all_that_can_be_wanted_fits() {
        let names = THREAD.iter().map(|(name, _)| name.to_string());
        let counters = Counter::names()
            .take(MOST_COUNTERS)
            .map(|name| format!("{OF_CPU}{name}"));
        let all: Vec<String> = names.chain(counters).collect();
        assert!(layout(&all.join(",")).padded_bytes() < usize::from(u8::MAX));
        let most: Vec<Context> = Counter::names()
            .take(MOST_COUNTERS + 1)
            .map(|name| format!("{OF_CPU}{name}").parse().unwrap())
            .collect();
        assert!(ContextLayout::new(&most).is_err());
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let why = |text: &str| text.parse::<Context>().unwrap_err();
        assert!(why("vpids").contains("vpid, vtid"));
        assert!(why("perf:cpu:cycle").contains("perf:cpu:cycles"));
        assert!(why("perf:thread:cycles").contains("perf:cpu:cycles"));
    }
}
