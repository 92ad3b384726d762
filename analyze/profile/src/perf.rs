//! Call chains of perf: samples of CPU time, and waits from the time a thread leaves its CPU until
//! it gets a CPU again.
//!
//! A wait begins at a `sched_switch` at which its thread goes to sleep; the stack of a preempted
//! thread does not explain its delay, so preemption is no wait. The wait ends when the thread gets
//! a CPU: at a `sched_switch` to it, or at perf's own record (`--switch-events`). If a thread runs
//! again without either record, the duration of its wait is unknown: the wait is counted and left
//! out. The same applies to all waits if perf sampled switches (a period above 1), because a thread
//! may have run in between unrecorded.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_symbols::{AddressSpace, BuildId, KernelSymbols, Module, Placed};

use crate::KERNEL_SUFFIX;
use crate::Process;
use crate::events::{EventOrigin, EventRole, Sample, StackSource, Weight};
use crate::fields::Fields;
use crate::mapped::{Around, FindBeside, Mapped};
use crate::naming::{NameId, Naming};

/// State of the machine up to the current event.
pub(crate) struct PerfSystem {
    processes: HashMap<u32, Mapped>,
    /// Final mappings of processes: a thread of another CPU may run shortly before its mapping is
    /// recorded.
    later: HashMap<u32, AddressSpace>,
    /// By file name.
    build_ids: HashMap<Vec<u8>, BuildId>,
    /// A kernel symbol and its address, which distinguishes boots.
    reference: Option<(String, u64)>,
    kernel: Option<KernelSymbols>,
    /// True once the kernel's symbols have been searched for.
    is_kernel_known: bool,
    /// Cache of names by address in the kernel.
    known: HashMap<u64, NameId>,
    /// Sleeping threads by thread id.
    asleep: HashMap<i32, Asleep>,
    /// Waits whose end was not recorded.
    unended: u64,
    /// Some switches were skipped (`perf record -F`): the length of waits is unknown.
    is_sampled: bool,
    beside: Box<FindBeside>,
}

struct Asleep {
    since: Timestamp,
    process: Process,
    functions: Vec<NameId>,
}

/// Name of the kernel in records of mappings.
const KERNEL: &str = "[kernel.kallsyms]";

/// `PROT_EXEC`
const EXECUTED: u64 = 4;

/// Bits of a thread's state that mean asleep. Higher bits are flags, among them preemption.
const SLEEPS: u64 = 0xff;

impl PerfSystem {
    pub(crate) fn new(beside: Box<FindBeside>) -> PerfSystem {
        PerfSystem {
            processes: HashMap::new(),
            later: HashMap::new(),
            build_ids: HashMap::new(),
            reference: None,
            kernel: None,
            is_kernel_known: false,
            known: HashMap::new(),
            asleep: HashMap::new(),
            unended: 0,
            is_sampled: false,
            beside,
        }
    }

    /// Number of waits without a recorded end.
    pub(crate) fn unended(&self) -> u64 {
        self.unended
    }

    /// True if their ends are missing because perf sampled switches.
    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// An executable mapping and its process; `None` for the kernel.
    fn mapping(&self, fields: &Fields) -> Option<(u32, Module)> {
        let pid = id(fields, "pid").filter(|&pid| pid >= 0)?;
        if fields
            .integer("prot")
            .is_some_and(|prot| prot & EXECUTED == 0)
        {
            return None;
        }
        let path = fields.text("filename");
        let own = build_id(fields.text("build_id"));
        let begin = fields.integer("start")?;
        let module = Module {
            begin,
            end: begin.checked_add(fields.integer("len")?)?,
            placed: Placed::Part(fields.integer("pgoff")?),
            path: PathBuf::from(std::ffi::OsStr::from_bytes(path)),
            build_id: own.or_else(|| self.build_ids.get(path).cloned()),
        };
        Some((pid as u32, module))
    }

    fn learn_kernel(&mut self, fields: &Fields) -> Option<()> {
        let name = std::str::from_utf8(fields.text("filename")).ok()?;
        let reference = name.strip_prefix(KERNEL).filter(|name| !name.is_empty())?;
        self.reference = Some((reference.to_owned(), fields.integer("pgoff")?));
        if let Some(id) = build_id(fields.text("build_id")) {
            self.build_ids.insert(KERNEL.into(), id);
        }
        Some(())
    }

