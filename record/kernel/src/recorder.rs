//! A recording while it runs: a thread that empties the rings.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::bpf::Programs;
use crate::calls::calls;
use crate::chunks::Rotated;
use crate::conditions::Undecided;
use crate::contexts::{ContextLayout, OwnContext, OwnThread};
use crate::encoder::Encoder;
use crate::end_mark::{self, EndReason, GivenReason};
use crate::error::RecordError;
use crate::lane::{AROUND_EVENT, AROUND_PACKET, Event, Lane, Origin};
use crate::machine::{self, now};
use crate::options::Options;
use crate::output::Output;
use crate::raw::{DECISION, Decision, Head};
use crate::reserve::Reserve;
use crate::ring::{Damaged, Ring};
use crate::schema::schema_with;
use crate::shared::kinds;
use crate::stacks::{self, Meanings, PerfStacks};
use crate::state;
use crate::tasks::{Proc, Task, TaskIterator, unfollowed_descendants};
use crate::triggers::{self, Held, Triggers};

/// A recording that runs. Dropping it stops it, without saying whether all was well.
#[derive(Debug)]
pub struct Recording {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<Result<Summary, RecordError>>>,
    progress: Arc<Counters>,
    processes: Processes,
}

/// Processes as the kernel numbers them.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The threads, and the map of their processes' numbers; `None` where BPF may not be used.
    kernel: Option<(TaskIterator, Arc<MapHandle>)>,
    own: u32,
}

/// What the thread does on request; it ends when there is no sender any more.
enum Order {
    /// To write what is in memory into that directory.
    Snapshot(SnapshotOrder),
    /// To begin a new chunk; the reply is the directory of the one that has ended.
    Rotate(Sender<Result<PathBuf, RecordError>>),
}

struct SnapshotOrder {
    directory: PathBuf,
    reply: Sender<Result<Progress, RecordError>>,
}

/// What has been recorded up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events that were written.
    pub events: u64,
    /// Events that found no room.
    pub lost: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Chunks that have begun; 0 if the trace is not written as chunks.
    pub chunks: u64,
}

/// What has been recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// In all.
    pub total: Progress,
    /// By CPU, events that found no room.
    pub lost: Vec<u64>,
    /// Chosen events that the kernel left out, since they interrupted others on their CPU.
    pub missed: u64,
    /// System calls and page faults that conditions left out.
    pub left_out: u64,
    /// Tracepoints that were wanted and that this kernel does not have.
    pub missing: Vec<String>,
    /// Processes that were made by others that are followed, and could not be followed: there were too many.
    pub unfollowed: u32,
    /// It ended because the disk was full: up to its end all that was lost is counted.
    pub disk_is_full: bool,
    /// A system call was recorded.
    pub has_calls: bool,
    /// Processes that were to be followed and had ended before the recording began.
    pub ended: Vec<u32>,
    /// No files of processes could be listed: there is no /proc.
    pub lacks_proc: bool,
    /// Stacks of waits were recorded, if they were wanted.
    pub has_waits: bool,
}

#[derive(Debug, Default)]
struct Counters {
    events: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
    chunks: AtomicU64,
    held: Mutex<Vec<Held>>,
    end: GivenReason,
}

/// How long the rings are left alone: with little to do, and with much.
const IDLE: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(5);
/// Events of a round from which on there is much to do.
const MANY: usize = 2000;
/// Events of one ring that are taken before others have their turn.
const AT_ONCE: usize = 1 << 16;

impl Recording {
    /// Begins to record into that directory, which is made. When this returns, events are being recorded.
    ///
    /// # Errors
    /// When the kernel does not let this process, or a file cannot be written.
    pub fn start(options: Options, directory: &Path) -> Result<Recording, RecordError> {
        let (orders, ordered) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let progress = Arc::new(Counters::default());
        let (counters, directory) = (progress.clone(), directory.to_owned());
        let thread = std::thread::Builder::new()
            .name("tracebraid-ring".into())
            .spawn(move || record(&options, directory, &ordered, &tell, &counters));
        let thread = thread.map_err(RecordError::NoThread)?;
        match told.recv() {
            Ok(processes) => Ok(Recording {
                orders: Some(orders),
                thread: Some(thread),
                progress,
                processes,
            }),
            // It ended before it could say that all is well.
            Err(_) => Err(match thread.join() {
                Ok(Err(error)) => error,
                _ => RecordError::Thread,
            }),
        }
    }

