//! What an event class tells: the choice of typed events.

use crate::action::Action;
use crate::events::block::{Block, Plug};
use crate::events::call::{SyscallEntry, SyscallExit};
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
use crate::events::work::{Contention, Work};
use crate::field::{IntField, TextField};
use crate::syscall::Syscall;

/// What an event tells. What has many fields is boxed, so that the events of the usual reports lie
/// close together.
#[derive(Clone, Debug)]
pub enum KernelEvent {
    /// A CPU goes from one thread to another.
    Switch(Switch),
    /// A thread is made.
    Fork(Fork),
    /// A process executes a program.
    Exec(Exec),
    /// A thread ends: its tid.
    ThreadExit(IntField),
    /// A thread takes another name: its tid and the name.
    Rename(IntField, TextField),
    /// State dump: a thread that is there.
    ProcessState(ProcessState),
    /// State dump: a descriptor that is open.
    StateFd(StateFd),
    /// A system call begins.
    Entry(SyscallEntry),
    /// A system call ends.
    Exit(SyscallExit),
    /// A thread wakes.
    Wakeup(Box<Wakeup>),
    /// A thread goes to another CPU.
    Migrate(Migrate),
    /// A thread takes the priority of one who waits for it.
    Inherit(Inherit),
    /// The scheduler adds to a thread's times.
    SchedStat(SchedStat),
    /// A thread's remains.
    ThreadEnd(ThreadEnd),
    /// The handler of a hard interrupt begins.
    IrqEntry(IrqEntry),
    /// The handler of a hard interrupt ends.
    IrqExit(IrqExit),
    /// A softirq.
    Softirq(Softirq),
    /// A tasklet.
    Tasklet(Tasklet),
    /// The handler of a vector of x86.
    Vector(VectorIrq),
    /// An interrupt from one processor to another.
    Ipi(Ipi),
    /// A timer of high resolution.
    Hrtimer(Box<Hrtimer>),
    /// A timer of the timer wheel.
    Timer(Timer),
    /// An interval timer.
    Itimer(Itimer),
    /// A block request or bio.
    Block(Box<Block>),
    /// A thread begins to hold its block requests back.
    Plug(Plug),
    /// A thread lets its block requests go.
    Unplug(Plug),
    /// A packet at a device.
    Packet(Box<Packet>),
    /// The end of a packet's buffer.
    PacketFree(PacketFree),
    /// A device is asked for what has come in.
    Napi(Napi),
    /// Something happens to a TCP connection.
    Tcp(Box<Tcp>),
    /// Something happens to a socket.
    Socket(Box<Socket>),
    /// Pages are taken or given back.
    Page(Page),
    /// An object of the kernel is taken or given back.
    Slab(Box<Slab>),
    /// A page that is not there, or not for this.
    PageFault(Box<PageFault>),
    /// A page enters the page cache or leaves it.
    PageCache(PageCache),
    /// Dirty pages are written back.
    Writeback(Box<Writeback>),
    /// Memory is reclaimed.
    Reclaim(Box<Reclaim>),
    /// A CPU runs at another frequency.
    Frequency(Frequency),
    /// A CPU sleeps or wakes.
    CpuIdle(CpuIdle),
    /// Work for a kernel worker.
    Work(Box<Work>),
    /// Somebody waits for a lock of the kernel.
    Contention(Contention),
    /// A signal is sent.
    SignalSend(Box<SignalSend>),
    /// A signal reaches the thread that runs.
    SignalDeliver(SignalDeliver),
    /// A request of io_uring.
    Uring(Box<Uring>),
    /// State dump: a block device.
    StateDevice(StateDevice),
    /// State dump: a network interface.
    StateInterface(StateInterface),
    /// State dump: an interrupt.
    StateInterrupt(Box<StateInterrupt>),
    /// State dump: a CPU.
    StateCpu(Box<StateCpu>),
    /// State dump: it begins or ends.
    StateDump(StateDump),
}

impl KernelEvent {
    /// True if it tells who does what to which descriptor: switches, threads and processes, and the
    /// calls that have an [`Action`].
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

    /// True if it tells who does what to which file, and how long that takes: as
    /// [`KernelEvent::is_of_files`], with the calls that bring data to the disk or connect sockets,
    /// and the ends of `close`.
    pub fn is_of_latencies(&self) -> bool {
        match self {
            KernelEvent::Entry(entry) => entry.is_of_latencies(),
            KernelEvent::Exit(exit) => exit.is_of_latencies(),
            event => event.is_of_files(),
        }
    }
}

impl SyscallEntry {
    /// True if the call has an action, or an exit that does not name it might be taken for that of
    /// another.
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
