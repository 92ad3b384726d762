//! A progress bar for long runs, unless their results appear on the terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::settings;
use indicatif::{FormattedDuration, HumanBytes, ProgressBar, ProgressStyle};

/// Runs shorter than this show no progress bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval at which the text is updated.
const REFRESH: Duration = Duration::from_millis(100);

/// Progress of a command.
#[derive(Debug)]
pub(crate) struct Progress {
    total: u64,
    begun: Instant,
    wanted: bool,
    bar: Option<(ProgressBar, Instant)>,
}

impl Progress {
    /// Total size of the trace in bytes; no bar is shown if the results appear on a terminal.
    pub(crate) fn new(total: u64, output_is_terminal: bool) -> Self {
        let wanted =
            !output_is_terminal && !settings::is_quiet() && std::io::stderr().is_terminal();
        Progress {
            total,
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
            bar.set_message(text(position, self.total, elapsed));
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

/// Bytes, bytes per second and the remaining time. The rate is the average since the beginning. The
/// bar's own rate would be too high: it divides by the time since the bar was created, a second
/// later.
fn text(position: u64, total: u64, elapsed: Duration) -> String {
    let rate = position as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = total.saturating_sub(position) as f64 / rate.max(1.0);
    let left = Duration::try_from_secs_f64(left.ceil()).unwrap_or(Duration::MAX);
    format!(
        "{}/{} {}/s {}",
        HumanBytes(position),
        HumanBytes(total),
        HumanBytes(rate as u64),
        FormattedDuration(left)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rate_counts_from_the_beginning() {
        let mib = 1 << 20;
        assert_eq!(
            text(500 * mib, 4000 * mib, Duration::from_secs(1)),
            "500.00 MiB/3.91 GiB 500.00 MiB/s 00:00:07"
        );
        assert_eq!(
            text(4000 * mib, 4000 * mib, Duration::from_secs(16)),
            "3.91 GiB/3.91 GiB 250.00 MiB/s 00:00:00"
        );
        assert_eq!(text(0, 0, Duration::ZERO), "0 B/0 B 0 B/s 00:00:00");
        // Far more than any trace has: no panic.
        assert!(text(0, u64::MAX, Duration::MAX).starts_with("0 B/16.00 EiB 0 B/s "));
    }

    #[test]
    fn the_bar_shows_that_text() {
        let begun = Instant::now()
            .checked_sub(Duration::from_secs(2))
            .expect("two seconds ago");
        let mut progress = Progress {
            total: 100,
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
