//! Who ran on one CPU, from when to when, as its switches tell.

use serde::{Deserialize, Serialize};

use crate::frame::Packet;

/// Who ran on one CPU. Its chunks come in the order of time; what runs into a chunk, or out of it,
/// is joined when chunks are merged. `W` goes with a thread from the switch to it on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Runs<W> {
    /// The first thing that tells who ran, or that it is not known: up to there the chunks before
    /// decide.
    first: Option<First>,
    /// Who runs at the end, and since when.
    current: Option<Run<W>>,
    /// Up to when the events of the last packet are there: to its end.
    seen_until: Option<i64>,
    /// Switches from another thread than the one that had been switched to: some were lost.
    pub inconsistent: u64,
    /// Times that lost events made it unknown who runs.
    pub losses: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum First {
    Switch {
        time: i64,
        prev: i32,
    },
    /// Events were lost; those before are there up to that time, or up to where the chunks
    /// before say.
    Loss {
        until: Option<i64>,
        /// When it is told of.
        told: i64,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run<W> {
    tid: i32,
    since: i64,
    who: W,
}

/// A thread ran from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<W> {
    /// The thread.
    pub tid: i32,
    /// From when, in nanoseconds from the origin.
    pub since: i64,
    /// Until when.
    pub until: i64,
    /// When an event, or the beginning of a packet, told that it had ended.
    pub told: i64,
    /// How it ended.
    pub ended: Ended,
    /// What else is known of who ran.
    pub who: W,
}

/// What tells that a stretch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Another thread runs.
    Next,
    /// Events were lost.
    Loss,
    /// Nothing: there are no more events.
    Nothing,
}

impl<W> Default for Runs<W> {
    fn default() -> Self {
        Runs {
            first: None,
            current: None,
            seen_until: None,
            inconsistent: 0,
            losses: 0,
        }
    }
}

impl<W> Run<W> {
    fn to(self, until: i64, told: i64, ended: Ended) -> Stretch<W> {
        let Run { tid, since, who } = self;
        Stretch {
            tid,
            since,
            until,
            told,
            ended,
            who,
        }
    }
}

impl<W> Runs<W> {
    /// A packet begins, or goes on: its events are there up to its end. Gives who ran up to a loss.
    pub fn packet(&mut self, packet: &Packet) -> Option<Stretch<W>> {
        let lost = packet.lost_before.then(|| self.loss(packet)).flatten();
        self.seen_until = packet.end.or(packet.begin).or(self.seen_until);
        lost
    }

    /// From that time on events were lost that nobody counted. Gives who ran until then.
    pub fn cut(&mut self, time: i64) -> Option<Stretch<W>> {
        self.losses += 1;
        let until = Some(time);
        self.first.get_or_insert(First::Loss { until, told: time });
        Some(self.current.take()?.to(time, time, Ended::Loss))
    }

    fn loss(&mut self, packet: &Packet) -> Option<Stretch<W>> {
        let until = self.seen_until;
        let told = packet.begin.unwrap_or(i64::MIN);
        self.losses += 1;
        self.first.get_or_insert(First::Loss { until, told });
        Some(self.current.take()?.to(until?, told, Ended::Loss))
    }

    /// The CPU goes from one thread to another. Gives the stretch that ends, if it is known who
    /// ran.
    #[inline(always)]
    pub fn goes_over(&mut self, time: i64, prev: i32, next: i32, who: W) -> Option<Stretch<W>> {
        let (tid, since) = (next, time);
        let current = self.current.replace(Run { tid, since, who });
        if self.first.is_none() {
            self.first = Some(First::Switch { time, prev });
        }
        self.end(current, time, prev)
    }

    /// Someone is known to have run since a switch, and another switch tells who ran last.
    #[inline(always)]
    fn end(&mut self, current: Option<Run<W>>, time: i64, prev: i32) -> Option<Stretch<W>> {
        let current = current?;
        if current.tid == prev {
            return Some(current.to(time, time, Ended::Next));
        }
        self.inconsistent += 1;
        None
    }

    /// Joins what comes later; `moved` gives what goes with a thread there as it is here. Gives the
    /// stretch that is known only now.
    pub fn join<V>(&mut self, later: Runs<V>, moved: impl FnOnce(V) -> W) -> Option<Stretch<W>> {
        let seen_until = self.seen_until;
        let first = match later.first {
            Some(First::Loss { until, told }) => Some(First::Loss {
                until: until.or(seen_until),
                told,
            }),
            first => first,
        };
        self.first = self.first.or(first);
        self.inconsistent += later.inconsistent;
        self.losses += later.losses;
        self.seen_until = later.seen_until.or(seen_until);
        let first = first?;
        let later = later.current.map(|Run { tid, since, who }| Run {
            tid,
            since,
            who: moved(who),
        });
        let current = std::mem::replace(&mut self.current, later);
        match first {
            First::Switch { time, prev } => self.end(current, time, prev),
            First::Loss { until, told } => Some(current?.to(until?, told, Ended::Loss)),
        }
    }

    /// Whoever runs at the end does so until the trace ends.
    pub fn close(&mut self, end: i64) -> Option<Stretch<W>> {
        Some(self.current.take()?.to(end, end, Ended::Nothing))
    }
}
