//! The BPF programs: loading, attaching, and reading their counters.

mod prepare;

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libbpf_rs::{
    KprobeOpts, Link, MapCore, MapFlags, MapHandle, MapImpl, Object, ObjectBuilder, PerfEventOpts,
    PrintLevel, Program, ProgramMut, UprobeOpts,
};

use object::Object as _;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};

use crate::calls::Calls;
use crate::chosen::{ChosenEvents, Point};
use crate::conditions::TICK_NS;
use crate::contexts::ContextLayout;
use crate::error::RecordError;
use crate::groups::Group;
use crate::options::Options;
use crate::plan::Syscalls;
use crate::recorder::RefusedEvent;
use crate::ring::{Region, Ring, RingShape, rings};
use crate::shared::{CPU_SIZE, MOST_CPUS};
use crate::stacks::{Stacks, cpu_clocks, readiness};
use crate::tasks::{TaskIterator, resolve, unfollowed_descendants};
use crate::trial::Trial;
use crate::uring::Completion;

use prepare::{choose, set_contexts, set_options, size_chosen, size_rings, size_scratch};

/// The loaded BPF programs; they run as long as this value lives.
pub(crate) struct Programs {
    object: Object,
    cpus: usize,
    ring_shape: RingShape,
    links: Vec<Link>,
    /// See [`readiness`].
    readiness: Option<Counter>,
    /// Performance counters of contexts, which count as long as these live.
    _counters: Vec<Counter>,
    /// Requested tracepoints that this kernel does not have.
    missing: Vec<String>,
    /// Chosen events that the kernel rejected.
    refused: Vec<RefusedEvent>,
    tasks: TaskIterator,
    /// Id of this process in the initial PID namespace.
    own_process: u32,
    /// Processes to follow that had ended.
    ended: Vec<u32>,
}

/// Environment variable that makes the loader print its steps, and the kernel's reason for
/// rejecting a program.
const LOG: &str = "TRACEBRAID_BPF_LOG";

fn print(_: PrintLevel, text: String) {
    eprint!("{text}");
}

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));

/// Type information of the running kernel.
const BTF: &str = "/sys/kernel/btf/vmlinux";

impl Programs {
    /// Loads the requested programs for a machine with `cpus` CPUs. Events are recorded from
    /// [`Programs::attach`] on.
    pub(crate) fn load(
        options: &Options,
        calls: &Calls,
        contexts: &ContextLayout,
        cpus: usize,
    ) -> Result<Programs, RecordError> {
        if !Path::new(BTF).exists() {
            return Err(RecordError::NoBtf);
        }
        let btf = std::fs::read(BTF).unwrap_or_default();
        libbpf_rs::set_print(std::env::var_os(LOG).map(|_| (PrintLevel::Debug, print as _)));
        let open = ObjectBuilder::default().open_memory(OBJECT);
        let mut open = open.map_err(|error| RecordError::Load(error.to_string()))?;
        let has_rings = options.events.has_own_like("io_uring_");
        let rings_end = match options.groups.contains(&Group::Work) || has_rings {
            true => Completion::of_kernel(),
            false => None,
        };
        let missing = choose(&mut open, options, &btf, rings_end.is_some());
        size_chosen(&mut open, options)?;
        let cpus = cpus.min(MOST_CPUS);
        let ring_shape = RingShape::new(
            options.ring_bytes,
            options.stacks.as_ref().map_or(0, Stacks::longer),
        );
        size_rings(&mut open, ring_shape, cpus)?;
        set_options(&mut open, options, &btf, rings_end)?;
        let counters = contexts.open_counters(cpus)?;
        set_contexts(&mut open, contexts, cpus)?;
        size_scratch(&mut open, options.stacks.as_ref(), cpus)?;
        let mut object = open.load().map_err(load_error)?;
        let counters = put_counters(&object, counters)?;
        let tasks = list_tasks(&mut object)?;
        let mut programs = Programs {
            object,
            cpus,
            ring_shape,
            links: Vec::new(),
            readiness: None,
            _counters: counters,
            missing,
            refused: Vec::new(),
            tasks,
            own_process: 0,
            ended: Vec::new(),
        };
        programs.fill(options, calls)?;
        Ok(programs)
    }

