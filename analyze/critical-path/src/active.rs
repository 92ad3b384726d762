//! What happens on a CPU from when its thread comes to when it leaves.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::{CallStretch, EndedCall, Exited};

use crate::context::{Context, Source};
use crate::kinds::{Kind, Kinds};
use crate::step::{Begun, By, Parked, Segment};

/// What the thread has done since it came, and what interrupts it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Active {
    pub(crate) calls: CallStretch<Begun>,
    pub(crate) context: Context,
    /// When a call began or ended last.
    called: Option<i64>,
    /// It may be in the kernel though it is in no call: see [`Parked::lingers`].
    lingers: bool,
    is_dying: bool,
    /// The connection by which it sent something last in its call.
    sent: Option<u64>,
    /// What came in last during its call.
    came: Option<Segment>,
}

impl Active {
    /// That thread comes, if it is known who does.
    pub(crate) fn new(tid: Option<i32>) -> Active {
        Active {
            calls: CallStretch::new(tid),
            ..Active::default()
        }
    }

    /// Another thread runs there than was thought; what interrupts it is the same.
    pub(crate) fn of_another(&self, tid: Option<i32>) -> Active {
        Active {
            context: self.context,
            ..Active::new(tid)
        }
    }

    /// A call begins; true if that is the first event of a call.
    #[inline(always)]
    pub(crate) fn enter(&mut self, begun: Begun) -> bool {
        self.clear();
        self.called = Some(begun.time);
        self.is_dying = false;
        self.calls.enter(begun)
    }

    /// A call ends.
    #[inline(always)]
    pub(crate) fn exit(&mut self, exited: &Exited, kinds: &Kinds) -> EndedCall<Begun> {
        self.clear();
        self.called = Some(exited.time);
        let ended = self.calls.exit(exited);
        let call = match ended {
            EndedCall::Call(begun) => Some(begun.call),
            EndedCall::Elsewhere => exited.call,
            EndedCall::Nothing => None,
        };
        self.lingers = call.is_some_and(|call| kinds.of(call) == Kind::Close);
        ended
    }

    /// What was going on in a call is over.
    fn clear(&mut self) {
        self.context.clear();
        (self.sent, self.came) = (None, None);
    }

    /// A segment is sent; gives the thread that sends it, if no interrupt does.
    pub(crate) fn sends(&mut self, segment: &Segment) -> Option<i32> {
        let worker = self.worker();
        if worker.is_some() {
            self.sent = Some(segment.connection);
        }
        worker
    }

    /// A segment has come in.
    pub(crate) fn receives(&mut self, segment: Segment) {
        self.context.receives(segment);
        self.came = Some(segment);
    }

    /// Where a wake-up comes from. What comes in for a socket while a thread is at work on it is taken in by that thread
    /// when it has done: then the network is it that wakes. It may have come in on another CPU.
    #[inline]
    pub(crate) fn source(&self) -> Source {
        if self.is_dying {
            // It closes its sockets, and then tells whoever waits for its end.
            return self.context.source();
        }
        match (self.context.source(), self.sent, self.came) {
            (Source::Thread, Some(sent), Some(came)) if came.answers(sent) => Source::Network(came),
            (Source::Thread, Some(sent), _) => Source::Sender(sent),
            (source, ..) => source,
        }
    }

    /// It has done requests of an io_uring: perhaps on the way from a call back to its program.
    pub(crate) fn completes(&mut self) {
        self.lingers = true;
    }

    /// It dies.
    pub(crate) fn dies(&mut self) {
        self.is_dying = true;
        self.calls.forget();
    }

    /// The thread, if it is at work itself.
    pub(crate) fn worker(&self) -> Option<i32> {
        self.calls.caller().filter(|_| self.context.is_thread())
    }

    /// Who wakes others if no interrupt does: a thread that is in no call runs its program, where it can wake nobody.
    #[inline]
    pub(crate) fn by(&self) -> By {
        let Some(tid) = self.calls.caller() else {
            return By::Nobody;
        };
        if self.is_dying || self.calls.open().is_some() {
            return By::Thread(tid);
        }
        match (self.calls.has_calls(), self.lingers) {
            (true, false) => By::Nobody,
            (true, true) => By::Thread(tid),
            (false, _) => By::PerhapsThread(tid),
        }
    }

    /// What others have to know of its calls, if there were any.
    #[inline]
    pub(crate) fn parked(&self) -> Option<Parked> {
        let open = self.calls.open();
        Some(Parked {
            tid: self.calls.caller()?,
            call: open.map(|open| open.call),
            argument: open.map_or(0, |open| open.argument),
            begin: open.map_or(0, |open| open.time),
            called: self.called?,
            lingers: self.lingers,
        })
    }
}
