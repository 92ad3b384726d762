//! A simulated machine: in each step, a thread makes a system call or the scheduler acts.

use std::path::PathBuf;

use tracebraid_ctf::trace::TraceSet;

use crate::naming::Value::{Int, List, Text};
use crate::naming::{Field, Maker, TEXT};
use crate::synthetic::random::Random;
use crate::synthetic::shape::Shape;
use crate::synthetic::tracer::{CpuPlace, Tracer};

#[derive(Clone, Debug)]
struct Task {
    tid: i32,
    pid: i32,
    name: String,
    /// The call in progress: its name and its result.
    call: Option<(&'static str, i64)>,
    /// The flags of its last `clone`.
    flags: i64,
    on: Option<u64>,
}

impl Task {
    fn new(tid: i32, pid: i32, name: String) -> Self {
        Task {
            tid,
            pid,
            name,
            call: None,
            flags: 0,
            on: None,
        }
    }

    fn maker(&self) -> Maker {
        Maker {
            tid: self.tid,
            pid: self.pid,
        }
    }

    /// In LTTng's numbering. Threads get other priorities together with their names.
    fn priority(&self) -> i64 {
        [20, 20, 0, -51][(self.tid as usize + self.name.len()) % 4]
    }
}

const CALLS: [&str; 17] = [
    "read",
    "write",
    "sendfile64",
    "openat",
    "close",
    "dup2",
    "socket",
    "pipe2",
    "fcntl",
    "accept",
    "recvmsg",
    "futex",
    "read",
    "clone",
    "clone3",
    "unshare",
    "close_range",
];

/// Writes a trace and opens it.
pub fn trace(seed: u64, shape: Shape) -> (PathBuf, TraceSet) {
    trace_with_cpus(seed, shape, CpuPlace::Packets)
}

/// Like [`trace`], with the CPU in the given field.
pub fn trace_with_cpus(seed: u64, shape: Shape, place: CpuPlace) -> (PathBuf, TraceSet) {
    let mut machine = ThreadScript::new(seed, shape);
    machine.tracer.place = place;
    for step in 0..shape.steps {
        machine.step(step);
    }
    machine.tracer.open()
}

/// CPUs, and the threads that they run.
struct ThreadScript {
    random: Random,
    /// Separate generator for the decisions of the scheduler.
    scheduler: Random,
    tracer: Tracer,
    tasks: Vec<Task>,
    running: Vec<Option<usize>>,
    time: u64,
    next_tid: i32,
}

impl ThreadScript {
    fn new(seed: u64, shape: Shape) -> Self {
        let task = |at: u64| {
            let tid = 100 + at as i32;
            // Some threads share a process.
            let pid = if at % 3 == 2 && !shape.told_threads {
                tid - 1
            } else {
                tid
            };
            Task::new(tid, pid, format!("task{at}"))
        };
        ThreadScript {
            random: Random::new(seed),
            scheduler: Random::new(seed + 2_000_003),
            tracer: Tracer::new(shape, seed),
            tasks: (0..shape.threads).map(task).collect(),
            running: vec![None; shape.cpus as usize],
            time: 1000,
            next_tid: 1000,
        }
    }

    fn step(&mut self, step: u64) {
        let shape = self.tracer.shape;
        // Equal times on different CPUs occur.
        self.time += if self.random.chance(150) && shape.ties {
            0
        } else {
            1 + self.random.below(50)
        };
        self.schedule();
        let cpu = self.random.below(shape.cpus);
        if self.random.chance(25) || step < shape.cpus {
            self.switch(cpu);
            return;
        }
        let Some(task) = self.running[cpu as usize] else {
            return;
        };
        match self.random.below(200) {
            0 if !shape.told_threads => self.fork(task, cpu, None),
            1 if self.tasks[task].call.is_none() => self.exec(task, cpu),
            2 => self.state_dump(cpu),
            3 => self.tasks[task].name = format!("renamed{step}"),
            _ => match self.tasks[task].call.take() {
                Some((name, result)) => {
                    if name.starts_with("clone") && result > 0 {
                        let flags = self.tasks[task].flags;
                        self.fork(task, cpu, Some(flags));
                    }
                    self.exit(task, cpu, name, result);
                }
                None => self.entry(task, cpu),
            },
        }
    }

