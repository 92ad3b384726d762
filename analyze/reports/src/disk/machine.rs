//! Follows requests over all CPUs in the order of time.
//!
//! Time is played in slices. A slice does not know the requests in progress at its start, so it
//! keeps ends without a start, and the number of requests of each disk relative to that at its
//! start.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Rwbs;

use crate::disk::DiskRules;
use crate::disk::depth::{Depth, DepthSlice};
use crate::disk::request::{DiskKey, Issued, Request, RequestKind, Returned, SectorRange};
use crate::disk::step::{Deed, DiskItem};
use crate::disk::sums::{Remap, Sums};
use tracebraid_follow::{CpuKey, PairSlice, Pairs, Thread, ThreadKey};
use tracebraid_tables::View;

/// Requests in progress. Its size depends on the number of disks and of requests in progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct DiskMachine {
    /// Issued requests, by device and end sector.
    pub(super) requests: Pairs<(DiskKey, u64), Issued>,
    /// Time since when a request is queued, by device and first sector.
    queue: Pairs<(DiskKey, u64), i64>,
    pub(super) depths: Vec<(DiskKey, Depth)>,
}

/// A slice of time, played without the requests in progress at its start.
#[derive(Debug, Default)]
pub(super) struct DiskSlice {
    requests: PairSlice<(DiskKey, u64), Issued, Return>,
    queue: PairSlice<(DiskKey, u64), i64, Dequeued>,
    depths: Vec<(DiskKey, DepthSlice)>,
}

/// The driver returns a request, or a part of one.
#[derive(Clone, Copy, Debug)]
struct Return {
    returned: Returned,
    /// The request is complete, at a selected time and CPU.
    counts: bool,
}

/// A request leaves the queue.
#[derive(Clone, Copy, Debug)]
struct Dequeued {
    time: i64,
    counts: bool,
}

/// Plays a slice.
pub(super) struct Player<'a> {
    pub(super) rules: &'a DiskRules,
    pub(super) slice: &'a mut DiskSlice,
    pub(super) sums: &'a mut Sums,
}

/// An event: its CPU, time, disk and sectors.
#[derive(Clone, Copy, Debug)]
struct At {
    cpu: CpuKey,
    time: i64,
    disk: DiskKey,
    place: SectorRange,
    /// Time and CPU are selected.
    counts: bool,
}

impl Player<'_> {
    /// Processes an event.
    pub(super) fn play(&mut self, cpu: CpuKey, time: i64, item: DiskItem) {
        let trace = cpu.trace;
        let work = item.work;
        let device = work.device;
        let at = At {
            cpu,
            time,
            disk: DiskKey { trace, device },
            place: work.place,
            counts: self.rules.selection.counts(time, cpu.cpu),
        };
        let counts = u64::from(at.counts);
        match work.deed {
            Deed::Queue if at.place.sectors > 0 => {
                self.slice.queue.begin((at.disk, at.place.sector), time);
            }
            Deed::Queue => {}
            Deed::Issue { rwbs, tid } => self.issue(at, rwbs, (tid, item.runs)),
            Deed::Complete { rwbs, failed } => self.complete(at, rwbs, failed),
            Deed::Requeue => {
                self.sums.disk(at.disk).counts.requeues += counts;
                self.returns(at, false);
            }
            Deed::MergeRequest => self.sums.disk(at.disk).counts.merged_requests += counts,
            Deed::MergeBio => self.sums.disk(at.disk).counts.merged_bios += counts,
            Deed::Remap { from } if at.counts => {
                let from = DiskKey {
                    trace,
                    device: from,
                };
                self.sums
                    .remaps(Remap { from, to: at.disk }, 1, at.place.bytes());
            }
            Deed::Remap { .. } => {}
        }
    }

    /// The request is issued to the driver. `tid` is the thread that the event contains, `runs` the
    /// one that runs on the CPU.
    fn issue(&mut self, at: At, rwbs: Rwbs, (tid, runs): (Option<i32>, Option<i32>)) {
        let At {
            time, disk, counts, ..
        } = at;
        let kind = RequestKind::of(rwbs, at.place);
        let place = at.place.of(kind);
        let issued = Issued {
            time,
            place,
            rwbs,
            thread: tid,
        };
        if self.slice.requests.begin((disk, place.end()), issued) {
            self.sums.disk(disk).counts.replaced += 1;
        }
        if place.sectors > 0 {
            let window = self.rules.selection.window;
            self.depth(disk).up(time, window);
            let dequeued = Dequeued { time, counts };
            if let Some((since, dequeued)) = self.slice.queue.end((disk, place.sector), dequeued) {
                self.sums.waited(disk, since, dequeued);
            }
        }
        if counts {
            let trace = at.cpu.trace;
            let tid = tid.or(runs).unwrap_or(ThreadKey::UNKNOWN);
            let sums = self.sums.issued_by(ThreadKey { trace, tid }, disk);
            sums.requests += 1;
            let bytes = &mut sums.bytes[kind as usize];
            *bytes = bytes.saturating_add(place.bytes());
        }
    }

    /// The number of requests of a disk, which then has a row.
    fn depth(&mut self, key: DiskKey) -> &mut DepthSlice {
        self.sums.disk(key);
        of_disk(&mut self.slice.depths, key)
    }

    fn complete(&mut self, at: At, rwbs: Rwbs, failed: bool) {
        if at.counts && failed {
            self.sums.disk(at.disk).counts.errors += 1;
        }
        let kind = RequestKind::of(rwbs, at.place);
        if kind == RequestKind::Command && rwbs.is_write() {
            // Ends a flush sequence: the flushes before or after a write's data, and the data
            // itself if there is any, are complete.
            self.sums.disk(at.disk).counts.sequences += u64::from(at.counts);
            return;
        }
        let place = at.place.of(kind);
        self.returns(At { place, ..at }, true);
    }

    /// The driver returns the request.
    fn returns(&mut self, at: At, is_done: bool) {
        let At {
            time, disk, place, ..
        } = at;
        if place.sectors > 0 {
            let window = self.rules.selection.window;
            self.depth(disk).down(time, window);
        }
        let done = Return {
            returned: Returned { time, place },
            counts: is_done && at.counts,
        };
        if let Some((issued, done)) = self.slice.requests.end((disk, place.end()), done) {
            self.sums.returned(self.rules, disk, issued, done);
        }
    }
}

