//! Queries of a history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attribute::{Attribute, AttributeKind};
use crate::block::{Block, Entry};
use crate::file::HistoryError;
use crate::history::{History, Level};
use crate::value::Value;
use crate::varint::NULL;

/// A value with the time from which an attribute has it, limited to the range of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// In nanoseconds from the origin.
    pub time: i64,
    /// The value from then on.
    pub value: Value,
}

impl History {
    /// The time from which values of an attribute are unknown, because the trace of its machine
    /// ends before the others.
    fn known_until(&self, attribute: Attribute) -> i64 {
        let meta = self.meta();
        let end = meta.ends.get(attribute.host() as usize).copied().flatten();
        match end {
            // Attributes of user analyses may combine several machines.
            Some(end) if end < meta.end && attribute.kind() != AttributeKind::Custom => end + 1,
            _ => i64::MAX,
        }
    }

    /// The values of all attributes that `choose` selects, at a time, in the order of attributes,
    /// without nulls.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn at(
        &self,
        time: i64,
        choose: impl Fn(Attribute) -> bool,
    ) -> Result<Vec<(Attribute, Value)>, HistoryError> {
        let Some((level, at)) = self
            .level(0)
            .and_then(|level| Some((level, level.find(time)?)))
        else {
            return Ok(Vec::new());
        };
        let mut found: BTreeMap<Attribute, u64> = BTreeMap::new();
        let block = self.block(&level.blocks[at])?;
        for entry in block
            .directory
            .iter()
            .filter(|entry| choose(entry.attribute))
        {
            let changes = block.changes(entry).take_while(|change| change.0 <= time);
            if let Some((_, code)) = changes.last() {
                found.insert(entry.attribute, code);
            }
        }
        self.complete(level, at, block, &mut found, &choose)?;
        let is_known = |(attribute, code): &(Attribute, u64)| {
            *code != NULL && time < self.known_until(*attribute)
        };
        let found = found.into_iter().filter(is_known);
        let states = self.cpu_states().filter(|&state| choose(state));
        let states = states.map(|state| Ok((state, self.cpu_state(state, time)?)));
        let known = states.filter(|state| !matches!(state, Ok((_, Value::Null))));
        let kept = found.map(|(attribute, code)| Ok((attribute, self.value_of(attribute, code))));
        known.chain(kept).collect()
    }

    /// Adds the attributes that have not changed yet in a block, going back to the last snapshot.
    fn complete(
        &self,
        level: &Level,
        at: usize,
        mut block: Arc<Block>,
        found: &mut BTreeMap<Attribute, u64>,
        choose: impl Fn(Attribute) -> bool,
    ) -> Result<(), HistoryError> {
        for before in (0..=at).rev() {
            if before < at {
                block = self.block(&level.blocks[before])?;
                for entry in block
                    .directory
                    .iter()
                    .filter(|entry| choose(entry.attribute))
                {
                    found.entry(entry.attribute).or_insert(entry.last);
                }
            }
            if let Some(snapshot) = &block.snapshot {
                for (attribute, code) in snapshot.iter().filter(|(attribute, _)| choose(*attribute))
                {
                    found.entry(*attribute).or_insert(*code);
                }
                break;
            }
        }
        Ok(())
    }

    /// The attributes that have a value at `from` or receive one before `to`, and that `choose`
    /// selects, in their order.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn met(
        &self,
        from: i64,
        to: i64,
        choose: impl Fn(Attribute) -> bool,
    ) -> Result<Vec<Attribute>, HistoryError> {
        let known = self.at(from, &choose)?;
        let mut met: BTreeSet<Attribute> =
            known.into_iter().map(|(attribute, _)| attribute).collect();
        met.extend(self.cpu_states().filter(|&state| choose(state)));
        let blocks = self.level(0).map_or(&[][..], |level| {
            let first = level.find(from).unwrap_or(0);
            &level.blocks[first..]
        });
        for place in blocks.iter().take_while(|block| block.begin < to) {
            let block = self.block(place)?;
            let begins = |entry: &&Entry| entry.first.0 < to && !met.contains(&entry.attribute);
            let new: Vec<Attribute> = block
                .directory
                .iter()
                .filter(begins)
                .map(|entry| entry.attribute)
                .collect();
            met.extend(new.into_iter().filter(|&attribute| choose(attribute)));
        }
        Ok(met.into_iter().collect())
    }

    /// The value of an attribute at a time.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn value(&self, attribute: Attribute, time: i64) -> Result<Value, HistoryError> {
        if attribute.kind() == AttributeKind::CpuState {
            return self.cpu_state(attribute, time);
        }
        if time >= self.known_until(attribute) {
            return Ok(Value::Null);
        }
        let Some((level, at)) = self
            .level(0)
            .and_then(|level| Some((level, level.find(time)?)))
        else {
            return Ok(Value::Null);
        };
        let code = self.code_at(level, at, attribute, time)?;
        Ok(self.value_of(attribute, code))
    }

    fn code_at(
        &self,
        level: &Level,
        at: usize,
        attribute: Attribute,
        time: i64,
    ) -> Result<u64, HistoryError> {
        let block = self.block(&level.blocks[at])?;
        if let Some(entry) = block.entry(attribute) {
            let changes = block.changes(entry).take_while(|change| change.0 <= time);
            if let Some((_, code)) = changes.last() {
                return Ok(code);
            }
        }
        self.code_before(level, at, attribute)
    }

    /// The code of an attribute's value at the start of a block.
    fn code_before(
        &self,
        level: &Level,
        at: usize,
        attribute: Attribute,
    ) -> Result<u64, HistoryError> {
        for before in (0..=at).rev() {
            let block = self.block(&level.blocks[before])?;
            if before < at
                && let Some(entry) = block.entry(attribute)
            {
                return Ok(entry.last);
            }
            if let Some(snapshot) = &block.snapshot {
                let place = snapshot.binary_search_by_key(&attribute, |entry| entry.0);
                return Ok(place.map_or(NULL, |place| snapshot[place].1));
            }
        }
        Ok(NULL)
    }

    /// The value of an attribute at `from`, and its changes after `from` and before `to`. The first
    /// element is the value at `from`, with that time.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn changes(
        &self,
        attribute: Attribute,
        from: i64,
        to: i64,
    ) -> Result<Vec<Since>, HistoryError> {
        if attribute.kind() == AttributeKind::CpuState {
            return self.cpu_state_changes(attribute, from, to);
        }
        let mut found = vec![Since {
            time: from,
            value: self.value(attribute, from)?,
        }];
        self.each_change(attribute, from, to, |time, value| {
            found.push(Since { time, value });
            true
        })?;
        Ok(found)
    }

    /// Passes the changes after `from` and before `to` to `tell` until it returns false.
    fn each_change(
        &self,
        attribute: Attribute,
        from: i64,
        to: i64,
        mut tell: impl FnMut(i64, Value) -> bool,
    ) -> Result<(), HistoryError> {
        if attribute.kind() == AttributeKind::CpuState {
            return self.each_cpu_state(attribute, from, to, tell);
        }
        let Some(level) = self.level(0) else {
            return Ok(());
        };
        let known = self.known_until(attribute);
        let mut last = None;
        for place in level.blocks.iter().skip(level.find(from).unwrap_or(0)) {
            if place.begin >= to.min(known) {
                break;
            }
            let block = self.block(place)?;
            let Some(entry) = block.entry(attribute) else {
                continue;
            };
            let changes = block.changes(entry).skip_while(|change| change.0 <= from);
            for (time, code) in changes.take_while(|change| change.0 < to.min(known)) {
                last = Some(code);
                if !tell(time, self.value_of(attribute, code)) {
                    return Ok(());
                }
            }
        }
        if from < known && known < to {
            let was_known = match last {
                Some(code) => code != NULL,
                None => self.value(attribute, from)? != Value::Null,
            };
            if was_known {
                tell(known, Value::Null);
            }
        }
        Ok(())
    }

    /// The first change after a time.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn next_change(
        &self,
        attribute: Attribute,
        time: i64,
    ) -> Result<Option<Since>, HistoryError> {
        let mut found = None;
        self.each_change(attribute, time, i64::MAX, |time, value| {
            found = Some(Since { time, value });
            false
        })?;
        Ok(found)
    }

    /// The last change before a time.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn previous_change(
        &self,
        attribute: Attribute,
        time: i64,
    ) -> Result<Option<Since>, HistoryError> {
        if attribute.kind() == AttributeKind::CpuState {
            return self.previous_cpu_state(attribute, time);
        }
        let known = self.known_until(attribute);
        if known < time && self.value(attribute, known - 1)? != Value::Null {
            let value = Value::Null;
            return Ok(Some(Since { time: known, value }));
        }
        let time = time.min(known);
        let Some((level, at)) = self
            .level(0)
            .and_then(|level| Some((level, level.find(time)?)))
        else {
            return Ok(None);
        };
        for place in level.blocks[..=at].iter().rev() {
            let block = self.block(place)?;
            let Some(entry) = block.entry(attribute) else {
                continue;
            };
            let changes = block.changes(entry).take_while(|change| change.0 < time);
            if let Some((time, code)) = changes.last() {
                let value = self.value_of(attribute, code);
                return Ok(Some(Since { time, value }));
            }
        }
        Ok(None)
    }

    /// The first time from `from` on and before `to` at which `is_it` holds for the value of an
    /// attribute.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn first(
        &self,
        attribute: Attribute,
        (from, to): (i64, i64),
        is_it: impl Fn(&Value) -> bool,
    ) -> Result<Option<i64>, HistoryError> {
        if from < to && is_it(&self.value(attribute, from)?) {
            return Ok(Some(from));
        }
        let mut found = None;
        self.each_change(attribute, from, to, |time, value| {
            found = is_it(&value).then_some(time);
            found.is_none()
        })?;
        Ok(found)
    }

    /// The values of attributes at `samples` times at equal distances, from `from` on and before
    /// `to`, as for a screen.
    ///
    /// If the distance is wider than the finest grid of the history, each value is that of a
    /// slightly earlier time: the last multiple of a grid that is no wider than the distance.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn sampled(
        &self,
        attributes: &[Attribute],
        (from, to): (i64, i64),
        samples: usize,
    ) -> Result<Vec<Vec<Value>>, HistoryError> {
        let span = i128::from(to) - i128::from(from);
        let count = samples.max(1) as i128;
        let level = self.level_for(i64::try_from(span / count).unwrap_or(i64::MAX));
        let Some(level) = level.filter(|_| span > 0) else {
            return Ok(vec![vec![Value::Null; samples]; attributes.len()]);
        };
        let times = (0..count).map(|sample| (i128::from(from) + span * sample / count) as i64);
        let times: Vec<i64> = times
            .map(|time| time.div_euclid(level.grid).saturating_mul(level.grid))
            .collect();
        let times = &times[..samples.min(times.len())];
        let row = |&attribute: &Attribute| match attribute.kind() {
            AttributeKind::CpuState => self.cpu_state_row(level, attribute, times),
            _ => self.row(level, attribute, times),
        };
        attributes.iter().map(row).collect()
    }

    /// The values of an attribute at ascending times.
    pub(crate) fn row(
        &self,
        level: &Level,
        attribute: Attribute,
        times: &[i64],
    ) -> Result<Vec<Value>, HistoryError> {
        let known = self.known_until(attribute);
        let (times, behind) = times.split_at(times.partition_point(|&time| time < known));
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else {
            return Ok(vec![Value::Null; behind.len()]);
        };
        let mut row = Vec::with_capacity(times.len());
        let at = level.find(first);
        let mut code = at.map_or(Ok(NULL), |at| self.code_before(level, at, attribute))?;
        let mut value = self.value_of(attribute, code);
        for place in level
            .blocks
            .iter()
            .skip(at.unwrap_or(0))
            .take_while(|block| block.begin <= last)
        {
            let block = self.block(place)?;
            let Some(entry) = block.entry(attribute) else {
                continue;
            };
            for (time, next) in block.changes(entry) {
                while times.get(row.len()).is_some_and(|&sample| sample < time) {
                    row.push(value.clone());
                }
                if row.len() == times.len() {
                    row.resize(times.len() + behind.len(), Value::Null);
                    return Ok(row);
                }
                if next != code {
                    (code, value) = (next, self.value_of(attribute, next));
                }
            }
        }
        row.resize(times.len(), value);
        row.resize(times.len() + behind.len(), Value::Null);
        Ok(row)
    }
}
