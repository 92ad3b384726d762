//! Values of attributes.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// What a thread does, as the events of scheduling tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ThreadState {
    /// It runs.
    Running = 1,
    /// It could run, was woken, and waits for a CPU.
    Woken = 2,
    /// It could run on, and waits for a CPU: another one was switched to.
    Preempted = 3,
    /// It waits; a signal wakes it.
    Sleeping = 4,
    /// It waits, for a disk mostly.
    DiskSleep = 5,
    /// It is stopped, by a signal or a tracer.
    Stopped = 6,
    /// It has ended.
    Dead = 7,
    /// It has been made and has not yet been woken.
    New = 8,
    /// A kernel thread that waits without being load, or is put aside.
    Idle = 9,
    /// It has left its CPU for another reason.
    Other = 10,
}

impl ThreadState {
    /// All.
    pub const ALL: [ThreadState; 10] = [
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
    ];

    /// From its number.
    pub fn of_number(number: i64) -> Option<ThreadState> {
        ThreadState::ALL
            .into_iter()
            .find(|&state| state as i64 == number)
    }

    /// Its name.
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
        }
    }

    /// True if a wake-up lets it wait for a CPU.
    pub fn is_waiting(self) -> bool {
        use ThreadState::{DiskSleep, Idle, New, Other, Sleeping, Stopped};
        matches!(self, Sleeping | DiskSleep | Stopped | New | Idle | Other)
    }
}

/// A value at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Nothing is known, or there is none.
    #[default]
    Null,
    /// A number.
    Number(i64),
    /// A text.
    Text(Arc<str>),
    /// What a thread does.
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
