//! Acts of the simulated programs' schedulers and of their user-level threads.

use super::level_tracer::LevelField::{I32, I64, Text, U8, U64};
use super::script::{KernelState, LevelScript, RuntimeState, ScriptUlt};
use super::super_acts::LeavesAs;

const REASONS: [&str; 5] = ["mutex", "channel", "select", "sleep", "io"];
const FUNCTIONS: [&str; 3] = ["parse", "compute", "reply"];

impl LevelScript {
    /// A thread that is not in a system call acts in user space.
    pub(super) fn user_step(&mut self, thread: usize) {
        let process = self.threads[thread].process.expect("a process");
        if self.processes[process].needs_snapshot {
            self.processes[process].needs_snapshot = false;
            self.snapshot(thread, process);
        }
        if !self.threads[thread].is_lwp {
            let runtime = vec![("runtime", Text("script".to_owned()))];
            self.user_event(thread, "tracebraid:lwp_begin", runtime);
            self.threads[thread].is_lwp = true;
            return self.show_thread(thread);
        }
        match self.current(thread) {
            None => self.scheduler_step(thread, process),
            Some(at) => self.ult_step(thread, process, at),
        }
    }

    fn scheduler_step(&mut self, thread: usize, process: usize) {
        if let Some(late) = self.threads[thread].late_block.take() {
            return self.block_late(thread, process, late);
        }
        match self.below(20) {
            0 => {
                let processor = self.below(8) as i32 - 1;
                let fields = vec![("processor", I32(processor))];
                self.user_event(thread, "tracebraid:lwp_processor", fields);
            }
            1 | 2 => self.create(thread, process),
            3..6 => self.wake_ult(thread, process),
            6 => self.count(thread),
            8 => self.end_another(thread, process),
            7 if self.random.chance(150) => self.leave(thread, process),
            _ => {
                let ready = self.ready(process);
                match self.pick(ready) {
                    Some(next) => self.switch_ult(thread, process, Some(next)),
                    None => self.create(thread, process),
                }
            }
        }
    }

    fn ult_step(&mut self, thread: usize, process: usize, at: usize) {
        let ult = &self.processes[process].ults[at];
        if (ult.ends || ult.blocks.is_some()) && self.random.chance(700) {
            return self.switch_away(thread, process);
        }
        match self.below(30) {
            0..6 => self.count(thread),
            6..12 => self.function(thread, process, at),
            12..16 => self.create(thread, process),
            16..20 => self.wake_ult(thread, process),
            20..24 => self.block(thread, process, at),
            24 => self.rename(thread, process, at),
            25 => self.end(thread, process, at),
            26 => self.end_another(thread, process),
            _ => self.switch_away(thread, process),
        }
    }

    /// User-level threads that an LWP may take.
    fn ready(&self, process: usize) -> Vec<usize> {
        let ults = self.processes[process].ults.iter().enumerate();
        let ready = ults.filter(|(_, ult)| ult.state == RuntimeState::Ready && !ult.is_reserved);
        ready.map(|(at, _)| at).collect()
    }

    fn touch(&mut self, process: usize, at: usize) {
        self.pass(self.processes[process].ults[at].touched);
        self.processes[process].ults[at].touched = self.time;
    }

    fn switch_away(&mut self, thread: usize, process: usize) {
        let ready = self.ready(process);
        let next = if self.random.chance(400) {
            None
        } else {
            self.pick(ready)
        };
        self.switch_ult(thread, process, next);
    }

    fn switch_ult(&mut self, thread: usize, process: usize, next: Option<usize>) {
        if let Some(next) = next {
            self.touch(process, next);
        }
        let prev = self.threads[thread].ult;
        let next_id = next.map_or(0, |next| self.processes[process].ults[next].id);
        let left = self.leaves_as(thread, process, next_id);
        let fields = vec![("prev_ult", U64(prev)), ("next_ult", U64(next_id))];
        self.user_event(thread, "tracebraid:ult_switch", fields);
        let mut waited = None;
        if let Some(next) = next {
            let next = &mut self.processes[process].ults[next];
            next.state = RuntimeState::On(thread);
            waited = next.waits.take();
        }
        self.derive_switch(thread, (prev, next_id), &left, waited);
        let current = self.current(thread);
        self.threads[thread].ult = next_id;
        if let Some(at) = current {
            self.leave_ult(process, at, left);
        }
        self.show_thread(thread);
    }

