//! Executable mappings of each process over time.
//!
//! Changes come from the kernel (`mappings`); the mappings of a process that existed earlier are
//! read from `/proc` when its first stack occurs. Stacks of one CPU are unwound after those of
//! another, so a replaced mapping is kept until no earlier stack can follow.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use tracebraid_unwind::{Code, Module};

use super::mappings::Change;
use super::modules::Modules;
use super::python::{self, Python};
use super::{Mapping, files};
use crate::machine::now;
use crate::state;

/// All processes that have occurred.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pending: Vec<(u64, Change)>,
    processes: HashMap<u32, Process>,
    /// Ids under `/proc` of processes whose ids in event records differ.
    numbers: HashMap<u32, u32>,
    modules: RefCell<Modules>,
    /// Interpreters found since the last call of `take_found`.
    found: Vec<(u32, Python)>,
}

/// Executable memory of a process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// All its mappings are known, except those that `/proc` did not show.
    is_whole: bool,
    /// In the order of addresses, without overlaps.
    mapped: Vec<Entry>,
    /// The main thread has ended, and other threads run.
    lost_first: bool,
    /// Replaced mappings, with the time of replacement.
    replaced: Vec<(u64, Entry)>,
    python: Option<Python>,
}

#[derive(Clone, Debug)]
struct Entry {
    since: u64,
    begin: u64,
    end: u64,
    mapping: Rc<Mapping>,
    module: OnceCell<Option<Rc<Module>>>,
}

impl Entry {
    fn new(since: u64, mapping: Rc<Mapping>) -> Entry {
        Entry {
            since,
            begin: mapping.begin,
            end: mapping.begin.saturating_add(mapping.bytes),
            mapping,
            module: OnceCell::new(),
        }
    }

    fn has(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }

    fn code(&self, address: u64, modules: &RefCell<Modules>) -> Code<'_> {
        let module = self
            .module
            .get_or_init(|| modules.borrow_mut().of(&self.mapping));
        match module {
            Some(module) => {
                Code::Module(module, address - self.mapping.begin + self.mapping.offset)
            }
            None => Code::Other,
        }
    }
}

/// Nanoseconds for which mappings outlive the process: the kernel reports the exit of a thread some
/// microseconds before its last stack can be taken.
const EXIT_NS: u64 = 10_000_000;

/// True if other threads still run in a process whose main thread has ended and is still listed.
fn has_threads(number: u32) -> bool {
    let listed = std::fs::read_dir(format!("/proc/{number}/task"));
    listed.is_ok_and(|threads| threads.count() > 1)
}

impl Processes {
    /// Registers the id of a process under `/proc`.
    pub(crate) fn know(&mut self, pid: u32, number: u32) {
        if pid != number {
            self.numbers.insert(pid, number);
        }
    }

    /// Adds a change at a time.
    pub(crate) fn add(&mut self, time: u64, change: Change) {
        self.pending.push((time, change));
    }

    /// Applies the changes up to a time, or all, and discards data that only earlier stacks need.
    pub(crate) fn advance(&mut self, until: Option<u64>) {
        self.pending.sort_by_key(|&(time, _)| time);
        let count = match until {
            Some(until) => self.pending.partition_point(|&(time, _)| time < until),
            None => self.pending.len(),
        };
        for (time, change) in self.pending.drain(..count).collect::<Vec<_>>() {
            self.change(time, change);
        }
    }

    /// Discards mappings that were replaced, and processes that ended, before a time from which on
    /// no stack remains to be unwound.
    pub(crate) fn forget(&mut self, before: u64) {
        self.processes.retain(|_, process| {
            process.replaced.retain(|&(time, _)| time >= before);
            !process.mapped.is_empty() || !process.replaced.is_empty()
        });
    }

