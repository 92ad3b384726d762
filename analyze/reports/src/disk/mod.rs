//! Block devices: requests, how long they took, how many there were at a time.
//!
//! A request is in the driver from its issue to the completion that ends where it ends: completions
//! of its parts before have other ends. `docs/reports-disk.md` defines each number.

mod depth;
mod device;
mod report;
mod request;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::block::{BioStep, Block, BlockStep, RequestStep};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::kernel::{
    Ended, Event, InOrder, Input, Packet, Pairs, Rules, Running, Selection, Tasks, Thread, ThreadKey, Told,
};
use crate::report::{Report, View};
use device::Disk;
use request::{DiskKey, Issued, Kind, Place, Request, Returned};

/// The analysis.
pub type DiskAnalysis = InOrder<DiskRules>;

/// What it makes of events.
#[derive(Debug)]
pub struct DiskRules {
    selection: Selection,
    /// For a second pass, the bounds of latencies.
    ranges: Option<Vec<(DiskKey, (u64, u64))>>,
}

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiskPartial {
    tasks: Tasks<Work>,
    disks: Vec<Disk>,
    /// By device and where they end.
    requests: Pairs<(DiskKey, u64), Issued, Returned>,
    /// Since when they wait in the queue, and until when; by device and where they begin.
    queue: Pairs<(DiskKey, u64), i64, (i64, u32)>,
    /// By place of the thread.
    threads: Vec<Vec<(DiskKey, Sums)>>,
    remaps: Vec<(Remap, u64, u64)>,
    log: Vec<Request>,
    /// Traces of which events were lost.
    lossy: Vec<u32>,
}

/// A request that a thread issues.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Work {
    disk: DiskKey,
    kind: Kind,
    bytes: u64,
}

/// Requests that a thread issued on a disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sums {
    requests: u64,
    /// By kind.
    bytes: [u64; Kind::ALL.len()],
}

impl Sums {
    fn merge(&mut self, other: &Sums) {
        self.requests += other.requests;
        let bytes = self.bytes.iter_mut().zip(other.bytes);
        bytes.for_each(|(own, other)| *own += other);
    }
}

/// Bios go from one device to another: from a partition to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Remap {
    from: DiskKey,
    to: DiskKey,
}

impl Rules for DiskRules {
    type Partial = DiskPartial;
    type Report = Report;

