//! Requests in progress and completed by block device. Requests are issued on one CPU and completed
//! on another, so the events of all CPUs are played in the order of time.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::block::{Block, BlockStep, RequestStep};
use tracebraid_kernel_model::{Body, Device};

use crate::attribute::{Attribute, AttributeKind};
use crate::piece::Pieces;
use crate::slices::Slices;

const SECTOR: i64 = 512;

/// An event of a request with data.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    device: Device,
    sectors: u32,
    deed: Deed,
    is_write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Deed {
    Issue,
    Complete,
    Requeue,
}

impl Request {
    /// Whether an event is one of a request.
    pub(crate) fn is_of(block: &Block) -> bool {
        deed(block).is_some()
    }

    /// Reads an event; `None` for flushes and commands, which have no data.
    pub(crate) fn new(block: &Block, body: &mut Body<'_, '_>) -> Option<Request> {
        let sectors = block.sectors.as_ref()?.get(body)?;
        let is_write = |rwbs: tracebraid_kernel_model::Rwbs| rwbs.is_write();
        Some(Request {
            deed: deed(block)?,
            device: block.device(body)?,
            sectors: u32::try_from(sectors).ok().filter(|&sectors| sectors > 0)?,
            is_write: block
                .rwbs
                .as_ref()
                .and_then(|rwbs| rwbs.get(body))
                .is_some_and(is_write),
        })
    }
}

fn deed(block: &Block) -> Option<Deed> {
    match block.step {
        BlockStep::Request(RequestStep::Issue) => Some(Deed::Issue),
        BlockStep::Request(RequestStep::Complete) => Some(Deed::Complete),
        BlockStep::Request(RequestStep::Requeue) => Some(Deed::Requeue),
        _ => None,
    }
}

/// Number of requests in progress by machine and device. There are few devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Disks(Vec<((u32, Device), u64)>);

impl Disks {
    /// Applies an event.
    pub(crate) fn play(
        &mut self,
        slices: &Slices,
        to: &mut Pieces,
        host: u32,
        time: i64,
        request: Request,
    ) {
        let device = request.device;
        let attribute = |kind| Attribute::new(kind, host, device.0);
        let depth = self.depth((host, device));
        *depth = match request.deed {
            Deed::Issue => *depth + 1,
            // Requests that began before the trace are unknown.
            Deed::Complete | Deed::Requeue => depth.saturating_sub(1),
        };
        let depth = i64::try_from(*depth).unwrap_or(i64::MAX);
        to.set_number(slices, time, attribute(AttributeKind::DiskDepth), depth);
        if request.deed == Deed::Complete {
            to.add(slices, time, attribute(AttributeKind::DiskRequests), 1);
            let kind = if request.is_write {
                AttributeKind::DiskWritten
            } else {
                AttributeKind::DiskRead
            };
            to.add(
                slices,
                time,
                attribute(kind),
                i64::from(request.sectors) * SECTOR,
            );
        }
    }

    /// Sets the number of requests in progress of a device.
    pub(crate) fn know(&mut self, host: u32, device: u32, depth: i64) {
        *self.depth((host, Device(device))) = u64::try_from(depth).unwrap_or(0);
    }

    fn depth(&mut self, key: (u32, Device)) -> &mut u64 {
        let at = self.0.iter().position(|known| known.0 == key);
        let at = at.unwrap_or_else(|| {
            self.0.push((key, 0));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}
