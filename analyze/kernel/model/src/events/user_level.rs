//! Programs with user-level threads, in traces of several levels.

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;

/// Variable in the environment of a super-trace.
pub const SUPER_TRACE: &str = "tracebraid_levels";

/// Ids of user-level threads in super-traces begin here. Linux numbers threads up to 4,194,304.
pub const FIRST_USER_LEVEL_TID: i32 = 100_000_000;

/// True if a thread id of a super-trace is that of a user-level thread.
pub fn is_user_level(tid: i32) -> bool {
    tid >= FIRST_USER_LEVEL_TID
}

/// True if `tid` is a user-level thread that another thread ends. `running`: the thread on the CPU
/// that records the end.
pub fn is_ended_elsewhere(tid: i32, running: Option<i32>) -> bool {
    is_user_level(tid) && running != Some(tid)
}

/// Step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserLevelStep {
    /// Description of a user-level thread: its id as a thread, its process, its id in the runtime,
    /// its name, and the runtime.
    Thread,
    /// The runtime knows that the user-level thread begins a system call.
    CallBegin,
    /// The system call of the user-level thread ends.
    CallEnd,
    /// The running thread enters a function.
    FunctionEntry,
    /// The running thread leaves a function.
    FunctionExit,
}

/// A step of a program with user-level threads.
#[derive(Clone, Debug)]
pub struct UserLevel {
    /// Step.
    pub step: UserLevelStep,
    /// Id of the thread as analyses see it.
    tid: Option<IntField>,
    pid: Option<IntField>,
    ult: Option<IntField>,
    name: Option<TextField>,
    runtime: Option<TextField>,
    address: Option<IntField>,
}

/// A user-level thread as its super-trace describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserThread {
    /// Id under which analyses see the thread.
    pub tid: i32,
    /// Process.
    pub pid: i32,
    /// Id that its runtime gave to it.
    pub ult: u64,
    /// Name; empty if the runtime gave none.
    pub name: String,
    /// Name of the runtime; empty if unknown.
    pub runtime: String,
}

impl UserLevel {
    pub(crate) fn find(finder: &Finder<'_>, step: UserLevelStep) -> Option<Box<UserLevel>> {
        let found = UserLevel {
            step,
            tid: finder.int(&["tid"]),
            pid: finder.int(&["pid"]),
            ult: finder.int(&["ult"]),
            name: finder.text(&["name"]),
            runtime: finder.text(&["runtime"]),
            address: finder.int(&["addr"]),
        };
        let is_whole = match step {
            UserLevelStep::Thread => found.tid.is_some() && found.ult.is_some(),
            UserLevelStep::CallBegin | UserLevelStep::CallEnd => found.ult.is_some(),
            UserLevelStep::FunctionEntry | UserLevelStep::FunctionExit => {
                found.name.is_some() || found.address.is_some()
            }
        };
        is_whole.then(|| Box::new(found))
    }

    /// The described thread.
    #[cold]
    pub fn thread(&self, body: &mut Body<'_, '_>) -> Option<UserThread> {
        let text = |field: &Option<TextField>, body: &mut Body<'_, '_>| {
            let bytes = field.as_ref().and_then(|field| field.bytes(body));
            bytes.map_or(String::new(), |bytes| {
                String::from_utf8_lossy(bytes).into_owned()
            })
        };
        Some(UserThread {
            tid: self.tid.as_ref()?.get(body)? as i32,
            pid: self
                .pid
                .as_ref()
                .and_then(|pid| pid.get(body))
                .unwrap_or(-1) as i32,
            ult: self.ult.as_ref()?.get(body)? as u64,
            name: text(&self.name, body),
            runtime: text(&self.runtime, body),
        })
    }

    /// A number for the function: its address, or a hash of its name. The hash (FNV-1a, 64 bits) is
    /// the same in all processes, so that partial states can be sent between them.
    #[inline]
    pub fn function_key(&self, body: &mut Body<'_, '_>) -> Option<u64> {
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        match self.name.as_ref().and_then(|name| name.bytes(body)) {
            Some(name) => Some(name.iter().fold(BASIS, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(PRIME)
            })),
            None => Some(self.address.as_ref()?.get(body)? as u64),
        }
    }

    /// Name of the function, or its address.
    pub fn function(&self, body: &mut Body<'_, '_>) -> Option<String> {
        if let Some(name) = self.name.as_ref().and_then(|name| name.bytes(body)) {
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        let address = self.address.as_ref()?.get(body)?;
        Some(format!("{address:#x}"))
    }
}
