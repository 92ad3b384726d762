//! Follows CPUs, LWPs and user-level threads through the records of a super-trace.
//!
//! Records of equal times are in the order of their CPUs, not in that of their causes: a thread may
//! begin on one LWP before it leaves another, and be woken before it waits. The first is seen from the
//! place of the thread, the second from the time of the wake-up. A thread that comes to a CPU or LWP,
//! and goes back, within one time stamp may be shown at the wrong one until its next switch.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_kernel_model::{StateNumbers, Syscall, TaskState, state_numbers};

use super::items::{Item, Kind, Line, LineId, LinkKind, Sink, State};
use super::record::{Record, UNKNOWN_THREAD, each};
use crate::derived_classes::ENDED;

/// Prefixes of classes that are no events of a program: the kernel's in imports of perf and ftrace,
/// and those of the scheduling that is exported as states.
const NO_EVENTS: [&str; 5] = [
    "tracebraid:ult_",
    "tracebraid:lwp_",
    "tracebraid_levels:",
    "tracebraid:prof_",
    "lttng_ust_statedump:",
];

/// Summary of an export.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Number of records.
    pub records: u64,
    /// Number of user-level threads.
    pub threads: u64,
    /// Times of the first and the last record.
    pub range: (i64, i64),
    /// Damage of the super-trace.
    pub damage: Vec<Damage>,
}

/// Gives the lines of a super-trace to a sink.
///
/// # Errors
/// Those of the sink.
pub fn export(set: &TraceSet, sink: &mut dyn Sink) -> io::Result<Followed> {
    let first = set.traces.first();
    let host = first.and_then(|trace| trace.layout.class.env_str("hostname"));
    let states = first.map(state_numbers);
    let mut follow = Follow::new(sink, host.unwrap_or_default(), states.unwrap_or_default())?;
    let damage = each(set, |record| follow.record(record))?;
    follow.sink.finish(follow.followed.range.1)?;
    Ok(Followed {
        damage,
        ..follow.followed
    })
}

struct Lwp {
    line: LineId,
    /// The CPU that it is on or was last on.
    cpu: Option<u32>,
    /// Virtual thread id of the user-level thread that it runs.
    current: Option<i32>,
    state: Option<State>,
}

struct Thread {
    line: LineId,
    name: Arc<str>,
    /// The LWP that it is on or was last on.
    lwp: Option<i32>,
    /// Reason of its last wait.
    reason: Arc<str>,
    /// Time of the last wake-up that found it running.
    woken: Option<i64>,
    state: Option<State>,
}

struct Follow<'s> {
    sink: &'s mut dyn Sink,
    numbers: StateNumbers,
    lines: u32,
    cpus: BTreeMap<u32, (LineId, Option<State>)>,
    processes: BTreeMap<i32, LineId>,
    /// By thread id.
    lwps: HashMap<i32, Lwp>,
    /// By virtual thread id.
    threads: HashMap<i32, Thread>,
    pids: HashMap<i32, i32>,
    followed: Followed,
}

const MACHINE: LineId = LineId(0);

