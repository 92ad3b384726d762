//! Critical paths as a report.

use serde::Serialize;
use serde::ser::Serializer;
use tracebraid_follow::{Head, Thread};

use crate::cause::ActorId;
use crate::graph::{Actor, Graph};
use crate::path::Path;
use crate::summary::Summary;
use crate::tree::Node;
use tracebraid_threads::WaitReason;

/// Critical paths.
#[derive(Clone, Debug, Serialize)]
pub struct PathReport {
    /// What it is about.
    #[serde(flatten)]
    pub head: Head,
    /// The paths.
    pub paths: Vec<PathRow>,
}

/// A critical path.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    /// Whose.
    pub thread: Thread,
    /// The call that it is of, if it is of one.
    pub call: Option<String>,
    /// Its beginning, in nanoseconds from the origin.
    pub begin_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// How long it is.
    pub duration_ns: u64,
    /// Where its time went.
    #[serde(flatten)]
    pub summary: Summary,
    /// The threads on the way.
    pub tree: Node,
    /// Its parts in the order of time.
    pub segments: Vec<SegmentRow>,
}

/// A part of a critical path.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentRow {
    /// Its beginning, in nanoseconds from the origin.
    pub begin_ns: i64,
    /// How long it is.
    pub duration_ns: u64,
    /// How many threads wait for the one whose time it is.
    pub depth: usize,
    /// The thread whose time it is.
    pub thread: Thread,
    /// What it went into.
    #[serde(serialize_with = "name")]
    pub reason: WaitReason,
    /// The same more exactly.
    pub detail: String,
}

fn name<S: Serializer>(reason: &WaitReason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.name())
}

/// What to find the path of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The thread.
    pub actor: ActorId,
    /// From when, in nanoseconds from the origin.
    pub begin: i64,
    /// Until when.
    pub end: i64,
    /// The call that this is, if it is one.
    pub call: Option<String>,
}

impl Graph {
    /// The critical paths of what is asked for.
    pub fn report(&self, asked: &[Asked]) -> PathReport {
        let row = |asked: &Asked| {
            let path = self.path(asked.actor, asked.begin, asked.end);
            self.row(asked, &path)
        };
        PathReport {
            head: self.head.clone(),
            paths: asked.iter().map(row).collect(),
        }
    }

    fn row(&self, asked: &Asked, path: &Path) -> PathRow {
        PathRow {
            thread: self.thread(asked.actor),
            call: asked.call.clone(),
            begin_ns: asked.begin,
            end_ns: asked.end,
            duration_ns: asked.begin.abs_diff(asked.end),
            summary: self.summary(path),
            tree: self.tree(path),
            segments: self.segments(path),
        }
    }

    fn segments(&self, path: &Path) -> Vec<SegmentRow> {
        let segments = path.segments.iter().filter_map(|segment| {
            let hop = path.hops.get(segment.hop as usize)?;
            Some(SegmentRow {
                begin_ns: segment.begin,
                duration_ns: segment.duration(),
                depth: path.way(segment.hop).count().saturating_sub(1),
                thread: self.thread(hop.actor),
                reason: self.reason(path, segment),
                detail: self.detail(path, segment),
            })
        });
        segments.collect()
    }

    /// A thread as reports show it.
    pub fn thread(&self, actor: ActorId) -> Thread {
        self.actor(actor).map(Actor::thread).unwrap_or_default()
    }

    /// The longest calls that were asked for, with whoever made them.
    pub fn longest(&self) -> Vec<Asked> {
        let calls = self.calls.iter().filter_map(|call| {
            Some(Asked {
                actor: self.at(call.thread, call.begin)?,
                begin: call.begin,
                end: call.end,
                call: Some(call.call.user_name().to_owned()),
            })
        });
        calls.collect()
    }

    /// What a thread did in a window, as far as it was there then; nothing if it was not.
    pub fn within(&self, actor: ActorId, window: (i64, i64)) -> Option<Asked> {
        let Actor { key, line, .. } = self.actor(actor)?;
        let ended = line
            .last()
            .filter(|last| last.state == crate::graph::State::Ended);
        let begin = line.first()?.begin.max(window.0);
        let end = ended
            .map_or(self.known_until_of(key.trace), |last| last.begin)
            .min(window.1);
        let call = None;
        (begin < end).then_some(Asked {
            actor,
            begin,
            end,
            call,
        })
    }
}
