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

/// The library that tells what is loaded where, if functions of a command are recorded; without it these have no names.
pub(super) fn modules_only(has_functions: bool) -> Option<Stacks> {
    if !has_functions {
        return None;
    }
    let told = find().map(Stacks::none);
    if let Err(why) = &told {
        say!("warning: functions will have no names: {why}");
    }
    told.ok()
}

/// The library with which commands take their own stacks, which is installed with the program.
pub(super) fn library() -> Result<PathBuf, Failure> {
    find().map_err(Failure::output)
}

fn find() -> Result<PathBuf, String> {
    const NAME: &str = "libtracebraid_stacks.so";
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("/"));
    let told = std::env::var_os("TRACEBRAID_LIBRARIES").map(PathBuf::from);
    let usual = [beside.to_owned(), beside.join("../lib/tracebraid")];
    let places = told
        .into_iter()
        .chain(usual)
        .map(|directory| directory.join(NAME));
    let places: Vec<PathBuf> = places.collect();
    places
        .iter()
        .find(|place| place.is_file())
        .cloned()
        .ok_or_else(|| {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            format!(
                "{NAME} is not there, which tells of stacks: {}",
                places.join(", ")
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

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
