//! State of the traces up to a time, from which executions are made: one thread at a time extends
//! it, many threads read it.

use std::sync::Arc;

use tracebraid_graph::{DeviceTimes, Growing, PlayedPart, Question};

use crate::counts::CountSeries;
use crate::execution::{Kernels, Whose};
use crate::grid::Intervals;
use crate::pass::Pass;
use crate::sampled::Sampling;
use crate::turns::Turns;

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) growing: Growing,
    pub(crate) kernels: Kernels,
    pub(crate) sampling: Sampling,
    /// Times at which threads turned to executions.
    pub(crate) turns: Turns,
    /// Time lines of counted events.
    pub(crate) series: CountSeries,
    /// State earlier than this time is dropped.
    pub(crate) cut: i64,
    pub(crate) limits: Limits,
}

/// Limits that bound the memory.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Delay after its end at which an execution must be made, in nanoseconds; rounded up to the
    /// next interval.
    pub(crate) behind: u64,
    /// Executions that must be made are made at the beginning of an interval.
    pub(crate) intervals: Intervals,
    /// Maximum number of events in an execution, as counted by [`Growing::between`]; larger
    /// executions are given up.
    pub(crate) most: u64,
    /// End of the recorded time.
    pub(crate) known_until: i64,
}

impl Limits {
    /// Latest time at which an execution that ends at `end` is made; `None` if it is after
    /// `known_until`.
    pub(crate) fn deadline(&self, end: i64) -> Option<i64> {
        let deadline = end.checked_add_unsigned(self.behind)?;
        let deadline = self.intervals.next_begin(deadline)?;
        (deadline <= self.known_until).then_some(deadline)
    }
}

impl Known {
    /// Initial state, before any event is played.
    pub(crate) fn new(
        pass: &Pass,
        (kernels, sampling, devices): (Kernels, Sampling, Arc<DeviceTimes>),
        (behind, intervals): (u64, Intervals),
        most: u64,
    ) -> Known {
        let growing = Growing::new(&pass.graph, devices);
        let limits = Limits {
            behind,
            intervals,
            most,
            known_until: growing.graph().known_until,
        };
        Known {
            growing,
            kernels,
            sampling,
            turns: Turns::default(),
            series: CountSeries::default(),
            cut: i64::MIN,
            limits,
        }
    }

    /// Adds the events earlier than `until`, or all events if it is `None`.
    pub(crate) fn goes_on(&mut self, pass: &Pass, played: Option<PlayedPart>, until: Option<i64>) {
        self.growing.compose(&pass.graph, played, until);
        if !self.sampling.is_empty() {
            // Samples look up waits in the graph. Within an interval, the end of the graph depends
            // on chunks.
            let until = until.map(|until| self.limits.intervals.begin_of(until));
            self.sampling
                .advance(&self.kernels, self.growing.graph(), until);
        }
        self.look_up_turns();
    }

    /// Resolves the threads that turned to executions, up to the time that the graph has reached.
    fn look_up_turns(&mut self) {
        let until = self.growing.until();
        let whose = Whose::new(&self.kernels, self.growing.graph());
        let until = Some(until).filter(|until| *until < i64::MAX);
        self.turns
            .look_up(until, |time, thread| whose.actor(time, thread));
    }

    /// True if later events may still change the answer to `question`.
    pub(crate) fn is_open(&self, question: Question) -> bool {
        match question {
            Question::Line(actor, time) => self.growing.goes_on(actor, time).is_some(),
            Question::Open => true,
        }
    }

    /// True if data of the execution was dropped, or if the execution exceeds the limit.
    pub(crate) fn is_too_much(&self, (begin, end): (i64, i64)) -> bool {
        begin < self.cut || self.growing.between(begin, end) > self.limits.most
    }

    /// Drops all state earlier than `cut`, which is not read again.
    pub(crate) fn drop_before(&mut self, cut: i64) {
        self.cut = cut;
        self.turns.drop_before(cut);
        self.growing.drop_before(cut);
        self.series.forget(cut);
        if !self.sampling.is_empty() {
            let since = self.growing.requests_since(cut);
            self.sampling.drop_before(since);
        }
    }
}
