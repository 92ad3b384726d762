//! Selects ranges of event records, each between records that match two filters.

use jiff::tz::TimeZone;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;

use crate::failure::Failure;
use crate::options::SelectArgs;
use crate::print::select::{Chosen, Selection};

/// Ranges of event records, including those with which they begin and end.
#[derive(Debug)]
pub(crate) struct EventRanges<'t> {
    begin: Option<Selection<'t>>,
    end: Option<Selection<'t>>,
    is_open: bool,
}

impl<'t> EventRanges<'t> {
    /// Ranges from each event record that matches `begin` to the next that matches `end`; `None`
    /// without both. Without `begin`, a range begins with the first event record; without `end`, it
    /// ends with the last.
    ///
    /// # Errors
    /// When a filter expression is wrong.
    pub(crate) fn new(
        set: &'t TraceSet,
        (begin, end): (Option<&str>, Option<&str>),
        extent: &dyn Fn() -> Option<(i64, i64)>,
        zone: &TimeZone,
    ) -> Result<Option<Self>, Failure> {
        let select = SelectArgs::default();
        let filter = |option: &'static str, expression: Option<&str>| {
            let chosen = Chosen {
                select: &select,
                names: &[],
                expression,
                option,
            };
            Selection::new(set, &chosen, extent, zone)
        };
        let is_given = begin.is_some() || end.is_some();
        let ranges = EventRanges {
            begin: filter("--begin-at", begin)?,
            end: filter("--end-at", end)?,
            is_open: begin.is_none(),
        };
        Ok(is_given.then_some(ranges))
    }

    /// Whether event records before the time range affect the filters in it.
    pub(crate) fn needs_past(&self) -> bool {
        let mut filters = self.begin.iter().chain(&self.end);
        filters.any(Selection::needs_past)
    }

    /// Whether the reader's next event record is in a range. Must be called for all event records,
    /// in order; `is_in_time`: the event record is in the requested time range.
    pub(crate) fn wants(
        &mut self,
        time: Timestamp,
        reader: &mut StreamReader<'_>,
        is_in_time: bool,
    ) -> bool {
        let mut matches = |filter: &mut Option<Selection<'_>>| {
            let filter = filter.as_mut();
            filter.is_some_and(|filter| filter.wants(time, reader)) && is_in_time
        };
        let (begins, ends) = (matches(&mut self.begin), matches(&mut self.end));
        let was_open = self.is_open;
        // An event record that matches both ends a range, or begins one.
        self.is_open = match was_open {
            true => !ends,
            false => begins,
        };
        was_open || self.is_open
    }
}
