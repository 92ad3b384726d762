//! Interrupts: hard interrupts, softirqs, tasklets, x86 vectors, and interrupts between processors.

use crate::events::Edge;
use crate::field::{IntField, TextField};
use crate::finder::Finder;

/// The handler of a hard interrupt begins.
#[derive(Clone, Debug)]
pub struct IrqEntry {
    /// Number of the interrupt.
    pub irq: IntField,
    /// Name of the handler.
    pub name: Option<TextField>,
}

/// The handler of a hard interrupt ends.
#[derive(Clone, Debug)]
pub struct IrqExit {
    /// Number of the interrupt.
    pub irq: IntField,
    /// 0 if the interrupt was not for this handler.
    pub result: Option<IntField>,
}

impl IrqEntry {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<IrqEntry> {
        Some(IrqEntry {
            irq: finder.int(&["irq"])?,
            name: finder.text(&["name"]),
        })
    }
}

impl IrqExit {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<IrqExit> {
        Some(IrqExit {
            irq: finder.int(&["irq"])?,
            result: finder.int(&["ret"]),
        })
    }
}

/// Step of a softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SoftirqStep {
    /// The softirq is raised.
    Raise,
    /// The handler begins.
    Entry,
    /// The handler ends.
    Exit,
}

/// A softirq.
#[derive(Clone, Debug)]
pub struct Softirq {
    /// Step of the softirq.
    pub step: SoftirqStep,
    /// Vector of the softirq; see [`crate::softirq_name`].
    pub vector: IntField,
}

impl Softirq {
    pub(crate) fn find(finder: &Finder<'_>, step: SoftirqStep) -> Option<Softirq> {
        let vector = finder.int(&["vec"])?;
        Some(Softirq { step, vector })
    }
}

/// A tasklet runs.
#[derive(Clone, Debug)]
pub struct Tasklet {
    /// Beginning or end.
    pub edge: Edge,
    /// Address of the function.
    pub function: Option<IntField>,
    /// Address of the tasklet. Absent on older kernels.
    pub tasklet: Option<IntField>,
}

impl Tasklet {
    pub(crate) fn find(finder: &Finder<'_>, edge: Edge) -> Option<Tasklet> {
        Some(Tasklet {
            edge,
            function: finder.int(&["func", "function", "data"]),
            tasklet: finder.int(&["tasklet"]),
        })
    }
}

/// Interrupts with their own x86 vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vector {
    /// The timer of the processor.
    LocalTimer,
    /// Another processor requests scheduling.
    Reschedule,
    /// Another processor requests calls of functions.
    CallFunction,
    /// Another processor requests a call of a single function on this processor only.
    CallFunctionSingle,
    /// Work that could not be done in its original context.
    IrqWork,
    /// An interrupt from another processor, for the hypervisor or platform.
    PlatformIpi,
    /// An error of the interrupt controller.
    ErrorApic,
    /// A spurious interrupt.
    SpuriousApic,
    /// The processor is too hot.
    ThermalApic,
    /// A threshold of machine checks is reached.
    ThresholdApic,
    /// A deferred machine check.
    DeferredErrorApic,
}

impl Vector {
    /// Name as in event names.
    pub fn name(self) -> &'static str {
        match self {
            Vector::LocalTimer => "local_timer",
            Vector::Reschedule => "reschedule",
            Vector::CallFunction => "call_function",
            Vector::CallFunctionSingle => "call_function_single",
            Vector::IrqWork => "irq_work",
            Vector::PlatformIpi => "x86_platform_ipi",
            Vector::ErrorApic => "error_apic",
            Vector::SpuriousApic => "spurious_apic",
            Vector::ThermalApic => "thermal_apic",
            Vector::ThresholdApic => "threshold_apic",
            Vector::DeferredErrorApic => "deferred_error_apic",
        }
    }
}

/// The handler of an x86 vector.
#[derive(Clone, Debug)]
pub struct VectorIrq {
    /// The interrupt.
    pub vector: Vector,
    /// Beginning or end.
    pub edge: Edge,
    /// Number of the vector.
    pub number: Option<IntField>,
}

impl VectorIrq {
    pub(crate) fn find(finder: &Finder<'_>, vector: Vector, edge: Edge) -> Option<VectorIrq> {
        let number = finder.int(&["vector"]);
        Some(VectorIrq {
            vector,
            edge,
            number,
        })
    }
}

/// Step of an interrupt between processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpiStep {
    /// The interrupt is sent.
    Raise,
    /// The handler begins.
    Entry,
    /// The handler ends.
    Exit,
}

/// An interrupt between processors. Recorded on ARM, and for sending on all machines since Linux
/// 6.4.
#[derive(Clone, Debug)]
pub struct Ipi {
    /// Step of the interrupt.
    pub step: IpiStep,
    /// Purpose of the interrupt.
    pub reason: Option<TextField>,
    /// Target processor, if there is a single one.
    pub cpu: Option<IntField>,
}

impl Ipi {
    pub(crate) fn find(finder: &Finder<'_>, step: IpiStep) -> Option<Ipi> {
        Some(Ipi {
            step,
            reason: finder.text(&["reason"]),
            cpu: finder.int(&["cpu"]),
        })
    }
}
