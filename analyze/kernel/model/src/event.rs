//! Typed events of event classes.

use crate::action::Action;
use crate::events::block::{Block, Plug};
use crate::events::call::{SyscallEntry, SyscallExit};
use crate::events::gpu::{GpuJob, GpuWait};
use crate::events::irq::{Ipi, IrqEntry, IrqExit, Softirq, Tasklet, VectorIrq};
use crate::events::memory::{Page, PageCache, PageFault, Reclaim, Slab, Writeback};
use crate::events::network::{Napi, Packet, PacketFree, Socket, Tcp};
use crate::events::power::{CpuIdle, Frequency};
use crate::events::sched::{Inherit, Migrate, SchedStat, Switch, ThreadEnd, Wakeup};
use crate::events::signal::{SignalDeliver, SignalSend};
use crate::events::state::{StateCpu, StateDevice, StateDump, StateInterface, StateInterrupt};
use crate::events::thread::{Exec, Fork, ProcessState, StateFd};
use crate::events::timer::{Hrtimer, Itimer, Timer};
use crate::events::uring::Uring;
use crate::events::user_level::UserLevel;
use crate::events::work::{Contention, Work};
use crate::field::{IntField, TextField};
use crate::syscall::Syscall;

/// A typed event. Events with many fields are boxed, so that the events of the usual reports stay
/// small.
#[derive(Clone, Debug)]
pub enum KernelEvent {
    /// A CPU switches from one thread to another.
    Switch(Switch),
    /// A thread is created.
    Fork(Fork),
    /// A process executes a program.
    Exec(Exec),
    /// A thread ends: its id.
    ThreadExit(IntField),
    /// A thread is renamed: its id and the new name.
    Rename(IntField, TextField),
    /// State dump: an existing thread.
    ProcessState(ProcessState),
    /// State dump: an open descriptor.
    StateFd(StateFd),
    /// A system call begins.
    Entry(SyscallEntry),
    /// A system call ends.
    Exit(SyscallExit),
    /// A user-level thread begins to wait; for analyses of waits, this is a call.
    UserWait(SyscallEntry),
    /// The wait of a user-level thread ends.
    UserWaitEnd(SyscallExit),
    /// A step of a program with user-level threads.
    UserLevel(Box<UserLevel>),
    /// Any other event of a program, in a trace of several levels.
    Probe,
    /// A thread is woken.
    Wakeup(Box<Wakeup>),
    /// A thread migrates to another CPU.
    Migrate(Migrate),
    /// A thread inherits the priority of a thread that waits for it.
    Inherit(Inherit),
    /// The scheduler updates a thread's times.
    SchedStat(SchedStat),
    /// A late step in the end of a thread.
    ThreadEnd(ThreadEnd),
    /// The handler of a hard interrupt begins.
    IrqEntry(IrqEntry),
    /// The handler of a hard interrupt ends.
    IrqExit(IrqExit),
    /// A softirq.
    Softirq(Softirq),
    /// A tasklet.
    Tasklet(Tasklet),
    /// The handler of an x86 vector.
    Vector(VectorIrq),
    /// An interrupt from one processor to another.
    Ipi(Ipi),
    /// A high-resolution timer.
    Hrtimer(Box<Hrtimer>),
    /// A timer of the timer wheel.
    Timer(Timer),
    /// An interval timer.
    Itimer(Itimer),
    /// A block request or bio.
    Block(Box<Block>),
    /// A thread begins to hold back its block requests.
    Plug(Plug),
    /// A thread submits its held-back block requests.
    Unplug(Plug),
    /// A packet at a device.
    Packet(Box<Packet>),
    /// A packet's buffer is freed.
    PacketFree(PacketFree),
    /// A device is polled for received packets.
    Napi(Napi),
    /// A step of a TCP connection.
    Tcp(Box<Tcp>),
    /// A step of a socket.
    Socket(Box<Socket>),
    /// Pages are allocated or freed.
    Page(Page),
    /// A kernel object is allocated or freed.
    Slab(Box<Slab>),
    /// A page fault: the page is absent, or the access is not permitted.
    PageFault(Box<PageFault>),
    /// A page enters the page cache or leaves it.
    PageCache(PageCache),
    /// Dirty pages are written back.
    Writeback(Box<Writeback>),
    /// Memory is reclaimed.
    Reclaim(Box<Reclaim>),
    /// The frequency of a CPU changes.
    Frequency(Frequency),
    /// A CPU enters or leaves an idle state.
    CpuIdle(CpuIdle),
    /// Work for a kernel worker.
    Work(Box<Work>),
    /// A wait for a lock of the kernel.
    Contention(Contention),
    /// A signal is sent.
    SignalSend(Box<SignalSend>),
    /// A signal is delivered to the running thread.
    SignalDeliver(SignalDeliver),
    /// A request to an io_uring.
    Uring(Box<Uring>),
    /// A step of a GPU job.
    GpuJob(Box<GpuJob>),
    /// A thread waits for a GPU job.
    GpuWait(Box<GpuWait>),
    /// State dump: a block device.
    StateDevice(StateDevice),
    /// State dump: a network interface.
    StateInterface(StateInterface),
    /// State dump: an interrupt.
    StateInterrupt(Box<StateInterrupt>),
    /// State dump: a CPU.
    StateCpu(Box<StateCpu>),
    /// State dump: its beginning or end.
    StateDump(StateDump),
}