    fn write(&mut self, cpu: u64, maker: Maker, name: &str, fields: Vec<Field<'_>>) {
        self.tracer.write(cpu, self.time, maker, name, fields);
    }

    fn switch(&mut self, cpu: u64) {
        let now = self.running[cpu as usize];
        let free: Vec<usize> = (0..self.tasks.len())
            .filter(|&task| self.tasks[task].on.is_none())
            .collect();
        let next = if self.random.chance(200) || free.is_empty() {
            None
        } else {
            Some(free[self.random.below(free.len() as u64) as usize])
        };
        if now == next {
            return;
        }
        let idle = Task::new(0, 0, "swapper".to_owned());
        let task = |task: Option<usize>| task.map_or(idle.clone(), |task| self.tasks[task].clone());
        let (prev, after) = (task(now), task(next));
        // Runnable, sleeping, in a disk sleep, preempted, a zombie.
        let state = [0, 0, 1, 1, 1, 2, 0x100, 0x20][self.scheduler.below(8) as usize];
        // The idle thread is always runnable.
        let state = now.map_or(0, |_| state);
        let fields = vec![
            ("prev_comm", TEXT, Text(&prev.name)),
            ("prev_tid", 32, Int(prev.tid.into())),
            ("prev_prio", 32, Int(prev.priority())),
            ("prev_state", 64, Int(state)),
            ("next_comm", TEXT, Text(&after.name)),
            ("next_tid", 32, Int(after.tid.into())),
            ("next_prio", 32, Int(after.priority())),
        ];
        self.write(cpu, prev.maker(), "sched_switch", fields);
        now.into_iter().for_each(|task| self.tasks[task].on = None);
        next.into_iter()
            .for_each(|task| self.tasks[task].on = Some(cpu));
        self.running[cpu as usize] = next;
    }

    /// The thread that runs on a CPU.
    fn maker(&self, cpu: u64) -> Maker {
        let running = self.running[cpu as usize];
        running.map_or(Maker { tid: 0, pid: 0 }, |task| self.tasks[task].maker())
    }

    /// Events of the scheduler and of interrupts other than switches: threads are woken on one CPU
    /// to run on another, sometimes although they run already; they migrate; they exit.
    fn schedule(&mut self) {
        let shape = self.tracer.shape;
        let cpu = self.scheduler.below(shape.cpus);
        let target = self.scheduler.below(shape.cpus) as i64;
        let at = self.scheduler.below(self.tasks.len() as u64) as usize;
        let task = self.tasks[at].clone();
        let priority = ("prio", 32, Int(task.priority()));
        let thread = [
            ("comm", TEXT, Text(&task.name)),
            ("tid", 32, Int(task.tid.into())),
        ];
        let maker = self.maker(cpu);
        let woken = [priority.clone(), ("target_cpu", 32, Int(target))];
        let woken = || thread.iter().chain(&woken).cloned().collect::<Vec<_>>();
        match self.scheduler.below(240) {
            0..8 => self.write(cpu, maker, "sched_waking", woken()),
            8..14 => self.write(cpu, maker, "sched_wakeup", woken()),
            14..18 => {
                self.write(cpu, maker, "sched_waking", woken());
                self.write(cpu, maker, "sched_wakeup", woken());
            }
            18 => self.write(cpu, maker, "sched_wakeup_new", woken()),
            19 | 20 => {
                let origin = self.scheduler.below(shape.cpus) as i64;
                let way = [("orig_cpu", 32, Int(origin)), ("dest_cpu", 32, Int(target))];
                let rest = [priority, way[0].clone(), way[1].clone()];
                let fields = thread.iter().chain(&rest).cloned().collect();
                self.write(cpu, maker, "sched_migrate_task", fields);
            }
            21 if task.on.is_none() => {
                let rest = [priority];
                let fields = thread.iter().chain(&rest).cloned().collect();
                self.write(cpu, maker, "sched_process_free", fields);
            }
            number @ 22..30 => self.interrupt(cpu, maker, number),
            _ => {}
        }
    }

    fn interrupt(&mut self, cpu: u64, maker: Maker, number: u64) {
        let vector = || vec![("vec", 32, Int(number as i64 % 10))];
        match number {
            22 | 23 => {
                let fields = vec![("irq", 32, Int(number as i64)), ("name", TEXT, Text("eth"))];
                self.write(cpu, maker, "irq_handler_entry", fields);
            }
            24 | 25 => {
                let fields = vec![("irq", 32, Int(22)), ("ret", 32, Int(1))];
                self.write(cpu, maker, "irq_handler_exit", fields);
            }
            26 | 27 => self.write(cpu, maker, "irq_softirq_entry", vector()),
            _ => self.write(cpu, maker, "irq_softirq_exit", vector()),
        }
    }