    /// The processes of the machine, and those that are followed.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// What has been recorded up to now.
    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// True if it has ended by itself: it cannot go on, and [`Recording::stop`] says why.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Conditions that have held since the last call: for each, what is in memory should be written.
    pub fn held(&self) -> Vec<Held> {
        self.progress
            .held
            .lock()
            .map_or_else(|_| Vec::new(), |mut held| std::mem::take(&mut held))
    }

    /// Writes what is in memory as a trace into that directory, which must not be there; the recording goes on.
    ///
    /// # Errors
    /// When the recording keeps nothing in memory, or has ended; when the trace cannot be written.
    pub fn snapshot(&self, directory: &Path) -> Result<Progress, RecordError> {
        let (reply, replied) = mpsc::channel();
        let order = Order::Snapshot(SnapshotOrder {
            directory: directory.to_owned(),
            reply,
        });
        let orders = self.orders.as_ref().ok_or(RecordError::Thread)?;
        orders.send(order).map_err(|_| RecordError::Thread)?;
        replied.recv().map_err(|_| RecordError::Thread)?
    }

    /// Ends the chunk now, and begins the next one; gives the directory of the one that has ended.
    ///
    /// # Errors
    /// When the recording is not written as chunks, or has ended.
    pub fn rotate(&self) -> Result<PathBuf, RecordError> {
        let (reply, replied) = mpsc::channel();
        let orders = self.orders.as_ref().ok_or(RecordError::Thread)?;
        orders
            .send(Order::Rotate(reply))
            .map_err(|_| RecordError::Thread)?;
        replied.recv().map_err(|_| RecordError::Thread)?
    }

    /// Ends the recording: the trace is whole when this returns.
    ///
    /// # Errors
    /// When the trace could not be written.
    pub fn stop(self) -> Result<Summary, RecordError> {
        self.end(EndReason::Asked)
    }

    /// Ends the recording as [`Recording::stop`]; the trace contains the reason.
    ///
    /// # Errors
    /// When the trace could not be written.
    pub fn end(mut self, reason: EndReason) -> Result<Summary, RecordError> {
        self.progress.end.set(reason);
        self.join()
    }

    fn join(&mut self) -> Result<Summary, RecordError> {
        drop(self.orders.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(RecordError::Thread),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.join();
        }
    }
}

impl Processes {
    /// Without BPF, event records have the numbers of the namespace of this process.
    fn unprivileged() -> Processes {
        Processes {
            kernel: None,
            own: std::process::id(),
        }
    }

    fn list(&self) -> Result<Vec<Task>, RecordError> {
        let tasks = self.kernel.as_ref().map(|(tasks, _)| tasks.list());
        Ok(tasks.transpose()?.unwrap_or_default())
    }

    /// Processes that are followed and still run, by their numbers in the initial PID namespace.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn followed(&self) -> Result<Vec<u32>, RecordError> {
        let followed = self.kernel.as_ref().map(|(tasks, _)| tasks.followed());
        Ok(followed.transpose()?.unwrap_or_default())
    }

    /// Processes that run and are not followed, though an ancestor is: they were there before the recording.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn unfollowed_descendants(&self) -> Result<Vec<u32>, RecordError> {
        Ok(unfollowed_descendants(&self.list()?, self.own))
    }

    /// Of each process of this PID namespace, or of one below: its number in the initial one, the number under /proc, and
    /// that in its own namespace, which is what the process itself knows.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn numbers(&self) -> Result<Vec<[u32; 3]>, RecordError> {
        let proc = Proc::mounted();
        let numbers = |task: Task| {
            let own = task.numbers().last().map_or(0, |numbers| numbers.pid);
            let number = task.number_in(proc?).filter(|_| task.is_leader())?;
            Some([task.pid, number, own])
        };
        Ok(self.list()?.into_iter().filter_map(numbers).collect())
    }

    /// The number in the initial PID namespace of a process with that number in the namespace of this process, even if the
    /// process has ended since the recording began.
    pub fn initial(&self, number: u32) -> Option<u32> {
        let (_, numbers) = match &self.kernel {
            Some(kernel) if self.own != std::process::id() => kernel,
            _ => return Some(number),
        };
        let found = numbers.lookup(&number.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(u32::from_ne_bytes(*found.first_chunk()?))
    }
}

impl Counters {
    fn get(&self) -> Progress {
        Progress {
            events: self.events.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            chunks: self.chunks.load(Ordering::Relaxed),
        }
    }

