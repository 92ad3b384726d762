//! Waits of user-level threads for an LWP, explained by the LWP that ended them.
//!
//! A ready user-level thread needs any LWP of its process. The one that runs it in the end was the
//! first that became available, so the time until then is that of this LWP: it ran other user-level
//! threads, or its scheduler, and the kernel may have taken its CPU meanwhile. An LWP that slept is
//! no explanation: that time remains without one.
//!
//! Traces do not list the user-level threads of an LWP. They follow from the occupants of CPUs: who
//! left the CPU at the moment at which the next one came. So no list grows with the trace.

use tracebraid_follow::CpuKey;
use tracebraid_kernel_model::events::user_level::is_user_level;
use tracebraid_threads::ThreadState;

use crate::cause::ActorId;
use crate::graph::{Actor, Graph, Occupant, State, Stretch};
use crate::path::{Hop, Link, Role, SegmentKind, Walk, Window};

/// Use of an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LwpUse {
    /// The user-level thread that it ran, or the LWP's own thread: the scheduler.
    by: ActorId,
    begin: i64,
    end: i64,
}

/// Adds a use; the last one is extended backwards if it is of the same thread.
fn extend(uses: &mut Vec<LwpUse>, by: ActorId, (begin, end): Window) {
    match uses.last_mut() {
        Some(last) if (last.by, last.begin) == (by, end) => last.begin = begin,
        _ => uses.push(LwpUse { by, begin, end }),
    }
}

impl Walk<'_> {
    /// Appends time in which the user-level thread of a hop is ready and has no LWP.
    pub(crate) fn lacks_lwp(&mut self, hop: u32, actor: &Actor, (begin, end): Window) {
        let graph = self.graph;
        let mut at = begin;
        for of in graph.lwp_uses(actor, (begin, end)).into_iter().rev() {
            let window = (of.begin.max(at), of.end.min(end));
            let Some(user) = graph.actor(of.by) else {
                continue;
            };
            if window.0 >= window.1 || !self.can_follow(hop, of.by, false) {
                continue;
            }
            self.put(hop, (at, window.0), SegmentKind::Ready);
            let inner = self.hop(Hop {
                actor: of.by,
                parent: Some(hop),
                begin: window.0,
                end: window.1,
                link: Link::Lwp,
                replaces: false,
                role: Role::Lwp,
            });
            self.own(inner, user, window);
            at = window.1;
        }
        self.put(hop, (at, end), SegmentKind::Ready);
    }
}

impl Graph {
    /// Uses, the last one first, of the LWP that runs a user-level thread after a window in which
    /// it was ready.
    fn lwp_uses(&self, actor: &Actor, (begin, end): Window) -> Vec<LwpUse> {
        let mut uses = Vec::new();
        let trace = actor.key.trace;
        let ready = actor.place(begin);
        let comes = ready.and_then(|ready| actor.line.get(ready + 1));
        let Some(mut next) = comes.copied() else {
            return uses;
        };
        while next.begin > begin {
            let before = match next.state {
                State::Running(cpu) => self.occupant_before(trace, cpu, next.begin),
                _ => None,
            };
            let Some((by, user)) = before.and_then(|by| Some((by, self.actor(by)?))) else {
                break;
            };
            let Some(first) = self.turn(user, (begin, next.begin), |from, to| {
                extend(&mut uses, by, (from, to));
            }) else {
                break;
            };
            next = first;
        }
        uses.retain(|of| of.begin < end);
        uses
    }

    /// Goes back over the time up to `until` for which a thread had its LWP. Calls `used` for each
    /// part in which it did not sleep, the last one first. Returns the first stretch, or the one at
    /// `from`.
    fn turn(
        &self,
        user: &Actor,
        (from, until): Window,
        mut used: impl FnMut(i64, i64),
    ) -> Option<Stretch> {
        let is_scheduler = !is_user_level(user.key.tid);
        let before = user.line.partition_point(|stretch| stretch.begin < until);
        let mut first = None;
        let mut end = until;
        for stretch in user.line.get(..before)?.iter().rev() {
            let is_used = match stretch.state {
                State::Unknown | State::Ended | State::Ready => break,
                State::Blocked { call, .. } if call.is_user_wait() => break,
                State::Blocked { .. } => !is_scheduler,
                _ => true,
            };
            if is_used {
                used(stretch.begin, end);
            }
            end = stretch.begin;
            first = Some(*stretch);
            if stretch.begin <= from {
                break;
            }
        }
        first
    }

