//! What is asked for.

use tracebraid_language::periods::{Capture, Periods};

use tracebraid_follow::{Buckets, CpuSet, Limits, ROWS, Window};
use tracebraid_statistics::Ranges;
use tracebraid_tables::View;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Only event records in it.
    pub window: Window,
    /// Only event records of these CPUs.
    pub cpus: CpuSet,
    /// What to show.
    pub views: Vec<View>,
    /// Rows of what is longest.
    pub rows: usize,
    /// Only periods that last that long; of those that do not, nothing within them counts for what
    /// is around them.
    pub limits: Limits,
    /// Only these periods, by name or path (`outer/inner`); none: all.
    pub select: Vec<String>,
    /// By what to group: `PERIOD.CAPTURE`, or `cpu`.
    pub group_by: Vec<String>,
    /// The order of the log.
    pub order: Order,
    /// The period, by name or path, each of which is told with what is within it.
    pub aggregate_by: Option<String>,
    /// Whether all groups of a period have the steps of the least and the greatest among them.
    pub series: bool,
    /// Open periods at most.
    pub most_open: usize,
    /// Buckets of histograms.
    pub buckets: Buckets,
    /// For a second pass that counts how often durations of each size occur: their bounds.
    pub ranges: Option<Ranges>,
}

/// Periods that may be open at once where nobody says how many: some hundred MiB.
pub const MOST_OPEN: usize = 1 << 20;

/// The order of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order in which they began.
    #[default]
    Time,
    /// Each followed by those within it.
    Hierarchy,
    /// The longest first.
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

/// What is asked for, in terms of the definitions.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) views: Vec<View>,
    pub(super) rows: usize,
    pub(super) limits: Limits,
    pub(super) order: Order,
    /// See [`Asked::aggregate_by`].
    pub(super) aggregate_by: Option<usize>,
    pub(super) series: bool,
    /// By period: how far around it is the one that is aggregated by; 0 for that one itself.
    pub(super) aggregated: Vec<Option<usize>>,
    pub(super) most_open: usize,
    /// Whether this pass makes histograms of logarithmic buckets.
    pub(super) has_powers: bool,
    pub(super) ranges: Option<Ranges>,
    /// Whether begins are kept one by one until they are taken.
    pub(super) begins: bool,
    /// By period: whether it is shown.
    pub(super) shown: Vec<bool>,
    /// By period: its name with those around it.
    pub(super) paths: Vec<String>,
    /// Names of what is grouped by.
    pub(super) group_names: Vec<String>,
    /// By period: where the values are by which it is grouped; none: it is not.
    pub(super) groups: Vec<Vec<GroupPlace>>,
}

/// Where a value is by which is grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupPlace {
    /// The CPU on which the period began.
    Cpu,
    /// Captured at its begin, or at that of the period that is so far around it.
    Begin(usize, usize),
    /// Captured at its end.
    End(usize),
}

impl Wanted {
    /// # Errors
    /// When something names periods or captures that there are not.
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
            return Err("series of groups need something to group by".to_owned());
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

    /// True if all of that period are kept: to be listed, or to tell what was within what.
    pub(super) fn logs(&self, period: usize) -> bool {
        let is_nesting = self.order == Order::Hierarchy || self.up(period).is_some();
        self.shows(View::Log) && (self.is_shown(period) || is_nesting)
    }

    /// How far around a period the one is that is aggregated by, if it is.
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

/// By period: where it finds the value of that name.
fn group_places(name: &str, periods: &Periods) -> Result<Vec<Option<GroupPlace>>, String> {
    if name == "cpu" {
        return Ok(vec![Some(GroupPlace::Cpu); periods.list.len()]);
    }
    // Captures may have points in their names, periods have none.
    let (owner, capture) = name
        .split_once('.')
        .ok_or_else(|| format!("`{name}`: PERIOD.CAPTURE or cpu is expected"))?;
    let owner = periods
        .find(owner)
        .ok_or_else(|| format!("`{name}`: no period `{owner}` is defined"))?;
    let at = |captures: &[Capture]| captures.iter().position(|one| one.name == capture);
    let (begin, end) = periods.list.get(owner).map_or((None, None), |period| {
        (at(&period.begin_captures), at(&period.end_captures))
    });
    if begin.is_none() && end.is_none() {
        return Err(format!("`{name}`: that period captures no `{capture}`"));
    }
    let place = |period: usize| match distance(periods, period, owner)? {
        0 => begin
            .map(|at| GroupPlace::Begin(0, at))
            .or(end.map(GroupPlace::End)),
        up => begin.map(|at| GroupPlace::Begin(up, at)),
    };
    Ok((0..periods.list.len()).map(place).collect())
}

/// How far around a period another one is; 0 if they are the same.
fn distance(periods: &Periods, period: usize, around: usize) -> Option<usize> {
    let parent = |&index: &usize| periods.list.get(index)?.parent;
    std::iter::successors(Some(period), parent).position(|index| index == around)
}