impl KernelEvent {
    /// True if the event decides the owner or the file of a descriptor, or uses one: switches,
    /// threads and processes, and the calls with an [`Action`].
    pub fn is_of_files(&self) -> bool {
        match self {
            KernelEvent::Switch(_)
            | KernelEvent::Fork(_)
            | KernelEvent::Exec(_)
            | KernelEvent::ThreadExit(_)
            | KernelEvent::Rename(..)
            | KernelEvent::ProcessState(_)
            | KernelEvent::StateFd(_) => true,
            KernelEvent::Entry(entry) => entry.is_of_files(),
            KernelEvent::Exit(exit) => exit.is_of_files(),
            _ => false,
        }
    }

    /// True if the event matters to the latencies of calls on files: like
    /// [`KernelEvent::is_of_files`], plus calls that sync files or connect sockets, and the exits
    /// of `close`.
    pub fn is_of_latencies(&self) -> bool {
        match self {
            KernelEvent::Entry(entry) => entry.is_of_latencies(),
            KernelEvent::Exit(exit) => exit.is_of_latencies(),
            event => event.is_of_files(),
        }
    }
}

impl SyscallEntry {
    /// True if the call has an action, or if an exit without a name could be mistaken for that of
    /// another call.
    fn is_of_files(&self) -> bool {
        let matters = |call: Syscall| call.action().is_of_descriptors();
        !self.is_fallback && (self.exit_is_anonymous || self.fixed().is_none_or(matters))
    }

    fn is_of_latencies(&self) -> bool {
        let matters = |call: Syscall| call.action() != Action::Other;
        !self.is_fallback && (self.exit_is_anonymous || self.fixed().is_none_or(matters))
    }
}

impl SyscallExit {
    fn is_of_files(&self) -> bool {
        let matters = |call: Syscall| {
            let action = call.action();
            action.is_of_descriptors() && !action.is_done_at_entry()
        };
        !self.is_fallback && self.fixed().is_none_or(matters)
    }

    fn is_of_latencies(&self) -> bool {
        let matters = |call: Syscall| {
            let action = call.action();
            action != Action::Other && (action == Action::Close || !action.is_done_at_entry())
        };
        !self.is_fallback && self.fixed().is_none_or(matters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_of_every_report_stay_compact() {
        assert!(
            size_of::<KernelEvent>() <= 96,
            "{}",
            size_of::<KernelEvent>()
        );
    }
}
