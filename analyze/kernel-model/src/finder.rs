//! Finding the fields of event classes, under the names that tracers give them.

use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::Scope;

use crate::field::{IntField, TextField};
use crate::model::{
    Context, Exec, Fork, KernelEvent, PairField, ProcessState, StateFd, Switch, SyscallEntry, SyscallExit,
    Which,
};
use crate::names::Meaning;
use crate::numbers::Numbers;
use crate::syscall::{Argument, Syscall, SyscallSpec};

/// Finds the fields of one event class.
pub(crate) struct Finder<'a> {
    pub(crate) layout: &'a StreamLayout,
    pub(crate) event: usize,
}

impl Finder<'_> {
    fn ints(&self, scope: Scope, names: &[&str]) -> Option<IntField> {
        self.find(scope, names, IntField::new)
    }

    fn int(&self, names: &[&str]) -> Option<IntField> {
        self.ints(Scope::Payload, names)
    }

    fn text(&self, names: &[&str]) -> Option<TextField> {
        self.find(Scope::Payload, names, TextField::new)
    }

    /// The first of those names that the event has and that is what is wanted; writers of CTF 1.8
    /// escape names by underscores, of which the schema takes away one.
    fn find<T>(&self, scope: Scope, names: &[&str], make: impl Fn(FieldRef) -> Option<T>) -> Option<T> {
        names.iter().find_map(|name| {
            let escaped = format!("_{name}");
            let found = |name: &str| self.layout.field(self.event, scope, &[name]).and_then(&make);
            found(name).or_else(|| found(&escaped))
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
    pub(crate) fn context(&self) -> Context {
        let scopes = [Scope::CommonContext, Scope::SpecificContext];
        let context = |names: &[&str]| scopes.iter().find_map(|scope| self.ints(*scope, names));
        let perf_tid = self.int(&["perf_tid"]);
        Context {
            cpu: context(&["cpu_id", "cpu"]).or_else(|| self.int(&["common_cpu"])),
            tid: context(&["tid"]).or_else(|| self.int(&["common_pid", "perf_tid"])),
            pid: context(&["pid"]).or_else(|| self.int(&["perf_pid"]).filter(|_| perf_tid.is_some())),
            pid_goes_with: perf_tid,
            name: scopes
                .iter()
                .find_map(|scope| self.find(*scope, &["procname"], TextField::new)),
        }
    }

    /// What the event tells; `None` without the fields that it would take.
    pub(crate) fn event(&self, meaning: Meaning, numbers: &Numbers) -> Option<KernelEvent> {
        Some(match meaning {
            Meaning::Switch => KernelEvent::Switch(Switch {
                prev_tid: self.int(&["prev_tid", "prev_pid"])?,
                next_tid: self.int(&["next_tid", "next_pid"])?,
                prev_name: self.text(&["prev_comm"]),
                next_name: self.text(&["next_comm"]),
            }),
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
                table: self.int(&["file_table_address"]),
            }),
            Meaning::FileDescriptor => KernelEvent::StateFd(StateFd {
                pid: self.int(&["pid"]),
                table: self.int(&["file_table_address"]),
                fd: self.int(&["fd"])?,
                flags: self.int(&["flags"]),
                path: self.text(&["filename"]),
            }),
            Meaning::Entry(call) => KernelEvent::Entry(self.entry(call)),
            Meaning::RawEntry => {
                let raw = ["0", "1", "2", "3", "4", "5"]
                    .iter()
                    .map_while(|index| self.element("args", index));
                let number = self.int(&["id", "nr"])?;
                let which = Which::Number(Box::new((number, numbers.clone())));
                KernelEvent::Entry(SyscallEntry {
                    which,
                    arguments: [None, None, None],
                    raw: raw.collect(),
                })
            }
            Meaning::Exit(call) => KernelEvent::Exit(self.exit(Some(Which::Fixed(call)))?),
            Meaning::AnyExit => KernelEvent::Exit(self.exit(None)?),
            Meaning::RawExit => {
                let number = Box::new((self.int(&["id", "nr"])?, numbers.clone()));
                KernelEvent::Exit(self.exit(Some(Which::Number(number)))?)
            }
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
            raw: Vec::new(),
        }
    }

    fn exit(&self, which: Option<Which>) -> Option<SyscallExit> {
        let pair = ["fildes", "socket", "usockvec"].iter().find_map(|name| {
            Some(Box::new(PairField(
                self.element(name, "0")?,
                self.element(name, "1")?,
            )))
        });
        Some(SyscallExit {
            which,
            result: self.int(&["ret"])?,
            pair,
            family: self.int(&["family"]),
        })
    }
}
