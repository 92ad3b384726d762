//! Open calls of threads.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::item::{Entered, Exited};

/// Maximum number of open calls of a thread: callbacks may call the API, so calls nest; exits may be
/// lost.
const DEEPEST: usize = 1 << 16;

/// The open calls of a thread, the innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenCalls(VecDeque<Entered>);

impl OpenCalls {
    pub(crate) fn enter(&mut self, call: Entered) {
        if self.0.len() >= DEEPEST {
            self.0.pop_front();
        }
        self.0.push_back(call);
    }

    /// Ends the innermost call of that function. Calls within it have lost their exits; without such a
    /// call all have: so slices of time need not know earlier calls of the thread to end later ones.
    pub(crate) fn exit(&mut self, exit: &Exited) -> Option<Entered> {
        let calls = self.0.iter();
        let place = calls
            .rev()
            .position(|call| call.function == exit.function)
            .map(|after| self.0.len() - 1 - after);
        self.0.truncate(place.map_or(0, |place| place + 1));
        self.0.pop_back()
    }

    pub(crate) fn innermost(&self) -> Option<&Entered> {
        self.0.back()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All calls, the outermost first.
    pub(crate) fn take(&mut self) -> VecDeque<Entered> {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entered> {
        self.0.iter()
    }

    /// Calls that began after these.
    pub(crate) fn append(&mut self, later: OpenCalls) {
        later.0.into_iter().for_each(|call| self.enter(call));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: u32, begin: i64) -> Entered {
        Entered {
            function,
            begin,
            ..Entered::default()
        }
    }

    fn exit(function: u32) -> Exited {
        Exited {
            function,
            status: 0,
            event: 0,
            queue: 0,
            kernel: 0,
        }
    }

    #[test]
    fn calls_end_in_reverse_order_and_lost_exits_end_with_the_call_around() {
        let mut open = OpenCalls::default();
        for (function, begin) in [(1, 10), (2, 20), (3, 30)] {
            open.enter(call(function, begin));
        }
        assert_eq!(open.exit(&exit(3)), Some(call(3, 30)));
        assert_eq!(open.exit(&exit(1)), Some(call(1, 10)));
        assert!(open.is_empty());
        open.enter(call(1, 40));
        assert_eq!(open.exit(&exit(7)), None);
        assert!(open.is_empty());
    }

    #[test]
    fn lost_exits_do_not_take_memory_without_bound() {
        let mut open = OpenCalls::default();
        let deepest = DEEPEST as i64;
        (0..deepest + 9).for_each(|begin| open.enter(call(1, begin)));
        assert_eq!(open.take().len(), DEEPEST);
    }
}