impl DiskSlice {
    /// Appends the slice to the state at its start.
    pub(super) fn compose(self, rules: &DiskRules, machine: &mut DiskMachine, sums: &mut Sums) {
        let mut replaced = Vec::new();
        self.requests.compose(
            &mut machine.requests,
            |(disk, _), issued, done| sums.returned(rules, disk, issued, done),
            |(disk, _)| replaced.push(disk),
        );
        for disk in replaced {
            sums.disk(disk).counts.replaced += 1;
        }
        let waited = |(disk, _), since, dequeued| sums.waited(disk, since, dequeued);
        self.queue.compose(&mut machine.queue, waited, |_| {});
        for (disk, depth) in self.depths {
            of_disk(&mut machine.depths, disk).go_on(&depth, rules.selection.window);
        }
    }
}

/// Linear search: there are few disks.
fn of_disk<T: Default>(all: &mut Vec<(DiskKey, T)>, key: DiskKey) -> &mut T {
    let at = all.iter().position(|of| of.0 == key).unwrap_or_else(|| {
        all.push((key, T::default()));
        all.len() - 1
    });
    &mut all[at].1
}

impl DiskMachine {
    /// The number of requests of a disk over time.
    pub(super) fn depth(&self, key: DiskKey) -> Option<&Depth> {
        let of = self.depths.iter().find(|of| of.0 == key);
        of.map(|of| &of.1)
    }
}

impl Sums {
    /// A request left the queue, in which it waited since `since`.
    fn waited(&mut self, disk: DiskKey, since: Option<i64>, dequeued: Dequeued) {
        if let Some(since) = since.filter(|_| dequeued.counts) {
            self.disk(disk).waits.add(since.abs_diff(dequeued.time));
        }
    }

    fn returned(&mut self, rules: &DiskRules, disk: DiskKey, issued: Option<Issued>, done: Return) {
        let Return { returned, counts } = done;
        let has_data = returned.place.sectors > 0;
        // With unrecorded CPUs, a flush cannot be paired: its issue or completion may be missing.
        if !counts || !has_data && !rules.recorded.is_whole(disk.trace) {
            return;
        }
        let is_of_it = |issued: &Issued| !has_data || issued.place.sector <= returned.place.sector;
        let Some(issued) = issued.filter(is_of_it) else {
            self.disk(disk).counts.not_begun += 1;
            return;
        };
        let request = Request::new(disk, issued, returned);
        let bytes = request.place.bytes();
        let is_large = || !has_data || rules.options.sizes.contain(bytes);
        if !rules.options.views.limits.contain(request.latency) || !is_large() {
            return;
        }
        if issued.place.sectors > returned.place.sectors {
            self.disk(disk).counts.parts += 1;
        }
        if let Some(ranges) = &rules.ranges {
            if let Some((_, range)) = ranges.iter().find(|(of, _)| *of == disk && has_data) {
                self.disk(disk).bins.add(*range, request.latency);
            }
            return;
        }
        if rules.options.views.shows(View::Log) {
            self.log.push(request);
        }
        let disk = self.disk(disk);
        if has_data && rules.is_by_thread {
            disk.add_to_thread(&request);
        }
        disk.add(request, rules.top());
    }
}

impl DiskRules {
    /// Number of slowest requests kept; with a selection of threads all, since the threads are
    /// resolved only at the end.
    pub(super) fn top(&self) -> usize {
        match self.options.views.top() {
            0 => 0,
            rows if self.selection.threads.shows(&Thread::default()) => rows,
            _ => usize::MAX,
        }
    }
}
