//! The execution graph: what each thread did when, and what ended its waits.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{CpuKey, Head, KernelReport, Thread, ThreadKey};
use tracebraid_kernel_model::{Comm, Device, Syscall};
use tracebraid_threads::{CallClass, WaitReason};

use crate::calls::LongCall;
use crate::cause::{ActorId, Interrupt, Wake};
use crate::holders::Holders;
use crate::kept::Kept;

/// What a thread does from a time on, up to the next stretch of its time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Its beginning, in nanoseconds from the origin.
    pub begin: i64,
    /// What it does.
    pub state: State,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// That is not known.
    #[default]
    Unknown,
    /// It runs on that CPU.
    Running(u16),
    /// It would run on that CPU if that did not interrupt it.
    Interrupted(u16, Interrupt),
    /// It was switched from on that CPU, and could run.
    Preempted(u16),
    /// It was woken, and could run on that CPU.
    Runnable(u16),
    /// It waits.
    Blocked {
        /// The call that it waits in; [`Syscall::OTHER`] if none is known.
        call: Syscall,
        /// What the call is about: for a futex its place among [`Graph::futexes`], for an io_uring
        /// that of the request whose end the thread saw first among [`Graph::ring_requests`], else
        /// the descriptor.
        object: u32,
        /// What ends it.
        wake: Wake,
        /// What it waits for, as that shows.
        reason: WaitReason,
        /// It is a thread of the kernel that has no work (`TASK_IDLE`).
        is_idle: bool,
    },
    /// It has ended.
    Ended,
}

/// No object of a call.
pub const NO_OBJECT: u32 = u32::MAX;

/// A thread of the graph.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Actor {
    /// Its machine and id.
    pub key: ThreadKey,
    /// Its process, if the trace tells.
    pub pid: Option<i32>,
    /// Its last known name.
    pub name: Option<String>,
    /// The thread that made it, if that was seen.
    pub creator: Option<ActorId>,
    /// What it was called from when on, as far as that was told.
    pub names: Vec<(i64, Comm)>,
    /// The last of these names.
    pub called: Comm,
    /// When it is known first, if that is dropped.
    pub since: Option<i64>,
    /// When the last wait of those began that are dropped.
    pub waited: Option<i64>,
    /// What it does, in the order of time.
    pub line: Vec<Stretch>,
    /// Work that it took from queues, in the order of its beginnings.
    pub works: Vec<Work>,
}

/// Work that a thread does for whoever put it into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// When the thread turned to it, in nanoseconds from the origin.
    pub begin: i64,
    /// When it was queued.
    pub queued: i64,
    /// What queued it.
    pub cause: Wake,
    /// The queue.
    pub queue: Queue,
}

/// Where work waits for a thread that does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Queue {
    /// A queue of the kernel: what it is called is among [`Graph::queues`], if that was recorded.
    Kernel(u32),
    /// That of the worker threads of an io_uring.
    Ring,
}

impl Actor {
    /// When it is known first.
    pub fn begin(&self) -> Option<i64> {
        self.since
            .or(self.line.first().map(|stretch| stretch.begin))
    }

    /// The place of the stretch that is going on at a time; `None` before the first one.
    pub fn place(&self, time: i64) -> Option<usize> {
        let after = self.line.partition_point(|stretch| stretch.begin <= time);
        after.checked_sub(1)
    }

    /// What it was called at a time: what was told of it last, or else what was told first.
    pub fn name_at(&self, time: i64) -> Option<Comm> {
        let after = self.names.partition_point(|name| name.0 <= time);
        let name = self.names.get(after.saturating_sub(1));
        name.map(|(_, name)| *name)
    }

    /// The last work that it turned to before a time.
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

/// Who ran on a CPU from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupied {
    /// In nanoseconds from the origin.
    pub begin: i64,
    /// Who runs.
    pub by: Occupant,
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Occupant {
    /// That is not known.
    Unknown,
    /// Nobody.
    Idle,
    /// That thread.
    Thread(ActorId),
}

/// A request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When it was put into the device's queue, or else when its driver took it, in nanoseconds
    /// from the origin.
    pub begin: i64,
    /// When its driver took it: it was in service from then on. `begin` where that was not
    /// recorded.
    pub issued: i64,
    /// When it was done.
    pub end: i64,
    /// The thread that issued it; `None` where that was an interrupt.
    pub by: Option<ActorId>,
    /// The machine.
    pub trace: u32,
    /// The device.
    pub device: Device,
    /// Sectors of 512 bytes.
    pub sectors: u32,
}

/// A TCP segment that ended somebody's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Hash of both ends: see [`Graph::connection`].
    pub connection: u64,
    /// When it was sent, in nanoseconds from the origin, if the traces tell.
    pub sent: Option<i64>,
    /// The thread that sent it; `None` where that was an interrupt.
    pub by: Option<ActorId>,
}

