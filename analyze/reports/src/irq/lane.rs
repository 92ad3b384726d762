//! Handlers on a CPU, which interrupt threads and one another.
//!
//! A handler ends before the interrupted one continues, so the running handlers form a stack. The
//! stack at the start of a chunk is unknown: ends without a start are kept, and replayed when the
//! chunk is joined with the previous one.

use serde::{Deserialize, Serialize};

use crate::irq::source::HandlerKind;

/// Maximum number of handlers on the stack of a CPU; if there are more, the ends of the first ones
/// are assumed lost.
pub(super) const DEPTH: usize = 16;

/// Number of softirq vectors: the bits of a word.
pub(super) const VECTORS: usize = 32;

/// Kind and number of a handler, as in its exit event.
pub(super) type Handler = (HandlerKind, i64);

/// A handler that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frame {
    pub(super) handler: Handler,
    /// Index of the source.
    pub(super) place: usize,
    pub(super) begin: i64,
    /// Nanoseconds of the range that hard interrupts took from the handler.
    pub(super) interrupted: u64,
    pub(super) raised: Raised,
}

/// Time at which a softirq was raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Raised {
    /// Unknown.
    #[default]
    No,
    At(i64),
    /// Before the chunk began, if it was raised then; otherwise at the given time, if any.
    Before(Option<i64>),
}

impl Raised {
    /// The state after another raise: the first one counts.
    fn raise(&mut self, time: i64) {
        match self {
            Raised::No => *self = Raised::At(time),
            Raised::Before(first) => {
                first.get_or_insert(time);
            }
            Raised::At(_) => {}
        }
    }

    /// Resolves the state with `before`, the state at the start of the chunk.
    pub(super) fn after(self, before: Raised) -> Raised {
        let (Raised::Before(Some(time)), mut raised) = (self, before) else {
            return if matches!(self, Raised::Before(None)) {
                before
            } else {
                self
            };
        };
        raised.raise(time);
        raised
    }

    /// The time, if no chunk precedes.
    pub(super) fn time(self) -> Option<i64> {
        match self {
            Raised::No => None,
            Raised::At(time) => Some(time),
            Raised::Before(time) => time,
        }
    }
}

/// A handler that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) frame: Frame,
    pub(super) end: i64,
}

/// The end of a handler that began before the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) handler: Handler,
    pub(super) end: i64,
    since: Since,
}

/// Activity above the handlers from before the chunk, since the last [`Head`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Since {
    interrupted: u64,
    /// Maximum number of handlers at a time.
    peak: usize,
}

/// Interrupts of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) count: u64,
    /// Nanoseconds of the range.
    pub(super) time: u64,
}

/// The state of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IrqCpu {
    heads: Vec<Head>,
    /// True if the running handlers are known: they are those on the stack.
    is_known: bool,
    since: Since,
    stack: Vec<Frame>,
    /// By vector: when a softirq that does not run yet was raised.
    pending: Pending,
    /// Ends without a known start.
    orphans: u64,
    pub(super) hard: Usage,
    pub(super) soft: Usage,
}

/// By softirq vector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pending([Raised; VECTORS]);

impl Default for Pending {
    fn default() -> Self {
        Pending([Raised::Before(None); VECTORS])
    }
}

impl IrqCpu {
    /// Events were lost: no handler is known to run, and no softirq to be raised.
    pub(super) fn lost(&mut self) {
        self.is_known = true;
        self.stack.clear();
        self.pending = Pending([Raised::No; VECTORS]);
    }

    /// A softirq is raised.
    pub(super) fn raise(&mut self, vector: usize, time: i64) {
        if let Some(pending) = self.pending.0.get_mut(vector) {
            pending.raise(time);
        }
    }

    /// A softirq begins. Returns the time of its raise.
    pub(super) fn take(&mut self, vector: usize) -> Raised {
        let pending = self.pending.0.get_mut(vector);
        pending.map_or(Raised::No, std::mem::take)
    }

    /// `more` handlers ran on top of the stack.
    fn reach(&mut self, more: usize) {
        let depth = self.stack.len() + more;
        self.since.peak = self.since.peak.max(depth);
        let gone = depth.saturating_sub(DEPTH).min(self.stack.len());
        self.stack.drain(..gone);
    }

    /// A handler begins.
    pub(super) fn enter(&mut self, frame: Frame) {
        self.reach(1);
        self.stack.push(frame);
    }

    /// Hard interrupts took `time` nanoseconds from the running handler.
    pub(super) fn interrupt(&mut self, time: u64) {
        let of = self.stack.last_mut().map(|frame| &mut frame.interrupted);
        *of.unwrap_or(&mut self.since.interrupted) += time;
    }

