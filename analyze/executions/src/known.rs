//! What is known of the traces up to a time, which executions are made of: by one thread at a time it grows, and many read it.

use tracebraid_graph::{Growing, PlayedPart, Question};

use crate::counts::CountLines;
use crate::execution::{Kernels, Whose};
use crate::grid;
use crate::pass::Pass;
use crate::sampled::Sampling;
use crate::turns::Turns;

/// What is known up to a time.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) growing: Growing,
    pub(crate) kernels: Kernels,
    pub(crate) sampling: Sampling,
    /// When threads turned to executions.
    pub(crate) turns: Turns,
    /// What was counted.
    pub(crate) lines: CountLines,
    /// What was before is dropped.
    pub(crate) cut: i64,
    pub(crate) limits: Limits,
}

/// What bounds the memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How long behind its end an execution is made at the latest, in nanoseconds.
    pub(crate) behind: u64,
    /// Length of the intervals of time at whose beginnings executions are made that must be made, in nanoseconds.
    pub(crate) interval: i64,
    /// How much may happen in an execution.
    pub(crate) most: u64,
    /// Behind this time nothing is known.
    pub(crate) known_until: i64,
}

impl Limits {
    /// When an execution that ends then is made at the latest; none if that is behind all that is known.
    pub(crate) fn deadline(&self, end: i64) -> Option<i64> {
        let deadline = end.checked_add_unsigned(self.behind)?;
        let deadline = grid::next_begin(deadline, self.interval)?;
        (deadline <= self.known_until).then_some(deadline)
    }
}

impl Known {
    /// Of traces of which nothing was played yet.
    pub(crate) fn new(
        pass: &Pass,
        (kernels, sampling): (Kernels, Sampling),
        behind: u64,
        most: u64,
    ) -> Known {
        let growing = Growing::new(&pass.graph);
        let limits = Limits {
            behind,
            interval: grid::length(behind),
            most,
            known_until: growing.graph().known_until,
        };
        Known {
            growing,
            kernels,
            sampling,
            turns: Turns::default(),
            lines: CountLines::default(),
            cut: i64::MIN,
            limits,
        }
    }

    /// Takes what happened before that time; without one, everything.
    pub(crate) fn goes_on(&mut self, pass: &Pass, played: Option<PlayedPart>, until: Option<i64>) {
        self.growing.compose(&pass.graph, played, until);
        if !self.sampling.is_empty() {
            self.sampling.advance(&self.kernels, self.growing.graph(), until);
        }
        self.look_up_turns();
    }

    /// Looks up the threads that turned to something up to where the graph has grown.
    fn look_up_turns(&mut self) {
        let until = self.growing.until();
        let whose = Whose::new(&self.kernels, self.growing.graph());
        let until = Some(until).filter(|until| *until < i64::MAX);
        self.turns
            .look_up(until, |time, thread| whose.actor(time, thread));
    }

    /// Whether something may still turn out to be something else.
    pub(crate) fn is_open(&self, question: Question) -> bool {
        match question {
            Question::Line(actor, time) => self.growing.goes_on(actor, time).is_some(),
            Question::Open => true,
        }
    }

    /// True if what happened in an execution is not kept.
    pub(crate) fn is_too_much(&self, (begin, end): (i64, i64)) -> bool {
        begin < self.cut || self.growing.between(begin, end) > self.limits.most
    }

    /// Drops what was before a time: nobody will ask for it.
    pub(crate) fn drop_before(&mut self, cut: i64) {
        self.cut = cut;
        self.turns.drop_before(cut);
        self.growing.drop_before(cut);
        self.lines.forget(cut);
        if !self.sampling.is_empty() {
            let since = self.growing.requests_since(cut);
            self.sampling.drop_before(since);
        }
    }
}
