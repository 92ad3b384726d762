//! Finding the fields of event classes, under the names that tracers give them.

use tracebraid_ctf::layout::node::NodeKind;
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::{EnvValue, Scope};
use tracebraid_ctf::trace::Trace;

use crate::action::{Action, Argument, SyscallSpec};
use crate::drop_reason::{DropReason, unspecified};
use crate::event::KernelEvent;
use crate::events::block::{Block, Plug};
use crate::events::call::{More, PairField, SyscallEntry, SyscallExit, Which};
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
use crate::field::{BytesField, IntField, TextField};
use crate::model::Context;
use crate::names::Meaning;
use crate::numbers::Numbers;
use crate::peer::PeerField;
use crate::state_numbers::{StateNumbers, release_numbers, release_of};
use crate::state_sample::state_numbers;
use crate::syscall::Syscall;

/// What the environment of a trace tells of its numbers.
#[derive(Debug)]
pub(crate) struct Machine {
    calls: Numbers,
    /// Those of its 32-bit programs.
    compat_calls: Numbers,
    states: StateNumbers,
    /// See [`DropReason`].
    no_drop_reason: i64,
    /// Priorities of `sched_wakeup` count as in the kernel though others do not: lttng-modules 2.1
    /// does so, 2.8 no longer.
    plain_wakeups: bool,
}

impl Machine {
    pub(crate) fn new(trace: &Trace) -> Machine {
        let class = &trace.layout.class;
        let machine = class.env_str("machine");
        let release = release_of(class).and_then(release_numbers);
        Machine {
            calls: Numbers::new(machine, false),
            compat_calls: Numbers::new(machine, true),
            states: state_numbers(trace),
            no_drop_reason: unspecified(release.map(|(major, minor, _)| (major, minor))),
            plain_wakeups: matches!(
                (class.env("tracer_major"), class.env("tracer_minor")),
                (Some(EnvValue::Int(2)), Some(EnvValue::Int(0 | 1)))
            ),
        }
    }
}

/// Finds the fields of one event class.
pub(crate) struct Finder<'a> {
    pub(crate) layout: &'a StreamLayout,
    pub(crate) event: usize,
}

