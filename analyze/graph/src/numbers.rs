//! The last numbers of packets and futexes, which do not depend on how the graph was made.

use tracebraid_threads::{CallClass, CallClasses};

use crate::cause::Wake;
use crate::futexes::Futexes;
use crate::graph::{Actor, State};
use crate::kept::place_without;

/// Changes of numbers.
#[derive(Debug)]
pub(crate) struct Numbers<'a> {
    classes: &'a CallClasses,
    /// Places of packets that nothing refers to, in their order.
    unused: &'a [u32],
    /// By the number of a futex.
    futexes: Vec<u32>,
    /// No number changes.
    are_last: bool,
}

impl<'a> Numbers<'a> {
    /// Packets are numbered without those that nothing refers to, futexes in the order of their addresses: these are given,
    /// too.
    pub(crate) fn new(
        classes: &'a CallClasses,
        unused: &'a [u32],
        futexes: &Futexes,
    ) -> (Numbers<'a>, Vec<i64>) {
        let addresses = futexes.addresses();
        let mut order: Vec<(i64, u32)> = addresses.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut numbers = vec![0; order.len()];
        for (number, (_, place)) in (0..).zip(&order) {
            numbers[*place as usize] = number;
        }
        let are_last = unused.is_empty() && addresses.is_sorted();
        let numbers = Numbers {
            classes,
            unused,
            futexes: numbers,
            are_last,
        };
        (numbers, order.into_iter().map(|(address, _)| address).collect())
    }

    /// Changes those of a time line.
    pub(crate) fn renumber(&self, actor: &mut Actor) {
        if self.are_last {
            return;
        }
        for stretch in &mut actor.line {
            if let State::Blocked {
                call, object, wake, ..
            } = &mut stretch.state
            {
                self.wake(wake);
                if self.classes.of(*call) == CallClass::Futex
                    && let Some(&number) = self.futexes.get(*object as usize)
                {
                    *object = number;
                }
            }
        }
        actor.works.iter_mut().for_each(|work| self.wake(&mut work.cause));
    }

    fn wake(&self, wake: &mut Wake) {
        if let Wake::Packet(place) = wake {
            *place = place_without(self.unused, *place);
        }
    }
}
