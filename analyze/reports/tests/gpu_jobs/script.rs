//! Traces of made-up jobs of GPUs, in the events of several drivers and versions of the kernel.

use std::path::PathBuf;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_models::naming::{Field, Maker, TEXT, Value::Int, Value::Text};
use tracebraid_models::synthetic::{Random, Scripted, Shape, scripted};

/// Which events the trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    /// Of the kernel's scheduler since Linux 6.16.
    Scheduler,
    /// Of the kernel's scheduler before: fences are addresses.
    OldScheduler,
    Intel,
    Amd,
    Fences,
}

pub(crate) const EVENTS: [Events; 5] = [
    Events::Scheduler,
    Events::OldScheduler,
    Events::Intel,
    Events::Amd,
    Events::Fences,
];

#[derive(Clone, Copy, Debug)]
struct Job {
    ring: usize,
    context: i64,
    seqno: i64,
    runs: bool,
}

struct Script {
    events: Events,
    random: Random,
    shape: Shape,
    written: Vec<Scripted<'static>>,
    time: u64,
    running: Vec<i32>,
    jobs: Vec<Job>,
    next: i64,
    /// Waits of threads, with the fence.
    waits: Vec<(i32, Job)>,
}

const RINGS: [&str; 3] = ["gfx_0.0.0", "sdma0", "comp_1.0.0"];

/// Writes a trace and opens it.
pub(crate) fn trace(seed: u64, events: Events, shape: Shape) -> (PathBuf, TraceSet) {
    let mut script = Script {
        events,
        random: Random::new(seed),
        shape,
        written: Vec::new(),
        time: 1000,
        running: vec![0; shape.cpus as usize],
        jobs: Vec::new(),
        next: 0,
        waits: Vec::new(),
    };
    for _ in 0..shape.steps {
        script.step();
    }
    scripted(shape, script.written)
}

impl Script {
    fn step(&mut self) {
        let tie = self.shape.ties && self.random.chance(200);
        self.time += if tie { 0 } else { 1 + self.random.below(50) };
        let cpu = self.random.below(self.shape.cpus);
        match self.random.below(100) {
            0..20 => self.switch(cpu),
            20..45 => self.queue(cpu),
            45..70 => self.run(cpu),
            70..90 => self.end(cpu),
            90..93 => self.foreign(cpu),
            93..97 => self.wait(cpu),
            _ => self.waited(cpu),
        }
    }

    fn write(&mut self, cpu: u64, name: &'static str, fields: Vec<Field<'static>>) {
        let tid = self.running[cpu as usize];
        let maker = Maker { tid, pid: tid };
        self.written.push((cpu, self.time, maker, name, fields));
    }

    fn switch(&mut self, cpu: u64) {
        let prev = self.running[cpu as usize];
        let next = match self.random.below(6) as i32 {
            0 => 0,
            thread => 100 + thread,
        };
        if self.running.contains(&next) && next != 0 {
            return;
        }
        let fields = vec![
            ("prev_comm", TEXT, Text("before")),
            ("prev_tid", 32, Int(prev.into())),
            ("next_comm", TEXT, Text("after")),
            ("next_tid", 32, Int(next.into())),
        ];
        self.write(cpu, "sched_switch", fields);
        self.running[cpu as usize] = next;
    }

    fn queue(&mut self, cpu: u64) {
        let ring = self.random.below(RINGS.len() as u64) as usize;
        self.next += 1;
        let seqno = match self.events {
            // Addresses are used again.
            Events::OldScheduler => 0x1000 + self.random.below(30) * 64,
            // The events have the lower halves of some numbers.
            _ => (1 << 32) - 100 + self.next as u64,
        };
        let job = Job {
            ring,
            context: 10 + ring as i64,
            seqno: seqno as i64,
            runs: self.events == Events::Fences,
        };
        match self.events {
            Events::Scheduler => self.write(cpu, "drm_sched_job_queue", scheduler(job)),
            Events::OldScheduler => self.write(cpu, "drm_sched_job", old_scheduler(job)),
            Events::Intel => self.write(cpu, "i915_request_add", intel(job)),
            Events::Amd => self.write(cpu, "amdgpu_cs_ioctl", amd(job)),
            Events::Fences => self.write(cpu, "dma_fence_emit", fence(job)),
        }
        self.jobs.push(job);
    }

    /// One of the oldest jobs that are selected.
    fn pick(&mut self, runs: bool) -> Option<usize> {
        let jobs = self.jobs.iter().enumerate();
        let jobs: Vec<usize> = jobs
            .filter(|(_, job)| job.runs == runs)
            .map(|(at, _)| at)
            .collect();
        let at = self.random.below(3.min(jobs.len() as u64).max(1));
        jobs.get(at as usize).copied()
    }

    fn run(&mut self, cpu: u64) {
        let Some(at) = self.pick(false) else { return };
        let job = self.jobs[at];
        if self.events == Events::Scheduler && self.random.chance(200) {
            let mut fields = fence_numbers(job);
            fields.extend([("ctx", 64, Int(3)), ("seqno", 64, Int(4))]);
            return self.write(cpu, "drm_sched_job_unschedulable", fields);
        }
        match self.events {
            Events::Scheduler => self.write(cpu, "drm_sched_job_run", scheduler(job)),
            Events::OldScheduler => self.write(cpu, "drm_run_job", old_scheduler(job)),
            // Some kernels do not record when requests are handed to the hardware.
            Events::Intel if job.ring == 2 => {}
            Events::Intel => self.write(cpu, "i915_request_in", intel(job)),
            Events::Amd => self.write(cpu, "amdgpu_sched_run_job", amd(job)),
            Events::Fences => {}
        }
        self.jobs[at].runs = true;
    }

