//! What becomes of requests, by what happens on all CPUs in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Rwbs;

use crate::disk::DiskRules;
use crate::disk::device::Disk;
use crate::disk::request::{DiskKey, Issued, Kind, Place, Request, Returned};
use crate::disk::step::{Deed, Item};
use crate::kernel::{CpuKey, Pairs, Table, Thread, ThreadKey};
use crate::report::View;

/// What is known of requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) disks: Vec<Disk>,
    /// By device and where they end.
    pub(super) requests: Pairs<(DiskKey, u64), Issued>,
    /// Since when they wait in the queue; by device and where they begin.
    queue: Pairs<(DiskKey, u64), i64>,
    pub(super) threads: Table<Vec<(DiskKey, Sums)>>,
    /// With the number of bios, and their bytes.
    pub(super) remaps: Vec<(Remap, u64, u64)>,
    pub(super) log: Vec<Request>,
}

/// Requests that a thread issued on a disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) requests: u64,
    /// By kind.
    pub(super) bytes: [u64; Kind::ALL.len()],
}

impl Sums {
    pub(super) fn merge(&mut self, other: &Sums) {
        self.requests += other.requests;
        let bytes = self.bytes.iter_mut().zip(other.bytes);
        bytes.for_each(|(own, other)| *own = own.saturating_add(other));
    }
}

/// Bios go from one device to another: from a partition to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Remap {
    pub(super) from: DiskKey,
    pub(super) to: DiskKey,
}

/// Where, when and to what something happens.
#[derive(Clone, Copy, Debug)]
struct At {
    cpu: CpuKey,
    time: i64,
    disk: DiskKey,
    place: Place,
    /// That time and CPU are asked for.
    counts: bool,
}

impl Machine {
    /// Something happens.
    pub(super) fn play(&mut self, rules: &DiskRules, cpu: CpuKey, time: i64, item: Item) {
        let trace = cpu.trace;
        let work = item.work;
        let device = work.device;
        let at = At {
            cpu,
            time,
            disk: DiskKey { trace, device },
            place: work.place,
            counts: rules.selection.counts(time, cpu.cpu),
        };
        match work.deed {
            Deed::Queue if at.place.sectors > 0 => {
                self.queue.begin((at.disk, at.place.sector), time);
            }
            Deed::Queue => {}
            Deed::Issue { rwbs, tid } => self.issue(rules, at, rwbs, (tid, item.runs)),
            Deed::Complete { rwbs, failed } => self.complete(rules, at, rwbs, failed),
            Deed::Requeue => {
                self.disk(at.disk).counts.requeues += u64::from(at.counts);
                self.returns(rules, at, false);
            }
            Deed::MergeRequest => self.disk(at.disk).counts.merged_requests += u64::from(at.counts),
            Deed::MergeBio => self.disk(at.disk).counts.merged_bios += u64::from(at.counts),
            Deed::Remap { from } if at.counts => {
                let from = DiskKey { trace, device: from };
                self.remap(Remap { from, to: at.disk }, at.place.bytes());
            }
            Deed::Remap { .. } => {}
        }
    }

    pub(super) fn disk(&mut self, key: DiskKey) -> &mut Disk {
        // There are few.
        let at = self.disks.iter().position(|disk| disk.key == key);
        let at = at.unwrap_or_else(|| {
            self.disks.push(Disk::new(key));
            self.disks.len() - 1
        });
        &mut self.disks[at]
    }

    fn remap(&mut self, remap: Remap, bytes: u64) {
        match self.remaps.iter_mut().find(|known| known.0 == remap) {
            Some(known) => (known.1, known.2) = (known.1 + 1, known.2.saturating_add(bytes)),
            None => self.remaps.push((remap, 1, bytes)),
        }
    }

    /// The driver has it. `tid` is the thread that the event names, `runs` who runs there.
    fn issue(&mut self, rules: &DiskRules, at: At, rwbs: Rwbs, (tid, runs): (Option<i32>, Option<i32>)) {
        let At { time, disk, .. } = at;
        let kind = Kind::of(rwbs, at.place);
        let place = at.place.of(kind);
        let issued = Issued {
            time,
            place,
            rwbs,
            thread: tid,
        };
        if self.requests.begin((disk, place.end()), issued) {
            self.disk(disk).counts.replaced += 1;
        }
        if place.sectors > 0 {
            self.disk(disk).depth.up(time, rules.selection.window);
            if let Some(since) = self.queue.end((disk, place.sector))
                && at.counts
            {
                self.disk(disk).waits.add(since.abs_diff(time));
            }
        }
        if at.counts {
            let trace = at.cpu.trace;
            let tid = tid.or(runs).unwrap_or(ThreadKey::UNKNOWN);
            let sums = self.sums(ThreadKey { trace, tid }, disk);
            sums.requests += 1;
            let bytes = &mut sums.bytes[kind as usize];
            *bytes = bytes.saturating_add(place.bytes());
        }
    }

    /// Who issued it.
    fn sums(&mut self, thread: ThreadKey, disk: DiskKey) -> &mut Sums {
        let disks = self.threads.get(thread);
        let at = disks.iter().position(|of| of.0 == disk);
        let at = at.unwrap_or_else(|| {
            disks.push((disk, Sums::default()));
            disks.len() - 1
        });
        &mut disks[at].1
    }

    fn complete(&mut self, rules: &DiskRules, at: At, rwbs: Rwbs, failed: bool) {
        if at.counts && failed {
            self.disk(at.disk).counts.errors += 1;
        }
        let kind = Kind::of(rwbs, at.place);
        if kind == Kind::Command && rwbs.is_write() {
            // What asked for flushes before or behind its data, if it has any, is done with them.
            self.disk(at.disk).counts.sequences += u64::from(at.counts);
            return;
        }
        let place = at.place.of(kind);
        self.returns(rules, At { place, ..at }, true);
    }

    /// The driver has it no longer.
    fn returns(&mut self, rules: &DiskRules, at: At, is_done: bool) {
        let At {
            time, disk, place, ..
        } = at;
        if place.sectors > 0 {
            self.disk(disk).depth.down(time, rules.selection.window);
        }
        let issued = self.requests.end((disk, place.end()));
        if is_done && at.counts {
            self.returned(rules, disk, issued, Returned { time, place });
        }
    }

    fn returned(&mut self, rules: &DiskRules, disk: DiskKey, issued: Option<Issued>, returned: Returned) {
        let has_data = returned.place.sectors > 0;
        if !has_data && !rules.recorded.is_whole(disk.trace) {
            // Flushes cannot be told from others that were issued or completed on an unrecorded CPU.
            return;
        }
        let is_of_it = |issued: &Issued| !has_data || issued.place.sector <= returned.place.sector;
        let Some(issued) = issued.filter(is_of_it) else {
            self.disk(disk).counts.not_begun += 1;
            return;
        };
        let request = Request::new(disk, issued, returned);
        let bytes = request.place.bytes();
        let is_large = || !has_data || rules.selection.sizes.contain(bytes);
        if !rules.selection.limits.contain(request.latency) || !is_large() {
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
        if rules.selection.shows(View::Log) {
            self.log.push(request);
        }
        self.disk(disk).add(request, rules.top());
    }
}

impl DiskRules {
    /// How many of the slowest are kept: which threads are shown is known at the end.
    pub(super) fn top(&self) -> usize {
        match self.selection.top() {
            0 => 0,
            rows if self.selection.threads.shows(&Thread::default()) => rows,
            _ => usize::MAX,
        }
    }
}
