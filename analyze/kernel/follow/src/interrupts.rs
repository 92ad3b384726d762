//! Interruptions of the thread that runs on a CPU: the single rule by which reports attribute
//! events on that CPU.
//!
//! The innermost activity counts: a timer function, else a hard interrupt, else a softirq, else the
//! thread. A hard interrupt or softirq that begins hides a timer function, and its end also ends
//! the timer function. Nested handlers are not distinguished: the end of the inner handler ends
//! all.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::events::Edge;
use tracebraid_kernel_model::events::irq::{IpiStep, SoftirqStep, Vector};
use tracebraid_kernel_model::{Body, KernelEvent, softirq_name};

/// An activity that takes the CPU from its thread without a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Interrupt {
    /// The handler of the hard interrupt with this number.
    Irq(u16),
    /// The softirq with this vector; see [`tracebraid_kernel_model::softirq_name`].
    Softirq(u8),
    /// An interrupt of the processor: index into [`VECTORS`].
    Vector(u8),
}

/// Interrupts of the processor, in the order of [`Interrupt::Vector`].
pub const VECTORS: [Vector; 11] = [
    Vector::LocalTimer,
    Vector::Reschedule,
    Vector::CallFunction,
    Vector::CallFunctionSingle,
    Vector::IrqWork,
    Vector::PlatformIpi,
    Vector::ErrorApic,
    Vector::SpuriousApic,
    Vector::ThermalApic,
    Vector::ThresholdApic,
    Vector::DeferredErrorApic,
];

/// Stands for interrupts between processors on machines other than x86.
const RESCHEDULE: Interrupt = Interrupt::Vector(1);

impl Interrupt {
    /// The interrupt with this vector.
    fn of_vector(vector: Vector) -> Interrupt {
        let place = VECTORS.iter().position(|other| *other == vector);
        place.map_or(RESCHEDULE, |place| Interrupt::Vector(place as u8))
    }

    /// The vector of an interrupt of the processor.
    pub fn vector(self) -> Option<Vector> {
        match self {
            Interrupt::Vector(place) => VECTORS.get(usize::from(place)).copied(),
            _ => None,
        }
    }

    /// Name independent of the trace: `irq 37`, `softirq NET_RX`, `RESCHEDULE`.
    pub fn label(self) -> String {
        match self {
            Interrupt::Irq(number) => format!("irq {number}"),
            Interrupt::Softirq(vector) => match softirq_name(i64::from(vector)) {
                Some(name) => format!("softirq {name}"),
                None => format!("softirq {vector}"),
            },
            Interrupt::Vector(_) => self.vector().map_or("?", Vector::name).to_owned(),
        }
    }
}

/// Kind of timer that a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimerKind {
    /// High-resolution timers.
    High,
    /// The timer wheel.
    Wheel,
    /// The local APIC timer interrupt, outside of the timer functions that the trace records.
    Local,
}

impl TimerKind {
    /// Name in tables and SQL.
    pub fn name(self) -> &'static str {
        match self {
            TimerKind::High => "hrtimer",
            TimerKind::Wheel => "timer",
            TimerKind::Local => "local timer",
        }
    }
}

/// The beginning or end of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterruptStep {
    /// A hard interrupt begins.
    Hard(Interrupt),
    /// A hard interrupt ends.
    HardEnd,
    /// The softirq with this vector begins.
    Softirq(u8),
    /// A softirq ends.
    SoftirqEnd,
    /// A timer function begins.
    Timer(TimerKind),
    /// A timer function ends.
    TimerEnd,
}

impl InterruptStep {
    /// True if an interruption begins.
    pub fn begins(self) -> bool {
        matches!(
            self,
            InterruptStep::Hard(_) | InterruptStep::Softirq(_) | InterruptStep::Timer(_)
        )
    }

    /// True if events of this class may be steps.
    pub fn is_told_by(event: &KernelEvent) -> bool {
        use KernelEvent::*;
        match event {
            IrqEntry(_) | IrqExit(_) | Vector(_) => true,
            Softirq(softirq) => softirq.step != SoftirqStep::Raise,
            Ipi(ipi) => ipi.step != IpiStep::Raise,
            Hrtimer(timer) => timer.step.expires().is_some(),
            Timer(timer) => timer.step.expires().is_some(),
            _ => false,
        }
    }

