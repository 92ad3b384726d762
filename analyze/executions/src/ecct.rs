//! The enhanced calling context tree of an execution: its critical path, with the call stacks of
//! the threads on it.
//!
//! The thread's own work is placed under its stack. A wait is placed under the stack in which the
//! thread waits: the system call, and the reason or, if it waits for another thread, that thread
//! and its work in the meantime, and so on. Loss of the CPU is placed under the thread that has the
//! CPU, with the stacks of that thread. A wait for a block device is divided among the threads that
//! use the device.
//!
//! Source: `GenerateECCT` (Figures 3 and 4) of Doray and Dagenais, "Diagnosing performance
//! variations by comparing multi-level execution traces" (2016). The graph guarantees that a chain
//! of threads ends.

use std::collections::HashMap;

use tracebraid_graph::{
    ActorId, Graph, Hop, Link, Occupant, Path, Segment, SegmentKind, WaitReason, Wake,
};
use tracebraid_kernel_model::Syscall;

use crate::contexts::{ContextId, Contexts, Frame, FrameKind, Hasher};
use crate::names::{NameId, Names};
use crate::stacks::{StackId, Stacks, ThreadStacks};

/// Time of an execution by calling context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ecct {
    /// Nanoseconds of each context's own time, without inner contexts. Contexts ascend; no time is
    /// 0.
    pub times: Vec<(ContextId, u64)>,
}

impl Ecct {
    /// Sum of all times: the execution's duration in nanoseconds.
    pub fn total(&self) -> u64 {
        self.times.iter().map(|(_, time)| time).sum()
    }
}

/// A stretch of an execution's time in one thread and context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionStep {
    /// Nanoseconds, at least 1.
    pub duration: u64,
    /// The thread on the path. If another thread has its CPU, only the context contains the other
    /// thread.
    pub actor: Option<ActorId>,
    /// The context. For a wait for a block device, the context of the thread's own share.
    pub context: ContextId,
}

/// Sums the times of each context, and sorts by context.
pub(crate) fn add_up(times: &mut Vec<(ContextId, u64)>) {
    times.sort_unstable();
    times.dedup_by(|later, earlier| {
        let is_same = later.0 == earlier.0;
        if is_same {
            earlier.1 = earlier.1.saturating_add(later.1);
        }
        is_same
    });
}

/// Frame for block requests whose issuing thread is unknown.
const UNKNOWN_USER: &str = "requests of an unknown thread";

/// Builds trees of the executions of a trace.
#[derive(Debug)]
pub struct Builder<'t> {
    graph: &'t Graph,
    stacks: &'t Stacks,
    threads: &'t HashMap<ActorId, ThreadStacks>,
    /// Contexts of all trees so far.
    pub contexts: Contexts,
    /// Names of the frames.
    pub names: Names,
    /// Context of a stack within a context.
    known: HashMap<(ContextId, StackId), ContextId, Hasher>,
    /// End of the execution; threads have the names that they had then.
    until: i64,
    /// Allocation that is reused between trees.
    bases: Vec<Option<ContextId>>,
}

/// State that the trees of executions share, apart from the stacks of threads.
#[derive(Debug, Default)]
pub(crate) struct Common {
    pub(crate) contexts: Contexts,
    pub(crate) names: Names,
    pub(crate) known: HashMap<(ContextId, StackId), ContextId, Hasher>,
}

/// A tree under construction.
struct Growing<'p> {
    path: &'p Path,
    /// By hop: the context under which its thread's stacks are placed.
    bases: Vec<Option<ContextId>>,
    /// Unordered; a context may occur several times.
    times: Vec<(ContextId, u64)>,
    /// In the order of time.
    steps: Vec<ExecutionStep>,
    /// Thread of the current segment.
    actor: Option<ActorId>,
}

impl Growing<'_> {
    fn add(&mut self, context: ContextId, time: u64) {
        self.share(context, time);
        self.step(context, time);
    }

    /// Adds time to a context, for a share of a segment.
    fn share(&mut self, context: ContextId, time: u64) {
        if time > 0 {
            self.times.push((context, time));
        }
    }

    /// Appends a step, or extends the last one.
    fn step(&mut self, context: ContextId, duration: u64) {
        let actor = self.actor;
        match self.steps.last_mut() {
            _ if duration == 0 => {}
            Some(last) if (last.actor, last.context) == (actor, context) => {
                last.duration += duration
            }
            _ => self.steps.push(ExecutionStep {
                duration,
                actor,
                context,
            }),
        }
    }
}

