//! Acts of the simulated kernel: switches, wake-ups, system calls and interrupts.

use super::level_tracer::LevelField::{Comm, I32, I64, Text, U64};
use super::level_tracer::LevelFields;
use super::script::{KernelState, LevelScript, ScriptInterrupt};

const CALLS: [&str; 6] = [
    "read",
    "futex",
    "epoll_wait",
    "clone",
    "sendto",
    "nanosleep",
];

impl LevelScript {
    fn threads_in(&self, wanted: impl Fn(KernelState) -> bool) -> Vec<usize> {
        let threads = self.threads.iter().enumerate();
        let wanted = threads.filter(|(_, thread)| wanted(thread.state));
        wanted.map(|(at, _)| at).collect()
    }

    fn is_runnable(state: KernelState) -> bool {
        matches!(state, KernelState::Ready | KernelState::Preempted { .. })
    }

    pub(super) fn leave_idle(&mut self, cpu: usize) {
        let runnable = self.threads_in(LevelScript::is_runnable);
        if let Some(next) = self.pick(runnable) {
            self.switch(cpu, Some(next), KernelState::Ready);
        }
    }

    /// Gives the CPU to another thread, if one is runnable.
    pub(super) fn preempt(&mut self, cpu: usize) -> bool {
        let runnable = self.threads_in(LevelScript::is_runnable);
        let Some(next) = self.pick(runnable) else {
            return false;
        };
        let (by, by_ult) = (self.threads[next].tid, self.threads[next].ult);
        self.switch(cpu, Some(next), KernelState::Preempted { by, by_ult });
        true
    }

    /// Switches a CPU to a thread or to idleness; the thread that ran gets the state `left`.
    fn switch(&mut self, cpu: usize, next: Option<usize>, left: KernelState) {
        if let Some(next) = next {
            self.pass(self.threads[next].touched);
        }
        let prev = self.cpus[cpu].running;
        let name = |script: &LevelScript, thread: Option<usize>| {
            thread.map_or((0, format!("swapper/{cpu}")), |at| {
                (script.threads[at].tid, script.threads[at].name.clone())
            })
        };
        let (prev_tid, prev_comm) = name(self, prev);
        let (next_tid, next_comm) = name(self, next);
        let state = match (prev, left) {
            (None, _) => 0,
            (_, KernelState::Preempted { .. }) => [0, 0x100][self.below(2)],
            (_, KernelState::Blocked) => [1, 1, 2][self.below(3)],
            (_, KernelState::Dead) => 0x20,
            _ => panic!("no thread leaves its CPU in the state {left:?}"),
        };
        let fields = vec![
            ("prev_comm", Comm(prev_comm)),
            ("prev_tid", I32(prev_tid)),
            ("prev_prio", I32(20)),
            ("prev_state", I64(state)),
            ("next_comm", Comm(next_comm)),
            ("next_tid", I32(next_tid)),
            ("next_prio", I32(20)),
        ];
        self.kernel_event(cpu, "sched_switch", fields);
        self.cpus[cpu].running = next;
        if let Some(prev) = prev {
            self.threads[prev].state = left;
            self.threads[prev].touched = self.time;
            self.show_thread(prev);
        }
        if let Some(next) = next {
            self.threads[next].state = KernelState::Running(cpu);
            self.threads[next].touched = self.time;
            self.show_thread(next);
        }
    }

    /// Wakes a thread that waits in the kernel, if there is one.
    fn wake_thread(&mut self, cpu: usize) {
        let blocked = self.threads_in(|state| state == KernelState::Blocked);
        let Some(woken) = self.pick(blocked) else {
            return;
        };
        self.pass(self.threads[woken].touched);
        let target = self.below(self.shape.cpus) as i32;
        let fields = vec![
            ("comm", Comm(self.threads[woken].name.clone())),
            ("tid", I32(self.threads[woken].tid)),
            ("prio", I32(20)),
            ("target_cpu", I32(target)),
        ];
        self.kernel_event(cpu, "sched_waking", fields.clone());
        if self.random.chance(700) {
            self.kernel_event(cpu, "sched_wakeup", fields);
        }
        self.threads[woken].state = KernelState::Ready;
        self.threads[woken].touched = self.time;
        self.show_thread(woken);
    }

    pub(super) fn enter_interrupt(&mut self, cpu: usize) {
        let is_nested = !self.cpus[cpu].interrupts.is_empty();
        let kind = match self.below(2) {
            0 if !is_nested => ScriptInterrupt::Softirq([1, 3, 7][self.below(3)]),
            _ => ScriptInterrupt::Irq([24, 25][self.below(2)]),
        };
        let (name, fields): (_, LevelFields) = match kind {
            ScriptInterrupt::Softirq(vector) => ("irq_softirq_entry", vec![("vec", I32(vector))]),
            ScriptInterrupt::Irq(number) => {
                let device = ["eth0", "nvme0q1"][number as usize - 24].to_owned();
                let fields = vec![("irq", I32(number)), ("name", Text(device))];
                ("irq_handler_entry", fields)
            }
        };
        self.kernel_event(cpu, name, fields);
        self.cpus[cpu].interrupts.push((kind, self.time));
    }

