//! Signals to the recorder, which reads them from a signalfd and forwards them to its command.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::dispositions::{ignore_file_size_limit, ignored_at_start};

/// SIGINT, SIGTERM and SIGHUP, which end the recording, and SIGQUIT, SIGUSR1 and SIGUSR2, which are
/// only forwarded: programs use them as requests (dump threads, reopen log files).
///
/// A signalfd and not a handler, since it shows the sender: the terminal sends SIGINT to the
/// command as well, `kill` does not.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    /// By bit, signals that this process was started to ignore.
    ignored: u64,
    /// Arrival of the first signal that ends the recording.
    first: Option<Instant>,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Signal number.
    pub number: i32,
    /// True if the terminal sent it to all processes of its foreground group.
    pub is_of_terminal: bool,
    /// True if the signal ends the recording even if there is a command.
    pub is_to_end: bool,
    /// True if an earlier signal has already requested the end of the recording.
    pub is_repeated: bool,
}

/// `timeout` and shells signal a process and its group at once: signals within this time are one
/// request.
const AT_ONCE: Duration = Duration::from_millis(100);
/// `SI_KERNEL`.
const BY_KERNEL: i32 = 0x80;
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
const ORDERS: [Signal; 3] = [Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

impl Signals {
    /// Receives these signals from now on. Call it before other threads begin, which must inherit
    /// the blocked signals, and after a command is launched, which must not inherit them.
    ///
    /// # Errors
    /// If the kernel returns no descriptor.
    pub fn take() -> io::Result<Signals> {
        let wanted: SigSet = ENDING.into_iter().chain(ORDERS).collect();
        wanted.thread_block()?;
        ignore_file_size_limit();
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Signals {
            descriptor: SignalFd::with_flags(&wanted, flags)?,
            ignored: ignored_at_start(),
            first: None,
        })
    }

    /// The next signal that has arrived, if any.
    pub fn receive(&mut self) -> Option<Received> {
        loop {
            let signal = self.descriptor.read_signal().ok()??;
            let number = i32::try_from(signal.ssi_signo).ok()?;
            let is_of_terminal = signal.ssi_code == BY_KERNEL;
            if self.ignores(number, is_of_terminal) {
                continue;
            }
            let is_to_end = ENDING.iter().any(|&ending| number == ending as i32);
            if is_to_end {
                self.first.get_or_insert_with(Instant::now);
            }
            return Some(Received {
                number,
                is_of_terminal,
                is_to_end,
                is_repeated: is_to_end && self.first.is_some_and(|first| first.elapsed() > AT_ONCE),
            });
        }
    }

    /// `nohup` ignores SIGHUP of all senders. Shells without job control have background commands
    /// ignore SIGINT and SIGQUIT, so that the keys of the terminal spare them; `kill -INT` by a
    /// script is meant for the recorder.
    fn ignores(&self, number: i32, is_of_terminal: bool) -> bool {
        let is_ignored = self.ignored >> (number - 1) & 1 == 1;
        let is_of_keys = [Signal::SIGINT, Signal::SIGQUIT]
            .iter()
            .any(|&key| number == key as i32);
        is_ignored && (is_of_terminal || !is_of_keys)
    }

    /// Time since the first signal that ends the recording.
    pub fn since(&self) -> Option<Duration> {
        self.first.map(|first| first.elapsed())
    }
}
