//! Final numbers of packets and futexes, independent of how the graph was sliced.

use tracebraid_threads::{CallClass, CallClasses};

use crate::cause::Wake;
use crate::futexes::Futexes;
use crate::graph::{Actor, State};
use crate::kept::place_without;

/// Maps numbers to final ones.
#[derive(Debug)]
pub(crate) struct Numbers<'a> {
    classes: &'a CallClasses,
    /// Places of unused packets, ascending.
    unused: &'a [u32],
    /// Final number by number of a futex.
    futexes: Vec<u32>,
    /// All numbers are final already.
    are_last: bool,
}

impl<'a> Numbers<'a> {
    /// Packets are numbered without the unused ones, futexes by ascending address. Returns the
    /// addresses, too.
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
        (
            numbers,
            order.into_iter().map(|(address, _)| address).collect(),
        )
    }

    /// Renumbers a time line.
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
        actor
            .works
            .iter_mut()
            .for_each(|work| self.wake(&mut work.cause));
    }

    fn wake(&self, wake: &mut Wake) {
        if let Wake::Packet(place) = wake {
            *place = place_without(self.unused, *place);
        }
    }
}
