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

/// Buckets of histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buckets {
    /// Between powers of two: exact with the sketches of one pass.
    #[default]
    Log,
    /// Of equal width between the least and the greatest value, which a first pass finds.
    Linear,
}

/// Grouping of the values of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// All values together.
    All,
    /// By system call.
    Call,
    /// By CPU.
    Cpu,
    /// By block device.
    Disk,
    /// By event.
    Event,
    /// By network interface.
    Interface,
    /// By interrupt, softirq or function.
    Name,
    /// By operation on a file.
    Operation,
    /// By priority of the kernel.
    Priority,
    /// By process.
    Process,
    /// By wait reason.
    Reason,
    /// By thread.
    Thread,
}

impl By {
    /// All groupings. Reports know subsets.
    pub const ALL: [By; 12] = [
        By::All,
        By::Call,
        By::Cpu,
        By::Disk,
        By::Event,
        By::Interface,
        By::Name,
        By::Operation,
        By::Priority,
        By::Process,
        By::Reason,
        By::Thread,
    ];

    /// Name of the grouping.
    pub fn name(self) -> &'static str {
        match self {
            By::All => "all",
            By::Call => "call",
            By::Cpu => "cpu",
            By::Disk => "disk",
            By::Event => "event",
            By::Interface => "interface",
            By::Name => "name",
            By::Operation => "operation",
            By::Priority => "priority",
            By::Process => "process",
            By::Reason => "reason",
            By::Thread => "thread",
        }
    }
}

/// The groupings of a report's histogram.
#[derive(Clone, Copy, Debug)]
pub struct Groupings {
    /// Those that can be requested, in the order in which a report prints them.
    pub known: &'static [By],
    /// Those without a request.
    pub usual: &'static [By],
}

/// Contents of a report that is a list of tables.
#[derive(Clone, Debug)]
pub struct Views {
    /// Requested views; empty for statistics and top lists.
    pub views: Vec<View>,
    /// Rows of top lists.
    pub rows: usize,
    /// Only items whose values are within these limits.
    pub limits: Limits,
    /// Buckets of histograms.
    pub buckets: Buckets,
    /// Groupings of histograms; empty for the usual ones. A report skips those that it does not
    /// know.
    pub by: Vec<By>,
    /// Bounds of values, for a second pass that makes histograms of linear buckets.
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
            buckets: Buckets::default(),
            by: Vec::new(),
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

    /// Groupings of the histogram that this pass makes; none without such a histogram.
    pub fn groupings(&self, of: Groupings) -> Vec<By> {
        if !self.shows(View::Freq) || self.buckets == Buckets::Linear || self.ranges.is_some() {
            return Vec::new();
        }
        let is_asked = |by: &By| match self.by.as_slice() {
            [] => of.usual.contains(by),
            asked => asked.contains(by),
        };
        of.known.iter().copied().filter(is_asked).collect()
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
