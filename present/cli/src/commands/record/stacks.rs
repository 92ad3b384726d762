//! Options for call stacks, and the libraries that programs load.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use tracebraid_session::{Levels, Modules, kernel};

use crate::failure::Failure;
use crate::fold;
use crate::output::say;

/// Options of `--stacks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    period_us: u64,
    threshold_us: u64,
    depth: u32,
    stack_bytes: u32,
    waits: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        let usual = kernel::Stacks::default();
        Wanted {
            period_us: usual.period_ns / 1000,
            threshold_us: usual.threshold_ns / 1000,
            depth: usual.depth,
            stack_bytes: usual.copy_bytes,
            waits: true,
        }
    }
}

/// Names of the options, for error messages.
const OPTIONS: &str = "period_us, threshold_us, depth, stack_bytes, waits";

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        for item in text.split(',').filter(|item| !item.is_empty()) {
            let (key, value) = item
                .split_once('=')
                .ok_or_else(|| format!("`{item}`: expected KEY=VALUE"))?;
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
            number.ok_or_else(|| {
                format!("`{key}` must be a number from {least} to {most}, not `{value}`")
            })
        };
        match key {
            "period_us" if value == "0" => self.period_us = 0,
            "period_us" => self.period_us = number(100, 10_000_000)?,
            "threshold_us" => self.threshold_us = number(0, 10_000_000)?,
            "depth" => self.depth = number(1, kernel::MOST_DEPTH.into())? as u32,
            "stack_bytes" if value == "0" => self.stack_bytes = 0,
            "stack_bytes" => {
                let most = u64::from(kernel::MOST_COPY);
                let bytes = fold::size(value).ok().filter(|bytes| *bytes <= most);
                let wrong = || format!("`stack_bytes` must be a size from 0 to 1M, not `{value}`");
                self.stack_bytes = bytes.ok_or_else(wrong)? as u32;
            }
            "waits" => {
                self.waits = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("`waits` must be on or off, not `{value}`")),
                }
            }
            _ => return Err(format!("unknown option `{key}`; the options are {OPTIONS}")),
        }
        Ok(())
    }

    /// Options of the recorder.
    pub(super) fn of_kernel(&self) -> kernel::Stacks {
        kernel::Stacks {
            period_ns: self.period_us * 1000,
            // A threshold of 1 ns includes waits of any length; 0 would disable waits.
            threshold_ns: if self.waits {
                (self.threshold_us * 1000).max(1)
            } else {
                0
            },
            depth: self.depth,
            copy_bytes: self.stack_bytes,
            ..kernel::Stacks::default()
        }
    }
}

/// The library with which programs record that are not linked with it.
pub(super) fn of_probes() -> Option<PathBuf> {
    let found = find(
        PRELOADED,
        "programs that are not linked with it record nothing",
    );
    if let Err(why) = &found {
        say!("warning: {why}");
    }
    found.ok()
}

/// The library that records OpenCL and CUDA.
pub(super) fn of_gpu() -> Result<PathBuf, Failure> {
    find("libtracebraid_gpu.so", "which records OpenCL and CUDA").map_err(Failure::usage)
}

/// Recorders of user-level schedulers. A missing file is reported, and the others
/// record.
pub(super) fn of_levels() -> Levels {
    let found = |name, meaning| {
        let found = find(name, meaning);
        if let Err(why) = &found {
            say!("warning: {why}");
        }
        found.ok()
    };
    let directory = |file: PathBuf| file.parent().map(Path::to_owned);
    let python = found(
        "python/levels/sitecustomize.py",
        "with which Python records asyncio",
    );
    let libraries = python.as_ref().and_then(|_| {
        found(
            "libtracebraid_probe.so",
            "with which Python records asyncio",
        )
        .and_then(directory)
    });
    Levels {
        openmp: found("libtracebraid_openmp.so", "which records OpenMP"),
        python: python.and_then(directory),
        libraries,
    }
}

/// The library that records loaded modules, if functions of a command are recorded: without it,
/// functions have no names.
pub(super) fn modules(has_functions: bool) -> Option<Modules> {
    if !has_functions {
        return None;
    }
    let library = find(MODULES, "which records the modules of a program");
    if let Err(why) = &library {
        say!("warning: functions will have no names: {why}");
    }
    Some(Modules {
        library: library.ok()?,
    })
}

const MODULES: &str = "libtracebraid_modules.so";
/// The library to preload. The library for modules contains that for probes, but exists for x86-64
/// only.
const PRELOADED: &str = if cfg!(target_arch = "x86_64") {
    MODULES
} else {
    "libtracebraid_probe.so"
};

/// Path of a library that is installed with the program. The error contains the paths that were
/// searched, and the consequence.
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
            let places: Vec<String> = places
                .iter()
                .map(|place| place.display().to_string())
                .collect();
            format!(
                "{name} is missing, {meaning}; searched: {}",
                places.join(", ")
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        let wanted: Wanted = "period_us=0, depth=64,waits=off,stack_bytes=16K"
            .parse()
            .unwrap();
        assert_eq!(
            (
                wanted.period_us,
                wanted.threshold_us,
                wanted.depth,
                wanted.stack_bytes
            ),
            (0, 100, 64, 16384)
        );
        assert_eq!(wanted.of_kernel().threshold_ns, 0);
        assert_eq!("".parse::<Wanted>(), Ok(Wanted::default()));
        for (text, part) in [
            ("period_us=5", "from 100 to"),
            ("depth", "KEY=VALUE"),
            ("deep=3", "unknown option `deep`"),
            ("waits=maybe", "on or off"),
            ("threshold_us=-1", "not `-1`"),
            ("stack_bytes=1025K", "from 0 to 1M"),
        ] {
            let error = text.parse::<Wanted>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
