//! The BPF programs: loading, telling them what is wanted, attaching.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject};

use crate::calls::Call;
use crate::error::RecordError;
use crate::groups::Group;
use crate::options::Options;
use crate::plan::Syscalls;

/// Programs that run in the kernel as long as this lives.
pub(crate) struct Programs {
    object: Object,
    /// By CPU.
    rings: Vec<MapHandle>,
    links: Vec<Link>,
    /// Tracepoints that this kernel does not have.
    missing: Vec<String>,
}

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.bpf.o"));

/// CPUs that the programs know; see `ring.h`.
const MOST_CPUS: usize = 1024;

impl Programs {
    /// Loads what is wanted for a machine of so many CPUs. Nothing is recorded before [`Programs::attach`].
    pub(crate) fn load(options: &Options, calls: &[Call], cpus: usize) -> Result<Programs, RecordError> {
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(RecordError::NoBtf);
        }
        libbpf_rs::set_print(None);
        let open = ObjectBuilder::default().open_memory(OBJECT);
        let mut open = open.map_err(|error| RecordError::Load(error.to_string()))?;
        let missing = choose(&mut open, options);
        let rings = make_rings(&mut open, options.ring_bytes, cpus.min(MOST_CPUS))?;
        set_options(&mut open, options)?;
        let object = open.load().map_err(load_error)?;
        let programs = Programs {
            object,
            rings,
            links: Vec::new(),
            missing,
        };
        programs.fill(options, calls)?;
        Ok(programs)
    }

    /// The rings, by CPU.
    pub(crate) fn rings(&self) -> &[MapHandle] {
        &self.rings
    }

    /// Tracepoints that were wanted and that this kernel does not have.
    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Makes the programs know the rings, the calls that are wanted, and the processes.
    fn fill(&self, options: &Options, calls: &[Call]) -> Result<(), RecordError> {
        for (cpu, ring) in (0u32..).zip(&self.rings) {
            self.put(
                "rings",
                &cpu.to_ne_bytes(),
                &ring.as_fd().as_raw_fd().to_ne_bytes(),
            )?;
        }
        if options.syscalls != Syscalls::None {
            for (number, plan) in (0u32..).zip(options.syscalls.plans(calls)) {
                self.put("plans", &number.to_ne_bytes(), &plan)?;
            }
        }
        options
            .processes
            .iter()
            .flatten()
            .try_for_each(|process| self.put("targets", &process.to_ne_bytes(), &[1]))
    }

    fn put(&self, map: &str, key: &[u8], value: &[u8]) -> Result<(), RecordError> {
        let found = self.object.maps().find(|found| found.name() == map);
        let found = found.ok_or_else(|| RecordError::Load(format!("no map {map}")))?;
        found.update(key, value, MapFlags::ANY).map_err(failed)
    }

    /// Begins to record.
    pub(crate) fn attach(&mut self) -> Result<(), RecordError> {
        let programs = self.object.progs_mut().filter(|program| program.autoload());
        for program in programs {
            let link = program.attach_trace().map_err(|error| RecordError::Attach {
                tracepoint: tracepoint(&program.section().to_string_lossy()).to_owned(),
                reason: error.to_string(),
            })?;
            self.links.push(link);
        }
        self.switch(true)
    }

    /// Lets all programs record, or none.
    fn switch(&self, on: bool) -> Result<(), RecordError> {
        let is_switch = |name: &str| name.ends_with(".data.switch");
        let map = self
            .object
            .maps()
            .find(|map| is_switch(&map.name().to_string_lossy()));
        let map = map.ok_or_else(|| RecordError::Load("no map for the switch".into()))?;
        let value = u32::from(on).to_ne_bytes();
        map.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(failed)
    }

    /// Ends recording: nothing more is put in the rings.
    pub(crate) fn detach(&mut self) {
        // Without the switch the programs go one after the other, which is as good.
        let _ = self.switch(false);
        self.links.clear();
    }

    /// By CPU, what was lost in all; and how many processes could not be followed.
    pub(crate) fn lost(&self) -> (Vec<u32>, u32) {
        let map = self
            .object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bytes = map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten());
        let bytes = bytes.unwrap_or_default();
        let counts = bytes.chunks_exact(4).filter_map(|count| count.try_into().ok());
        let mut counts: Vec<u32> = counts.map(u32::from_ne_bytes).collect();
        let unfollowed = counts.get(MOST_CPUS).copied().unwrap_or(0);
        counts.truncate(MOST_CPUS);
        (counts, unfollowed)
    }
}

/// The tracepoint of a program, of the name of its section.
fn tracepoint(section: &str) -> &str {
    section.strip_prefix("tp_btf/").unwrap_or(section)
}

/// Switches off the programs that are not wanted; gives the tracepoints that are and that are not there.
fn choose(open: &mut OpenObject, options: &Options) -> Vec<String> {
    let btf = std::fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let mut missing = Vec::new();
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let name = tracepoint(&section);
        let is_wanted = match Group::of_tracepoint(name) {
            Some(group) => options.groups.contains(&group),
            None => options.syscalls != Syscalls::None,
        };
        // The forks and ends of processes that are followed.
        let follows = ["sched_process_fork", "sched_process_free"];
        let is_needed = options.processes.is_some() && follows.contains(&name);
        let is_there = has_type(&btf, name);
        if is_wanted && !is_there {
            missing.push(name.to_owned());
        }
        program.set_autoload((is_wanted || is_needed) && is_there);
    }
    missing
}

/// True if the kernel's types name the tracepoint; names of types are text with a null on both sides.
fn has_type(btf: &[u8], tracepoint: &str) -> bool {
    let name = format!("\0btf_trace_{tracepoint}\0");
    memchr::memmem::find(btf, name.as_bytes()).is_some()
}

fn make_rings(open: &mut OpenObject, bytes: u32, cpus: usize) -> Result<Vec<MapHandle>, RecordError> {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    let ring = |cpu| {
        let name = format!("ring{cpu}");
        MapHandle::create(MapType::RingBuf, Some(name), 0, 0, bytes, &options).map_err(load_error)
    };
    let rings: Vec<MapHandle> = (0..cpus).map(ring).collect::<Result<_, _>>()?;
    let mut outer = open.maps_mut().find(|map| map.name() == "rings");
    if let (Some(outer), Some(first)) = (&mut outer, rings.first()) {
        outer.set_inner_map_fd(first.as_fd()).map_err(failed)?;
    }
    Ok(rings)
}

fn set_options(open: &mut OpenObject, options: &Options) -> Result<(), RecordError> {
    let is_options = |name: &str| name.ends_with(".rodata.options");
    let map = open
        .maps_mut()
        .find(|map| is_options(&map.name().to_string_lossy()));
    let mut map = map.ok_or_else(|| RecordError::Load("no map for options".into()))?;
    // `struct options`.
    let values = [
        options.processes.is_some(),
        !options.groups.contains(&Group::Sched),
    ];
    let places = map.initial_value_mut().into_iter().flatten();
    places
        .zip(values)
        .for_each(|(place, value)| *place = u8::from(value));
    Ok(())
}

/// That the kernel, or the library, refuses something.
pub(crate) fn failed(error: libbpf_rs::Error) -> RecordError {
    RecordError::Load(error.to_string())
}

/// Says which capability is missing where that is why.
fn load_error(error: libbpf_rs::Error) -> RecordError {
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
        let missing = crate::privilege::missing();
        if !missing.is_empty() {
            return RecordError::Privilege(missing.join(" and "));
        }
    }
    RecordError::Load(error.to_string())
}
