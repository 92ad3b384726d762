//! Classes of devices, from the names that drivers give to their interrupt handlers.

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
    /// A keyboard, mouse or touchpad.
    UserInput,
    /// Another device, or a device whose handler has no name.
    #[default]
    Other,
}

/// Prefixes and substrings of handler names, by class; the first matching class applies.
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
    /// Class for the name of an interrupt handler (`action->name` in the kernel).
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

    /// Reason of a wait that is ended by an interrupt of the device.
    pub fn reason(self) -> WaitReason {
        match self {
            DeviceClass::Network => WaitReason::Network,
            DeviceClass::BlockDevice => WaitReason::BlockDevice,
            DeviceClass::UserInput => WaitReason::UserInput,
            DeviceClass::Other => WaitReason::Device,
        }
    }
}

/// Size of the cache of handlers.
const REMEMBERED: usize = 32;

/// Cache of the classes of recent handlers, by interrupt. The name is compared for each event
/// record, since several handlers may share an interrupt line: the class is that of the handler
/// that ran.
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

    /// Class of the device whose handler begins with `step`; [`DeviceClass::Other`] for other
    /// steps.
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
