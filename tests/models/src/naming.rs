//! One event under the names of each tracer.

/// Naming scheme of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// lttng-modules since 2.6.
    Lttng,
    /// lttng-modules before 2.6: one exit event for all calls.
    OldLttng,
    /// perf, with one event class for each call.
    Perf,
    /// perf, with calls by number.
    PerfRaw,
    /// perf that records within a PID namespace.
    PerfInside,
    /// ftrace: like perf, but without the fields that perf adds and without subsystems.
    Ftrace,
    /// ftrace, with calls by number.
    FtraceRaw,
}

/// A field's value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Int(i64),
    /// Elements of 32 or 64 bits.
    List(Vec<i64>),
    Text(&'a str),
}

/// In place of a number of bits: text of 16 characters. For lists, the number of bits of an
/// element.
pub const TEXT: u32 = 128;

pub type Field<'a> = (&'static str, u32, Value<'a>);

/// The thread that causes an event.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    pub tid: i32,
    pub pid: i32,
}

/// Numbers of system calls on x86-64.
const NUMBERS: &[(&str, i64)] = &[
    ("read", 0),
    ("write", 1),
    ("close", 3),
    ("dup2", 33),
    ("sendfile64", 40),
    ("socket", 41),
    ("accept", 43),
    ("recvmsg", 47),
    ("clone", 56),
    ("fcntl", 72),
    ("futex", 202),
    ("openat", 257),
    ("unshare", 272),
    ("pipe2", 293),
    ("clone3", 435),
    ("close_range", 436),
];

/// Register of a call's argument, where it differs from the order of fields.
fn register(call: &str, field: &str, place: usize) -> usize {
    match (call, field) {
        ("read" | "write", "count") | ("openat", "flags") => 2,
        ("pipe2", "flags") => 1,
        _ => place,
    }
}

impl Naming {
    fn is_perf(self) -> bool {
        matches!(self, Naming::Perf | Naming::PerfRaw | Naming::PerfInside)
    }

    /// True if the fields of each event identify its thread.
    pub fn tells_threads(self) -> bool {
        !matches!(self, Naming::Lttng | Naming::OldLttng)
    }

    /// Translates an event to the tracer's name and fields. The fields given are LTTng's; `entry
    /// NAME` and `exit NAME` stand for system calls.
    pub fn event<'a>(
        self,
        maker: Maker,
        name: &str,
        fields: Vec<Field<'a>>,
    ) -> (String, Vec<Field<'a>>) {
        let (name, own) = match name.split_once(' ') {
            Some(("entry", call)) => self.entry(call, fields),
            Some(("exit", call)) => self.exit(call, fields),
            _ => self.other(name, fields),
        };
        let int = |name, value: i32| (name, 32, Value::Int(value.into()));
        let mut all = Vec::new();
        if self.is_perf() {
            all.push(("perf_ip", 64, Value::Int(0)));
            // Ids of the namespace; some are ids of other threads outside.
            let inside = |id: i32| {
                if self == Naming::PerfInside {
                    id / 2 * 3
                } else {
                    id
                }
            };
            all.push(int("perf_tid", inside(maker.tid)));
            all.push(int("perf_pid", inside(maker.pid)));
        }
        if self.tells_threads() {
            all.push(int("common_pid", maker.tid));
        }
        all.extend(own);
        (name, all)
    }

    fn entry<'a>(self, call: &str, fields: Vec<Field<'a>>) -> (String, Vec<Field<'a>>) {
        match self {
            Naming::Lttng => (format!("syscall_entry_{call}"), fields),
            Naming::OldLttng => (format!("sys_{call}"), fields),
            // Whole registers.
            Naming::Perf => (format!("syscalls:sys_enter_{call}"), registers(fields)),
            Naming::Ftrace => (format!("sys_enter_{call}"), registers(fields)),
            Naming::PerfRaw | Naming::PerfInside => {
                by_number("raw_syscalls:sys_enter", call, fields)
            }
            Naming::FtraceRaw => by_number("sys_enter", call, fields),
        }
    }

    fn exit<'a>(self, call: &str, fields: Vec<Field<'a>>) -> (String, Vec<Field<'a>>) {
        let numbered = |name: &str, fields: Vec<Field<'a>>| {
            let mut all = vec![("id", 64, Value::Int(number(call)))];
            all.extend(fields);
            (name.to_owned(), all)
        };
        match self {
            Naming::Lttng => (format!("syscall_exit_{call}"), fields),
            Naming::OldLttng => ("exit_syscall".to_owned(), fields),
            Naming::Perf => (format!("syscalls:sys_exit_{call}"), fields),
            Naming::Ftrace => (format!("sys_exit_{call}"), fields),
            Naming::PerfRaw | Naming::PerfInside => numbered("raw_syscalls:sys_exit", fields),
            Naming::FtraceRaw => numbered("sys_exit", fields),
        }
    }

    fn other<'a>(self, name: &str, mut fields: Vec<Field<'a>>) -> (String, Vec<Field<'a>>) {
        if !self.tells_threads() || name.starts_with("lttng") {
            return (name.to_owned(), fields);
        }
        fields.retain(|(field, _, _)| !matches!(*field, "parent_pid" | "child_pid"));
        for (field, _, value) in &mut fields {
            if let ("prev_prio" | "next_prio" | "prio", Value::Int(priority)) = (*field, value) {
                // These tracers use the kernel's numbering.
                *priority += 100;
            }
            *field = match *field {
                "prev_tid" => "prev_pid",
                "next_tid" => "next_pid",
                "parent_tid" => "parent_pid",
                "child_tid" => "child_pid",
                "old_tid" => "old_pid",
                "tid" => "pid",
                field => field,
            };
        }
        let subsystem = if self.is_perf() { "sched:" } else { "" };
        (format!("{subsystem}{name}"), fields)
    }
}

fn number(call: &str) -> i64 {
    let found = NUMBERS.iter().find(|(name, _)| *name == call);
    found.unwrap_or_else(|| panic!("{call} has no number")).1
}

/// Content of a register: the kernel evaluates the lower half only.
fn register_with(value: i64) -> i64 {
    (value as u32 as i64) | (0x5EAD << 32)
}

fn registers(fields: Vec<Field<'_>>) -> Vec<Field<'_>> {
    let wide = |field| match field {
        (name, 32, Value::Int(value)) => (name, 64, Value::Int(register_with(value))),
        field => field,
    };
    fields.into_iter().map(wide).collect()
}

fn by_number<'a>(event: &str, call: &str, fields: Vec<Field<'a>>) -> (String, Vec<Field<'a>>) {
    let mut arguments = vec![0x7F00_1234_5678; 6];
    for (place, (name, _, value)) in fields.iter().enumerate() {
        if let Value::Int(value) = value {
            arguments[register(call, name, place)] = register_with(*value);
        }
    }
    let id = ("id", 64, Value::Int(number(call)));
    (
        event.to_owned(),
        vec![id, ("args", 64, Value::List(arguments))],
    )
}