    fn end(&mut self, cpu: u64) {
        let Some(at) = self.pick(true) else { return };
        let job = self.jobs[at];
        if self.events == Events::Intel && self.random.chance(200) {
            let mut fields = intel(job);
            fields.push(("completed", 32, Int(0)));
            return self.write(cpu, "i915_request_out", fields);
        }
        self.jobs.remove(at);
        match self.events {
            Events::Scheduler => {
                self.write(cpu, "drm_sched_job_done", fence_numbers(job));
                self.write(cpu, "dma_fence_signaled", fence(job));
            }
            Events::OldScheduler => {
                let fields = vec![("fence", 64, Int(job.seqno))];
                self.write(cpu, "drm_sched_process_job", fields);
            }
            Events::Intel => {
                if self.random.chance(500) {
                    let mut fields = intel(job);
                    fields.push(("completed", 32, Int(1)));
                    self.write(cpu, "i915_request_out", fields);
                }
                if self.random.chance(500) {
                    self.write(cpu, "dma_fence_signaled", fence(job));
                }
                self.write(cpu, "i915_request_retire", intel(job));
            }
            Events::Amd | Events::Fences if self.random.chance(50) => {
                self.write(cpu, "dma_fence_destroy", fence(job));
            }
            Events::Amd | Events::Fences => self.write(cpu, "dma_fence_signaled", fence(job)),
        }
    }

    /// The end of a fence that is of no job, or of one from before the trace.
    fn foreign(&mut self, cpu: u64) {
        let job = Job {
            ring: 0,
            context: 900,
            seqno: self.random.below(1000) as i64,
            runs: true,
        };
        let name = ["dma_fence_signaled", "dma_fence_destroy"][self.random.below(2) as usize];
        self.write(cpu, name, fence(job));
        if self.events == Events::Scheduler {
            self.write(cpu, "drm_sched_job_done", fence_numbers(job));
        }
    }

    fn wait(&mut self, cpu: u64) {
        let thread = self.running[cpu as usize];
        let Some(job) = self.jobs.last().copied() else {
            return;
        };
        if thread == 0 || self.waits.iter().any(|of| of.0 == thread) {
            return;
        }
        self.waits.push((thread, job));
        self.write(cpu, "dma_fence_wait_start", fence(job));
        if self.events == Events::Intel {
            let mut fields = intel(job);
            fields.push(("flags", 32, Int(1)));
            self.write(cpu, "i915_request_wait_begin", fields);
        }
    }

    fn waited(&mut self, cpu: u64) {
        let thread = self.running[cpu as usize];
        let Some(at) = self.waits.iter().position(|of| of.0 == thread) else {
            return;
        };
        let (_, job) = self.waits.remove(at);
        if self.events == Events::Intel {
            self.write(cpu, "i915_request_wait_end", intel(job));
        }
        self.write(cpu, "dma_fence_wait_end", fence(job));
    }
}

fn fence_numbers(job: Job) -> Vec<Field<'static>> {
    vec![
        ("fence_context", 64, Int(job.context)),
        ("fence_seqno", 64, Int(job.seqno)),
    ]
}

fn scheduler(job: Job) -> Vec<Field<'static>> {
    let mut fields = vec![
        ("name", TEXT, Text(RINGS[job.ring])),
        ("job_count", 32, Int(1)),
        ("hw_job_count", 32, Int(2)),
        ("dev", TEXT, Text("0000:03:00.0")),
    ];
    fields.extend(fence_numbers(job));
    fields.push(("client_id", 64, Int(7)));
    fields
}

fn old_scheduler(job: Job) -> Vec<Field<'static>> {
    vec![
        ("entity", 64, Int(0xe0)),
        ("fence", 64, Int(job.seqno)),
        ("name", TEXT, Text(RINGS[job.ring])),
        ("id", 64, Int(5)),
        ("job_count", 32, Int(1)),
        ("hw_job_count", 32, Int(2)),
    ]
}

fn intel(job: Job) -> Vec<Field<'static>> {
    vec![
        ("dev", 32, Int(0)),
        ("ctx", 64, Int(job.context)),
        ("class", 16, Int(job.ring as i64)),
        ("instance", 16, Int(0)),
        ("seqno", 32, Int(job.seqno as u32 as i64)),
    ]
}

fn amd(job: Job) -> Vec<Field<'static>> {
    vec![
        ("sched_job_id", 64, Int(9)),
        ("timeline", TEXT, Text("timeline")),
        ("context", 32, Int(job.context)),
        ("seqno", 32, Int(job.seqno as u32 as i64)),
        ("ring", TEXT, Text(RINGS[job.ring])),
        ("num_ibs", 32, Int(1)),
    ]
}

fn fence(job: Job) -> Vec<Field<'static>> {
    vec![
        ("driver", TEXT, Text("made-up")),
        ("timeline", TEXT, Text(RINGS[job.ring])),
        ("context", 32, Int(job.context)),
        ("seqno", 32, Int(job.seqno as u32 as i64)),
    ]
}
