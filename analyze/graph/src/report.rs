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

/// Critical paths, and the range and hosts that they are about.
#[derive(Clone, Debug, Serialize)]
pub struct PathReport {
    /// The traces, and the part of them that was analysed.
    #[serde(flatten)]
    pub head: Head,
    /// The requested paths.
    pub paths: Vec<PathRow>,
}

/// A critical path with its summary.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    /// The thread whose path it is.
    pub thread: Thread,
    /// Name of the system call that the path covers, if any.
    pub call: Option<String>,
    /// Start in nanoseconds from the origin.
    pub begin_ns: i64,
    /// End in nanoseconds from the origin.
    pub end_ns: i64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// The time of the path by reason, thread, host and competitor.
    #[serde(flatten)]
    pub summary: Summary,
    /// The threads on the path, as a tree.
    pub tree: Node,
    /// Segments in the order of time.
    pub segments: Vec<SegmentRow>,
}

/// A segment of a critical path.
#[derive(Clone, Debug, Serialize)]
pub struct SegmentRow {
    /// Start in nanoseconds from the origin.
    pub begin_ns: i64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Number of threads that wait for the segment's thread, directly or indirectly.
    pub depth: usize,
    /// The thread whose time it is.
    pub thread: Thread,
    /// Reason of the time.
    #[serde(serialize_with = "name")]
    pub reason: WaitReason,
    /// Details; see [`Graph::detail`].
    pub detail: String,
}

fn name<S: Serializer>(reason: &WaitReason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.name())
}

/// A thread and a window whose path is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The thread in the graph.
    pub actor: ActorId,
    /// Start of the window, in nanoseconds from the origin.
    pub begin: i64,
    /// End of the window.
    pub end: i64,
    /// Name of the system call that the window covers, if any.
    pub call: Option<String>,
}

impl Graph {
    /// The critical paths of the requested windows.
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

    /// Windows of the longest calls that the options requested.
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

    /// The window of a thread, cut to the time in which the thread existed; `None` if it did not.
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
