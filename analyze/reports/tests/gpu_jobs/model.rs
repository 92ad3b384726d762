//! The report by a plain pass over all events, in the order of time.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_models::events::{ModelEvent, Record, by_cpu, merged};

type Key = (u32, u32, u64);

#[derive(Clone, Debug, Default)]
struct Job {
    queued: Option<i64>,
    run: Option<i64>,
    tid: Option<i32>,
    held: bool,
    ring: Option<(String, String)>,
}

#[derive(Debug, Default)]
struct Sums {
    jobs: u64,
    host: u64,
    device: u64,
    execution: u64,
    max: u64,
    held: u64,
}

#[derive(Default)]
struct Model {
    open: BTreeMap<Key, Job>,
    done: BTreeMap<(String, String), Vec<(i64, i64, Key, Job)>>,
    unfinished: u64,
    not_begun: u64,
    waiting: BTreeMap<(i32, Key), i64>,
    waits: BTreeMap<i32, Vec<u64>>,
}

fn key(record: &Record) -> Key {
    let int = |name: &str| record.int(name);
    if let (Some(context), Some(seqno)) = (int("fence_context"), int("fence_seqno")) {
        return (context as u32, seqno as u32, 0);
    }
    match (int("context").or(int("ctx")), int("seqno")) {
        (Some(context), Some(seqno)) => (context as u32, seqno as u32, 0),
        _ => (0, 0, int("fence").expect("a fence") as u64),
    }
}

fn ring(record: &Record) -> (String, String) {
    if let (Some(class), Some(instance)) = (record.int("class"), record.int("instance")) {
        let class = ["rcs", "bcs", "vcs"][class as usize];
        return ("card0".into(), format!("{class}{instance}"));
    }
    let text = |names: [&str; 3]| {
        let found = names.iter().find_map(|name| record.text(name));
        found.unwrap_or_default().to_owned()
    };
    (
        text(["dev", "driver", ""]),
        text(["name", "ring", "timeline"]),
    )
}

impl Model {
    fn event(&mut self, time: i64, record: &Record, runs: Option<i32>) {
        let tid = record.id("common_pid").or(runs);
        let new = || Job {
            tid,
            ring: Some(ring(record)),
            ..Job::default()
        };
        match &*record.name {
            "drm_sched_job_queue" | "drm_sched_job" | "i915_request_add" | "amdgpu_cs_ioctl" => {
                let job = Job {
                    queued: Some(time),
                    ..new()
                };
                self.unfinished += u64::from(self.open.insert(key(record), job).is_some());
            }
            "dma_fence_emit" => {
                let job = Job {
                    run: Some(time),
                    ..new()
                };
                self.unfinished += u64::from(self.open.insert(key(record), job).is_some());
            }
            "drm_sched_job_run" | "drm_run_job" | "i915_request_in" | "amdgpu_sched_run_job" => {
                let job = self.open.entry(key(record)).or_default();
                job.run = job.run.or(Some(time));
                job.ring = job.ring.take().or(Some(ring(record)));
            }
            "drm_sched_job_unschedulable" => {
                self.open.entry(key(record)).or_default().held = true;
            }
            "i915_request_out" if record.int("completed") == Some(0) => {}
            "drm_sched_job_done" | "drm_sched_process_job" => self.end(time, key(record), true),
            "dma_fence_signaled" | "i915_request_out" | "i915_request_retire" => {
                self.end(time, key(record), false);
            }
            "dma_fence_destroy" => {
                self.unfinished += u64::from(self.open.remove(&key(record)).is_some());
            }
            "dma_fence_wait_start" | "i915_request_wait_begin" => {
                if let Some(tid) = tid {
                    self.waiting.insert((tid, key(record)), time);
                }
            }
            "dma_fence_wait_end" | "i915_request_wait_end" => {
                let since = tid.and_then(|tid| self.waiting.remove(&(tid, key(record))));
                if let (Some(tid), Some(since)) = (tid, since) {
                    self.waits
                        .entry(tid)
                        .or_default()
                        .push(since.abs_diff(time));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, time: i64, key: Key, is_of_job: bool) {
        match self.open.remove(&key) {
            Some(job) => {
                if let (Some(start), Some(ring)) = (job.run.or(job.queued), job.ring.clone()) {
                    let of_ring = self.done.entry(ring).or_default();
                    of_ring.push((time, start, key, job));
                }
            }
            None => self.not_begun += u64::from(is_of_job),
        }
    }

    fn report(mut self) -> Value {
        let (mut rings, mut jobs) = (Vec::new(), Vec::new());
        for ((device, ring), mut done) in std::mem::take(&mut self.done) {
            done.sort_by_key(|(time, start, key, _)| (*time, *start, *key));
            let mut all = Sums::default();
            let mut threads: BTreeMap<Option<i32>, Sums> = BTreeMap::new();
            let mut before = i64::MIN;
            let mut span = (i64::MAX, i64::MIN);
            for (time, start, _, job) in done {
                let begin = start.max(before);
                before = time;
                span = (span.0.min(begin), span.1.max(time));
                let of_thread = threads.entry(job.tid).or_default();
                for sums in [&mut all, of_thread] {
                    sums.jobs += 1;
                    let queued = job.queued.filter(|_| job.run.is_some());
                    sums.host += queued.map_or(0, |queued| queued.abs_diff(start));
                    sums.device += start.abs_diff(begin);
                    sums.execution += begin.abs_diff(time);
                    sums.max = sums.max.max(begin.abs_diff(time));
                    sums.held += u64::from(job.held);
                }
            }
            let span = span.0.abs_diff(span.1);
            let times =
                |of: &Sums| json!([of.jobs, of.host, of.device, of.execution, of.max, of.held]);
            rings.push(json!([
                device,
                ring,
                threads.len(),
                span,
                span - all.execution,
                times(&all)
            ]));
            for (tid, of) in threads {
                jobs.push(json!([tid, device, ring, times(&of)]));
            }
        }
        let waits = self.waits.iter().map(|(tid, waits)| {
            json!([
                tid,
                waits.len(),
                waits.iter().sum::<u64>(),
                waits.iter().max()
            ])
        });
        json!({
            "rings": sorted(rings),
            "jobs": sorted(jobs),
            "fence_waits": sorted(waits.collect()),
            "unfinished_jobs": self.unfinished + self.open.len() as u64,
            "jobs_not_begun": self.not_begun,
        })
    }
}

/// Rows in an order that does not depend on ties.
pub(crate) fn sorted(mut rows: Vec<Value>) -> Vec<Value> {
    rows.sort_by_key(Value::to_string);
    rows
}

pub(crate) fn model(set: &TraceSet) -> Value {
    let mut model = Model::default();
    let mut running: BTreeMap<u32, Option<i32>> = BTreeMap::new();
    for entry in merged(by_cpu(set, |_| true)) {
        let runs = running.entry(entry.cpu).or_default();
        match &entry.what {
            ModelEvent::Packet { lost: true, .. } => *runs = None,
            ModelEvent::Event(record) if record.name == "sched_switch" => {
                *runs = record.id("next_tid").or(record.id("next_pid"));
            }
            ModelEvent::Event(record) => model.event(entry.time, record, *runs),
            _ => {}
        }
    }
    model.report()
}