    fn exit(&mut self, task: usize, cpu: u64, name: &str, result: i64) {
        let mut fields = vec![("ret", 64, Int(result))];
        if self.tracer.shape.told_memory {
            match name {
                "pipe2" => fields.push(("fildes", 32, List(vec![result, result + 1]))),
                "accept" => fields.push(("family", 16, Int(result % 3))),
                _ => {}
            }
        }
        let maker = self.tasks[task].maker();
        self.write(cpu, maker, &format!("exit {name}"), fields);
    }

    fn entry(&mut self, task: usize, cpu: u64) {
        let mut name = CALLS[self.random.below(CALLS.len() as u64) as usize];
        if self.tracer.shape.told_threads && name.starts_with("clone") {
            name = if self.tracer.shape.clone3 {
                "clone3"
            } else {
                "clone"
            };
        }
        if self.tracer.shape.clone3 && ["unshare", "close_range"].contains(&name) {
            name = "futex";
        }
        let failed = self.random.chance(100);
        let (fields, result) = arguments(&mut self.random, name);
        let maker = self.tasks[task].maker();
        if let ("clone", Some((_, _, Int(flags)))) = (name, fields.first()) {
            self.tasks[task].flags = *flags;
        }
        if name == "clone3" {
            let flags = [0, CLONE_FILES | CLONE_THREAD];
            self.tasks[task].flags = flags[self.random.below(2) as usize];
        }
        self.write(cpu, maker, &format!("entry {name}"), fields);
        self.tasks[task].call = Some((name, if failed { -11 } else { result }));
    }

    /// Creates a thread; `flags` are those of a call to `clone`.
    fn fork(&mut self, parent: usize, cpu: u64, flags: Option<i64>) {
        // Ids are reused, by a new process.
        let may_reuse = !self.tracer.shape.told_threads;
        let reuse = (self.random.chance(300) && may_reuse).then(|| {
            self.tasks
                .iter()
                .position(|task| task.on.is_none() && task.call.is_none())
        });
        let (tid, at) = match reuse.flatten() {
            Some(at) => (self.tasks[at].tid, at),
            None => {
                self.next_tid += 1;
                (self.next_tid, self.tasks.len())
            }
        };
        let parent = self.tasks[parent].clone();
        let is_thread = match flags {
            Some(flags) => flags & CLONE_THREAD != 0,
            None => self.random.chance(500) && tid != parent.pid,
        };
        let pid = if is_thread { parent.pid } else { tid };
        let mut child = Task::new(tid, pid, format!("child{tid}"));
        // The new thread returns from the call, too.
        child.call = flags.map(|_| ("clone", 0));
        let fields = vec![
            ("parent_comm", TEXT, Text(&parent.name)),
            ("parent_tid", 32, Int(parent.tid.into())),
            ("parent_pid", 32, Int(parent.pid.into())),
            ("child_comm", TEXT, Text(&child.name)),
            ("child_tid", 32, Int(tid.into())),
            ("child_pid", 32, Int(pid.into())),
        ];
        self.write(cpu, parent.maker(), "sched_process_fork", fields);
        match self.tasks.get_mut(at) {
            Some(task) => *task = child,
            None => self.tasks.push(child),
        }
    }

    fn exec(&mut self, task: usize, cpu: u64) {
        // `execve` in a thread that does not lead its process changes the thread's id to the
        // leader's. The simulation assigns an unused id instead, so that ids stay distinct.
        let old = self.tasks[task].tid;
        if self.random.chance(300) && !self.tracer.shape.told_threads {
            self.tasks[task].tid += 100_000;
        }
        let Maker { tid, pid } = self.tasks[task].maker();
        let name = format!("exec{tid}");
        let fields = vec![
            ("filename", TEXT, Text(&name)),
            ("tid", 32, Int(tid.into())),
            ("old_tid", 32, Int(old.into())),
        ];
        self.write(cpu, Maker { tid, pid }, "sched_process_exec", fields);
        if tid != old && pid != old {
            let fields = vec![
                ("comm", TEXT, Text("x")),
                ("tid", 32, Int(old.into())),
                ("prio", 32, Int(20)),
            ];
            self.write(cpu, Maker { tid, pid }, "sched_process_exit", fields);
        }
        self.tasks[task].name = name;
    }

