//! System calls.

use crate::field::{Body, IntField, TextField};
use crate::numbers::Numbers;
use crate::peer::{Peer, PeerField};
use crate::syscall::Syscall;

/// A system call begins.
#[derive(Clone, Debug)]
pub struct SyscallEntry {
    pub(crate) which: Which,
    pub(crate) arguments: [Option<IntField>; 3],
    /// What few classes tell besides.
    pub(crate) more: Option<Box<More>>,
    /// True if exits do not name the call: then each entry matters to the next exit.
    pub(crate) exit_is_anonymous: bool,
    /// True for calls that the tracer has no name for.
    pub(crate) is_fallback: bool,
}

/// What is recorded of few calls, out of the way of all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct More {
    /// All arguments in the order of the call, where the event class does not tell them apart.
    pub(crate) raw: Vec<IntField>,
    /// Name of what it opens.
    pub(crate) path: Option<TextField>,
    /// Whom it connects to.
    pub(crate) peer: Option<PeerField>,
}

/// A system call ends.
#[derive(Clone, Debug)]
pub struct SyscallExit {
    pub(crate) which: Option<Which>,
    /// What it gives.
    pub result: IntField,
    /// The descriptors that `pipe` and `socketpair` make.
    pub pair: Option<Box<PairField>>,
    /// The peer that `accept` gives.
    pub peer: Option<Box<PeerField>>,
    /// Its address family.
    pub family: Option<IntField>,
    /// True for calls that the tracer has no name for.
    pub(crate) is_fallback: bool,
}

/// Two descriptors.
#[derive(Clone, Debug)]
pub struct PairField(pub IntField, pub IntField);

/// Which system call an event class is about.
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
    /// True for the event of calls that the tracer has no name for (`syscall_entry_unknown`).
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// The call.
    #[inline(always)]
    pub fn call(&self, body: &mut Body<'_, '_>) -> Syscall {
        self.which.get(body)
    }

    /// The argument in that place of [`crate::Action`]'s description, from 0 to `u32::MAX`. Those
    /// of calls that do something to files are integers of 32 bits to the kernel; tracers that give
    /// whole registers give whatever the caller left in the rest.
    #[inline(always)]
    pub fn argument(&self, call: Syscall, place: usize, body: &mut Body<'_, '_>) -> Option<i64> {
        let argument = self.wide_argument(call, place, body);
        argument.map(|argument| i64::from(argument as u32))
    }

    /// The same of 64 bits: an address.
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

    /// The name of what it opens, as the program gives it: relative ones are not completed.
    pub fn path<'a>(&self, body: &mut Body<'a, '_>) -> Option<&'a [u8]> {
        self.more.as_ref()?.path.as_ref()?.bytes(body)
    }

    /// Whom `connect` connects to.
    pub fn peer(&self, body: &mut Body<'_, '_>) -> Option<Peer> {
        self.more.as_ref()?.peer.as_ref()?.get(body)
    }

    /// The call, if it is always the same.
    pub fn fixed(&self) -> Option<Syscall> {
        match self.which {
            Which::Fixed(call) => Some(call),
            Which::Number(_) => None,
        }
    }
}

impl SyscallExit {
    /// True for the event of calls that the tracer has no name for (`syscall_exit_unknown`).
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// The call; `None` for whatever call is open.
    #[inline(always)]
    pub fn call(&self, body: &mut Body<'_, '_>) -> Option<Syscall> {
        self.which.as_ref().map(|which| which.get(body))
    }

    /// True if it tells which call ends; else it ends whatever call is open.
    pub fn names_call(&self) -> bool {
        self.which.is_some()
    }

    /// The call, if it is always the same.
    pub fn fixed(&self) -> Option<Syscall> {
        match self.which {
            Some(Which::Fixed(call)) => Some(call),
            _ => None,
        }
    }
}
