//! Block devices: requests, their latency, and the number in progress at a time.
//!
//! A request is in the driver from its issue to the completion with the same end sector:
//! completions of its earlier parts have other end sectors. `docs/reference/disk.md` defines each
//! number.

mod depth;
mod device;
mod machine;
mod options;
mod report;
mod request;
mod step;
mod sums;

use std::sync::Arc;

pub use options::{DiskOptions, GROUPINGS};
use serde::{Deserialize, Serialize};
use tracebraid_engine::{Composition, Slice};
use tracebraid_kernel_model::events::block::{BioStep, Block, BlockStep, RequestStep};
use tracebraid_kernel_model::{Body, KernelEvent};

use machine::{DiskMachine, DiskSlice, Player};
use request::{DiskKey, SectorRange};
use step::{Deed, DiskItem, Work};
use sums::Sums;
use tracebraid_follow::{
    By, ByCpu, CpuKey, Event, Input, Items, Known, Lane, Packet, People, PerCpu, Recorded, Rules,
    Selection, learn, learn_switch,
};
use tracebraid_tables::Report;

/// Analyses requests to block devices.
pub type DiskAnalysis = PerCpu<DiskRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct DiskRules {
    selection: Selection,
    options: DiskOptions,
    /// Bounds of latencies, for a second pass.
    ranges: Option<Vec<(DiskKey, (u64, u64))>>,
    /// True if latencies are counted by thread.
    is_by_thread: bool,
    /// The recorded CPUs.
    recorded: Arc<Recorded>,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of CPUs, disks, threads
/// and requests in progress; with `--view log` also by that of requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiskPartial {
    people: People,
    /// The running thread on each CPU, if known.
    lanes: ByCpu<Lane<Option<i32>, Work>>,
    items: Items<DiskItem>,
    sums: Sums,
    /// State at the end of the played slices.
    machine: DiskMachine,
    /// Names of devices from the state dump.
    names: Vec<(DiskKey, Known<String>)>,
    /// Traces with lost events.
    lossy: Vec<u32>,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
}

impl Rules for DiskRules {
    type Partial = DiskPartial;
    type Report = Report;

    type Options = DiskOptions;

    fn new(selection: &Selection, options: &DiskOptions) -> Self {
        let ranges = options.views.ranges.as_ref();
        let of = |(name, range): (&String, &(u64, u64))| Some((DiskKey::from_name(name)?, *range));
        DiskRules {
            selection: selection.clone(),
            options: options.clone(),
            ranges: ranges.map(|ranges| ranges.iter().filter_map(of).collect()),
            is_by_thread: (options.views.groupings(GROUPINGS).iter())
                .any(|by| matches!(by, By::Process | By::Thread)),
            recorded: Arc::default(),
        }
    }

    fn knows(&mut self, recorded: &Arc<Recorded>) {
        self.recorded = recorded.clone();
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            Block(block) => is_wanted(block.step),
            event => matches!(
                event,
                StateDevice(_) | Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
            ),
        }
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
            is_first: true,
            ..DiskPartial::default()
        }
    }

    fn packet(&self, partial: &mut DiskPartial, packet: &Packet) {
        if packet.lost_before {
            partial.loses(packet.cpu.trace);
            if packet.tells_switches {
                let time = packet.begin.unwrap_or(i64::MIN);
                partial.lanes.get(packet.cpu).goes_over(time, None);
            }
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut DiskPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        match &model.event {
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near;
                if let Some((_, next)) =
                    learn_switch(&mut partial.people, near, event, switch, body)
                {
                    partial.lanes.get(cpu).goes_over(time, Some(next));
                }
            }
            KernelEvent::Block(block) => {
                if let Some(work) = work(event, block, body) {
                    partial.step(cpu, time, work);
                }
            }
            KernelEvent::StateDevice(state) => {
                let name = state.name.bytes(body);
                let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
                if let (Some(device), Some(value)) = (state.device(body), name) {
                    let trace = cpu.trace;
                    partial.name(DiskKey { trace, device }, Known { time, cpu, value });
                }
            }
            KernelEvent::Exec(exec) => {
                let tid = exec.tid.as_ref().and_then(|tid| tid.get(body));
                // The thread may take over the id of its process's first thread.
                if let Some(tid) = tid {
                    partial.lanes.get(cpu).goes_over(time, Some(tid as i32));
                }
                learn(&mut partial.people, model, cpu, time, body);
            }
            _ => learn(&mut partial.people, model, cpu, time, body),
        }
    }

    fn exchange(&self, partial: &mut DiskPartial, resident: &mut DiskPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut DiskPartial, later: DiskPartial) {
        earlier.people.merge(later.people);
        let begin = |earlier: &mut DiskPartial, cpu, time, runs| {
            earlier.lanes.get(cpu).goes_over(time, runs);
        };
        later.lanes.join(earlier, DiskPartial::step, begin);
        earlier.items.append(later.items);
        for (disk, name) in later.names {
            earlier.name(disk, name);
        }
        later
            .lossy
            .into_iter()
            .for_each(|trace| earlier.loses(trace));
        earlier.sums.merge(later.sums, self.top());
    }

    fn slices<'a>(
        &'a self,
        partial: &mut DiskPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, DiskPartial>> {
        let items = partial.items.cut(watermark);
        match items.is_empty() {
            true => Vec::new(),
            false => vec![Box::new(move |resident| {
                self.play(items, &mut resident.sums)
            })],
        }
    }

    fn finish(&self, input: &Input, mut partial: DiskPartial) -> Report {
        let items = std::mem::take(&mut partial.items);
        let mut sums = Sums::default();
        self.play(items, &mut sums)(&mut partial);
        partial.sums.merge(sums, self.top());
        report::report(self, input, partial)
    }
}