impl Finder<'_> {
    /// True if the event has a field of that name.
    pub(crate) fn has(&self, scope: Scope, name: &str) -> bool {
        self.find(scope, &[name], Some).is_some()
    }

    /// Names of the payload's fields, in order.
    pub(crate) fn members(&self) -> Vec<String> {
        let root = self
            .layout
            .events
            .get(self.event)
            .and_then(|event| event.payload.root());
        let Some(root) = root.filter(|root| matches!(root.kind, NodeKind::Struct(_))) else {
            return Vec::new();
        };
        let name = |name: &str| name.strip_prefix('_').unwrap_or(name).to_owned();
        root.parts().map(|member| name(&member.name)).collect()
    }

    /// The byte order of the first integer of the payload, however nested, that has one of the names.
    pub(crate) fn is_big_endian(&self, names: &[&str]) -> Option<bool> {
        let payload = &self.layout.events.get(self.event)?.payload;
        let is_named = |name: &str| names.contains(&name.strip_prefix('_').unwrap_or(name));
        payload
            .all()
            .filter(|part| is_named(&part.name))
            .find_map(|part| match part.kind {
                NodeKind::Int(read, _) => Some(read.big),
                _ => None,
            })
    }

    /// A text field at a constant place, and how many bits behind the header that is.
    pub(crate) fn text_at(&self, name: &str) -> Option<(TextField, u64)> {
        self.find(Scope::Payload, &[name], |field| {
            let offset = field.offset()?;
            Some((TextField::new(field)?, offset))
        })
    }

    /// A field of bytes that are no text.
    pub(crate) fn bytes(&self, name: &str) -> Option<BytesField> {
        self.find(Scope::Payload, &[name], BytesField::new)
    }

    /// Why a packet was dropped; `unspecified` as for [`DropReason::new`].
    pub(crate) fn drop_reason(&self, unspecified: i64) -> Option<DropReason> {
        let make = |field| DropReason::new(field, unspecified);
        self.find(Scope::Payload, &["reason"], make)
    }

    fn ints(&self, scope: Scope, names: &[&str]) -> Option<IntField> {
        self.find(scope, names, IntField::new)
    }

    pub(crate) fn int(&self, names: &[&str]) -> Option<IntField> {
        self.ints(Scope::Payload, names)
    }

    pub(crate) fn text(&self, names: &[&str]) -> Option<TextField> {
        self.find(Scope::Payload, names, TextField::new)
    }

    /// The first of those names that the event has and that is what is wanted; writers of CTF 1.8
    /// escape names by underscores, of which the schema takes away one.
    fn find<T>(&self, scope: Scope, names: &[&str], make: impl Fn(FieldRef) -> Option<T>) -> Option<T> {
        // The way to a scope that is not there leads over all that is.
        let event = self.layout.events.get(self.event)?;
        match scope {
            Scope::CommonContext => self.layout.common_context.root(),
            Scope::SpecificContext => event.specific_context.root(),
            _ => event.payload.root(),
        }?;
        names.iter().find_map(|name| {
            let found = |name: &str| self.layout.field(self.event, scope, &[name]).and_then(&make);
            found(name).or_else(|| found(&format!("_{name}")))
        })
    }

    fn element(&self, name: &str, index: &str) -> Option<IntField> {
        self.layout
            .field(self.event, Scope::Payload, &[name, index])
            .and_then(IntField::new)
    }

    /// What comes with the event. perf and ftrace know no contexts: they put such fields before
    /// the event's own. Of perf's two `common_pid` is the thread's number as `sched_switch` gives
    /// it, `perf_tid` that in the namespace of the one who records.
    pub(crate) fn context(&self, cpu: Option<IntField>) -> Context {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        let context = |names: &[&str]| scopes.iter().find_map(|scope| self.ints(*scope, names));
        let perf_tid = self.int(&["perf_tid"]);
        Context {
            cpu,
            tid: context(&["tid"]).or_else(|| self.int(&["common_pid", "perf_tid"])),
            pid: context(&["pid"]).or_else(|| self.int(&["perf_pid"]).filter(|_| perf_tid.is_some())),
            pid_goes_with: perf_tid,
            name: scopes
                .iter()
                .find_map(|scope| self.find(*scope, &["procname"], TextField::new)),
        }
    }

    /// What the event tells; `None` without the fields that it would take.
    pub(crate) fn event(&self, meaning: Meaning, machine: &Machine) -> Option<KernelEvent> {
        use KernelEvent as E;
        use Meaning as M;
        Some(match meaning {
            M::Switch => E::Switch(Switch::find(self, machine.states)?),
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
            | M::AnyExit
            | M::OldEntry(_)
            | M::RawEntry
            | M::RawExit
            | M::Fallback { .. }
            | M::FallbackExit { .. } => return self.call(meaning, machine),
            M::Wakeup(step) => E::Wakeup(Wakeup::find(self, step, machine.plain_wakeups)?),
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
            M::PacketFree(dropped) => E::PacketFree(PacketFree::find(self, dropped, machine.no_drop_reason)?),
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
            M::Work(step) => E::Work(Work::find(self, step)?),
            M::Contention(edge) => E::Contention(Contention::find(self, edge)?),
            M::SignalSend => E::SignalSend(SignalSend::find(self)?),
            M::SignalDeliver => E::SignalDeliver(SignalDeliver::find(self)?),
            M::Uring(step) => E::Uring(Uring::find(self, step)?),
        })
    }

    /// Threads and processes, and the state dump.
    fn thread_or_state(&self, meaning: Meaning) -> Option<KernelEvent> {
        Some(match meaning {
            Meaning::Fork => KernelEvent::Fork(self.fork()?),
            Meaning::Exec => KernelEvent::Exec(Exec {
                path: self.text(&["filename"]),
                tid: self.int(&["tid", "pid"]),
                old_tid: self.int(&["old_tid", "old_pid"]),
            }),
            Meaning::ThreadExit => KernelEvent::ThreadExit(self.int(&["tid", "pid"])?),
            Meaning::Rename => {
                KernelEvent::Rename(self.int(&["tid", "pid"])?, self.text(&["newcomm", "new_comm"])?)
            }
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

    /// System calls.
    fn call(&self, meaning: Meaning, machine: &Machine) -> Option<KernelEvent> {
        let calls = |compat| match compat {
            false => &machine.calls,
            true => &machine.compat_calls,
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
            parent_pid: if lttng { self.int(&["parent_pid"]) } else { None },
            child_tid: if lttng {
                self.int(&["child_tid"])?
            } else {
                self.int(&["child_pid"])?
            },
            child_pid: if lttng { self.int(&["child_pid"]) } else { None },
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

    /// The arguments of a call of any number, in order.
    pub(crate) fn registers(&self) -> impl Iterator<Item = IntField> {
        ["0", "1", "2", "3", "4", "5"]
            .iter()
            .map_while(|index| self.element("args", index))
    }

    fn by_number(&self, calls: &Numbers) -> Option<Which> {
        let number = self.int(&["id", "nr"])?;
        Some(Which::Number(Box::new((number, calls.clone()))))
    }

    fn exit_by_number(&self, calls: &Numbers) -> Option<SyscallExit> {
        self.exit(Some(self.by_number(calls)?))
    }

    fn exit(&self, which: Option<Which>) -> Option<SyscallExit> {
        // Few calls give more than a number: do not look for it in all others' exits.
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
        let pairs = pairs.iter().filter(|_| can(&[Action::Pipe, Action::SocketPair]));
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