    /// The state in which the current user-level thread leaves its LWP. Some schedulers record only
    /// afterwards that it is blocked.
    fn leaves_as(&mut self, thread: usize, process: usize, next: u64) -> LeavesAs {
        let Some(at) = self.current(thread) else {
            return LeavesAs::Ready;
        };
        let is_late = next == 0 && self.random.chance(150);
        let reason = REASONS[self.below(REASONS.len())];
        let ult = &mut self.processes[process].ults[at];
        if ult.ends {
            return LeavesAs::Ended;
        }
        if let Some(reason) = ult.blocks.take() {
            return LeavesAs::Blocked(reason);
        }
        if !is_late {
            return LeavesAs::Ready;
        }
        ult.is_reserved = true;
        self.threads[thread].late_block = Some(ult.id);
        LeavesAs::Blocked(reason.to_owned())
    }

    fn leave_ult(&mut self, process: usize, at: usize, left: LeavesAs) {
        let ult = &mut self.processes[process].ults[at];
        ult.touched = self.time;
        ult.state = match left {
            LeavesAs::Ended => return self.remove_ult(process, at),
            LeavesAs::Ready => RuntimeState::Ready,
            LeavesAs::Blocked(reason) => {
                ult.waits = Some(reason.clone());
                RuntimeState::Blocked(reason)
            }
        };
        self.show(process, at);
    }

    fn block_late(&mut self, thread: usize, process: usize, id: u64) {
        let mut ults = self.processes[process].ults.iter_mut();
        let ult = ults.find(|ult| ult.id == id).expect("it is reserved");
        (ult.is_reserved, ult.touched) = (false, self.time);
        let reason = ult.waits.clone().expect("it waits");
        let fields = vec![("ult", U64(id)), ("reason", Text(reason))];
        self.user_event(thread, "tracebraid:ult_block", fields);
    }

    fn block(&mut self, thread: usize, process: usize, at: usize) {
        let ult = &self.processes[process].ults[at];
        if ult.blocks.is_some() || ult.ends {
            return;
        }
        let id = ult.id;
        self.touch(process, at);
        let reason = REASONS[self.below(REASONS.len())].to_owned();
        let fields = vec![("ult", U64(id)), ("reason", Text(reason.clone()))];
        self.user_event(thread, "tracebraid:ult_block", fields);
        self.processes[process].ults[at].blocks = Some(reason);
    }

    /// Wakes a user-level thread that is blocked, or has recorded that it blocks.
    fn wake_ult(&mut self, thread: usize, process: usize) {
        let ults = self.processes[process].ults.iter().enumerate();
        let blocked = ults.filter(|(_, ult)| {
            let waits = matches!(ult.state, RuntimeState::Blocked(_)) || ult.blocks.is_some();
            waits && !ult.is_reserved
        });
        let blocked = blocked.map(|(at, _)| at).collect();
        let Some(at) = self.pick(blocked) else {
            return;
        };
        self.touch(process, at);
        let fields = vec![("ult", U64(self.processes[process].ults[at].id))];
        self.user_event(thread, "tracebraid:ult_wake", fields);
        let ult = &mut self.processes[process].ults[at];
        ult.blocks = None;
        if let RuntimeState::Blocked(reason) = &ult.state {
            let (id, reason) = (ult.id, reason.clone());
            ult.state = RuntimeState::Ready;
            self.derive_wakeup(thread, id, &reason);
        }
        self.show(process, at);
    }

    /// Creates a user-level thread; half of them reuse the id of an ended thread.
    fn create(&mut self, thread: usize, process: usize) {
        if self.processes[process].ults.len() >= self.shape.ults {
            return;
        }
        let made = self.processes[process].next_ult;
        let is_live = |id: u64| self.processes[process].ults.iter().any(|ult| ult.id == id);
        let free: Vec<u64> = (1..made).filter(|&id| !is_live(id)).collect();
        let id = if !free.is_empty() && self.random.chance(500) {
            free[self.below(free.len())]
        } else {
            self.processes[process].next_ult += 1;
            made
        };
        // The id may have been freed by another LWP.
        self.time += self.gap();
        let name = if self.random.chance(200) {
            String::new()
        } else {
            format!("worker for request {id}")
        };
        let fields = vec![("ult", U64(id)), ("name", Text(name.clone()))];
        self.user_event(thread, "tracebraid:ult_create", fields);
        self.derive_creation(thread, id, &name);
        self.add_ult(process, id, name);
    }

