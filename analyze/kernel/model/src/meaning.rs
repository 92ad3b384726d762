//! Meanings of event classes, whatever tracer named them.

use crate::events::Edge;
use crate::events::block::BlockStep;
use crate::events::irq::{IpiStep, SoftirqStep, Vector};
use crate::events::memory::{PageStep, ReclaimStep, WritebackStep};
use crate::events::network::{PacketStep, SocketStep, TcpStep};
use crate::events::sched::{EndStep, StatKind, WakeStep};
use crate::events::timer::{ItimerStep, TimerStep};
use crate::events::uring::UringStep;
use crate::events::work::WorkStep;
use crate::syscall::Syscall;

/// What an event class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Switch,
    Fork,
    Exec,
    ThreadExit,
    Rename,
    Wakeup(WakeStep),
    Migrate,
    Inherit,
    SchedStat(StatKind),
    ThreadEnd(EndStep),
    IrqEntry,
    IrqExit,
    Softirq(SoftirqStep),
    Tasklet(Edge),
    Vector(Vector, Edge),
    Ipi(IpiStep),
    Hrtimer(TimerStep),
    Timer(TimerStep),
    Itimer(ItimerStep),
    Block(BlockStep),
    Plug,
    Unplug,
    Packet(PacketStep),
    /// True if dropped.
    PacketFree(bool),
    Napi,
    Tcp(TcpStep),
    Socket(SocketStep),
    Page(PageStep),
    /// True if from a cache.
    Slab(Edge, bool),
    /// True if a program ran.
    PageFault(Option<bool>, Edge),
    PageCache(Edge),
    Writeback(WritebackStep),
    Reclaim(ReclaimStep),
    Frequency,
    CpuIdle,
    Work(WorkStep),
    Contention(Edge),
    SignalSend,
    SignalDeliver,
    Uring(UringStep),
    ProcessState,
    FileDescriptor,
    StateDevice,
    StateInterface,
    StateInterrupt,
    StateCpu,
    StateDump(Edge),
    /// Entry of a system call.
    Entry(Syscall),
    /// Entry of a system call with a tracer whose exits do not name it.
    OldEntry(Syscall),
    /// Exit of a system call.
    Exit(Syscall),
    /// Exit of whatever system call is open (lttng-modules before 2.6).
    AnyExit,
    /// Entry and exit that give a number.
    RawEntry,
    RawExit,
    /// The same, of calls that the tracer has no name for; of a 32-bit program, if so.
    Fallback {
        compat: bool,
    },
    FallbackExit {
        compat: bool,
    },
}
