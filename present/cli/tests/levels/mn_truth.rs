//! The log of the M:N library of `examples`: who ran where, as the library itself saw it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// An entry: a probe was called between two times of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct TruthEntry {
    pub(crate) kind: String,
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) cpu_before: u64,
    pub(crate) cpu_after: u64,
    pub(crate) text: String,
}

/// Entries of each LWP, by thread id, in their order.
pub(crate) fn mn_truth(path: &Path) -> BTreeMap<u64, Vec<TruthEntry>> {
    let log = fs::read_to_string(path).expect("the log");
    let mut lwps: BTreeMap<u64, Vec<TruthEntry>> = BTreeMap::new();
    for line in log.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.splitn(9, ' ').collect();
        let number = |index: usize| -> u64 { fields[index].parse().expect(line) };
        let entry = TruthEntry {
            kind: fields[1].to_owned(),
            a: number(2),
            b: number(3),
            before: number(4),
            after: number(5),
            cpu_before: number(6),
            cpu_after: number(7),
            text: fields[8].to_owned(),
        };
        lwps.entry(number(0)).or_default().push(entry);
    }
    lwps
}
