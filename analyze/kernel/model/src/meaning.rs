//! Meanings of event classes, whatever tracer named them.

use crate::events::Edge;
use crate::events::block::BlockStep;
use crate::events::gpu::{JobSource, JobStep};
use crate::events::irq::{IpiStep, SoftirqStep, Vector};
use crate::events::memory::{PageStep, ReclaimStep, WritebackStep};
use crate::events::network::{PacketStep, SocketStep, TcpStep};
use crate::events::sched::{EndStep, StatKind, WakeStep};
use crate::events::timer::{ItimerStep, TimerStep};
use crate::events::uring::UringStep;
use crate::events::user_level::UserLevelStep;
use crate::events::work::WorkStep;
use crate::syscall::Syscall;

/// Meaning of an event class.
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
    /// True if the packet was dropped.
    PacketFree(bool),
    Napi,
    Tcp(TcpStep),
    Socket(SocketStep),
    Page(PageStep),
    /// True if the object is from a cache.
    Slab(Edge, bool),
    /// True in user space, false in the kernel.
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
    GpuJob(JobStep, JobSource),
    GpuWait(Edge),
    ProcessState,
    FileDescriptor,
    StateDevice,
    StateInterface,
    StateInterrupt,
    StateCpu,
    StateDump(Edge),
    /// Entry of a system call.
    Entry(Syscall),
    /// Entry of a system call, from a tracer whose exits do not name the call.
    OldEntry(Syscall),
    /// Exit of a system call.
    Exit(Syscall),
    /// Exit of the open system call, whichever it is (lttng-modules before 2.6).
    AnyExit,
    /// A user-level thread begins to wait, for that reason.
    UserWait(Syscall),
    UserWaitEnd(Syscall),
    UserLevel(UserLevelStep),
    /// Entry that contains the number of its call.
    RawEntry,
    RawExit,
    /// Entry of a call whose name the tracer does not know; `compat` for 32-bit programs.
    Fallback {
        compat: bool,
    },
    FallbackExit {
        compat: bool,
    },
}
