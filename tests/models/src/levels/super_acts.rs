//! The super-trace of a perfect merge, written while the truth is known.

use super::level_tracer::LevelField::{Comm, I32, I64, Text, U8, U64};
use super::level_tracer::{LevelField, LevelFields};
use super::level_truth::Owner;
use super::script::{KernelState, LevelScript};

/// State in which a user-level thread leaves its LWP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeavesAs {
    Ready,
    Blocked(String),
    Ended,
}

/// `prev_state` of a user-level thread that waits for an LWP.
const READY: i64 = 0x4000_0000;

impl LevelScript {
    /// The id under which analyses see a thread.
    fn shown(&self, pid: i32, lwp: i32, ult: u64) -> i32 {
        let process = self.processes.iter().position(|process| process.pid == pid);
        match process {
            Some(process) if ult != 0 => 100_000_000 * (process as i32 + 1) + ult as i32,
            _ => lwp,
        }
    }

    pub(super) fn contexts(&self, owner: Owner) -> (i32, i32, u64) {
        let tid = self.shown(owner.pid, owner.lwp, owner.current);
        (tid, owner.lwp, owner.ult)
    }

    /// Writes a kernel event with the ids of user-level threads in place of their LWPs'.
    pub(super) fn copy_kernel_event(
        &mut self,
        cpu: usize,
        owner: Owner,
        name: &str,
        mut fields: LevelFields,
    ) {
        let is_about_lwp = name.starts_with("lttng_statedump_") || name == "sched_process_exit";
        for (field, value) in &mut fields {
            let is_thread = ["prev_tid", "next_tid", "tid", "parent_tid"].contains(field);
            if let (LevelField::I32(tid), true) = (value, is_thread && !is_about_lwp) {
                let mut threads = self.threads.iter().rev();
                if let Some(thread) = threads.find(|thread| thread.tid == *tid) {
                    *tid = self.shown(thread.pid, thread.tid, thread.ult);
                }
            }
        }
        match name {
            "sched_switch" | "sched_process_fork" | "sched_process_exit" => {
                fields.push(("level", U8(0)));
            }
            "sched_waking" | "sched_wakeup" => {
                fields.extend([("level", U8(0)), ("reason", Text(String::new()))]);
            }
            _ => {}
        }
        let contexts = self.contexts(owner);
        self.super_trace
            .write_super(cpu as i32, self.time, contexts, name, fields);
    }

    /// Writes a derived event of an LWP while `ult` is current.
    fn derive(&mut self, thread: usize, ult: u64, name: &str, fields: LevelFields) {
        if !self.is_recording {
            return;
        }
        let of = &self.threads[thread];
        let KernelState::Running(cpu) = of.state else {
            panic!("only running threads act");
        };
        let contexts = (self.shown(of.pid, of.tid, ult), of.tid, ult);
        self.super_trace
            .write_super(cpu as i32, self.time, contexts, name, fields);
    }

    pub(super) fn derive_switch(
        &mut self,
        thread: usize,
        (prev, next): (u64, u64),
        left: &LeavesAs,
        waited: Option<String>,
    ) {
        let (pid, lwp) = (self.threads[thread].pid, self.threads[thread].tid);
        let state = match left {
            LeavesAs::Ready => READY,
            LeavesAs::Blocked(reason) => {
                let name = format!("ult_wait_entry_{reason}");
                self.derive(thread, prev, &name, Vec::new());
                1
            }
            LeavesAs::Ended => 16,
        };
        if prev != next {
            let fields = vec![
                ("prev_comm", Comm(format!("ult {prev}"))),
                ("prev_tid", I32(self.shown(pid, lwp, prev))),
                ("prev_prio", I32(20)),
                ("prev_state", I64(state)),
                ("next_comm", Comm(format!("ult {next}"))),
                ("next_tid", I32(self.shown(pid, lwp, next))),
                ("next_prio", I32(20)),
                ("level", U8(1)),
            ];
            self.derive(thread, prev, "sched_switch", fields);
        }
        if let Some(reason) = waited {
            let name = format!("ult_wait_exit_{reason}");
            self.derive(thread, next, &name, vec![("ret", I64(0))]);
        }
    }

    pub(super) fn derive_wakeup(&mut self, thread: usize, woken: u64, reason: &str) {
        let (pid, ult) = (self.threads[thread].pid, self.threads[thread].ult);
        let level = match reason {
            "sleep" => 2,
            "io" => 3,
            _ => 1,
        };
        let fields = vec![
            ("comm", Comm(format!("ult {woken}"))),
            ("tid", I32(self.shown(pid, -1, woken))),
            ("prio", I32(20)),
            ("target_cpu", I32(0)),
            ("level", U8(level)),
            ("reason", Text(reason.to_owned())),
        ];
        self.derive(thread, ult, "sched_wakeup", fields);
    }

    pub(super) fn derive_creation(&mut self, thread: usize, child: u64, name: &str) {
        let of = self.threads[thread].clone();
        let description = self.description(of.pid, child, name);
        self.derive(thread, of.ult, DESCRIPTION, description);
        let fields = vec![
            ("parent_comm", Comm(of.name)),
            ("parent_tid", I32(self.shown(of.pid, of.tid, of.ult))),
            ("parent_pid", I32(of.pid)),
            ("child_comm", Comm(name.to_owned())),
            ("child_tid", I32(self.shown(of.pid, -1, child))),
            ("child_pid", I32(of.pid)),
            ("level", U8(1)),
        ];
        self.derive(thread, of.ult, "sched_process_fork", fields);
        self.derive_wakeup(thread, child, "");
    }

    /// A user-level thread ends: the running one, or another one without an LWP.
    pub(super) fn derive_exit(&mut self, thread: usize, ult: u64) {
        let pid = self.threads[thread].pid;
        let fields = vec![
            ("comm", Comm(format!("ult {ult}"))),
            ("tid", I32(self.shown(pid, -1, ult))),
            ("prio", I32(20)),
            ("level", U8(1)),
        ];
        let running = self.threads[thread].ult;
        self.derive(thread, running, "sched_process_exit", fields);
    }

    fn description(&self, pid: i32, ult: u64, name: &str) -> LevelFields {
        vec![
            ("tid", I32(self.shown(pid, -1, ult))),
            ("pid", I32(pid)),
            ("ult", U64(ult)),
            ("name", Text(name.to_owned())),
            ("runtime", Text("script".to_owned())),
        ]
    }

    /// Describes the user-level threads that exist when the recording begins.
    pub(super) fn describe_all(&mut self) {
        let ults = self.processes.iter().flat_map(|process| {
            let ults = process.ults.iter();
            ults.map(|ult| self.description(process.pid, ult.id, &ult.name))
        });
        for fields in ults.collect::<Vec<_>>() {
            self.super_trace
                .write_super(0, self.time, (0, 0, 0), DESCRIPTION, fields);
        }
    }
}

const DESCRIPTION: &str = "tracebraid_levels:thread";