    fn end(&mut self, thread: usize, process: usize, at: usize) {
        let ult = &self.processes[process].ults[at];
        if ult.ends || ult.blocks.is_some() {
            return;
        }
        let id = ult.id;
        self.user_event(thread, "tracebraid:ult_exit", vec![("ult", U64(id))]);
        self.derive_exit(thread, id);
        self.processes[process].ults[at].ends = true;
    }

    /// Ends a user-level thread that has no LWP.
    fn end_another(&mut self, thread: usize, process: usize) {
        let ults = self.processes[process].ults.iter().enumerate();
        let others = ults.filter(|(_, ult)| {
            let is_on = matches!(ult.state, RuntimeState::On(_));
            !is_on && !ult.is_reserved
        });
        let others = others.map(|(at, _)| at).collect();
        let Some(at) = self.pick(others) else {
            return;
        };
        self.touch(process, at);
        let id = self.processes[process].ults[at].id;
        self.user_event(thread, "tracebraid:ult_exit", vec![("ult", U64(id))]);
        self.derive_exit(thread, id);
        self.remove_ult(process, at);
    }

    fn rename(&mut self, thread: usize, process: usize, at: usize) {
        let id = self.processes[process].ults[at].id;
        let name = format!("renamed {id} at {}", self.time);
        let fields = vec![("ult", U64(id)), ("name", Text(name.clone()))];
        self.user_event(thread, "tracebraid:ult_name", fields);
        self.processes[process].ults[at].name = name;
    }

    fn count(&mut self, thread: usize) {
        let value = self.time as i64;
        let fields = vec![("name", Text("ticks".to_owned())), ("value", I64(value))];
        self.user_event(thread, "tracebraid:counter", fields);
    }

    fn function(&mut self, thread: usize, process: usize, at: usize) {
        let depth = self.processes[process].ults[at].functions.len();
        let enters = depth == 0 || (depth < 3 && self.random.chance(500));
        let function = FUNCTIONS[self.below(3)];
        let open = self.processes[process].ults[at].functions.last().copied();
        let (name, function) = match open {
            Some((function, _)) if !enters => ("tracebraid:prof_out", function),
            _ => ("tracebraid:prof_in", function),
        };
        self.user_event(thread, name, vec![("name", Text(function.to_owned()))]);
        match open {
            Some((_, call)) if !enters => {
                self.end_call(call);
                self.processes[process].ults[at].functions.pop();
            }
            _ => {
                let call = self.begin_call(process, at, (function, false));
                let functions = &mut self.processes[process].ults[at].functions;
                functions.push((function, call));
            }
        }
    }

    /// An LWP becomes an ordinary thread again, and ends.
    fn leave(&mut self, thread: usize, process: usize) {
        let others = self.threads.iter().filter(|other| {
            other.process == Some(process) && !other.is_leaving && other.state != KernelState::Dead
        });
        if others.count() < 2 {
            return;
        }
        self.user_event(thread, "tracebraid:lwp_end", Vec::new());
        (self.threads[thread].is_lwp, self.threads[thread].is_leaving) = (false, true);
        self.show_thread(thread);
    }

    /// Records the states of all user-level threads of a process.
    fn snapshot(&mut self, thread: usize, process: usize) {
        for ult in self.processes[process].ults.clone() {
            let (state, lwp, reason) = self.snapshot_state(&ult);
            let fields = vec![
                ("ult", U64(ult.id)),
                ("lwp", I32(lwp)),
                ("state", U8(state)),
                ("name", Text(ult.name)),
                ("reason", Text(reason)),
            ];
            self.user_event(thread, "tracebraid:ult_state", fields);
        }
    }

    fn snapshot_state(&self, ult: &ScriptUlt) -> (u8, i32, String) {
        match &ult.state {
            RuntimeState::Ready => (0, -1, String::new()),
            RuntimeState::Blocked(reason) => (2, -1, reason.clone()),
            RuntimeState::On(thread) => {
                let thread = &self.threads[*thread];
                let state = if thread.has_recorded_call { 3 } else { 1 };
                (state, thread.tid, String::new())
            }
        }
    }
}
