//! Pages that are taken and given back, one by one.

use crate::memory::MemoryOptions;
use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::memory::PageStep;
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::memory::sums::{failed, order};
use tracebraid_follow::{CpuKey, Event};
use tracebraid_statistics::Top;
use tracebraid_tables::View;

/// Pages are taken or given back; of two the one of more pages is greater, of equal ones the
/// earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Move {
    /// Their number is two to the power of this.
    pub(super) order: u8,
    pub(super) time: Reverse<i64>,
    pub(super) cpu: Reverse<CpuKey>,
    pub(super) what: PageMove,
}

/// What happens to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum PageMove {
    Allocated,
    /// They were asked for, but there were none.
    Failed,
    Freed,
    /// With others: told in addition to the other.
    Batched,
}

/// Bytes of the smallest page of all machines that Linux runs on. Traces do not tell it.
const PAGE: u64 = 4096;

impl Move {
    /// What an event tells of pages.
    pub(super) fn of(event: &Event<'_>, body: &mut Body<'_, '_>) -> Option<Move> {
        let KernelEvent::Page(page) = &event.model.event else {
            return None;
        };
        let what = match page.step {
            PageStep::Alloc if failed(page, body) => PageMove::Failed,
            PageStep::Alloc => PageMove::Allocated,
            PageStep::Free => PageMove::Freed,
            PageStep::FreeBatched => PageMove::Batched,
        };
        Some(Move {
            order: order(page, body),
            time: Reverse(event.time),
            cpu: Reverse(event.cpu),
            what,
        })
    }

    /// Bytes.
    pub(super) fn size(&self) -> u64 {
        size(self.order)
    }
}

/// Bytes of so many pages.
pub(super) fn size(order: u8) -> u64 {
    PAGE << order
}

/// Which moves are kept.
#[derive(Debug)]
pub(super) struct Keeps {
    /// How many of the largest of each thread.
    pub(super) top: usize,
    pub(super) is_logged: bool,
    /// True if it is counted how many there are of each size.
    pub(super) is_counted: bool,
    /// True if moves must be looked at at all, be it for their size.
    pub(super) is_any: bool,
}

impl Keeps {
    pub(super) fn new(options: &MemoryOptions) -> Keeps {
        let (is_logged, is_counted) = (
            options.views.shows(View::Log),
            options.views.shows(View::Freq),
        );
        let top = options.views.top();
        let is_bounded = options.sizes != Default::default();
        Keeps {
            top,
            is_logged,
            is_counted,
            is_any: top > 0 || is_logged || is_counted || is_bounded,
        }
    }
}

/// The moves of somebody, as far as they are asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Moves {
    pub(super) top: Top<Move>,
    /// By order: how many were taken, and how many were given back.
    pub(super) orders: Vec<[u64; 2]>,
    /// Those that were given back with others.
    pub(super) batched: u64,
    /// In no order.
    pub(super) log: Vec<Move>,
}

impl Moves {
    pub(super) fn add(&mut self, keeps: &Keeps, moved: Move) {
        if moved.what == PageMove::Allocated {
            self.top.add(moved, keeps.top);
        }
        if keeps.is_logged {
            self.log.push(moved);
        }
        if keeps.is_counted {
            match moved.what {
                PageMove::Allocated => self.order(moved.order)[0] += 1,
                PageMove::Freed => self.order(moved.order)[1] += 1,
                PageMove::Batched => self.batched += 1,
                PageMove::Failed => {}
            }
        }
    }

    fn order(&mut self, order: u8) -> &mut [u64; 2] {
        let order = usize::from(order);
        if order >= self.orders.len() {
            self.orders.resize(order + 1, [0; 2]);
        }
        &mut self.orders[order]
    }

    pub(super) fn merge(&mut self, keeps: &Keeps, other: Moves) {
        self.top.merge(other.top, keeps.top, |_| ());
        self.log.extend(other.log);
        self.batched += other.batched;
        self.add_orders(&other.orders);
    }

    /// Adds how many there are of each order.
    pub(super) fn add_orders(&mut self, orders: &[[u64; 2]]) {
        for (order, counts) in (0u8..).zip(orders) {
            let own = self.order(order).iter_mut();
            own.zip(counts).for_each(|(own, other)| *own += other);
        }
    }
}
