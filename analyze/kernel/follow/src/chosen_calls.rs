//! The requested system calls.

use std::collections::BTreeSet;

use tracebraid_kernel_model::Syscall;
use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;

/// Patterns of names of system calls; empty for all.
#[derive(Clone, Debug, Default)]
pub struct CallNames(pub Vec<Glob>);

impl CallNames {
    /// The system calls that match the patterns.
    pub fn chosen(&self) -> ChosenCalls {
        if self.0.is_empty() {
            return ChosenCalls::default();
        }
        let known = (0..Syscall::count()).map(Syscall);
        ChosenCalls {
            known: Some(known.map(|call| are_called(&self.0, call)).collect()),
            globs: self.0.clone(),
        }
    }

    /// A warning for each pattern that matches none of the system calls in `counted`.
    pub fn unmatched(&self, counted: impl Iterator<Item = Syscall>) -> Vec<String> {
        let counted: BTreeSet<&str> = counted.flat_map(names_of).collect();
        let patterns = self.0.iter().filter_map(|glob| {
            if counted.iter().any(|name| glob.matches(name.as_bytes())) {
                return None;
            }
            let option = format!("--syscall {}", glob.text());
            Some(match unknown_call(glob) {
                None => format!("{option} matches no system call that ended in the selection"),
                Some(instead) => {
                    format!("{option} matches nothing: Linux has no such system call{instead}")
                }
            })
        });
        patterns.collect()
    }

    /// A message for each pattern that matches neither a system call of Linux nor one named in the
    /// opened traces.
    pub fn unknown(&self) -> Vec<String> {
        let sentence = |glob: &Glob| {
            let instead = unknown_call(glob)?;
            Some(format!("Linux has no system call {}{instead}", glob.text()))
        };
        self.0.iter().filter_map(sentence).collect()
    }
}

/// The suggestion of [`did_you_mean`] for a pattern that matches no system call; `None` if it
/// matches one.
fn unknown_call(glob: &Glob) -> Option<String> {
    let names = || Syscall::all().flat_map(names_of);
    let mut all = names();
    let is_known = all.any(|name| glob.matches(name.as_bytes()));
    (!is_known).then(|| did_you_mean(glob, names()))
}

/// The kernel's and the user-space name of a system call.
fn names_of(call: Syscall) -> [&'static str; 2] {
    [call.name(), call.user_name()]
}

/// True if a pattern matches a name of the call.
fn are_called(globs: &[Glob], call: Syscall) -> bool {
    let matches = |name: &str| globs.iter().any(|glob| glob.matches(name.as_bytes()));
    names_of(call).into_iter().any(matches)
}

/// The selected system calls.
#[derive(Clone, Debug, Default)]
pub struct ChosenCalls {
    /// By number; `None` selects all.
    known: Option<Vec<bool>>,
    /// For calls named by traces that are opened later; empty selects all.
    globs: Vec<Glob>,
}

impl ChosenCalls {
    /// Calls in which threads do not wait for work.
    pub fn without_waits_for_work() -> ChosenCalls {
        let works = |call: Syscall| !call.waits_for_work();
        ChosenCalls {
            known: Some((0..Syscall::count()).map(Syscall).map(works).collect()),
            globs: Vec::new(),
        }
    }

    /// True if the call is selected.
    #[inline(always)]
    pub fn contain(&self, call: Syscall) -> bool {
        let Some(known) = &self.known else {
            return true;
        };
        let chosen = known.get(usize::from(call.0)).copied();
        chosen.unwrap_or_else(|| self.globs.is_empty() || are_called(&self.globs, call))
    }
}
