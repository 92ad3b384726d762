//! Calling contexts: the union of the trees of all executions.
//!
//! A context is a chain of frames from the outermost inwards. Frames are functions, and what stands
//! for something else that takes time: a thread that is waited for, a system call, a reason to
//! wait. Each context is kept once, so an execution's tree is a list of contexts with times.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tracebraid_follow::KeyHasher;

use crate::names::NameId;

/// Numbers that were given here need no slow hash.
pub(crate) type Hasher = BuildHasherDefault<KeyHasher>;

/// A calling context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A function of a program or of the kernel.
    Function,
    /// A system call that is going on.
    Call,
    /// Another thread, which is waited for, has the CPU or uses the device.
    Thread,
    /// Why the thread does not run.
    Reason,
    /// What exactly it waits for: a device, an interrupt.
    Detail,
}

impl FrameKind {
    /// All, in the order of their numbers in databases.
    pub const ALL: [FrameKind; 5] = [
        FrameKind::Function,
        FrameKind::Call,
        FrameKind::Thread,
        FrameKind::Reason,
        FrameKind::Detail,
    ];

    /// What it is called.
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

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// What it is called.
    pub name: NameId,
}

/// All contexts, the empty one first. Each stands behind the one around it.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// The context around each, and its innermost frame; the empty one has itself around it.
    nodes: Vec<(ContextId, Option<Frame>)>,
    /// How many frames each has.
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

    /// So many frames a context has at most: whoever goes from each context outwards shall come to
    /// an end in time.
    pub const DEEPEST: u32 = 4096;

    /// The context of a frame within another context; within the deepest ones that one itself.
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

    /// The context around one, and its innermost frame; none of the empty one.
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

    /// How many there are, with the empty one.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}
