//! A progress bar for long runs, unless their results appear on the terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::settings;
use crate::units::grouped;
use indicatif::{FormattedDuration, HumanBytes, ProgressBar, ProgressStyle};

/// Runs shorter than this show no progress bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval at which the text is updated.
const REFRESH: Duration = Duration::from_millis(100);

/// Unit of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Bytes,
    /// Items, with their name in the plural.
    Number(&'static str),
}

/// Progress of a command.
#[derive(Debug)]
pub(crate) struct Progress {
    total: u64,
    work: Work,
    begun: Instant,
    wanted: bool,
    bar: Option<(ProgressBar, Instant)>,
}

impl Progress {
    /// `total` is the size of the trace in bytes; no bar is shown if the results appear on a
    /// terminal.
    pub(crate) fn new(total: u64, output_is_terminal: bool) -> Self {
        Progress::of(total, Work::Bytes, output_is_terminal)
    }

    /// `total` is a number of items.
    pub(crate) fn of_items(total: u64, plural: &'static str) -> Self {
        Progress::of(total, Work::Number(plural), false)
    }

    fn of(total: u64, work: Work, output_is_terminal: bool) -> Self {
        let wanted =
            !output_is_terminal && !settings::is_quiet() && std::io::stderr().is_terminal();
        Progress {
            total,
            work,
            begun: Instant::now(),
            wanted,
            bar: None,
        }
    }

    /// Shows the number of bytes read so far.
    pub(crate) fn at(&mut self, position: impl FnOnce() -> u64) {
        let elapsed = self.begun.elapsed();
        if !self.wanted || elapsed < PATIENCE {
            return;
        }
        let now = self.begun + elapsed;
        let (bar, shown) = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:40} {msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            (ProgressBar::new(self.total).with_style(style), self.begun)
        });
        if now.duration_since(*shown) >= REFRESH {
            *shown = now;
            let position = position();
            bar.set_message(text(self.work, (position, self.total), elapsed));
            bar.set_position(position);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&mut self) {
        if let Some((bar, _)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Position, rate and remaining time. The rate is the average since the beginning. The bar's own
/// rate would be too high: it divides by the time since the bar was created, a second later.
fn text(work: Work, (position, total): (u64, u64), elapsed: Duration) -> String {
    let rate = position as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = total.saturating_sub(position) as f64 / rate.max(1.0);
    let left = Duration::try_from_secs_f64(left.ceil()).unwrap_or(Duration::MAX);
    let left = FormattedDuration(left);
    match work {
        Work::Bytes => format!(
            "{}/{} {}/s, {left} left",
            HumanBytes(position),
            HumanBytes(total),
            HumanBytes(rate as u64),
        ),
        Work::Number(plural) => format!(
            "{}/{} {plural}, {}/s, {left} left",
            grouped(position),
            grouped(total),
            grouped(rate as u64),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rate_counts_from_the_beginning() {
        let mib = 1 << 20;
        assert_eq!(
            text(Work::Bytes, (500 * mib, 4000 * mib), Duration::from_secs(1)),
            "500.00 MiB/3.91 GiB 500.00 MiB/s, 00:00:07 left"
        );
        assert_eq!(
            text(
                Work::Bytes,
                (4000 * mib, 4000 * mib),
                Duration::from_secs(16)
            ),
            "3.91 GiB/3.91 GiB 250.00 MiB/s, 00:00:00 left"
        );
        assert_eq!(
            text(Work::Bytes, (0, 0), Duration::ZERO),
            "0 B/0 B 0 B/s, 00:00:00 left"
        );
        assert_eq!(
            text(
                Work::Number("executions"),
                (1000, 5000),
                Duration::from_secs(2)
            ),
            "1,000/5,000 executions, 500/s, 00:00:08 left"
        );
        // Far more than any trace has: no panic.
        assert!(
            text(Work::Bytes, (0, u64::MAX), Duration::MAX).starts_with("0 B/16.00 EiB 0 B/s, ")
        );
    }

    #[test]
    fn the_bar_shows_that_text() {
        let begun = Instant::now()
            .checked_sub(Duration::from_secs(2))
            .expect("two seconds ago");
        let mut progress = Progress {
            total: 100,
            work: Work::Bytes,
            begun,
            wanted: true,
            bar: None,
        };
        progress.at(|| 50);
        let (bar, _) = progress.bar.as_ref().expect("a bar after the patience");
        assert!(
            bar.message().starts_with("50 B/100 B 2"),
            "{}",
            bar.message()
        );
        assert_eq!(bar.position(), 50);
        progress.finish();
    }
}
