//! Parameters of a generated recording.

/// Parameters of a generated recording of two schedulers.
#[derive(Clone, Copy, Debug)]
pub struct LevelShape {
    pub cpus: usize,
    /// Processes with user-level threads.
    pub processes: usize,
    /// LWPs of each process at the begin.
    pub lwps: usize,
    /// Greatest number of live user-level threads of each process.
    pub ults: usize,
    /// Kernel threads of other processes, which take CPUs from LWPs.
    pub others: usize,
    pub steps: u64,
    /// Share of steps that take no time, in thousandths.
    pub ties: u64,
    /// Greatest difference, in nanoseconds, between the time of a user event and its recorded time.
    pub clock_error: u64,
    /// Share of packets that are lost and counted, in thousandths.
    pub lost_kernel_packets: u64,
    pub lost_user_packets: u64,
    /// Share of lost packets of the super-trace, in thousandths; if not 0, it differs from the
    /// truth.
    pub lost_super_packets: u64,
    /// Steps that are not recorded, at the begin.
    pub unrecorded_steps: u64,
    /// The first user event of each process after unrecorded steps follows a snapshot of its
    /// user-level threads.
    pub snapshot: bool,
    /// All LWPs of a process record into one stream, with their id in each record.
    pub shares_stream: bool,
    /// Kernel events have the names that perf and ftrace write.
    pub tracepoint_names: bool,
    /// System calls are recorded.
    pub syscalls: bool,
    /// Size of a packet in bytes.
    pub packet: usize,
}

impl LevelShape {
    /// All events are recorded; many have equal times.
    pub const PLAIN: LevelShape = LevelShape {
        cpus: 3,
        processes: 2,
        lwps: 3,
        ults: 9,
        others: 3,
        steps: 6000,
        ties: 400,
        clock_error: 0,
        lost_kernel_packets: 0,
        lost_user_packets: 0,
        lost_super_packets: 0,
        unrecorded_steps: 0,
        snapshot: false,
        shares_stream: false,
        tracepoint_names: false,
        syscalls: true,
        packet: 1200,
    };

    /// Shapes with one peculiarity each, then with several.
    pub fn all() -> Vec<(&'static str, LevelShape)> {
        let with = |change: fn(&mut LevelShape)| {
            let mut shape = LevelShape::PLAIN;
            change(&mut shape);
            shape
        };
        vec![
            ("plain", LevelShape::PLAIN),
            (
                "names of tracepoints",
                with(|shape| shape.tracepoint_names = true),
            ),
            ("clock error", with(|shape| shape.clock_error = 40)),
            (
                "lost kernel events",
                with(|shape| {
                    shape.lost_kernel_packets = 60;
                    // The system call or interrupt that decides the order of ties may be lost.
                    shape.ties = 0;
                }),
            ),
            (
                "lost user events",
                with(|shape| shape.lost_user_packets = 60),
            ),
            (
                "lost user events of several LWPs",
                with(|shape| (shape.lost_user_packets, shape.shares_stream) = (60, true)),
            ),
            (
                "begins in the middle",
                with(|shape| shape.unrecorded_steps = 3000),
            ),
            (
                "begins with a snapshot",
                with(LevelShape::begin_with_snapshot),
            ),
            ("scheduling only", with(|shape| shape.syscalls = false)),
            (
                "many threads",
                with(|shape| {
                    (shape.cpus, shape.lwps, shape.ults, shape.others) = (4, 8, 300, 6);
                    shape.steps *= 2;
                }),
            ),
            (
                "few threads",
                with(|shape| {
                    (shape.cpus, shape.lwps, shape.ults, shape.others) = (1, 1, 3, 1);
                    shape.processes = 1;
                }),
            ),
            (
                "error, losses, snapshot",
                with(|shape| {
                    shape.begin_with_snapshot();
                    (shape.clock_error, shape.lost_user_packets) = (25, 25);
                }),
            ),
        ]
    }

    fn begin_with_snapshot(&mut self) {
        (self.unrecorded_steps, self.snapshot) = (3000, true);
    }
}
