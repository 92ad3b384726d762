//! The execution graph: the activity of each thread over time, and the causes that ended its waits.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Head, KernelReport, Thread, ThreadKey};
use tracebraid_kernel_model::{Comm, Device, Syscall};
use tracebraid_threads::{CallClass, WaitReason};

use crate::calls::LongCall;
use crate::cause::{ActorId, Interrupt, Wake};
use crate::device_times::DeviceTimes;
use crate::holders::Holders;
use crate::kept::Kept;

/// A state of a thread, up to the next stretch of its time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Start, in nanoseconds from the origin.
    pub begin: i64,
    /// State of the thread in this stretch.
    pub state: State,
}

/// State of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Not recorded.
    #[default]
    Unknown,
    /// Runs on that CPU.
    Running(u16),
    /// Would run on that CPU, which an interrupt occupies.
    Interrupted(u16, Interrupt),
    /// Left that CPU while it could run.
    Preempted(u16),
    /// Was woken, and could run on that CPU.
    Runnable(u16),
    /// A user-level thread that could run, without an LWP.
    Ready,
    /// Waits.
    Blocked {
        /// Call that contains the wait; [`Syscall::OTHER`] if unknown.
        call: Syscall,
        /// Object of the call: for a futex its index in [`Graph::futexes`]; for an io_uring the
        /// index in [`Graph::ring_requests`] of the request whose end the thread saw first; else
        /// the descriptor.
        object: u32,
        /// Cause that ends the wait.
        wake: Wake,
        /// Reason of the wait, derived from its cause.
        reason: WaitReason,
        /// True for a kernel thread without work (`TASK_IDLE`).
        is_idle: bool,
    },
    /// The thread has ended.
    Ended,
}

/// Stands for a call without an object.
pub const NO_OBJECT: u32 = u32::MAX;

/// A thread of the graph.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Actor {
    /// Machine and thread id.
    pub key: ThreadKey,
    /// Process, if the trace contains it.
    pub pid: Option<i32>,
    /// Last known name.
    pub name: Option<String>,
    /// The thread that created this one, if the creation was recorded.
    pub creator: Option<ActorId>,
    /// Names with the times from which they are valid, as far as recorded.
    pub names: Vec<(i64, Comm)>,
    /// The last of `names`.
    pub called: Comm,
    /// First time at which the thread is known, if that part of the time line was dropped.
    pub since: Option<i64>,
    /// Start of the last dropped wait.
    pub waited: Option<i64>,
    /// Stretches in the order of time.
    pub line: Vec<Stretch>,
    /// Work that the thread took from queues, by time of begin.
    pub works: Vec<Work>,
}

/// Work that a thread does for the thread or interrupt that queued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// When the thread began the work, in nanoseconds from the origin.
    pub begin: i64,
    /// When the work was queued.
    pub queued: i64,
    /// The thread or interrupt that queued it.
    pub cause: Wake,
    /// The queue that contained it.
    pub queue: Queue,
}

/// A queue in which work waits for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Queue {
    /// A workqueue of the kernel; its name is in [`Graph::queues`], if it was recorded.
    Kernel(u32),
    /// The queue of the worker threads of an io_uring.
    Ring,
}

impl Actor {
    /// First time at which the thread is known.
    pub fn begin(&self) -> Option<i64> {
        self.since
            .or(self.line.first().map(|stretch| stretch.begin))
    }

    /// Index of the stretch at a time; `None` before the first stretch.
    pub fn place(&self, time: i64) -> Option<usize> {
        let after = self.line.partition_point(|stretch| stretch.begin <= time);
        after.checked_sub(1)
    }

    /// Name at a time: the last one recorded by then, else the first.
    pub fn name_at(&self, time: i64) -> Option<Comm> {
        let after = self.names.partition_point(|name| name.0 <= time);
        let name = self.names.get(after.saturating_sub(1));
        name.map(|(_, name)| *name)
    }

    /// The last work that the thread began before a time.
    pub fn work(&self, time: i64) -> Option<&Work> {
        let after = self.works.partition_point(|work| work.begin < time);
        self.works.get(after.checked_sub(1)?)
    }

    /// The thread as reports show it.
    pub fn thread(&self) -> Thread {
        Thread {
            trace: self.key.trace,
            tid: Some(self.key.tid),
            pid: self.pid,
            name: self.name.clone(),
        }
    }
}

/// The occupant of a CPU from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupied {
    /// In nanoseconds from the origin.
    pub begin: i64,
    /// Occupant from then on.
    pub by: Occupant,
}

/// Occupant of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Occupant {
    /// Not recorded.
    Unknown,
    /// The idle task.
    Idle,
    /// A thread other than the idle task.
    Thread(ActorId),
}

