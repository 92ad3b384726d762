//! A made-up program: its calls and commands, and the clock of its device.

use tracebraid_testkit::rng::Rng;

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) thread: usize,
    /// CPUs at the begin and at the end of the call.
    pub(crate) cpus: [usize; 2],
    /// Times of the host.
    pub(crate) entry: u64,
    pub(crate) exit: u64,
    /// Time at which the completion is recorded.
    pub(crate) recorded: u64,
    /// False for a command that is not complete at the end.
    pub(crate) is_recorded: bool,
    pub(crate) queue: u64,
    pub(crate) event: u64,
    /// Handle of a kernel; `None` for a transfer.
    pub(crate) kernel: Option<u64>,
    pub(crate) kernel_name: String,
    pub(crate) bytes: u64,
    pub(crate) is_read: bool,
    /// Times of the device.
    pub(crate) times: [u64; 4],
    /// When the event is recorded that times the command, as THAPI does; then the end of the call
    /// does not have it if the program does not want it.
    pub(crate) profiled: Option<u64>,
    pub(crate) is_wanted: bool,
    /// The callback comes on the thread that enqueues.
    pub(crate) is_own_thread: bool,
    /// An event of the program that the command waits for, and when the program completes it.
    pub(crate) signal: Option<(u64, u64)>,
}

impl Command {
    pub(crate) fn function(&self) -> &'static str {
        match (self.kernel, self.is_read) {
            (Some(_), _) => "clEnqueueNDRangeKernel",
            (None, true) => "clEnqueueReadBuffer",
            (None, false) => "clEnqueueWriteBuffer",
        }
    }
}

/// A name of a kernel, from a time on.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) time: u64,
    pub(crate) kernel: u64,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) commands: Vec<Command>,
    pub(crate) named: Vec<Named>,
    /// Times of completions without a call.
    pub(crate) strangers: Vec<u64>,
    /// Device time = (host time + offset) × (1 + drift).
    offset: u64,
    drift: f64,
    /// Some commands are never complete: no line grows past them.
    loses: bool,
}

/// Nanoseconds of a call after which it makes its event.
const MAKES: u64 = 50;

pub(crate) const THREADS: usize = 3;
pub(crate) const CPUS: usize = 3;
pub(crate) const QUEUES: u64 = 3;

impl Program {
    pub(crate) fn random(seed: u64, count: usize) -> Program {
        Program::with_clock(seed, seed, count)
    }

    /// A program that THAPI records: an event may be made from one whose completion was recorded
    /// after the call began.
    pub(crate) fn early(seed: u64, count: usize) -> Program {
        Program::made(seed, seed, count, true)
    }

    /// Programs of one device have the same clock.
    pub(crate) fn with_clock(clock: u64, seed: u64, count: usize) -> Program {
        Program::made(clock, seed, count, false)
    }

    fn made(clock: u64, seed: u64, count: usize, is_early: bool) -> Program {
        let mut rng = Rng::new(clock);
        let mut program = Program {
            commands: Vec::new(),
            named: Vec::new(),
            strangers: Vec::new(),
            offset: rng.below(1 << 50),
            drift: (rng.below(1_000_000) as f64 - 500_000.0) * 600e-12,
            loses: seed.is_multiple_of(3),
        };
        let mut rng = Rng::new(seed);
        let mut free = [1000_u64; THREADS];
        // Handles of events, and the time from which they are free.
        let mut events: Vec<(u64, u64)> = (1..40).map(|at| (at * 64, 0)).collect();
        for kernel in 0..3 {
            program.name(kernel, 10 + kernel, &mut rng);
        }
        for _ in 0..count {
            let thread = rng.below(THREADS as u64) as usize;
            let entry = free[thread] + rng.between(1, 30_000);
            let makes = if is_early { entry + MAKES } else { entry };
            let Some(at) = events.iter().position(|(_, since)| *since < makes) else {
                free[thread] = entry;
                continue;
            };
            let event = events.swap_remove(at).0;
            let exit = entry + rng.between(200, 5000);
            free[thread] = exit + 1;
            if rng.chance(2) {
                // Sometimes the device has nothing to do.
                free[thread] += 200_000;
            }
            if rng.chance(5) {
                // Between two calls of this thread.
                program.name(rng.below(3), exit + 1, &mut rng);
                free[thread] = exit + 2;
            }
            let mut command = program.command(&mut rng, (thread, event), (entry, exit));
            if is_early {
                program.as_thapi(&mut rng, &mut command);
            }
            if command.is_recorded {
                // The tracer needs the event until it has recorded it.
                let free = command.profiled.unwrap_or(0).max(command.recorded);
                events.push((event, free));
            }
            if let Some((_, at)) = command.signal {
                // The program completes the event in the thread that waits for it.
                free[thread] = free[thread].max(at + 1);
            }
            program.commands.push(command);
        }
        program.rename();
        for _ in 0..rng.below(4) {
            let time = rng.between(1000, program.middle());
            program.strangers.push(time);
        }
        program
    }

