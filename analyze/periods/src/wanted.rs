//! Options of the report.

use tracebraid_language::periods::{Capture, Period, Periods};

use tracebraid_follow::{Buckets, CpuSet, Limits, ROWS, Window};
use tracebraid_statistics::Ranges;
use tracebraid_tables::View;

/// Options of the report.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Restricts the event records to a time range.
    pub window: Window,
    /// Restricts the event records to CPUs.
    pub cpus: CpuSet,
    /// The views to show.
    pub views: Vec<View>,
    /// Maximum number of rows in a list of the longest periods.
    pub rows: usize,
    /// Restricts periods by duration. Periods within an excluded period do not count for the
    /// periods around it.
    pub limits: Limits,
    /// Restricts the periods shown, by name or path (`outer/inner`); empty: all.
    pub select: Vec<String>,
    /// Values to group by: `PERIOD.CAPTURE`, or `cpu`.
    pub group_by: Vec<String>,
    /// The order of the log.
    pub order: Order,
    /// Name or path of the period for which the log lists sums of the periods within it.
    pub aggregate_by: Option<String>,
    /// Whether the histograms of all groups of a period share one scale.
    pub series: bool,
    /// Maximum number of open periods.
    pub most_open: usize,
    /// Buckets of histograms.
    pub buckets: Buckets,
    /// Bounds of the histograms, for a second pass.
    pub ranges: Option<Ranges>,
}

/// Default maximum of open periods: they take some hundred MiB.
pub const MOST_OPEN: usize = 1 << 20;

/// The order of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of the starts.
    #[default]
    Time,
    /// Each period followed by those within it.
    Hierarchy,
    /// Longest first.
    Duration,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            window: Window::default(),
            cpus: CpuSet::default(),
            views: Vec::new(),
            rows: ROWS,
            limits: Limits::default(),
            select: Vec::new(),
            group_by: Vec::new(),
            order: Order::default(),
            aggregate_by: None,
            series: false,
            most_open: MOST_OPEN,
            buckets: Buckets::default(),
            ranges: None,
        }
    }
}

impl Asked {
    fn has_powers(&self) -> bool {
        let is_freq = self.series || self.views.contains(&View::Freq);
        is_freq && self.buckets == Buckets::Log && self.ranges.is_none()
    }
}

/// The options, resolved against the definitions.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) views: Vec<View>,
    pub(super) rows: usize,
    pub(super) limits: Limits,
    pub(super) order: Order,
    /// See [`Asked::aggregate_by`].
    pub(super) aggregate_by: Option<usize>,
    pub(super) series: bool,
    /// By definition: distance outward to the `aggregate_by` definition, 0 for that one itself.
    pub(super) aggregated: Vec<Option<usize>>,
    pub(super) most_open: usize,
    /// Whether this pass makes histograms of logarithmic buckets.
    pub(super) has_powers: bool,
    pub(super) ranges: Option<Ranges>,
    /// Whether all starts are kept until they are taken.
    pub(super) begins: bool,
    /// By definition: whether it is shown.
    pub(super) shown: Vec<bool>,
    /// By definition: its path (`outer/inner`).
    pub(super) paths: Vec<String>,
    /// Names of the values to group by.
    pub(super) group_names: Vec<String>,
    /// By definition: sources of the values to group by; empty: not grouped.
    pub(super) groups: Vec<Vec<GroupPlace>>,
}

/// Source of a value to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupPlace {
    /// The CPU on which the period began.
    Cpu,
    /// Captured at the start of a period: distance outward to the period (0: its own), and index
    /// of the capture.
    Begin(usize, usize),
    /// Captured at the period's end.
    End(usize),
}

