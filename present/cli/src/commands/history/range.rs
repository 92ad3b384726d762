//! Time ranges of queries to a history.

use clap::Args;
use tracebraid_history::History;

use crate::failure::Failure;
use crate::options::{self, TimeRange, ZoneArgs};
use crate::time::TimeSpec;
use crate::units::duration;

/// Options for the time range.
#[derive(Args, Debug)]
pub(super) struct RangeArgs {
    /// Start of the time range; default: the beginning of the trace
    #[arg(
        long,
        short = 'b',
        visible_alias = "begin",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    from: Option<TimeSpec>,
    /// End of the time range; default: the end of the trace; +500ms counts from --from where that
    /// is given
    #[arg(
        long,
        short = 'e',
        visible_alias = "end",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    to: Option<TimeSpec>,
    #[command(flatten)]
    pub(super) zone: ZoneArgs,
}

impl RangeArgs {
    /// Resolves a time, in nanoseconds since the origin.
    ///
    /// # Errors
    /// When it cannot be resolved, or is after the end of the trace.
    pub(super) fn time(&self, history: &History, spec: TimeSpec) -> Result<i64, Failure> {
        let time = self.resolve(history, spec)?;
        let (begin, end) = (history.meta().begin, history.meta().end);
        match time > end {
            true => Err(Failure::usage(format!(
                "the time is after the end of the trace, which {}, {}",
                options::lasts(begin, end, &self.zone.zone()),
                duration(begin.abs_diff(end))
            ))),
            false => Ok(time),
        }
    }

    fn resolve(&self, history: &History, spec: TimeSpec) -> Result<i64, Failure> {
        let time = spec.resolve(
            Some((history.meta().begin, history.meta().end)),
            &self.zone.zone(),
        );
        time.map_err(Failure::usage)
    }

    /// The range in nanoseconds since the origin, without its end.
    ///
    /// # Errors
    /// When it is empty, or begins after the end of the trace.
    pub(super) fn of(&self, history: &History) -> Result<(i64, i64), Failure> {
        let (begin, end) = (history.meta().begin, history.meta().end);
        let from = self
            .from
            .map_or(Ok(begin), |spec| self.time(history, spec))?;
        let zone = self.zone.zone();
        let to = self.to.map_or(Ok(end), |spec| {
            let to = spec.resolve_end(self.from.map(|_| from), Some((begin, end)), &zone);
            to.map_err(Failure::usage)
        })?;
        TimeRange { from, to }.check(Some((begin, end)), &zone)?;
        // `--to` is part of the range, but the range does not go beyond the end of the trace.
        Ok((from, to.min(end).saturating_add(1)))
    }
}
