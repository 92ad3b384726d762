//! Lines, states, links, functions and events.

use std::io;
use std::sync::Arc;

/// Number of a line, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineId(pub u32);

/// Kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The machine; it has no states.
    Machine,
    /// A CPU, of the machine.
    Cpu,
    /// A process with user-level threads, of the machine; it has no states.
    Process,
    /// A kernel thread that runs user-level threads, of its process.
    Lwp,
    /// A user-level thread, of its process.
    Thread,
}

/// A CPU, an LWP, a user-level thread, or what they belong to. It is in one state at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Number among all lines, in the order of their appearance.
    pub id: LineId,
    /// The level that it belongs to.
    pub kind: Kind,
    /// The line that it belongs to.
    pub parent: Option<LineId>,
    /// Number of the CPU, id of the process or thread; the virtual thread id of a user-level thread.
    pub number: i32,
    /// Name, empty if unknown.
    pub name: Arc<str>,
}

impl Line {
    /// The name that users read.
    pub fn title(&self) -> String {
        match (self.kind, &*self.name) {
            (Kind::Machine, "") => "machine".to_owned(),
            (Kind::Machine, name) => name.to_owned(),
            (Kind::Cpu, _) => format!("CPU {}", self.number),
            (Kind::Process, "") => format!("process {}", self.number),
            (Kind::Lwp, "") => format!("LWP {}", self.number),
            (Kind::Lwp, name) => format!("LWP {} {name}", self.number),
            (_, "") => self.number.to_string(),
            (_, name) => format!("{name} ({})", self.number),
        }
    }
}

/// State of a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// A CPU runs the idle task.
    Idle,
    /// A CPU or an LWP runs this thread; a user-level thread runs.
    Running(Arc<str>),
    /// An LWP runs its runtime: no user-level thread.
    Scheduler,
    /// The kernel took the CPU from the LWP, for this thread.
    Preempted(Arc<str>),
    /// The LWP was woken and waits for a CPU.
    WaitsForCpu,
    /// The LWP waits in the kernel.
    InKernel,
    /// The user-level thread is ready and waits for an LWP.
    WaitsForLwp,
    /// The user-level thread waits, for the reason that its runtime recorded.
    Blocked(Arc<str>),
    /// The line has ended.
    Ended,
}

impl State {
    /// Word for the state in tables and files.
    pub fn word(&self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Running(_) => "running",
            State::Scheduler => "in scheduler",
            State::Preempted(_) => "preempted",
            State::WaitsForCpu => "waits for CPU",
            State::InKernel => "blocked in kernel",
            State::WaitsForLwp => "ready",
            State::Blocked(_) => "blocked",
            State::Ended => "ended",
        }
    }

    /// The thread that runs or pre-empts, or the reason.
    pub fn detail(&self) -> &str {
        match self {
            State::Running(text) | State::Preempted(text) | State::Blocked(text) => text,
            _ => "",
        }
    }
}

/// Kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// A thread or LWP wakes another.
    WakeUp,
    /// An LWP comes from one CPU to another.
    LwpMigration,
    /// A user-level thread comes from one LWP to another.
    ThreadMigration,
}

/// An item. Times are nanoseconds from the origin of the trace's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A line, before its first other item.
    Line(&'a Line),
    /// A line is in this state from now on.
    State {
        /// When.
        time: i64,
        /// The line.
        line: LineId,
        /// The state.
        state: &'a State,
        /// The CPU that an LWP is on or was last on; the LWP that a user-level thread is or was last on.
        on: Option<LineId>,
    },
    /// A link between two lines.
    Link {
        /// When.
        time: i64,
        /// A wake-up or a migration, by level.
        kind: LinkKind,
        /// The line that comes to another, for migrations.
        moves: Option<LineId>,
        /// Begin.
        from: LineId,
        /// End.
        to: LineId,
    },
    /// A function is entered (with its name) or left.
    Function {
        /// When.
        time: i64,
        /// The user-level thread, or the LWP without one.
        line: LineId,
        /// Name of the function that is entered.
        name: Option<&'a str>,
    },
    /// An event of the program.
    Event {
        /// When.
        time: i64,
        /// The user-level thread, or the LWP without one.
        line: LineId,
        /// Name of its class.
        name: &'a str,
    },
}

/// Receives items in the order of time.
pub trait Sink {
    /// Takes an item.
    ///
    /// # Errors
    /// If it cannot be written.
    fn item(&mut self, item: &Item<'_>) -> io::Result<()>;

    /// Ends the output: all lines end at this time.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(&mut self, end: i64) -> io::Result<()>;
}
