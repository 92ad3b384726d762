//! Watching a recording until it is to end.

use std::io::IsTerminal;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracebraid_session::control::Question;
use tracebraid_session::kernel::{EndReason, Progress};
use tracebraid_session::{Launched, Session};

use super::asked::Asked;
use crate::failure::Failure;
use crate::{table, time};

/// Why a recording ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// The command did.
    Command(ExitStatus),
    /// Time or size are used up.
    Limit,
    /// The user says so.
    Interrupted,
    /// Somebody asked for it, and waits for the answer.
    Told(Question),
}

impl Ended {
    /// The reason as the trace contains it.
    pub(super) fn reason(&self) -> EndReason {
        match self {
            Ended::Command(_) => EndReason::CommandEnded,
            Ended::Limit => EndReason::Limit,
            Ended::Interrupted => EndReason::Interrupted,
            Ended::Told(_) => EndReason::Asked,
        }
    }
}

/// What a recording may use up.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) time: Option<Duration>,
    /// When all of these have ended, there is nothing more to record.
    pub(super) processes: Vec<u32>,
}

impl Limits {
    fn are_reached(&self, elapsed: Duration) -> bool {
        let are_gone = !self.processes.is_empty() && self.processes.iter().all(|&pid| has_ended(pid));
        are_gone || self.time.is_some_and(|most| elapsed >= most)
    }
}

/// Whether a process has ended, even if nobody has asked for its exit code yet.
fn has_ended(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // Behind its name, which may have anything in it.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(20);
/// How often the line of progress changes.
const BLINK: Duration = Duration::from_millis(250);

/// A length of time on the command line.
///
/// # Errors
/// When it is none.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = time::duration(text).and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    let nanoseconds = nanoseconds.filter(|&nanoseconds| nanoseconds > 0);
    nanoseconds
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("`{text}` is not a length of time: 10s, 500ms or 2min are"))
}

/// Waits until there is a reason to end; gives it, and how long that took.
pub(super) fn watch(
    session: &Session,
    mut command: Option<&mut Launched>,
    limits: &Limits,
    quiet: bool,
    asked: Option<&Asked<'_>>,
    interrupted: &AtomicBool,
) -> Result<(Ended, Duration), Failure> {
    let mut since = None;
    let mut line = Line::new(quiet);
    let has_command = command.is_some();
    loop {
        let elapsed = session.elapsed();
        let status = match &mut command {
            Some(command) => command
                .try_wait()
                .map_err(|error| Failure::output(error.to_string()))?,
            None => None,
        };
        let progress = session.progress();
        let is_over = limits.are_reached(elapsed) || session.has_failed();
        let told = asked.and_then(|asked| asked.look(session, elapsed));
        let ended = match status {
            _ if told.is_some() => told.map(Ended::Told),
            Some(status) => Some(Ended::Command(status)),
            None if interrupted.load(Ordering::Relaxed) && is_time(&mut since, has_command) => {
                Some(Ended::Interrupted)
            }
            None => is_over.then_some(Ended::Limit),
        };
        if let Some(ended) = ended {
            line.finish();
            return Ok((ended, elapsed));
        }
        line.show(progress, elapsed);
        std::thread::sleep(PAUSE);
    }
}

/// How long a command that was interrupted too may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// True if an interrupted recording is to end. A command is interrupted as well, by the terminal: how it ends is part
/// of the recording.
fn is_time(since: &mut Option<Instant>, has_command: bool) -> bool {
    let since = since.get_or_insert_with(Instant::now);
    !has_command || since.elapsed() >= GRACE
}

/// The line of progress, on a terminal.
struct Line {
    shown: Instant,
    events: u64,
    bar: Option<ProgressBar>,
}

impl Line {
    fn new(quiet: bool) -> Line {
        let wanted = !quiet && std::io::stderr().is_terminal();
        let bar = wanted.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.with_style(
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
            )
        });
        Line {
            shown: Instant::now(),
            events: 0,
            bar,
        }
    }

    fn show(&mut self, progress: Progress, elapsed: Duration) {
        let Some(bar) = &self.bar else {
            return;
        };
        let since = self.shown.elapsed();
        if since < BLINK {
            return;
        }
        let rate = (progress.events - self.events) as f64 / since.as_secs_f64();
        bar.set_message(format!(
            "Recording {:.0} s: {} events, {} a second, {} lost, {}. Ctrl-C ends it.",
            elapsed.as_secs_f64(),
            table::grouped(progress.events),
            table::grouped(rate as u64),
            table::grouped(progress.lost),
            table::bytes(progress.bytes)
        ));
        (self.shown, self.events) = (Instant::now(), progress.events);
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
