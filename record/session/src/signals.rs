//! Signals that end a recording: the recorder reads them instead of ending by them, and passes them on to its command.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::dispositions::ignored_at_start;

/// SIGINT, SIGTERM and SIGHUP of this process.
///
/// A signalfd and not a handler, since it shows the sender: the terminal sends SIGINT to the command as well, `kill` does
/// not.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    /// By bit, signals that this process was started to ignore.
    ignored: u64,
    /// When the first one came.
    first: Option<Instant>,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub number: i32,
    /// The terminal has sent it to all processes of its foreground group.
    pub is_of_terminal: bool,
    /// The user has asked before.
    pub is_repeated: bool,
}

/// `timeout` and shells signal a process and its group at once: signals within this time are one request.
const AT_ONCE: Duration = Duration::from_millis(100);
/// `SI_KERNEL`.
const BY_KERNEL: i32 = 0x80;

impl Signals {
    /// Takes these signals from now on. Call this before other threads begin, which inherit that they are blocked, and
    /// after a command is launched, which would inherit it too.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn take() -> io::Result<Signals> {
        let mut wanted = SigSet::empty();
        wanted.add(Signal::SIGINT);
        wanted.add(Signal::SIGTERM);
        wanted.add(Signal::SIGHUP);
        wanted.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Signals {
            descriptor: SignalFd::with_flags(&wanted, flags)?,
            ignored: ignored_at_start(),
            first: None,
        })
    }

    /// The next one, if one has come.
    pub fn receive(&mut self) -> Option<Received> {
        loop {
            let signal = self.descriptor.read_signal().ok()??;
            let number = i32::try_from(signal.ssi_signo).ok()?;
            let is_of_terminal = signal.ssi_code == BY_KERNEL;
            if self.ignores(number, is_of_terminal) {
                continue;
            }
            let first = *self.first.get_or_insert_with(Instant::now);
            return Some(Received {
                number,
                is_of_terminal,
                is_repeated: first.elapsed() > AT_ONCE,
            });
        }
    }

    /// `nohup` ignores SIGHUP of all senders. Shells without job control have background commands ignore SIGINT, so that
    /// Ctrl-C spares them; `kill -INT` by a script is meant for the recorder.
    fn ignores(&self, number: i32, is_of_terminal: bool) -> bool {
        let is_ignored = self.ignored >> (number - 1) & 1 == 1;
        is_ignored && (is_of_terminal || number != Signal::SIGINT as i32)
    }

    /// How long ago the first one came.
    pub fn since(&self) -> Option<Duration> {
        self.first.map(|first| first.elapsed())
    }
}
