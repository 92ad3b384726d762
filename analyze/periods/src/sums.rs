//! Sums and lists of periods that ended.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_language::Datum;

use crate::open_periods::{Open, Spot};
use crate::plan::Plan;
use crate::tree::key;
use crate::wanted::{GroupPlace, Wanted};
use tracebraid_follow::KeyHasher;
use tracebraid_statistics::{Bins, Distribution, Summary};
use tracebraid_tables::{Value, View};

/// A period at its end.
pub(super) struct Closed<'a> {
    pub(super) open: &'a Open,
    /// The enclosing periods, innermost first.
    pub(super) around: &'a [&'a Open],
    pub(super) end: i64,
    pub(super) at_end: Spot,
    pub(super) end_captures: Vec<Datum>,
}

impl Closed<'_> {
    pub(super) fn duration(&self) -> u64 {
        self.end.abs_diff(self.open.begin)
    }
}

/// A period that ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) period: usize,
    /// Numbers of the enclosing periods, outermost first, then its own.
    pub(super) numbers: Vec<u64>,
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Origins of the event records that began and ended it.
    pub(super) at: [Spot; 2],
    pub(super) begin_captures: Vec<Datum>,
    pub(super) end_captures: Vec<Datum>,
}

impl Done {
    pub(super) fn duration(&self) -> u64 {
        self.end.abs_diff(self.begin)
    }

    pub(super) fn number(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }

    /// Longest first; of equal durations, the earlier start first.
    pub(super) fn rank(&self) -> (Reverse<u64>, u64) {
        (Reverse(self.duration()), self.number())
    }
}

/// Sums and lists of all periods that ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// By definition.
    pub(super) periods: Vec<OfPeriod>,
    pub(super) groups: Vec<Group>,
    /// Indices of groups by the hash of definition and values.
    index: HashMap<u64, Vec<u32>, BuildHasherDefault<KeyHasher>>,
    /// Periods whose group was refused because there are too many.
    pub(super) ungrouped: u64,
    pub(super) refused: u64,
    pub(super) log: Vec<Done>,
    longest: Vec<Done>,
    /// Shorter periods are not among the longest.
    floor: Option<u64>,
}

/// Sums of one definition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OfPeriod {
    pub(super) durations: Distribution,
    /// Periods cut by the end of an enclosing period or of the trace.
    pub(super) unfinished: u64,
    /// By definition of the inner periods.
    pub(super) within: Vec<Within>,
    pub(super) bins: Bins,
}

/// Sums of the periods of one definition within those of another: over all enclosing periods, and
/// over those that contain at least one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Within {
    pub(super) all: PerParent,
    pub(super) active: PerParent,
}

/// Values for each enclosing period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PerParent {
    pub(super) counts: Summary,
    /// Total nanoseconds.
    pub(super) durations: Summary,
    /// Parts of the duration of the enclosing period, in units of 10⁻⁹; enclosing periods without
    /// duration are ignored.
    pub(super) shares: Summary,
}

impl PerParent {
    fn add(&mut self, count: u64, duration: u64, whole: u64) {
        self.counts.add(count);
        self.durations.add(duration);
        let parts = (u128::from(duration) * SHARES).checked_div(whole.into());
        if let Some(parts) = parts {
            self.shares.add(u64::try_from(parts).unwrap_or(u64::MAX));
        }
    }
}

/// Units of a whole share.
pub(super) const SHARES: u128 = 1_000_000_000;

/// The periods of one definition that have the same values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) period: usize,
    pub(super) values: Vec<Datum>,
    pub(super) durations: Distribution,
    /// Bounds of the histogram, in a second pass.
    range: Option<(u64, u64)>,
    pub(super) bins: Bins,
}

/// Maximum number of groups.
const MOST_GROUPS: usize = 1 << 16;
/// Number of entries beyond the longest that are kept before they are sorted and removed.
const SLACK: usize = 64;

impl Sums {
    fn of(&mut self, period: usize) -> &mut OfPeriod {
        if period >= self.periods.len() {
            self.periods.resize_with(period + 1, OfPeriod::default);
        }
        &mut self.periods[period]
    }

    /// Counts a period without an end.
    pub(super) fn unfinished(&mut self, period: usize) {
        self.of(period).unfinished += 1;
    }

    /// Counts a period that was not begun.
    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Adds a period that ended; false if the limits exclude its duration.
    pub(super) fn add(&mut self, plan: &Plan, wanted: &Wanted, closed: Closed<'_>) -> bool {
        let (duration, period) = (closed.duration(), closed.open.period);
        if !wanted.limits.contain(duration) {
            return false;
        }
        let is_shown = wanted.is_shown(period);
        if let Some(ranges) = &wanted.ranges {
            // Bounds are looked up for each period here, and once for each group: there are few
            // definitions.
            if let Some(&range) = ranges.get(wanted.path(period)).filter(|_| is_shown) {
                self.of(period).bins.add(range, duration);
            }
        } else {
            self.measure(plan, closed.open, duration);
        }
        if is_shown {
            self.group(wanted, &closed, duration);
        }
        if wanted.ranges.is_none() {
            self.list(wanted, closed);
        }
        true
    }

    fn measure(&mut self, plan: &Plan, open: &Open, duration: u64) {
        let of_period = self.of(open.period);
        of_period.durations.add(duration);
        let count = plan
            .periods
            .get(open.period)
            .map_or(0, |plan| plan.within.len());
        of_period.within.resize_with(count, Within::default);
        for (at, sums) in of_period.within.iter_mut().enumerate() {
            let (count, time) = open.within.get(at).copied().unwrap_or_default();
            sums.all.add(count, time, duration);
            if count > 0 {
                sums.active.add(count, time, duration);
            }
        }
    }

