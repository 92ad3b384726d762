//! Conditions that trigger a snapshot (`--when`).

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use jiff::Zoned;
use tracebraid_session::Session;
use tracebraid_session::kernel::{
    Condition, Group, Held, MOST_CONDITIONS, Options, Syscalls, Triggering, Watched,
};

use super::{RecordArgs, watch};
use crate::failure::Failure;
use crate::output::say;

/// A condition of `--when`.
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
        let time = || {
            watch::duration(limit)
                .ok()
                .map(|time| time.as_nanos() as f64)
        };
        let (watched, limit) = match (name, argument) {
            ("syscall", Some(names)) => (Watched::Call(calls(names)?), time()),
            ("rate", Some(event)) if !event.is_empty() => {
                (Watched::Rate(event.to_owned()), number("/s"))
            }
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

/// Parses names of system calls; returns them as the kernel spells them.
fn calls(names: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = names
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    let calls = Syscalls::Only(names).by_kernel_names();
    match (calls.unknown().first(), calls) {
        (Some(name), _) => Err(format!("there is no system call `{name}`")),
        (None, Syscalls::Only(names)) => Ok(names),
        _ => Ok(Vec::new()),
    }
}

/// The conditions of `--when`, checked against the other options.
///
/// # Errors
/// When a condition can never hold: the events that it needs are not recorded, or its limit cannot
/// be exceeded.
pub(super) fn of_kernel(args: &RecordArgs, options: &Options) -> Result<Triggering, Failure> {
    let conditions = || args.when.iter().map(|When(condition)| condition);
    if args.when.len() > MOST_CONDITIONS {
        return Err(Failure::usage(format!(
            "--when can be given at most {MOST_CONDITIONS} times, not {}",
            args.when.len()
        )));
    }
    for condition in conditions() {
        check(condition, options)
            .and_then(|()| check_length(condition, args.duration))
            .map_err(|why| {
                Failure::usage(format!("--when '{}' can never hold: {why}", condition.text))
            })?;
    }
    Ok(Triggering {
        any: conditions().cloned().collect(),
        interval: args.when_interval,
        most: args.snapshots,
    })
}

/// Rejects a condition that can never hold in a recording with these options.
fn check(condition: &Condition, options: &Options) -> Result<(), String> {
    let limit = condition.limit;
    match &condition.watched {
        Watched::Call(names) => check_calls(names, limit, options),
        Watched::Latency => needs_switches(options, "which contains wake-ups and switches"),
        Watched::Rate(_) if limit >= f64::from(u32::MAX) => {
            Err("no machine reaches that rate".to_owned())
        }
        Watched::Rate(event) => options.records(event),
        Watched::Load | Watched::Runnable => match most_threads() {
            Some(most) if limit >= most as f64 => {
                Err(format!("this machine runs at most {most} threads"))
            }
            _ => Ok(()),
        },
        Watched::Cpu if limit >= 100.0 => Err("the share is at most 100 %".to_owned()),
        Watched::Cpu => Ok(()),
    }
}

fn needs_switches(options: &Options, why: &str) -> Result<(), String> {
    match options.groups.contains(&Group::Sched) {
        true => Ok(()),
        false => Err(format!(
            "it needs the group sched, {why}: add sched to --kernel"
        )),
    }
}

fn check_calls(names: &[String], limit: f64, options: &Options) -> Result<(), String> {
    if options.syscalls == Syscalls::None {
        return Err("it needs system calls, which --syscalls none leaves out".to_owned());
    }
    needs_switches(options, "by which calls are charged to threads")?;
    names
        .iter()
        .try_for_each(|name| options.records_duration(name))?;
    match options.conditions.duration {
        Some(bounds) if !bounds.is_inverted && bounds.most as f64 <= limit => {
            Err("--where excludes calls that take that long".to_owned())
        }
        _ => Ok(()),
    }
}

/// Interval at which the load of the machine is read.
const LOOK: Duration = Duration::from_secs(1);

/// Rejects a condition that cannot hold within `--duration`.
fn check_length(condition: &Condition, length: Option<Duration>) -> Result<(), String> {
    let Some(length) = length else { return Ok(()) };
    let too_short = match condition.watched {
        Watched::Call(_) | Watched::Latency => condition.limit >= length.as_nanos() as f64,
        Watched::Load | Watched::Runnable | Watched::Cpu => length <= LOOK,
        Watched::Rate(_) => false,
    };
    match too_short {
        true => Err("--duration ends the recording too early".to_owned()),
        false => Ok(()),
    }
}

/// Maximum number of threads of the machine; `None` if `/proc` does not contain it.
fn most_threads() -> Option<u64> {
    let of = |name: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    [of("threads-max"), of("pid_max")]
        .into_iter()
        .flatten()
        .min()
}

/// Destination of snapshots.
pub(super) struct Snapshots<'d> {
    directory: &'d Path,
    quiet: bool,
}

impl<'d> Snapshots<'d> {
    /// `directory` is that of the recording.
    pub(super) fn new(directory: &'d Path, quiet: bool) -> Snapshots<'d> {
        Snapshots { directory, quiet }
    }

    /// Writes a snapshot for each condition that has held. If that fails, the recording continues.
    pub(super) fn write(&self, session: &Session) {
        for Held { condition, value } in session.held() {
            let directory = self.next();
            match session.snapshot(&directory) {
                Ok(_) if self.quiet => {}
                Ok(_) => say!("Snapshot in {}: {condition} ({value})", directory.display()),
                Err(error) => {
                    say!("warning: {condition} ({value}), but the snapshot failed: {error}")
                }
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
        let call =
            |names: &[&str]| Watched::Call(names.iter().map(|&name| name.to_owned()).collect());
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
            "rate > 3",
            "rate() > 3",
            "latency(3) > 3s",
            "cpu > -1%",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
