//! The state dump: what is there when tracing begins.

use crate::events::block::Device;
use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;

/// A block device.
#[derive(Clone, Debug)]
pub struct StateDevice {
    dev: IntField,
    /// Its name.
    pub name: TextField,
}

impl StateDevice {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<StateDevice> {
        Some(StateDevice {
            dev: finder.int(&["dev"])?,
            name: finder.text(&["diskname"])?,
        })
    }

    /// Its number.
    pub fn device(&self, body: &mut Body<'_, '_>) -> Option<Device> {
        self.dev.get(body).map(|dev| Device(dev as u32))
    }
}

/// A network interface.
#[derive(Clone, Debug)]
pub struct StateInterface {
    /// Its name.
    pub name: TextField,
    /// Its first address; 0 if it has none.
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
    /// Its number.
    pub irq: IntField,
    /// Name of the controller.
    pub controller: Option<TextField>,
    /// Name of the handler.
    pub handler: Option<TextField>,
    /// Thread of the handler, if it has one.
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
    /// Its number.
    pub cpu: IntField,
    /// Its socket.
    pub package: Option<IntField>,
    /// Its core in the socket: those of one core share it.
    pub core: Option<IntField>,
    /// Cores in the socket.
    pub cores: Option<IntField>,
    /// What it is.
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

/// The dump begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateDump(pub crate::events::Edge);