    /// The step of an event, if it is a step.
    #[inline(always)]
    pub fn of(event: &KernelEvent, body: &mut Body<'_, '_>) -> Option<InterruptStep> {
        let timer = |expires: Option<bool>, kind| {
            expires.map(|begins| match begins {
                true => InterruptStep::Timer(kind),
                false => InterruptStep::TimerEnd,
            })
        };
        match event {
            KernelEvent::IrqEntry(entry) => {
                let number = entry.irq.get(body).unwrap_or(0);
                let number = u16::try_from(number).unwrap_or(u16::MAX);
                Some(InterruptStep::Hard(Interrupt::Irq(number)))
            }
            KernelEvent::IrqExit(_) => Some(InterruptStep::HardEnd),
            KernelEvent::Softirq(softirq) => match softirq.step {
                SoftirqStep::Entry => {
                    let vector = softirq.vector.get(body).unwrap_or(0);
                    Some(InterruptStep::Softirq(
                        u8::try_from(vector).unwrap_or(u8::MAX),
                    ))
                }
                SoftirqStep::Exit => Some(InterruptStep::SoftirqEnd),
                SoftirqStep::Raise => None,
            },
            KernelEvent::Vector(vector) => Some(match vector.edge {
                Edge::Begin => InterruptStep::Hard(Interrupt::of_vector(vector.vector)),
                Edge::End => InterruptStep::HardEnd,
            }),
            KernelEvent::Ipi(ipi) => match ipi.step {
                IpiStep::Entry => Some(InterruptStep::Hard(RESCHEDULE)),
                IpiStep::Exit => Some(InterruptStep::HardEnd),
                IpiStep::Raise => None,
            },
            KernelEvent::Hrtimer(of) => timer(of.step.expires(), TimerKind::High),
            KernelEvent::Timer(of) => timer(of.step.expires(), TimerKind::Wheel),
            _ => None,
        }
    }
}

/// Active interruptions of a CPU. No interruption is active after a switch, since interrupts do not
/// switch threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    hard: Option<Interrupt>,
    softirq: Option<u8>,
    timer: Option<TimerKind>,
}

/// The innermost interruption of a CPU's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Innermost {
    /// A timer function.
    Timer(TimerKind),
    /// An interrupt.
    Interrupt(Interrupt),
}

impl Innermost {
    /// Name of the timer or the interrupt.
    pub fn label(self) -> String {
        match self {
            Innermost::Timer(kind) => kind.name().to_owned(),
            Innermost::Interrupt(interrupt) => interrupt.label(),
        }
    }
}

impl Interrupts {
    /// Applies the beginning or end of an interruption.
    #[inline(always)]
    pub fn step(&mut self, step: InterruptStep) {
        match step {
            InterruptStep::Hard(hard) => {
                let is_timer = hard.vector() == Some(Vector::LocalTimer);
                (self.hard, self.timer) = (Some(hard), is_timer.then_some(TimerKind::Local));
            }
            InterruptStep::HardEnd => (self.hard, self.timer) = (None, None),
            // A softirq begins only while no hard interrupt is active.
            InterruptStep::Softirq(vector) => {
                *self = Interrupts {
                    softirq: Some(vector),
                    ..Interrupts::default()
                }
            }
            InterruptStep::SoftirqEnd => *self = Interrupts::default(),
            InterruptStep::Timer(kind) => self.timer = Some(kind),
            InterruptStep::TimerEnd => self.timer = None,
        }
    }

    /// The innermost active interrupt.
    #[inline(always)]
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.hard.or(self.softirq.map(Interrupt::Softirq))
    }

    /// The innermost interruption; `None` if the thread is running.
    #[inline(always)]
    pub fn innermost(&self) -> Option<Innermost> {
        let timer = self.timer.map(Innermost::Timer);
        timer.or_else(|| self.interrupt().map(Innermost::Interrupt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_counts() {
        let mut interrupts = Interrupts::default();
        let mut after = |step| {
            interrupts.step(step);
            interrupts.innermost()
        };
        use InterruptStep::*;
        let softirq = Some(Innermost::Interrupt(Interrupt::Softirq(1)));
        let irq = Interrupt::Irq(37);
        let wheel = Some(Innermost::Timer(TimerKind::Wheel));
        assert_eq!(after(SoftirqEnd), None);
        assert_eq!(after(Softirq(1)), softirq);
        assert_eq!(after(Timer(TimerKind::Wheel)), wheel);
        assert_eq!(after(Hard(irq)), Some(Innermost::Interrupt(irq)));
        assert_eq!(after(HardEnd), softirq);
        assert_eq!(after(Timer(TimerKind::Wheel)), wheel);
        assert_eq!(after(TimerEnd), softirq);
        assert_eq!(after(SoftirqEnd), None);
        let local = Innermost::Timer(TimerKind::Local);
        assert_eq!(
            after(Hard(Interrupt::of_vector(Vector::LocalTimer))),
            Some(local)
        );
        assert_eq!(
            after(Timer(TimerKind::High)),
            Some(Innermost::Timer(TimerKind::High))
        );
        assert_eq!(
            after(TimerEnd),
            Some(Innermost::Interrupt(Interrupt::of_vector(
                Vector::LocalTimer
            )))
        );
        assert_eq!(after(HardEnd), None);
    }

    #[test]
    fn vectors_keep_their_places() {
        for (place, vector) in VECTORS.into_iter().enumerate() {
            assert_eq!(Interrupt::of_vector(vector), Interrupt::Vector(place as u8));
            assert_eq!(Interrupt::Vector(place as u8).vector(), Some(vector));
        }
    }
}
