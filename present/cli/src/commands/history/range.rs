//! The range that questions to a history are about.

use clap::Args;
use tracebraid_history::History;

use crate::failure::Failure;
use crate::options;
use crate::time::TimeSpec;
use crate::units::duration;

/// A range of time.
#[derive(Args, Debug)]
pub(super) struct RangeArgs {
    /// Beginning of the range; that of the trace if not given
    #[arg(
        long,
        short = 'b',
        visible_alias = "begin",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    from: Option<TimeSpec>,
    /// End of the range; that of the trace if not given
    #[arg(
        long,
        short = 'e',
        visible_alias = "end",
        value_name = "TIME",
        allow_hyphen_values = true
    )]
    to: Option<TimeSpec>,
    /// Times are given and shown in UTC, not in local time
    #[arg(long, alias = "clock-gmt")]
    pub(super) gmt: bool,
}

impl RangeArgs {
    /// The time that something means.
    pub(super) fn time(&self, history: &History, spec: TimeSpec) -> Result<i64, Failure> {
        let time = self.resolve(history, spec)?;
        let (begin, end) = (history.meta().begin, history.meta().end);
        match time > end {
            true => Err(Failure::usage(format!(
                "nothing is known of what comes behind the trace's end, which is {} after its beginning",
                duration(begin.abs_diff(end))
            ))),
            false => Ok(time),
        }
    }

    fn resolve(&self, history: &History, spec: TimeSpec) -> Result<i64, Failure> {
        let time = spec.resolve(
            Some((history.meta().begin, history.meta().end)),
            &options::zone(self.gmt),
        );
        time.map_err(Failure::usage)
    }

    /// From its beginning until before its end, in nanoseconds from the origin.
    pub(super) fn of(&self, history: &History) -> Result<(i64, i64), Failure> {
        let (begin, end) = (history.meta().begin, history.meta().end);
        let from = self
            .from
            .map_or(Ok(begin), |spec| self.time(history, spec))?;
        let to = self
            .to
            .map_or(Ok(end), |spec| self.resolve(history, spec))?;
        // The end belongs to the range; what is behind that of the trace is not asked for.
        let to = to.min(end).saturating_add(1);
        match from < to {
            true => Ok((from, to)),
            false => Err(Failure::usage("the time range ends before it begins")),
        }
    }
}
