//! Interrupts: hard, soft, tasklets, vectors of x86, between processors.

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
    /// 0: it was not for this handler.
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

/// What happens to a softirq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SoftirqStep {
    /// It is asked for.
    Raise,
    /// It begins.
    Entry,
    /// It ends.
    Exit,
}

/// A softirq.
#[derive(Clone, Debug)]
pub struct Softirq {
    /// What happens to it.
    pub step: SoftirqStep,
    /// Its vector; see [`crate::softirq_name`].
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
    /// Address of the tasklet. Not with older kernels.
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

/// Interrupts that x86 gives vectors of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vector {
    /// The processor's timer.
    LocalTimer,
    /// Another processor wants this one to schedule.
    Reschedule,
    /// Another processor has this one call a function.
    CallFunction,
    /// The same, of one function for one processor.
    CallFunctionSingle,
    /// Work that could not be done where it was asked for.
    IrqWork,
    /// From another processor, for the hypervisor or platform.
    PlatformIpi,
    /// Errors of the interrupt controller.
    ErrorApic,
    /// Spurious.
    SpuriousApic,
    /// The processor is hot.
    ThermalApic,
    /// A threshold of machine checks.
    ThresholdApic,
    /// A deferred machine check.
    DeferredErrorApic,
}

impl Vector {
    /// Its name as in the events.
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

/// The handler of a vector of x86 runs.
#[derive(Clone, Debug)]
pub struct VectorIrq {
    /// Which.
    pub vector: Vector,
    /// Beginning or end.
    pub edge: Edge,
    /// Its number.
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

/// What happens to an interrupt from one processor to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpiStep {
    /// It is sent.
    Raise,
    /// Its handler begins.
    Entry,
    /// Its handler ends.
    Exit,
}

/// An interrupt from one processor to another (ARM, and all since Linux 6.4 for sending).
#[derive(Clone, Debug)]
pub struct Ipi {
    /// What happens to it.
    pub step: IpiStep,
    /// What for.
    pub reason: Option<TextField>,
    /// The processor that it goes to, if it is one.
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
