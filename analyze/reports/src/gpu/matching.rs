//! Steps of jobs, matched over all CPUs in the order of time.
//!
//! Time is played in slices. A slice does not know the jobs in progress at its start, so it keeps
//! the ends of jobs that may have begun earlier. Fences need not be those of jobs: their ends are
//! looked up only for the jobs in progress, of which there are few.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};

use crate::gpu::GpuRules;
use crate::gpu::job::{DoneJob, JobEnd, OpenJob};
use crate::gpu::ring::RingRef;
use crate::gpu::step::{Deed, GpuItem, JobKey};
use crate::gpu::sums::Sums;
use crate::gpu::sweep::Piece;
use tracebraid_follow::{CpuKey, KeyHasher, PairSlice, Pairs, ThreadKey};

type Hasher = BuildHasherDefault<KeyHasher>;
type DoneJobs = BTreeMap<RingRef, Vec<DoneJob>>;
type WaitKey = (ThreadKey, JobKey);

/// Jobs and waits in progress. The size depends on their number, on that of rings, and on that of
/// jobs whose completion was lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct GpuMachine {
    jobs: Pairs<JobKey, OpenJob>,
    waits: Pairs<WaitKey, i64>,
    /// When each ring last completed a job.
    last: Vec<(RingRef, i64)>,
    /// Jobs of rings since the last slice.
    #[serde(skip)]
    pub(super) due: Vec<Piece>,
}

impl GpuMachine {
    /// Number of jobs that are not complete.
    pub(super) fn open_jobs(&self) -> u64 {
        self.jobs.open().count() as u64
    }
}

/// The jobs with a fence, as far as a slice contains their steps.
#[derive(Debug, Default)]
struct Entry {
    /// The first step in the slice queues a job: an earlier job with the fence is over.
    begins: bool,
    /// The job in progress, and whether it began in the slice.
    job: Option<(OpenJob, bool)>,
}

/// The end of a job that may have begun before the slice, with its steps in the slice.
#[derive(Debug)]
struct LateEnd {
    key: JobKey,
    job: Option<OpenJob>,
    how: Over,
}

/// How a job is over.
#[derive(Clone, Copy, Debug)]
enum Over {
    Done(JobEnd),
    /// Its fence was freed.
    Destroyed,
    /// A later job has its fence.
    Replaced,
}

/// A slice of time, played without the jobs in progress at its start.
#[derive(Debug, Default)]
struct GpuSlice {
    entries: HashMap<JobKey, Entry, Hasher>,
    /// Fences that are over and have no earlier step in the slice. Most are of no job.
    fences: HashMap<JobKey, Over, Hasher>,
    late: Vec<LateEnd>,
    done: DoneJobs,
    waits: PairSlice<WaitKey, i64, WaitEnd>,
}

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitEnd {
    pub(super) time: i64,
    /// At a selected time and CPU.
    pub(super) counts: bool,
}

/// Plays a slice.
#[derive(Debug)]
pub(super) struct Player<'a> {
    rules: &'a GpuRules,
    slice: GpuSlice,
    sums: &'a mut Sums,
}

impl<'a> Player<'a> {
    pub(super) fn new(rules: &'a GpuRules, sums: &'a mut Sums) -> Player<'a> {
        Player {
            rules,
            slice: GpuSlice::default(),
            sums,
        }
    }

    /// Processes a step.
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, item: GpuItem) {
        let thread = item.thread();
        let key = item.step.key;
        let counts = self.rules.selection.counts(time, cpu.cpu);
        let done = |is_of_job| {
            Over::Done(JobEnd {
                time,
                counts,
                is_of_job,
            })
        };
        let job = OpenJob {
            thread,
            ..OpenJob::default()
        };
        match item.step.deed {
            Deed::Queue(ring) => self.begins(
                key,
                OpenJob {
                    queued: Some(time),
                    ring: Some(ring),
                    ..job
                },
            ),
            Deed::Submit(ring) => self.begins(
                key,
                OpenJob {
                    run: Some(time),
                    ring: Some(ring),
                    ..job
                },
            ),
            Deed::Run(ring) => self.slice.open(key).runs(time, ring),
            Deed::Hold => self.slice.open(key).is_held = true,
            Deed::Done => self.is_over(key, done(true)),
            Deed::Signaled => self.fence_is_over(key, done(false)),
            Deed::Destroy => self.fence_is_over(key, Over::Destroyed),
            deed @ (Deed::WaitBegin | Deed::WaitEnd) => {
                let Some(tid) = thread else { return };
                let trace = cpu.trace;
                let key = (ThreadKey { trace, tid }, key);
                match deed {
                    Deed::WaitBegin => _ = self.slice.waits.begin(key, time),
                    _ => self.wait_ends(key, WaitEnd { time, counts }),
                }
            }
        }
    }

    fn begins(&mut self, key: JobKey, job: OpenJob) {
        let is_new = !self.slice.entries.contains_key(&key);
        let entry = self.slice.entries.entry(key).or_default();
        entry.begins |= is_new;
        match entry.job.replace((job, true)) {
            Some((_, true)) => self.sums.unfinished += 1,
            Some((job, false)) => self.slice.late.push(LateEnd {
                key,
                job: Some(job),
                how: Over::Replaced,
            }),
            None => {}
        }
    }

    fn is_over(&mut self, key: JobKey, how: Over) {
        let known = self.slice.entries.get_mut(&key);
        let job = match known.map(|entry| entry.job.take()) {
            Some(Some((job, true))) => return self.ends(key, Some(job), how),
            // The last job with the fence ended in the slice.
            Some(None) => return self.ends(key, None, how),
            Some(Some((job, false))) => Some(job),
            None => {
                self.slice.entries.insert(key, Entry::default());
                None
            }
        };
        self.slice.late.push(LateEnd { key, job, how });
    }

    fn fence_is_over(&mut self, key: JobKey, how: Over) {
        match self.slice.entries.contains_key(&key) {
            true => self.is_over(key, how),
            false => _ = self.slice.fences.entry(key).or_insert(how),
        }
    }

    fn ends(&mut self, key: JobKey, job: Option<OpenJob>, how: Over) {
        end(self.sums, &mut self.slice.done, key, job, how);
    }

    fn wait_ends(&mut self, key: WaitKey, end: WaitEnd) {
        if let Some((Some(begin), end)) = self.slice.waits.end(key, end) {
            self.sums.waited(key.0, begin, end);
        }
    }

    /// The slice, as far as it can be evaluated without earlier ones.
    pub(super) fn finish(self) -> PlayedSlice {
        let GpuSlice {
            entries,
            fences,
            late,
            mut done,
            waits,
        } = self.slice;
        let begun = entries.iter().filter(|(_, entry)| entry.begins);
        let begun = begun.map(|(key, _)| *key).collect();
        let open = |(key, entry): (JobKey, Entry)| Some((key, entry.job?));
        done.values_mut().for_each(|jobs| jobs.sort_unstable());
        PlayedSlice {
            begun,
            open: entries.into_iter().filter_map(open).collect(),
            fences,
            late,
            done,
            waits,
        }
    }
}

