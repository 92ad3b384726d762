//! Classes of devices, by the names that drivers give to the handlers of their interrupts.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Interrupt, InterruptStep};
use tracebraid_kernel_model::{Body, KernelEvent};

use crate::wait_reason::WaitReason;

/// Class of the device that raises an interrupt.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum DeviceClass {
    /// A network adapter.
    Network,
    /// A disk or its controller.
    BlockDevice,
    /// A keyboard, a mouse, a touchpad.
    UserInput,
    /// Another device, or one whose handler has no name.
    #[default]
    Other,
}

/// Beginnings of the names of handlers, and parts of them, by class; the first class that fits
/// counts.
const HANDLERS: [(DeviceClass, &[&str], &[&str]); 3] = [
    (
        DeviceClass::Network,
        &[
            "eth", "eno", "ens", "enp", "enx", "wlan", "wlp", "wlo", "mlx", "ixgbe", "i40e",
            "ice-", "igb", "e1000", "bnx", "r8169", "ena-", "gve", "iwlwifi", "ath",
        ],
        &["-input.", "-output.", "-TxRx-", "-rx-", "-tx-"],
    ),
    (
        DeviceClass::BlockDevice,
        &[
            "nvme", "ahci", "ata", "scsi", "mmc", "sdhci", "ufshcd", "megasas", "mpt", "virtscsi",
            "hpsa", "xen-blk", "blkif", "dasd", "aac",
        ],
        &["-req.", "-request"],
    ),
    (
        DeviceClass::UserInput,
        &[
            "i8042",
            "kbd",
            "atkbd",
            "psmouse",
            "hid",
            "gpio_keys",
            "gpio-keys",
        ],
        &["keyboard", "mouse", "touch", "trackpoint", "elan_i2c"],
    ),
];

impl DeviceClass {
    /// By the name of the handler of an interrupt (`action->name` in the kernel).
    pub fn of_handler(name: &str) -> DeviceClass {
        let fits = |(_, beginnings, parts): &&(DeviceClass, &[&str], &[&str])| {
            beginnings
                .iter()
                .any(|beginning| name.starts_with(beginning))
                || parts.iter().any(|part| name.contains(part))
        };
        HANDLERS
            .iter()
            .find(fits)
            .map_or(DeviceClass::Other, |of| of.0)
    }

    /// Reason of a wait that an interrupt of the device ends.
    pub fn reason(self) -> WaitReason {
        match self {
            DeviceClass::Network => WaitReason::Network,
            DeviceClass::BlockDevice => WaitReason::BlockDevice,
            DeviceClass::UserInput => WaitReason::UserInput,
            DeviceClass::Other => WaitReason::Device,
        }
    }
}

/// Number of handlers that are remembered.
const REMEMBERED: usize = 32;

/// The classes of the last handlers, by interrupt. The name of each event record is compared, since
/// several handlers may share an interrupt line: the class is that of the handler that ran.
#[derive(Clone, Debug, Default)]
pub struct Handlers(Vec<(Box<[u8]>, DeviceClass)>);

impl Handlers {
    fn class(&mut self, irq: u16, name: &[u8]) -> DeviceClass {
        let slot = usize::from(irq) % REMEMBERED;
        match self.0.get(slot) {
            Some((known, class)) if **known == *name => *class,
            _ => self.learn(slot, name),
        }
    }

    #[cold]
    fn learn(&mut self, slot: usize, name: &[u8]) -> DeviceClass {
        self.0.resize_with(REMEMBERED, Default::default);
        let class = DeviceClass::of_handler(&String::from_utf8_lossy(name));
        self.0[slot] = (name.into(), class);
        class
    }

    /// The class of the device whose handler begins by that step of an interruption; other steps
    /// have none.
    #[inline]
    pub fn of_step(
        &mut self,
        event: &KernelEvent,
        step: InterruptStep,
        body: &mut Body<'_, '_>,
    ) -> DeviceClass {
        match (event, step) {
            (KernelEvent::IrqEntry(entry), InterruptStep::Hard(Interrupt::Irq(irq))) => {
                let name = entry.name.as_ref().and_then(|name| name.bytes(body));
                name.map_or(DeviceClass::Other, |name| self.class(irq, name))
            }
            _ => DeviceClass::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_show_their_devices() {
        for (name, expected) in [
            ("virtio2-input.0", DeviceClass::Network),
            ("virtio2-output.1", DeviceClass::Network),
            ("virtio4-req.0", DeviceClass::BlockDevice),
            ("nvme0q3", DeviceClass::BlockDevice),
            ("eth0-TxRx-3", DeviceClass::Network),
            ("enp3s0", DeviceClass::Network),
            ("i8042", DeviceClass::UserInput),
            ("elan_i2c", DeviceClass::UserInput),
            ("ttyS0", DeviceClass::Other),
            ("snd_hda_intel:card0", DeviceClass::Other),
            ("", DeviceClass::Other),
        ] {
            assert_eq!(DeviceClass::of_handler(name), expected, "{name}");
        }
    }

    #[test]
    fn handlers_of_one_line_are_told_apart() {
        let mut handlers = Handlers::default();
        for (irq, name, expected) in [
            (16, "ahci[0000:00:17.0]", DeviceClass::BlockDevice),
            (16, "eth0", DeviceClass::Network),
            (48, "i8042", DeviceClass::UserInput),
            (16, "eth0", DeviceClass::Network),
            (16, "", DeviceClass::Other),
        ] {
            assert_eq!(
                handlers.class(irq, name.as_bytes()),
                expected,
                "{irq} {name}"
            );
        }
    }
}
