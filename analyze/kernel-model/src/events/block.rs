//! Block devices.

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::rwbs::RwbsField;

/// Number of a block device as the kernel keeps it: 12 bits of major, 20 of minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Device(pub u32);

impl Device {
    /// Its driver.
    pub fn major(self) -> u32 {
        self.0 >> 20
    }

    /// Which of its driver's.
    pub fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestStep {
    /// A request structure is taken.
    Get,
    /// It enters the queue.
    Insert,
    /// The driver has it.
    Issue,
    /// It, or a part of it, is done.
    Complete,
    /// The driver gives it back to the queue.
    Requeue,
    /// It is merged with another one in the queue.
    Merge,
    /// It goes to another device.
    Remap,
}

/// What happens to a bio, of which requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BioStep {
    /// It is handed in.
    Queue,
    /// It becomes a part of a request, at its end.
    BackMerge,
    /// The same, at its beginning.
    FrontMerge,
    /// Its data is copied to where the device reaches it.
    Bounce,
    /// It is cut in two.
    Split,
    /// It goes to another device.
    Remap,
    /// It is done.
    Complete,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockStep {
    /// A request.
    Request(RequestStep),
    /// A bio.
    Bio(BioStep),
}

/// A block request or bio.
#[derive(Clone, Debug)]
pub struct Block {
    /// What happens to it.
    pub step: BlockStep,
    dev: IntField,
    /// First sector, of 512 bytes.
    pub sector: IntField,
    /// Number of sectors; 0 for flushes.
    pub sectors: Option<IntField>,
    /// Number of bytes, for those that are no whole sectors.
    pub bytes: Option<IntField>,
    /// What it does.
    pub rwbs: Option<RwbsField>,
    /// 0 or an error, negative.
    pub error: Option<IntField>,
    /// Thread that does it: often not the one who wanted it.
    pub tid: Option<IntField>,
    /// Its name.
    pub name: Option<TextField>,
    old_dev: Option<IntField>,
    /// First sector before it went to another device.
    pub old_sector: Option<IntField>,
}

impl Block {
    pub(crate) fn find(finder: &Finder<'_>, step: BlockStep) -> Option<Box<Block>> {
        let rwbs = || {
            let bits = finder.int(&["rwbs"]).map(RwbsField::Bits);
            bits.or_else(|| finder.text(&["rwbs"]).map(RwbsField::Letters))
        };
        Some(Box::new(Block {
            step,
            dev: finder.int(&["dev"])?,
            sector: finder.int(&["sector"])?,
            sectors: finder.int(&["nr_sector"]),
            bytes: finder.int(&["bytes"]),
            rwbs: rwbs(),
            error: finder.int(&["error", "errors"]),
            tid: finder.int(&["tid"]),
            name: finder.text(&["comm"]),
            old_dev: finder.int(&["old_dev"]),
            old_sector: finder.int(&["old_sector"]),
        }))
    }

    /// Device.
    #[inline]
    pub fn device(&self, body: &mut Body<'_, '_>) -> Option<Device> {
        self.dev.get(body).map(|dev| Device(dev as u32))
    }

    /// Device before it went to another one.
    pub fn old_device(&self, body: &mut Body<'_, '_>) -> Option<Device> {
        self.old_dev.as_ref()?.get(body).map(|dev| Device(dev as u32))
    }
}

/// A thread holds its requests back, or lets them go.
#[derive(Clone, Debug)]
pub struct Plug {
    /// Number of requests that it lets go; `None` when it begins to hold back.
    pub requests: Option<IntField>,
    /// Thread.
    pub tid: Option<IntField>,
}

impl Plug {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Plug> {
        Some(Plug {
            requests: finder.int(&["nr_rq"]),
            tid: finder.int(&["tid"]),
        })
    }
}
