//! Counted events.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::Edge;
use tracebraid_kernel_model::events::memory::{
    Page, PageFault, PageStep, Reclaim, ReclaimStep, Slab,
};
use tracebraid_kernel_model::{Body, IntField, KernelEvent};

/// A counted kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Pages allocated.
    Allocated,
    /// Pages released.
    Freed,
    /// Pages released in batches.
    Batched,
    /// Failed allocations of pages.
    Failed,
    /// Slab objects allocated, bytes requested for them, and bytes allocated.
    Objects,
    Requested,
    Taken,
    /// Slab objects released.
    ObjectsFreed,
    /// Page faults in user mode, in kernel mode, and in an unknown mode.
    UserFaults,
    KernelFaults,
    Faults,
    /// Pages added to the page cache, and removed from it.
    Cached,
    Uncached,
    /// Direct reclaims by threads, and pages reclaimed by them.
    Reclaims,
    Reclaimed,
    /// Wake-ups of kswapd.
    KswapdWakes,
    /// Compactions.
    Compactions,
    /// Processes that the OOM killer killed.
    Kills,
}

/// Number of counts.
const COUNTS: usize = Count::Kills as usize + 1;

/// Sums by [`Count`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sums([u64; COUNTS]);

impl Sums {
    pub(super) fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    pub(super) fn add(&mut self, count: Count, amount: u64) {
        let own = &mut self.0[count as usize];
        // Damaged traces may contain any size.
        *own = own.wrapping_add(amount);
    }

    pub(super) fn merge(&mut self, other: &Sums) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(own, other)| *own = own.wrapping_add(other));
    }
}

/// True for the events that are counted.
pub(super) fn is_counted(event: &KernelEvent) -> bool {
    match event {
        KernelEvent::Page(_) | KernelEvent::Slab(_) | KernelEvent::PageCache(_) => true,
        KernelEvent::PageFault(fault) => fault.edge == Edge::Begin,
        KernelEvent::Reclaim(reclaim) => !matches!(
            reclaim.step,
            ReclaimStep::Kswapd(Edge::End) | ReclaimStep::Compaction(Edge::End)
        ),
        _ => false,
    }
}

fn get(field: &Option<IntField>, body: &mut Body<'_, '_>) -> Option<u64> {
    let value = field.as_ref().and_then(|field| field.get(body));
    value.map(|value| value as u64)
}

impl Sums {
    /// Counts an event.
    #[inline]
    pub(super) fn count(&mut self, event: &KernelEvent, body: &mut Body<'_, '_>) {
        match event {
            KernelEvent::Page(page) => self.page(page, body),
            KernelEvent::Slab(slab) => self.slab(slab, body),
            KernelEvent::PageFault(fault) => self.add(fault_of(fault), 1),
            KernelEvent::PageCache(cache) => match cache.edge {
                Edge::Begin => self.add(Count::Cached, 1),
                Edge::End => self.add(Count::Uncached, 1),
            },
            KernelEvent::Reclaim(reclaim) => self.reclaim(reclaim, body),
            _ => {}
        }
    }

    fn page(&mut self, page: &Page, body: &mut Body<'_, '_>) {
        let pages = 1 << order(page, body);
        match page.step {
            PageStep::Alloc if failed(page, body) => self.add(Count::Failed, 1),
            PageStep::Alloc => self.add(Count::Allocated, pages),
            PageStep::Free => self.add(Count::Freed, pages),
            PageStep::FreeBatched => self.add(Count::Batched, 1),
        }
    }

    fn slab(&mut self, slab: &Slab, body: &mut Body<'_, '_>) {
        match slab.edge {
            Edge::Begin => {
                self.add(Count::Objects, 1);
                self.add(Count::Requested, get(&slab.requested, body).unwrap_or(0));
                self.add(Count::Taken, get(&slab.allocated, body).unwrap_or(0));
            }
            Edge::End => self.add(Count::ObjectsFreed, 1),
        }
    }

    fn reclaim(&mut self, reclaim: &Reclaim, body: &mut Body<'_, '_>) {
        match reclaim.step {
            ReclaimStep::Direct(Edge::Begin) => self.add(Count::Reclaims, 1),
            ReclaimStep::Direct(Edge::End) => {
                self.add(Count::Reclaimed, get(&reclaim.reclaimed, body).unwrap_or(0));
            }
            ReclaimStep::Kswapd(_) => self.add(Count::KswapdWakes, 1),
            ReclaimStep::Compaction(_) => self.add(Count::Compactions, 1),
            ReclaimStep::Kill => self.add(Count::Kills, 1),
        }
    }
}

/// Limit of orders; larger ones come from damaged traces.
const ORDERS: u64 = 32;

/// Binary logarithm of the number of pages.
pub(super) fn order(page: &Page, body: &mut Body<'_, '_>) -> u8 {
    let order = get(&page.order, body).filter(|&order| order < ORDERS);
    order.map_or(0, |order| order as u8)
}

/// True if the allocation failed.
pub(super) fn failed(page: &Page, body: &mut Body<'_, '_>) -> bool {
    // No address or no page frame.
    matches!(get(&page.page, body), Some(0 | u64::MAX))
}

fn fault_of(fault: &PageFault) -> Count {
    match fault.user {
        Some(true) => Count::UserFaults,
        Some(false) => Count::KernelFaults,
        None => Count::Faults,
    }
}
