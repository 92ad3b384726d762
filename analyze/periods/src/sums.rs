//! What is known of periods that ended.

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

/// A period ends.
pub(super) struct Closed<'a> {
    pub(super) open: &'a Open,
    /// Those around it, from the inside.
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
    /// Its number, behind those of the periods around it.
    pub(super) numbers: Vec<u64>,
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Where it began, and where it ended.
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

    /// The longest first, of those as long as each other the one that began first.
    pub(super) fn rank(&self) -> (Reverse<u64>, u64) {
        (Reverse(self.duration()), self.number())
    }
}

/// What is known of all that ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sums {
    /// By period.
    pub(super) periods: Vec<OfPeriod>,
    pub(super) groups: Vec<Group>,
    /// By a number made of period and values: places of groups.
    index: HashMap<u64, Vec<u32>, BuildHasherDefault<KeyHasher>>,
    /// Periods that belong to a group for which there was no room.
    pub(super) ungrouped: u64,
    pub(super) refused: u64,
    pub(super) log: Vec<Done>,
    longest: Vec<Done>,
    /// What is shorter is not among the longest.
    floor: Option<u64>,
}

/// What is known of one definition's periods.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct OfPeriod {
    pub(super) durations: Distribution,
    /// Were cut by the end of a period around them, or by that of the trace.
    pub(super) unfinished: u64,
    /// By what may be within them.
    pub(super) within: Vec<Within>,
    pub(super) bins: Bins,
}

/// What is known of periods of one definition within those of another one: over all of the latter,
/// and over those that had one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Within {
    pub(super) all: PerParent,
    pub(super) active: PerParent,
}

/// Values for each period around.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PerParent {
    pub(super) counts: Summary,
    /// Nanoseconds together.
    pub(super) durations: Summary,
    /// Their parts of the time of the period around them, in parts of 10⁹; not of those without any
    /// duration.
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

/// Parts of a whole.
pub(super) const SHARES: u128 = 1_000_000_000;

/// The periods of one definition that have the same values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) period: usize,
    pub(super) values: Vec<Datum>,
    pub(super) durations: Distribution,
    /// In a second pass.
    range: Option<(u64, u64)>,
    pub(super) bins: Bins,
}

/// Groups that there may be.
const MOST_GROUPS: usize = 1 << 16;
/// So many more than the longest are kept before they are sorted out.
const SLACK: usize = 64;

impl Sums {
    fn of(&mut self, period: usize) -> &mut OfPeriod {
        if period >= self.periods.len() {
            self.periods.resize_with(period + 1, OfPeriod::default);
        }
        &mut self.periods[period]
    }

    /// A period had no end.
    pub(super) fn unfinished(&mut self, period: usize) {
        self.of(period).unfinished += 1;
    }

    /// Too many are open.
    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Adds a period that ended; false if it is too short or too long to count.
    pub(super) fn add(&mut self, plan: &Plan, wanted: &Wanted, closed: Closed<'_>) -> bool {
        let (duration, period) = (closed.duration(), closed.open.period);
        if !wanted.limits.contain(duration) {
            return false;
        }
        let is_shown = wanted.is_shown(period);
        if let Some(ranges) = &wanted.ranges {
            // Labels are looked for once for each group; there are few periods.
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
        // Missing values are values of a group, too.
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

    /// The longest first.
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

    /// `a.b = 1, cpu = 2`.
    pub(super) fn name(&self, wanted: &Wanted) -> String {
        Value::named_text(&self.named(wanted).collect::<Vec<_>>())
    }

    /// The values that the members have in common, with the names by which they were asked for.
    pub(super) fn named(&self, wanted: &Wanted) -> impl Iterator<Item = (String, Value)> {
        let names = wanted.group_names.iter().map(ToString::to_string);
        let named = names.zip(&self.values);
        named.map(|(name, value)| (name, value_of(value)))
    }

    /// The name behind that of the period.
    pub(super) fn label(&self, wanted: &Wanted) -> String {
        format!("{}: {}", wanted.path(self.period), self.name(wanted))
    }
}

/// A captured value in a table.
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
