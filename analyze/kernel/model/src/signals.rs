//! Names of signals.

/// Indexed by number minus one, as on x86 and ARM.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Name of a signal; `None` for real-time signals (from 32 on) and for numbers of no signal.
pub fn signal_name(signal: i64) -> Option<&'static str> {
    NAMES
        .get(usize::try_from(signal.checked_sub(1)?).ok()?)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(9), Some("SIGKILL"));
        assert_eq!(signal_name(17), Some("SIGCHLD"));
        assert_eq!(signal_name(31), Some("SIGSYS"));
        assert_eq!(signal_name(0), None);
        assert_eq!(signal_name(i64::MIN), None);
        assert_eq!(signal_name(32), None);
    }
}
