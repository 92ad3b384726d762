//! Reasons for waiting in calls, by one plain pass over all events by name, in a trace without
//! losses.

use std::collections::{BTreeMap, HashMap, HashSet};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_kernel_model::{Abi, Syscall};

use crate::events::{ModelEvent, Record, by_cpu, merged};

/// By thread, call and reason: number of calls, and nanoseconds.
pub type Sums = BTreeMap<(i32, String, &'static str), (u64, u64)>;

#[derive(Clone, Default)]
struct Thread {
    call: Option<(String, i64)>,
    parts: BTreeMap<&'static str, u64>,
    /// `running`, `preempted`, `ready`, `blocked`, or unknown.
    state: &'static str,
    since: i64,
    /// Woken while it ran: the reason, and whether a `sched_wakeup` reported it.
    early: Option<(&'static str, bool)>,
    in_disk_sleep: bool,
    requested: bool,
    has_called: bool,
    has_closed: bool,
    dying: bool,
    waited_for: &'static str,
    pid: Option<i32>,
    /// The arguments of its current call.
    entry: Record,
}

#[derive(Clone, Default)]
struct Cpu {
    running: Option<i32>,
    /// Name of the running handler.
    irq: Option<String>,
    softirq: Option<i64>,
    timer: bool,
    disk: bool,
}

#[derive(Default)]
struct Model {
    threads: HashMap<i32, Thread>,
    cpus: HashMap<u32, Cpu>,
    sums: Sums,
    /// By process (or thread, if the process is unknown) and descriptor: sockets known to be
    /// AF_UNIX.
    local: HashSet<(i64, i64)>,
}

pub fn waits(set: &TraceSet) -> Sums {
    let mut model = Model::default();
    for entry in merged(by_cpu(set, |_| true)) {
        if let ModelEvent::Event(event) = &entry.what {
            model.event(entry.cpu, entry.time, event);
        }
    }
    model.sums
}

/// The call of an event, by the name that programs use.
fn call(event: &Record, prefix: &str) -> Option<String> {
    let name = event.name.strip_prefix(prefix)?;
    let call = match name {
        "unknown" => Syscall::by_number(Abi::X86_64, event.int("id")?),
        name => Syscall::by_name(name),
    };
    Some(call.map_or_else(|| name.to_owned(), |call| call.user_name().to_owned()))
}

/// Id of the owner of the descriptors.
fn owner(tid: i32, thread: &Thread) -> i64 {
    thread.pid.map_or(-1 - i64::from(tid), i64::from)
}

/// Applies a call's exit to the set of AF_UNIX sockets.
fn follow_sockets(
    local: &mut HashSet<(i64, i64)>,
    who: i64,
    call: &str,
    entry: &Record,
    exit: &Record,
) {
    const UNIX: Option<i64> = Some(1);
    let result = exit.int("ret").expect("a result");
    let fd = entry.int("fd").unwrap_or(-1);
    let mut set = |fd: i64, is_local: bool| match is_local {
        true => local.insert((who, fd)),
        false => local.remove(&(who, fd)),
    };
    match call {
        "socket" if result >= 0 => {
            set(result, entry.int("family") == UNIX);
        }
        "connect" if (result >= 0 || result == -115) && entry.int("family") == UNIX => {
            set(fd, true);
        }
        "accept" | "accept4" if result >= 0 => {
            let is_local = exit.int("family") == UNIX || local.contains(&(who, fd));
            let place = (who, result);
            if is_local {
                local.insert(place);
            } else {
                local.remove(&place);
            }
        }
        "close" => {
            set(fd, false);
        }
        _ => {}
    }
}

impl Thread {
    fn spend(&mut self, time: i64, why: &'static str) {
        *self.parts.entry(why).or_default() += time.abs_diff(self.since);
        self.since = time;
    }

    fn waited(&mut self, why: &'static str) {
        self.waited_for = why;
        self.requested = false;
    }

    fn kind(&self) -> Option<&str> {
        if self.dying {
            return Some("exit");
        }
        self.call.as_ref().map(|(call, _)| call.as_str())
    }
}

impl Model {
    fn event(&mut self, cpu: u32, time: i64, event: &Record) {
        let here = self.cpus.entry(cpu).or_default();
        let name = event.name.as_str();
        if name == "sched_switch" || name.starts_with("syscall_") {
            (here.irq, here.softirq, here.timer, here.disk) = (None, None, false, false);
        }
        match name {
            "irq_handler_entry" => {
                let name = event.text("name").unwrap_or_default();
                (here.irq, here.disk) = (Some(name.to_owned()), false);
            }
            "irq_handler_exit" => (here.irq, here.timer, here.disk) = (None, false, false),
            "irq_softirq_entry" => {
                (here.irq, here.timer, here.disk) = (None, false, false);
                here.softirq = event.int("vec");
            }
            "irq_softirq_exit" => {
                (here.irq, here.softirq, here.timer, here.disk) = (None, None, false, false)
            }
            "timer_hrtimer_expire_entry" | "timer_expire_entry" => here.timer = true,
            "timer_hrtimer_expire_exit" | "timer_expire_exit" => here.timer = false,
            "block_rq_complete" => here.disk = true,
            "block_rq_insert" | "block_rq_issue" | "block_bio_queue" => {
                let is_interrupted = here.irq.is_some() || here.softirq.is_some();
                if let Some(tid) = here.running.filter(|&tid| tid != 0 && !is_interrupted) {
                    self.threads.entry(tid).or_default().requested = true;
                }
            }
            "sched_switch" => self.switch(cpu, time, event),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => self.wake(cpu, time, event),
            "sched_process_fork" => {
                let child = event.id("child_tid").expect("a child");
                let pid = event.id("child_pid");
                let made = Thread {
                    pid,
                    ..Thread::default()
                };
                self.threads.insert(child, made);
                if let (Some(parent), Some(pid)) = (event.id("parent_tid"), event.id("parent_pid"))
                {
                    self.threads.entry(parent).or_default().pid = Some(pid);
                }
            }
            "lttng_statedump_process_state" => {
                let thread = event.id("tid").expect("a thread");
                self.threads.entry(thread).or_default().pid = event.id("pid");
            }
            "sched_process_exit" => {
                let thread = self
                    .threads
                    .entry(event.id("tid").expect("a thread"))
                    .or_default();
                (thread.dying, thread.call) = (true, None);
            }
            _ => self.call(cpu, time, event),
        }
    }

    fn call(&mut self, cpu: u32, time: i64, event: &Record) {
        let Some(tid) = self.cpus.get(&cpu).and_then(|cpu| cpu.running) else {
            return;
        };
        let thread = self.threads.entry(tid).or_default();
        if let Some(call) = call(event, "syscall_entry_") {
            thread.entry = event.clone();
            thread.call = Some((call, time));
            thread.parts.clear();
            (thread.state, thread.since) = ("running", time);
            (thread.early, thread.requested, thread.dying) = (None, false, false);
            thread.has_called = true;
        } else if let Some(ended) = call(event, "syscall_exit_") {
            thread.spend(
                time,
                if thread.state == "running" {
                    "running"
                } else {
                    "unknown"
                },
            );
            (thread.state, thread.early, thread.has_called) = ("running", None, true);
            let open = thread.call.take();
            thread.has_closed = open.as_ref().is_some_and(|(call, _)| call == "close");
            if let Some((call, _)) = open.filter(|(call, _)| *call == ended || ended == "unknown") {
                let who = owner(tid, thread);
                follow_sockets(&mut self.local, who, &call, &thread.entry, event);
                for (&why, &part) in &thread.parts {
                    if part > 0 {
                        let sum = self.sums.entry((tid, call.clone(), why)).or_default();
                        *sum = (sum.0 + 1, sum.1 + part);
                    }
                }
            }
        }
    }

    fn switch(&mut self, cpu: u32, time: i64, event: &Record) {
        let [prev, next] = ["prev_tid", "next_tid"].map(|name| event.id(name).expect("a thread"));
        if prev != 0 {
            let thread = self.threads.entry(prev).or_default();
            thread.spend(
                time,
                if thread.state == "running" {
                    "running"
                } else {
                    "unknown"
                },
            );
            let state = event.int("prev_state").expect("a state");
            let runnable = state == 0 || state & 0x100 != 0 || state & 0x800 != 0;
            thread.state = if runnable { "preempted" } else { "blocked" };
            thread.in_disk_sleep = !runnable && state & 2 != 0;
            if runnable {
                thread.early = None;
            }
        }
        if next != 0 {
            let thread = self.threads.entry(next).or_default();
            let early = thread.early.take();
            let why = match (thread.state, early) {
                ("ready", _) => "runnable",
                ("preempted", _) => "preempted",
                ("blocked", Some((why, _))) => {
                    thread.waited(why);
                    "runnable"
                }
                ("blocked", None) => {
                    thread.waited("unknown");
                    "unknown"
                }
                _ => "unknown",
            };
            thread.spend(time, why);
            thread.state = "running";
        }
        self.cpus.entry(cpu).or_default().running = Some(next);
    }

    fn wake(&mut self, cpu: u32, time: i64, event: &Record) {
        let tid = event.id("tid").expect("a thread");
        let here = self.cpus.entry(cpu).or_default().clone();
        let waiter = self.threads.entry(tid).or_default().clone();
        let mut why = self.why(&here, waiter.kind());
        if ["kernel", "unknown"].contains(&why) && waiter.in_disk_sleep && waiter.requested {
            why = "block-device";
        }
        let is_wakeup = event.name != "sched_waking";
        let told = is_wakeup && matches!(waiter.early, Some((_, false)));
        let thread = self.threads.entry(tid).or_default();
        match waiter.state {
            "blocked" if told => {
                thread.waited(waiter.early.map_or("unknown", |early| early.0));
                (thread.early, thread.state) = (None, "ready");
            }
            "blocked" => {
                thread.spend(time, why);
                thread.waited(why);
                (thread.early, thread.state) = (None, "ready");
            }
            "running" if !told => thread.early = Some((why, is_wakeup)),
            _ => {}
        }
    }

    fn why(&self, here: &Cpu, waiter: Option<&str>) -> &'static str {
        if here.timer {
            return "timer";
        }
        if here.disk {
            return "block-device";
        }
        if let Some(handler) = &here.irq {
            // Names of the devices in the recorded traces.
            let has = |part| handler.contains(part);
            return match () {
                () if has("-input.") || has("-output.") || has("eth") => "network",
                () if has("-req.") || has("-request") || has("ahci") => "block-device",
                () if has("i8042") => "user-input",
                () => "device",
            };
        }
        match here.softirq {
            Some(2 | 3) => return "network",
            Some(4 | 5) => return "block-device",
            Some(1 | 8) => return "timer",
            Some(7 | 9) => return "kernel",
            Some(_) => return "device",
            None => {}
        }
        let Some(waker) = here.running.filter(|&tid| tid != 0) else {
            return "unknown";
        };
        let tid = waker;
        let waker = self.threads.get(&tid).cloned().unwrap_or_default();
        let descriptor = waker.entry.int("fd").unwrap_or(-1);
        let is_local = self.local.contains(&(owner(tid, &waker), descriptor));
        let futex = |call: &str| call.starts_with("futex");
        match waker.kind() {
            Some("kill" | "tkill" | "tgkill") => "signal",
            Some(_) if waiter.is_some_and(futex) => "futex",
            Some("exit" | "exit_group")
                if matches!(waiter, Some("wait4" | "waitid" | "rt_sigtimedwait")) =>
            {
                "child"
            }
            Some(
                "sendto" | "sendmsg" | "sendmmsg" | "connect" | "accept" | "accept4" | "recvfrom"
                | "recvmsg" | "recvmmsg",
            ) if is_local => "thread",
            Some(
                "sendto" | "sendmsg" | "sendmmsg" | "connect" | "accept" | "accept4" | "recvfrom"
                | "recvmsg" | "recvmmsg",
            ) => "network",
            Some(_) => "thread",
            None if waker.has_called && waker.has_closed => "thread",
            None if waker.has_called => "unknown",
            None if waker.requested || waker.waited_for == "block-device" => "block-device",
            None => "kernel",
        }
    }
}
