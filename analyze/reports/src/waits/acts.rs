//! What a thread does from when it comes to a CPU to when it leaves it.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Peer;

use crate::kernel::{CallStretch, EndedCall, Entered, Exited};
use crate::waits::context::Context;
use crate::waits::kind::{Kind, Kinds};
use crate::waits::step::{By, Details, Parked};

/// What happens on a CPU: what its thread does, and what interrupts it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Active {
    pub(super) acts: Acts,
    pub(super) context: Context,
}

/// What a thread has done since it came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Acts {
    pub(super) calls: CallStretch,
    /// Of the call that is open.
    pub(super) details: Details,
    pub(super) peer: Option<Box<Peer>>,
    /// When a call began or ended last.
    pub(super) called: Option<i64>,
    pub(super) has_entered: bool,
    /// Whether the last call that ended closed a descriptor, if any ended.
    pub(super) has_closed: Option<bool>,
    /// It has made block requests since its last call began.
    pub(super) requested: bool,
    pub(super) is_dying: bool,
}

impl Active {
    /// That thread comes, if it is known who does.
    pub(super) fn new(tid: Option<i32>) -> Active {
        let calls = CallStretch::new(tid);
        Active {
            acts: Acts {
                calls,
                ..Acts::default()
            },
            context: Context::default(),
        }
    }
}

impl Acts {
    /// What others have to know of it, if they have to.
    #[inline]
    pub(super) fn parked(&self) -> Option<Parked> {
        if !self.calls.has_calls() && !self.requested && !self.is_dying {
            return None;
        }
        let open = self.calls.open();
        Some(Parked {
            tid: self.calls.caller()?,
            call: open.map(|open| open.call),
            operation: self.details.operation,
            argument: self.details.argument,
            begin: open.map_or(0, |open| open.time),
            called: self.called.unwrap_or(i64::MIN),
            has_entered: self.has_entered,
            has_closed: self.has_closed,
            requested: self.requested,
            is_dying: self.is_dying,
        })
    }

    /// A call begins; true if that is the first event of a call.
    #[inline(always)]
    pub(super) fn enter(&mut self, entered: Entered, details: Details) -> bool {
        self.called = Some(entered.time);
        self.has_entered = true;
        (self.requested, self.is_dying) = (false, false);
        self.details = details;
        self.peer = None;
        self.calls.enter(entered)
    }

    /// A call ends.
    #[inline(always)]
    pub(super) fn exit(&mut self, exited: &Exited, kinds: &Kinds) -> EndedCall {
        self.called = Some(exited.time);
        let ended = self.calls.exit(exited);
        let call = match ended {
            EndedCall::Call(entered) => Some(entered.call),
            EndedCall::Elsewhere => exited.call,
            EndedCall::Nothing => None,
        };
        self.has_closed = Some(call.is_some_and(|call| kinds.of(call) == Kind::Close));
        ended
    }

    /// It dies.
    pub(super) fn dies(&mut self) {
        self.is_dying = true;
        self.calls.forget();
    }

    /// What somebody has to know who is woken by it.
    #[inline]
    pub(super) fn waker(&self, kinds: &Kinds) -> By {
        let Some(tid) = self.calls.caller() else {
            return By::Nobody;
        };
        let call = match self.is_dying {
            true => Some(Kind::Exit),
            false => self.calls.open().map(|open| kinds.of(open.call)),
        };
        match self.calls.has_calls() || self.is_dying {
            true => By::Caller {
                tid,
                call,
                argument: self.details.argument,
                has_closed: self.has_closed.unwrap_or(false),
            },
            false => By::Other {
                tid,
                requested: self.requested,
            },
        }
    }
}
