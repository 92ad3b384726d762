//! What the time of a path went into.

use serde::Serialize;
use tracebraid_kernel_fold::CpuKey;
use tracebraid_kernel_model::events::irq::Vector;
use tracebraid_kernel_model::{Syscall, ring_operation, softirq_name};

use crate::cause::{Interrupt, Wake};
use crate::graph::{Graph, NO_OBJECT, Occupant, State};
use crate::kinds::Kind as CallKind;
use crate::path::{Kind, Link, Path, Role, Segment};

/// What the time of a path went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A thread ran.
    Running,
    /// Something interrupted it.
    Interrupted,
    /// It was taken from its CPU.
    Preempted,
    /// It was woken, and waited for a CPU.
    Runnable,
    /// It waited for a block device.
    BlockDevice,
    /// It waited for the network.
    Network,
    /// It waited for a timer.
    Timer,
    /// It waited for somebody at a keyboard, a mouse or the like.
    UserInput,
    /// It waited for another device.
    Device,
    /// An interrupt from another processor ended the wait.
    Ipi,
    /// It waited at a futex, for a thread that could not be followed.
    Futex,
    /// It waited for a child that could not be followed.
    Child,
    /// It waited for another thread, which could not be followed.
    Thread,
    /// It waited for the kernel's own housekeeping.
    Kernel,
    /// Work waited in a queue for a thread that did it.
    WorkQueue,
    /// The execution waited for a thread that did other work.
    Queued,
    /// The time and manner of the hand-over between threads are unknown.
    UnknownHandOver,
    /// It still waited where the trace ended, or what was read of it did.
    StillWaiting,
    /// Nothing tells.
    Unknown,
}

impl Reason {
    /// All, in the order of tables.
    pub const ALL: [Reason; 19] = [
        Reason::Running,
        Reason::Interrupted,
        Reason::Preempted,
        Reason::Runnable,
        Reason::BlockDevice,
        Reason::Network,
        Reason::Timer,
        Reason::UserInput,
        Reason::Device,
        Reason::Ipi,
        Reason::Futex,
        Reason::Child,
        Reason::Thread,
        Reason::Kernel,
        Reason::WorkQueue,
        Reason::Queued,
        Reason::UnknownHandOver,
        Reason::StillWaiting,
        Reason::Unknown,
    ];

    /// Its place among all.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Running => "running",
            Reason::Interrupted => "interrupted",
            Reason::Preempted => "preempted",
            Reason::Runnable => "runnable",
            Reason::BlockDevice => "block-device",
            Reason::Network => "network",
            Reason::Timer => "timer",
            Reason::UserInput => "user-input",
            Reason::Device => "device",
            Reason::Ipi => "ipi",
            Reason::Futex => "futex",
            Reason::Child => "child",
            Reason::Thread => "thread",
            Reason::Kernel => "kernel",
            Reason::WorkQueue => "work-queue",
            Reason::Queued => "queued",
            Reason::UnknownHandOver => "unknown-hand-over",
            Reason::StillWaiting => "still-waiting",
            Reason::Unknown => "unknown",
        }
    }
}

/// Beginnings of what drivers of network devices, of disks and of input devices call their interrupts, and what
/// stands in them; the first that fits counts.
const HANDLERS: [(Reason, &[&str], &[&str]); 3] = [
    (
        Reason::Network,
        &[
            "eth", "eno", "ens", "enp", "enx", "wlan", "wlp", "wlo", "mlx", "ixgbe", "i40e", "ice-", "igb",
            "e1000", "bnx", "r8169", "ena-", "gve", "iwlwifi", "ath",
        ],
        &["-input.", "-output.", "-TxRx-", "-rx-", "-tx-"],
    ),
    (
        Reason::BlockDevice,
        &[
            "nvme", "ahci", "ata", "scsi", "mmc", "sdhci", "ufshcd", "megasas", "mpt", "virtscsi", "hpsa",
            "xen-blk", "blkif", "dasd", "aac",
        ],
        &["-req.", "-request"],
    ),
    (
        Reason::UserInput,
        &[
            "i8042",
            "kbd",
            "atkbd",
            "psmouse",
            "hid",
            "gpio_keys",
            "gpio-keys",
        ],
        &["keyboard", "mouse", "touch", "trackpoint", "elan_i2c"],
    ),
];

impl Reason {
    /// By what the handler of a hard interrupt is called.
    fn of_handler(name: &str) -> Reason {
        let fits = |(_, beginnings, parts): &&(Reason, &[&str], &[&str])| {
            beginnings.iter().any(|beginning| name.starts_with(beginning))
                || parts.iter().any(|part| name.contains(part))
        };
        HANDLERS.iter().find(fits).map_or(Reason::Device, |of| of.0)
    }