    fn new(selection: &Selection) -> Self {
        let ranges = selection.ranges.as_ref();
        let of = |(name, range): (&String, &(u64, u64))| Some((DiskKey::from_name(name)?, *range));
        DiskRules {
            selection: selection.clone(),
            ranges: ranges.map(|ranges| ranges.iter().filter_map(of).collect()),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        let is_of_disks = matches!(event, KernelEvent::Block(_) | KernelEvent::StateDevice(_));
        is_of_disks || Tasks::<Work>::wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let has = |wanted: RequestStep| {
            has(
                &|event| matches!(event, KernelEvent::Block(block) if block.step == BlockStep::Request(wanted)),
            )
        };
        (!has(RequestStep::Issue) || !has(RequestStep::Complete)).then_some(
            "no requests to block devices were recorded: enable block_rq_issue and block_rq_complete, and \
             block_rq_insert, block_getrq for the time in the queue (lttng enable-event --kernel 'block_*')",
        )
    }

    fn first(&self) -> DiskPartial {
        DiskPartial {
            requests: Pairs::first(),
            queue: Pairs::first(),
            ..DiskPartial::default()
        }
    }

    fn packet(&self, partial: &mut DiskPartial, packet: &Packet) {
        partial.tasks.packet(packet);
        if packet.lost_before {
            partial.loses(packet.cpu.trace);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut DiskPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        match &event.model.event {
            KernelEvent::Block(block) => {
                self.block(partial, event, block, body);
            }
            KernelEvent::StateDevice(state) => {
                let name = state
                    .name
                    .bytes(body)
                    .map(|name| String::from_utf8_lossy(name).into_owned());
                if let (Some(device), Some(name)) = (state.device(body), name) {
                    let trace = event.cpu.trace;
                    partial.disk(DiskKey { trace, device }).name = Some(name);
                }
            }
            _ => {
                partial.tasks.event(event, body);
            }
        }
    }

    fn merge(&self, earlier: &mut DiskPartial, mut later: DiskPartial) {
        let joined = earlier.tasks.merge(later.tasks);
        joined.told.into_iter().for_each(|told| self.work(earlier, told));
        let moved = |thread: &mut Option<usize>| {
            *thread = thread.and_then(|place| joined.places.get(place).copied());
        };
        for disk in later.disks {
            let (top, window) = (self.top(), self.selection.window);
            let own = earlier.disk(disk.key);
            own.merge(disk, top, window, |request| moved(&mut request.thread));
        }
        for (disks, &place) in later.threads.iter().zip(&joined.places) {
            disks
                .iter()
                .for_each(|(disk, sums)| earlier.sums(place, *disk).merge(sums));
        }
        for (remap, bios, bytes) in later.remaps {
            earlier.remap(remap, bios, bytes);
        }
        later.lossy.into_iter().for_each(|trace| earlier.loses(trace));
        later.requests.open().for_each(|issued| moved(&mut issued.thread));
        let mut requests = std::mem::take(&mut earlier.requests);
        let mut replaced = Vec::new();
        requests.merge_all(
            later.requests,
            |(disk, _), issued, returned| self.returned(earlier, disk, issued, returned),
            |(disk, _)| replaced.push(disk),
        );
        earlier.requests = requests;
        for disk in replaced {
            earlier.disk(disk).counts.replaced += 1;
        }
        let mut queue = std::mem::take(&mut earlier.queue);
        queue.merge(later.queue, |(disk, _), since, until| {
            self.waited(earlier, disk, since, until)
        });
        earlier.queue = queue;
        later
            .log
            .iter_mut()
            .for_each(|request| moved(&mut request.thread));
        earlier.log.extend(later.log);
    }

    fn finish(&self, input: &Input, mut partial: DiskPartial) -> Report {
        for ((disk, _), returned) in partial.requests.waiting() {
            self.returned(&mut partial, disk, None, returned);
        }
        report::report(self, input, partial)
    }
}

impl DiskPartial {
    fn disk(&mut self, key: DiskKey) -> &mut Disk {
        // There are few.
        let at = self.disks.iter().position(|disk| disk.key == key);
        let at = at.unwrap_or_else(|| {
            self.disks.push(Disk::new(key));
            self.disks.len() - 1
        });
        &mut self.disks[at]
    }

    fn sums(&mut self, thread: usize, disk: DiskKey) -> &mut Sums {
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        let disks = &mut self.threads[thread];
        let at = disks.iter().position(|of| of.0 == disk);
        let at = at.unwrap_or_else(|| {
            disks.push((disk, Sums::default()));
            disks.len() - 1
        });
        &mut disks[at].1
    }

    fn remap(&mut self, remap: Remap, bios: u64, bytes: u64) {
        match self.remaps.iter_mut().find(|known| known.0 == remap) {
            Some(known) => (known.1, known.2) = (known.1 + bios, known.2 + bytes),
            None => self.remaps.push((remap, bios, bytes)),
        }
    }

    fn loses(&mut self, trace: u32) {
        if let Err(at) = self.lossy.binary_search(&trace) {
            self.lossy.insert(at, trace);
        }
    }
}

impl DiskRules {
    /// How many of the slowest are kept: which threads are shown is known at the end.
    fn top(&self) -> usize {
        match self.selection.top() {
            0 => 0,
            rows if self.selection.threads.shows(&Thread::default()) => rows,
            _ => usize::MAX,
        }
    }

    /// Something happens to a request or bio; `None` if the event is too short.
    #[inline(always)]
    fn block(
        &self,
        partial: &mut DiskPartial,
        event: &Event<'_>,
        block: &Block,
        body: &mut Body<'_, '_>,
    ) -> Option<()> {
        use BlockStep::{Bio, Request};
        let trace = event.cpu.trace;
        let device = block.device(body)?;
        let disk = DiskKey { trace, device };
        let sectors = block.sectors.as_ref().and_then(|sectors| sectors.get(body));
        let place = Place {
            sector: block.sector.get(body)? as u64,
            sectors: sectors
                .and_then(|sectors| u64::try_from(sectors).ok())
                .unwrap_or(0),
        };
        let counts = self.selection.counts(event.time, event.cpu.cpu);
        match block.step {
            Request(RequestStep::Get | RequestStep::Insert) if place.sectors > 0 => {
                partial.queue.begin((disk, place.sector), event.time);
            }
            Request(RequestStep::Issue) => self.issue(partial, event, block, body, (disk, place)),
            Request(RequestStep::Complete) => self.complete(partial, event, block, body, (disk, place)),
            Request(RequestStep::Requeue) => {
                partial.disk(disk).counts.requeues += u64::from(counts);
                self.returns(partial, event, (disk, place), false);
            }
            Request(RequestStep::Merge) if counts => partial.disk(disk).counts.merged_requests += 1,
            Bio(BioStep::BackMerge | BioStep::FrontMerge) if counts => {
                partial.disk(disk).counts.merged_bios += 1;
            }
            Bio(BioStep::Remap) if counts => {
                let device = block.old_device(body)?;
                let from = DiskKey { trace, device };
                partial.remap(Remap { from, to: disk }, 1, place.bytes());
            }
            _ => {}
        }
        Some(())
    }

    fn issue(
        &self,
        partial: &mut DiskPartial,
        event: &Event<'_>,
        block: &Block,
        body: &mut Body<'_, '_>,
        (disk, place): (DiskKey, Place),
    ) {
        let Event { cpu, time, .. } = *event;
        let rwbs = block.rwbs.as_ref().and_then(|rwbs| rwbs.get(body));
        let rwbs = rwbs.unwrap_or_default();
        let thread = self.issuer(partial, event, block, body);
        let kind = Kind::of(rwbs, place);
        let place = place.of(kind);
        let issued = Issued {
            time,
            place,
            rwbs,
            thread,
        };
        if partial.requests.begin((disk, place.end()), issued) {
            partial.disk(disk).counts.replaced += 1;
        }
        if place.sectors > 0 {
            partial.disk(disk).depth.up(time, self.selection.window);
            let until = (time, cpu.cpu);
            match partial.queue.end((disk, place.sector), until) {
                Ended::Begun(since) => self.waited(partial, disk, Some(since), until),
                Ended::Nothing | Ended::Waits => {}
            }
        }
        let item = Work {
            disk,
            kind,
            bytes: place.bytes(),
        };
        let actor = match thread {
            Some(place) => Running::Thread(place),
            None => partial.tasks.running(cpu),
        };
        if let Some(told) = partial.tasks.tell_or_wait(actor, cpu, time, item) {
            self.work(partial, told);
        }
    }

    /// The thread that the event names.
    fn issuer(
        &self,
        partial: &mut DiskPartial,
        event: &Event<'_>,
        block: &Block,
        body: &mut Body<'_, '_>,
    ) -> Option<usize> {
        let own = block.tid.as_ref().and_then(|tid| tid.get(body));
        let tid = own.map(|tid| tid as i32).or_else(|| event.model.tid(body))?;
        Some(partial.tasks.place(event.cpu.trace, tid))
    }

    /// Who issued it.
    fn work(&self, partial: &mut DiskPartial, told: Told<Work>) {
        let Told {
            place,
            cpu,
            time,
            item,
            ..
        } = told;
        if !self.selection.counts(time, cpu.cpu) {
            return;
        }
        let unknown = |partial: &mut DiskPartial| partial.tasks.place(cpu.trace, ThreadKey::UNKNOWN);
        let place = place.unwrap_or_else(|| unknown(partial));
        let sums = partial.sums(place, item.disk);
        sums.requests += 1;
        sums.bytes[item.kind as usize] += item.bytes;
    }

    fn waited(&self, partial: &mut DiskPartial, disk: DiskKey, since: Option<i64>, until: (i64, u32)) {
        let Some(since) = since else { return };
        if self.selection.counts(until.0, until.1) {
            partial.disk(disk).waits.add(since.abs_diff(until.0));
        }
    }

    fn complete(
        &self,
        partial: &mut DiskPartial,
        event: &Event<'_>,
        block: &Block,
        body: &mut Body<'_, '_>,
        (disk, place): (DiskKey, Place),
    ) {
        let counts = self.selection.counts(event.time, event.cpu.cpu);
        let error = block.error.as_ref().and_then(|error| error.get(body));
        if counts && error.is_some_and(|error| error != 0) {
            partial.disk(disk).counts.errors += 1;
        }
        let rwbs = block.rwbs.as_ref().and_then(|rwbs| rwbs.get(body));
        let rwbs = rwbs.unwrap_or_default();
        let kind = Kind::of(rwbs, place);
        if kind == Kind::Command && rwbs.is_write() {
            // What asked for flushes before or behind its data, if it has any, is done with them.
            partial.disk(disk).counts.sequences += u64::from(counts);
            return;
        }
        let place = place.of(kind);
        self.returns(partial, event, (disk, place), true);
    }

    /// The driver has it no longer.
    fn returns(
        &self,
        partial: &mut DiskPartial,
        event: &Event<'_>,
        (disk, place): (DiskKey, Place),
        is_done: bool,
    ) {
        let returned = Returned {
            time: event.time,
            cpu: event.cpu.cpu,
            place,
            is_done,
        };
        if place.sectors > 0 {
            partial.disk(disk).depth.down(event.time, self.selection.window);
        }
        match partial.requests.end((disk, place.end()), returned) {
            Ended::Begun(issued) => self.returned(partial, disk, Some(issued), returned),
            Ended::Nothing => self.returned(partial, disk, None, returned),
            Ended::Waits => {}
        }
    }

    fn returned(&self, partial: &mut DiskPartial, disk: DiskKey, issued: Option<Issued>, returned: Returned) {
        if !returned.is_done || !self.selection.counts(returned.time, returned.cpu) {
            return;
        }
        let has_data = returned.place.sectors > 0;
        let is_of_it = |issued: &Issued| !has_data || issued.place.sector <= returned.place.sector;
        let Some(issued) = issued.filter(is_of_it) else {
            partial.disk(disk).counts.not_begun += 1;
            return;
        };
        let request = Request::new(disk, issued, returned);
        let bytes = request.place.bytes();
        let is_large = || !has_data || self.selection.sizes.contain(bytes);
        if !self.selection.limits.contain(request.latency) || !is_large() {
            return;
        }
        if issued.place.sectors > returned.place.sectors {
            partial.disk(disk).counts.parts += 1;
        }
        if let Some(ranges) = &self.ranges {
            if let Some((_, range)) = ranges.iter().find(|(of, _)| *of == disk && has_data) {
                partial.disk(disk).bins.add(*range, request.latency);
            }
            return;
        }
        if self.selection.shows(View::Log) {
            partial.log.push(request);
        }
        partial.disk(disk).add(request, self.top());
    }
}
