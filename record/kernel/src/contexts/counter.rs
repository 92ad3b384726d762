//! Performance counters of CPUs: their names and perf events.

use std::fmt;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Software};
use perf_event::{Builder, Counter as PerfCounter};

/// A performance counter, by the name in `lttng add-context --list` without `perf:cpu:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(&'static str);

/// Prefix of the names of counters in `--context`.
pub(super) const OF_CPU: &str = "perf:cpu:";

/// Names of counters and their events; some events have two names.
const HARDWARE: [(&str, Hardware); 13] = [
    ("cycles", Hardware::CPU_CYCLES),
    ("cpu-cycles", Hardware::CPU_CYCLES),
    ("instructions", Hardware::INSTRUCTIONS),
    ("cache-references", Hardware::CACHE_REFERENCES),
    ("cache-misses", Hardware::CACHE_MISSES),
    ("branches", Hardware::BRANCH_INSTRUCTIONS),
    ("branch-instructions", Hardware::BRANCH_INSTRUCTIONS),
    ("branch-misses", Hardware::BRANCH_MISSES),
    ("bus-cycles", Hardware::BUS_CYCLES),
    ("stalled-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    ("idle-cycles-frontend", Hardware::STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
    ("idle-cycles-backend", Hardware::STALLED_CYCLES_BACKEND),
];
const CACHES: [(&str, CacheId, CacheOp, CacheResult); 8] = [
    (
        "L1-dcache-loads",
        CacheId::L1D,
        CacheOp::READ,
        CacheResult::ACCESS,
    ),
    (
        "L1-dcache-load-misses",
        CacheId::L1D,
        CacheOp::READ,
        CacheResult::MISS,
    ),
    (
        "L1-icache-load-misses",
        CacheId::L1I,
        CacheOp::READ,
        CacheResult::MISS,
    ),
    ("LLC-loads", CacheId::LL, CacheOp::READ, CacheResult::ACCESS),
    (
        "LLC-load-misses",
        CacheId::LL,
        CacheOp::READ,
        CacheResult::MISS,
    ),
    (
        "dTLB-loads",
        CacheId::DTLB,
        CacheOp::READ,
        CacheResult::ACCESS,
    ),
    (
        "dTLB-load-misses",
        CacheId::DTLB,
        CacheOp::READ,
        CacheResult::MISS,
    ),
    (
        "iTLB-load-misses",
        CacheId::ITLB,
        CacheOp::READ,
        CacheResult::MISS,
    ),
];
const SOFTWARE: [(&str, Software); 13] = [
    ("page-faults", Software::PAGE_FAULTS),
    ("page-fault", Software::PAGE_FAULTS),
    ("faults", Software::PAGE_FAULTS),
    ("minor-faults", Software::PAGE_FAULTS_MIN),
    ("major-faults", Software::PAGE_FAULTS_MAJ),
    ("context-switches", Software::CONTEXT_SWITCHES),
    ("cs", Software::CONTEXT_SWITCHES),
    ("cpu-migrations", Software::CPU_MIGRATIONS),
    ("migrations", Software::CPU_MIGRATIONS),
    ("cpu-clock", Software::CPU_CLOCK),
    ("task-clock", Software::TASK_CLOCK),
    ("alignment-faults", Software::ALIGNMENT_FAULTS),
    ("emulation-faults", Software::EMULATION_FAULTS),
];

impl Counter {
    pub(super) fn named(name: &str) -> Option<Counter> {
        Counter::names().find(|known| *known == name).map(Counter)
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        let hardware = HARDWARE.iter().map(|(name, _)| *name);
        let caches = CACHES.iter().map(|(name, ..)| *name);
        let software = SOFTWARE.iter().map(|(name, _)| *name);
        hardware.chain(caches).chain(software)
    }

    /// The field's name in lttng-tools: punctuation becomes `_`.
    pub(super) fn field(self) -> String {
        format!("perf_cpu_{}", self.0.replace('-', "_"))
    }

    fn builder(self) -> Builder<'static> {
        let hardware = HARDWARE.iter().find(|(name, _)| *name == self.0);
        let cache = CACHES.iter().find(|(name, ..)| *name == self.0);
        let software = SOFTWARE.iter().find(|(name, _)| *name == self.0);
        match (hardware, cache, software) {
            (Some((_, event)), ..) => Builder::new(*event),
            (_, Some((_, which, operation, result)), _) => Builder::new(Cache {
                which: *which,
                operation: *operation,
                result: *result,
            }),
            (.., Some((_, event))) => Builder::new(*event),
            _ => Builder::new(Software::DUMMY),
        }
    }

    pub(super) fn is_hardware(self) -> bool {
        SOFTWARE.iter().all(|(name, _)| *name != self.0)
    }

    /// Starts counting on a CPU, in the kernel and in programs, as lttng-modules does.
    pub(super) fn open(self, cpu: usize) -> std::io::Result<PerfCounter> {
        let mut builder = self.builder();
        builder.any_pid().one_cpu(cpu).include_kernel().include_hv();
        // A counter that shares its register with others would pause at times.
        builder.pinned(self.is_hardware()).enabled(true).build()
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OF_CPU}{}", self.0)
    }
}