    fn set(&self, progress: Progress) {
        self.events.store(progress.events, Ordering::Relaxed);
        self.lost.store(progress.lost, Ordering::Relaxed);
        self.bytes.store(progress.bytes, Ordering::Relaxed);
        self.chunks.store(progress.chunks, Ordering::Relaxed);
    }
}

/// What the thread does.
fn record(
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
    let processes = match &programs {
        Some(programs) => Processes {
            kernel: Some((programs.tasks().clone(), Arc::new(programs.numbers()?))),
            own: programs.own_process(),
        },
        None => Processes::unprivileged(),
    };
    machine::describe(&mut class, options, processes.own);
    let begin = now();
    let own_context = contexts.own(own_thread(&processes));
    let output = Output::new(&directory, &class, options, cpus, begin, own_context.clone())?;
    let lane = |_| RefCell::new(Lane::new(own_context.clone()));
    let lanes: Vec<RefCell<Lane>> = (0..cpus).map(lane).collect();
    let meanings = meanings(options, cpus, &lanes)?;
    if let Some(meanings) = &meanings {
        meanings.know(&processes.numbers()?);
        let targets = options.processes.iter().flatten().chain(&options.unprivileged);
        let targets = targets.filter_map(|&number| processes.initial(number));
        targets.for_each(|pid| meanings.read(pid));
    }
    let encoder = Encoder::new(&class, calls, options.events.clone());
    let samples = perf_stacks(options, cpus)?;
    if let Some(programs) = &mut programs {
        programs.attach(options)?;
    }
    let mut drain = Drain {
        rings: match &programs {
            Some(programs) => programs.rings()?,
            None => Vec::new(),
        },
        encoder: &encoder,
        contexts: &contexts,
        lanes: &lanes,
        output,
        settled: 0,
        dump: None,
        snapshots: VecDeque::new(),
        meanings: meanings.as_ref(),
        pythons: programs.as_ref().and_then(Programs::pythons),
        samples,
        options,
        processes: processes.clone(),
        full_since: None,
        reserve: match options.keep {
            None => Reserve::new(&directory, cpus, options.packet_bytes),
            Some(_) => Reserve::none(),
        },
        triggers: Triggers::new(&options.triggering, &class, cpus),
        held: &counters.held,
        rotations: Rotations::new(options, begin),
        written_until: begin,
        unwritten: vec![0; lanes.len()],
        own_context,
        undecided: options.undecided(),
        decisions: Vec::new(),
    };
    // A command that waits to be released is among the threads that are there, however short it is.
    drain.begin_dump();
    // The receiver may be gone; then the recording is stopped soon.
    let _ = started.send(processes);
    drain.run(orders, counters)?;
    let (mut lost, mut unfollowed, mut missing) = (vec![0; cpus], 0, Vec::new());
    let (mut missed, mut left_out) = (0, 0);
    if let Some(programs) = &mut programs {
        programs.detach();
        (lost, unfollowed) = programs.lost();
        missing = programs.missing().to_vec();
        if !options.events.is_empty() {
            missed = programs.missed();
        }
        left_out = programs.left_out();
    }
    if let Some(samples) = &drain.samples {
        lost.iter_mut().take(1).for_each(|lost| *lost = samples.lost());
    }
    let disk_is_full = drain.disk_is_full();
    let has_waits = drain.samples.as_ref().is_none_or(PerfStacks::has_waits);
    let (total, lost) = drain.finish(&lost, counters.end.get())?;
    let wants_files = options.state_dump || meanings.is_some();
    Ok(Summary {
        total,
        lost,
        missed,
        left_out,
        missing,
        unfollowed,
        disk_is_full,
        has_calls: encoder.has_calls(),
        ended: programs.map_or_else(Vec::new, |programs| programs.ended().to_vec()),
        lacks_proc: wants_files && Proc::mounted().is_none(),
        has_waits,
    })
}

/// Begins to sample the stacks of a command, where BPF may not be used.
fn perf_stacks(options: &Options, cpus: usize) -> Result<Option<PerfStacks>, RecordError> {
    let (Some(pid), Some(stacks)) = (options.unprivileged, &options.stacks) else {
        return Ok(None);
    };
    let refused = |error: std::io::Error| RecordError::Sample(error.to_string());
    PerfStacks::open(pid, cpus, stacks).map(Some).map_err(refused)
}

/// Priorities (nice values) of the thread that empties rings, which overflow if it is late, and of the one that
/// looks around.
const FIRST: i32 = -20;
const USUAL: i32 = 0;

/// Sets this thread's priority; without the privilege it stays.
fn hurry(nice: i32) {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice);
}