    fn state_dump(&mut self, cpu: u64) {
        let task = self.tasks[self.random.below(self.tasks.len() as u64) as usize].clone();
        // Some processes share a descriptor table.
        let address = i64::from(task.pid & !1) << 8;
        let fields = vec![
            ("tid", 32, Int(task.tid.into())),
            ("pid", 32, Int(task.pid.into())),
            ("name", TEXT, Text(&task.name)),
            ("file_table_address", 64, Int(address)),
        ];
        self.write(cpu, task.maker(), "lttng_statedump_process_state", fields);
        let path = ["/tmp/file", "socket:[12]", "pipe:[7]", "anon_inode:[e]"]
            [self.random.below(4) as usize];
        let fields = vec![
            ("file_table_address", 64, Int(address)),
            ("fd", 32, Int(self.random.below(8) as i64)),
            ("flags", 32, Int(0)),
            ("filename", TEXT, Text(path)),
        ];
        self.write(cpu, task.maker(), "lttng_statedump_file_descriptor", fields);
    }
}

const CLONE_FILES: i64 = 0x400;
const CLONE_THREAD: i64 = 0x1_0000;

/// Arguments of a call, and its result if it succeeds.
fn arguments(random: &mut Random, name: &str) -> (Vec<Field<'static>>, i64) {
    let fd = |random: &mut Random| Int(random.below(8) as i64);
    let one_of = |random: &mut Random, list: [i64; 4]| list[random.below(4) as usize];
    let made = 3 + random.below(5) as i64;
    match name {
        "read" | "write" | "recvmsg" => (
            vec![("fd", 32, fd(random)), ("count", 64, Int(4096))],
            made * 100,
        ),
        "sendfile64" => (
            vec![("out_fd", 32, fd(random)), ("in_fd", 32, fd(random))],
            made * 1000,
        ),
        "openat" => {
            let flags = one_of(random, [0x80000, 0x80000, 0, 0]);
            // Relative to an unknown directory, or to a descriptor that may be known.
            let dfd = if flags == 0 { made ^ 1 } else { -100 };
            let path = ["/a/b", "c", "d/e", "/f/", "g"][made as usize - 3];
            let fields = vec![
                ("dfd", 32, Int(dfd)),
                ("filename", TEXT, Text(path)),
                ("flags", 32, Int(flags)),
            ];
            (fields, made)
        }
        "close" => (vec![("fd", 32, fd(random))], 0),
        "close_range" => {
            let last = one_of(random, [4, 6, -1, -1]);
            let flags = one_of(random, [0, 2, 4, 6]);
            let fields = vec![
                ("fd", 32, fd(random)),
                ("max_fd", 32, Int(last)),
                ("flags", 32, Int(flags)),
            ];
            (fields, 0)
        }
        "dup2" => (
            vec![("oldfd", 32, fd(random)), ("newfd", 32, Int(made))],
            made,
        ),
        "socket" => {
            let family = one_of(random, [1, 2, 10, 16]);
            (
                vec![("family", 32, Int(family)), ("type", 32, Int(1))],
                made,
            )
        }
        "pipe2" => (vec![("flags", 32, Int(0x80000))], made),
        "fcntl" => {
            let cmd = one_of(random, [0, 1, 2, 1030]);
            let fields = vec![
                ("fd", 32, fd(random)),
                ("cmd", 32, Int(cmd)),
                ("arg", 64, Int(1)),
            ];
            (fields, made)
        }
        "accept" => (vec![("fd", 32, fd(random))], made),
        "clone" => {
            let flags = one_of(
                random,
                [0, CLONE_FILES, CLONE_THREAD, CLONE_FILES | CLONE_THREAD],
            );
            (vec![("clone_flags", 64, Int(flags | 17))], made)
        }
        "unshare" => {
            let flags = one_of(random, [0, 0, CLONE_FILES, CLONE_FILES]);
            (vec![("unshare_flags", 64, Int(flags))], 0)
        }
        _ => (vec![("uaddr", 64, Int(0))], made),
    }
}