impl<'t> Builder<'t> {
    /// Creates a builder for executions in `graph`, with the stacks of threads; `names` contains
    /// the names of functions.
    pub fn new(
        graph: &'t Graph,
        stacks: &'t Stacks,
        threads: &'t HashMap<ActorId, ThreadStacks>,
        names: Names,
    ) -> Self {
        Builder {
            graph,
            stacks,
            threads,
            names,
            contexts: Contexts::default(),
            known: HashMap::default(),
            until: i64::MAX,
            bases: Vec::new(),
        }
    }

    /// Continues the contexts and names of other trees.
    pub(crate) fn going_on(
        graph: &'t Graph,
        stacks: &'t Stacks,
        threads: &'t HashMap<ActorId, ThreadStacks>,
        common: Common,
    ) -> Self {
        Builder {
            contexts: common.contexts,
            known: common.known,
            ..Builder::new(graph, stacks, threads, common.names)
        }
    }

    pub(crate) fn into_common(self) -> Common {
        Common {
            contexts: self.contexts,
            names: self.names,
            known: self.known,
        }
    }

    /// Continues existing contexts.
    pub fn with_contexts(mut self, contexts: Contexts) -> Self {
        self.contexts = contexts;
        self
    }

    /// The tree of a critical path.
    pub fn ecct(&mut self, path: &Path) -> Ecct {
        self.ecct_and_steps(path).0
    }

    /// The tree of a critical path, and its steps in the order of time. The durations of the steps
    /// add up to the length of the path.
    pub fn ecct_and_steps(&mut self, path: &Path) -> (Ecct, Vec<ExecutionStep>) {
        let mut bases = std::mem::take(&mut self.bases);
        bases.clear();
        bases.resize(path.hops.len(), None);
        let mut growing = Growing {
            path,
            bases,
            times: Vec::with_capacity(path.segments.len()),
            steps: Vec::with_capacity(path.segments.len()),
            actor: None,
        };
        self.until = path.segments.last().map_or(i64::MAX, |last| last.end);
        for segment in &path.segments {
            self.segment(&mut growing, segment);
        }
        let Growing {
            bases,
            mut times,
            steps,
            ..
        } = growing;
        self.bases = bases;
        add_up(&mut times);
        (Ecct { times }, steps)
    }

    fn segment(&mut self, growing: &mut Growing<'_>, segment: &Segment) {
        let base = self.base(growing, segment.hop);
        growing.actor = growing
            .path
            .hops
            .get(segment.hop as usize)
            .map(|hop| hop.actor);
        if let SegmentKind::OnDevice(_) = segment.kind {
            // No thread waits: the activity has no stack.
            growing.actor = None;
            let context = self.reason(base, growing.path, segment);
            return growing.add(context, segment.duration());
        }
        let Some(actor) = growing.actor else {
            let context = self.reason(base, growing.path, segment);
            return growing.add(context, segment.duration());
        };
        let window = (segment.begin, segment.end);
        if let SegmentKind::Running(_) = segment.kind {
            return self.runs(growing, base, actor, window);
        }
        let stack = match segment.kind {
            SegmentKind::Waiting { .. } => self.waiting_stack(actor, segment.begin),
            _ => self.stack_at(actor, segment.begin),
        };
        let mut context = self.under(base, stack);
        if let SegmentKind::Waiting { call, .. } = segment.kind {
            context = self.calls(context, call);
        }
        let reason = self.graph.activity(segment);
        context = self.reason(context, growing.path, segment);
        match segment.kind {
            SegmentKind::Preempted(by) | SegmentKind::Runnable(by) => {
                self.lacks_cpu(growing, context, by, window)
            }
            SegmentKind::Waiting { wake, .. } if reason == WaitReason::BlockDevice => {
                self.uses_device(growing, context, (actor, wake), segment);
            }
            _ => growing.add(context, segment.duration()),
        }
    }

