//! Who wakes: the interrupt or softirq that is active on the CPU, else the thread that runs there.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::kernel::CpuKey;

/// What may be active on a CPU besides its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Active {
    /// What was when the chunk began.
    #[default]
    Before,
    Nothing,
    /// The interrupt of that number, or the softirq of that vector.
    Number(u32),
}

impl Active {
    /// With what was active before.
    pub(super) fn after(self, earlier: Active) -> Active {
        match self {
            Active::Before => earlier,
            own => own,
        }
    }
}

/// The thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Runs {
    /// Whoever ran when the chunk began: what waits at that step tells it.
    Untold(u64),
    Unknown,
    /// The thread at that place.
    Thread(usize),
}

/// What is known of who wakes a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waker {
    pub(super) cpu: CpuKey,
    pub(super) irq: Active,
    pub(super) softirq: Active,
    pub(super) runs: Runs,
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum By {
    /// The thread at that place; the idle thread is one.
    Thread(usize),
    Irq(u32),
    Softirq(u32),
    Unknown,
}

impl Waker {
    /// Who it is, if that is known by now.
    #[inline]
    pub(super) fn settled(&self) -> Option<By> {
        match (self.irq, self.softirq, self.runs) {
            (Active::Number(irq), _, _) => Some(By::Irq(irq)),
            (Active::Before, _, _) => None,
            (Active::Nothing, Active::Number(vector), _) => Some(By::Softirq(vector)),
            (Active::Nothing, Active::Before, _) => None,
            (_, _, Runs::Untold(_)) => None,
            (_, _, Runs::Unknown) => Some(By::Unknown),
            (_, _, Runs::Thread(place)) => Some(By::Thread(place)),
        }
    }

    /// Who it is where nothing more will be known: no interrupt is active when a trace begins.
    pub(super) fn known(&self) -> By {
        let runs = match self.runs {
            Runs::Untold(_) => Runs::Unknown,
            runs => runs,
        };
        let whole = Waker {
            irq: self.irq.after(Active::Nothing),
            softirq: self.softirq.after(Active::Nothing),
            runs,
            ..*self
        };
        whole.settled().unwrap_or(By::Unknown)
    }
}

/// What the chunks before tell of those who wake.
pub(super) struct Told<'a> {
    /// By place in the later chunk: place in both.
    pub(super) places: &'a [usize],
    /// Steps in the earlier chunks.
    pub(super) steps: u64,
    /// Who ran, by step in the later chunk.
    pub(super) runs: HashMap<u64, Option<usize>>,
    /// What was active at the end of the earlier chunks, in the order of CPUs.
    pub(super) active: Vec<(CpuKey, Active, Active)>,
}

impl Told<'_> {
    /// The place in both.
    pub(super) fn place(&self, place: usize) -> usize {
        self.places.get(place).copied().unwrap_or(place)
    }

    /// The same with what is known now.
    pub(super) fn by(&self, by: By) -> By {
        match by {
            By::Thread(place) => By::Thread(self.place(place)),
            by => by,
        }
    }

    /// The same with what is known now.
    pub(super) fn waker(&self, waker: Waker) -> Waker {
        let found = self.active.binary_search_by_key(&waker.cpu, |active| active.0);
        let found = found.ok().and_then(|at| self.active.get(at));
        let (irq, softirq) = found.map_or(Default::default(), |&(_, irq, softirq)| (irq, softirq));
        let runs = match waker.runs {
            Runs::Untold(step) => match self.runs.get(&step) {
                None => Runs::Untold(step + self.steps),
                Some(None) => Runs::Unknown,
                Some(Some(place)) => Runs::Thread(*place),
            },
            Runs::Thread(place) => Runs::Thread(self.place(place)),
            Runs::Unknown => Runs::Unknown,
        };
        Waker {
            cpu: waker.cpu,
            irq: waker.irq.after(irq),
            softirq: waker.softirq.after(softirq),
            runs,
        }
    }
}
