//! Options of the report.

use tracebraid_follow::Views;
use tracebraid_language::glob::Glob;

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct LevelOptions {
    /// The views.
    pub views: Views,
    /// User-level threads by id in the runtime, or by name; empty: all.
    pub ults: Vec<UltPattern>,
    /// Nanoseconds of a probe to subtract, by trace; empty to subtract nothing.
    pub probe_costs: Vec<u32>,
}

impl LevelOptions {
    /// Nanoseconds of a probe to subtract in a trace.
    #[inline]
    pub(super) fn probe_cost(&self, trace: u32) -> u32 {
        self.probe_costs.get(trace as usize).copied().unwrap_or(0)
    }

    /// A warning if the selection of user-level threads matches none.
    pub(super) fn unmatched(&self, is_empty: bool) -> Vec<String> {
        let note =
            "--ult matches no user-level thread: `tracebraid levels --table threads` lists them";
        let is_unmatched = is_empty && !self.ults.is_empty();
        is_unmatched.then(|| note.to_owned()).into_iter().collect()
    }
}

/// A selection of user-level threads.
#[derive(Clone, Debug)]
pub enum UltPattern {
    /// Id in the runtime.
    Id(u64),
    /// Name.
    Name(Glob),
}

impl UltPattern {
    /// True if the user-level thread is selected.
    pub fn matches(&self, ult: u64, name: &str) -> bool {
        match self {
            UltPattern::Id(id) => *id == ult,
            UltPattern::Name(glob) => glob.matches(name.as_bytes()),
        }
    }
}

impl From<Views> for LevelOptions {
    fn from(views: Views) -> LevelOptions {
        LevelOptions {
            views,
            ..LevelOptions::default()
        }
    }
}
