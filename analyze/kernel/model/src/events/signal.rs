//! Signals.

use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// A signal is sent.
#[derive(Clone, Debug)]
pub struct SignalSend {
    /// Its number; see [`crate::signal_name`].
    pub signal: IntField,
    /// Thread, or process, that it is sent to.
    pub tid: IntField,
    /// Its name.
    pub name: Option<TextField>,
    /// Who sends it: 0 a process, 128 the kernel.
    pub code: Option<IntField>,
    /// 0 if it is delivered later, 1 if it is ignored.
    pub result: Option<IntField>,
}

impl SignalSend {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Box<SignalSend>> {
        Some(Box::new(SignalSend {
            signal: finder.int(&["sig"])?,
            tid: finder.int(&["tid", "pid"])?,
            name: finder.text(&["comm"]),
            code: finder.int(&["code"]),
            result: finder.int(&["result"]),
        }))
    }
}

/// A signal reaches the thread that runs.
#[derive(Clone, Debug)]
pub struct SignalDeliver {
    /// Its number.
    pub signal: IntField,
    /// Address of the handler; 0: as the kernel does, 1: ignored.
    pub handler: Option<IntField>,
}

impl SignalDeliver {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<SignalDeliver> {
        Some(SignalDeliver {
            signal: finder.int(&["sig"])?,
            handler: finder.int(&["sa_handler"]),
        })
    }
}
