//! Signals.

use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// A signal is sent.
#[derive(Clone, Debug)]
pub struct SignalSend {
    /// Number of the signal; see [`crate::signal_name`].
    pub signal: IntField,
    /// Id of the target thread or process.
    pub tid: IntField,
    /// Name of the target.
    pub name: Option<TextField>,
    /// Origin of the signal: 0 for a process, 128 for the kernel.
    pub code: Option<IntField>,
    /// 0 if the signal will be delivered, 1 if it is ignored.
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

/// A signal is delivered to the running thread.
#[derive(Clone, Debug)]
pub struct SignalDeliver {
    /// Number of the signal.
    pub signal: IntField,
    /// Address of the handler; 0 for the default action, 1 if the signal is ignored.
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
