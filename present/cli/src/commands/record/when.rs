//! Triggering under which a snapshot is written (`--when`).

use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Zoned;
use tracebraid_session::Session;
use tracebraid_session::kernel::{Condition, Group, Held, Syscalls, Triggering, Watched, trace_class};

use super::{RecordArgs, watch};
use crate::failure::Failure;
use crate::output::say;

/// A condition on the command line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct When(Condition);

const EXAMPLES: &str = "conditions are `syscall > 100ms`, `syscall(read,fsync) > 100ms`, `latency > 50ms`, \
                        `rate(sched_switch) > 10000/s`, `load > 4`, `runnable > 8`, `cpu > 90%`";

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<When, String> {
        let no_condition = || format!("`{text}` is not a condition: {EXAMPLES}");
        let (watched, limit) = text.split_once('>').ok_or_else(no_condition)?;
        let (watched, limit) = (watched.trim(), limit.trim());
        let (name, argument) = match watched.split_once('(') {
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')').map(str::trim)),
            None => (watched, None),
        };
        let number = |unit: &str| {
            let digits = limit.strip_suffix(unit).unwrap_or(limit).trim();
            let number = digits.parse::<f64>().ok();
            number.filter(|number| number.is_finite() && *number >= 0.0)
        };
        let time = || watch::duration(limit).ok().map(|time| time.as_nanos() as f64);
        let (watched, limit) = match (name, argument) {
            ("syscall", Some(names)) => (Watched::Call(calls(names)?), time()),
            ("rate", Some(event)) => (Watched::Rate(class(event)?), number("/s")),
            _ if watched.contains('(') => return Err(no_condition()),
            ("syscall", None) => (Watched::Call(Vec::new()), time()),
            ("latency", None) => (Watched::Latency, time()),
            ("load", None) => (Watched::Load, number("")),
            ("runnable", None) => (Watched::Runnable, number("")),
            ("cpu", None) => (Watched::Cpu, number("%")),
            _ => return Err(no_condition()),
        };
        Ok(When(Condition {
            text: text.trim().to_owned(),
            watched,
            limit: limit.ok_or_else(no_condition)?,
        }))
    }
}

/// Names of system calls as the kernel has them.
fn calls(names: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
    let calls = Syscalls::Only(names).by_kernel_names();
    match (calls.unknown().first(), calls) {
        (Some(name), _) => Err(format!("there is no system call `{name}`")),
        (None, Syscalls::Only(names)) => Ok(names),
        _ => Ok(Vec::new()),
    }
}

/// The name of an event class, or the beginning of some with `*`.
fn class(name: &str) -> Result<String, String> {
    let schema = trace_class();
    let classes = schema.streams.iter().flat_map(|stream| &stream.events);
    let mut names = classes.map(|class| &*class.name);
    let is_known = names.any(|known| match name.strip_suffix('*') {
        Some(start) => known.starts_with(start),
        None => known == name,
    });
    match is_known {
        true => Ok(name.to_owned()),
        false => Err(format!("no event of the kernel is named `{name}`")),
    }
}

/// The conditions of a recording of the kernel.
///
/// # Errors
/// When the events that a condition needs are not recorded.
pub(super) fn of_kernel(
    args: &RecordArgs,
    groups: &[Group],
    syscalls: &Syscalls,
) -> Result<Triggering, Failure> {
    let has_switches = groups.contains(&Group::Sched);
    for When(condition) in &args.when {
        let text = &condition.text;
        match condition.watched {
            Watched::Call(_) if !has_switches || *syscalls == Syscalls::None => {
                return Err(Failure::usage(format!(
                    "--when '{text}' needs system calls and the group sched, by which calls are charged to threads"
                )));
            }
            Watched::Latency if !has_switches => {
                return Err(Failure::usage(format!("--when '{text}' needs the group sched")));
            }
            _ => {}
        }
    }
    Ok(Triggering {
        any: args
            .when
            .iter()
            .map(|When(condition)| condition.clone())
            .collect(),
        interval: args.when_interval,
        most: args.snapshots,
    })
}

/// Where snapshots go.
pub(super) struct Snapshots<'d> {
    directory: &'d Path,
    quiet: bool,
}

impl<'d> Snapshots<'d> {
    /// Below the directory of the recording.
    pub(super) fn new(directory: &'d Path, quiet: bool) -> Snapshots<'d> {
        Snapshots { directory, quiet }
    }

    /// Writes a snapshot for each condition that has held. The recording goes on even if that fails.
    pub(super) fn write(&self, session: &Session) {
        for Held { condition, value } in session.held() {
            let directory = self.next();
            match session.snapshot(&directory) {
                Ok(_) if self.quiet => {}
                Ok(_) => say!("Snapshot in {}: {condition} ({value})", directory.display()),
                Err(error) => say!("warning: {condition} ({value}), but the snapshot failed: {error}"),
            }
        }
    }

    fn next(&self) -> PathBuf {
        let stamp = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
        let plain = self.directory.join(format!("snapshot-{stamp}"));
        let others = (1..).map(|number| self.directory.join(format!("snapshot-{stamp}-{number}")));
        let mut names = std::iter::once(plain.clone()).chain(others);
        names.find(|name| !name.exists()).unwrap_or(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Watched, f64)> {
        let When(condition) = text.parse().ok()?;
        assert_eq!(condition.text, text.trim());
        Some((condition.watched, condition.limit))
    }

    #[test]
    fn conditions_are_read() {
        let call = |names: &[&str]| Watched::Call(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(read("syscall > 100ms"), Some((call(&[]), 1e8)));
        assert_eq!(
            read("syscall(read, fsync)>2s"),
            Some((call(&["read", "fsync"]), 2e9))
        );
        assert_eq!(read(" latency > 50us "), Some((Watched::Latency, 5e4)));
        let rate = |name: &str| Watched::Rate(name.to_owned());
        assert_eq!(
            read("rate(sched_switch) > 10000/s"),
            Some((rate("sched_switch"), 1e4))
        );
        assert_eq!(
            read("rate(syscall_entry_*) > 5"),
            Some((rate("syscall_entry_*"), 5.0))
        );
        assert_eq!(read("load > 1.5"), Some((Watched::Load, 1.5)));
        assert_eq!(read("runnable > 8"), Some((Watched::Runnable, 8.0)));
        assert_eq!(read("cpu > 90%"), Some((Watched::Cpu, 90.0)));
        for wrong in [
            "",
            "load",
            "load < 3",
            "load > much",
            "syscall > 3 bytes",
            "syscall(reed) > 3s",
            "rate(none_such) > 3",
            "rate > 3",
            "latency(3) > 3s",
            "cpu > -1%",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