    /// A handler ends. `counts` is true if an end without a known start counts. Returns the handler
    /// if its start was seen.
    pub(super) fn exit(&mut self, handler: Handler, end: i64, counts: bool) -> Option<Ended> {
        // Most often the top of the stack ends.
        if let Some(frame) = self.stack.pop_if(|frame| frame.handler == handler) {
            return Some(Ended { frame, end });
        }
        self.exit_after(handler, end, counts, Since::default())
    }

    fn exit_after(
        &mut self,
        handler: Handler,
        end: i64,
        counts: bool,
        since: Since,
    ) -> Option<Ended> {
        self.reach(since.peak);
        let found = self
            .stack
            .iter()
            .rposition(|frame| frame.handler == handler);
        // The ends of handlers on top of it were lost; if it is not on the stack, the ends of all.
        let from = found.unwrap_or(0);
        let interrupted = self
            .stack
            .drain(from..)
            .fold((since.interrupted, None), |(sum, first), frame| {
                (sum + frame.interrupted, first.or(Some(frame)))
            });
        match interrupted {
            (interrupted, Some(frame)) if found.is_some() => {
                let frame = Frame {
                    interrupted,
                    ..frame
                };
                return Some(Ended { frame, end });
            }
            (interrupted, _) => self.orphan(handler, end, counts, interrupted),
        }
        None
    }

    /// The end of a handler that began before the chunk.
    fn orphan(&mut self, handler: Handler, end: i64, counts: bool, interrupted: u64) {
        let mut since = std::mem::take(&mut self.since);
        since.interrupted += interrupted;
        // Each such end removes at least one handler from before the chunk.
        if self.is_known || self.heads.len() >= DEPTH {
            self.is_known = true;
            self.orphans += u64::from(counts);
            return;
        }
        self.heads.push(Head {
            handler,
            end,
            since,
        });
    }

    /// Number of ends without a known start that count.
    pub(super) fn orphans(&self, counts: impl Fn(i64) -> bool) -> u64 {
        let heads = self.heads.iter().filter(|head| counts(head.end)).count();
        self.orphans + heads as u64
    }

    /// Number of running handlers.
    pub(super) fn running(&self) -> usize {
        self.stack.len()
    }

    /// Resolves the raise time of a later chunk's first softirq with this earlier state.
    pub(super) fn raised_before(&self, vector: usize, raised: Raised) -> Raised {
        let pending = self.pending.0.get(vector).copied();
        raised.after(pending.unwrap_or_default())
    }

    /// Translates the indices of sources.
    pub(super) fn moved(&mut self, places: &[usize]) {
        for frame in &mut self.stack {
            frame.place = places.get(frame.place).copied().unwrap_or(frame.place);
        }
    }