    pub(super) fn interrupt_step(&mut self, cpu: usize) {
        match self.below(10) {
            0..3 => self.wake_thread(cpu),
            3 => {
                let fields = vec![
                    ("skbaddr", U64(0x1000 + self.random.below(16))),
                    ("len", I32(60)),
                    ("name", Text("eth0".to_owned())),
                ];
                self.kernel_event(cpu, "net_if_receive_skb", fields);
            }
            // Hard interrupts interrupt softirqs, never each other.
            4 if matches!(
                self.cpus[cpu].interrupts[..],
                [(ScriptInterrupt::Softirq(_), _)]
            ) =>
            {
                self.enter_interrupt(cpu);
            }
            _ => self.leave_interrupt(cpu),
        }
    }

    pub(super) fn leave_interrupt(&mut self, cpu: usize) {
        let last = self.cpus[cpu].interrupts.last();
        let (kind, since) = *last.expect("an interrupt");
        self.pass(since);
        let (name, fields): (_, LevelFields) = match kind {
            ScriptInterrupt::Softirq(vector) => ("irq_softirq_exit", vec![("vec", I32(vector))]),
            ScriptInterrupt::Irq(number) => (
                "irq_handler_exit",
                vec![("irq", I32(number)), ("ret", I32(1))],
            ),
        };
        self.kernel_event(cpu, name, fields);
        self.cpus[cpu].interrupts.pop();
    }

    pub(super) fn enter_call(&mut self, cpu: usize, thread: usize) {
        let call = CALLS[self.below(CALLS.len())];
        if self.threads[thread].ult != 0 && self.random.chance(300) {
            let ult = self.threads[thread].ult;
            self.user_event(thread, "tracebraid:ult_call_begin", vec![("ult", U64(ult))]);
            self.threads[thread].has_recorded_call = true;
        }
        let fields = vec![("fd", I32(3))];
        self.kernel_event(cpu, &format!("syscall_entry_{call}"), fields);
        let process = self.threads[thread].process;
        let current = process.zip(self.current(thread));
        let truth = current.and_then(|(process, at)| self.begin_call(process, at, (call, true)));
        let entered = &mut self.threads[thread];
        (entered.call, entered.called) = (Some(call), self.time);
        entered.call_truth = truth;
    }

    pub(super) fn call_step(&mut self, cpu: usize, thread: usize) {
        let call = self.threads[thread].call.expect("a call");
        if self.threads[thread].is_leaving && self.threads[thread].ult == 0 {
            return self.exit_thread(cpu, thread);
        }
        match self.below(10) {
            0..3 => {
                let runnable = self.threads_in(LevelScript::is_runnable);
                let next = self.pick(runnable);
                self.switch(cpu, next, KernelState::Blocked);
            }
            3 | 4 => {
                // Only calls, which are a begin and an end, show where the wake-up is.
                self.time += if self.shape.syscalls { 0 } else { self.gap() };
                self.wake_thread(cpu);
                self.time += if self.shape.syscalls { 0 } else { self.gap() };
            }
            5 if call == "clone" => self.fork(cpu, thread),
            _ => self.leave_call(cpu, thread, call),
        }
    }

    fn leave_call(&mut self, cpu: usize, thread: usize, call: &str) {
        self.pass(self.threads[thread].called);
        self.kernel_event(cpu, &format!("syscall_exit_{call}"), vec![("ret", I64(0))]);
        let call = self.threads[thread].call_truth.take();
        self.end_call(call);
        let left = &mut self.threads[thread];
        left.call = None;
        if std::mem::take(&mut left.has_recorded_call) {
            let ult = left.ult;
            self.user_event(thread, "tracebraid:ult_call_end", vec![("ult", U64(ult))]);
        }
    }

    /// Creates a kernel thread of the same process.
    fn fork(&mut self, cpu: usize, thread: usize) {
        let parent = self.threads[thread].clone();
        let live = self
            .threads
            .iter()
            .filter(|other| other.pid == parent.pid && other.state != KernelState::Dead);
        if live.count() > self.shape.lwps + 1 || parent.process.is_none() {
            return;
        }
        self.next_tid += 1;
        let tid = self.next_tid;
        self.time += self.gap();
        self.add_thread(tid, parent.pid, parent.process);
        let child = self.threads.last().expect("the new thread").name.clone();
        let fields = vec![
            ("parent_comm", Comm(parent.name)),
            ("parent_tid", I32(parent.tid)),
            ("parent_pid", I32(parent.pid)),
            ("child_comm", Comm(child)),
            ("child_tid", I32(tid)),
            ("child_pid", I32(parent.pid)),
        ];
        self.kernel_event(cpu, "sched_process_fork", fields);
        self.time += self.gap();
    }

    fn exit_thread(&mut self, cpu: usize, thread: usize) {
        self.time += self.gap();
        let exiting = &self.threads[thread];
        let fields = vec![
            ("comm", Comm(exiting.name.clone())),
            ("tid", I32(exiting.tid)),
            ("prio", I32(20)),
        ];
        self.kernel_event(cpu, "sched_process_exit", fields);
        let runnable = self.threads_in(LevelScript::is_runnable);
        let next = self.pick(runnable);
        self.switch(cpu, next, KernelState::Dead);
    }
}
