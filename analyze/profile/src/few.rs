//! A buffer for events that is abandoned if there are too many.

use crate::events::{EventOrigin, EventRole};
use crate::fields::Fields;

/// Buffered events; `None` if there were more than the limit, and the trace must be read again.
pub(crate) struct Few(Option<Vec<(EventOrigin, EventRole, Fields)>>);

/// Maximum number of events: some tens of megabytes.
const MOST_EVENTS: usize = 1 << 16;

impl Default for Few {
    fn default() -> Few {
        Few(Some(Vec::new()))
    }
}

impl Few {
    pub(crate) fn add(&mut self, place: &EventOrigin, kind: EventRole, fields: Fields) {
        self.0 = self.0.take().filter(|events| events.len() < MOST_EVENTS);
        if let Some(events) = &mut self.0 {
            events.push((*place, kind, fields));
        }
    }

    /// All events, if they were few.
    pub(crate) fn all(self) -> Option<Vec<(EventOrigin, EventRole, Fields)>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_ctf::clock::Timestamp;

    use super::*;

    #[test]
    fn more_than_a_few_are_none() {
        let with = |count: usize| {
            let mut few = Few::default();
            (0..count as i64).for_each(|time| {
                let place = EventOrigin {
                    time: Timestamp(time),
                    cpu: None,
                    tid: None,
                };
                few.add(&place, EventRole::Cpu, Fields::default());
            });
            few.all().map(|events| events.len())
        };
        assert_eq!(with(0), Some(0));
        assert_eq!(with(MOST_EVENTS), Some(MOST_EVENTS));
        assert_eq!(with(MOST_EVENTS + 1), None);
        assert_eq!(
            with(MOST_EVENTS + 2),
            None,
            "collecting does not start again"
        );
    }
}