    /// The reason of a segment, with its detail if the objects of this reason are few.
    fn reason(&mut self, context: ContextId, path: &Path, segment: &Segment) -> ContextId {
        let reason = self.graph.activity(segment);
        let context = self.frame(context, FrameKind::Reason, reason.name());
        match is_one_of_few(reason) {
            true => {
                let detail = self.graph.what(path, segment);
                self.detail(context, &detail)
            }
            false => context,
        }
    }

    /// The thread runs: adds its stacks.
    fn runs(
        &mut self,
        growing: &mut Growing<'_>,
        base: ContextId,
        actor: ActorId,
        (begin, end): (i64, i64),
    ) {
        let Some(stacks) = self.threads.get(&actor) else {
            return growing.add(base, begin.abs_diff(end));
        };
        let mut at = begin;
        for (until, stack) in stacks.within(begin, end) {
            let context = self.under(base, stack);
            growing.add(context, at.abs_diff(until));
            at = until;
        }
    }

    /// The thread is runnable while another thread has the CPU: adds the work of that thread.
    fn lacks_cpu(
        &mut self,
        growing: &mut Growing<'_>,
        context: ContextId,
        by: Occupant,
        window: (i64, i64),
    ) {
        match by {
            Occupant::Thread(other) => {
                let context = self.thread(context, other);
                self.runs(growing, context, other, window);
            }
            Occupant::Idle => {
                let context = self.detail(context, "idle CPU");
                growing.add(context, window.0.abs_diff(window.1));
            }
            Occupant::Unknown => growing.add(context, window.0.abs_diff(window.1)),
        }
    }

    /// Wait for a block device: each other thread is charged with the time in which the device
    /// served its requests.
    fn uses_device(
        &mut self,
        growing: &mut Growing<'_>,
        context: ContextId,
        (actor, wake): (ActorId, Wake),
        segment: &Segment,
    ) {
        let graph = self.graph;
        let request = match wake {
            Wake::Request(place) => graph.requests.get(place as usize),
            _ => None,
        };
        let Some(request) = request else {
            let detail = graph.what(growing.path, segment);
            let context = self.detail(context, &detail);
            return growing.add(context, segment.duration());
        };
        let context = self.detail(context, &graph.disk(request.trace, request.device));
        let own = [request.by, Some(actor)];
        growing.step(context, segment.duration());
        let mut rest = segment.duration();
        let window = (segment.begin, segment.end);
        for user in graph.served(request.trace, request.device, window) {
            let theirs = match user.by {
                by if own.contains(&by) => continue,
                Some(by) => {
                    let theirs = self.thread(context, by);
                    let stack = self.waiting_stack(by, user.since);
                    self.under(theirs, stack)
                }
                None => self.detail(context, UNKNOWN_USER),
            };
            growing.share(theirs, user.time);
            rest = rest.saturating_sub(user.time);
        }
        growing.share(context, rest);
    }

    /// The context under which the stacks of a hop's thread are placed.
    fn base(&mut self, growing: &mut Growing<'_>, hop: u32) -> ContextId {
        // Goes from the hop up to one whose context is known, and back.
        let mut way: Vec<u32> = Vec::new();
        let mut at = Some(hop);
        let mut base = Contexts::EMPTY;
        while let Some(place) = at {
            if let Some(known) = growing.bases.get(place as usize).copied().flatten() {
                base = known;
                break;
            }
            way.push(place);
            at = growing
                .path
                .hops
                .get(place as usize)
                .and_then(|hop| hop.parent);
        }
        for place in way.into_iter().rev() {
            if let Some(hop) = growing.path.hops.get(place as usize) {
                base = match hop
                    .parent
                    .and_then(|parent| growing.path.hops.get(parent as usize))
                {
                    Some(parent) => self.goes_over(base, parent.actor, hop),
                    None => Contexts::EMPTY,
                };
            }
            if let Some(known) = growing.bases.get_mut(place as usize) {
                *known = Some(base);
            }
        }
        base
    }

