//! Until when all commands are known.

use serde::{Deserialize, Serialize};

use super::run::Run;

/// A command whose call began after another call had ended is queued after that call's command. So
/// all commands are known that were queued before the last command whose call ended before the
/// earliest call whose command is not complete.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Release {
    /// Ends of calls, and until when commands of calls until then were queued.
    points: Vec<(i64, u64)>,
    until: u64,
}

impl Release {
    pub(crate) fn add(&mut self, run: &Run) {
        self.points.extend(run.points());
    }

    /// Until when all commands are known, if all of calls are that begin before `entry`; `None` if
    /// that has not changed.
    pub(crate) fn until(&mut self, entry: i64) -> Option<u64> {
        let before = self.until;
        let until = &mut self.until;
        self.points.retain(|(exit, queued)| {
            let is_passed = *exit <= entry;
            if is_passed {
                *until = (*until).max(*queued);
            }
            !is_passed
        });
        (*until > before).then_some(*until)
    }
}
