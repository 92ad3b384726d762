//! The simulated machine: kernel threads on CPUs, user-level threads on kernel threads.
//!
//! Moments whose order the traces must show are at least [`LevelScript::gap`] apart: the begin and
//! the end of a system call, of an interrupt and of a thread's absence from CPUs, and acts of two
//! kernel threads on one thread. All others may have equal times.

use std::path::{Path, PathBuf};

use super::kernel_names::of_tracepoint;
use super::level_shape::LevelShape;
use super::level_tracer::{LevelField, LevelFields, LevelTracer};
use super::level_truth::{
    CallTruth, Duty, LevelTruth, Owner, RecordTruth, UserLevelState, UserLevelStretch,
};
use crate::synthetic::Random;

/// State of a kernel thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelState {
    Running(usize),
    Preempted { by: i32, by_ult: u64 },
    Ready,
    Blocked,
    Dead,
}

/// A kernel thread.
#[derive(Clone, Debug)]
pub(super) struct ScriptThread {
    pub(super) tid: i32,
    pub(super) pid: i32,
    pub(super) name: String,
    pub(super) state: KernelState,
    /// Index of its process, if this has user-level threads.
    pub(super) process: Option<usize>,
    pub(super) is_lwp: bool,
    /// No longer an LWP; the thread ends.
    pub(super) is_leaving: bool,
    /// The current user-level thread, or 0.
    pub(super) ult: u64,
    pub(super) call: Option<&'static str>,
    /// The runtime recorded that its user-level thread is in the call.
    pub(super) has_recorded_call: bool,
    /// Time of the entry into the call.
    pub(super) called: u64,
    /// Index of the call in the truth.
    pub(super) call_truth: Option<usize>,
    /// Time of the last act on it by the kernel's scheduler.
    pub(super) touched: u64,
    /// The user-level thread that its scheduler has switched out and will block.
    pub(super) late_block: Option<u64>,
    /// Recorded time of its last user event.
    last_user: u64,
    duty: Option<(u64, Duty)>,
}

/// State of a user-level thread in its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuntimeState {
    Ready,
    /// On the kernel thread of this index.
    On(usize),
    Blocked(String),
}

