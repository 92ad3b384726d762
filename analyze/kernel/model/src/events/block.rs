//! Block devices.

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::rwbs::RwbsField;

/// Number of a block device as in the kernel: 12 bits of major, 20 of minor.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Device(pub u32);

impl Device {
    /// Major number, which identifies the driver.
    pub fn major(self) -> u32 {
        self.0 >> 20
    }

    /// Minor number, which identifies the device of a driver.
    pub fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }

    /// Name of a device: the recorded name, or else the name that the kernel assigns to the number,
    /// or `MAJOR:MINOR` if the number is assigned at run time.
    pub fn name(self, recorded: Option<&str>) -> String {
        if let Some(name) = recorded {
            return name.to_owned();
        }
        let numbers = || format!("{}:{}", self.major(), self.minor());
        self.assigned_name().unwrap_or_else(numbers)
    }

    /// The name of a number in the kernel's list of static assignments
    /// (Documentation/admin-guide/devices.txt). Majors whose minors depend on a module's parameters
    /// (nbd, mmc) or that are dynamic (virtio, device mapper, nvme) have none.
    fn assigned_name(self) -> Option<String> {
        let minor = self.minor();
        // Blocks of 16 SCSI disks with 16 minors each; greater minors belong to disks 256 and
        // above.
        let scsi =
            |block: u32| (minor < 256).then(|| scsi_name(block * 16 + minor / 16, minor % 16));
        match self.major() {
            1 => Some(format!("ram{minor}")),
            7 => Some(format!("loop{minor}")),
            8 => scsi(0),
            9 => Some(format!("md{minor}")),
            11 => Some(format!("sr{minor}")),
            major @ 65..=71 => scsi(major - 64),
            major @ 128..=135 => scsi(major - 120),
            _ => None,
        }
    }
}

/// `sda` to `sdz`, `sdaa` and so on, with the number of the partition; 0 for the whole disk.
fn scsi_name(disk: u32, partition: u32) -> String {
    let letter = |of: u32| char::from(b'a' + (of % 26) as u8);
    let mut name = "sd".to_owned();
    if disk >= 26 {
        name.push(letter(disk / 26 - 1));
    }
    name.push(letter(disk));
    if partition > 0 {
        name.push_str(&partition.to_string());
    }
    name
}

/// Step of a block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestStep {
    /// A request structure is allocated.
    Get,
    /// The request enters the queue.
    Insert,
    /// The request is issued to the driver.
    Issue,
    /// The request, or a part of it, is completed.
    Complete,
    /// The driver returns the request to the queue.
    Requeue,
    /// The request is merged with another request in the queue.
    Merge,
    /// The request is remapped to another device.
    Remap,
}

/// Step of a bio. Requests are made of bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BioStep {
    /// The bio is submitted.
    Queue,
    /// The bio is appended to a request.
    BackMerge,
    /// The bio is prepended to a request.
    FrontMerge,
    /// The data is copied to memory that the device can reach.
    Bounce,
    /// The bio is split in two.
    Split,
    /// The bio is remapped to another device.
    Remap,
    /// The bio is completed.
    Complete,
}

/// Step of a request or bio.
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
    /// Step of the request or bio.
    pub step: BlockStep,
    dev: IntField,
    /// First sector, in units of 512 bytes.
    pub sector: IntField,
    /// Number of sectors; 0 for flushes.
    pub sectors: Option<IntField>,
    /// Number of bytes, for sizes that are not whole sectors.
    pub bytes: Option<IntField>,
    /// Operation of the request.
    pub rwbs: Option<RwbsField>,
    /// 0, or a negative error number.
    pub error: Option<IntField>,
    /// Thread that performs the step, often not the thread that requested the I/O.
    pub tid: Option<IntField>,
    /// Name of that thread.
    pub name: Option<TextField>,
    old_dev: Option<IntField>,
    /// First sector on the old device of a remap.
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

    /// Number of the device.
    #[inline]
    pub fn device(&self, body: &mut Body<'_, '_>) -> Option<Device> {
        self.dev.get(body).map(|dev| Device(dev as u32))
    }

    /// Number of the old device of a remap.
    pub fn old_device(&self, body: &mut Body<'_, '_>) -> Option<Device> {
        self.old_dev
            .as_ref()?
            .get(body)
            .map(|dev| Device(dev as u32))
    }
}

/// A thread begins to hold back its requests, or submits them.
#[derive(Clone, Debug)]
pub struct Plug {
    /// Number of requests that are submitted; `None` when the thread begins to hold them back.
    pub requests: Option<IntField>,
    /// Id of the thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_their_recorded_names_or_assigned_ones() {
        let name = |major: u32, minor: u32| Device(major << 20 | minor).name(None);
        for (major, minor, expected) in [
            (7, 0, "loop0"),
            (7, 12, "loop12"),
            (1, 3, "ram3"),
            (9, 127, "md127"),
            (11, 0, "sr0"),
            (8, 0, "sda"),
            (8, 1, "sda1"),
            (8, 17, "sdb1"),
            (8, 240, "sdp"),
            (65, 0, "sdq"),
            (65, 160, "sdaa"),
            (65, 175, "sdaa15"),
            (71, 240, "sddx"),
            (128, 0, "sddy"),
            (135, 255, "sdiv15"),
            // Disks 256 and above, and numbers that are assigned at run time.
            (8, 256, "8:256"),
            (254, 16, "254:16"),
            (259, 1, "259:1"),
            (43, 0, "43:0"),
        ] {
            assert_eq!(name(major, minor), expected, "{major}:{minor}");
        }
        assert_eq!(Device(7 << 20).name(Some("vda")), "vda");
    }
}
