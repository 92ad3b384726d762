//! System calls.

use crate::field::{Body, IntField, TextField};
use crate::numbers::Numbers;
use crate::peer::{Peer, PeerField};
use crate::syscall::Syscall;

/// The entry of a system call.
#[derive(Clone, Debug)]
pub struct SyscallEntry {
    pub(crate) which: Which,
    pub(crate) arguments: [Option<IntField>; 3],
    /// Fields that only few classes have.
    pub(crate) more: Option<Box<More>>,
    /// True if exits do not name the call: then each entry matters to the next exit.
    pub(crate) exit_is_anonymous: bool,
    /// True for calls whose names the tracer does not know.
    pub(crate) is_fallback: bool,
}

/// Fields that only few calls have, kept apart from the common ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct More {
    /// All arguments in the order of the call, if the event class does not distinguish calls.
    pub(crate) raw: Vec<IntField>,
    /// Path that the call opens.
    pub(crate) path: Option<TextField>,
    /// Address that the call connects to.
    pub(crate) peer: Option<PeerField>,
}

/// The exit of a system call.
#[derive(Clone, Debug)]
pub struct SyscallExit {
    pub(crate) which: Option<Which>,
    /// Result; negative for an error.
    pub result: IntField,
    /// The descriptors that `pipe` and `socketpair` create.
    pub pair: Option<Box<PairField>>,
    /// The peer that `accept` returns.
    pub peer: Option<Box<PeerField>>,
    /// Address family of the peer.
    pub family: Option<IntField>,
    /// True for calls whose names the tracer does not know.
    pub(crate) is_fallback: bool,
}

/// Two descriptors.
#[derive(Clone, Debug)]
pub struct PairField(pub IntField, pub IntField);

/// The system call of an event class.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    Fixed(Syscall),
    Number(Box<(IntField, Numbers)>),
}

impl Which {
    #[inline(always)]
    fn get(&self, body: &mut Body<'_, '_>) -> Syscall {
        match self {
            Which::Fixed(call) => *call,
            Which::Number(number) => number.1.get(number.0.get(body).unwrap_or(-1)),
        }
    }
}

impl SyscallEntry {
    /// True for the event of calls whose names the tracer does not know (`syscall_entry_unknown`).
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// The system call.
    #[inline(always)]
    pub fn call(&self, body: &mut Body<'_, '_>) -> Syscall {
        self.which.get(body)
    }

    /// The argument at index `place` of [`crate::Action`]'s description, from 0 to `u32::MAX`. To
    /// the kernel, these arguments are 32-bit integers; in traces with whole registers, the upper
    /// half contains whatever the caller left there.
    #[inline(always)]
    pub fn argument(&self, call: Syscall, place: usize, body: &mut Body<'_, '_>) -> Option<i64> {
        let argument = self.wide_argument(call, place, body);
        argument.map(|argument| i64::from(argument as u32))
    }

    /// Like [`SyscallEntry::argument`], with all 64 bits: for an address.
    #[inline(always)]
    pub fn wide_argument(
        &self,
        call: Syscall,
        place: usize,
        body: &mut Body<'_, '_>,
    ) -> Option<i64> {
        match self.arguments.get(place) {
            Some(Some(field)) => field.get(body),
            _ => {
                let raw = &self.more.as_ref()?.raw;
                let (_, position) = call.spec()?.arguments.get(place)?;
                raw.get(usize::from(*position))?.get(body)
            }
        }
    }

    /// The path that the call opens, as the program passes it: relative paths are not resolved.
    pub fn path<'a>(&self, body: &mut Body<'a, '_>) -> Option<&'a [u8]> {
        self.more.as_ref()?.path.as_ref()?.bytes(body)
    }

    /// The address that `connect` connects to.
    pub fn peer(&self, body: &mut Body<'_, '_>) -> Option<Peer> {
        self.more.as_ref()?.peer.as_ref()?.get(body)
    }

    /// The system call, if it is the same for the whole class.
    pub fn fixed(&self) -> Option<Syscall> {
        match self.which {
            Which::Fixed(call) => Some(call),
            Which::Number(_) => None,
        }
    }
}

impl SyscallExit {
    /// True for the event of calls whose names the tracer does not know (`syscall_exit_unknown`).
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// The system call; `None` if the event does not name it and the open call ends.
    #[inline(always)]
    pub fn call(&self, body: &mut Body<'_, '_>) -> Option<Syscall> {
        self.which.as_ref().map(|which| which.get(body))
    }

    /// True if the exit names its call; otherwise it ends the open call.
    pub fn names_call(&self) -> bool {
        self.which.is_some()
    }

    /// The system call, if it is the same for the whole class.
    pub fn fixed(&self) -> Option<Syscall> {
        match self.which {
            Some(Which::Fixed(call)) => Some(call),
            _ => None,
        }
    }
}
