//! The end of a recording.

use super::{AT_ONCE, BUSY, Drain};
use crate::end_mark::EndReason;
use crate::error::RecordError;
use crate::machine::now;
use crate::recorder::Progress;

impl Drain<'_> {
    /// Ends the trace with the given reason, unless a limit is the reason; returns the totals, and
    /// by CPU the number of lost events.
    pub(crate) fn finish(
        mut self,
        lost: &[u32],
        given: EndReason,
    ) -> Result<(Progress, Vec<u64>), RecordError> {
        self.rotations.is_over = true;
        // BPF programs that were running when they were detached have written their last records
        // after this pause.
        std::thread::sleep(BUSY);
        while self.take_all()? == AT_ONCE {
            self.write(Some(0))?;
        }
        self.take_samples();
        if let (Some(meanings), Some(lane)) = (self.meanings, self.lanes.first()) {
            meanings.rest(&mut lane.borrow_mut(), |number| {
                self.processes.initial(number)
            });
        }
        // Calls in progress are recorded if they have taken long enough.
        let newest = self.lanes.iter().map(|lane| lane.borrow().newest()).max();
        let from = match self.undecided.is_kept {
            true => newest.unwrap_or(0).saturating_sub(self.undecided.hold_ns),
            false => 0,
        };
        self.lanes
            .iter()
            .for_each(|lane| lane.borrow_mut().leave_out(from, u64::MAX));
        self.write(None)?;
        let mut all = Vec::new();
        let lost = self.unwritten.iter().zip(lost);
        for (cpu, (lane, (unwritten, &lost))) in self.lanes.iter().zip(lost).enumerate() {
            let lost = match self.full_since {
                None => lane.borrow_mut().lost_at_end(lost),
                Some(_) => lane.borrow().lost() + unwritten,
            };
            self.output.lost(cpu, lost)?;
            all.push(lost);
        }
        let reason = match self.full_since {
            Some(_) if self.reserve.is_given() => EndReason::DiskFull,
            Some(_) => EndReason::Limit,
            None => given,
        };
        let end = self.full_since.unwrap_or_else(now);
        Ok((self.output.finish(end, reason)?, all))
    }
}
