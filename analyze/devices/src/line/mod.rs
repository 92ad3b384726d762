//! The timeline of a device: the commands that it executed at each time, and why it was idle.
//!
//! Commands do not complete in the order in which they were queued, and their records come even
//! later. The timeline needs them in the order of the device's time. A complete command waits in a
//! *run* (`run`) until all that were queued before it are complete as well (`release`: D. Couturier,
//! M. Dagenais: LTTng CLUST, 2015, section 3.3.2). Then the timeline is extended by pieces of time,
//! which are swept in parallel (`sweep`) and joined in order ([`Line::join`]).
//!
//! The rule needs a device whose commands are queued in the order of their calls. If one is found
//! late, the whole trace is read again, and all runs wait for its end. Runs that take too much memory
//! go to a file, which together with the pieces of time makes an external sort.

mod blocks;
mod causes;
mod placed;
mod release;
mod run;
mod sums;
mod sweep;

use serde::{Deserialize, Serialize};

pub(crate) use blocks::Blocks;
pub(crate) use causes::Cause;
pub(crate) use placed::Placed;
use release::Release;
pub(crate) use run::{Run, Spill};
pub(crate) use sums::{Gap, LineSums};
use sweep::Ends;
pub(crate) use sweep::{Part, Piece};

/// Commands in a piece of time: enough for a thread, and few enough that the allocator does not map
/// them anew for each piece.
const PIECE: usize = 3 << 14;

/// The timeline of a device, up to the time of the last piece.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Complete commands that cannot be placed yet.
    runs: Vec<Run>,
    release: Release,
    /// Commands that reach beyond the last piece.
    carry: Vec<Placed>,
    /// All commands that were queued before are in pieces.
    placed_until: u64,
    ends: Ends,
    pub(crate) sums: LineSums,
    /// All commands, if they are kept.
    pub(crate) kept: Vec<Placed>,
    /// A command was queued before the time up to which the timeline was known.
    pub(crate) is_late: bool,
}

impl Line {
    /// Adds complete commands.
    pub(crate) fn add(&mut self, run: Run) {
        self.is_late |= run.first() < self.placed_until;
        self.release.add(&run);
        self.runs.push(run);
    }

    /// Commands in memory that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.runs.iter().map(Run::in_memory).sum()
    }

    /// All calls that begin before `entry` have either ended in a complete command that was added, or
    /// in no command. Returns pieces of time that are complete.
    pub(crate) fn release(&mut self, entry: i64) -> Vec<Piece> {
        match self.release.until(entry) {
            Some(until) => self.cut(until),
            None => Vec::new(),
        }
    }

    /// Cuts all that was queued before a time into pieces.
    pub(crate) fn cut(&mut self, until: u64) -> Vec<Piece> {
        if until <= self.placed_until {
            return Vec::new();
        }
        let mut pieces = Vec::new();
        for cut in self.cuts(until) {
            let mut piece = Piece::new(self.placed_until, cut, std::mem::take(&mut self.carry));
            for run in &mut self.runs {
                if let Some(stretch) = run.take(cut) {
                    piece.add(stretch);
                }
            }
            self.carry = piece.reach_beyond();
            self.placed_until = cut;
            pieces.push(piece);
        }
        self.runs.retain(|run| !run.is_empty());
        pieces
    }

    /// Times at which pieces end, the last of which is `until`.
    fn cuts(&self, until: u64) -> Vec<u64> {
        let mut firsts: Vec<u64> = Vec::new();
        for run in &self.runs {
            firsts.extend(run.blocks_before(until));
        }
        firsts.sort_unstable();
        let step = PIECE / run::BLOCK;
        let inner = firsts.iter().copied().skip(step).step_by(step);
        let mut cuts: Vec<u64> = inner
            .filter(|cut| (self.placed_until + 1..until).contains(cut))
            .collect();
        cuts.push(until);
        cuts.dedup();
        cuts
    }

    /// Joins the next piece of time.
    pub(crate) fn join(&mut self, part: Part) {
        let Part { sums, ends, kept } = part;
        self.kept.extend(kept);
        if let Some(gap) = self.ends.gap_before(&ends) {
            self.sums.gap(gap);
        }
        self.sums.merge(sums);
        self.ends.extend(ends);
    }
}