    fn change(&mut self, time: u64, change: Change) {
        match change {
            Change::Load(mapping) => {
                self.know(mapping.pid, mapping.number);
                let process = self.processes.entry(mapping.pid).or_default();
                self.found.extend(process.load(time, mapping));
            }
            Change::Fork { parent, pid } => {
                let parent = self.whole(parent, time);
                let (inherited, python) = (parent.mapped.clone(), parent.python.clone());
                let process = self.processes.entry(pid).or_default();
                process.replace_all(time);
                process.mapped = inherited;
                process.python = python;
                process
                    .mapped
                    .iter_mut()
                    .for_each(|entry| entry.since = time);
            }
            Change::Exec { pid } => self.processes.entry(pid).or_default().replace_all(time),
            Change::Exit { pid, is_first } => self.exit(pid, is_first, time),
        }
    }

    /// A process ends with its last thread, which need not be the main thread; the kernel does not
    /// report which is the last.
    fn exit(&mut self, pid: u32, is_first: bool, time: u64) {
        let number = self.numbers.get(&pid).copied().unwrap_or(pid);
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !is_first && !process.lost_first {
            return;
        }
        process.lost_first = has_threads(number);
        if !process.lost_first {
            process.replace_all(time.saturating_add(EXIT_NS).max(now()));
        }
    }

    /// Reads the mappings of a process that will be recorded, before it can change them.
    pub(crate) fn read(&mut self, pid: u32) {
        self.whole(pid, 0);
    }

    /// A process including its mappings from before the recording.
    fn whole(&mut self, pid: u32, now: u64) -> &Process {
        let number = self.numbers.get(&pid).copied().unwrap_or(pid);
        let process = self.processes.entry(pid).or_default();
        if !process.is_whole {
            process.is_whole = true;
            let found = files::mappings(state::Process { pid, number });
            // Reported mappings replace older ones.
            let known = std::mem::take(&mut process.mapped);
            for mapping in found {
                self.found.extend(process.load(0, mapping));
            }
            known
                .into_iter()
                .for_each(|entry| process.insert(now, entry));
        }
        process
    }

    /// Returns a function that finds the code of a process at a time.
    pub(crate) fn code<'p>(&'p mut self, pid: u32, time: u64) -> impl Fn(u64) -> Code<'p> {
        self.whole(pid, time);
        let (process, modules) = (self.processes.get(&pid), &self.modules);
        move |address| process.map_or(Code::None, |process| process.code(address, time, modules))
    }

    /// Address range of the function with which a process interprets Python.
    pub(crate) fn evaluates(&self, pid: u32) -> Option<[u64; 2]> {
        Some(self.processes.get(&pid)?.python.as_ref()?.evaluates)
    }

    /// Python interpreters found since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<(u32, Python)> {
        std::mem::take(&mut self.found)
    }
}

impl Process {
    /// Adds a mapping; returns the Python interpreter in it, if it is the first of the process.
    fn load(&mut self, time: u64, mapping: Mapping) -> Option<(u32, Python)> {
        let found = match self.python {
            None => python::find(&mapping),
            Some(_) => None,
        };
        let pid = mapping.pid;
        if mapping.bytes > 0 {
            self.insert(time, Entry::new(time, Rc::new(mapping)));
        }
        let found = found?;
        self.python = Some(found.clone());
        Some((pid, found))
    }

    /// Inserts a mapping; uncovered parts of other mappings stay.
    fn insert(&mut self, time: u64, entry: Entry) {
        let first = self
            .mapped
            .partition_point(|other| other.end <= entry.begin);
        let after = self.mapped.partition_point(|other| other.begin < entry.end);
        let covered: Vec<Entry> = self.mapped.drain(first..after.max(first)).collect();
        let mut parts = Vec::new();
        for other in covered {
            for (begin, end) in [(other.begin, entry.begin), (entry.end, other.end)] {
                if begin < end {
                    parts.push(Entry {
                        begin,
                        end,
                        ..other.clone()
                    });
                }
            }
            self.replaced.push((time, other));
        }
        parts.push(entry);
        parts.sort_by_key(|part| part.begin);
        self.mapped.splice(first..first, parts);
    }

