//! Calling contexts: the union of the trees of all executions.
//!
//! A context is a chain of frames from the outermost inwards. A frame is a function or another
//! consumer of time: an awaited thread, a system call, a wait reason. Each context is stored once,
//! so an execution's tree is a list of contexts with times.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tracebraid_follow::KeyHasher;

use crate::names::NameId;

/// The keys are small numbers that this crate assigns, so a fast hash is safe.
pub(crate) type Hasher = BuildHasherDefault<KeyHasher>;

/// Number of a calling context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A function of a program or of the kernel.
    Function,
    /// A system call in progress.
    Call,
    /// Another thread: awaited, running on the CPU, or using the device.
    Thread,
    /// The reason why the thread does not run.
    Reason,
    /// The object of the wait: a device, an interrupt.
    Detail,
}

impl FrameKind {
    /// All kinds, in the order of their numbers in databases.
    pub const ALL: [FrameKind; 5] = [
        FrameKind::Function,
        FrameKind::Call,
        FrameKind::Thread,
        FrameKind::Reason,
        FrameKind::Detail,
    ];

    /// Name in databases and output.
    pub fn word(self) -> &'static str {
        match self {
            FrameKind::Function => "function",
            FrameKind::Call => "call",
            FrameKind::Thread => "thread",
            FrameKind::Reason => "reason",
            FrameKind::Detail => "detail",
        }
    }
}

/// An element of a calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Number of its name, see [`Names`](crate::Names).
    pub name: NameId,
}

/// All contexts. The first is empty; each context has a higher number than the context around it.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// The context around each context, and its innermost frame. The empty context is around
    /// itself.
    nodes: Vec<(ContextId, Option<Frame>)>,
    /// Number of frames of each context.
    depths: Vec<u32>,
    index: HashMap<(ContextId, Frame), ContextId, Hasher>,
}

impl Default for Contexts {
    fn default() -> Contexts {
        Contexts {
            nodes: vec![(Contexts::EMPTY, None)],
            depths: vec![0],
            index: HashMap::default(),
        }
    }
}

impl Contexts {
    /// The context without frames.
    pub const EMPTY: ContextId = ContextId(0);

    /// Maximum number of frames of a context. Bounds the cost of walking outwards from every
    /// context.
    pub const DEEPEST: u32 = 4096;

    /// The context of a frame within another context. At the maximum depth, `around` itself.
    pub fn within(&mut self, around: ContextId, frame: Frame) -> ContextId {
        let (nodes, depths) = (&mut self.nodes, &mut self.depths);
        *self.index.entry((around, frame)).or_insert_with(|| {
            let depth = depths.get(around.0 as usize).copied().unwrap_or(0);
            if depth >= Contexts::DEEPEST {
                return around;
            }
            nodes.push((around, Some(frame)));
            depths.push(depth + 1);
            ContextId(nodes.len() as u32 - 1)
        })
    }

    /// The context around a context, and its innermost frame; `None` for the empty context.
    pub fn parts(&self, context: ContextId) -> Option<(ContextId, Frame)> {
        let (around, frame) = self.nodes.get(context.0 as usize)?;
        Some((*around, (*frame)?))
    }

    /// A context and those around it, up to the empty one.
    pub fn way(&self, context: ContextId) -> impl Iterator<Item = ContextId> + '_ {
        std::iter::successors(Some(context), |&at| Some(self.parts(at)?.0))
    }

    /// The frames of a context, the outermost first.
    pub fn frames(&self, context: ContextId) -> Vec<Frame> {
        let next = |&(around, _): &(ContextId, Frame)| self.parts(around);
        let mut frames: Vec<Frame> = std::iter::successors(self.parts(context), next)
            .map(|(_, frame)| frame)
            .collect();
        frames.reverse();
        frames
    }

    /// Number of contexts, including the empty one.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}
