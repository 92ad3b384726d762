//! Results and limitations of an import.

use std::collections::{BTreeMap, BTreeSet};

/// Results of an import. Its texts are for users.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Format of the file: `perf.data`, `trace.dat version 7`.
    pub format: String,
    /// Number of event records that were written.
    pub events: u64,
    /// Number of events that were lost during the recording, according to the file.
    pub lost: u64,
    /// Names of the event classes that have events.
    pub classes: BTreeSet<String>,
    /// Data that the file lacks or that is not imported, a phrase for each.
    pub lacks: Vec<String>,
    /// Damage and its consequences, a sentence for each, with the position in the file.
    pub damage: Vec<String>,
}

/// Counts skipped records by reason, for the phrases of the summary.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Number of records, and offset of the first, in bytes.
    left_out: BTreeMap<&'static str, (u64, u64)>,
}

impl Tally {
    /// Counts a record at this offset.
    pub(crate) fn count(&mut self, what: &'static str, offset: u64) {
        self.left_out.entry(what).or_insert((0, offset)).0 += 1;
    }

    /// Adds all counts to the damage of the summary.
    pub(crate) fn tell(&self, summary: &mut Summary) {
        for (what, (count, offset)) in &self.left_out {
            let times = match count {
                1 => format!("byte {offset}: {what}"),
                _ => format!("byte {offset}: {what} ({count} times)"),
            };
            summary.damage.push(times);
        }
    }
}

impl Summary {
    /// Counts an event that was written.
    pub(crate) fn event(&mut self, class: &str) {
        self.events += 1;
        if !self.classes.contains(class) {
            self.classes.insert(class.to_owned());
        }
    }

    /// Adds the data that reports on the kernel will lack.
    pub(crate) fn find_lacks(&mut self) {
        let has = |names: &[&str]| {
            self.classes
                .iter()
                .any(|class| names.contains(&class.as_str()))
        };
        let begins = |prefix: &str| self.classes.iter().any(|class| class.starts_with(prefix));
        let mut lacks = Vec::new();
        if !has(&["sched:sched_switch"]) {
            lacks.push("no switches (sched:sched_switch)");
        }
        if !has(&["sched:sched_waking", "sched:sched_wakeup"]) {
            lacks.push("no wake-ups (sched:sched_waking)");
        }
        let by_number = has(&["raw_syscalls:sys_enter"]) && has(&["raw_syscalls:sys_exit"]);
        let by_name = begins("syscalls:sys_enter_") && begins("syscalls:sys_exit_");
        if !by_number && !by_name {
            lacks.push("no system calls (raw_syscalls or syscalls)");
        }
        self.lacks
            .splice(0..0, lacks.into_iter().map(str::to_owned));
    }
}