    /// Removes all mappings; from now on all mappings are known.
    fn replace_all(&mut self, time: u64) {
        self.replaced
            .extend(self.mapped.drain(..).map(|entry| (time, entry)));
        self.is_whole = true;
        self.lost_first = false;
        self.python = None;
    }

    fn code<'p>(&'p self, address: u64, time: u64, modules: &RefCell<Modules>) -> Code<'p> {
        let after = self.mapped.partition_point(|entry| entry.begin <= address);
        let entry = after.checked_sub(1).and_then(|last| self.mapped.get(last));
        if let Some(entry) = entry.filter(|entry| entry.has(address) && entry.since <= time) {
            return entry.code(address, modules);
        }
        let was_there = |(until, entry): &&(u64, Entry)| {
            entry.has(address) && entry.since <= time && time <= *until
        };
        match self.replaced.iter().rev().find(was_there) {
            Some((_, entry)) => entry.code(address, modules),
            None => Code::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(pid: u32, begin: u64, end: u64, path: &str) -> Change {
        Change::Load(Mapping {
            pid,
            number: pid,
            begin,
            bytes: end - begin,
            offset: 0,
            path: path.as_bytes().to_vec(),
            build_id: Vec::new(),
            inode: 0,
        })
    }

    fn path(processes: &Processes, pid: u32, time: u64, address: u64) -> Option<String> {
        let process = &processes.processes[&pid];
        let now = process.mapped.iter().map(|entry| (u64::MAX, entry));
        let before = process
            .replaced
            .iter()
            .map(|(until, entry)| (*until, entry));
        let mut found = now
            .chain(before)
            .filter(|(until, entry)| entry.has(address) && entry.since <= time && time <= *until);
        let (_, entry) = found.next()?;
        Some(String::from_utf8(entry.mapping.path.clone()).unwrap())
    }

    #[test]
    fn a_mapping_is_found_at_its_time() {
        let mut processes = Processes::default();
        processes.add(1, Change::Exec { pid: 5 });
        processes.add(2, load(5, 0x1000, 0x5000, "a"));
        processes.add(4, load(5, 0x2000, 0x3000, "b"));
        // Changes of another CPU arrive later.
        processes.add(3, Change::Fork { parent: 5, pid: 6 });
        processes.add(9, Change::Exec { pid: 5 });
        processes.advance(Some(9));
        let at = |pid, time, address| path(&processes, pid, time, address);
        assert_eq!(at(5, 1, 0x2000), None);
        assert_eq!(at(5, 3, 0x2000).as_deref(), Some("a"));
        assert_eq!(at(5, 5, 0x2000).as_deref(), Some("b"));
        for (address, expected) in [
            (0xFFF, None),
            (0x1FFF, Some("a")),
            (0x3000, Some("a")),
            (0x5000, None),
        ] {
            assert_eq!(at(5, 5, address).as_deref(), expected, "{address:#x}");
        }
        assert_eq!(
            (at(6, 2, 0x2000), at(6, 5, 0x2000).as_deref()),
            (None, Some("a"))
        );
        processes.advance(None);
        assert_eq!(path(&processes, 5, 10, 0x2000), None);
        assert_eq!(path(&processes, 5, 8, 0x2000).as_deref(), Some("b"));
        processes.forget(10);
        assert!(!processes.processes.contains_key(&5) && processes.processes.contains_key(&6));
    }

    #[test]
    fn this_process_is_read_when_it_is_met() {
        let mut processes = Processes::default();
        let own = std::process::id();
        let here = this_process_is_read_when_it_is_met as *const () as u64;
        let code = processes.code(own, 5);
        assert!(matches!(code(here), Code::Module(..)));
        let local = 0u8;
        assert!(matches!(code(&raw const local as u64), Code::None));
    }
}
