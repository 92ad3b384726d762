//! Values of attributes.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// State of a thread, as scheduling events show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ThreadState {
    /// Runs on a CPU.
    Running = 1,
    /// Was woken and waits for a CPU.
    Woken = 2,
    /// Could continue, but another thread was switched to; waits for a CPU.
    Preempted = 3,
    /// Waits and can be woken by a signal.
    Sleeping = 4,
    /// Waits and cannot be woken by a signal, usually for a disk.
    DiskSleep = 5,
    /// Stopped by a signal or a tracer.
    Stopped = 6,
    /// Has ended.
    Dead = 7,
    /// Was created and has not been woken yet.
    New = 8,
    /// A kernel thread that waits without counting as load, or is parked.
    Idle = 9,
    /// Has left its CPU for another reason.
    Other = 10,
    /// A user-level thread that could run, and waits for an LWP.
    Ready = 11,
}

impl ThreadState {
    /// All states.
    pub const ALL: [ThreadState; 11] = [
        ThreadState::Running,
        ThreadState::Woken,
        ThreadState::Preempted,
        ThreadState::Sleeping,
        ThreadState::DiskSleep,
        ThreadState::Stopped,
        ThreadState::Dead,
        ThreadState::New,
        ThreadState::Idle,
        ThreadState::Other,
        ThreadState::Ready,
    ];

    /// The state with a number.
    pub fn of_number(number: i64) -> Option<ThreadState> {
        ThreadState::ALL
            .into_iter()
            .find(|&state| state as i64 == number)
    }

    /// Name of the state.
    pub fn name(self) -> &'static str {
        match self {
            ThreadState::Running => "running",
            ThreadState::Woken => "woken",
            ThreadState::Preempted => "preempted",
            ThreadState::Sleeping => "sleeping",
            ThreadState::DiskSleep => "disk-sleep",
            ThreadState::Stopped => "stopped",
            ThreadState::Dead => "dead",
            ThreadState::New => "new",
            ThreadState::Idle => "idle",
            ThreadState::Other => "other",
            ThreadState::Ready => "ready",
        }
    }

    /// True if a wake-up turns the state into [`ThreadState::Woken`].
    pub fn is_waiting(self) -> bool {
        use ThreadState::{DiskSleep, Idle, New, Other, Sleeping, Stopped};
        matches!(self, Sleeping | DiskSleep | Stopped | New | Idle | Other)
    }
}

/// The value of an attribute at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Unknown, or without a value.
    #[default]
    Null,
    /// A number.
    Number(i64),
    /// A text.
    Text(Arc<str>),
    /// The state of a thread.
    State(ThreadState),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.pad("-"),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => f.pad(text),
            Value::State(state) => f.pad(state.name()),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_none(),
            Value::Number(number) => serializer.serialize_i64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::State(state) => serializer.serialize_str(state.name()),
        }
    }
}
