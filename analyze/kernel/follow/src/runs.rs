//! The threads that ran on a CPU, with begin and end times, from its switches.

use serde::{Deserialize, Serialize};

use crate::frame::Packet;

/// The threads that ran on a CPU. Chunks come in time order; a thread that runs into or out of a
/// chunk is joined when chunks are merged. `W` is a value kept with a thread from the switch to it
/// on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Runs<W> {
    /// The first event that shows the running thread, or a loss: until then, earlier chunks decide.
    first: Option<First>,
    /// The thread that runs at the end of the chunk, with its begin time.
    current: Option<Run<W>>,
    /// End of the last packet: all events before it were read.
    seen_until: Option<i64>,
    /// Number of switches whose previous thread is not the thread last switched to: some switches
    /// were lost.
    pub inconsistent: u64,
    /// Number of losses of events, which make the running thread unknown.
    pub losses: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum First {
    Switch {
        time: i64,
        prev: i32,
    },
    /// Events were lost. Earlier events were read up to `until`, or up to the time that earlier
    /// chunks have.
    Loss {
        until: Option<i64>,
        /// Time at which the loss became known.
        told: i64,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Run<W> {
    tid: i32,
    since: i64,
    who: W,
}

/// A thread's stretch of time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<W> {
    /// Id of the thread.
    pub tid: i32,
    /// Begin time, in nanoseconds from the origin.
    pub since: i64,
    /// End time, in nanoseconds from the origin.
    pub until: i64,
    /// Time of the event or packet begin that showed the end.
    pub told: i64,
    /// How the stretch ended.
    pub ended: Ended,
    /// The value kept with the thread.
    pub who: W,
}

/// The cause by which the end of a stretch is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Another thread runs.
    Next,
    /// Events were lost.
    Loss,
    /// None: there are no more events.
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
    /// Handles the beginning or continuation of a packet. Returns the stretch that ended with a
    /// loss.
    pub fn packet(&mut self, packet: &Packet) -> Option<Stretch<W>> {
        let lost = packet.lost_before.then(|| self.loss(packet)).flatten();
        self.seen_until = packet.end.or(packet.begin).or(self.seen_until);
        lost
    }

    /// Handles a loss of events from `time` on that no counter shows. Returns the stretch that
    /// ended with it.
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

    /// Switches from `prev` to `next`. Returns the stretch that ends, if the running thread was
    /// known.
    #[inline(always)]
    pub fn goes_over(&mut self, time: i64, prev: i32, next: i32, who: W) -> Option<Stretch<W>> {
        let (tid, since) = (next, time);
        let current = self.current.replace(Run { tid, since, who });
        if self.first.is_none() {
            self.first = Some(First::Switch { time, prev });
        }
        self.end(current, time, prev)
    }

    /// Ends the current stretch at a switch, if its previous thread agrees.
    #[inline(always)]
    fn end(&mut self, current: Option<Run<W>>, time: i64, prev: i32) -> Option<Stretch<W>> {
        let current = current?;
        if current.tid == prev {
            return Some(current.to(time, time, Ended::Next));
        }
        self.inconsistent += 1;
        None
    }

    /// Joins the later chunk; `moved` converts the values kept with its threads. Returns the
    /// stretch that only now is known.
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

    /// Ends the last stretch at the end of the trace.
    pub fn close(&mut self, end: i64) -> Option<Stretch<W>> {
        Some(self.current.take()?.to(end, end, Ended::Nothing))
    }
}