    /// Gives the device times that do not follow the order of calls.
    pub(crate) fn confuse(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        for command in &mut self.commands {
            if rng.chance(10) {
                let back = rng.below(60_000);
                command.times = command.times.map(|time| time - back);
            }
        }
    }

    fn command(
        &self,
        rng: &mut Rng,
        (thread, event): (usize, u64),
        (entry, exit): (u64, u64),
    ) -> Command {
        let queued = rng.between(entry, exit);
        let signal = rng
            .chance(20)
            .then(|| (0x7000 + rng.below(4), exit + rng.between(1, 9000)));
        let signalled = signal.map_or(0, |(_, at)| at);
        let submit = queued.max(signalled) + rng.below(8000);
        let start = submit + rng.below(20_000);
        let end = start + rng.between(1, 50_000);
        Command {
            thread,
            cpus: [0; 2].map(|_: usize| rng.below(CPUS as u64) as usize),
            entry,
            exit,
            recorded: end.max(exit) + rng.between(3, 9000),
            is_recorded: !(self.loses && rng.chance(2)),
            queue: 0x100 * rng.between(1, QUEUES),
            event,
            kernel: rng.chance(50).then(|| rng.below(3)),
            kernel_name: String::new(),
            bytes: rng.between(1, 1 << 20),
            is_read: rng.chance(50),
            times: [queued, submit, start, end].map(|time| self.device_at(time)),
            signal,
            profiled: None,
            is_wanted: true,
            is_own_thread: false,
        }
    }

    /// Gives a command the order of records that THAPI writes.
    fn as_thapi(&self, rng: &mut Rng, command: &mut Command) {
        let profiled = rng.between(command.entry + 2 * MAKES, command.exit);
        command.profiled = Some(profiled);
        command.is_wanted = rng.chance(50);
        if rng.chance(40) {
            let queued = command.entry + MAKES + rng.below(5);
            let times = [0, 10, 15, 30].map(|after| queued + after);
            command.times = times.map(|time| self.device_at(time));
            command.signal = None;
            command.recorded = rng.between(queued + 33, profiled - 1);
            command.is_own_thread = rng.chance(70);
        }
    }

    fn name(&mut self, kernel: u64, time: u64, rng: &mut Rng) {
        let name = format!("kernel_{}", rng.below(6));
        self.named.push(Named { time, kernel, name });
    }

    /// Gives each command the name that its kernel has at the end of its call.
    fn rename(&mut self) {
        for command in &mut self.commands {
            let exit = command.profiled.unwrap_or(command.exit);
            let names = self.named.iter();
            let names = names.filter(|of| Some(of.kernel) == command.kernel && of.time <= exit);
            // Of equal times, the last counts.
            let last = names.max_by_key(|of| of.time);
            command.kernel_name = last.map_or_else(String::new, |of| of.name.clone());
        }
    }

    fn device_at(&self, host: u64) -> u64 {
        let since = host + self.offset;
        since.wrapping_add_signed((host as f64 * self.drift).round() as i64)
    }

    /// The time of the host, given that of the device.
    pub(crate) fn host_at(&self, device: u64) -> i64 {
        let since = device as i64 - self.offset as i64;
        (since as f64 / (1.0 + self.drift)).round() as i64
    }

    pub(crate) fn middle(&self) -> u64 {
        let last = self.commands.iter().map(|of| of.exit).max();
        last.unwrap_or(2000) / 2 + 1000
    }
}
