//! Waits for the commands of devices, such as GPUs.

use std::collections::BTreeMap;

use tracebraid_follow::ThreadKey;
use tracebraid_threads::WaitReason;

use crate::cause::Wake;
use crate::graph::{Graph, State, Stretch};

/// A time in which a thread waits for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceWait {
    /// The thread.
    pub thread: ThreadKey,
    /// Start, in nanoseconds from the origin.
    pub begin: i64,
    /// End.
    pub end: i64,
    /// Activity of the device: the command that it executes, or that waits in a queue.
    pub activity: String,
}

impl Graph {
    /// Charges waits of threads to devices, where they overlap `waits`. Where those of a thread
    /// overlap each other, the one that begins first counts: a call may contain another that waits,
    /// and a command may seem to end after the call that waited for it.
    pub fn charge_devices(&mut self, waits: Vec<DeviceWait>) {
        let mut by_thread: BTreeMap<ThreadKey, Vec<(i64, i64, u32)>> = BTreeMap::new();
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        for wait in waits {
            let next = numbers.len() as u32;
            let number = *numbers.entry(wait.activity).or_insert(next);
            let of_thread = by_thread.entry(wait.thread).or_default();
            of_thread.push((wait.begin, wait.end, number));
        }
        self.commands = vec![String::new(); numbers.len()];
        for (activity, number) in numbers {
            if let Some(command) = self.commands.get_mut(number as usize) {
                *command = activity;
            }
        }
        by_thread.values_mut().for_each(make_disjoint);
        for actor in &mut self.actors {
            if let Some(waits) = by_thread.get(&actor.key) {
                actor.line = charged(&actor.line, waits);
            }
        }
    }
}

/// Sorts waits, and lets each begin after the end of those before it.
fn make_disjoint(waits: &mut Vec<(i64, i64, u32)>) {
    waits.sort_unstable();
    let mut until = i64::MIN;
    waits.retain_mut(|(begin, end, _)| {
        *begin = until.max(*begin);
        until = until.max(*end);
        begin < end
    });
}

/// A time line whose waits are divided by those for devices, which are sorted and disjoint.
fn charged(line: &[Stretch], waits: &[(i64, i64, u32)]) -> Vec<Stretch> {
    let mut charged = Vec::with_capacity(line.len());
    for (place, stretch) in line.iter().enumerate() {
        charged.push(*stretch);
        let State::Blocked { call, object, .. } = stretch.state else {
            continue;
        };
        let until = line.get(place + 1).map_or(i64::MAX, |next| next.begin);
        let first = waits.partition_point(|(_, end, _)| *end <= stretch.begin);
        let within = waits.get(first..).unwrap_or_default().iter();
        for (begin, end, number) in within.take_while(|(begin, ..)| *begin < until) {
            let begin = (*begin).max(stretch.begin);
            let end = (*end).min(until);
            if charged.last().is_some_and(|last| last.begin == begin) {
                charged.pop();
            }
            let state = State::Blocked {
                call,
                object,
                wake: Wake::Command(*number),
                reason: WaitReason::Device,
                is_idle: false,
            };
            charged.push(Stretch { begin, state });
            if end < until {
                let state = stretch.state;
                charged.push(Stretch { begin: end, state });
            }
        }
    }
    charged
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracebraid_kernel_model::Syscall;

    fn blocked(wake: Wake, reason: WaitReason) -> State {
        State::Blocked {
            call: Syscall::OTHER,
            object: 0,
            wake,
            reason,
            is_idle: false,
        }
    }

    #[test]
    fn waits_are_divided_and_other_states_stay() {
        let futex = blocked(Wake::Unknown, WaitReason::Futex);
        let device = |number| blocked(Wake::Command(number), WaitReason::Device);
        let line = [
            (0, State::Running(1)),
            (100, futex),
            (200, State::Running(1)),
            (300, futex),
        ];
        let stretches = |line: &[(i64, State)]| -> Vec<Stretch> {
            let stretch = |(begin, state): &(i64, State)| Stretch {
                begin: *begin,
                state: *state,
            };
            line.iter().map(stretch).collect()
        };
        let mut waits = vec![
            (90, 110, 1),
            (50, 100, 0),
            // Within others, and longer than the one before.
            (95, 105, 5),
            (100, 120, 2),
            (150, 250, 3),
            (290, 310, 4),
            (300, 305, 5),
        ];
        make_disjoint(&mut waits);
        assert!(waits.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let expected = [
            (0, State::Running(1)),
            (100, device(1)),
            (110, device(2)),
            (120, futex),
            (150, device(3)),
            (200, State::Running(1)),
            (300, device(4)),
            (310, futex),
        ];
        assert_eq!(charged(&stretches(&line), &waits), stretches(&expected));
    }
}
