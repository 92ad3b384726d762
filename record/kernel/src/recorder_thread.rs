//! The recorder thread, from the start of a recording to its summary.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};

use crate::bpf::Programs;
use crate::calls::calls;
use crate::contexts::ContextLayout;
use crate::drain::{Drain, Setup};
use crate::encoder::Encoder;
use crate::error::RecordError;
use crate::lane::CpuQueue;
use crate::machine::{self, now};
use crate::options::Options;
use crate::output::Output;
use crate::process_numbers::Processes;
use crate::recorder::{Counters, Order, Summary};
use crate::reserve::Reserve;
use crate::schema::schema_with;
use crate::stacks::{Meanings, PerfStacks};
use crate::tasks::Proc;
use crate::thread_priority::{FIRST, hurry};
use crate::triggers::Triggers;

/// Records until the senders of `orders` are gone or a limit ends the recording. `started` receives
/// the processes of the machine as soon as events are being recorded.
pub(crate) fn record(
    options: &Options,
    directory: PathBuf,
    orders: &Receiver<Order>,
    started: &Sender<Processes>,
    counters: &Counters,
) -> Result<Summary, RecordError> {
    hurry(FIRST);
    let calls = calls();
    let contexts = ContextLayout::new(&options.contexts)?;
    let mut class = schema_with(&calls, &contexts);
    options.events.add_to(&mut class);
    let cpus = machine::cpus()?;
    let mut programs = match options.unprivileged {
        None => Some(Programs::load(options, &calls, &contexts, cpus)?),
        Some(_) => None,
    };
    let cpus = programs.as_ref().map_or(cpus, Programs::cpus);
    let processes = Processes::new(programs.as_ref())?;
    machine::describe(&mut class, options, processes.own());
    let begin = now();
    let own_context = contexts.own(processes.own_thread());
    let output = Output::new(
        &directory,
        &class,
        options,
        cpus,
        begin,
        own_context.clone(),
    )?;
    let lane = |_| RefCell::new(CpuQueue::new(own_context.clone()));
    let lanes: Vec<RefCell<CpuQueue>> = (0..cpus).map(lane).collect();
    let meanings = meanings(options, cpus, &lanes, &processes)?;
    let encoder = Encoder::new(&class, calls, options.events.clone());
    let samples = perf_stacks(options, cpus)?;
    if let Some(programs) = &mut programs {
        programs.attach(options)?;
    }
    let mut drain = Drain::new(Setup {
        rings: match &programs {
            Some(programs) => programs.rings()?,
            None => Vec::new(),
        },
        encoder: &encoder,
        contexts: &contexts,
        lanes: &lanes,
        output,
        meanings: meanings.as_ref(),
        pythons: programs.as_ref().and_then(Programs::pythons),
        samples,
        options,
        processes: processes.clone(),
        reserve: match options.keep {
            None => Reserve::new(&directory, cpus, options.packet_bytes),
            Some(_) => Reserve::none(),
        },
        triggers: Triggers::new(&options.triggering, &class, cpus),
        held: &counters.held,
        begin,
        own_context,
    });
    // The command has not been released yet, so the state dump contains it even if it runs only
    // briefly.
    drain.begin_dump();
    // The receiver may be gone; the recording is then stopped soon.
    let _ = started.send(processes);
    drain.run(orders, counters)?;
    let (mut lost, summary) = detach(programs.as_mut(), options, cpus);
    if let Some(samples) = drain.samples() {
        lost.iter_mut()
            .take(1)
            .for_each(|lost| *lost = samples.lost());
    }
    let disk_is_full = drain.disk_is_full();
    let has_waits = drain.samples().is_none_or(PerfStacks::has_waits);
    let (total, lost) = drain.finish(&lost, counters.end.get())?;
    let wants_files = options.state_dump || meanings.is_some();
    Ok(Summary {
        total,
        lost,
        disk_is_full,
        has_calls: encoder.has_calls(),
        lacks_proc: wants_files && Proc::mounted().is_none(),
        has_waits,
        ..summary
    })
}

/// Detaches the BPF programs; returns the number of lost events by CPU, and the programs' other
/// counters.
fn detach(programs: Option<&mut Programs>, options: &Options, cpus: usize) -> (Vec<u32>, Summary) {
    let Some(programs) = programs else {
        return (vec![0; cpus], Summary::default());
    };
    programs.detach();
    let (lost, unfollowed) = programs.lost();
    let (missed, omitted_returns) = match options.events.is_empty() {
        true => (0, 0),
        false => (programs.missed(), programs.omitted_returns()),
    };
    let summary = Summary {
        unfollowed,
        missing: programs.missing().to_vec(),
        refused: programs.refused().to_vec(),
        missed,
        omitted_returns,
        left_out: programs.left_out(),
        ended: programs.ended().to_vec(),
        ..Summary::default()
    };
    (lost, summary)
}

/// Starts to sample the stacks of a command by perf events, without privileges.
fn perf_stacks(options: &Options, cpus: usize) -> Result<Option<PerfStacks>, RecordError> {
    let (Some(pid), Some(stacks)) = (options.unprivileged, &options.stacks) else {
        return Ok(None);
    };
    let refused = |error: std::io::Error| RecordError::Sample(error.to_string());
    PerfStacks::open(pid, cpus, stacks)
        .map(Some)
        .map_err(refused)
}

/// Opens the sources of mappings and symbols of stacks, if stacks are recorded.
fn meanings(
    options: &Options,
    cpus: usize,
    lanes: &[RefCell<CpuQueue>],
    processes: &Processes,
) -> Result<Option<Meanings>, RecordError> {
    let (Some(stacks), Some(lane)) = (&options.stacks, lanes.first()) else {
        return Ok(None);
    };
    let pid = options.unprivileged;
    let meanings = Meanings::begin(stacks, cpus, pid, now(), &mut lane.borrow_mut())?;
    meanings.know(&processes.numbers()?);
    let targets = options
        .processes
        .iter()
        .flatten()
        .chain(&options.unprivileged);
    let targets = targets.filter_map(|&number| processes.initial(number));
    targets.for_each(|pid| meanings.read(pid));
    Ok(Some(meanings))
}