    /// Number of CPUs that have a ring.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus
    }

    /// The rings, by CPU. Must be called only once: each ring has one consumer.
    pub(crate) fn rings(&self) -> Result<Vec<Ring>, RecordError> {
        let chunks = self.ring_shape.element_bytes() * self.ring_shape.elements(self.cpus);
        let chunks = self.region("rings", chunks)?;
        let states = (MOST_CPUS * CPU_SIZE) as u64;
        let states = self.region(".data.cpus", states)?;
        Ok(rings(chunks, states, self.ring_shape, self.cpus))
    }

    /// Maps the memory of a map of `bytes` bytes.
    fn region(&self, name: &str, bytes: u64) -> Result<Region, RecordError> {
        let map = self.map(name)?;
        Region::of_map(&map.as_fd().as_raw_fd(), bytes)
            .map_err(|error| RecordError::Load(format!("cannot map the rings: {error}")))
    }

    fn map(&self, name: &str) -> Result<MapImpl<'_>, RecordError> {
        let found = self.object.maps().find(|map| is_named(map.name(), name));
        found.ok_or_else(|| no_map(name))
    }

    /// The content of a section's map; empty if it cannot be read.
    fn section(&self, name: &str) -> Vec<u8> {
        let map = self.map(name).ok();
        let bytes = map.and_then(|map| {
            map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
                .ok()
                .flatten()
        });
        bytes.unwrap_or_default()
    }

    pub(crate) fn tasks(&self) -> &TaskIterator {
        &self.tasks
    }

    /// Id of this process in the initial PID namespace.
    pub(crate) fn own_process(&self) -> u32 {
        self.own_process
    }

    /// Processes to follow that had ended, by their ids in the namespace of this process.
    pub(crate) fn ended(&self) -> &[u32] {
        &self.ended
    }

    /// The map from process ids in the namespace of this process to ids in the initial namespace;
    /// empty if both are the same.
    pub(crate) fn numbers(&self) -> Result<MapHandle, RecordError> {
        MapHandle::try_from(&self.map("numbers")?).map_err(failed)
    }

    /// The map of Python interpreters (`bpf/python.h`).
    pub(crate) fn pythons(&self) -> Option<MapHandle> {
        MapHandle::try_from(&self.map("pythons").ok()?).ok()
    }

    /// Requested tracepoints that this kernel does not have.
    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Events that patterns match and the kernel rejected.
    pub(crate) fn refused(&self) -> &[RefusedEvent] {
        &self.refused
    }

    /// Fills the maps with the selected system calls and processes.
    fn fill(&mut self, options: &Options, calls: &Calls) -> Result<(), RecordError> {
        if options.syscalls != Syscalls::None {
            for (number, plan) in (0u32..).zip(options.syscalls.plans(calls)) {
                self.put("plans", &number.to_ne_bytes(), &plan)?;
            }
        }
        for (index, event) in (0u32..).zip(options.events.attachments()) {
            self.put("chosen", &index.to_ne_bytes(), &event.description)?;
        }
        let tasks = self.tasks.list()?;
        let own = std::process::id();
        self.own_process = resolve(&tasks, own).ok_or(RecordError::Unresolved(own))?;
        let wanted: Vec<u32> = options.followed().collect();
        for &number in &wanted {
            match resolve(&tasks, number) {
                Some(process) => self.put("targets", &process.to_ne_bytes(), &[1])?,
                None => self.ended.push(number),
            }
        }
        match self.ended.first() {
            Some(&number) if self.ended.len() == wanted.len() => {
                Err(RecordError::Unresolved(number))
            }
            _ => Ok(()),
        }
    }

    fn put(&self, map: &str, key: &[u8], value: &[u8]) -> Result<(), RecordError> {
        self.map(map)?
            .update(key, value, MapFlags::ANY)
            .map_err(failed)
    }

    /// Starts recording.
    pub(crate) fn attach(&mut self, options: &Options) -> Result<(), RecordError> {
        let stacks = options.stacks.as_ref();
        let programs = self.object.progs_mut().filter(|program| program.autoload());
        for program in programs {
            let section = program.section().to_string_lossy().into_owned();
            let attached = match &*section {
                CLOCK if program.name().to_string_lossy().starts_with(WATCHES) => {
                    attach_to_clocks(&program, self.cpus, TICK_NS)
                }
                CLOCK => attach_to_clocks(
                    &program,
                    self.cpus,
                    stacks.map_or(0, |stacks| stacks.period_ns),
                ),
                TASKS | CHOSEN_TRACEPOINT | CHOSEN_PROBE => continue,
                _ => program.attach_trace().map(|link| vec![link]),
            };
            match attached {
                Ok(links) => self.links.extend(links),
                Err(error) => {
                    return Err(RecordError::Attach {
                        tracepoint: tracepoint(&section).to_owned(),
                        reason: error.to_string(),
                    });
                }
            }
        }
        self.attach_chosen(&options.events)?;
        // Optional: without it, only some operations take longer.
        self.readiness = stacks.and_then(|_| readiness().ok());
        if options.descendants {
            self.follow_descendants()?;
        }
        self.switch(true)
    }

    /// Follows the existing descendants. Forks of followed processes are already tracked, so the
    /// search ends when a pass finds no new process; the children of a process that one pass finds
    /// are found by the next.
    fn follow_descendants(&self) -> Result<(), RecordError> {
        loop {
            let found = unfollowed_descendants(&self.tasks.list()?, self.own_process);
            if found.is_empty() {
                return Ok(());
            }
            for process in found {
                self.put("targets", &process.to_ne_bytes(), &[1])?;
            }
        }
    }

    fn attach_chosen(&mut self, events: &ChosenEvents) -> Result<(), RecordError> {
        let programs: Vec<ProgramMut<'_>> = self.object.progs_mut().collect();
        for (cookie, event) in (0u64..).zip(events.attachments()) {
            match attach_to_point(&programs, &event.point, cookie)? {
                Ok(link) => self.links.push(link),
                Err(error) if event.is_optional && !lacks_descriptors(&error) => {
                    self.refused.push(RefusedEvent {
                        event: event.name.clone(),
                        reason: refusal(&error),
                    });
                }
                Err(error) => {
                    return Err(RecordError::AttachChosen {
                        event: event.name.clone(),
                        reason: refusal(&error),
                    });
                }
            }
        }
        Ok(())
    }

    /// Enables or disables recording in all programs.
    fn switch(&self, on: bool) -> Result<(), RecordError> {
        self.put(
            ".data.switch",
            &0u32.to_ne_bytes(),
            &u32::from(on).to_ne_bytes(),
        )
    }

    /// Ends recording: no more records are written to the rings.
    pub(crate) fn detach(&mut self) {
        // If the switch fails, the programs are detached one after another, which suffices.
        let _ = self.switch(false);
        self.links.clear();
        self.readiness = None;
    }

    /// Chosen events that the kernel left out because they interrupted others on their CPU,
    /// including those of processes that are not recorded.
    pub(crate) fn missed(&self) -> u64 {
        let programs = self.object.progs();
        let chosen = programs.filter(|program| {
            [CHOSEN_TRACEPOINT, CHOSEN_PROBE]
                .iter()
                .any(|section| program.section() == *section)
        });
        let missed = |program: Program<'_>| {
            let descriptor = program.as_fd().as_raw_fd();
            // A program that was not loaded has no such file.
            let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
            let count = facts
                .lines()
                .find_map(|line| line.strip_prefix("recursion_misses:"))?;
            count.trim().parse::<u64>().ok()
        };
        chosen.filter_map(missed).sum()
    }

    /// System calls and page faults that conditions excluded.
    pub(crate) fn left_out(&self) -> u64 {
        let bytes = self.section(".data.left");
        let counts = bytes.as_chunks().0.iter();
        counts.map(|count| u64::from_ne_bytes(*count)).sum()
    }

    /// Number of calls whose return was not recorded, since too many calls were nested in the
    /// thread.
    pub(crate) fn omitted_returns(&self) -> u64 {
        let bytes = self.section(".data.omitted");
        bytes
            .first_chunk()
            .map_or(0, |count| u64::from_ne_bytes(*count))
    }

    /// Lost events by CPU, and the number of processes that could not be followed.
    pub(crate) fn lost(&self) -> (Vec<u32>, u32) {
        let bytes = self.section(".bss");
        let counts = bytes
            .chunks_exact(4)
            .filter_map(|count| count.try_into().ok());
        let mut counts: Vec<u32> = counts.map(u32::from_ne_bytes).collect();
        let unfollowed = counts.get(MOST_CPUS).copied().unwrap_or(0);
        counts.truncate(MOST_CPUS);
        (counts, unfollowed)
    }
}

