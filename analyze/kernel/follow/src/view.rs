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

/// What a report that is a list of tables shows.
#[derive(Clone, Debug)]
pub struct Views {
    /// Which views; none: statistics and the greatest.
    pub views: Vec<View>,
    /// Rows of what is greatest.
    pub rows: usize,
    /// Only what lasts that long.
    pub limits: Limits,
    /// For a second pass that counts how often values of each size occur: their bounds.
    pub ranges: Option<Ranges>,
}

/// Rows of what is greatest where nobody says how many.
pub const ROWS: usize = 20;

/// Bounds of durations (nanoseconds) or sizes (bytes); both belong to what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The least.
    pub min: Option<u64>,
    /// The greatest.
    pub max: Option<u64>,
}

impl Limits {
    /// True if a value is within them.
    #[inline(always)]
    pub fn contain(&self, value: u64) -> bool {
        self.min.is_none_or(|min| min <= value) && self.max.is_none_or(|max| value <= max)
    }
}

impl Default for Views {
    fn default() -> Self {
        Views {
            views: Vec::new(),
            rows: ROWS,
            limits: Limits::default(),
            ranges: None,
        }
    }
}

impl Views {
    /// True if that view is asked for.
    pub fn shows(&self, view: View) -> bool {
        match self.views.as_slice() {
            [] => matches!(view, View::Stats | View::Top),
            views => views.contains(&view),
        }
    }

    /// How many rows of what is greatest are asked for.
    pub fn top(&self) -> usize {
        if self.shows(View::Top) { self.rows } else { 0 }
    }
}

/// The options of an analysis that has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOptions;

impl From<Views> for NoOptions {
    fn from(_: Views) -> NoOptions {
        NoOptions
    }
}