    fn process(&mut self, pid: u32) -> &mut Mapped {
        let beside = &self.beside;
        self.processes
            .entry(pid)
            .or_insert_with(|| Mapped::new(beside(pid)))
    }

    /// The functions of an event's call chain, the innermost first.
    fn functions(&mut self, fields: &Fields, naming: &mut Naming<'_>) -> Vec<NameId> {
        let mut chain = Chain::new(fields.array("perf_callchain"));
        if chain.is_guests {
            return vec![naming.id("[guest]".to_owned())];
        }
        if let (true, Some(ip)) = (chain.is_empty(), fields.integer("perf_ip")) {
            // A program whose stack was copied instead of unwound.
            chain = Chain::new(&[ip]);
        }
        let mut functions = self.kernel_functions(&chain.kernel, naming);
        if let (Some(pid), false) = (id(fields, "perf_pid"), chain.user.is_empty()) {
            let pid = pid as u32;
            let beside = &self.beside;
            let process = self.processes.entry(pid);
            let process = process.or_insert_with(|| Mapped::new(beside(pid)));
            let around = Around {
                later: self.later.get(&pid),
                ..Around::default()
            };
            functions.extend(process.functions(&chain.user, &around, naming));
        }
        functions
    }

    fn kernel_functions(&mut self, addresses: &[u64], naming: &mut Naming<'_>) -> Vec<NameId> {
        if !addresses.is_empty() && !std::mem::replace(&mut self.is_kernel_known, true) {
            let id = self.build_ids.get(KERNEL.as_bytes());
            let reference = self.reference.as_ref();
            let found = id
                .zip(reference)
                .map(|(id, (name, address))| (id, (name.as_str(), *address)));
            self.kernel = found.and_then(|(id, reference)| KernelSymbols::of(id, reference));
        }
        let Self { kernel, known, .. } = self;
        let mut name = |(place, &address): (usize, &u64)| {
            // Frames other than the innermost are return addresses: the call itself is before them.
            let asked = address.wrapping_sub(u64::from(place != 0));
            *known.entry(asked).or_insert_with(|| {
                let name = kernel.as_ref().and_then(|kernel| kernel.name(asked));
                let name = name.map_or_else(|| format!("[{asked:#x}]"), str::to_owned);
                // Suffix of kernel functions in flame graphs.
                naming.id(format!("{name}{KERNEL_SUFFIX}"))
            })
        };
        addresses.iter().enumerate().map(&mut name).collect()
    }

    fn process_of(fields: &Fields) -> Process {
        Process {
            pid: id(fields, "perf_pid").map(i64::from),
            name: String::from_utf8_lossy(fields.text("procname")).into_owned(),
            ..Process::default()
        }
    }

    /// A thread runs. If it was asleep, its wait has no known end.
    fn runs(&mut self, tid: i32) {
        if self.asleep.remove(&tid).is_some() {
            self.unended += 1;
        }
    }

    /// A thread gets a CPU: the end of its wait.
    fn comes_back(&mut self, tid: i32, time: Timestamp) -> Option<Sample> {
        let asleep = self.asleep.remove(&tid)?;
        Some(Sample {
            tid: Some(i64::from(tid)),
            process: asleep.process,
            functions: asleep.functions,
            kernel: 0,
            wait_ns: Some(u64::try_from(time.0.saturating_sub(asleep.since.0)).unwrap_or(0)),
            period_ns: 0,
            shape: None,
        })
    }

    fn switch(
        &mut self,
        time: Timestamp,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        let leaves = id(fields, "prev_pid")?;
        self.runs(leaves);
        let sleeps = leaves != 0 && fields.integer("prev_state")? & SLEEPS != 0;
        if self.is_sampled {
            self.unended += u64::from(sleeps);
            return None;
        }
        if sleeps {
            let asleep = Asleep {
                since: time,
                process: Self::process_of(fields),
                functions: self.functions(fields, naming),
            };
            self.asleep.insert(leaves, asleep);
        }
        self.comes_back(id(fields, "next_pid")?, time)
    }

