//! Parts of a thread's state that a slice has determined, to be installed into the thread's cell.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, LaterCalls, Losses};

use crate::slice_cell::Known;
use crate::thread_cell::{ThreadCell, ThreadState};

/// The parts of a thread's state that a slice has determined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellNews<C> {
    pub(crate) cell: ThreadCell<C>,
    pub(crate) known: Known,
}

impl<C: Copy> CellNews<C> {
    /// Translates the causes of remembered wake-ups.
    pub fn map_causes(&mut self, map: impl Fn(C) -> C) {
        self.cell.early.map_causes(&map);
        if let Some(woken) = &mut self.cell.woken {
            woken.cause = map(woken.cause);
        }
    }

    /// Converts loss counts, which start at the beginning of the slice, by adding the losses in
    /// `before`.
    fn count_losses(&mut self, trace: u32, before: &Losses) {
        let key = |cpu: u32| CpuKey { trace, cpu };
        self.cell.losses += match self.cell.state {
            ThreadState::Running(cpu) => before.of_cpu(key(cpu.into())),
            _ => before.of_trace(key(0)),
        };
    }
}

impl<C: Copy> ThreadCell<C> {
    /// Swaps the cell with that of a thread that was created in the slice. `before` contains the
    /// losses before the slice.
    pub fn exchange(&mut self, news: &mut CellNews<C>, trace: u32, before: &Losses) {
        news.count_losses(trace, before);
        std::mem::swap(self, &mut news.cell);
    }

    /// Replaces the parts of the cell that the slice knows. `before` contains the losses before the
    /// slice.
    pub fn install(&mut self, mut news: CellNews<C>, trace: u32, before: &Losses) {
        news.count_losses(trace, before);
        let CellNews { cell, known } = news;
        if known.is_new {
            *self = cell;
            return;
        }
        if known.state {
            (self.state, self.since, self.losses) = (cell.state, cell.since, cell.losses);
            (self.early, self.woken, self.sight) = (cell.early, cell.woken, cell.sight);
            self.in_disk_sleep = cell.in_disk_sleep;
        }
        if known.calls {
            // Exits that met no open call are kept as items, which are replayed.
            self.calls.append(LaterCalls::without_missed(&cell.calls));
        }
        let set = |is_known: bool, own: &mut bool, new: bool| {
            if is_known {
                *own = new;
            }
        };
        set(known.has_called, &mut self.has_called, cell.has_called);
        set(known.dying, &mut self.is_dying, cell.is_dying);
        set(known.requested, &mut self.requested, cell.requested);
        set(known.lingers, &mut self.lingers, cell.lingers);
        if known.called {
            self.called = cell.called;
        }
        if known.waited_for {
            self.waited_for = cell.waited_for;
        }
    }
}
