//! Requested parts of a report, and inputs of its second pass.

use std::collections::BTreeMap;

/// A view of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum View {
    /// Statistics.
    Stats,
    /// The largest or longest items.
    Top,
    /// All items in time order.
    Log,
    /// Histograms.
    Freq,
}

impl View {
    /// All views.
    pub const ALL: [View; 4] = [View::Stats, View::Top, View::Log, View::Freq];

    /// Name of the view.
    pub fn name(self) -> &'static str {
        match self {
            View::Stats => "stats",
            View::Top => "top",
            View::Log => "log",
            View::Freq => "freq",
        }
    }
}

/// The least and the greatest value of each group, which a second pass over a trace needs for exact
/// histograms.
pub type Ranges = BTreeMap<String, (u64, u64)>;

/// Contents of a report that is a list of tables.
#[derive(Clone, Debug)]
pub struct Views {
    /// Requested views; empty for statistics and top lists.
    pub views: Vec<View>,
    /// Rows of top lists.
    pub rows: usize,
    /// Only items whose values are within these limits.
    pub limits: Limits,
    /// Bounds of values, for a second pass that makes histograms.
    pub ranges: Option<Ranges>,
}

/// Default number of rows of top lists.
pub const ROWS: usize = 20;

/// Inclusive limits of durations (nanoseconds) or sizes (bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Lower limit.
    pub min: Option<u64>,
    /// Upper limit.
    pub max: Option<u64>,
}

impl Limits {
    /// True if a value is within the limits.
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
    /// True if the view is requested.
    pub fn shows(&self, view: View) -> bool {
        match self.views.as_slice() {
            [] => matches!(view, View::Stats | View::Top),
            views => views.contains(&view),
        }
    }

    /// Requested number of rows of top lists.
    pub fn top(&self) -> usize {
        if self.shows(View::Top) { self.rows } else { 0 }
    }
}

/// The options of an analysis without options.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOptions;

impl From<Views> for NoOptions {
    fn from(_: Views) -> NoOptions {
        NoOptions
    }
}