fn own_thread(processes: &Processes) -> OwnThread {
    let tasks = processes.list().unwrap_or_default();
    let own = tasks.iter().find(|task| task.pid == processes.own);
    OwnThread {
        process: processes.own,
        parent: own.map_or(0, |task| task.parent),
    }
}

fn take(
    record: &[u8],
    lane: &mut Lane,
    encoder: &Encoder,
    contexts: &ContextLayout,
    meanings: Option<&Meanings>,
    decisions: &mut Vec<Decision>,
) {
    let Some((context, record)) = record.split_at_checked(contexts.padded_bytes()) else {
        return;
    };
    let Some((head, rest)) = Head::split(record) else {
        return;
    };
    let context = context.get(..contexts.bytes()).unwrap_or_default();
    if let Some(meanings) = meanings {
        meanings.symbols(&head, rest, lane);
    }
    if head.kind == DECISION {
        decisions.extend(Decision::new(rest));
        return;
    }
    let origin = match head.is_undecided() {
        true => Origin::Undecided,
        false => Origin::Kernel,
    };
    lane.add_with_context(head.time, Some(head.lost), context, origin, |to| {
        encoder.encode(&head, rest, to)
    });
}

/// An event of the state dump.
struct Found {
    time: u64,
    id: u16,
    payload: Vec<u8>,
}

/// Listens to what addresses of stacks mean, if any are recorded here.
fn meanings(
    options: &Options,
    cpus: usize,
    lanes: &[RefCell<Lane>],
) -> Result<Option<Meanings>, RecordError> {
    let (Some(stacks), Some(lane)) = (&options.stacks, lanes.first()) else {
        return Ok(None);
    };
    let pid = options.unprivileged;
    Meanings::begin(stacks, cpus, pid, now(), &mut lane.borrow_mut()).map(Some)
}

/// Looks at what is there in a thread of its own: with ten thousand processes that takes its time. `mappings` is the id
/// of their events, if they are wanted, of the processes that are followed or of all.
fn dump_state(options: &Options, mappings: Option<u16>, tasks: Vec<Task>) -> Receiver<Found> {
    let unprivileged = options.unprivileged;
    struct Tell(Sender<Found>);
    impl state::Sink for Tell {
        fn event_at(&mut self, time: u64, id: u16, payload: &[u8]) {
            let payload = payload.to_vec();
            // The receiver is gone when the recording has been stopped.
            let _ = self.0.send(Found { time, id, payload });
        }
    }
    let (is_wanted, is_of_followed) = (options.state_dump, options.processes.is_some());
    let (tell, told) = mpsc::channel();
    // Without the thread nobody tells anything, and that is the end of it.
    let _ = std::thread::Builder::new()
        .name("tracebraid-dump".into())
        .spawn(move || {
            hurry(USUAL);
            let mut tell = Tell(tell);
            let proc = Proc::mounted();
            if let Some(id) = mappings {
                let mut files = stacks::FilesBefore::default();
                let processes = match unprivileged {
                    Some(pid) => vec![state::Process { pid, number: pid }],
                    None => state::processes(&tasks, proc, is_of_followed),
                };
                stacks::dump(&processes, |mapping| {
                    state::Sink::event(&mut tell, id, &mapping.payload());
                    if let Some(payload) = files.payload(&mapping) {
                        state::Sink::event(&mut tell, kinds::TRACEBRAID_MAP_FILE, &payload);
                    }
                });
            }
            if is_wanted {
                state::dump(&tasks, proc, &mut tell);
            }
        });
    told
}

/// Empties the rings.
struct Drain<'d> {
    /// By CPU.
    rings: Vec<Ring>,
    encoder: &'d Encoder,
    contexts: &'d ContextLayout,
    lanes: &'d [RefCell<Lane>],
    output: Output,
    /// What came before can hardly be overtaken any more.
    settled: u64,
    /// What is being told of what is there.
    dump: Option<Receiver<Found>>,
    /// Orders that wait until that has been told once more.
    snapshots: VecDeque<SnapshotOrder>,
    meanings: Option<&'d Meanings>,
    /// Where BPF programs look up interpreters of Python.
    pythons: Option<MapHandle>,
    /// Stacks of a command that is recorded without privileges.
    samples: Option<PerfStacks>,
    options: &'d Options,
    processes: Processes,
    /// When what happened had no room any more.
    full_since: Option<u64>,
    /// For the end, if the disk is full before.
    reserve: Reserve,
    triggers: Option<Triggers>,
    held: &'d Mutex<Vec<Held>>,
    /// When new chunks begin.
    rotations: Rotations,
    /// Up to when everything has been written.
    written_until: u64,
    /// By CPU, events before the end that a full disk had no room for.
    unwritten: Vec<u64>,
    /// The context of the recorder's own events.
    own_context: OwnContext,
    undecided: Undecided,
    /// Decisions about entries of calls that have not come yet.
    decisions: Vec<Decision>,
}