/// A request of an io_uring that ended somebody's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingRequest {
    /// When it was submitted, in nanoseconds from the origin.
    pub submitted: i64,
    /// The thread that did so, if that is known.
    pub by: Option<ActorId>,
    /// What it does; see [`tracebraid_kernel_model::ring_operation`].
    pub operation: u8,
}

/// The execution graph of kernel traces.
///
/// Every thread has a time line without gaps from when it is known first; waits know what ended
/// them. Asking for the critical path of a part of it takes time in the logarithm of its size and
/// in what the path consists of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Graph {
    /// What it is about.
    pub head: Head,
    /// Before this time nothing is known: paths begin then or later.
    pub known_from: i64,
    /// Behind this time nothing is known. It may lie behind the end of the window that was asked
    /// for.
    pub known_until: i64,
    /// Traces of which nothing is known from an earlier time on: these times, by trace.
    #[serde(skip)]
    pub ends: Vec<(u32, i64)>,
    /// The threads, in the order in which they were met.
    pub actors: Vec<Actor>,
    /// The same by machine and id.
    #[serde(skip)]
    pub by_key: Holders,
    /// Who ran, by CPU in their order.
    pub cpus: Vec<(CpuKey, Vec<Occupied>)>,
    /// Requests to block devices, in the order of their ends.
    pub requests: Kept<Request>,
    /// Segments that ended waits, in the order of those.
    pub packets: Kept<Packet>,
    /// Requests of io_uring that ended waits, in the order of those.
    pub ring_requests: Kept<RingRequest>,
    /// Names of queues of work, by a number of theirs in their order.
    pub queues: Vec<(u32, String)>,
    /// Addresses of futexes.
    pub futexes: Vec<i64>,
    /// Names of interrupts, by machine and number in their order.
    pub irqs: Vec<((u32, u16), String)>,
    /// Names of block devices, by machine and number in their order.
    pub disks: Vec<((u32, Device), String)>,
    /// Both ends of connections, as text, by their hashes in their order.
    pub connections: Vec<(u64, String)>,
    /// The longest calls that were asked for.
    pub calls: Vec<LongCall>,
    /// The longest duration of a request, in nanoseconds: how far back those go that end at a time.
    pub longest_request: i64,
}

impl Graph {
    /// How many bytes it takes, but for names.
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

    /// A thread.
    pub fn actor(&self, id: ActorId) -> Option<&Actor> {
        self.actors.get(id.0 as usize)
    }

    /// All threads.
    pub fn ids(&self) -> impl Iterator<Item = (ActorId, &Actor)> {
        (0..).map(ActorId).zip(&self.actors)
    }

    /// Behind this time nothing is known of a trace.
    pub fn known_until_of(&self, trace: u32) -> i64 {
        let end = self.ends.iter().find(|end| end.0 == trace);
        end.map_or(self.known_until, |end| end.1)
    }

    /// The threads that had that id on any machine.
    pub fn with_tid(&self, tid: i32) -> impl Iterator<Item = (ActorId, &Actor)> {
        self.ids().filter(move |(_, actor)| actor.key.tid == tid)
    }

    /// The thread that had that id on that machine at a time.
    pub fn at(&self, key: ThreadKey, time: i64) -> Option<ActorId> {
        let begin = |id: ActorId| self.actor(id).and_then(Actor::begin);
        self.by_key.at(key, time, begin)
    }

    /// What a thread is called: its name and id, and the machine where there are several.
    pub fn name(&self, id: ActorId) -> String {
        let Some(actor) = self.actor(id) else {
            return "?".to_owned();
        };
        let name = actor.name.as_deref().unwrap_or("?");
        let text = format!("{name} ({})", actor.key.tid);
        self.head.of_host(actor.key.trace, text)
    }

    /// The name of a hard interrupt's handler, if it was recorded.
    pub fn irq(&self, trace: u32, number: u16) -> Option<&str> {
        found(&self.irqs, &(trace, number))
    }

    /// True if the name of a block device was recorded.
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

    /// The name of a queue of work, if it was recorded.
    pub fn queue(&self, queue: Queue) -> Option<&str> {
        match queue {
            Queue::Kernel(number) => found(&self.queues, &number),
            Queue::Ring => Some("io_uring"),
        }
    }

    /// The request to an io_uring that a wait in that call was for, if that is known.
    pub fn ring_request(&self, call: Syscall, object: u32) -> Option<&RingRequest> {
        let is_ring = !self.ring_requests.is_empty() && CallClass::of(call) == CallClass::Ring;
        is_ring.then(|| self.ring_requests.get(object as usize))?
    }

    /// Who ran on a CPU from a time on.
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

    /// Requests to a device that were going on between two times.
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

/// What a sorted list holds for a key.
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
