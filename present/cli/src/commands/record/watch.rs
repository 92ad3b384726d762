//! Watching a recording until it is to end.

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
    /// The command did.
    Command(ExitStatus),
    /// Time or size are used up.
    Limit,
    /// A signal of that number to the recorder.
    Signal(i32),
    /// Somebody asked for it, and waits for the answer.
    Told(Question),
}

impl Ended {
    /// The reason as the trace contains it.
    pub(super) fn reason(&self) -> EndReason {
        match self {
            Ended::Command(_) => EndReason::CommandEnded,
            Ended::Limit => EndReason::Limit,
            Ended::Signal(_) => EndReason::Interrupted,
            Ended::Told(_) => EndReason::Asked,
        }
    }
}

/// What a recording may use up.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) time: Option<Duration>,
    /// When all of these have ended, there is nothing more to record.
    pub(super) processes: Vec<Target>,
    /// Descendants of the command or of these processes are recorded until they have ended.
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

/// Whether descendants that are followed still run.
///
/// They are those that BPF follows by their forks. A cgroup would need a writable hierarchy, which
/// containers rarely have; it would also move a command out of the limits of its service.
/// PR_SET_CHILD_SUBREAPER would change the parent that a daemon sees.
struct Descendants {
    /// Listing all threads takes a while: not each time.
    looked: Option<Instant>,
    follows: bool,
    has_ended: bool,
}

/// How often descendants are looked for.
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
            // An error would come again: the recording ends with the command then.
            self.has_ended = session
                .followed()
                .map_or(true, |followed| followed.is_empty());
            self.looked = Some(Instant::now());
        }
        self.has_ended
    }
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
        .ok_or_else(|| format!("`{text}` is not a length of time, such as 10s, 500ms or 2min"))
}

/// How long a command that got the signal too may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Waits until there is a reason to end; gives it, and how long that took.
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
                    // How a command ends that got the signal is part of the recording.
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

/// Forwards pending signals to the command, if it runs; returns the last signal that ends the
/// recording. Without a command every signal ends it.
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
            "Recording {:.0} s: {} events, {} a second, {} lost, {}. Ctrl-C ends it.",
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