/// When new chunks begin.
struct Rotations {
    /// When the chunk at hand began.
    begun: u64,
    /// When the next one begins by time.
    next: Option<u64>,
    /// Time of a request for the next one, and the callers that wait for it.
    asked: Option<u64>,
    callers: Vec<Sender<Result<PathBuf, RecordError>>>,
    /// Bytes that a chunk may have, however little is asked for: symbols alone may be larger than that.
    least_bytes: u64,
    /// What was in the rings at that time has been taken.
    emptied: u64,
    /// The recording ends.
    is_over: bool,
}

/// An event may be put into its ring later than it looked at the clock: by less than that.
const LATE: u64 = 200_000_000;

impl Rotations {
    fn new(options: &Options, begin: u64) -> Rotations {
        let mut rotations = Rotations {
            begun: begin,
            next: Some(begin),
            asked: None,
            callers: Vec::new(),
            least_bytes: 0,
            emptied: 0,
            is_over: false,
        };
        rotations.has_begun(begin, 0, options);
        rotations
    }

    /// Notes the time at which a chunk began, and its size in bytes.
    fn has_begun(&mut self, time: u64, bytes: u64, options: &Options) {
        self.begun = time;
        self.asked = None;
        let rotation = options.rotation.as_ref();
        let chunk_bytes = rotation.and_then(|rotation| rotation.bytes).unwrap_or(0);
        self.least_bytes = bytes + chunk_bytes / 4;
        let period = rotation.and_then(|rotation| rotation.period);
        let period = period.map(|period| period.as_nanos() as u64);
        // From the time at which it was due, so that chunks do not drift. One that began for another reason has its whole
        // length; after a stop of this process, chunks that would be empty are left out.
        self.next = period.map(|period| match self.next {
            Some(due) if due == time && due + 2 * period > now() => due + period,
            _ => time.max(now().saturating_sub(period)) + period,
        });
    }

    /// Whether all events of that time have been taken, even if there was none since.
    fn is_past(&self, time: u64) -> bool {
        time + LATE <= self.emptied
    }
}

/// After that long, what has been recorded is written even if it is little: it shall survive this process.
const LONGEST: Duration = Duration::from_secs(1);

