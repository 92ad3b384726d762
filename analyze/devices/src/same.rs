//! Which devices of several processes are the same.

use std::collections::BTreeMap;

use tracebraid_clocks::Machines;

use crate::item::Handle;
use crate::processes::Processes;
use crate::state::{Device, State};

/// Equal for the same device in two processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    machine: Option<usize>,
    platform: String,
    name: String,
    /// UUID and address on the bus; empty if unknown.
    identity: String,
}

/// Devices that share the timeline of another: parts of a device, and devices that other processes
/// use as well. The latter have equal platforms and names, and equal UUIDs and addresses where these
/// are known. These do not identify a device if a process has several such devices.
pub(crate) fn shared(
    state: &State,
    processes: &Processes,
    machines: &Machines,
) -> BTreeMap<Handle, Handle> {
    let mut of_identity: BTreeMap<Identity, Vec<Handle>> = BTreeMap::new();
    for (handle, device) in &state.devices {
        if device.properties.parent == 0 && !device.name.is_empty() {
            let identity = Identity {
                machine: machines.of_trace(processes.trace(handle.process) as usize),
                platform: device.properties.platform.clone(),
                name: device.name.clone(),
                identity: device.properties.identity.clone(),
            };
            of_identity.entry(identity).or_default().push(*handle);
        }
    }
    let mut shared = BTreeMap::new();
    for handles in of_identity.values() {
        let is_one_each = handles
            .windows(2)
            .all(|pair| pair[0].process != pair[1].process);
        if let Some((first, others)) = handles.split_first().filter(|_| is_one_each) {
            shared.extend(others.iter().map(|other| (*other, *first)));
        }
    }
    for handle in state.devices.keys() {
        let whole = whole(&state.devices, *handle);
        if whole != *handle {
            let line = shared.get(&whole).copied().unwrap_or(whole);
            shared.insert(*handle, line);
        }
    }
    shared
}

/// The device of which a device is a part, or a part of a part.
fn whole(devices: &BTreeMap<Handle, Device>, part: Handle) -> Handle {
    let mut whole = part;
    // A broken trace might have a circle.
    for _ in 0..16 {
        match devices.get(&whole) {
            Some(device) if device.properties.parent != 0 => {
                whole.handle = device.properties.parent
            }
            _ => break,
        }
    }
    whole
}
