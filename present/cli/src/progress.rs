//! A progress bar for long runs whose results go elsewhere than to the terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far a command is.
#[derive(Debug)]
pub(crate) struct Progress {
    total: u64,
    begun: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// For that many bytes of trace; nothing is shown where the results already are.
    pub(crate) fn new(total: u64, output_is_terminal: bool) -> Self {
        let wanted = !output_is_terminal && std::io::stderr().is_terminal();
        Progress {
            total,
            begun: Instant::now(),
            wanted,
            bar: None,
        }
    }

    /// Shows the number of bytes that were read.
    pub(crate) fn at(&mut self, position: impl FnOnce() -> u64) {
        if !self.wanted || self.begun.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
            ProgressBar::new(self.total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_position(position());
    }

    /// Takes it away.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