fn is_wanted(step: BlockStep) -> bool {
    use BlockStep::{Bio, Request};
    match step {
        Request(step) => step != RequestStep::Remap,
        Bio(step) => matches!(
            step,
            BioStep::BackMerge | BioStep::FrontMerge | BioStep::Remap
        ),
    }
}

impl DiskPartial {
    /// A step of a request or bio.
    fn step(&mut self, cpu: CpuKey, time: i64, work: Work) {
        let lane = self.lanes.get(cpu);
        match lane.now_or_first(self.is_first, time) {
            Some(&mut runs) => self.items.push(cpu, time, DiskItem { work, runs }),
            None => lane.wait(time, work),
        }
    }

    fn name(&mut self, disk: DiskKey, name: Known<String>) {
        match self.names.iter_mut().find(|known| known.0 == disk) {
            Some((_, known)) if (known.time, known.cpu) <= (name.time, name.cpu) => *known = name,
            Some(_) => {}
            None => self.names.push((disk, name)),
        }
    }

    fn loses(&mut self, trace: u32) {
        if let Err(at) = self.lossy.binary_search(&trace) {
            self.lossy.insert(at, trace);
        }
    }
}

impl DiskRules {
    /// Plays a slice of time.
    fn play<'a>(
        &'a self,
        mut items: Items<DiskItem>,
        sums: &mut Sums,
    ) -> Composition<'a, DiskPartial> {
        let mut slice = DiskSlice::default();
        let mut player = Player {
            rules: self,
            slice: &mut slice,
            sums,
        };
        items.play(None, |cpu, time, item| player.play(cpu, time, item));
        Box::new(move |partial| slice.compose(self, &mut partial.machine, &mut partial.sums))
    }
}

/// The step of a request or bio; `None` if the event record is too short.
fn work(event: &Event<'_>, block: &Block, body: &mut Body<'_, '_>) -> Option<Work> {
    use BlockStep::{Bio, Request};
    let device = block.device(body)?;
    let sectors = block.sectors.as_ref().and_then(|sectors| sectors.get(body));
    let sectors = sectors.and_then(|sectors| u64::try_from(sectors).ok());
    let place = SectorRange {
        sector: block.sector.get(body)? as u64,
        sectors: sectors.unwrap_or(0),
    };
    let rwbs = block.rwbs.as_ref().and_then(|rwbs| rwbs.get(body));
    let rwbs = rwbs.unwrap_or_default();
    let deed = match block.step {
        Request(RequestStep::Get | RequestStep::Insert) => Deed::Queue,
        Request(RequestStep::Issue) => {
            let own = block.tid.as_ref().and_then(|tid| tid.get(body));
            let tid = own.map(|tid| tid as i32).or_else(|| event.model.tid(body));
            Deed::Issue { rwbs, tid }
        }
        Request(RequestStep::Complete) => {
            let error = block.error.as_ref().and_then(|error| error.get(body));
            let failed = error.is_some_and(|error| error != 0);
            Deed::Complete { rwbs, failed }
        }
        Request(RequestStep::Requeue) => Deed::Requeue,
        Request(RequestStep::Merge) => Deed::MergeRequest,
        Bio(BioStep::BackMerge | BioStep::FrontMerge) => Deed::MergeBio,
        Bio(BioStep::Remap) => Deed::Remap {
            from: block.old_device(body)?,
        },
        _ => return None,
    };
    Some(Work {
        device,
        place,
        deed,
    })
}
