//! CPUs that wake-ups and migrations name.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_kernel_model::events::sched::WakeStep;
use tracebraid_kernel_model::{
    Body, EventModel, IntField, KernelEvent, MOST_CPUS, StreamModel, TraceModel,
};

/// Number of packets of a stream that are searched for CPUs, and of wake-ups and migrations that
/// are read in each. Few, since every report waits for them; more are read in traces with missing
/// CPUs ([`MORE_SAMPLES`]).
const SAMPLES: (usize, usize) = (3, 64);
/// Like [`SAMPLES`], once a missing CPU is found.
const MORE_SAMPLES: (usize, usize) = (64, usize::MAX);

/// Unrecorded CPUs that wake-ups and migrations in a sample of packets name: threads must have run
/// on them.
pub(crate) fn named_cpus(
    trace: &Trace,
    model: &TraceModel,
    is_recorded: impl Fn(u32) -> bool,
) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    for samples in [SAMPLES, MORE_SAMPLES] {
        for stream in &trace.streams {
            if let Some(events) = model.streams.get(stream.class) {
                names_of(trace, stream, (model, events), samples, &mut named);
            }
        }
        named.retain(|&cpu| !is_recorded(cpu));
        if named.is_empty() {
            break;
        }
    }
    named
}

/// The field with the CPU on which a thread is about to run. `sched_waking` contains the CPU where
/// it last ran, which is the fallback.
fn target<'m>(trace: &TraceModel, event: &'m EventModel) -> Option<&'m IntField> {
    let is_ready = |event: &EventModel| matches!(&event.event, KernelEvent::Wakeup(wakeup) if wakeup.step != WakeStep::Waking);
    match &event.event {
        KernelEvent::Wakeup(wakeup) if wakeup.step != WakeStep::Waking => wakeup.cpu.as_ref(),
        KernelEvent::Wakeup(wakeup) => {
            let events = trace.streams.iter().flat_map(StreamModel::events);
            wakeup
                .cpu
                .as_ref()
                .filter(|_| !events.into_iter().any(is_ready))
        }
        KernelEvent::Migrate(migrate) => Some(&migrate.to),
        _ => None,
    }
}

fn names_of(
    trace: &Trace,
    stream: &Stream,
    (model, events): (&TraceModel, &StreamModel),
    (samples, most): (usize, usize),
    named: &mut BTreeSet<u32>,
) {
    let Some(layout) = trace.layout.streams.get(stream.class) else {
        return;
    };
    let fields: Vec<Option<&IntField>> = (0..events.classes())
        .map(|class| target(model, events.event(class)?))
        .collect();
    if fields.iter().all(Option::is_none) {
        return;
    }
    let chosen = |class: usize| fields.get(class).is_some_and(Option::is_some);
    let table = Arc::new(ScanTable::new(layout, chosen));
    let count = stream.packets.len();
    let places: BTreeSet<usize> = match count {
        0 => return,
        _ if count <= samples => (0..count).collect(),
        _ => (0..samples)
            .map(|at| at * (count - 1) / (samples - 1))
            .collect(),
    };
    for index in places {
        let Some(mut scanner) = Scanner::new(trace, stream, table.clone(), index..index + 1) else {
            return;
        };
        if scanner.next_packet().is_none() {
            continue;
        }
        let mut left = most;
        loop {
            let progress = scanner.scan_up_to(left);
            left -= scanner.hits().len();
            scanner.batch().for_each(|class, _, cursor, slots| {
                let field = fields.get(class).copied().flatten();
                let cpu = field.and_then(|field| field.get(&mut Body::new(cursor, slots)));
                named.extend(
                    // Larger numbers come from damaged records.
                    cpu.and_then(|cpu| u32::try_from(cpu).ok())
                        .filter(|&cpu| cpu < MOST_CPUS),
                );
            });
            if progress == Progress::PacketEnd || left == 0 {
                break;
            }
        }
    }
}