/// A request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When the request was queued, or, if that was not recorded, when the driver took it, in
    /// nanoseconds from the origin.
    pub begin: i64,
    /// When the driver took the request and its service began; `begin` if that was not recorded.
    pub issued: i64,
    /// When the request was completed.
    pub end: i64,
    /// The thread that issued the request; `None` if an interrupt did.
    pub by: Option<ActorId>,
    /// Index of the machine.
    pub trace: u32,
    /// The block device.
    pub device: Device,
    /// Size in sectors of 512 bytes.
    pub sectors: u32,
}

/// A TCP segment that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Hash of both ends; see [`Graph::connection`].
    pub connection: u64,
    /// When the segment was sent, in nanoseconds from the origin, if the traces contain that.
    pub sent: Option<i64>,
    /// The thread that sent the segment; `None` if an interrupt did.
    pub by: Option<ActorId>,
}

/// A request of an io_uring that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingRequest {
    /// When the request was submitted, in nanoseconds from the origin.
    pub submitted: i64,
    /// The thread that submitted the request, if known.
    pub by: Option<ActorId>,
    /// Operation code; see [`tracebraid_kernel_model::ring_operation`].
    pub operation: u8,
}

/// The execution graph of kernel traces.
///
/// Every thread has a time line without gaps from the first time at which it is known; waits refer
/// to their causes. The cost of a critical path is linear in the length of the path and logarithmic
/// in the size of the graph.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Graph {
    /// The traces, and the part of them that was analysed.
    pub head: Head,
    /// Paths begin at this time or later; earlier states are unknown.
    pub known_from: i64,
    /// States are unknown after this time, which may lie past the end of the requested window.
    pub known_until: i64,
    /// Traces that end earlier than `known_until`, with the times at which they end.
    #[serde(skip)]
    pub ends: Vec<(u32, i64)>,
    /// Threads in the order of first occurrence.
    pub actors: Vec<Actor>,
    /// Holders of thread ids, by machine and id.
    #[serde(skip)]
    pub by_key: Holders,
    /// Occupants by CPU, in the order of CPUs.
    pub cpus: Vec<(CpuKey, Vec<Occupied>)>,
    /// Requests to block devices, by time of completion.
    pub requests: Kept<Request>,
    /// Segments that ended waits, by the time of these wake-ups.
    pub packets: Kept<Packet>,
    /// Requests of io_uring that ended waits, by the time of these wake-ups.
    pub ring_requests: Kept<RingRequest>,
    /// Names of work queues by number, ascending.
    pub queues: Vec<(u32, String)>,
    /// Addresses of futexes.
    pub futexes: Vec<i64>,
    /// Names of interrupts by machine and number, ascending.
    pub irqs: Vec<((u32, u16), String)>,
    /// Names of block devices by machine and number, ascending.
    pub disks: Vec<((u32, Device), String)>,
    /// Names of user-level threads by machine and id, ascending, as far as they are longer than
    /// those of the kernel's threads can be.
    pub user_threads: Vec<((u32, i32), String)>,
    /// Both ends of each connection as text, by hash, ascending.
    pub connections: Vec<(u64, String)>,
    /// Commands of devices, and waits for them, by which paths divide the waits of threads.
    #[serde(skip)]
    pub devices: Arc<DeviceTimes>,
    /// The longest system calls that the options request.
    pub calls: Vec<LongCall>,
    /// Longest duration of a request, in nanoseconds: the maximum distance from the end of a
    /// request to its start.
    pub longest_request: i64,
}

impl Graph {
    /// Memory of the graph in bytes, without names.
    pub fn bytes(&self) -> usize {
        let of_actor = |actor: &Actor| {
            size_of_val(&*actor.line) + size_of_val(&*actor.works) + size_of::<Actor>()
        };
        let actors: usize = self.actors.iter().map(of_actor).sum();
        let cpus: usize = self.cpus.iter().map(|(_, line)| size_of_val(&**line)).sum();
        let lists = [
            size_of_val(self.requests.recent()),
            size_of_val(self.packets.recent()),
            size_of_val(self.ring_requests.recent()),
            size_of_val(&*self.futexes),
            size_of_val(&*self.calls),
        ];
        actors + cpus + lists.iter().sum::<usize>()
    }

    /// A thread by its id in the graph.
    pub fn actor(&self, id: ActorId) -> Option<&Actor> {
        self.actors.get(id.0 as usize)
    }

    /// All threads with their ids in the graph.
    pub fn ids(&self) -> impl Iterator<Item = (ActorId, &Actor)> {
        (0..).map(ActorId).zip(&self.actors)
    }

    /// The time after which the states of a trace are unknown.
    pub fn known_until_of(&self, trace: u32) -> i64 {
        let end = self.ends.iter().find(|end| end.0 == trace);
        end.map_or(self.known_until, |end| end.1)
    }