/// True if a map has a name. The names of section maps (`.bss`) may have a prefix.
fn is_named(map: &OsStr, name: &str) -> bool {
    map == name || name.starts_with('.') && map.as_bytes().ends_with(name.as_bytes())
}

fn no_map(name: &str) -> RecordError {
    RecordError::Load(format!("no map {name}"))
}

/// Section of the program that is attached to no tracepoint.
const CLOCK: &str = "perf_event";
/// Prefix of the programs that watch calls for `--where`.
const WATCHES: &str = "where_";
const TASKS: &str = "iter/task";
/// Sections of the programs of `bpf/chosen.h`.
const CHOSEN_TRACEPOINT: &str = "tracepoint";
const CHOSEN_PROBE: &str = "uprobe";
const ALL_PROCESSES: i32 = -1;

/// Attaches the program for a point. Outer error: no program has that section. Inner error: the
/// kernel rejects the attachment.
fn attach_to_point(
    programs: &[ProgramMut<'_>],
    point: &Point,
    cookie: u64,
) -> Result<libbpf_rs::Result<Link>, RecordError> {
    let find = |section: &str| {
        let found = programs.iter().find(|program| program.section() == section);
        found.ok_or_else(|| RecordError::Load("no program for chosen events".into()))
    };
    Ok(match point {
        Point::Tracepoint(id) => attach_to_tracepoint(find(CHOSEN_TRACEPOINT)?, *id, cookie),
        Point::Program {
            path,
            offset,
            at_return,
            semaphore,
        } => {
            let options = UprobeOpts {
                ref_ctr_offset: semaphore.unwrap_or(0) as usize,
                cookie,
                retprobe: *at_return,
                ..UprobeOpts::default()
            };
            let program = find(CHOSEN_PROBE)?;
            let _trial = Trial::new(path, *offset);
            // For all processes: the program filters out those that are not recorded.
            program.attach_uprobe_with_opts(ALL_PROCESSES, path, *offset as usize, options)
        }
        Point::Function { name, at_return } => {
            let options = KprobeOpts {
                cookie,
                ..KprobeOpts::default()
            };
            find(CHOSEN_PROBE)?.attach_kprobe_with_opts(*at_return, name, options)
        }
    })
}

/// True if this process or the machine has reached its limit of open files.
fn lacks_descriptors(error: &libbpf_rs::Error) -> bool {
    let reason = format!("{error:#}");
    // EMFILE and ENFILE, for which the library has no error kinds.
    ["os error 24)", "os error 23)"]
        .iter()
        .any(|code| reason.contains(code))
}

/// The kernel's reason for rejecting a probe, with its causes.
fn refusal(error: &libbpf_rs::Error) -> String {
    if lacks_descriptors(error) {
        return format!(
            "{error:#}: each chosen event takes two descriptors; raise the limit (`ulimit -n`), or use narrower patterns"
        );
    }
    // The kernel's internal ENOTSUPP, which has no name in user space.
    const UNSUPPORTED: &str = "os error 524";
    let reason = format!("{error:#}");
    match reason.contains(UNSUPPORTED) {
        true => "the kernel cannot probe this instruction; choose another one".to_owned(),
        false => reason,
    }
}

/// True if a tracepoint has a dedicated program, whose events the recorder lays out.
pub(crate) fn has_program(tracepoint: &str) -> bool {
    Group::of_tracepoint(tracepoint).is_some() && {
        let sections = object::File::parse(OBJECT).ok();
        sections.is_some_and(|object| {
            object
                .section_by_name(&format!("tp_btf/{tracepoint}"))
                .is_some()
        })
    }
}

/// Attaches by the id of the tracepoint, since libbpf would search for it in a mounted tracefs. One
/// CPU suffices: the program then runs on all CPUs.
fn attach_to_tracepoint(program: &ProgramMut<'_>, id: u32, cookie: u64) -> libbpf_rs::Result<Link> {
    let mut builder = Builder::new(Tracepoint::with_id(id.into()));
    let event = builder.any_pid().one_cpu(0).include_kernel().build()?;
    let options = PerfEventOpts {
        cookie,
        ..PerfEventOpts::default()
    };
    program.attach_perf_event_with_opts(event.into_raw_fd(), options)
}

fn list_tasks(object: &mut Object) -> Result<TaskIterator, RecordError> {
    let mut programs = object.progs_mut();
    let program = programs.find(|program| program.section() == TASKS);
    let program = program.ok_or_else(|| RecordError::Load("no program lists threads".into()))?;
    program.attach().map(TaskIterator::new).map_err(failed)
}

fn attach_to_clocks(
    program: &ProgramMut<'_>,
    cpus: usize,
    period_ns: u64,
) -> libbpf_rs::Result<Vec<Link>> {
    let clocks = cpu_clocks(cpus, period_ns)?;
    // The link takes ownership of the descriptor and closes it.
    let attach = |clock: Counter| program.attach_perf_event(clock.into_raw_fd());
    clocks.into_iter().map(attach).collect()
}

/// The tracepoint of a program, from the name of its section.
fn tracepoint(section: &str) -> &str {
    section.strip_prefix("tp_btf/").unwrap_or(section)
}

/// Makes the counters readable for programs.
fn put_counters(
    object: &Object,
    counters: Vec<(u32, Counter)>,
) -> Result<Vec<Counter>, RecordError> {
    let map = object.maps().find(|map| map.name() == "counters");
    let map = map.ok_or_else(|| RecordError::Load("no map counters".into()))?;
    let put = |(place, counter): (u32, Counter)| {
        let event = counter.as_raw_fd().to_ne_bytes();
        map.update(&place.to_ne_bytes(), &event, MapFlags::ANY)
            .map_err(failed)?;
        Ok(counter)
    };
    counters.into_iter().map(put).collect()
}

/// An error of the kernel or of libbpf.
pub(crate) fn failed(error: libbpf_rs::Error) -> RecordError {
    RecordError::Load(error.to_string())
}

/// Names the missing capability if that is the cause.
fn load_error(error: libbpf_rs::Error) -> RecordError {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
        if crate::privilege::is_in_user_namespace() {
            return RecordError::UserNamespace;
        }
        let missing = crate::privilege::missing();
        if !missing.is_empty() {
            return RecordError::Privilege(missing.join(" and "));
        }
    }
    RecordError::Load(error.to_string())
}
