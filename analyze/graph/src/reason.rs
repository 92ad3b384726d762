//! Reasons and descriptions of the time on a path.

use tracebraid_follow::CpuKey;
use tracebraid_kernel_model::{Syscall, ring_operation};
use tracebraid_threads::{CallClass, DeviceClass, WaitReason, WakeSource};

use crate::cause::{Interrupt, Wake};
use crate::graph::{Graph, NO_OBJECT, Occupant, State};
use crate::path::{Link, Path, Role, Segment, SegmentKind};

impl Graph {
    /// The reason of a segment's time.
    pub fn reason(&self, path: &Path, segment: &Segment) -> WaitReason {
        match path.role(segment) {
            Role::Own => self.activity(segment),
            Role::Busy => WaitReason::Queued,
            Role::Unseen => WaitReason::UnknownHandOver,
            Role::Lwp => WaitReason::Lwp,
        }
    }

    /// Activity of the thread of a segment, independent of its role in the path.
    pub fn activity(&self, segment: &Segment) -> WaitReason {
        match segment.kind {
            SegmentKind::Unknown => WaitReason::Unknown,
            SegmentKind::Running(_) => WaitReason::Running,
            SegmentKind::Interrupted(_) => WaitReason::Interrupted,
            SegmentKind::Preempted(_) => WaitReason::Preempted,
            SegmentKind::Runnable(_) => WaitReason::Runnable,
            SegmentKind::Ready => WaitReason::Lwp,
            SegmentKind::Queued(_) => WaitReason::WorkQueue,
            SegmentKind::Waiting { reason, .. } => reason,
            SegmentKind::OnDevice(_) => WaitReason::Device,
        }
    }

    /// The machine of a segment.
    pub fn trace_of(&self, path: &Path, segment: &Segment) -> u32 {
        let hop = path.hops.get(segment.hop as usize);
        let actor = hop.and_then(|hop| self.actor(hop.actor));
        actor.map_or(0, |actor| actor.key.trace)
    }

    /// The reason of a wait with that cause, where no thread state records the reason: for queued
    /// work.
    pub(crate) fn reason_of_cause(&self, trace: u32, cause: Wake) -> WaitReason {
        match cause {
            Wake::Unknown => WaitReason::Unknown,
            Wake::StillWaiting => WaitReason::StillWaiting,
            Wake::Timer => WaitReason::Timer,
            Wake::Request(_) => WaitReason::BlockDevice,
            Wake::Command(_) => WaitReason::Device,
            Wake::Packet(_) => WaitReason::Network,
            Wake::Thread(_) => WaitReason::Thread,
            Wake::Interrupt(interrupt) => {
                let name = match interrupt {
                    Interrupt::Irq(number) => self.irq(trace, number),
                    _ => None,
                };
                let device = name.map_or(DeviceClass::Other, DeviceClass::of_handler);
                WaitReason::of_wake(None, WakeSource::Interrupt(interrupt, device), None)
            }
        }
    }

    /// Details of a segment: the device, connection, interrupt or thread; else empty.
    pub fn detail(&self, path: &Path, segment: &Segment) -> String {
        match path.role(segment) {
            Role::Own => self.own_detail(path, segment),
            Role::Busy | Role::Unseen | Role::Lwp => {
                self.meanwhile(path, segment, &self.own_detail(path, segment))
            }
        }
    }

    /// Activity while an execution waits for a thread or for its LWP: the thread, and its state.
    pub(crate) fn meanwhile(&self, path: &Path, segment: &Segment, detail: &str) -> String {
        let mut way = path.way(segment.hop);
        let is_other = |link: Link| matches!(link, Link::Busy | Link::Unseen | Link::Lwp);
        let taker = way.find(|hop| is_other(hop.link));
        let name = taker.map(|hop| self.name(hop.actor)).unwrap_or_default();
        let activity = self.activity(segment).name();
        match detail {
            "" => format!("{name}, {activity}"),
            detail => format!("{name}, {activity}: {detail}"),
        }
    }

    fn own_detail(&self, path: &Path, segment: &Segment) -> String {
        let trace = self.trace_of(path, segment);
        match segment.kind {
            SegmentKind::Unknown | SegmentKind::Ready => String::new(),
            SegmentKind::Running(cpu) => format!("CPU {cpu}"),
            SegmentKind::Interrupted(by) => self.interrupt(trace, by),
            SegmentKind::Preempted(by) => self.preempted_by(by),
            SegmentKind::Runnable(by) => self.runnable_behind(by),
            SegmentKind::Queued(queue) => self.queue(queue).unwrap_or_default().to_owned(),
            SegmentKind::Waiting {
                call, object, wake, ..
            } => self.wait(trace, (call, object), wake),
            SegmentKind::OnDevice(activity) => self.devices.exact_activity(activity),
        }
    }

    /// The reason of time in a state; `None` after the end of the thread.
    pub fn reason_of(&self, state: State) -> Option<WaitReason> {
        Some(match state {
            State::Unknown => WaitReason::Unknown,
            State::Running(_) => WaitReason::Running,
            State::Interrupted(..) => WaitReason::Interrupted,
            State::Preempted(_) => WaitReason::Preempted,
            State::Runnable(_) => WaitReason::Runnable,
            State::Ready => WaitReason::Lwp,
            State::Blocked { reason, .. } => reason,
            State::Ended => return None,
        })
    }

    /// As [`Graph::detail`], but more exact. `begin` is the start of the stretch: for a thread
    /// without a CPU, the occupant of that CPU at this time is named, though others may follow
    /// within the stretch.
    pub fn detail_of(&self, trace: u32, state: State, begin: i64) -> String {
        match state {
            State::Interrupted(_, by) => self.interrupt(trace, by),
            State::Preempted(cpu) => self.preempted_by(self.occupant_at(trace, cpu, begin)),
            State::Runnable(cpu) => self.runnable_behind(self.occupant_at(trace, cpu, begin)),
            State::Blocked {
                call, object, wake, ..
            } => self.wait(trace, (call, object), wake),
            _ => String::new(),
        }
    }

