//! Calls in which threads wait for the commands of a device, such as a GPU.

use std::collections::BTreeMap;

use tracebraid_follow::ThreadKey;

/// Calls of an API for devices, by thread. A wait within such a call is a wait for the device,
/// whatever wakes the thread: an interrupt, or a thread of the driver.
#[derive(Clone, Debug, Default)]
pub struct DeviceCalls {
    /// Begin and end of calls that do not overlap, in nanoseconds from the origin, ascending.
    by_thread: BTreeMap<ThreadKey, Vec<(i64, i64)>>,
}

impl DeviceCalls {
    /// Calls with their begin and end, in any order. Of calls within others, the outermost counts.
    pub fn new(calls: impl IntoIterator<Item = (ThreadKey, i64, i64)>) -> DeviceCalls {
        let mut by_thread: BTreeMap<ThreadKey, Vec<(i64, i64)>> = BTreeMap::new();
        for (thread, begin, end) in calls {
            by_thread.entry(thread).or_default().push((begin, end));
        }
        for calls in by_thread.values_mut() {
            calls.sort_by_key(|(begin, end)| (*begin, std::cmp::Reverse(*end)));
            let mut until = i64::MIN;
            calls.retain(|(_, end)| {
                let is_outer = *end > until;
                until = until.max(*end);
                is_outer
            });
        }
        DeviceCalls { by_thread }
    }

    /// True if the thread is in such a call at a time.
    #[inline]
    pub fn contain(&self, thread: ThreadKey, time: i64) -> bool {
        if self.by_thread.is_empty() {
            return false;
        }
        let Some(calls) = self.by_thread.get(&thread) else {
            return false;
        };
        let after = calls.partition_point(|(begin, _)| *begin <= time);
        let last = after.checked_sub(1).and_then(|last| calls.get(last));
        last.is_some_and(|(_, end)| time <= *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_within_calls_of_their_thread() {
        let [one, other] = [1, 2].map(|tid| ThreadKey { trace: 0, tid });
        let calls = [
            (one, 30, 40),
            (one, 10, 20),
            (one, 12, 15),
            (other, 100, 200),
        ];
        let calls = DeviceCalls::new(calls);
        let within = |thread| {
            (0..50)
                .filter(|time| calls.contain(thread, *time))
                .collect::<Vec<_>>()
        };
        let expected: Vec<i64> = (10..=20).chain(30..=40).collect();
        assert_eq!(within(one), expected);
        assert!(within(other).is_empty());
    }
}