    fn of_softirq(vector: u8) -> Reason {
        match softirq_name(i64::from(vector)) {
            Some("TIMER" | "HRTIMER") => Reason::Timer,
            Some("NET_TX" | "NET_RX") => Reason::Network,
            Some("BLOCK" | "IRQ_POLL") => Reason::BlockDevice,
            Some("SCHED" | "RCU") => Reason::Kernel,
            _ => Reason::Device,
        }
    }

    fn of_vector(vector: Option<Vector>) -> Reason {
        match vector {
            Some(Vector::LocalTimer) => Reason::Timer,
            Some(
                Vector::Reschedule
                | Vector::CallFunction
                | Vector::CallFunctionSingle
                | Vector::IrqWork
                | Vector::PlatformIpi,
            ) => Reason::Ipi,
            _ => Reason::Device,
        }
    }
}

impl Graph {
    /// What a part of a path went into.
    pub fn reason(&self, path: &Path, segment: &Segment) -> Reason {
        match path.role(segment) {
            Role::Own => self.activity(path, segment),
            Role::Busy => Reason::Queued,
            Role::Unseen => Reason::UnknownHandOver,
        }
    }

    /// Activity of the thread of a part, independent of its role in the path.
    pub fn activity(&self, path: &Path, segment: &Segment) -> Reason {
        match segment.kind {
            Kind::Unknown => Reason::Unknown,
            Kind::Running(_) => Reason::Running,
            Kind::Interrupted(_) => Reason::Interrupted,
            Kind::Preempted(_) => Reason::Preempted,
            Kind::Runnable(_) => Reason::Runnable,
            Kind::Queued(_) => Reason::WorkQueue,
            Kind::Waiting { call, wake, .. } => self.waits_for(self.trace_of(path, segment), call, wake),
        }
    }

    /// The machine on which a part of a path happens.
    pub fn trace_of(&self, path: &Path, segment: &Segment) -> u32 {
        let hop = path.hops.get(segment.hop as usize);
        let actor = hop.and_then(|hop| self.actor(hop.actor));
        actor.map_or(0, |actor| actor.key.trace)
    }

    fn waits_for(&self, trace: u32, call: Syscall, wake: Wake) -> Reason {
        match wake {
            Wake::Unknown => Reason::Unknown,
            Wake::StillWaiting => Reason::StillWaiting,
            Wake::Timer => Reason::Timer,
            Wake::Request(_) => Reason::BlockDevice,
            Wake::Packet(_) => Reason::Network,
            Wake::Interrupt(Interrupt::Irq(number)) => {
                self.irq(trace, number).map_or(Reason::Device, Reason::of_handler)
            }
            Wake::Interrupt(Interrupt::Softirq(vector)) => Reason::of_softirq(vector),
            Wake::Interrupt(vector @ Interrupt::Vector(_)) => Reason::of_vector(vector.vector()),
            Wake::Thread(_) => match CallKind::of(call) {
                CallKind::Futex => Reason::Futex,
                CallKind::Child => Reason::Child,
                _ => Reason::Thread,
            },
        }
    }

    /// What a part of a path went into, more exactly: which device, connection, interrupt or thread; nothing where there
    /// is no more to say.
    pub fn detail(&self, path: &Path, segment: &Segment) -> String {
        match path.role(segment) {
            Role::Own => self.own_detail(path, segment),
            Role::Busy | Role::Unseen => self.meanwhile(path, segment, &self.own_detail(path, segment)),
        }
    }

    /// Activity while an execution waits for a thread: the thread, and its state.
    pub(crate) fn meanwhile(&self, path: &Path, segment: &Segment, detail: &str) -> String {
        let mut way = path.way(segment.hop);
        let taker = way.find(|hop| matches!(hop.link, Link::Busy | Link::Unseen));
        let name = taker.map(|hop| self.name(hop.actor)).unwrap_or_default();
        let activity = self.activity(path, segment).name();
        match detail {
            "" => format!("{name}, {activity}"),
            detail => format!("{name}, {activity}: {detail}"),
        }
    }

    fn own_detail(&self, path: &Path, segment: &Segment) -> String {
        let trace = self.trace_of(path, segment);
        match segment.kind {
            Kind::Unknown => String::new(),
            Kind::Running(cpu) => format!("CPU {cpu}"),
            Kind::Interrupted(by) => self.interrupt(trace, by),
            Kind::Preempted(by) => self.preempted_by(by),
            Kind::Runnable(by) => self.runnable_behind(by),
            Kind::Queued(queue) => self.queue(queue).unwrap_or_default().to_owned(),
            Kind::Waiting { call, object, wake } => self.wait(trace, (call, object), wake),
        }
    }

