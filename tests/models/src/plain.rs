//! Reports in separate plain types: the results of models, from which tests also read numbers. As
//! JSON they equal the reports.

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use tracebraid_tables::Section;

/// The range of a report and its machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub begin_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub duration_ns: u64,
    pub hosts: Vec<Host>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub trace: u32,
    pub name: Option<String>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub trace: u32,
    pub tid: Option<i32>,
    pub pid: Option<i32>,
    pub name: Option<String>,
}

/// A process, or a thread whose process is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub trace: u32,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub name: Option<String>,
    pub threads: u64,
}

/// The report of cpu.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuReport {
    #[serde(flatten)]
    pub head: Head,
    pub total: CpuTotal,
    pub cpus: Vec<CpuRow>,
    pub processes: Vec<CpuProcess>,
    pub threads: Vec<CpuThread>,
    #[serde(flatten, skip_deserializing)]
    pub lists: Lists,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTotal {
    pub cpus: u64,
    pub active_ns: u64,
    pub idle_ns: u64,
    pub unknown_ns: u64,
    pub active_share: f64,
    pub switches: u64,
    pub migrations: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuRow {
    pub trace: u32,
    pub cpu: u32,
    pub active_ns: u64,
    pub idle_ns: u64,
    pub unknown_ns: u64,
    pub active_share: f64,
    pub switches: u64,
    pub inconsistent_switches: u64,
    pub losses: u64,
    pub first_switch: Option<FirstSwitch>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstSwitch {
    pub time_ns: i64,
    pub prev_tid: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuProcess {
    #[serde(flatten)]
    pub process: Process,
    #[serde(flatten)]
    pub usage: CpuUsage,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuThread {
    #[serde(flatten)]
    pub thread: Thread,
    #[serde(flatten)]
    pub usage: CpuUsage,
    pub priority: Option<i32>,
    pub priorities: Vec<i32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUsage {
    pub active_ns: u64,
    pub active_share: f64,
    pub switches: u64,
    pub migrations: Option<u64>,
}

/// The report of io.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoReport {
    #[serde(flatten)]
    pub head: Head,
    pub total: IoStats,
    pub types: Vec<IoType>,
    pub syscalls: Vec<IoSyscall>,
    pub processes: Vec<IoProcess>,
    pub threads: Vec<IoThread>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoStats {
    pub calls: u64,
    pub errors: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub latency_ns: u64,
    pub average_latency_ns: u64,
    pub longest_latency_ns: u64,
    pub unfinished: u64,
    pub unstarted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoType {
    #[serde(rename = "type")]
    pub kind: tracebraid_kernel_model::FdType,
    #[serde(flatten)]
    pub stats: IoStats,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSyscall {
    pub name: String,
    #[serde(flatten)]
    pub stats: IoStats,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoProcess {
    #[serde(flatten)]
    pub process: Process,
    #[serde(flatten)]
    pub stats: IoStats,
    pub types: Vec<IoType>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoThread {
    #[serde(flatten)]
    pub thread: Thread,
    #[serde(flatten)]
    pub stats: IoStats,
    pub types: Vec<IoType>,
}

/// The report of processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessesReport {
    #[serde(flatten)]
    pub head: Head,
    pub total: ProcessTotal,
    pub processes: Vec<ProcessRow>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessTotal {
    pub processes: u64,
    pub threads: u64,
    pub active_ns: u64,
    pub syscalls: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub unknown_thread: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessRow {
    pub id: u64,
    pub parent: Option<u64>,
    pub depth: u32,
    pub trace: u32,
    pub tid: i32,
    pub pid: Option<i32>,
    pub name: Option<String>,
    pub parent_pid: Option<i32>,
    pub begin_ns: Option<i64>,
    pub end_ns: Option<i64>,
    pub names: Vec<ProcessName>,
    pub threads: u64,
    pub active_ns: u64,
    pub tree_active_ns: u64,
    pub syscalls: u64,
    pub tree_syscalls: u64,
    pub read_bytes: u64,
    pub tree_read_bytes: u64,
    pub written_bytes: u64,
    pub tree_written_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessName {
    pub time_ns: i64,
    pub name: String,
    pub by: String,
}

/// Tables other than statistics: as JSON a map by their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists(pub Vec<Section>);

impl Serialize for Lists {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for section in &self.0 {
            map.serialize_entry(section.key, section)?;
        }
        map.end()
    }
}

/// Converts a report to its plain type.
pub fn plain<T: serde::de::DeserializeOwned>(report: &impl Serialize) -> T {
    let json = serde_json::to_value(report).expect("a report can be serialized");
    serde_json::from_value(json).expect("the report has that form")
}
