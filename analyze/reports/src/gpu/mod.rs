//! Jobs of GPUs from the driver's side: how long each waited in the queues of driver and ring and
//! ran, how busy rings were, how long threads waited for jobs.
//!
//! A thread queues a job; the driver hands it to a ring of the device; the fence of the job is
//! signaled when it is complete. These events are matched over all CPUs in the order of time
//! (`matching`). When each job began to run follows from the order in which its ring completes jobs
//! (`sweep`); this needs the last job before a slice of time, so it is done after slices are
//! joined, for each ring beside the others. `docs/reference/gpu.md` defines each number.
//!
//! Source: D. Couturier, M. Dagenais: LTTng CLUST, Advances in Software Engineering, 2015, section
//! 2.5.

mod job;
mod matching;
mod report;
mod ring;
mod step;
mod sums;
mod sweep;

use serde::{Deserialize, Serialize};
use tracebraid_engine::{Composition, Slice};
use tracebraid_kernel_model::events::gpu::JobStep;
use tracebraid_kernel_model::{Body, KernelEvent};

use matching::{GpuMachine, Player};
use ring::MetRings;
use step::{GpuItem, Step, of_job, of_wait};
use sums::Sums;
use tracebraid_follow::{
    ByCpu, CpuKey, Event, Input, Items, Lane, Packet, People, PerCpu, Rules, Selection, Views,
    learn, learn_switch,
};
use tracebraid_tables::Report;

/// Analyses jobs of GPUs.
pub type GpuJobAnalysis = PerCpu<GpuRules>;

/// Rules of the report.
#[derive(Debug)]
pub struct GpuRules {
    selection: Selection,
}

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of CPUs, threads, rings,
/// jobs and waits in progress, and jobs whose completion was lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GpuPartial {
    people: People,
    /// The running thread on each CPU, if known.
    lanes: ByCpu<Lane<Option<i32>, Step>>,
    items: Items<GpuItem>,
    sums: Sums,
    /// State at the end of the played slices.
    machine: GpuMachine,
    /// True if this is the beginning of the trace.
    is_first: bool,
    /// Index in `people` of the last thread that was switched to.
    #[serde(skip)]
    near: usize,
    #[serde(skip)]
    rings: MetRings,
}

impl Rules for GpuRules {
    type Partial = GpuPartial;
    type Report = Report;

    type Options = Views;

    fn new(selection: &Selection, _: &Views) -> Self {
        GpuRules {
            selection: selection.clone(),
        }
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        use KernelEvent::*;
        matches!(
            event,
            GpuJob(_) | GpuWait(_) | Switch(_) | Fork(_) | Exec(_) | Rename(..) | ProcessState(_)
        )
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        let has = |is_wanted: fn(JobStep) -> bool| {
            has(&|event| matches!(event, KernelEvent::GpuJob(job) if is_wanted(job.step)))
        };
        (!has(JobStep::begins) || !has(JobStep::completes)).then_some(
            "no jobs of GPUs were recorded: record them with `tracebraid record --kernel gpu`",
        )
    }

    fn first(&self) -> GpuPartial {
        GpuPartial {
            is_first: true,
            ..GpuPartial::default()
        }
    }

    fn packet(&self, partial: &mut GpuPartial, packet: &Packet) {
        if packet.lost_before && packet.tells_switches {
            let time = packet.begin.unwrap_or(i64::MIN);
            partial.lanes.get(packet.cpu).goes_over(time, None);
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut GpuPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let step = match &model.event {
            KernelEvent::Switch(switch) => {
                let near = &mut partial.near;
                let threads = learn_switch(&mut partial.people, near, event, switch, body);
                if let Some((_, next)) = threads {
                    partial.lanes.get(cpu).goes_over(time, Some(next));
                }
                return;
            }
            KernelEvent::GpuJob(job) => of_job(&mut partial.rings, cpu.trace, (model, job), body),
            KernelEvent::GpuWait(wait) => of_wait(cpu.trace, (model, wait), body),
            KernelEvent::Exec(exec) => {
                let tid = exec.tid.as_ref().and_then(|tid| tid.get(body));
                // The thread may take over the id of its process's first thread.
                if let Some(tid) = tid {
                    partial.lanes.get(cpu).goes_over(time, Some(tid as i32));
                }
                return learn(&mut partial.people, model, cpu, time, body);
            }
            _ => return learn(&mut partial.people, model, cpu, time, body),
        };
        if let Some(step) = step {
            partial.step(cpu, time, step);
        }
    }

    fn exchange(&self, partial: &mut GpuPartial, resident: &mut GpuPartial) {
        std::mem::swap(&mut partial.sums, &mut resident.sums);
    }

    fn merge(&self, earlier: &mut GpuPartial, later: GpuPartial) {
        earlier.people.merge(later.people);
        let begin = |earlier: &mut GpuPartial, cpu, time, runs| {
            earlier.lanes.get(cpu).goes_over(time, runs);
        };
        later.lanes.join(earlier, GpuPartial::step, begin);
        earlier.items.append(later.items);
        earlier.sums.merge(later.sums);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut GpuPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, GpuPartial>> {
        let items = partial.items.cut(watermark);
        match items.is_empty() {
            true => Vec::new(),
            false => vec![Box::new(move |resident| {
                self.play(items, &mut resident.sums)
            })],
        }
    }

    fn follow_up<'a>(&'a self, partial: &mut GpuPartial) -> Vec<Slice<'a, GpuPartial>> {
        let due = std::mem::take(&mut partial.machine.due);
        let sweep = |piece: sweep::Piece| -> Slice<'a, GpuPartial> {
            Box::new(move |resident| {
                piece.play(&mut resident.sums);
                Box::new(|_| {})
            })
        };
        due.into_iter().map(sweep).collect()
    }

    fn finish(&self, input: &Input, mut partial: GpuPartial) -> Report {
        let items = std::mem::take(&mut partial.items);
        let mut sums = Sums::default();
        self.play(items, &mut sums)(&mut partial);
        let due = std::mem::take(&mut partial.machine.due);
        due.into_iter().for_each(|piece| piece.play(&mut sums));
        partial.sums.merge(sums);
        report::report(input, &partial)
    }
}

impl GpuRules {
    /// Plays a slice of time.
    fn play<'a>(
        &'a self,
        mut items: Items<GpuItem>,
        sums: &mut Sums,
    ) -> Composition<'a, GpuPartial> {
        let mut player = Player::new(self, sums);
        items.play(None, |cpu, time, item| player.play(cpu, time, item));
        let played = player.finish();
        Box::new(move |partial| played.compose(&mut partial.machine, &mut partial.sums))
    }
}

impl GpuPartial {
    /// A step of a job or wait.
    fn step(&mut self, cpu: CpuKey, time: i64, step: Step) {
        let lane = self.lanes.get(cpu);
        match lane.now_or_first(self.is_first, time) {
            Some(&mut runs) => self.items.push(cpu, time, GpuItem { step, runs }),
            None => lane.wait(time, step),
        }
    }
}