impl GpuSlice {
    /// The job in progress. Of a job that may have begun before the slice, it has only the steps in
    /// it.
    fn open(&mut self, key: JobKey) -> &mut OpenJob {
        // After another step in the slice, no earlier job can be in progress.
        let begins = self.entries.contains_key(&key);
        let entry = self.entries.entry(key).or_default();
        let new = || (OpenJob::default(), begins);
        &mut entry.job.get_or_insert_with(new).0
    }
}

/// The end of a job, if there is one with the fence.
fn end(sums: &mut Sums, done: &mut DoneJobs, key: JobKey, job: Option<OpenJob>, how: Over) {
    match (how, job) {
        (Over::Done(end), Some(job)) => {
            if let Some((ring, job)) = job.finish(key, end) {
                done.entry(ring).or_default().push(job);
            }
        }
        (Over::Done(end), None) => sums.not_begun += u64::from(end.is_of_job && end.counts),
        (Over::Destroyed | Over::Replaced, job) => sums.unfinished += u64::from(job.is_some()),
    }
}

/// A played slice.
#[derive(Debug)]
pub(super) struct PlayedSlice {
    /// Fences whose first step in the slice queues a job.
    begun: HashSet<JobKey, Hasher>,
    /// Jobs in progress at the end of the slice, and whether they began in it.
    open: Vec<(JobKey, (OpenJob, bool))>,
    fences: HashMap<JobKey, Over, Hasher>,
    late: Vec<LateEnd>,
    done: DoneJobs,
    waits: PairSlice<WaitKey, i64, WaitEnd>,
}

impl PlayedSlice {
    /// Appends the slice to the state at its start.
    pub(super) fn compose(self, machine: &mut GpuMachine, sums: &mut Sums) {
        let mut late = DoneJobs::new();
        let keys = machine.jobs.open_keys();
        let keys = keys.filter_map(|key| Some((*key, *self.fences.get(key)?)));
        for (key, how) in keys.collect::<Vec<_>>() {
            let job = machine.jobs.end(key);
            end(sums, &mut late, key, job, how);
        }
        for LateEnd { key, job, how } in self.late {
            let job = machine.joined(key, job);
            end(sums, &mut late, key, job, how);
        }
        let mut replaced = 0;
        machine.jobs.forget(|key| {
            let is_replaced = self.begun.contains(key);
            replaced += u64::from(is_replaced);
            is_replaced
        });
        sums.unfinished += replaced;
        for (key, (job, begins)) in self.open {
            let job = match begins {
                true => Some(job),
                false => machine.joined(key, Some(job)),
            };
            job.into_iter()
                .for_each(|job| _ = machine.jobs.begin(key, job));
        }
        let waited = |(thread, _): WaitKey, begin: Option<i64>, end| {
            if let Some(begin) = begin {
                sums.waited(thread, begin, end);
            }
        };
        self.waits.compose(&mut machine.waits, waited, |_| {});
        machine.complete(self.done, late);
    }
}

impl GpuMachine {
    /// A job in progress, taken out, with its later steps.
    fn joined(&mut self, key: JobKey, later: Option<OpenJob>) -> Option<OpenJob> {
        match (self.jobs.end(key), later) {
            (Some(mut job), Some(later)) => {
                job.go_on(later);
                Some(job)
            }
            (earlier, later) => earlier.or(later),
        }
    }

    /// Adds the jobs that rings completed in a slice; `late`: those that began before it.
    fn complete(&mut self, mut done: DoneJobs, mut late: DoneJobs) {
        for ring in late.keys() {
            if !done.contains_key(ring) {
                done.insert(ring.clone(), Vec::new());
            }
        }
        for (ring, jobs) in done {
            let late = late.remove(&ring).unwrap_or_default();
            let last = jobs.last().map(|job| job.done);
            let last = late.iter().map(|job| job.done).max().max(last);
            let at = self.last.binary_search_by(|of| of.0.cmp(&ring));
            let before = at.ok().and_then(|at| self.last.get(at)).map(|of| of.1);
            let last = last.max(before).unwrap_or(i64::MIN);
            match at {
                Ok(at) => self.last[at].1 = last,
                Err(at) => self.last.insert(at, (ring.clone(), last)),
            }
            self.due.push(Piece {
                ring,
                before,
                jobs,
                late,
            });
        }
    }
}