    /// The thread that left a CPU at a time at which another came to it.
    fn occupant_before(&self, trace: u32, cpu: u16, time: i64) -> Option<ActorId> {
        if cpu == ThreadState::NO_CPU {
            return None;
        }
        let cpu = u32::from(cpu);
        let before = self.occupied(CpuKey { trace, cpu }, time - 1).first()?;
        match before.by {
            Occupant::Thread(by) if before.begin < time => Some(by),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_follow::ThreadKey;
    use tracebraid_kernel_model::Syscall;
    use tracebraid_kernel_model::events::user_level::FIRST_USER_LEVEL_TID;

    use super::*;
    use crate::cause::Wake;
    use crate::graph::{NO_OBJECT, Occupied};
    use crate::path::Path;
    use tracebraid_threads::WaitReason;

    const LWP: ActorId = ActorId(0);
    const FIRST: ActorId = ActorId(1);
    const SECOND: ActorId = ActorId(2);
    const HOG: ActorId = ActorId(3);

    fn waits(call: &str) -> State {
        let call = Syscall::by_name(call);
        State::Blocked {
            call: call.expect("a known call"),
            object: NO_OBJECT,
            wake: Wake::Timer,
            reason: WaitReason::Timer,
            is_idle: false,
        }
    }

    /// An LWP on CPU 0 sleeps, runs its scheduler, then the first user-level thread, which the hog
    /// preempts, then the second one.
    fn graph() -> Graph {
        use State::*;
        let lwp = vec![
            (0, Running(0)),
            (5, waits("futex")),
            (20, Runnable(0)),
            (22, Running(0)),
            (25, Ready),
            (60, Running(0)),
            (62, Ready),
        ];
        let first = vec![
            (0, Ready),
            (25, Running(0)),
            (30, Preempted(0)),
            (50, Running(0)),
            (52, waits("read")),
            (55, Running(0)),
            (60, Ready),
        ];
        let second = vec![(0, Ready), (62, Running(0)), (90, Ended)];
        let hog = vec![(0, Running(1)), (30, Running(0)), (50, Ended)];
        let on_cpu = [
            (0, LWP),
            (5, HOG),
            (22, LWP),
            (25, FIRST),
            (30, HOG),
            (50, FIRST),
            (52, HOG),
            (55, FIRST),
            (60, LWP),
            (62, SECOND),
        ];
        let first_tid = FIRST_USER_LEVEL_TID + 1;
        let actors = [
            (7, lwp),
            (first_tid, first),
            (first_tid + 1, second),
            (9, hog),
        ];
        let actor = |(tid, line): (i32, Vec<(i64, State)>)| Actor {
            key: ThreadKey { trace: 0, tid },
            line: line
                .into_iter()
                .map(|(begin, state)| Stretch { begin, state })
                .collect(),
            ..Actor::default()
        };
        let occupied = |(begin, by)| Occupied {
            begin,
            by: Occupant::Thread(by),
        };
        Graph {
            known_until: 100,
            actors: actors.map(actor).into(),
            cpus: vec![(CpuKey { trace: 0, cpu: 0 }, on_cpu.map(occupied).into())],
            ..Graph::default()
        }
    }

    fn parts(path: &Path) -> Vec<(i64, ActorId, SegmentKind)> {
        let part = |segment: &crate::path::Segment| {
            let hop = path.hops[segment.hop as usize];
            (segment.begin, hop.actor, segment.kind)
        };
        path.segments.iter().map(part).collect()
    }

    #[test]
    fn a_wait_for_an_lwp_is_that_of_its_users() {
        let graph = graph();
        let path = graph.path(SECOND, 2, 70);
        assert!(path.tiles(2, 70));
        let by_hog = Occupant::Thread(HOG);
        let read = path.segments.iter().find(|segment| segment.begin == 52);
        let read = read.expect("a segment").kind;
        assert!(matches!(read, SegmentKind::Waiting { .. }));
        assert_eq!(
            parts(&path),
            [
                (2, LWP, SegmentKind::Running(0)),
                // The LWP slept.
                (5, SECOND, SegmentKind::Ready),
                (20, LWP, SegmentKind::Runnable(by_hog)),
                (22, LWP, SegmentKind::Running(0)),
                (25, FIRST, SegmentKind::Running(0)),
                (30, FIRST, SegmentKind::Preempted(by_hog)),
                (50, FIRST, SegmentKind::Running(0)),
                (52, FIRST, read),
                (55, FIRST, SegmentKind::Running(0)),
                (60, LWP, SegmentKind::Running(0)),
                (62, SECOND, SegmentKind::Running(0)),
            ]
        );
        for segment in path.segments.iter().filter(|segment| segment.end <= 62) {
            assert_eq!(graph.reason(&path, segment), WaitReason::Lwp, "{segment:?}");
        }
        let preempted = path.segments.iter().find(|segment| segment.begin == 30);
        let detail = graph.detail(&path, preempted.expect("a segment"));
        assert_eq!(detail, "? (100000001), preempted: by ? (9)");
    }

    #[test]
    fn windows_that_end_before_the_thread_runs_have_the_same_users() {
        let graph = graph();
        let whole = parts(&graph.path(SECOND, 2, 70));
        for begin in 0..62 {
            for end in begin + 1..=62 {
                let path = graph.path(SECOND, begin, end);
                assert!(path.tiles(begin, end));
                let at = |parts: &[(i64, ActorId, SegmentKind)], time: i64| {
                    let after = parts.partition_point(|part| part.0 <= time);
                    let part = after.checked_sub(1).map(|last| parts[last]);
                    part.map(|(_, actor, kind)| (actor, kind))
                };
                for time in begin.max(2)..end {
                    assert_eq!(
                        at(&parts(&path), time),
                        at(&whole, time),
                        "{begin} {time} {end}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_wait_without_a_known_lwp_stays_one() {
        let mut graph = graph();
        graph.cpus.clear();
        let path = graph.path(SECOND, 0, 62);
        assert_eq!(parts(&path), [(0, SECOND, SegmentKind::Ready)]);
        // The thread never runs.
        let mut graph = self::graph();
        graph.actors[2].line.truncate(1);
        let path = graph.path(SECOND, 0, 100);
        assert_eq!(parts(&path), [(0, SECOND, SegmentKind::Ready)]);
    }
}
