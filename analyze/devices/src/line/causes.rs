//! Why a device was idle.

use serde::{Deserialize, Serialize};

use super::placed::Placed;

/// Cause of a part of an idle time, from the four times of the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// Until queued: the program had not enqueued it.
    HostLate,
    /// From queued until an event of its wait list was complete: one that the program completes, or
    /// a command of another device.
    Dependency,
    /// From queued (or the end of the dependency) to submitted: the driver had not given it to the
    /// device.
    HostQueue,
    /// From submitted to started.
    DeviceQueue,
}

impl Cause {
    pub(crate) const ALL: [Cause; 4] = [
        Cause::HostLate,
        Cause::Dependency,
        Cause::HostQueue,
        Cause::DeviceQueue,
    ];

    /// Nanoseconds of each cause, of the time from `begin` to the start of a command.
    pub(crate) fn split(begin: u64, command: &Placed) -> [u64; 4] {
        let Placed {
            queued,
            submit,
            start,
            ready,
            ..
        } = *command;
        let ready = ready.clamp(queued, start);
        let mut at = begin;
        [queued, ready, submit, start].map(|until| {
            let until = until.clamp(at, start.max(at));
            until - std::mem::replace(&mut at, until)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    fn command(queued: u64, ready: u64, submit: u64, start: u64) -> Placed {
        Placed {
            queued,
            submit,
            start,
            end: start + 10,
            ready,
            entry: 0,
            exit: 0,
            queue: 0,
            process: 0,
            tid: 0,
            name: 0,
            kind: Kind::Kernel,
        }
    }

    #[test]
    fn idle_time_is_split_by_what_the_next_command_waited_for() {
        let all = |begin, of: Placed| Cause::split(begin, &of);
        assert_eq!(all(100, command(110, 0, 130, 170)), [10, 0, 20, 40]);
        assert_eq!(all(100, command(110, 125, 130, 170)), [10, 15, 5, 40]);
        assert_eq!(all(100, command(110, 150, 130, 170)), [10, 40, 0, 20]);
        assert_eq!(all(140, command(110, 0, 130, 170)), [0, 0, 0, 30]);
        assert_eq!(all(120, command(110, 0, 130, 170)), [0, 0, 10, 40]);
        assert_eq!(all(100, command(110, 900, 130, 170)), [10, 60, 0, 0]);
    }
}
