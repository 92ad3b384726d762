//! What of a report is asked for, and what its second pass needs to know.

use std::collections::BTreeMap;

/// What of a report is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// Statistics.
    Stats,
    /// The most, the longest, the greatest.
    Top,
    /// One after the other, in the order of time.
    Log,
    /// How often values of each size occurred.
    Freq,
}

impl View {
    /// All.
    pub const ALL: [View; 4] = [View::Stats, View::Top, View::Log, View::Freq];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            View::Stats => "stats",
            View::Top => "top",
            View::Log => "log",
            View::Freq => "freq",
        }
    }
}

/// The least and the greatest value of each group: what a second pass over a trace needs to know in
/// order to count exactly how often values of each size occur.
pub type Ranges = BTreeMap<String, (u64, u64)>;
