//! Threads that are created within a slice of time.
//!
//! All activity of such a thread is known in the slice, so the slice makes the thread of the graph,
//! with the numbers of the slice. Composing only appends that thread and replaces the state of its
//! id; its numbers are replaced with the other deferred changes ([`crate::later`]). Where a step
//! needs the state of the thread in the graph, an earlier step adds that state ([`BornThread`]),
//! and from there on the thread is followed like any other.

use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_threads::{CellNews, ThreadState};

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, State, Stretch};
use crate::slice::piece::LinePiece;
use crate::slice::thread::SliceThread;
use crate::slice::{GraphSlice, GraphStep};
use crate::thread_life::TimeLine;

/// A thread that was created in the slice, and whose state no step has added yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Born {
    /// End of the last thread with the id that earlier slices or steps contain, in nanoseconds from
    /// the origin.
    since: i64,
    /// Index of the step that adds the thread to the graph, and of the thread in that step.
    step: usize,
    at: usize,
}

/// State that settled threads, which were created in the slice, leave to later ones.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Number of their stretches.
    pub(super) stretches: usize,
    /// Empty lists, reused for time lines.
    spare: Vec<Vec<Stretch>>,
}

/// A thread that was created in the slice, for composing. It replaces the previous thread with its
/// id.
#[derive(Debug)]
pub(crate) struct BornThread {
    pub(crate) key: ThreadKey,
    /// End of the previous thread with the id, in nanoseconds from the origin.
    pub(crate) since: i64,
    /// Local number.
    pub(crate) actor: ActorId,
    pub(crate) cell: CellNews<Wake>,
}

impl GraphSlice<'_> {
    /// Creates a thread, which replaces the previous thread with its id.
    pub(super) fn is_made(
        &mut self,
        at: (CpuKey, i64),
        key: ThreadKey,
        creator: Option<ThreadKey>,
    ) {
        let (_, time) = at;
        let creator = creator.map(|creator| self.actor(creator));
        let since = self.is_replaced(key, time);
        let actor = Actor {
            creator,
            ..Actor::new(key)
        };
        let born = self.is_born(since, actor);
        let number = self.next_number();
        let (thread, losses) = self.unmet(key);
        thread.cell.is_made(at, key.tid, losses);
        thread.is_another(i64::MIN, None);
        thread.actor = Some(number);
        thread.born = Some(born);
        let first = State::Runnable(ThreadState::NO_CPU);
        let memory = self.born.spare.pop().unwrap_or_default();
        self.unmet(key).0.line = LinePiece::whole(time, first, memory);
    }

    /// Another thread gets the id. Returns the end of the last thread with the id that earlier
    /// slices or steps contain.
    fn is_replaced(&mut self, key: ThreadKey, time: i64) -> i64 {
        let thread = self.threads.get_near(key, &mut self.near);
        let Some(born) = thread.born.take() else {
            self.tell(key);
            return time;
        };
        thread.line.ends(time);
        born.settle(thread, &mut self.output.steps, &mut self.born);
        born.since
    }

    /// Adds a new thread to the graph. Threads that are added one after the other share a step.
    fn is_born(&mut self, since: i64, actor: Actor) -> Born {
        match self.output.steps.last_mut() {
            Some(GraphStep::Born(actors)) => actors.push(actor),
            _ => self.output.steps.push(GraphStep::Born(vec![actor])),
        }
        let step = self.output.steps.len() - 1;
        let at = match self.output.steps.last() {
            Some(GraphStep::Born(actors)) => actors.len() - 1,
            _ => 0,
        };
        Born { since, step, at }
    }

    /// Emits the state of a new thread as a step.
    #[cold]
    pub(super) fn tell_born(&mut self, key: ThreadKey, born: Born) {
        let thread = self.threads.get_near(key, &mut self.near);
        born.settle(thread, &mut self.output.steps, &mut self.born);
        if let Some((cell, actor)) = thread.cell.news().zip(thread.actor) {
            self.output
                .steps
                .push(GraphStep::Lives(Box::new(BornThread {
                    key,
                    since: born.since,
                    actor,
                    cell,
                })));
        }
    }
}

impl Born {
    /// Moves the thread into the step that adds it to the graph, and its work into a step of its
    /// own, since composing adds work in sequence.
    pub(super) fn settle(
        self,
        thread: &mut SliceThread,
        steps: &mut Vec<GraphStep>,
        settled: &mut Settled,
    ) {
        if let Some(GraphStep::Born(actors)) = steps.get_mut(self.step)
            && let Some(actor) = actors.get_mut(self.at)
        {
            thread.settle(actor, &mut settled.spare);
            settled.stretches += actor.line.len();
        }
        let works = thread.take_works();
        if let Some(actor) = thread.actor.filter(|_| !works.is_empty()) {
            steps.push(GraphStep::Works(actor, works));
        }
    }

    /// State of the thread at the end of the slice.
    pub(super) fn into_thread(self, key: ThreadKey, thread: SliceThread) -> Option<BornThread> {
        Some(BornThread {
            key,
            since: self.since,
            actor: thread.actor?,
            cell: thread.cell.into_news()?,
        })
    }
}
