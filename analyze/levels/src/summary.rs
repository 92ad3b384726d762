//! Counts of a merge, and the traces and event classes that were left out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::damage::Damage;

use crate::replay::ViolationKind;

/// Counts of event records. Records of the input are `copied` plus those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records of the input in the super-trace.
    pub copied: u64,
    /// Derived records.
    pub derived: u64,
    /// Records of user traces, among those that were copied.
    pub user: u64,
    /// User records whose time was moved to the nearest possible moment.
    pub moved: u64,
    /// Largest move in nanoseconds.
    pub largest_move: i64,
    /// User records without a thread.
    pub without_thread: u64,
    /// User records at times that the kernel trace does not cover.
    pub not_covered: u64,
    /// User records of threads that were on no CPU in a window in which the kernel's tracer lost
    /// records.
    pub near_losses: u64,
    /// Violated invariants.
    pub violations: BTreeMap<ViolationKind, u64>,
    /// Records of the kernel without a CPU, which are left out.
    pub without_cpu: u64,
    /// Records that cannot be written, which are left out.
    pub refused: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        self.copied += other.copied;
        self.derived += other.derived;
        self.user += other.user;
        self.moved += other.moved;
        self.largest_move = self.largest_move.max(other.largest_move);
        self.without_thread += other.without_thread;
        self.not_covered += other.not_covered;
        self.near_losses += other.near_losses;
        for (kind, count) in &other.violations {
            *self.violations.entry(*kind).or_default() += count;
        }
        self.without_cpu += other.without_cpu;
        self.refused += other.refused;
    }
}

/// The super-trace of a host.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Directory of the super-trace.
    pub path: PathBuf,
    /// Name of the host.
    pub host: Option<String>,
    /// False without a kernel trace: each LWP then takes the place of a CPU.
    pub has_kernel: bool,
    /// Counts of event records.
    pub counts: Counts,
    /// Number of user-level threads.
    pub threads: usize,
    /// Number of LWPs.
    pub lwps: usize,
    /// Processes with user-level threads, and their runtimes.
    pub processes: BTreeMap<i32, String>,
    /// Event records that the tracers lost: of the kernel, and of user traces.
    pub lost: (u64, u64),
    /// Traces and event classes that were left out, and why.
    pub left_out: Vec<String>,
    /// Notes on clocks.
    pub notes: Vec<String>,
    /// Damage found while reading.
    pub damage: Vec<Damage>,
}
