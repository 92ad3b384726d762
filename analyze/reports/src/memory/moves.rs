//! Single allocations and releases of pages.

use crate::memory::MemoryOptions;
use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::memory::PageStep;
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::memory::sums::{failed, order};
use tracebraid_follow::{CpuKey, Event};
use tracebraid_statistics::Top;
use tracebraid_tables::View;

/// An allocation or release of pages. The order is by number of pages; of equal ones, the earlier
/// is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Move {
    /// Binary logarithm of the number of pages.
    pub(super) order: u8,
    pub(super) time: Reverse<i64>,
    pub(super) cpu: Reverse<CpuKey>,
    pub(super) what: PageMove,
}

/// The kind of move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum PageMove {
    Allocated,
    /// An allocation that failed.
    Failed,
    Freed,
    /// A release in a batch, recorded in addition to [`PageMove::Freed`].
    Batched,
}

/// Size in bytes of the smallest page on all architectures that Linux runs on. Traces do not
/// contain the page size.
const PAGE: u64 = 4096;

impl Move {
    /// The move that an event records.
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

    /// Size in bytes.
    pub(super) fn size(&self) -> u64 {
        size(self.order)
    }
}

/// Size in bytes of 2^`order` pages.
pub(super) fn size(order: u8) -> u64 {
    PAGE << order
}

/// The moves to keep.
#[derive(Debug)]
pub(super) struct Keeps {
    /// Number of the largest moves of each thread.
    pub(super) top: usize,
    pub(super) is_logged: bool,
    /// Whether moves are counted by size.
    pub(super) is_counted: bool,
    /// Whether moves must be read at all, if only to compare their size with the limits.
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

/// The requested data on a thread's moves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Moves {
    pub(super) top: Top<Move>,
    /// By order: number of allocations and number of releases.
    pub(super) orders: Vec<[u64; 2]>,
    /// Number of releases in batches.
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

    /// Adds numbers by order.
    pub(super) fn add_orders(&mut self, orders: &[[u64; 2]]) {
        for (order, counts) in (0u8..).zip(orders) {
            let own = self.order(order).iter_mut();
            own.zip(counts).for_each(|(own, other)| *own += other);
        }
    }
}