    fn sample(&mut self, weight: Weight, fields: &Fields, naming: &mut Naming<'_>) -> Sample {
        let tid = id(fields, "perf_tid");
        if let Some(tid) = tid {
            self.runs(tid);
        }
        Sample {
            tid: tid.map(i64::from),
            process: Self::process_of(fields),
            functions: self.functions(fields, naming),
            kernel: 0,
            wait_ns: None,
            period_ns: match weight {
                Weight::Period => fields.integer("perf_period").map_or(0, period_of_clock),
                Weight::Fixed(nanoseconds) => nanoseconds,
                Weight::Unknown => 0,
            },
            shape: None,
        }
    }
}

/// Nanoseconds between two samples of a clock, at least the kernel's minimum period
/// (`perf_swevent_hrtimer`).
pub(crate) fn period_of_clock(nanoseconds: u64) -> u64 {
    nanoseconds.max(10_000)
}

impl StackSource for PerfSystem {
    fn learn(&mut self, kind: EventRole, fields: &Fields) -> Option<()> {
        match kind {
            // Number of switches of that CPU skipped since the last recorded switch.
            EventRole::PerfSwitch => self.is_sampled |= fields.integer("perf_period")? > 1,
            EventRole::PerfBuildId => {
                let id = build_id(fields.text("build_id"))?;
                self.build_ids.insert(fields.text("filename").to_vec(), id);
            }
            EventRole::PerfMap if id(fields, "pid")? < 0 => self.learn_kernel(fields)?,
            EventRole::PerfMap => {
                let (pid, module) = self.mapping(fields)?;
                self.later.entry(pid).or_default().load(module);
            }
            EventRole::PerfComm if fields.integer("exec") == Some(1) => {
                self.later.remove(&(id(fields, "pid")? as u32));
            }
            _ => {}
        }
        Some(())
    }

    fn event(
        &mut self,
        place: &EventOrigin,
        kind: EventRole,
        fields: &Fields,
        naming: &mut Naming<'_>,
    ) -> Option<Sample> {
        match kind {
            EventRole::PerfSample(weight) => return Some(self.sample(weight, fields, naming)),
            EventRole::PerfSwitch => return self.switch(place.time, fields, naming),
            // The thread itself is known because perf wrote its id after the record.
            EventRole::PerfTask if fields.integer("out") == Some(0) => {
                return self.comes_back(id(fields, "tid").filter(|&tid| tid > 0)?, place.time);
            }
            EventRole::PerfMap => {
                let (pid, module) = self.mapping(fields)?;
                self.process(pid).load(module);
            }
            EventRole::PerfFork => {
                let (pid, parent) = (id(fields, "pid")? as u32, id(fields, "ppid")? as u32);
                // A thread of the same process shares its memory.
                if let Some(of_parent) = self.processes.get(&parent).filter(|_| pid != parent) {
                    let child = of_parent.forked((self.beside)(pid));
                    self.processes.insert(pid, child);
                }
            }
            EventRole::PerfComm if fields.integer("exec") == Some(1) => {
                self.processes.remove(&(id(fields, "pid")? as u32));
            }
            _ => {}
        }
        None
    }
}

/// Addresses of a call chain, the innermost first.
#[derive(Debug, Default, PartialEq)]
struct Chain {
    kernel: Vec<u64>,
    user: Vec<u64>,
    /// The chain contains addresses of a virtual machine, whose programs are unknown.
    is_guests: bool,
}

/// Kind of the addresses after a marker (`enum perf_callchain_context`).
#[derive(Clone, Copy)]
enum Context {
    /// No marker so far: the addresses themselves decide.
    Unknown,
    Kernel,
    User,
    Guest,
    /// The kind of the following addresses is not supported.
    Other,
}

/// Values from here on are markers: minus 4095 (`PERF_CONTEXT_MAX`).
const LEAST_MARKER: u64 = -4095i64 as u64;

impl Chain {
    fn new(entries: &[u64]) -> Chain {
        let mut chain = Chain::default();
        let mut context = Context::Unknown;
        for &entry in entries {
            if entry >= LEAST_MARKER {
                context = match entry as i64 {
                    -32 | -128 => Context::Kernel,
                    -512 => Context::User,
                    -2048 | -2176 | -2560 => Context::Guest,
                    _ => Context::Other,
                };
                continue;
            }
            match context {
                Context::Kernel => chain.kernel.push(entry),
                Context::User => chain.user.push(entry),
                // The kernel has the upper half of the address space.
                Context::Unknown if entry >> 63 == 1 => chain.kernel.push(entry),
                Context::Unknown => chain.user.push(entry),
                Context::Guest => chain.is_guests = true,
                Context::Other => {}
            }
        }
        chain
    }