    /// The threads that had a thread id on any machine.
    pub fn with_tid(&self, tid: i32) -> impl Iterator<Item = (ActorId, &Actor)> {
        self.ids().filter(move |(_, actor)| actor.key.tid == tid)
    }

    /// The thread that had a thread id on a machine at a time.
    pub fn at(&self, key: ThreadKey, time: i64) -> Option<ActorId> {
        let begin = |id: ActorId| self.actor(id).and_then(Actor::begin);
        self.by_key.at(key, time, begin)
    }

    /// Last known name of a thread.
    pub fn last_name<'g>(&'g self, actor: &'g Actor) -> Option<&'g str> {
        let of_level = found(&self.user_threads, &(actor.key.trace, actor.key.tid));
        of_level.or(actor.name.as_deref())
    }

    /// Name of a thread at a time: the last one recorded by then, else the first; else the last
    /// known one.
    pub fn name_at(&self, actor: &Actor, time: i64) -> Option<String> {
        let of_level = found(&self.user_threads, &(actor.key.trace, actor.key.tid));
        let then = || actor.name_at(time).map(|name| name.text());
        let name = of_level.map(str::to_owned).or_else(then);
        name.or_else(|| actor.name.clone())
    }

    /// A thread as reports show it.
    pub fn thread(&self, id: ActorId) -> Thread {
        let shown = |actor: &Actor| Thread {
            name: self.last_name(actor).map(str::to_owned),
            ..actor.thread()
        };
        self.actor(id).map(shown).unwrap_or_default()
    }

    /// Name and id of a thread, and its machine if there are several.
    pub fn name(&self, id: ActorId) -> String {
        let Some(actor) = self.actor(id) else {
            return "?".to_owned();
        };
        let name = self.last_name(actor).unwrap_or("?");
        let text = format!("{name} ({})", actor.key.tid);
        self.head.of_host(actor.key.trace, text)
    }

    /// The name of a hard interrupt's handler, if it was recorded.
    pub fn irq(&self, trace: u32, number: u16) -> Option<&str> {
        found(&self.irqs, &(trace, number))
    }

    pub(crate) fn has_disk(&self, trace: u32, device: Device) -> bool {
        found(&self.disks, &(trace, device)).is_some()
    }

    /// The name of a block device; see [`Device::name`].
    pub fn disk(&self, trace: u32, device: Device) -> String {
        device.name(found(&self.disks, &(trace, device)))
    }

    /// Both ends of a connection: the sender's and the receiver's address and port.
    pub fn connection(&self, hash: u64) -> Option<&str> {
        found(&self.connections, &hash)
    }

    /// The name of a work queue, if it was recorded.
    pub fn queue(&self, queue: Queue) -> Option<&str> {
        match queue {
            Queue::Kernel(number) => found(&self.queues, &number),
            Queue::Ring => Some("io_uring"),
        }
    }

    /// The io_uring request that a wait in that call was for, if known.
    pub fn ring_request(&self, call: Syscall, object: u32) -> Option<&RingRequest> {
        let is_ring = !self.ring_requests.is_empty() && CallClass::of(call) == CallClass::Ring;
        is_ring.then(|| self.ring_requests.get(object as usize))?
    }

    /// Occupants of a CPU from a time on.
    pub fn occupied(&self, cpu: CpuKey, from: i64) -> &[Occupied] {
        let Ok(at) = self.cpus.binary_search_by_key(&cpu, |of| of.0) else {
            return &[];
        };
        let Some((_, line)) = self.cpus.get(at) else {
            return &[];
        };
        let after = line.partition_point(|occupied| occupied.begin <= from);
        line.get(after.saturating_sub(1)..).unwrap_or_default()
    }

    /// Requests to a device that were in progress between two times.
    pub fn requests(
        &self,
        trace: u32,
        device: Device,
        (begin, end): (i64, i64),
    ) -> impl Iterator<Item = &Request> {
        let done = self.requests.recent();
        let from = done.partition_point(|request| request.end <= begin);
        let latest = end.saturating_add(self.longest_request);
        let rest = done.get(from..).unwrap_or_default().iter();
        rest.take_while(move |request| request.end <= latest)
            .filter(move |request| {
                request.begin < end && request.device == device && request.trace == trace
            })
    }
}

/// The value of a key in a sorted list.
fn found<'g, K: Ord>(list: &'g [(K, String)], key: &K) -> Option<&'g str> {
    let at = list.binary_search_by(|(of, _)| of.cmp(key)).ok()?;
    list.get(at).map(|(_, name)| name.as_str())
}

impl KernelReport for Graph {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        self.actors.is_empty()
    }

    fn truncate(&mut self, rows: usize) {
        self.calls.truncate(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_compact() {
        assert!(size_of::<Stretch>() <= 24, "{}", size_of::<Stretch>());
        assert!(size_of::<Occupied>() <= 16, "{}", size_of::<Occupied>());
    }
}
