//! Call stacks: how they are wanted, and the library that takes them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use tracebraid_session::{Stacks, kernel};

use crate::failure::Failure;
use crate::output::say;

/// How call stacks are taken, as the command line says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    period_us: u64,
    threshold_us: u64,
    depth: u32,
    waits: String,
}

impl Default for Wanted {
    fn default() -> Self {
        Wanted {
            period_us: 1000,
            threshold_us: 100,
            depth: 128,
            waits: "auto".to_owned(),
        }
    }
}

/// Ways of finding waits; see docs/recording-stacks.md.
const WAYS: [&str; 4] = ["auto", "kernel", "perf", "off"];

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (key, value) = item
                .split_once('=')
                .ok_or_else(|| format!("`{item}`: KEY=NUMBER is expected"))?;
            wanted.set(key.trim(), value.trim())?;
        }
        Ok(wanted)
    }
}

impl Wanted {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = |least: u64, most: u64| {
            let number = value
                .parse()
                .ok()
                .filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("`{key}` is a number from {least} to {most}, not `{value}`"))
        };
        match key {
            "period_us" if value == "0" => self.period_us = 0,
            "period_us" => self.period_us = number(100, 10_000_000)?,
            "threshold_us" => self.threshold_us = number(0, 10_000_000)?,
            "depth" => self.depth = number(1, 256)? as u32,
            "waits" if WAYS.contains(&value) => value.clone_into(&mut self.waits),
            "waits" => return Err(format!("`waits` is one of {}, not `{value}`", WAYS.join(", "))),
            _ => {
                return Err(format!(
                    "there is no `{key}`: there are period_us, threshold_us, depth, waits"
                ));
            }
        }
        Ok(())
    }

    /// What the kernel's recorder does. Programs without the library have their stacks taken there.
    pub(super) fn of_kernel(&self, library: Option<&Path>) -> kernel::Stacks {
        let is_off = self.waits == "off";
        kernel::Stacks {
            period_ns: self.period_us * 1000,
            threshold_ns: if is_off {
                0
            } else {
                self.threshold_us.max(1) * 1000
            },
            depth: self.depth,
            takes_stacks: true,
            library: library.map(Path::to_owned),
            ..kernel::Stacks::default()
        }
    }

    /// Says what of it a command cannot do by itself without those capabilities.
    pub(super) fn warn(&self, missing: &[&str]) {
        let lacks = missing.contains(&"CAP_PERFMON").then(paranoid).flatten();
        if let Some(said) = lacks.and_then(|level| self.lacking(level)) {
            say!("warning: {said}");
        }
    }

    /// What cannot be recorded without a capability at that level of `kernel.perf_event_paranoid`.
    fn lacking(&self, level: i64) -> Option<String> {
        let has_cpu = self.period_us > 0;
        let has_waits = self.waits != "off";
        match level {
            ..=1 => None,
            2 if has_waits => {
                let still = match has_cpu {
                    true => ": only stacks of CPU time are, without the kernel's part of it",
                    false => "",
                };
                Some(format!(
                    "stacks of waits are not recorded, which needs CAP_PERFMON, or kernel.perf_event_paranoid of at most 1 (it \
                     is 2){still}"
                ))
            }
            2 => None,
            _ if has_cpu || has_waits => Some(format!(
                "no call stacks are recorded where the kernel keeps to its kernel.perf_event_paranoid of {level}: those of \
                 CPU time need CAP_PERFMON or at most 2 there, those of waits at most 1"
            )),
            _ => None,
        }
    }

    /// What a command does that loads the library.
    pub(super) fn of_command(&self, library: PathBuf) -> Stacks {
        let Wanted {
            period_us,
            threshold_us,
            depth,
            waits,
        } = self;
        Stacks {
            library,
            options: format!("period_us={period_us},threshold_us={threshold_us},depth={depth},waits={waits}"),
            modules_only: false,
        }
    }
}

/// The library with which programs record that are not linked with it.
pub(super) fn of_probes() -> Option<PathBuf> {
    let found = find(PROBES, "programs that are not linked with it record nothing");
    if let Err(why) = &found {
        say!("warning: {why}");
    }
    found.ok()
}

/// The library that tells what is loaded where, if functions of a command are recorded; without it these have no names.
pub(super) fn modules_only(has_functions: bool) -> Option<Stacks> {
    if !has_functions {
        return None;
    }
    let told = find(STACKS, "which tells what is loaded where").map(Stacks::none);
    if let Err(why) = &told {
        say!("warning: functions will have no names: {why}");
    }
    told.ok()
}

/// What the kernel lets everybody measure; nothing if it does not say.
fn paranoid() -> Option<i64> {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    level.trim().parse().ok()
}

/// The library with which commands take their own stacks, which is installed with the program.
pub(super) fn library() -> Result<PathBuf, Failure> {
    find(STACKS, "which tells of stacks").map_err(Failure::output)
}

const STACKS: &str = "libtracebraid_stacks.so";
const PROBES: &str = "libtracebraid_probe.so";

/// A library that is installed with the program; or where it is not, and what that means.
fn find(name: &str, meaning: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("/"));
    let told = std::env::var_os("TRACEBRAID_LIBRARIES").map(PathBuf::from);
    let usual = [beside.to_owned(), beside.join("../lib/tracebraid")];
    let places = told
        .into_iter()
        .chain(usual)
        .map(|directory| directory.join(name));
    let places: Vec<PathBuf> = places.collect();
    places
        .iter()
        .find(|place| place.is_file())
        .cloned()
        .ok_or_else(|| {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            format!("{name} is not there, {meaning}: {}", places.join(", "))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_recorded_without_privilege_is_told() {
        let lacking = |options: &str, level| {
            let wanted: Wanted = options.parse().unwrap();
            wanted.lacking(level).unwrap_or_default()
        };
        assert_eq!(lacking("", 1), "");
        assert_eq!(lacking("", -1), "");
        let waits = lacking("", 2);
        assert!(
            waits.contains("waits") && waits.contains("at most 1 (it is 2): only stacks of CPU time are"),
            "{waits}"
        );
        assert!(lacking("period_us=0", 2).ends_with("(it is 2)"));
        assert_eq!(lacking("waits=off", 2), "");
        assert!(lacking("waits=off", 3).contains("no call stacks"));
        assert_eq!(lacking("waits=off,period_us=0", 4), "");
    }

    #[test]
    fn options_are_understood_or_refused() {
        let wanted: Wanted = "period_us=0, depth=64,waits=perf".parse().unwrap();
        assert_eq!(
            (wanted.period_us, wanted.threshold_us, wanted.depth),
            (0, 100, 64)
        );
        assert_eq!("".parse::<Wanted>(), Ok(Wanted::default()));
        for (text, part) in [
            ("period_us=5", "from 100 to"),
            ("depth", "KEY=NUMBER"),
            ("deep=3", "there is no `deep`"),
            ("waits=maybe", "one of auto, kernel, perf, off"),
            ("threshold_us=-1", "not `-1`"),
        ] {
            let error = text.parse::<Wanted>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
