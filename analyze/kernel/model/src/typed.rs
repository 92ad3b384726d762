//! Typed events from event classes with a known meaning, with the positions of their fields.

use crate::action::{Action, Argument, SyscallSpec};
use crate::event::KernelEvent;
use crate::events::block::{Block, Plug};
use crate::events::call::{More, PairField, SyscallEntry, SyscallExit, Which};
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
use crate::finder::Finder;
use crate::meaning::Meaning;
use crate::numbers::Numbers;
use crate::peer::PeerField;
use crate::syscall::Syscall;
use crate::trace_numbers::TraceNumbers;

impl Finder<'_> {
    /// The typed event; `None` if required fields are missing.
    pub(crate) fn event(&self, meaning: Meaning, numbers: &TraceNumbers) -> Option<KernelEvent> {
        use KernelEvent as E;
        use Meaning as M;
        Some(match meaning {
            M::Switch => E::Switch(Switch::find(self, numbers.states)?),
            M::Fork
            | M::Exec
            | M::ThreadExit
            | M::Rename
            | M::ProcessState
            | M::FileDescriptor
            | M::StateDevice
            | M::StateInterface
            | M::StateInterrupt
            | M::StateCpu
            | M::StateDump(_) => return self.thread_or_state(meaning),
            M::Entry(_)
            | M::Exit(_)
            | M::UserWait(_)
            | M::UserWaitEnd(_)
            | M::AnyExit
            | M::OldEntry(_)
            | M::RawEntry
            | M::RawExit
            | M::Fallback { .. }
            | M::FallbackExit { .. } => return self.call(meaning, numbers),
            M::Wakeup(step) => E::Wakeup(Wakeup::find(self, step, numbers.plain_wakeups)?),
            M::UserLevel(step) => E::UserLevel(UserLevel::find(self, step)?),
            M::Migrate => E::Migrate(Migrate::find(self)?),
            M::Inherit => E::Inherit(Inherit::find(self)?),
            M::SchedStat(kind) => E::SchedStat(SchedStat::find(self, kind)?),
            M::ThreadEnd(step) => E::ThreadEnd(ThreadEnd::find(self, step)?),
            M::IrqEntry => E::IrqEntry(IrqEntry::find(self)?),
            M::IrqExit => E::IrqExit(IrqExit::find(self)?),
            M::Softirq(step) => E::Softirq(Softirq::find(self, step)?),
            M::Tasklet(edge) => E::Tasklet(Tasklet::find(self, edge)?),
            M::Vector(vector, edge) => E::Vector(VectorIrq::find(self, vector, edge)?),
            M::Ipi(step) => E::Ipi(Ipi::find(self, step)?),
            M::Hrtimer(step) => E::Hrtimer(Hrtimer::find(self, step)?),
            M::Timer(step) => E::Timer(Timer::find(self, step)?),
            M::Itimer(step) => E::Itimer(Itimer::find(self, step)?),
            M::Block(step) => E::Block(Block::find(self, step)?),
            M::Plug => E::Plug(Plug::find(self)?),
            M::Unplug => E::Unplug(Plug::find(self)?),
            M::Packet(step) => E::Packet(Packet::find(self, step)?),
            M::PacketFree(dropped) => {
                E::PacketFree(PacketFree::find(self, dropped, numbers.no_drop_reason)?)
            }
            M::Napi => E::Napi(Napi::find(self)?),
            M::Tcp(step) => E::Tcp(Tcp::find(self, step)?),
            M::Socket(step) => E::Socket(Socket::find(self, step)?),
            M::Page(step) => E::Page(Page::find(self, step)?),
            M::Slab(edge, is_cache) => E::Slab(Slab::find(self, edge, is_cache)?),
            M::PageFault(user, edge) => E::PageFault(PageFault::find(self, user, edge)?),
            M::PageCache(edge) => E::PageCache(PageCache::find(self, edge)?),
            M::Writeback(step) => E::Writeback(Writeback::find(self, step)?),
            M::Reclaim(step) => E::Reclaim(Reclaim::find(self, step)?),
            M::Frequency => E::Frequency(Frequency::find(self)?),
            M::CpuIdle => E::CpuIdle(CpuIdle::find(self)?),
            M::GpuJob(step, _) => E::GpuJob(GpuJob::find(self, step)?),
            M::GpuWait(edge) => E::GpuWait(GpuWait::find(self, edge)?),
            M::Work(step) => E::Work(Work::find(self, step)?),
            M::Contention(edge) => E::Contention(Contention::find(self, edge)?),
            M::SignalSend => E::SignalSend(SignalSend::find(self)?),
            M::SignalDeliver => E::SignalDeliver(SignalDeliver::find(self)?),
            M::Uring(step) => E::Uring(Uring::find(self, step)?),
        })
    }

    /// Events of threads and processes, and of the state dump.
    fn thread_or_state(&self, meaning: Meaning) -> Option<KernelEvent> {
        Some(match meaning {
            Meaning::Fork => KernelEvent::Fork(self.fork()?),
            Meaning::Exec => KernelEvent::Exec(Exec {
                path: self.text(&["filename"]),
                tid: self.int(&["tid", "pid"]),
                old_tid: self.int(&["old_tid", "old_pid"]),
            }),
            Meaning::ThreadExit => KernelEvent::ThreadExit(self.int(&["tid", "pid"])?),
            Meaning::Rename => KernelEvent::Rename(
                self.int(&["tid", "pid"])?,
                self.text(&["newcomm", "new_comm"])?,
            ),
            Meaning::ProcessState => KernelEvent::ProcessState(ProcessState {
                tid: self.int(&["tid"])?,
                pid: self.int(&["pid"])?,
                name: self.text(&["name"]),
                ppid: self.int(&["ppid"]),
                table: self.int(&["file_table_address"]),
            }),
            Meaning::FileDescriptor => KernelEvent::StateFd(StateFd {
                pid: self.int(&["pid"]),
                table: self.int(&["file_table_address"]),
                fd: self.int(&["fd"])?,
                flags: self.int(&["flags"]),
                path: self.text(&["filename"]),
            }),
            Meaning::StateDevice => KernelEvent::StateDevice(StateDevice::find(self)?),
            Meaning::StateInterface => KernelEvent::StateInterface(StateInterface::find(self)?),
            Meaning::StateInterrupt => KernelEvent::StateInterrupt(StateInterrupt::find(self)?),
            Meaning::StateCpu => KernelEvent::StateCpu(StateCpu::find(self)?),
            Meaning::StateDump(edge) => KernelEvent::StateDump(StateDump(edge)),
            _ => return None,
        })
    }

    /// Events of system calls.
    fn call(&self, meaning: Meaning, numbers: &TraceNumbers) -> Option<KernelEvent> {
        let calls = |compat| match compat {
            false => &numbers.calls,
            true => &numbers.compat_calls,
        };
        Some(match meaning {
            Meaning::Entry(call) => KernelEvent::Entry(self.entry(call)),
            Meaning::OldEntry(call) => KernelEvent::Entry(SyscallEntry {
                exit_is_anonymous: true,
                ..self.entry(call)
            }),
            Meaning::RawEntry => KernelEvent::Entry(self.entry_by_number(calls(false))?),
            Meaning::Fallback { compat } => KernelEvent::Entry(SyscallEntry {
                is_fallback: true,
                ..self.entry_by_number(calls(compat))?
            }),
            Meaning::Exit(call) => KernelEvent::Exit(self.exit(Some(Which::Fixed(call)))?),
            Meaning::UserWait(call) => KernelEvent::UserWait(self.entry(call)),
            Meaning::UserWaitEnd(call) => {
                KernelEvent::UserWaitEnd(self.exit(Some(Which::Fixed(call)))?)
            }
            Meaning::AnyExit => KernelEvent::Exit(self.exit(None)?),
            Meaning::RawExit => KernelEvent::Exit(self.exit_by_number(calls(false))?),
            Meaning::FallbackExit { compat } => KernelEvent::Exit(SyscallExit {
                is_fallback: true,
                ..self.exit_by_number(calls(compat))?
            }),
            _ => return None,
        })
    }

    /// LTTng calls a thread `tid` and a process `pid`; ftrace calls a thread `pid`.
    fn fork(&self) -> Option<Fork> {
        let lttng = self.int(&["child_tid"]).is_some();
        Some(Fork {
            parent_tid: if lttng {
                self.int(&["parent_tid"])
            } else {
                self.int(&["parent_pid"])
            },
            parent_pid: if lttng {
                self.int(&["parent_pid"])
            } else {
                None
            },
            child_tid: if lttng {
                self.int(&["child_tid"])?
            } else {
                self.int(&["child_pid"])?
            },
            child_pid: if lttng {
                self.int(&["child_pid"])
            } else {
                None
            },
            child_name: self.text(&["child_comm"]),
        })
    }

    fn entry(&self, call: Syscall) -> SyscallEntry {
        let arguments: &[Argument] = call
            .spec()
            .map_or(&[], |spec: &'static SyscallSpec| spec.arguments);
        let field = |place: usize| arguments.get(place).and_then(|(names, _)| self.int(names));
        SyscallEntry {
            which: Which::Fixed(call),
            arguments: [field(0), field(1), field(2)],
            more: self.more(call),
            exit_is_anonymous: false,
            is_fallback: false,
        }
    }

    fn more(&self, call: Syscall) -> Option<Box<More>> {
        let (path, peer) = match call.action() {
            Action::Open(..) | Action::ChangeDirectory => (
                self.text(&[
                    "filename",
                    "path",
                    "pathname",
                    "uname",
                    "uname_ptr",
                    "u_name",
                    "name",
                ]),
                None,
            ),
            Action::Connect => (None, PeerField::find(self)),
            _ => return None,
        };
        let raw = Vec::new();
        Some(Box::new(More { raw, path, peer }))
    }

    fn entry_by_number(&self, calls: &Numbers) -> Option<SyscallEntry> {
        Some(SyscallEntry {
            which: self.by_number(calls)?,
            arguments: [None, None, None],
            more: Some(Box::new(More {
                raw: self.registers().collect(),
                ..More::default()
            })),
            exit_is_anonymous: false,
            is_fallback: false,
        })
    }

    fn by_number(&self, calls: &Numbers) -> Option<Which> {
        let number = self.int(&["id", "nr"])?;
        Some(Which::Number(Box::new((number, calls.clone()))))
    }

    fn exit_by_number(&self, calls: &Numbers) -> Option<SyscallExit> {
        self.exit(Some(self.by_number(calls)?))
    }

    fn exit(&self, which: Option<Which>) -> Option<SyscallExit> {
        // Few calls return more than a number: exits of all others are not searched for more.
        let can = |actions: &[Action]| match which {
            Some(Which::Fixed(call)) => actions.contains(&call.action()),
            _ => true,
        };
        let pair = |name: &&str| {
            Some(Box::new(PairField(
                self.element(name, "0")?,
                self.element(name, "1")?,
            )))
        };
        let pairs = ["fildes", "socket", "usockvec"];
        let pairs = pairs
            .iter()
            .filter(|_| can(&[Action::Pipe, Action::SocketPair]));
        let pair = pairs.filter_map(pair).next();
        let family = match can(&[Action::Accept]) {
            true => self.int(&["family"]),
            false => None,
        };
        let peer = match can(&[Action::Accept]) {
            true => PeerField::find(self).map(Box::new),
            false => None,
        };
        Some(SyscallExit {
            result: self.int(&["ret"])?,
            which,
            pair,
            family,
            peer,
            is_fallback: false,
        })
    }
}