    /// A wait as text: its cause and its call.
    fn wait(&self, trace: u32, (call, object): (Syscall, u32), wake: Wake) -> String {
        // Which futex a driver uses for a command says nothing.
        if let Wake::Command(_) = wake {
            return self.wake(trace, wake);
        }
        let parts = [self.wake(trace, wake), self.call(call, object)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// The device, queue or interrupt of a segment, without call, thread and process; else empty.
    pub fn what(&self, path: &Path, segment: &Segment) -> String {
        let trace = self.trace_of(path, segment);
        match segment.kind {
            SegmentKind::Interrupted(by) => self.interrupt(trace, by),
            SegmentKind::Queued(queue) => self.queue(queue).unwrap_or_default().to_owned(),
            SegmentKind::OnDevice(activity)
            | SegmentKind::Waiting {
                wake: Wake::Command(activity),
                ..
            } => self.devices.activity(activity),
            SegmentKind::Waiting { wake, .. } if !matches!(wake, Wake::Thread(_)) => {
                self.wake(trace, wake)
            }
            _ => String::new(),
        }
    }

    /// The cause of the end of a wait, as text.
    fn wake(&self, trace: u32, wake: Wake) -> String {
        match wake {
            Wake::Unknown | Wake::StillWaiting | Wake::Timer => String::new(),
            Wake::Thread(actor) => self.name(actor),
            Wake::Interrupt(interrupt) => self.interrupt(trace, interrupt),
            Wake::Request(place) => match self.requests.get(place as usize) {
                Some(request) => self.disk(request.trace, request.device),
                None => String::new(),
            },
            Wake::Command(activity) => self.devices.exact_activity(activity),
            Wake::Packet(place) => {
                let packet = self.packets.get(place as usize);
                let connection = packet.and_then(|packet| self.connection(packet.connection));
                connection.unwrap_or_default().to_owned()
            }
        }
    }

    /// An interrupt as text.
    fn interrupt(&self, trace: u32, interrupt: Interrupt) -> String {
        let name = match interrupt {
            Interrupt::Irq(number) => self.irq(trace, number),
            _ => None,
        };
        match name {
            Some(name) => format!("{} {name}", interrupt.label()),
            None => interrupt.label(),
        }
    }

    fn preempted_by(&self, by: Occupant) -> String {
        format!("by {}", self.occupant(by))
    }

    fn runnable_behind(&self, by: Occupant) -> String {
        match by {
            Occupant::Idle => "the CPU was idle".to_owned(),
            by => format!("the CPU ran {}", self.occupant(by)),
        }
    }

    /// The occupant of a CPU at a time.
    fn occupant_at(&self, trace: u32, cpu: u16, time: i64) -> Occupant {
        let cpu = u32::from(cpu);
        let first = self.occupied(CpuKey { trace, cpu }, time).first();
        first
            .filter(|first| first.begin <= time)
            .map_or(Occupant::Unknown, |first| first.by)
    }

    /// An occupant as text.
    fn occupant(&self, by: Occupant) -> String {
        match by {
            Occupant::Unknown => "an unknown thread".to_owned(),
            Occupant::Idle => "the idle task".to_owned(),
            Occupant::Thread(actor) => self.name(actor),
        }
    }

    /// A call and its object as text; empty if unknown.
    pub fn call(&self, call: Syscall, object: u32) -> String {
        if call == Syscall::OTHER {
            return String::new();
        }
        let name = call.user_name();
        if CallClass::of(call) == CallClass::Futex
            && let Some(address) = self.futexes.get(object as usize)
        {
            return format!("{name} {address:#x}");
        }
        if let Some(request) = self.ring_request(call, object) {
            return match ring_operation(request.operation) {
                Some(operation) => format!("{name} {operation}"),
                None => name.to_owned(),
            };
        }
        match object {
            NO_OBJECT => name.to_owned(),
            descriptor => format!("{name} fd {descriptor}"),
        }
    }

    /// The relation between two hops as text.
    pub fn link(&self, link: Link) -> String {
        match link {
            Link::Start => String::new(),
            Link::Makes => "made by".to_owned(),
            Link::Passes => "handed over by".to_owned(),
            Link::Busy => "queued for other work of".to_owned(),
            Link::Unseen => "unknown hand-over, meanwhile".to_owned(),
            Link::Lwp => "LWP used by".to_owned(),
            Link::Submits(place) => match self.ring_requests.get(place as usize) {
                Some(request) => match ring_operation(request.operation) {
                    Some(operation) => format!("io_uring {operation}, submitted by"),
                    None => "io_uring, submitted by".to_owned(),
                },
                None => "submitted by".to_owned(),
            },
            Link::Queues(queue) => match self.queue(queue) {
                Some(queue) => format!("work in {queue}, queued by"),
                None => "work, queued by".to_owned(),
            },
            Link::Wakes { call, object } => match self.call(call, object) {
                call if call.is_empty() => "woken by".to_owned(),
                call => format!("{call}, woken by"),
            },
            Link::Sends(place) => {
                let packet = self.packets.get(place as usize);
                let connection = packet.and_then(|packet| self.connection(packet.connection));
                format!("network {}, sent by", connection.unwrap_or_default())
            }
            Link::Issues(place) => match self.requests.get(place as usize) {
                Some(request) => {
                    format!("{}, requested by", self.disk(request.trace, request.device))
                }
                None => "requested by".to_owned(),
            },
        }
    }
}
