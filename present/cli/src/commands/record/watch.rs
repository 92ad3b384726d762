//! Waits for the end of a recording.

use std::io::IsTerminal;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracebraid_session::control::Question;
use tracebraid_session::kernel::{EndReason, Progress};
use tracebraid_session::{Launched, Received, Session, Signals, Target};

use super::asked::Asked;
use super::when::Snapshots;
use crate::failure::Failure;
use crate::{time, units};

/// Why a recording ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// The command has ended.
    Command(ExitStatus),
    /// A limit was reached, or all processes of `--pid` have ended.
    Limit,
    /// The recorder has received the signal with this number.
    Signal(i32),
    /// A client has asked for the end, and waits for the answer.
    Told(Question),
}

impl Ended {
    /// The reason as recorded in the trace.
    pub(super) fn reason(&self) -> EndReason {
        match self {
            Ended::Command(_) => EndReason::CommandEnded,
            Ended::Limit => EndReason::Limit,
            Ended::Signal(_) => EndReason::Interrupted,
            Ended::Told(_) => EndReason::Asked,
        }
    }
}

/// Limits of a recording.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) time: Option<Duration>,
    /// The recording ends when all these processes have ended.
    pub(super) processes: Vec<Target>,
    /// The recording also waits for the end of all descendants of the command or of these
    /// processes.
    pub(super) follows_daemons: bool,
}

impl Limits {
    fn are_reached(&self, elapsed: Duration) -> bool {
        self.time.is_some_and(|most| elapsed >= most)
    }

    /// Whether the recording is about processes that have all ended.
    pub(super) fn are_gone(&self) -> bool {
        !self.processes.is_empty() && self.processes.iter().all(Target::has_ended)
    }
}

/// Whether followed descendants are still running.
///
/// These are the processes that BPF follows through forks. A cgroup would need a writable
/// hierarchy, which containers rarely have; it would also move a command out of the limits of its
/// service. PR_SET_CHILD_SUBREAPER would change the parent that a daemon sees.
struct Descendants {
    /// Time of the last listing, which is too slow to repeat on every poll.
    looked: Option<Instant>,
    follows: bool,
    has_ended: bool,
}

/// Interval at which descendants are listed.
const LOOK: Duration = Duration::from_millis(100);

impl Descendants {
    fn new(follows: bool) -> Descendants {
        Descendants {
            looked: None,
            follows,
            has_ended: !follows,
        }
    }

    fn have_ended(&mut self, session: &Session) -> bool {
        if self.follows && self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            // An error would recur: the recording then ends with the command.
            self.has_ended = session
                .followed()
                .map_or(true, |followed| followed.is_empty());
            self.looked = Some(Instant::now());
        }
        self.has_ended
    }
}

/// Interval at which the recording is polled.
const PAUSE: Duration = Duration::from_millis(20);
/// Interval at which the progress line is updated.
const BLINK: Duration = Duration::from_millis(250);

/// Parses a duration on the command line.
///
/// # Errors
/// When the text is not a positive duration.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = time::duration(text).and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    let nanoseconds = nanoseconds.filter(|&nanoseconds| nanoseconds > 0);
    nanoseconds
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("`{text}` is not a duration, such as 10s, 500ms or 2min"))
}

/// Time that a command has to end after it has received the signal.
const GRACE: Duration = Duration::from_secs(2);

/// Waits for a reason to end. Returns the reason and the duration of the recording.
pub(super) fn watch(
    session: &Session,
    mut command: Option<&mut Launched>,
    limits: &Limits,
    quiet: bool,
    asked: Option<&Asked<'_>>,
    signals: &mut Signals,
    snapshots: &Snapshots<'_>,
) -> Result<(Ended, Duration), Failure> {
    let mut line = Line::new(quiet);
    let mut descendants = Descendants::new(limits.follows_daemons);
    let mut status = None;
    let mut signal = None;
    loop {
        let elapsed = session.elapsed();
        if let (Some(command), None) = (&mut command, status) {
            status = command
                .try_wait()
                .map_err(|error| Failure::output(error.to_string()))?;
        }
        let waits = status.is_none().then_some(()).and(command.as_deref());
        signal = react(signals, waits).or(signal);
        snapshots.write(session);
        let progress = session.progress();
        let is_gone = limits.are_gone() && descendants.have_ended(session);
        let is_over = is_gone || limits.are_reached(elapsed) || session.has_failed();
        let told = asked.and_then(|asked| asked.look(session, elapsed));
        let ended = match status {
            _ if told.is_some() => told.map(Ended::Told),
            // Daemons are not the command: they get no signal, and only the recording ends.
            Some(status) if is_over || signal.is_some() || descendants.have_ended(session) => {
                Some(Ended::Command(status))
            }
            Some(_) => None,
            None if is_over => Some(Ended::Limit),
            None => signal
                .filter(|signal: &Received| {
                    // The recording includes the end of a command that has received the signal.
                    waits.is_none()
                        || signal.is_repeated
                        || signals.since().is_some_and(|since| since >= GRACE)
                })
                .map(|signal| Ended::Signal(signal.number)),
        };
        if let Some(ended) = ended {
            line.finish();
            return Ok((ended, elapsed));
        }
        line.show(progress, elapsed);
        std::thread::sleep(PAUSE);
    }
}

/// Forwards pending signals to the command, if it is running. Returns the last signal that ends the
/// recording; without a command, every signal does.
fn react(signals: &mut Signals, command: Option<&Launched>) -> Option<Received> {
    let mut last = None;
    while let Some(signal) = signals.receive() {
        if let Some(command) = command {
            command.pass_on(signal);
        }
        if signal.is_to_end || command.is_none() {
            last = Some(signal);
        }
    }
    last
}

/// The progress line on a terminal.
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
                ProgressStyle::with_template("{msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
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
            "Recording {:.0} s: {} events, {} per second, {} lost, {}. Press Ctrl-C to stop.",
            elapsed.as_secs_f64(),
            units::grouped(progress.events),
            units::grouped(rate as u64),
            units::grouped(progress.lost),
            units::bytes(progress.bytes)
        ));
        (self.shown, self.events) = (Instant::now(), progress.events);
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
