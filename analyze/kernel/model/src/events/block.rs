//! Block devices.

use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::rwbs::RwbsField;

/// Number of a block device as the kernel keeps it: 12 bits of major, 20 of minor.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
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

    /// The name of a device: the recorded one, or else the one that the kernel assigns to the
    /// number, or `MAJOR:MINOR` where the number is assigned at run time.
    pub fn name(self, recorded: Option<&str>) -> String {
        if let Some(name) = recorded {
            return name.to_owned();
        }
        let numbers = || format!("{}:{}", self.major(), self.minor());
        self.assigned_name().unwrap_or_else(numbers)
    }

    /// The name of a number that the kernel's list of static assignments gives
    /// (Documentation/admin-guide/devices.txt). Majors whose minors depend on a module's parameters
    /// (nbd, mmc) or that are dynamic (virtio, device mapper, nvme) have none.
    fn assigned_name(self) -> Option<String> {
        let minor = self.minor();
        // Blocks of 16 SCSI disks with 16 minors each; greater minors belong to the disks from 256
        // on.
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

/// `sda` to `sdz`, `sdaa` and so on, with the number of the partition, 0 for the whole disk.
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
        self.old_dev
            .as_ref()?
            .get(body)
            .map(|dev| Device(dev as u32))
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
            // Disks from 256 on, and numbers that are assigned at run time.
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