/// A user-level thread.
#[derive(Clone, Debug)]
pub(super) struct ScriptUlt {
    pub(super) id: u64,
    pub(super) name: String,
    life: u32,
    pub(super) state: RuntimeState,
    /// Reason of a recorded block after which the thread still runs.
    pub(super) blocks: Option<String>,
    pub(super) ends: bool,
    /// The scheduler has decided to block the thread.
    pub(super) is_reserved: bool,
    /// Reason for which it left its LWP blocked, until it runs again.
    pub(super) waits: Option<String>,
    /// With their index in the truth.
    pub(super) functions: Vec<(&'static str, Option<usize>)>,
    /// Time of the last user event about it.
    pub(super) touched: u64,
    shown: UserLevelState,
    since: u64,
}

/// A process with user-level threads.
pub(super) struct ScriptProcess {
    pub(super) pid: i32,
    pub(super) ults: Vec<ScriptUlt>,
    /// Number of lives of each id.
    lives: std::collections::BTreeMap<u64, u32>,
    pub(super) next_ult: u64,
    pub(super) needs_snapshot: bool,
    tracer: LevelTracer,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptCpu {
    pub(super) running: Option<usize>,
    /// Interrupts in progress, each with its entry's time.
    pub(super) interrupts: Vec<(ScriptInterrupt, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptInterrupt {
    Irq(i32),
    Softirq(i32),
}

/// The machine.
pub struct LevelScript {
    pub(super) shape: LevelShape,
    pub(super) random: Random,
    pub(super) time: u64,
    pub(super) threads: Vec<ScriptThread>,
    pub(super) processes: Vec<ScriptProcess>,
    pub(super) cpus: Vec<ScriptCpu>,
    pub(super) next_tid: i32,
    kernel: LevelTracer,
    pub(super) super_trace: LevelTracer,
    pub(super) is_recording: bool,
    serial: u64,
    /// Time of the last record.
    recorded: u64,
    truth: LevelTruth,
}

/// Directories of a recording, and its truth.
pub struct LevelTraces {
    pub directory: PathBuf,
    pub kernel: PathBuf,
    pub users: Vec<PathBuf>,
    /// The super-trace of a perfect merge.
    pub super_trace: PathBuf,
    pub truth: LevelTruth,
}

impl LevelTraces {
    /// All traces of the recording.
    pub fn all(&self) -> Vec<&Path> {
        let users = self.users.iter().map(PathBuf::as_path);
        std::iter::once(self.kernel.as_path())
            .chain(users)
            .collect()
    }
}

/// Writes a recording below a directory.
pub fn record(seed: u64, shape: LevelShape, directory: &Path) -> LevelTraces {
    let mut script = LevelScript::new(seed, shape);
    for step in 0..shape.steps {
        if step == shape.unrecorded_steps {
            script.begin_recording();
        }
        script.step();
    }
    script.save(directory)
}

impl LevelScript {
    fn new(seed: u64, shape: LevelShape) -> Self {
        let process = |at: usize| {
            let pid = 1000 + 100 * at as i32;
            let environment = format!(
                "hostname = \"two-levels\"; domain = \"ust\"; tracer_name = \"tracebraid-probe\"; \
                 tracer_buffering_scheme = \"pid\"; vpid = {pid}; procname = \"program{at}\";"
            );
            let lost = shape.lost_user_packets;
            let seed = seed + 31 * (at as u64 + 1);
            let tracer = LevelTracer::new(environment, "tid", shape.packet, lost, seed);
            ScriptProcess {
                pid,
                ults: Vec::new(),
                lives: std::collections::BTreeMap::new(),
                next_ult: 1,
                needs_snapshot: false,
                tracer: match shape.shares_stream {
                    true => tracer.with_one_stream(),
                    false => tracer,
                },
            }
        };
        let environment = "hostname = \"two-levels\"; domain = \"kernel\";".to_owned();
        let lost = shape.lost_kernel_packets;
        let mut script = LevelScript {
            shape,
            random: Random::new(seed),
            time: 10_000,
            threads: Vec::new(),
            processes: (0..shape.processes).map(process).collect(),
            cpus: vec![ScriptCpu::default(); shape.cpus],
            next_tid: 5000,
            super_trace: LevelTracer::of_super(
                format!(
                    "{environment} tracer_name = \"tracebraid-levels\"; tracebraid_levels = 1;"
                ),
                shape.packet,
                shape.lost_super_packets,
            ),
            kernel: LevelTracer::new(environment, "cpu_id", shape.packet, lost, seed + 17),
            is_recording: false,
            serial: 0,
            recorded: 0,
            truth: LevelTruth::default(),
        };
        for at in 0..shape.processes {
            let pid = script.processes[at].pid;
            for lwp in 0..shape.lwps as i32 {
                script.add_thread(pid + lwp, pid, Some(at));
            }
        }
        for other in 0..shape.others as i32 {
            script.add_thread(200 + other, 200 + other, None);
        }
        script
    }

    pub(super) fn add_thread(&mut self, tid: i32, pid: i32, process: Option<usize>) {
        let kind = if process.is_some() { "lwp" } else { "other" };
        self.threads.push(ScriptThread {
            tid,
            pid,
            name: format!("{kind}{tid}"),
            state: KernelState::Ready,
            process,
            is_lwp: false,
            is_leaving: false,
            ult: 0,
            call: None,
            has_recorded_call: false,
            called: 0,
            call_truth: None,
            touched: self.time,
            late_block: None,
            last_user: 0,
            duty: None,
        });
    }

    /// Nanoseconds that moments must differ by so that their order is known.
    pub(super) fn gap(&self) -> u64 {
        2 * self.shape.clock_error + 1
    }

    /// Lets time pass until `gap` after `since`.
    pub(super) fn pass(&mut self, since: u64) {
        self.time = self.time.max(since + self.gap());
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// A random index among those that `wanted` selects.
    pub(super) fn pick(&mut self, wanted: Vec<usize>) -> Option<usize> {
        (!wanted.is_empty()).then(|| wanted[self.below(wanted.len())])
    }

    fn step(&mut self) {
        if !self.random.chance(self.shape.ties) {
            self.time += 1 + self.random.below(60);
        }
        let cpu = self.below(self.shape.cpus);
        if !self.cpus[cpu].interrupts.is_empty() {
            return self.interrupt_step(cpu);
        }
        if self.random.chance(40) {
            return self.enter_interrupt(cpu);
        }
        match self.cpus[cpu].running {
            None => self.leave_idle(cpu),
            Some(thread) => self.thread_step(cpu, thread),
        }
    }

    fn thread_step(&mut self, cpu: usize, thread: usize) {
        if self.random.chance(25) && self.preempt(cpu) {
            return;
        }
        if self.threads[thread].call.is_some() {
            return self.call_step(cpu, thread);
        }
        let is_user = self.threads[thread].process.is_some();
        if !is_user || self.threads[thread].is_leaving || self.random.chance(90) {
            self.enter_call(cpu, thread);
        } else {
            self.user_step(thread);
        }
    }

    /// The owner of records of a kernel thread.
    fn owner(&self, cpu: usize, thread: Option<usize>, in_interrupt: bool) -> Owner {
        let thread = thread.map(|at| &self.threads[at]);
        let current = thread.map_or(0, |thread| thread.ult);
        Owner {
            cpu: cpu as u32,
            lwp: thread.map_or(0, |thread| thread.tid),
            ult: if in_interrupt { 0 } else { current },
            current,
            pid: thread.map_or(0, |thread| thread.pid),
        }
    }

    fn note(&mut self, name: &str, owner: Owner, is_kernel: bool) -> u64 {
        self.serial += 1;
        self.recorded = self.time;
        let truth = RecordTruth {
            name: name.to_owned(),
            owner,
            time: self.time,
            is_kernel,
        };
        self.truth.records.insert(self.serial, truth);
        self.serial
    }

    /// Writes a kernel event on a CPU.
    pub(super) fn kernel_event(&mut self, cpu: usize, name: &str, fields: LevelFields) {
        if !self.is_recording || (!self.shape.syscalls && name.starts_with("syscall_")) {
            return;
        }
        let here = &self.cpus[cpu];
        // Entries and exits of interrupts belong to them.
        let in_interrupt = !here.interrupts.is_empty() || name.starts_with("irq_");
        let owner = self.owner(cpu, here.running, in_interrupt);
        let serial = self.note(name, owner, true);
        self.copy_kernel_event(cpu, owner, name, fields.clone());
        let (name, fields) = match self.shape.tracepoint_names {
            true => of_tracepoint(name, fields),
            false => (name.to_owned(), fields),
        };
        let lost = self
            .kernel
            .write(cpu as i32, self.time, &name, fields, serial);
        self.truth.lost.extend(lost);
    }

    /// Writes a user event of a running thread.
    pub(super) fn user_event(&mut self, thread: usize, name: &str, fields: LevelFields) {
        if !self.is_recording {
            return;
        }
        let KernelState::Running(cpu) = self.threads[thread].state else {
            panic!("only running threads record");
        };
        let owner = self.owner(cpu, Some(thread), false);
        let serial = self.note(name, owner, false);
        self.super_trace.write_super(
            cpu as i32,
            self.time,
            self.contexts(owner),
            name,
            fields.clone(),
        );
        let error = self.shape.clock_error;
        let shifted = self.time - error + self.random.below(2 * error + 1);
        let thread = &mut self.threads[thread];
        thread.last_user = thread.last_user.max(shifted);
        let process = &mut self.processes[thread.process.expect("a process")];
        let (tid, time) = (thread.tid, thread.last_user);
        let lost = process.tracer.write(tid, time, name, fields, serial);
        self.truth.lost.extend(lost);
    }

    fn begin_recording(&mut self) {
        // Interrupts that begin before the recording cannot be seen.
        for cpu in 0..self.cpus.len() {
            while !self.cpus[cpu].interrupts.is_empty() {
                self.leave_interrupt(cpu);
            }
        }
        // Nothing is recorded within the gap, so that the first moment is unambiguous.
        self.time += self.gap();
        self.is_recording = true;
        for cpu in 0..self.cpus.len() {
            self.kernel.open(cpu as i32, self.time);
            self.super_trace.open(cpu as i32, self.time);
        }
        for thread in self.threads.clone() {
            if thread.state == KernelState::Dead {
                continue;
            }
            let fields = vec![
                ("tid", LevelField::I32(thread.tid)),
                ("pid", LevelField::I32(thread.pid)),
                ("name", LevelField::Comm(thread.name)),
            ];
            self.kernel_event(0, "lttng_statedump_process_state", fields);
        }
        for process in &mut self.processes {
            process.needs_snapshot = self.shape.snapshot;
            for ult in &mut process.ults {
                ult.since = self.time;
            }
        }
        for thread in &mut self.threads {
            thread.duty = thread.duty.map(|(_, duty)| (self.time, duty));
        }
        self.describe_all();
        self.time += self.gap();
    }

    fn save(mut self, directory: &Path) -> LevelTraces {
        // Nothing is known after the last record.
        self.time = self.recorded;
        let end = self.time;
        self.truth.end = end;
        for process in 0..self.processes.len() {
            for at in 0..self.processes[process].ults.len() {
                self.end_stretch(process, at);
            }
        }
        for thread in 0..self.threads.len() {
            self.set_duty(thread, None);
        }
        let kernel = directory.join("kernel");
        self.kernel.save(&kernel, end);
        let super_trace = directory.join("super");
        self.super_trace.save(&super_trace, end);
        let mut users = Vec::new();
        for process in self.processes {
            let user = directory.join(format!("user-{}", process.pid));
            process.tracer.save(&user, end);
            users.push(user);
        }
        for serial in &self.truth.lost {
            self.truth.records.remove(serial);
        }
        LevelTraces {
            directory: directory.to_owned(),
            kernel,
            users,
            super_trace,
            truth: self.truth,
        }
    }
}

/// Bookkeeping of the truth.
impl LevelScript {
    /// Adds a user-level thread, ready.
    pub(super) fn add_ult(&mut self, process: usize, id: u64, name: String) {
        let time = self.time;
        let process = &mut self.processes[process];
        let life = process
            .lives
            .entry(id)
            .and_modify(|life| *life += 1)
            .or_insert(0);
        process.ults.push(ScriptUlt {
            id,
            name,
            life: *life,
            state: RuntimeState::Ready,
            blocks: None,
            ends: false,
            is_reserved: false,
            waits: None,
            functions: Vec::new(),
            touched: time,
            shown: UserLevelState::Ready,
            since: time,
        });
    }

    /// A user-level thread begins a call. Returns its index in the truth.
    pub(super) fn begin_call(
        &mut self,
        process: usize,
        at: usize,
        (name, is_system): (&str, bool),
    ) -> Option<usize> {
        let process = &self.processes[process];
        let ult = &process.ults[at];
        let call = CallTruth {
            life: (process.pid, ult.id, ult.life),
            name: name.to_owned(),
            is_system,
            within: ult.functions.last().and_then(|(_, call)| *call),
            from: self.time,
            to: None,
        };
        self.is_recording.then(|| {
            self.truth.calls.push(call);
            self.truth.calls.len() - 1
        })
    }

    pub(super) fn end_call(&mut self, call: Option<usize>) {
        if let Some(call) = call {
            self.truth.calls[call].to = Some(self.time);
        }
    }

    /// Removes a user-level thread that has ended.
    pub(super) fn remove_ult(&mut self, process: usize, at: usize) {
        self.end_stretch(process, at);
        self.processes[process].ults.remove(at);
    }

    fn end_stretch(&mut self, process: usize, at: usize) {
        let (time, is_recording) = (self.time, self.is_recording);
        let process = &mut self.processes[process];
        let ult = &mut process.ults[at];
        let stretch = UserLevelStretch {
            from: ult.since,
            to: time,
            state: ult.shown.clone(),
        };
        ult.since = time;
        if is_recording && stretch.from < stretch.to {
            let life = (process.pid, ult.id, ult.life);
            self.truth.lives.entry(life).or_default().push(stretch);
        }
    }

    /// Index of the current user-level thread of a kernel thread.
    pub(super) fn current(&self, thread: usize) -> Option<usize> {
        let thread = &self.threads[thread];
        let process = &self.processes[thread.process?];
        process.ults.iter().position(|ult| ult.id == thread.ult)
    }

    /// Updates the state of a user-level thread.
    pub(super) fn show(&mut self, process: usize, at: usize) {
        let ult = &self.processes[process].ults[at];
        let state = match &ult.state {
            RuntimeState::Ready => UserLevelState::Ready,
            RuntimeState::Blocked(reason) => UserLevelState::Blocked {
                reason: reason.clone(),
            },
            RuntimeState::On(thread) => {
                let thread = &self.threads[*thread];
                let lwp = thread.tid;
                match thread.state {
                    KernelState::Running(cpu) => UserLevelState::Active {
                        cpu: cpu as u32,
                        lwp,
                    },
                    KernelState::Preempted { by, by_ult } => {
                        UserLevelState::LwpPreempted { lwp, by, by_ult }
                    }
                    KernelState::Ready => UserLevelState::LwpReady { lwp },
                    KernelState::Blocked | KernelState::Dead => UserLevelState::LwpBlocked { lwp },
                }
            }
        };
        if state != ult.shown {
            self.end_stretch(process, at);
            self.processes[process].ults[at].shown = state;
        }
    }

    /// Updates the states that depend on a kernel thread's.
    pub(super) fn show_thread(&mut self, thread: usize) {
        if let Some(at) = self.current(thread) {
            self.show(self.threads[thread].process.expect("a process"), at);
        }
        let it = &self.threads[thread];
        let runs = matches!(it.state, KernelState::Running(_));
        let duty = (runs && it.is_lwp).then_some(match it.ult {
            0 => Duty::Scheduler,
            ult => Duty::Thread(ult),
        });
        self.set_duty(thread, duty);
    }

    fn set_duty(&mut self, thread: usize, duty: Option<Duty>) {
        let (time, is_recording) = (self.time, self.is_recording);
        let thread = &mut self.threads[thread];
        if thread.duty.map(|(_, duty)| duty) == duty {
            return;
        }
        if let Some((since, duty)) = thread.duty.take()
            && since < time
            && is_recording
        {
            let duties = self.truth.duties.entry(thread.tid).or_default();
            duties.push((since, time, duty));
        }
        thread.duty = duty.map(|duty| (time, duty));
    }
}
