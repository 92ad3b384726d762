//! The state dump: the state of the machine when tracing begins.

use crate::events::block::Device;
use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;

/// A block device.
#[derive(Clone, Debug)]
pub struct StateDevice {
    dev: IntField,
    /// Name of the device.
    pub name: TextField,
}

impl StateDevice {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<StateDevice> {
        Some(StateDevice {
            dev: finder.int(&["dev"])?,
            name: finder.text(&["diskname"])?,
        })
    }

    /// Number of the device.
    pub fn device(&self, body: &mut Body<'_, '_>) -> Option<Device> {
        self.dev.get(body).map(|dev| Device(dev as u32))
    }
}

/// A network interface.
#[derive(Clone, Debug)]
pub struct StateInterface {
    /// Name of the interface.
    pub name: TextField,
    /// First IPv4 address; 0 without an address.
    pub ipv4: Option<IntField>,
}

impl StateInterface {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<StateInterface> {
        Some(StateInterface {
            name: finder.text(&["name"])?,
            ipv4: finder.int(&["address_ipv4"]),
        })
    }
}

/// An interrupt.
#[derive(Clone, Debug)]
pub struct StateInterrupt {
    /// Number of the interrupt.
    pub irq: IntField,
    /// Name of the controller.
    pub controller: Option<TextField>,
    /// Name of the handler.
    pub handler: Option<TextField>,
    /// Thread of the handler, if it has a thread.
    pub tid: Option<IntField>,
}

impl StateInterrupt {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Box<StateInterrupt>> {
        Some(Box::new(StateInterrupt {
            irq: finder.int(&["irq"])?,
            controller: finder.text(&["name"]),
            handler: finder.text(&["action"]),
            tid: finder.int(&["tid"]),
        }))
    }
}

/// A CPU.
#[derive(Clone, Debug)]
pub struct StateCpu {
    /// Number of the CPU.
    pub cpu: IntField,
    /// Physical package (socket) of the CPU.
    pub package: Option<IntField>,
    /// Core in the package; CPUs of the same core share it.
    pub core: Option<IntField>,
    /// Number of cores in the package.
    pub cores: Option<IntField>,
    /// Model name of the CPU.
    pub model: Option<TextField>,
}

impl StateCpu {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Box<StateCpu>> {
        Some(Box::new(StateCpu {
            cpu: finder.int(&["cpu_id"])?,
            package: finder.int(&["physical_id"]),
            core: finder.int(&["core_id"]),
            cores: finder.int(&["cores"]),
            model: finder.text(&["model_name"]),
        }))
    }
}

/// The state dump begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateDump(pub crate::events::Edge);