    fn is_empty(&self) -> bool {
        self.kernel.is_empty() && self.user.is_empty()
    }
}

/// A process or thread id, stored as its bits.
fn id(fields: &Fields, name: &str) -> Option<i32> {
    fields.integer(name).map(|id| id as u32 as i32)
}

/// A build id from hexadecimal digits.
fn build_id(digits: &[u8]) -> Option<BuildId> {
    let text = std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.is_ascii() && !text.is_empty())?;
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.map(BuildId)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL_MARK: u64 = -128i64 as u64;
    const USER_MARK: u64 = -512i64 as u64;
    const GUEST_MARK: u64 = -2048i64 as u64;
    const DEFERRED_MARK: u64 = -640i64 as u64;
    const IN_KERNEL: u64 = 0xffff_ffff_8100_0000;

    fn split(entries: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let chain = Chain::new(entries);
        (chain.kernel, chain.user)
    }

    #[test]
    fn markers_part_the_kernel_from_the_program() {
        let chain = [
            KERNEL_MARK,
            IN_KERNEL,
            IN_KERNEL + 8,
            USER_MARK,
            0x1000,
            0x2000,
        ];
        let parts = (vec![IN_KERNEL, IN_KERNEL + 8], vec![0x1000, 0x2000]);
        assert_eq!(split(&chain), parts);
        assert_eq!(split(&[IN_KERNEL, IN_KERNEL + 8, 0x1000, 0x2000]), parts);
        assert_eq!(split(&[USER_MARK, 0x1000]), (vec![], vec![0x1000]));
        // A marker for a stack that comes later, and its number.
        assert_eq!(
            split(&[KERNEL_MARK, IN_KERNEL, DEFERRED_MARK, 77]),
            (vec![IN_KERNEL], vec![])
        );
        assert!(Chain::new(&[GUEST_MARK, 0x1000]).is_guests);
        assert!(Chain::new(&[KERNEL_MARK, USER_MARK]).is_empty());
    }

    /// Events of a machine in sequence.
    struct EventLog {
        events: Vec<(i64, EventRole, Fields)>,
    }

    impl EventLog {
        fn new() -> EventLog {
            EventLog { events: Vec::new() }
        }

        fn add(&mut self, time: i64, kind: EventRole, fields: Fields) {
            self.events.push((time, kind, fields));
        }

        /// Adds a switch from a thread in the given state, whose stack is one address, to another
        /// thread.
        fn switch(&mut self, time: i64, (from, state): (u64, u64), to: u64, period: u64) {
            let integers = [
                ("perf_period", period),
                ("perf_pid", from),
                ("prev_pid", from),
                ("prev_state", state),
                ("next_pid", to),
            ];
            let fields = Fields::with(
                &integers,
                &[("procname", "x")],
                &[("perf_callchain", &[USER_MARK, from])],
            );
            self.add(time, EventRole::PerfSwitch, fields);
        }

        fn sample(&mut self, time: i64, tid: u64, chain: &[u64]) {
            let integers = [
                ("perf_pid", tid),
                ("perf_tid", tid),
                ("perf_period", 25_000),
                ("perf_ip", 0x77),
            ];
            let fields = Fields::with(
                &integers,
                &[("procname", "x")],
                &[("perf_callchain", chain)],
            );
            self.add(time, EventRole::PerfSample(Weight::Period), fields);
        }

        /// Stacks as (thread, duration of the wait, names), and the number of waits without an end.
        fn stacks(&self) -> (Vec<(i64, Option<u64>, String)>, u64) {
            let mut symbols = tracebraid_symbols::Symbols::default();
            let mut naming = Naming::new(&mut symbols);
            let mut system = PerfSystem::new(Box::new(|_| crate::mapped::Beside::default()));
            for (_, kind, fields) in &self.events {
                system.learn(*kind, fields);
            }
            let mut stacks = Vec::new();
            for (time, kind, fields) in &self.events {
                let place = EventOrigin {
                    time: Timestamp(*time),
                    cpu: None,
                    tid: None,
                };
                if let Some(sample) = system.event(&place, *kind, fields, &mut naming) {
                    let names = sample.functions.iter().map(|&id| naming.name(id));
                    let names = names.collect::<Vec<_>>().join(" < ");
                    stacks.push((sample.tid.unwrap_or(-1), sample.wait_ns, names));
                }
            }
            (stacks, system.unended())
        }
    }

    #[test]
    fn waits_go_from_sleep_to_return() {
        let mut machine = EventLog::new();
        machine.switch(10, (5, 1), 0, 1);
        // Neither a preempted thread waits nor, on an older kernel, a thread that only lost its
        // CPU.
        machine.switch(20, (6, 0), 7, 1);
        machine.switch(25, (7, 0x1000), 6, 1);
        machine.switch(30, (0, 0), 5, 1);
        // Resumed by perf's own record.
        machine.switch(40, (5, 2), 0, 1);
        machine.add(
            45,
            EventRole::PerfTask,
            Fields::with(&[("out", 0), ("tid", 5)], &[], &[]),
        );
        machine.add(
            46,
            EventRole::PerfTask,
            Fields::with(&[("out", 1), ("tid", 5)], &[], &[]),
        );
        assert_eq!(
            machine.stacks(),
            (
                vec![
                    (5, Some(20), "[0x5]".to_owned()),
                    (5, Some(5), "[0x5]".to_owned())
                ],
                0
            )
        );
        // A thread that runs without a recorded resumption, and a thread that still sleeps at the
        // end.
        machine.switch(50, (8, 1), 0, 1);
        machine.sample(60, 8, &[USER_MARK, 9]);
        machine.switch(70, (0, 0), 8, 1);
        machine.switch(80, (9, 1), 0, 1);
        let (stacks, unended) = machine.stacks();
        assert_eq!((stacks.len(), unended), (3, 1));
        assert_eq!(stacks[2], (8, None, "[0x9]".to_owned()));
    }

    #[test]
    fn skipped_switches_leave_no_waits() {
        let mut machine = EventLog::new();
        machine.switch(10, (5, 1), 0, 1);
        machine.switch(30, (0, 0), 5, 1);
        machine.switch(40, (5, 1), 0, 3);
        assert_eq!(machine.stacks(), (vec![], 2));
    }

    #[test]
    fn mappings_follow_forks_and_end_with_another_program() {
        let map = |pid: u64, prot: u64| {
            let integers = [
                ("pid", pid),
                ("start", 0x1000),
                ("len", 0x1000),
                ("pgoff", 0x3000),
                ("prot", prot),
            ];
            Fields::with(&integers, &[("filename", "/no/such/file")], &[])
        };
        let mut machine = EventLog::new();
        let chain = [USER_MARK, 0x1010];
        machine.add(0, EventRole::PerfMap, map(5, 5));
        machine.add(0, EventRole::PerfMap, map(6, 3));
        machine.add(
            1,
            EventRole::PerfFork,
            Fields::with(&[("pid", 8), ("ppid", 5)], &[], &[]),
        );
        machine.sample(2, 5, &chain);
        machine.sample(2, 6, &chain);
        machine.sample(2, 8, &chain);
        machine.add(
            3,
            EventRole::PerfComm,
            Fields::with(&[("pid", 8), ("exec", 1)], &[], &[]),
        );
        machine.add(
            3,
            EventRole::PerfComm,
            Fields::with(&[("pid", 5), ("exec", 0)], &[], &[]),
        );
        machine.sample(4, 8, &chain);
        machine.sample(4, 5, &chain);
        // A program whose stack was copied, and the kernel without its symbols.
        machine.sample(5, 5, &[]);
        machine.sample(5, 5, &[KERNEL_MARK, IN_KERNEL, IN_KERNEL + 1]);
        machine.sample(5, 5, &[GUEST_MARK, IN_KERNEL]);
        let names = machine.stacks().0.into_iter().map(|(_, _, names)| names);
        let file = "[file+0x3010]";
        let kernel = "[0xffffffff81000000]_[k] < [0xffffffff81000000]_[k]";
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                file, "[0x1010]", file, "[0x1010]", file, "[0x77]", kernel, "[guest]"
            ]
        );
    }

    #[test]
    fn build_ids_are_hexadecimal() {
        assert_eq!(build_id(b"00ffA1"), Some(BuildId(vec![0, 255, 0xa1])));
        for wrong in [&b""[..], b"0", b"0g", b"00f", "é".as_bytes()] {
            assert_eq!(build_id(wrong), None);
        }
    }
}