    /// What a thread's time goes into that is in such a state; nothing once it has ended.
    pub fn reason_of(&self, trace: u32, state: State) -> Option<Reason> {
        Some(match state {
            State::Unknown => Reason::Unknown,
            State::Running(_) => Reason::Running,
            State::Interrupted(..) => Reason::Interrupted,
            State::Preempted(_) => Reason::Preempted,
            State::Runnable(_) => Reason::Runnable,
            State::Blocked { call, wake, .. } => self.waits_for(trace, call, wake),
            State::Ended => return None,
        })
    }

    /// As [`Graph::detail`], but more exact. `begin` is the beginning of the stretch: for a thread without a
    /// CPU, the thread that had that CPU then is named, though others may have it later in the stretch.
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

    /// A wait: what ends it, and the call that it is in.
    fn wait(&self, trace: u32, (call, object): (Syscall, u32), wake: Wake) -> String {
        let parts = [self.wake(trace, wake), self.call(call, object)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// What exactly the time of a part of a path went into, without the call and without a thread: a device, a queue, an
    /// interrupt; nothing if that is not known.
    pub fn what(&self, path: &Path, segment: &Segment) -> String {
        let trace = self.trace_of(path, segment);
        match segment.kind {
            Kind::Interrupted(by) => self.interrupt(trace, by),
            Kind::Queued(queue) => self.queue(queue).unwrap_or_default().to_owned(),
            Kind::Waiting { wake, .. } if !matches!(wake, Wake::Thread(_)) => self.wake(trace, wake),
            _ => String::new(),
        }
    }

    /// What ends a wait, in words.
    fn wake(&self, trace: u32, wake: Wake) -> String {
        match wake {
            Wake::Unknown | Wake::StillWaiting | Wake::Timer => String::new(),
            Wake::Thread(actor) => self.name(actor),
            Wake::Interrupt(interrupt) => self.interrupt(trace, interrupt),
            Wake::Request(place) => match self.requests.get(place as usize) {
                Some(request) => self.disk(request.trace, request.device),
                None => String::new(),
            },
            Wake::Packet(place) => {
                let packet = self.packets.get(place as usize);
                let connection = packet.and_then(|packet| self.connection(packet.connection));
                connection.unwrap_or_default().to_owned()
            }
        }
    }

    /// An interrupt, in words.
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
            by => format!("behind {}", self.occupant(by)),
        }
    }

    /// The thread that has a CPU at a time.
    fn occupant_at(&self, trace: u32, cpu: u16, time: i64) -> Occupant {
        let cpu = u32::from(cpu);
        let first = self.occupied(CpuKey { trace, cpu }, time).first();
        first
            .filter(|first| first.begin <= time)
            .map_or(Occupant::Unknown, |first| first.by)
    }

    /// Who has a CPU, in words.
    fn occupant(&self, by: Occupant) -> String {
        match by {
            Occupant::Unknown => "something unknown".to_owned(),
            Occupant::Idle => "nobody".to_owned(),
            Occupant::Thread(actor) => self.name(actor),
        }
    }

    /// The call that something waits in, in words; nothing if none is known.
    pub fn call(&self, call: Syscall, object: u32) -> String {
        if call == Syscall::OTHER {
            return String::new();
        }
        let name = call.user_name();
        if CallKind::of(call) == CallKind::Futex
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

    /// How a path goes over to another thread, in words.
    pub fn link(&self, link: Link) -> String {
        match link {
            Link::Start => String::new(),
            Link::Makes => "made by".to_owned(),
            Link::Passes => "handed over by".to_owned(),
            Link::Busy => "queued for other work of".to_owned(),
            Link::Unseen => "unknown hand-over, meanwhile".to_owned(),
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
                Some(request) => format!("{}, requested by", self.disk(request.trace, request.device)),
                None => "requested by".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_tell_what_they_are_for() {
        for (name, expected) in [
            ("virtio2-input.0", Reason::Network),
            ("virtio2-output.1", Reason::Network),
            ("virtio4-req.0", Reason::BlockDevice),
            ("nvme0q3", Reason::BlockDevice),
            ("eth0-TxRx-3", Reason::Network),
            ("enp3s0", Reason::Network),
            ("i8042", Reason::UserInput),
            ("elan_i2c", Reason::UserInput),
            ("ttyS0", Reason::Device),
            ("snd_hda_intel:card0", Reason::Device),
        ] {
            assert_eq!(Reason::of_handler(name), expected, "{name}");
        }
        assert_eq!(Reason::of_softirq(3), Reason::Network);
        assert_eq!(Reason::of_softirq(1), Reason::Timer);
        assert_eq!(Reason::of_softirq(4), Reason::BlockDevice);
        assert_eq!(Reason::of_softirq(9), Reason::Kernel);
        assert_eq!(Reason::of_vector(Some(Vector::Reschedule)), Reason::Ipi);
    }
}