impl Drain<'_> {
    /// Goes on until it is told to stop, and what is there has been told of.
    fn run(&mut self, orders: &Receiver<Order>, counters: &Counters) -> Result<(), RecordError> {
        let mut pause = BUSY;
        let mut is_stopped = false;
        let mut flushed = Instant::now();
        loop {
            match orders.recv_timeout(pause) {
                Ok(order) => self.order(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_stopped = true,
            }
            if is_stopped {
                // Nobody can say anything any more, which takes no time.
                std::thread::sleep(BUSY);
            }
            pause = match self.round()? {
                AT_ONCE.. => Duration::ZERO,
                MANY.. => BUSY,
                // Rings of samples are small.
                _ if self.samples.is_some() => BUSY,
                _ => IDLE,
            };
            if flushed.elapsed() >= LONGEST {
                self.flush()?;
                flushed = Instant::now();
            }
            counters.set(self.output.progress());
            if self.full_since.is_some() {
                return Ok(());
            }
            if self.dump.is_none() {
                self.snapshot()?;
                if is_stopped {
                    return self.last_dump(counters);
                }
            }
        }
    }

    /// Of a trace that no longer has its beginning.
    fn dump_again(&mut self) {
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.again(now(), &mut lane.borrow_mut());
        }
        self.begin_dump();
    }

    /// Begins to tell what is there.
    fn begin_dump(&mut self) {
        let mappings = self.meanings.map(|_| kinds::TRACEBRAID_MAP_LOAD);
        if !self.options.state_dump && mappings.is_none() {
            return;
        }
        // The threads are those of now (a microsecond each); files and mappings take their time.
        let tasks = self.processes.list().unwrap_or_default();
        self.dump = Some(dump_state(self.options, mappings, tasks));
    }

    /// Takes what is in the rings, and writes what is settled; gives how many events the fullest ring had.
    fn round(&mut self) -> Result<usize, RecordError> {
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.mappings(&mut lane.borrow_mut(), |number| self.processes.initial(number));
        }
        let before = now();
        let most = self.take_all()?;
        if most < AT_ONCE {
            self.rotations.emptied = before;
        }
        self.take_samples();
        self.take_found();
        let newest = self
            .lanes
            .iter()
            .map(|lane| lane.borrow().newest())
            .max()
            .unwrap_or(0);
        let until = self.decided_until(self.settled);
        // Going over all that waits takes its time.
        if until >= self.written_until + self.undecided.delay_ns / 8 || self.undecided.delay_ns == 0 {
            self.write(Some(until))?;
        }
        self.settled = newest;
        Ok(most)
    }

    fn take_samples(&mut self) {
        if let (Some(samples), Some(lane)) = (&mut self.samples, self.lanes.first()) {
            samples.take(&mut lane.borrow_mut());
        }
    }

    /// Takes what is in the rings, in turn; gives how many events the fullest one had.
    fn take_all(&mut self) -> Result<usize, Damaged> {
        let mut most = 0;
        for (ring, lane) in self.rings.iter_mut().zip(self.lanes) {
            let mut lane = lane.borrow_mut();
            let taken = ring.consume(AT_ONCE, |record| {
                take(
                    record,
                    &mut lane,
                    self.encoder,
                    self.contexts,
                    self.meanings,
                    &mut self.decisions,
                );
            })?;
            most = most.max(taken);
        }
        self.decide();
        Ok(most)
    }

    /// Does what was decided about entries of calls. A decision comes by another ring than its entry if the thread has moved
    /// to another CPU, so it may be met first.
    fn decide(&mut self) {
        let lanes = self.lanes;
        let oldest = self.settled.saturating_sub(2 * self.undecided.delay_ns);
        self.decisions.retain(|decision| {
            let lane = lanes.get(decision.cpu as usize);
            let is_done =
                lane.is_none_or(|lane| lane.borrow_mut().decide(decision.entered, decision.is_wanted));
            !is_done && decision.entered >= oldest
        });
    }

    /// Until when events can be written if those before a time have come.
    fn decided_until(&self, until: u64) -> u64 {
        let Undecided {
            hold_ns,
            is_kept,
            delay_ns,
        } = self.undecided;
        if hold_ns > 0 && !is_kept {
            let end = until.saturating_sub(hold_ns);
            self.lanes
                .iter()
                .for_each(|lane| lane.borrow_mut().leave_out(0, end));
        }
        until.saturating_sub(delay_ns)
    }

    /// Takes what has been told of what is there.
    fn take_found(&mut self) {
        let (Some(dump), Some(lane)) = (&self.dump, self.lanes.first()) else {
            return;
        };
        let mut lane = lane.borrow_mut();
        loop {
            match dump.try_recv() {
                Ok(Found { time, id, payload }) => {
                    self.rotations.least_bytes += payload.len() as u64 + AROUND_EVENT;
                    lane.add(time, None, |to| {
                        to.extend_from_slice(&payload);
                        Some(id)
                    });
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.dump = None;
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Snapshot(order) => self.snapshots.push_back(order),
            Order::Rotate(reply) if self.output.chunk().is_none() => {
                let _ = reply.send(Err(RecordError::NoChunks));
                return;
            }
            Order::Rotate(reply) => {
                self.rotations.asked.get_or_insert_with(now);
                self.rotations.callers.push(reply);
                return;
            }
        }
        if self.output.keeps() && self.dump.is_none() {
            self.dump_again();
        }
    }

    /// Does what waited for the dump.
    fn snapshot(&mut self) -> Result<(), RecordError> {
        while let Some(SnapshotOrder { directory, reply }) = self.snapshots.pop_front() {
            // All that has come by now, and is decided.
            let delay = self.undecided.delay_ns;
            let until = (delay > 0).then(|| self.settled.saturating_sub(delay));
            self.write(until)?;
            let _ = reply.send(self.output.snapshot(&directory).map_err(RecordError::from));
        }
        Ok(())
    }

    /// Of a trace that no longer has its beginning, tells once more what is there.
    fn last_dump(&mut self, counters: &Counters) -> Result<(), RecordError> {
        if !self.output.keeps() {
            return Ok(());
        }
        self.dump_again();
        while self.dump.is_some() {
            std::thread::sleep(BUSY);
            self.round()?;
            counters.set(self.output.progress());
        }
        Ok(())
    }

    /// Writes what happened before a time, or everything; as far as there is room for it.
    fn write(&mut self, until: Option<u64>) -> Result<(), RecordError> {
        if self.full_since.is_some() {
            return Ok(());
        }
        if let Some(meanings) = self.meanings {
            meanings.unwind(self.lanes, until);
            self.put_pythons(meanings);
        }
        self.rotate(until)?;
        if self.full_since.is_some() {
            return Ok(());
        }
        let room = |limit: u64| self.room(limit, self.output.file_bytes());
        self.full_since = self.options.limit.and_then(|limit| self.over(room(limit), until));
        self.release(self.full_since.or(until))?;
        self.trigger()
    }

    /// Records a condition that held.
    fn trigger(&mut self) -> Result<(), RecordError> {
        let Some((time, held)) = self.triggers.as_mut().and_then(|triggers| triggers.settle(now())) else {
            return Ok(());
        };
        if self.rotations.is_over {
            return Ok(());
        }
        let event = Event {
            time,
            lost: self.lanes.first().map_or(0, |lane| lane.borrow().lost()),
            id: kinds::TRACEBRAID_TRIGGER,
            payload: &[&*self.own_context.bytes, &triggers::payload(&held)].concat(),
        };
        self.output.event(0, &event)?;
        if let Ok(mut all) = self.held.lock() {
            all.push(held);
        }
        Ok(())
    }

    /// Writes what happened before a time, or everything, into the chunk at hand.
    fn release(&mut self, until: Option<u64>) -> Result<(), RecordError> {
        let (output, reserve, triggers) = (&mut self.output, &mut self.reserve, &mut self.triggers);
        let context_bytes = self.contexts.bytes();
        let mut is_full = false;
        for ((cpu, lane), unwritten) in self.lanes.iter().enumerate().zip(&mut self.unwritten) {
            lane.borrow_mut().release(until, |event| {
                if let Some(triggers) = triggers {
                    let payload = event.payload.get(context_bytes..).unwrap_or_default();
                    triggers.event(cpu, &Event { payload, ..event });
                }
                if !is_full {
                    match output.event(cpu, &event) {
                        Err(error) if reserve.gives(&error) => is_full = true,
                        result => return result,
                    }
                }
                *unwritten += 1;
                Ok(())
            })?;
        }
        self.written_until = until.unwrap_or_else(now).max(self.written_until);
        if is_full {
            self.full_since = Some(self.written_until);
        }
        Ok(())
    }

    /// Begins new chunks where they are due before `until`. While the state at the beginning of a chunk is being recorded, no
    /// other one begins: each chunk has all of it.
    fn rotate(&mut self, until: Option<u64>) -> Result<(), RecordError> {
        while self.dump.is_none()
            && self.full_since.is_none()
            && let Some(time) = self.due(until)
        {
            if let (Some(meanings), true) = (self.meanings, until.is_some_and(|until| until < time)) {
                meanings.unwind(self.lanes, Some(time));
            }
            self.release(Some(time))?;
            if self.full_since.is_none() {
                self.begin_chunk(time)?;
            }
        }
        Ok(())
    }

    /// When the chunk has to end, if all that happened earlier has been taken.
    fn due(&self, until: Option<u64>) -> Option<u64> {
        let options = self.options.rotation.filter(|_| !self.rotations.is_over)?;
        let rotations = &self.rotations;
        let is_settled = |time: &u64| until.is_some_and(|until| *time <= until) || rotations.is_past(*time);
        let timed = rotations.asked.into_iter().chain(rotations.next);
        let timed = timed.min().filter(is_settled);
        let bytes = options.bytes.map(|bytes| bytes.max(rotations.least_bytes));
        let full = bytes.and_then(|bytes| self.over(self.room(bytes, self.output.chunk_bytes()), until));
        // Without an event there is no reason to begin another one.
        let full = full.filter(|time| *time > rotations.begun);
        // Events of the state dump come late: the first one that does not fit may be older than those that have been
        // written, which the ended chunk must not reach beyond.
        let due = timed.into_iter().chain(full).min();
        due.map(|time| time.max(self.written_until))
    }

    fn begin_chunk(&mut self, time: u64) -> Result<(), RecordError> {
        let ended = self.output.chunk().map(Path::to_owned).unwrap_or_default();
        let (output, reserve) = (&mut self.output, &mut self.reserve);
        let mut is_full = output.rotate(time, &mut |error| reserve.gives(error))? == Rotated::DiskFull;
        // Earlier than all other events of the chunk, and not by the lane: its next events may have been taken already.
        if let (Some(meanings), Some(first), false) = (self.meanings, self.lanes.first(), is_full) {
            let mut lane = Lane::new(self.own_context.clone());
            meanings.again(time, &mut lane);
            let lost = first.borrow().lost();
            lane.release(None, |event| match output.event(0, &Event { lost, ..event }) {
                Err(error) if is_full || reserve.gives(&error) => {
                    is_full = true;
                    Ok(())
                }
                result => result,
            })?;
        }
        if is_full {
            self.full_since = Some(time);
            return Ok(());
        }
        self.begin_dump();
        self.rotations
            .has_begun(time, self.output.chunk_bytes(), self.options);
        for caller in self.rotations.callers.drain(..) {
            // The caller may be gone.
            let _ = caller.send(Ok(ended.clone()));
        }
        Ok(())
    }

    /// Lets BPF programs read the frames of interpreters that have been found. Where there is no room for more, stacks
    /// have the interpreters' own frames.
    fn put_pythons(&self, meanings: &Meanings) {
        for (pid, python) in meanings.pythons() {
            if let Some(map) = &self.pythons {
                let _ = map.update(&pid.to_ne_bytes(), &python.encoded, MapFlags::ANY);
            }
        }
    }

    /// Has what was written survive this process.
    fn flush(&mut self) -> Result<(), RecordError> {
        match self.output.flush() {
            Err(error) if self.reserve.gives(&error) => self.full_since = Some(self.written_until),
            result => result?,
        }
        Ok(())
    }

    /// Whether the disk had no room for what happened.
    fn disk_is_full(&self) -> bool {
        self.reserve.is_given()
    }

    /// Bytes of events that files of that size have room for, given a limit.
    fn room(&self, limit: u64, file_bytes: u64) -> u64 {
        // Each CPU ends its packet a few times before this is asked again.
        let packets = 4 * self.lanes.len() as u64 * AROUND_PACKET + end_mark::BYTES;
        limit.saturating_sub(file_bytes + packets)
    }

    /// The time of the first event before `until` that there is no room for. All CPUs' events end there, so
    /// that the trace does not end earlier on one of them.
    fn over(&self, mut room: u64, until: Option<u64>) -> Option<u64> {
        let sum = |lane: &RefCell<Lane>| lane.borrow().sizes(until).map(|(_, size)| size).sum::<u64>();
        if self.lanes.iter().map(sum).sum::<u64>() <= room {
            return None;
        }
        let mut waiting = Vec::new();
        for lane in self.lanes {
            waiting.extend(lane.borrow().sizes(until));
        }
        waiting.sort_unstable();
        let over = waiting.iter().find(|&&(_, size)| match room.checked_sub(size) {
            Some(left) => {
                room = left;
                false
            }
            None => true,
        });
        over.map(|&(time, _)| time)
    }

    /// Ends the trace, for that reason if no limit is one; gives what was recorded, and by CPU what was lost.
    fn finish(mut self, lost: &[u32], given: EndReason) -> Result<(Progress, Vec<u64>), RecordError> {
        self.rotations.is_over = true;
        // Programs that were running when they were detached have put their last records by now.
        std::thread::sleep(BUSY);
        while self.take_all()? == AT_ONCE {
            self.write(Some(0))?;
        }
        self.take_samples();
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.rest(&mut lane.borrow_mut(), |number| self.processes.initial(number));
        }
        // Calls that go on are recorded if they have taken long enough.
        let newest = self.lanes.iter().map(|lane| lane.borrow().newest()).max();
        let from = match self.undecided.is_kept {
            true => newest.unwrap_or(0).saturating_sub(self.undecided.hold_ns),
            false => 0,
        };
        self.lanes
            .iter()
            .for_each(|lane| lane.borrow_mut().leave_out(from, u64::MAX));
        self.write(None)?;
        let mut all = Vec::new();
        let lost = self.unwritten.iter().zip(lost);
        for (cpu, (lane, (unwritten, &lost))) in self.lanes.iter().zip(lost).enumerate() {
            let lost = match self.full_since {
                None => lane.borrow_mut().lost_at_end(lost),
                Some(_) => lane.borrow().lost() + unwritten,
            };
            self.output.lost(cpu, lost)?;
            all.push(lost);
        }
        let reason = match self.full_since {
            Some(_) if self.reserve.is_given() => EndReason::DiskFull,
            Some(_) => EndReason::Limit,
            None => given,
        };
        let end = self.full_since.unwrap_or_else(now);
        Ok((self.output.finish(end, reason)?, all))
    }
}
