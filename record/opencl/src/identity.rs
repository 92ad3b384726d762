//! Identity of a device: UUID and PCI address, which, unlike handles, are the same in all processes.
//!
//! Devices without an extension answer its queries with an error, which stays within this module.
//!
//! Sources: cl_khr_device_uuid, cl_khr_pci_bus_info, cl_amd_device_attribute_query,
//! cl_nv_device_attribute_query; the layout of NVIDIA's slot is that which hashcat assumes.

#![allow(unsafe_code)]

use core::fmt::Write;

use crate::next::own;
use crate::queries::{Text, known};

const UUID_KHR: u32 = 0x106A;
const PCI_BUS_INFO_KHR: u32 = 0x410F;
const PCI_BUS_ID_NV: u32 = 0x4008;
const PCI_SLOT_ID_NV: u32 = 0x4009;
const PCI_DOMAIN_ID_NV: u32 = 0x400A;
const TOPOLOGY_AMD: u32 = 0x4037;
/// The type of a topology with an address on PCI Express.
const TOPOLOGY_PCIE_AMD: [u8; 4] = [1, 0, 0, 0];

/// The UUID of a device; empty if it has none.
pub(crate) fn uuid(device: usize) -> Text {
    let mut text = Text::new();
    let query = own!(clGetDeviceInfo);
    // SAFETY: the device exists, and its UUID has 16 bytes.
    let bytes: Option<[u8; 16]> = unsafe { known(query, device, UUID_KHR) };
    for (at, byte) in bytes.iter().flatten().enumerate() {
        let separator = if matches!(at, 4 | 6 | 8 | 10) {
            "-"
        } else {
            ""
        };
        let _ = write!(text, "{separator}{byte:02x}");
    }
    text
}

/// The address of a device on its bus, as `lspci -D` prints it; empty if it is unknown.
pub(crate) fn pci(device: usize) -> Text {
    let mut text = Text::new();
    if let Some([domain, bus, slot, function]) = address(device) {
        let _ = write!(text, "{domain:04x}:{bus:02x}:{slot:02x}.{function:x}");
    }
    text
}

/// Domain, bus, device and function.
fn address(device: usize) -> Option<[u32; 4]> {
    let query = own!(clGetDeviceInfo);
    // SAFETY: the device exists; properties have these types.
    unsafe {
        if let Some(address) = known(query, device, PCI_BUS_INFO_KHR) {
            return Some(address);
        }
        if let Some(bus) = known(query, device, PCI_BUS_ID_NV) {
            let slot: u32 = known(query, device, PCI_SLOT_ID_NV)?;
            let domain = known(query, device, PCI_DOMAIN_ID_NV).unwrap_or(0);
            return Some([domain, bus, slot >> 3, slot & 7]);
        }
        of_topology(known(query, device, TOPOLOGY_AMD)?)
    }
}

/// The address in a topology of AMD, whose last three bytes are bus, device and function.
fn of_topology(topology: [u8; 24]) -> Option<[u32; 4]> {
    let [.., bus, slot, function] = topology.map(u32::from);
    topology
        .starts_with(&TOPOLOGY_PCIE_AMD)
        .then_some([0, bus, slot, function])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_have_addresses() {
        let mut topology = [0; 24];
        topology[21..].copy_from_slice(&[0x0c, 2, 1]);
        assert_eq!(of_topology(topology), None);
        topology[0] = 1;
        assert_eq!(of_topology(topology), Some([0, 12, 2, 1]));
    }
}