impl Wanted {
    /// # Errors
    /// An option names an undefined period or capture.
    pub(super) fn new(asked: &Asked, periods: &Periods) -> Result<Wanted, String> {
        let count = periods.list.len();
        let paths: Vec<String> = (0..count).map(|index| periods.path(index)).collect();
        let find = |name: &String| {
            let found = periods.find(name);
            let found = found.or_else(|| paths.iter().position(|path| path == name));
            found.ok_or_else(|| format!("no period `{name}` is defined"))
        };
        for name in &asked.select {
            find(name)?;
        }
        let aggregate_by = asked.aggregate_by.as_ref().map(find).transpose()?;
        if asked.series && asked.group_by.is_empty() {
            return Err("--freq-series requires --group-by".to_owned());
        }
        let around = |period: usize| distance(periods, period, aggregate_by?);
        let is_shown = |(path, period): (&String, &tracebraid_language::periods::Period)| {
            asked.select.is_empty()
                || asked.select.contains(path)
                || asked.select.contains(&period.name)
        };
        let mut groups = vec![Some(Vec::new()); count];
        for name in &asked.group_by {
            let places = group_places(name, periods)?;
            for (group, place) in groups.iter_mut().zip(places) {
                *group = group.take().zip(place).map(|(mut group, place)| {
                    group.push(place);
                    group
                });
            }
        }
        Ok(Wanted {
            views: asked.views.clone(),
            rows: asked.rows,
            limits: asked.limits,
            order: asked.order,
            aggregate_by,
            series: asked.series,
            aggregated: (0..count).map(around).collect(),
            most_open: asked.most_open,
            has_powers: asked.has_powers(),
            ranges: asked.ranges.clone(),
            begins: false,
            shown: paths.iter().zip(&periods.list).map(is_shown).collect(),
            paths,
            group_names: asked.group_by.clone(),
            groups: groups.into_iter().map(Option::unwrap_or_default).collect(),
        })
    }

    pub(super) fn shows(&self, view: View) -> bool {
        match self.views.as_slice() {
            [] => matches!(view, View::Stats | View::Top),
            views => views.contains(&view),
        }
    }

    /// True if the log keeps all periods of the definition: to list them, or to find the enclosing
    /// ones.
    pub(super) fn logs(&self, period: usize) -> bool {
        let is_nesting = self.order == Order::Hierarchy || self.up(period).is_some();
        self.shows(View::Log) && (self.is_shown(period) || is_nesting)
    }

    /// Distance outward to the `aggregate_by` definition, if that encloses the definition.
    pub(super) fn up(&self, period: usize) -> Option<usize> {
        self.aggregated.get(period).copied().flatten()
    }

    pub(super) fn is_shown(&self, period: usize) -> bool {
        self.shown.get(period) == Some(&true)
    }

    pub(super) fn path(&self, period: usize) -> &str {
        self.paths.get(period).map_or("", String::as_str)
    }
}

/// Name of the only period that captures a value of that name.
fn only_period_with<'p>(capture: &str, periods: &'p Periods) -> Result<&'p str, String> {
    let captures = |period: &Period| {
        let mut all = period.begin_captures.iter().chain(&period.end_captures);
        all.any(|one| one.name == capture)
    };
    let owners: Vec<&Period> = periods.list.iter().filter(|one| captures(one)).collect();
    match owners.as_slice() {
        [owner] => Ok(&owner.name),
        [] => Err(format!(
            "`{capture}`: no period captures it; expected PERIOD.CAPTURE or cpu"
        )),
        several => {
            let names = several
                .iter()
                .map(|period| format!("{}.{capture}", period.name));
            Err(format!(
                "`{capture}`: several periods capture it; write {}",
                names.collect::<Vec<_>>().join(" or ")
            ))
        }
    }
}

/// By definition: source of the value of that name.
fn group_places(name: &str, periods: &Periods) -> Result<Vec<Option<GroupPlace>>, String> {
    if name == "cpu" {
        return Ok(vec![Some(GroupPlace::Cpu); periods.list.len()]);
    }
    // Names of captures may contain points; names of periods do not.
    let (owner, capture) = match name.split_once('.') {
        Some(parts) => parts,
        None => (only_period_with(name, periods)?, name),
    };
    let owner = periods
        .find(owner)
        .ok_or_else(|| format!("`{name}`: no period `{owner}` is defined"))?;
    let at = |captures: &[Capture]| captures.iter().position(|one| one.name == capture);
    let (begin, end) = periods.list.get(owner).map_or((None, None), |period| {
        (at(&period.begin_captures), at(&period.end_captures))
    });
    if begin.is_none() && end.is_none() {
        return Err(format!(
            "`{name}`: this period does not capture `{capture}`"
        ));
    }
    let place = |period: usize| match distance(periods, period, owner)? {
        0 => begin
            .map(|at| GroupPlace::Begin(0, at))
            .or(end.map(GroupPlace::End)),
        up => begin.map(|at| GroupPlace::Begin(up, at)),
    };
    Ok((0..periods.list.len()).map(place).collect())
}

/// Distance outward from `period` to `around`; 0 if they are the same. `None` if `around` does not
/// enclose `period`.
fn distance(periods: &Periods, period: usize, around: usize) -> Option<usize> {
    let parent = |&index: &usize| periods.list.get(index)?.parent;
    std::iter::successors(Some(period), parent).position(|index| index == around)
}