impl<'s> Follow<'s> {
    fn new(sink: &'s mut dyn Sink, host: &str, numbers: StateNumbers) -> io::Result<Follow<'s>> {
        let mut follow = Follow {
            sink,
            numbers,
            lines: 0,
            cpus: BTreeMap::new(),
            processes: BTreeMap::new(),
            lwps: HashMap::new(),
            threads: HashMap::new(),
            pids: HashMap::new(),
            followed: Followed::default(),
        };
        follow.line(Kind::Machine, None, 0, host.into())?;
        Ok(follow)
    }

    fn line(
        &mut self,
        kind: Kind,
        parent: Option<LineId>,
        number: i32,
        name: Arc<str>,
    ) -> io::Result<LineId> {
        let id = LineId(self.lines);
        self.lines += 1;
        self.sink.item(&Item::Line(&Line {
            id,
            kind,
            parent,
            number,
            name,
        }))?;
        Ok(id)
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let followed = &mut self.followed;
        if followed.records == 0 {
            followed.range.0 = record.time;
        }
        followed.records += 1;
        followed.range.1 = followed.range.1.max(record.time);
        let name = record.name.strip_prefix("sched:").unwrap_or(&record.name);
        match name {
            "tracebraid_levels:thread" => return self.thread_record(record),
            "sched_switch" if record.level() == 0 => return self.kernel_switch(record),
            "sched_switch" => return self.derived_switch(record),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => return self.wake_up(record),
            "sched_process_exit" if record.level() > 0 => return self.exit(record),
            _ => {}
        }
        self.learn(record)?;
        // Just before the switch from the thread: a runtime may record a block only after it.
        if let Some(reason) = name.strip_prefix(Syscall::USER_WAIT_ENTRY) {
            self.waits(record, reason);
            return Ok(());
        }
        match name {
            "tracebraid:prof_in" => return self.function(record, record.text("name")),
            "tracebraid:prof_out" => return self.function(record, None),
            _ if name.contains(':') && !NO_EVENTS.iter().any(|of| name.starts_with(of)) => {
                return self.event(record);
            }
            _ => {}
        }
        Ok(())
    }

    /// A user-level thread is introduced.
    fn thread_record(&mut self, record: &Record) -> io::Result<()> {
        let (Some(tid), Some(pid)) = (record.id("tid"), record.id("pid")) else {
            return Ok(());
        };
        let name: Arc<str> = record.text("name").unwrap_or_default().into();
        if self.threads.contains_key(&tid) {
            return Ok(());
        }
        let process = self.process(pid)?;
        let line = self.line(Kind::Thread, Some(process), tid, Arc::clone(&name))?;
        self.pids.insert(tid, pid);
        self.followed.threads += 1;
        self.threads.insert(
            tid,
            Thread {
                line,
                name,
                lwp: None,
                reason: Arc::default(),
                woken: None,
                state: None,
            },
        );
        Ok(())
    }

    fn process(&mut self, pid: i32) -> io::Result<LineId> {
        if let Some(line) = self.processes.get(&pid) {
            return Ok(*line);
        }
        let line = self.line(Kind::Process, Some(MACHINE), pid, Arc::default())?;
        self.processes.insert(pid, line);
        Ok(line)
    }

    fn cpu(&mut self, cpu: u32) -> io::Result<LineId> {
        if let Some((line, _)) = self.cpus.get(&cpu) {
            return Ok(*line);
        }
        let line = self.line(Kind::Cpu, Some(MACHINE), cpu as i32, Arc::default())?;
        self.cpus.insert(cpu, (line, None));
        Ok(line)
    }

    /// Makes a kernel thread an LWP that runs this user-level thread.
    fn lwp(&mut self, tid: i32, thread: i32) -> io::Result<()> {
        if tid <= 0 || self.lwps.contains_key(&tid) {
            return Ok(());
        }
        let Some(pid) = self.pids.get(&thread).copied() else {
            return Ok(());
        };
        let process = self.process(pid)?;
        let line = self.line(Kind::Lwp, Some(process), tid, Arc::default())?;
        self.pids.insert(tid, pid);
        self.lwps.insert(
            tid,
            Lwp {
                line,
                cpu: None,
                current: None,
                state: None,
            },
        );
        Ok(())
    }

    /// Learns from a record's context which user-level thread its LWP runs.
    fn learn(&mut self, record: &Record) -> io::Result<()> {
        if record.ult == 0 || record.ult == UNKNOWN_THREAD || record.lwp <= 0 {
            return Ok(());
        }
        if !self.threads.contains_key(&record.tid) {
            return Ok(());
        }
        self.lwp(record.lwp, record.tid)?;
        let is_known = self
            .lwps
            .get(&record.lwp)
            .is_none_or(|of| of.state.is_some());
        if is_known || record.cpu.is_none() {
            return Ok(());
        }
        self.runs(record.time, record.lwp, Some(record.tid))?;
        self.enter(record.time, record.lwp, record.cpu)
    }

    /// The LWP of a thread as records name it: itself, or that of a user-level thread.
    fn lwp_of(&self, tid: i32) -> Option<i32> {
        match self.threads.get(&tid) {
            Some(thread) => thread.lwp,
            None => self.lwps.contains_key(&tid).then_some(tid),
        }
    }

    fn name_of(&self, tid: i32, comm: Option<&str>) -> Arc<str> {
        match self.threads.get(&tid) {
            Some(thread) if !thread.name.is_empty() => Arc::clone(&thread.name),
            _ => match comm.filter(|comm| !comm.is_empty()) {
                Some(comm) => comm.into(),
                None => tid.to_string().into(),
            },
        }
    }

    /// A CPU takes up another kernel thread.
    fn kernel_switch(&mut self, record: &Record) -> io::Result<()> {
        let (Some(previous), Some(next)) = (record.id("prev_tid"), record.id("next_tid")) else {
            return self.other_switch(record);
        };
        self.switch(record, previous, next)
    }

    /// A switch with the kernel's own names of fields.
    fn other_switch(&mut self, record: &Record) -> io::Result<()> {
        match (record.id("prev_pid"), record.id("next_pid")) {
            (Some(previous), Some(next)) => self.switch(record, previous, next),
            _ => Ok(()),
        }
    }

    fn switch(&mut self, record: &Record, previous: i32, next: i32) -> io::Result<()> {
        let Some(cpu) = record.cpu else {
            return Ok(());
        };
        let name = self.name_of(next, record.text("next_comm"));
        let line = self.cpu(cpu)?;
        let occupied = match next {
            0 => State::Idle,
            _ => State::Running(Arc::clone(&name)),
        };
        self.cpu_state(record.time, (cpu, line), occupied)?;
        self.learn_before(record, previous)?;
        let known = Some(record.lwp).filter(|lwp| self.lwps.contains_key(lwp));
        if let Some(lwp) = known.or_else(|| self.lwp_of(previous)) {
            let state = record.int("prev_state").unwrap_or(0);
            let state = match TaskState::new(state, self.numbers) {
                state if state.is_runnable() => State::Preempted(name),
                state if state.is_end() => State::Ended,
                _ => State::InKernel,
            };
            let of = self.lwps.get(&lwp);
            if of.is_some_and(|of| of.cpu.is_none_or(|on| on == cpu)) {
                self.leave(record.time, lwp, state)?;
            }
        }
        match self.lwp_of(next) {
            Some(lwp) => self.enter(record.time, lwp, Some(cpu)),
            // Its LWP is known at its first record.
            None => self.thread_state(record.time, next, State::Running(Arc::default())),
        }
    }

    /// Learns the LWP of a user-level thread whose first record is the switch from it.
    fn learn_before(&mut self, record: &Record, previous: i32) -> io::Result<()> {
        if !self.threads.contains_key(&previous) {
            return Ok(());
        }
        self.lwp(record.lwp, previous)?;
        let is_unknown = |of: &Lwp| of.state.is_none() && of.current.is_none();
        match self.lwps.get(&record.lwp).is_some_and(is_unknown) {
            true => self.runs(record.time, record.lwp, Some(previous)),
            false => Ok(()),
        }
    }

    /// An LWP switches between user-level threads.
    fn derived_switch(&mut self, record: &Record) -> io::Result<()> {
        let (Some(previous), Some(next)) = (record.id("prev_tid"), record.id("next_tid")) else {
            return Ok(());
        };
        let lwp = record.lwp;
        let either = [previous, next]
            .into_iter()
            .find(|of| self.threads.contains_key(of));
        let Some(either) = either else {
            return Ok(());
        };
        self.lwp(lwp, either)?;
        if self.lwps.get(&lwp).is_some_and(|of| of.state.is_none()) {
            // Its CPU must be known before links lead to it.
            self.enter(record.time, lwp, record.cpu)?;
        }
        if let Some(thread) = self.threads.get(&previous) {
            let state = match record.int("prev_state") {
                Some(TaskState::READY) => State::WaitsForLwp,
                Some(ENDED) => State::Ended,
                _ if thread.woken == Some(record.time) => State::WaitsForLwp,
                _ => State::Blocked(Arc::clone(&thread.reason)),
            };
            let on = thread.lwp;
            if on.is_none() {
                self.put_on(record.time, previous, lwp)?;
            }
            if on.is_none_or(|on| on == lwp) {
                self.thread_state(record.time, previous, state)?;
            }
        }
        let next = Some(next).filter(|next| self.threads.contains_key(next));
        self.runs(record.time, lwp, next)?;
        // A step of its runtime shows that the LWP runs.
        self.enter(record.time, lwp, record.cpu)
    }

    /// Notes which user-level thread an LWP runs.
    fn runs(&mut self, time: i64, lwp: i32, thread: Option<i32>) -> io::Result<()> {
        if let Some(of) = self.lwps.get_mut(&lwp) {
            of.current = thread;
        }
        match thread {
            Some(thread) => self.put_on(time, thread, lwp),
            None => Ok(()),
        }
    }

    /// Puts a user-level thread on an LWP, with a link if it comes from another.
    fn put_on(&mut self, time: i64, thread: i32, lwp: i32) -> io::Result<()> {
        let Some(of) = self.threads.get_mut(&thread) else {
            return Ok(());
        };
        let before = of.lwp.replace(lwp).filter(|before| *before != lwp);
        let moves = of.line;
        let line = |tid: i32| self.lwps.get(&tid).map(|of| of.line);
        match (before.and_then(line), line(lwp)) {
            (Some(from), Some(to)) => self.sink.item(&Item::Link {
                time,
                kind: LinkKind::ThreadMigration,
                moves: Some(moves),
                from,
                to,
            }),
            _ => Ok(()),
        }
    }

    /// An LWP runs on a CPU, with its user-level thread or its scheduler.
    fn enter(&mut self, time: i64, lwp: i32, cpu: Option<u32>) -> io::Result<()> {
        let on = match cpu {
            Some(cpu) => Some(self.cpu(cpu)?),
            None => None,
        };
        let Some(of) = self.lwps.get_mut(&lwp) else {
            return Ok(());
        };
        let before = of.cpu.filter(|before| Some(*before) != cpu);
        of.cpu = cpu.or(of.cpu);
        let (line, current) = (of.line, of.current);
        let from = before
            .and_then(|before| self.cpus.get(&before))
            .map(|of| of.0);
        if let (Some(from), Some(to)) = (from, on) {
            self.sink.item(&Item::Link {
                time,
                kind: LinkKind::LwpMigration,
                moves: Some(line),
                from,
                to,
            })?;
        }
        let name = current.map(|thread| self.name_of(thread, None));
        let state = match &name {
            Some(name) => State::Running(Arc::clone(name)),
            None => State::Scheduler,
        };
        if let (Some(cpu), Some(on), Some(name)) = (cpu, on, name) {
            self.cpu_state(time, (cpu, on), State::Running(name))?;
        }
        self.lwp_state(time, lwp, state)?;
        match current {
            Some(thread) => self.thread_state(time, thread, State::Running(Arc::default())),
            None => Ok(()),
        }
    }

    /// An LWP leaves its CPU, or its state changes without one.
    fn leave(&mut self, time: i64, lwp: i32, state: State) -> io::Result<()> {
        let Some(of) = self.lwps.get_mut(&lwp) else {
            return Ok(());
        };
        let current = of.current;
        self.lwp_state(time, lwp, state.clone())?;
        match current {
            Some(thread) => self.thread_state(time, thread, state),
            None => Ok(()),
        }
    }

    /// A thread is woken: an LWP by the kernel, a user-level thread by its runtime.
    fn wake_up(&mut self, record: &Record) -> io::Result<()> {
        let Some(woken) = record.id("tid").or_else(|| record.id("pid")) else {
            return Ok(());
        };
        let to = match record.level() {
            0 => {
                let lwp = self.lwp_of(woken);
                let state = lwp.and_then(|lwp| self.lwps.get(&lwp)?.state.clone());
                let Some(lwp) = lwp.filter(|_| matches!(state, None | Some(State::InKernel)))
                else {
                    return Ok(());
                };
                self.leave(record.time, lwp, State::WaitsForCpu)?;
                let current = self.lwps.get(&lwp).and_then(|of| of.current);
                current.or(Some(lwp)).and_then(|tid| self.line_of(tid))
            }
            _ => {
                let Some(thread) = self.threads.get_mut(&woken) else {
                    return Ok(());
                };
                let waits = matches!(thread.state, None | Some(State::Blocked(_) | State::Ended));
                if !waits {
                    thread.woken = Some(record.time);
                    return Ok(());
                }
                self.thread_state(record.time, woken, State::WaitsForLwp)?;
                self.line_of(woken)
            }
        };
        // In interrupts the thread is the interrupted one, which is not the waker.
        let is_waker = record.ult != 0 || self.lwps.contains_key(&record.tid);
        let from = self.line_of(record.tid).filter(|_| is_waker);
        match (from, to) {
            (Some(from), Some(to)) if from != to => self.sink.item(&Item::Link {
                time: record.time,
                kind: LinkKind::WakeUp,
                moves: None,
                from,
                to,
            }),
            _ => Ok(()),
        }
    }

    fn exit(&mut self, record: &Record) -> io::Result<()> {
        match record.id("tid") {
            Some(tid) if self.threads.contains_key(&tid) => {
                let is_on = self.threads.get(&tid).and_then(|of| of.lwp);
                let is_on = is_on.and_then(|lwp| self.lwps.get(&lwp)?.current) == Some(tid);
                // One that runs still ends at its last switch.
                match is_on {
                    true => Ok(()),
                    false => self.thread_state(record.time, tid, State::Ended),
                }
            }
            _ => Ok(()),
        }
    }

    fn waits(&mut self, record: &Record, reason: &str) {
        if let Some(thread) = self.threads.get_mut(&record.tid) {
            thread.reason = reason.into();
        }
    }

    fn line_of(&self, tid: i32) -> Option<LineId> {
        let thread = self.threads.get(&tid).map(|of| of.line);
        thread.or_else(|| self.lwps.get(&tid).map(|of| of.line))
    }

    fn function(&mut self, record: &Record, name: Option<&str>) -> io::Result<()> {
        match self.line_of(record.tid) {
            Some(line) => self.sink.item(&Item::Function {
                time: record.time,
                line,
                name,
            }),
            None => Ok(()),
        }
    }

    fn event(&mut self, record: &Record) -> io::Result<()> {
        match self.line_of(record.tid) {
            Some(line) => self.sink.item(&Item::Event {
                time: record.time,
                line,
                name: &record.name,
            }),
            None => Ok(()),
        }
    }

    fn cpu_state(&mut self, time: i64, (cpu, line): (u32, LineId), state: State) -> io::Result<()> {
        let Some((_, known)) = self.cpus.get_mut(&cpu) else {
            return Ok(());
        };
        if known.as_ref() == Some(&state) {
            return Ok(());
        }
        let state = known.insert(state);
        self.sink.item(&Item::State {
            time,
            line,
            state,
            on: None,
        })
    }

    fn lwp_state(&mut self, time: i64, lwp: i32, state: State) -> io::Result<()> {
        let Some(of) = self.lwps.get_mut(&lwp) else {
            return Ok(());
        };
        let on = of.cpu.and_then(|cpu| self.cpus.get(&cpu)).map(|of| of.0);
        if of.state.as_ref() == Some(&state) {
            return Ok(());
        }
        let line = of.line;
        let state = of.state.insert(state);
        self.sink.item(&Item::State {
            time,
            line,
            state,
            on,
        })
    }

    fn thread_state(&mut self, time: i64, thread: i32, state: State) -> io::Result<()> {
        let Some(of) = self.threads.get_mut(&thread) else {
            return Ok(());
        };
        let on = of.lwp.and_then(|lwp| self.lwps.get(&lwp)).map(|of| of.line);
        if of.state.as_ref() == Some(&state) {
            return Ok(());
        }
        let line = of.line;
        let state = of.state.insert(state);
        self.sink.item(&Item::State {
            time,
            line,
            state,
            on,
        })
    }
}