    /// Appends a later part; `counts` as in [`IrqCpu::exit`], by the time of the end. `ended`
    /// receives the handlers that end, and adds the time that they took from interrupted code.
    pub(super) fn merge(
        &mut self,
        mut later: IrqCpu,
        counts: impl Fn(i64) -> bool,
        mut ended: impl FnMut(&mut IrqCpu, Ended),
    ) {
        for frame in &mut later.stack {
            let (_, vector) = frame.handler;
            if let (Raised::Before(_), Ok(vector)) = (frame.raised, usize::try_from(vector)) {
                frame.raised = self.raised_before(vector, frame.raised);
            }
        }
        for head in &later.heads {
            if let Some(of) = self.exit_after(head.handler, head.end, counts(head.end), head.since)
            {
                ended(self, of);
            }
        }
        if later.is_known {
            self.is_known = true;
            self.stack.clear();
        } else {
            self.reach(later.since.peak);
            self.interrupt(later.since.interrupted);
        }
        self.stack.extend(later.stack);
        for (own, later) in self.pending.0.iter_mut().zip(later.pending.0) {
            *own = later.after(*own);
        }
        self.orphans += later.orphans;
        for (own, later) in [(&mut self.hard, later.hard), (&mut self.soft, later.soft)] {
            own.count += later.count;
            own.time += later.time;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum IrqStep {
        Enter(i64),
        Exit(i64),
        Raise(usize),
        Lost,
    }

    /// Start and end of a handler, the time of its raise, and the time that hard interrupts took
    /// from it.
    type Seen = (i64, i64, Option<i64>, u64);

    #[derive(Default)]
    struct IrqModel {
        lane: IrqCpu,
        /// Handlers that ended; an earlier chunk may contain their raise.
        seen: Vec<(i64, i64, usize, Raised, u64)>,
    }

    fn end(lane: &mut IrqCpu, seen: &mut Vec<(i64, i64, usize, Raised, u64)>, ended: Ended) {
        let Ended { frame, end } = ended;
        lane.interrupt((end - frame.begin) as u64);
        let vector = frame.handler.1 as usize;
        seen.push((frame.begin, end, vector, frame.raised, frame.interrupted));
    }

    impl IrqModel {
        fn run(steps: &[(i64, IrqStep)]) -> IrqModel {
            let mut machine = IrqModel::default();
            for &(time, step) in steps {
                machine.step(time, step);
            }
            machine
        }

        fn step(&mut self, time: i64, step: IrqStep) {
            match step {
                IrqStep::Enter(number) => {
                    let raised = self.lane.take(number as usize);
                    self.lane.enter(Frame {
                        handler: (HandlerKind::Irq, number),
                        place: 0,
                        begin: time,
                        interrupted: 0,
                        raised,
                    });
                }
                IrqStep::Exit(number) => {
                    if let Some(ended) = self.lane.exit((HandlerKind::Irq, number), time, true) {
                        end(&mut self.lane, &mut self.seen, ended);
                    }
                }
                IrqStep::Raise(vector) => self.lane.raise(vector, time),
                IrqStep::Lost => self.lane.lost(),
            }
        }

        fn merge(&mut self, later: IrqModel) {
            for mut seen in later.seen {
                seen.3 = self.lane.raised_before(seen.2, seen.3);
                self.seen.push(seen);
            }
            let seen = &mut self.seen;
            self.lane
                .merge(later.lane, |_| true, |lane, ended| end(lane, seen, ended));
        }

        fn seen(&self) -> (Vec<Seen>, u64, Vec<Frame>) {
            let seen = self.seen.iter();
            let mut seen: Vec<_> = seen
                .map(|seen| (seen.0, seen.1, seen.3.time(), seen.4))
                .collect();
            seen.sort_unstable();
            (seen, self.lane.orphans(|_| true), self.lane.stack.clone())
        }
    }

    fn steps() -> impl Strategy<Value = Vec<IrqStep>> {
        // Mostly starts, so that the stack fills up.
        let step = prop_oneof![
            12 => (0i64..20).prop_map(IrqStep::Enter),
            8 => (0i64..20).prop_map(IrqStep::Exit),
            4 => (0usize..20).prop_map(IrqStep::Raise),
            1 => Just(IrqStep::Lost),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn pieces_joined_in_any_order_are_the_whole(
            steps in steps(),
            cuts in prop::collection::vec(0usize..200, 0..12),
            order in prop::collection::vec(any::<prop::sample::Index>(), 12),
        ) {
            let steps: Vec<_> = steps.into_iter().enumerate().map(|(at, step)| (at as i64 * 3, step)).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(steps.len())).collect();
            cuts.sort_unstable();
            let ends = cuts.iter().copied().chain([steps.len()]);
            let mut pieces: Vec<IrqModel> = [0].into_iter().chain(cuts.iter().copied()).zip(ends)
                .map(|(from, to)| IrqModel::run(&steps[from..to]))
                .collect();
            for index in order {
                if pieces.len() > 1 {
                    let at = index.index(pieces.len() - 1);
                    let later = pieces.remove(at + 1);
                    pieces[at].merge(later);
                }
            }
            let mut whole = pieces.remove(0);
            pieces.into_iter().for_each(|later| whole.merge(later));
            prop_assert_eq!(whole.seen(), IrqModel::run(&steps).seen());
        }
    }

    #[test]
    fn handlers_nest() {
        use IrqStep::*;
        let steps = [
            Enter(3),
            Enter(5),
            Exit(5),
            Enter(6),
            Exit(6),
            Exit(3),
            Exit(9),
        ];
        let steps: Vec<_> = steps
            .into_iter()
            .enumerate()
            .map(|(at, step)| (at as i64 * 10, step))
            .collect();
        let (seen, orphans, running) = IrqModel::run(&steps).seen();
        assert_eq!(
            seen,
            [(0, 50, None, 20), (10, 20, None, 0), (30, 40, None, 0)]
        );
        assert_eq!((orphans, running.len()), (1, 0));
    }

    #[test]
    fn an_end_on_top_of_which_others_run_ends_those() {
        use IrqStep::*;
        let steps = [Enter(1), Enter(2), Exit(1), Exit(2)];
        let steps: Vec<_> = steps
            .into_iter()
            .enumerate()
            .map(|(at, step)| (at as i64, step))
            .collect();
        let (seen, orphans, _) = IrqModel::run(&steps).seen();
        assert_eq!((seen, orphans), (vec![(0, 2, None, 0)], 1));
    }
}