    /// The context for the stacks of an awaited thread; the stacks of the waiting thread are placed
    /// under `base`.
    fn goes_over(&mut self, base: ContextId, waiting: ActorId, hop: &Hop) -> ContextId {
        let mut context = match hop.link {
            // The waiting thread worked for other executions in the meantime.
            Link::Passes | Link::Busy | Link::Unseen => base,
            // It is ready, as it is when it runs.
            Link::Lwp => {
                let stack = self.stack_at(waiting, hop.begin);
                self.under(base, stack)
            }
            _ => {
                let since = if is_handed(hop) {
                    hop.end - 1
                } else {
                    hop.begin
                };
                let stack = self.waiting_stack(waiting, since);
                self.under(base, stack)
            }
        };
        let reason = match hop.link {
            Link::Wakes { call, .. } => {
                context = self.calls(context, call);
                None
            }
            Link::Sends(_) => Some(WaitReason::Network),
            Link::Issues(_) => Some(WaitReason::BlockDevice),
            Link::Queues(_) => Some(WaitReason::WorkQueue),
            Link::Busy => Some(WaitReason::Queued),
            Link::Unseen => Some(WaitReason::UnknownHandOver),
            Link::Lwp => Some(WaitReason::Lwp),
            Link::Start | Link::Submits(_) | Link::Makes | Link::Passes => None,
        };
        if let Some(reason) = reason {
            context = self.frame(context, FrameKind::Reason, reason.name());
        }
        self.thread(context, hop.actor)
    }

    fn stack_at(&self, actor: ActorId, time: i64) -> StackId {
        let stacks = self.threads.get(&actor);
        stacks.map_or(Stacks::EMPTY, |stacks| stacks.at(time))
    }

    fn waiting_stack(&self, actor: ActorId, time: i64) -> StackId {
        let stacks = self.threads.get(&actor);
        stacks.map_or(Stacks::EMPTY, |stacks| stacks.waiting_at(time))
    }

    /// The context of a stack within a context.
    fn under(&mut self, base: ContextId, stack: StackId) -> ContextId {
        // Goes up to a known context only, as stacks may be deep.
        let mut functions: Vec<(StackId, NameId)> = Vec::new();
        let mut at = stack;
        let mut context = base;
        while let Some((around, function)) = self.stacks.parts(at) {
            if let Some(&known) = self.known.get(&(base, at)) {
                context = known;
                break;
            }
            functions.push((at, function));
            at = around;
        }
        for (stack, name) in functions.into_iter().rev() {
            let kind = FrameKind::Function;
            context = self.contexts.within(context, Frame { kind, name });
            self.known.insert((base, stack), context);
        }
        context
    }

    fn frame(&mut self, context: ContextId, kind: FrameKind, text: &str) -> ContextId {
        let name = self.names.id(text);
        self.contexts.within(context, Frame { kind, name })
    }

    fn calls(&mut self, context: ContextId, call: Syscall) -> ContextId {
        match call {
            Syscall::OTHER => context,
            call => self.frame(context, FrameKind::Call, call.user_name()),
        }
    }

    fn detail(&mut self, context: ContextId, text: &str) -> ContextId {
        match text {
            "" => context,
            text => self.frame(context, FrameKind::Detail, text),
        }
    }

    fn thread(&mut self, context: ContextId, actor: ActorId) -> ContextId {
        let graph = self.graph;
        let name = graph
            .actor(actor)
            .and_then(|actor| graph.name_at(actor, self.until));
        let name = one_for_all_cpus(name.as_deref().unwrap_or("?"));
        self.frame(context, FrameKind::Thread, name)
    }
}

/// True if the execution's last thread did other work before it waited for the hand-over. Only then
/// does it wait at the end of the hop.
fn is_handed(hop: &Hop) -> bool {
    hop.replaces && hop.parent == Some(0) && hop.begin < hop.end
}

/// True if the objects of a wait reason are few. Connections and futexes are too many for contexts.
fn is_one_of_few(reason: WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::Interrupted
            | WaitReason::WorkQueue
            | WaitReason::Device
            | WaitReason::Ipi
            | WaitReason::UserInput
    )
}

/// Name of a kernel thread without its CPU: it is chance which CPU's thread does the work.
fn one_for_all_cpus(name: &str) -> &str {
    match name.split_once('/') {
        Some(("kworker", _)) => "kworker",
        Some((name, cpu)) if !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit()) => {
            name
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_are_named_without_their_cpu() {
        let found = [
            "kworker/0:1H",
            "ksoftirqd/12",
            "jbd2/vda1-8",
            "a/",
            "worker",
        ]
        .map(one_for_all_cpus);
        assert_eq!(
            found,
            ["kworker", "ksoftirqd", "jbd2/vda1-8", "a/", "worker"]
        );
    }
}
