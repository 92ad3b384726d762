//! Locations of programs: installed, or unpacked by `scripts/programs`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::skipped;

/// A program that can be executed.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Root directory of an unpacked program; `None` for an installed one.
    unpacked: Option<PathBuf>,
}

/// Directories of programs relative to a root.
const PLACES: [&str; 3] = ["usr/bin", "usr/sbin", "usr/lib/postgresql/15/bin"];
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Finds a program; prints a message if it does not exist. Debian's own programs take precedence
/// over others in the path, such as the scripts of version managers.
pub(crate) fn program(name: &str) -> Option<Program> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/programs");
    let below = |root: &Path| PLACES.map(|place| root.join(place).join(name));
    let installed = below(Path::new("/")).into_iter();
    let told = env::var_os("PATH").unwrap_or_default();
    let told: Vec<PathBuf> = env::split_paths(&told)
        .map(|place| place.join(name))
        .collect();
    if let Some(path) = installed.chain(told).find(|path| path.is_file()) {
        return Some(Program {
            path,
            unpacked: None,
        });
    }
    let Some(path) = below(&unpacked).into_iter().find(|path| path.is_file()) else {
        skipped(format_args!("{name} is not there: run scripts/programs"));
        return None;
    };
    let unpacked = unpacked.canonicalize().ok();
    Some(Program { path, unpacked })
}

impl Program {
    /// An installed program.
    pub(crate) fn installed(path: PathBuf) -> Program {
        Program {
            path,
            unpacked: None,
        }
    }

    /// The path as text.
    pub(crate) fn name(&self) -> &str {
        self.path.to_str().expect("UTF-8")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        self.prepare(&mut command);
        command
    }

    /// Sets the library path of a command that finally executes the program.
    pub(crate) fn prepare(&self, command: &mut Command) {
        if let Some(root) = &self.unpacked {
            command.env("LD_LIBRARY_PATH", root.join(LIBRARIES));
        }
    }
}