    fn group(&mut self, wanted: &Wanted, closed: &Closed<'_>, duration: u64) {
        let period = closed.open.period;
        let places = wanted.groups.get(period).map_or(&[][..], Vec::as_slice);
        if places.is_empty() {
            return;
        }
        let cpu = closed
            .open
            .at_begin
            .cpu
            .map_or(Datum::Missing, |cpu| Datum::Integer(cpu.into()));
        let value = |place: &GroupPlace| match *place {
            GroupPlace::Cpu => Some(&cpu),
            GroupPlace::Begin(0, at) => closed.open.captures.get(at),
            GroupPlace::Begin(up, at) => closed.around.get(up - 1)?.captures.get(at),
            GroupPlace::End(at) => closed.end_captures.get(at),
        };
        let values = || {
            places
                .iter()
                .map(|place| value(place).unwrap_or(&Datum::Missing))
        };
        // A missing value is a value of a group, too.
        let numbers = values().map(|value| Datum::Integer(value.key().unwrap_or(1).into()));
        let numbers: Vec<Datum> = numbers.chain([Datum::Integer(period as i128)]).collect();
        let Some(number) = key(numbers.iter()) else {
            return;
        };
        let is_it = |place: &&u32| {
            let group = self.groups.get(**place as usize);
            group.is_some_and(|group| group.period == period && group.values.iter().eq(values()))
        };
        let known = self
            .index
            .get(&number)
            .and_then(|places| places.iter().find(is_it));
        let place = match known {
            Some(&place) => place as usize,
            None if self.groups.len() >= MOST_GROUPS => {
                self.ungrouped += 1;
                return;
            }
            None => {
                let place = self.groups.len();
                self.index.entry(number).or_default().push(place as u32);
                self.groups
                    .push(Group::new(wanted, period, values().cloned().collect()));
                place
            }
        };
        if let Some(group) = self.groups.get_mut(place) {
            group.add(duration);
        }
    }

    fn list(&mut self, wanted: &Wanted, closed: Closed<'_>) {
        let duration = closed.duration();
        let top = if wanted.shows(View::Top) {
            wanted.rows
        } else {
            0
        };
        let period = closed.open.period;
        let is_long =
            top > 0 && wanted.is_shown(period) && self.floor.is_none_or(|floor| floor <= duration);
        let logs = wanted.logs(period);
        if !is_long && !logs {
            return;
        }
        let mut numbers: Vec<u64> = closed.around.iter().rev().map(|open| open.number).collect();
        numbers.push(closed.open.number);
        let done = Done {
            period,
            numbers,
            begin: closed.open.begin,
            end: closed.end,
            at: [closed.open.at_begin, closed.at_end],
            begin_captures: closed.open.captures.clone(),
            end_captures: closed.end_captures,
        };
        if is_long {
            self.longest.push(done.clone());
            if self.longest.len() >= top.saturating_add(SLACK) {
                self.sort_out(top);
                self.floor = self.longest.last().map(Done::duration);
            }
        }
        if logs {
            self.log.push(done);
        }
    }

    fn sort_out(&mut self, top: usize) {
        self.longest.sort_by_key(Done::rank);
        self.longest.truncate(top);
    }

    /// Removes and returns the longest periods, longest first.
    pub(super) fn longest(&mut self, top: usize) -> Vec<Done> {
        self.sort_out(top);
        std::mem::take(&mut self.longest)
    }
}

impl Group {
    fn new(wanted: &Wanted, period: usize, values: Vec<Datum>) -> Group {
        let mut group = Group {
            period,
            values,
            durations: Distribution::default(),
            range: None,
            bins: Bins::default(),
        };
        let ranges = wanted.ranges.as_ref();
        group.range = ranges.and_then(|ranges| ranges.get(&group.label(wanted)).copied());
        group
    }

    fn add(&mut self, duration: u64) {
        if let Some(range) = self.range {
            self.bins.add(range, duration);
        } else {
            self.durations.add(duration);
        }
    }

    /// Captures and values: `a.b = 1, cpu = 2`.
    pub(super) fn name(&self, wanted: &Wanted) -> String {
        Value::named_text(&self.named(wanted).collect::<Vec<_>>())
    }

    /// The common values of the periods in the group, named as in `group_by`.
    pub(super) fn named(&self, wanted: &Wanted) -> impl Iterator<Item = (String, Value)> {
        let names = wanted.group_names.iter().map(ToString::to_string);
        let named = names.zip(&self.values);
        named.map(|(name, value)| (name, value_of(value)))
    }

    /// The name after that of the period.
    pub(super) fn label(&self, wanted: &Wanted) -> String {
        format!("{}: {}", wanted.path(self.period), self.name(wanted))
    }
}

/// A captured value as a table cell.
pub(super) fn value_of(value: &Datum) -> Value {
    match *value {
        Datum::Missing => Value::None,
        Datum::Integer(number) => match (i64::try_from(number), u64::try_from(number)) {
            (Ok(number), _) => Value::Signed(number),
            (_, Ok(number)) => Value::Unsigned(number),
            _ => Value::Text(number.to_string()),
        },
        Datum::Float(bits) => Value::Float(f64::from_bits(bits)),
        Datum::Short(..) | Datum::Long(_) => {
            let text = String::from_utf8_lossy(value.bytes().unwrap_or_default());
            Value::Text(text.into_owned())
        }
    }
}
