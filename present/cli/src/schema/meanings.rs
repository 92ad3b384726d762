//! Descriptions of columns and totals in schemas, with what their names cannot say.

/// The description of a column of a table, or of a total (in the table `total`).
pub(super) fn of(command: &str, table: &str, key: &str) -> &'static str {
    let find = |name: &str| MEANINGS.iter().find(|(of, _)| *of == name);
    let found = find(&format!("{command}.{table}.{key}"))
        .or_else(|| find(&format!("{command}.{key}")))
        .or_else(|| find(&format!("{table}.{key}")))
        .or_else(|| find(key));
    found.map_or("", |(_, meaning)| *meaning)
}

/// By key; `command.table.key`, `command.key` and `table.key` take precedence, in this order.
const MEANINGS: &[(&str, &str)] = &[
    // Of several reports.
    (
        "active_ns",
        "CPU time on the selected CPUs, within the range",
    ),
    (
        "active_share",
        "CPU time divided by the length of the range; more than 1 if several threads of a process ran at the same time",
    ),
    ("average_ns", "Mean; null without values"),
    (
        "begin_ns",
        "Time of the begin, after the origin of the clock",
    ),
    ("bytes", "Number of bytes"),
    ("calls", "Calls that ended in the range"),
    ("command", "Command that shows more"),
    ("count", "Number of values"),
    ("cpu", "Number of the CPU"),
    (
        "deviation_ns",
        "Standard deviation of a sample (divided by count - 1); null for fewer than two values",
    ),
    ("distribution.count", "Number of values in the bucket"),
    ("distribution.of", "Group of the histogram"),
    ("duration_ns", "Duration from the begin to the end"),
    ("end_ns", "Time of the end, after the origin of the clock"),
    (
        "error",
        "Name of the error, or its number if it has no name; null if the call succeeded",
    ),
    ("errors", "Calls that returned an error"),
    ("from_ns", "Lower bound of the bucket, included"),
    ("host", "Name of the host"),
    ("interrupted", "Calls that a signal interrupted"),
    ("max_ns", "Maximum; null without values"),
    ("migrations", "Number of sched_migrate_task in the range"),
    ("min_ns", "Minimum; null without values"),
    ("name", "Name"),
    ("number", "Number"),
    ("order", "Binary logarithm of the number of pages"),
    (
        "p50_ns",
        "Median by nearest rank, at most 1/128 off; null without values",
    ),
    (
        "p90_ns",
        "90th percentile by nearest rank, at most 1/128 off; null without values",
    ),
    (
        "p99_ns",
        "99th percentile by nearest rank, at most 1/128 off; null without values",
    ),
    (
        "p999_ns",
        "99.9th percentile by nearest rank, at most 1/128 off; null without values",
    ),
    (
        "path",
        "Name of the file; of a copy, of the file that it reads",
    ),
    ("processes", "Number of processes"),
    ("read_bytes", "Bytes read"),
    ("requests", "Requests with sectors"),
    ("result", "Number that the call returned"),
    ("size_bytes", "4096 times 2 to the power of the order"),
    ("switches", "Number of sched_switch in the range"),
    ("syscall", "Name of the system call, as programs know it"),
    ("thread", "Thread"),
    (
        "time_ns",
        "Time of the event, after the origin of the clock",
    ),
    ("to_ns", "Upper bound of the bucket, excluded"),
    ("total_ns", "Sum"),
    ("trace", "Index of the trace"),
    (
        "type",
        "Type of the descriptor: file, terminal, virtual, network, unix, socket, pipe, anonymous or unknown",
    ),
    ("unfinished", "Calls whose exit is not in the trace"),
    (
        "unknown_thread",
        "Entries and exits of system calls of unknown threads",
    ),
    ("waker", "Thread that ended the wait; null if no thread did"),
    ("why", "Wait reason"),
    (
        "file_read_bytes",
        "Bytes read from descriptors of the type `file`",
    ),
    (
        "file_written_bytes",
        "Bytes written to descriptors of the type `file`",
    ),
    ("written_bytes", "Bytes written"),
    // cpu
    (
        "cpu.cpus.active_share",
        "Active time divided by the length of the range",
    ),
    (
        "cpu.cpus.losses",
        "Times, in the whole trace, that the running thread became unknown because of lost or undecodable events",
    ),
    ("cpu.cpus.switches", "Number of sched_switch in the range"),
    (
        "cpu.cut_by",
        "Null for a whole interval; range: it extends beyond the range; loss: events were lost in it",
    ),
    (
        "cpu.first_switch",
        "First switch of the CPU in the whole trace; null without switches",
    ),
    (
        "cpu.idle_ns",
        "Time in which the idle thread is known to have run",
    ),
    (
        "cpu.inconsistent_switches",
        "Switches, in the whole trace, from another thread than the one that ran",
    ),
    (
        "cpu.migrations",
        "Number of sched_migrate_task in the range; null if no trace has that event",
    ),
    (
        "cpu.prev_tid",
        "Id of the thread that ran before the switch",
    ),
    (
        "cpu.priorities",
        "All priorities in the range, each once, in ascending order",
    ),
    (
        "cpu.priority",
        "Last priority in the range, as the kernel counts: -1 deadline, 0 to 99 real time, 100 to 139 others; null if unknown",
    ),
    (
        "cpu.stretches.cpu",
        "Number of the CPU; null for all CPUs together",
    ),
    (
        "cpu.stretches.trace",
        "Index of the trace; null for all CPUs together",
    ),
    (
        "cpu.threads",
        "Threads of the process that ran or were migrated in the range",
    ),
    ("cpu.total.active_ns", "Active time of all CPUs"),
    (
        "cpu.total.active_share",
        "Active part of the time of all CPUs",
    ),
    ("cpu.total.cpus", "Number of CPUs with event records"),
    (
        "cpu.unknown_ns",
        "Time in which the running thread is unknown",
    ),
    // disk
    (
        "disk.average_depth",
        "Mean number of requests that the driver has at a time; null if events are missing",
    ),
    ("disk.bios", "Number of remapped bios"),
    (
        "disk.busy_ns",
        "Time with at least one request; null if events are missing",
    ),
    ("disk.discarded_bytes", "Bytes discarded"),
    ("disk.disk", "Name of the disk, or major:minor"),
    ("disk.errors", "Completions with an error"),
    (
        "disk.flush_sequences",
        "Completions of writes without sectors",
    ),
    ("disk.flushes", "Completed flushes"),
    ("disk.from", "Device from which bios were remapped"),
    ("disk.in_parts", "Requests that completed in several parts"),
    (
        "disk.issued_ns",
        "Time of the issue, after the origin of the clock",
    ),
    ("disk.kind", "discard, write, read, other, flush or command"),
    ("disk.latency_ns", "Time from issue to completion"),
    (
        "disk.max_depth",
        "Largest number of requests that the driver had at a time; null if events are missing",
    ),
    ("disk.merged_bios", "Bios merged into a request"),
    (
        "disk.merged_requests",
        "Requests merged into another request",
    ),
    (
        "disk.not_begun",
        "Completions whose issue is not in the trace; null if a CPU was not recorded",
    ),
    ("disk.requeues", "Requests that the driver gave back"),
    ("disk.rwbs", "Letters of blktrace for the kind of request"),
    (
        "disk.sector",
        "First sector; null for requests without sectors",
    ),
    ("disk.sectors", "Completed sectors of 512 bytes"),
    ("disk.threads.requests", "Requests that the thread issued"),
    ("disk.to", "Device to which bios were remapped"),
    ("disk.total.requests", "Completed requests with sectors"),
    (
        "disk.unfinished",
        "Issued requests without a completion; null if a CPU was not recorded",
    ),
    (
        "disk.utilization",
        "Part of the range with at least one request; null if events are missing",
    ),
    // files, and the tables of io that are those of files
    (
        "files.bytes",
        "Bytes that the call read, wrote or copied; null if it has no size",
    ),
    (
        "io.bytes",
        "Bytes that the call read, wrote or copied; null if it has no size",
    ),
    (
        "class",
        "Class of calls: open, accept, read, write, copy, sync or close",
    ),
    ("fd", "File descriptor; null if the call has none"),
    (
        "files.average_ns",
        "Mean duration of the calls; null without calls",
    ),
    ("files.calls", "Calls that read, write, copy or sync"),
    (
        "files.classes.bytes",
        "Bytes that the calls read, wrote or copied",
    ),
    ("files.errors", "Failed calls of any class"),
    (
        "files.max_ns",
        "Longest duration of the calls; null without calls",
    ),
    ("files.opens", "Calls that opened the file, or failed to"),
    (
        "files.processes.opens",
        "Calls that opened a file, or failed to",
    ),
    (
        "files.p99_ns",
        "99th percentile of the durations of the calls, at most 1/128 off; null without calls",
    ),
    ("files.processes", "Processes that used the file"),
    ("files.total.calls", "I/O calls of all classes"),
    ("files.total_ns", "Sum of the durations of the calls"),
    ("files.user", "Process that moved the most bytes"),
    // io
    (
        "average_latency_ns",
        "Mean time from entry to exit, rounded down",
    ),
    ("io.latency_ns", "Sum of the times from entry to exit"),
    ("io.name", "Name of the system call"),
    ("io.types", "The same by type of descriptor"),
    ("longest_latency_ns", "Longest time from entry to exit"),
    (
        "unstarted",
        "Exits in the range whose entry is not in the trace",
    ),
    // gpu
    ("gpu.clocks.device", "Name of the device"),
    (
        "gpu.clocks.drift_ppm",
        "Drift of the trace's clock against the device's, in millionths; null if unbounded",
    ),
    (
        "gpu.clocks.at_device_ns",
        "Time of the device's clock for which the offset holds, in the middle of the recording",
    ),
    (
        "gpu.clocks.error_ns",
        "Largest possible error of the offset; null without bounds",
    ),
    (
        "gpu.clocks.offset_ns",
        "Time of the trace minus that of the device, in the middle of the recording; null without bounds",
    ),
    ("gpu.clocks.platform", "Name of the platform"),
    (
        "gpu.clocks.relation",
        "How tightly commands bound the relation of both clocks: accurate, approximate, incomplete, absent or fail",
    ),
    (
        "gpu.devices.advice",
        "Advice: overlap (transfers and kernels hardly overlap) or enqueue-ahead (the device waits for the host); null without advice",
    ),
    (
        "gpu.devices.busy",
        "Part of span_ns in which at least one command executed",
    ),
    (
        "gpu.devices.busy_ns",
        "Time in which at least one command executed",
    ),
    ("gpu.devices.device", "Name of the device; empty if unknown"),
    (
        "gpu.devices.idle_ns",
        "Time between the first and the last command in which none executed",
    ),
    (
        "gpu.devices.kernels_ns",
        "Time in which at least one kernel executed",
    ),
    (
        "gpu.devices.overlap_ns",
        "Time in which both a kernel and a transfer executed",
    ),
    (
        "gpu.devices.processes",
        "Number of processes whose commands executed",
    ),
    (
        "gpu.devices.several_kernels_ns",
        "Time in which several kernels executed",
    ),
    (
        "gpu.devices.span_ns",
        "Time from the start of the first command to the end of the last",
    ),
    (
        "gpu.devices.transfers_ns",
        "Time in which at least one transfer executed",
    ),
    (
        "gpu.fence_waits.waits",
        "Number of waits of threads for fences that ended",
    ),
    ("gpu.functions.calls", "Number of calls that ended"),
    ("gpu.functions.function", "Name of the function"),
    (
        "gpu.gaps.begin",
        "Begin, by the clock of the trace; null if the relation of the clocks is unknown",
    ),
    (
        "gpu.gaps.cause",
        "Cause of the largest part: host late, dependency, host queue or device queue",
    ),
    (
        "gpu.gaps.dependency_ns",
        "Part in which the next command waited for an event that the program completes, or for a command of another device",
    ),
    ("gpu.gaps.device", "Name of the device; empty if unknown"),
    (
        "gpu.gaps.device_queue_ns",
        "Part in which the next command was submitted to the device",
    ),
    (
        "gpu.gaps.host_late_ns",
        "Part in which the next command was not queued",
    ),
    (
        "gpu.gaps.host_queue_ns",
        "Part in which the next command was queued by the driver, but not submitted",
    ),
    ("gpu.gaps.idle_ns", "Length of the idle time"),
    ("gpu.gaps.next", "The next command: its kernel, or its kind"),
    ("gpu.gaps.tid", "Thread that enqueued the next command"),
    (
        "gpu.host.detail",
        "Thread, device or CPU that belongs to the reason",
    ),
    (
        "gpu.host.device",
        "Name of the device that was idle; empty if unknown",
    ),
    ("gpu.host.parts", "Number of segments of critical paths"),
    (
        "gpu.host.reason",
        "Wait reason or running, of the thread that enqueues, as in critical paths",
    ),
    ("gpu.host.share", "Part of the explained time of the device"),
    ("gpu.host.time_ns", "Time"),
    ("gpu.idle.average_ns", "Average length of a part"),
    (
        "gpu.idle.cause",
        "host late, dependency, host queue or device queue",
    ),
    ("gpu.idle.device", "Name of the device; empty if unknown"),
    ("gpu.idle.idle_ns", "Idle time of this cause"),
    ("gpu.idle.max_ns", "Longest part"),
    (
        "gpu.idle.parts",
        "Number of idle times that have a part of this cause",
    ),
    ("gpu.idle.share", "Part of the idle time of the device"),
    (
        "gpu.jobs.average_ns",
        "Average time of execution; null without jobs",
    ),
    (
        "gpu.jobs.device",
        "Name of the device or of its driver; empty if unknown",
    ),
    (
        "gpu.jobs.device_queue_ns",
        "Time from handed to the ring to the beginning of execution, of all jobs",
    ),
    (
        "gpu.jobs.device_queue_p99_ns",
        "99th percentile of the times in the ring's queue",
    ),
    (
        "gpu.jobs.execution_ns",
        "Time from the beginning of a job on its ring to the signal of its fence, of all jobs",
    ),
    (
        "gpu.jobs.held",
        "Number of jobs that had to wait for another fence",
    ),
    (
        "gpu.jobs.host_queue_ns",
        "Time in the queue of the driver, of the jobs for which it is known",
    ),
    (
        "gpu.jobs.host_queue_p99_ns",
        "99th percentile of the times in the driver's queue; null if unknown",
    ),
    ("gpu.jobs.jobs", "Number of complete jobs"),
    (
        "gpu.jobs.max_ns",
        "Longest time of execution; null without jobs",
    ),
    (
        "gpu.jobs.p99_ns",
        "99th percentile of the times of execution; null without jobs",
    ),
    ("gpu.jobs.ring", "Name of the ring"),
    (
        "gpu.kernels.average_device_queue_ns",
        "Average time from submitted to started",
    ),
    (
        "gpu.kernels.average_host_queue_ns",
        "Average time from queued to submitted",
    ),
    ("gpu.kernels.commands", "Number of complete commands"),
    ("gpu.kernels.items", "Number of work items of all commands"),
    ("gpu.kernels.kernel", "Name of the kernel; empty if unknown"),
    ("gpu.queues.commands", "Number of complete commands"),
    ("gpu.queues.device", "Name of the device; empty if unknown"),
    (
        "gpu.queues.device_queue_ns",
        "Time from submitted to started, of all commands",
    ),
    (
        "gpu.queues.errors",
        "Number of commands that ended with an error",
    ),
    (
        "gpu.queues.execution_ns",
        "Time from started to ended, of all commands",
    ),
    ("gpu.queues.handle", "Handle of the queue"),
    (
        "gpu.queues.host_queue_ns",
        "Time from queued to submitted, of all commands",
    ),
    (
        "gpu.queues.queue",
        "Number among the queues of the process, from 1; null if unknown",
    ),
    (
        "gpu.rings.average_ns",
        "Average time of execution; null without jobs",
    ),
    ("gpu.rings.busy", "Part of span_ns in which a job executed"),
    (
        "gpu.rings.device",
        "Name of the device or of its driver; empty if unknown",
    ),
    (
        "gpu.rings.device_queue_ns",
        "Time from handed to the ring to the beginning of execution, of all jobs",
    ),
    (
        "gpu.rings.device_queue_p99_ns",
        "99th percentile of the times in the ring's queue",
    ),
    (
        "gpu.rings.execution_ns",
        "Time from the beginning of a job on its ring to the signal of its fence, of all jobs",
    ),
    (
        "gpu.rings.held",
        "Number of jobs that had to wait for another fence",
    ),
    (
        "gpu.rings.host_queue_ns",
        "Time in the queue of the driver, of the jobs for which it is known",
    ),
    (
        "gpu.rings.host_queue_p99_ns",
        "99th percentile of the times in the driver's queue; null if unknown",
    ),
    (
        "gpu.rings.idle_ns",
        "Time of span_ns in which no job executed",
    ),
    ("gpu.rings.jobs", "Number of complete jobs"),
    (
        "gpu.rings.max_ns",
        "Longest time of execution; null without jobs",
    ),
    (
        "gpu.rings.p99_ns",
        "99th percentile of the times of execution; null without jobs",
    ),
    (
        "gpu.rings.processes",
        "Number of processes that queued the jobs",
    ),
    ("gpu.rings.ring", "Name of the ring"),
    (
        "gpu.rings.span_ns",
        "Time from the beginning of the first job to the end of the last",
    ),
    ("gpu.shared.device", "Name of the device; empty if unknown"),
    ("gpu.shared.other", "The process whose commands executed"),
    (
        "gpu.shared.time_ns",
        "Time in which a command of the process was queued, none of its commands executed, and one of the other process did",
    ),
    ("gpu.total.calls", "Number of calls of the API that ended"),
    ("gpu.total.commands", "Number of complete commands"),
    (
        "gpu.total.errors",
        "Number of commands that ended with an error",
    ),
    ("gpu.total.jobs", "Number of complete jobs of GPU drivers"),
    (
        "gpu.total.jobs_not_begun",
        "Number of completions of jobs whose beginning is not in the trace",
    ),
    (
        "gpu.total.only_durations",
        "Number of complete commands of which only the duration is known",
    ),
    (
        "gpu.total.unfinished",
        "Number of commands that are not complete at the end",
    ),
    (
        "gpu.total.unfinished_jobs",
        "Number of jobs whose completion is not in the trace",
    ),
    (
        "gpu.total.unprofiled",
        "Number of complete commands without times",
    ),
    (
        "gpu.total.without_call",
        "Number of completions whose call is not in the trace",
    ),
    (
        "gpu.transfers.bytes",
        "Bytes of all commands, as far as their calls contain them",
    ),
    (
        "gpu.transfers.bytes_per_second",
        "Bytes divided by the time of execution; null without bytes",
    ),
    ("gpu.transfers.commands", "Number of complete commands"),
    (
        "gpu.transfers.kind",
        "read (to the host), write (to the device), copy, fill, map, unmap or migrate",
    ),
    // irq
    ("irq.cpus.interrupts", "Interrupts that ended"),
    ("irq.cpus.softirqs", "Softirqs that ended"),
    ("irq.interrupt_ns", "Time in interrupts"),
    (
        "irq.interrupt_share",
        "Time in interrupts divided by the length of the range",
    ),
    ("irq.kind", "Kind of handler"),
    (
        "irq.latency_ns",
        "Time from the raise to the begin; null if no raise was recorded",
    ),
    ("irq.name", "Names of the handlers, or of the softirq"),
    (
        "irq.number",
        "Number of the interrupt, vector or softirq; null if it has none",
    ),
    ("irq.raises", "Raise events in the range"),
    (
        "irq.softirq_ns",
        "Time in softirqs, without the interrupts that interrupt them",
    ),
    (
        "irq.softirq_share",
        "Time in softirqs divided by the length of the range",
    ),
    ("irq.total.interrupts", "Number of interrupts"),
    ("irq.total.softirqs", "Number of softirqs"),
    (
        "irq.unfinished",
        "Handlers that run at the end of the range",
    ),
    ("irq.unknown_begin", "Exits that match no handler"),
    // levels
    (
        "levels.active_ns",
        "Time in which user-level threads ran on CPUs, within the range",
    ),
    (
        "levels.active_slices",
        "Intervals in which the thread ran without a break",
    ),
    ("levels.average_ns", "Mean; null without values"),
    (
        "levels.average_slice_ns",
        "Mean length of an active slice; null without slices",
    ),
    (
        "levels.blocked.blocked_ns",
        "Time of the waits, within the range",
    ),
    (
        "levels.blocked_ns",
        "Time in which the runtime blocked the thread",
    ),
    (
        "levels.lwps.blocked_ns",
        "Time in which the LWP waited in the kernel with a user-level thread",
    ),
    (
        "levels.call_ns",
        "Time in system calls that the runtime reports",
    ),
    (
        "levels.functions.active_ns",
        "Time on CPUs in calls of the function, within the range; calls within calls of the same function count once",
    ),
    (
        "levels.calls.active_ns",
        "Time on CPUs in the system call, within the range",
    ),
    ("levels.call", "System call"),
    ("levels.calls", "Number of calls, including unfinished ones"),
    ("levels.function", "Name of the function, or its address"),
    (
        "levels.keeper",
        "Who had the CPU: user-level threads (of the same process), other processes (their user-level threads), scheduler, preemptor, idle, earlier or unknown",
    ),
    ("levels.keeper_thread", "Thread that had the CPU"),
    (
        "levels.keepers.kept_ns",
        "Time in which others were ready that then ran on the same CPU: N times the time if N threads were ready",
    ),
    (
        "levels.keepers.turns",
        "Number of turns of the thread on the CPU, counted once for each thread that was ready",
    ),
    (
        "levels.kept_ns",
        "Time in which the thread was ready without an LWP while the other thread had the CPU",
    ),
    (
        "levels.own_ns",
        "Time on CPUs in the function itself, without the functions that it calls",
    ),
    (
        "levels.share",
        "Share of the time in which the thread was ready without an LWP",
    ),
    (
        "levels.turns",
        "Number of turns of the other thread on the CPU",
    ),
    (
        "levels.unfinished",
        "Calls without an exit: at the end of the range, or of the thread",
    ),
    (
        "levels.waiting_ns",
        "Time in the system call and not on a CPU, within the range",
    ),
    (
        "levels.wall_ns",
        "Time from entry to exit, within the range; calls within calls of the same function count once",
    ),
    (
        "levels.cpu_migrations",
        "Switches to the thread on another CPU than the one that it left, by either scheduler",
    ),
    ("levels.cpus", "Numbers of the CPUs on which the LWPs ran"),
    ("levels.idle_ns", "Time in known states other than active"),
    (
        "levels.lwps.idle_ns",
        "Time in which the scheduler of the LWP waited in the kernel",
    ),
    (
        "levels.idle_slices",
        "Intervals between active slices, and from the creation to the first one",
    ),
    (
        "levels.kernel_ns",
        "Time in which the LWP of the thread waited in the kernel",
    ),
    (
        "levels.lwp",
        "LWP: a kernel thread that runs user-level threads",
    ),
    (
        "levels.lwp_migrations",
        "Returns to another LWP than the one that the thread left",
    ),
    (
        "levels.lwp_ready_ns",
        "Time in which the LWP of the thread was woken and waited for a CPU",
    ),
    ("levels.lwps", "Number of LWPs"),
    (
        "levels.preempted_ns",
        "Time in which the kernel had taken the CPU from the LWP of the thread",
    ),
    (
        "levels.lwps.preempted_ns",
        "Time in which the kernel had taken the CPU from the LWP",
    ),
    (
        "levels.preemptions",
        "Preemptions of the LWP that ran the thread",
    ),
    ("levels.preemptor", "Thread that got the CPU"),
    ("levels.process", "First thread of the process"),
    (
        "levels.ready_ns",
        "Time in which the thread was ready and had no LWP",
    ),
    (
        "levels.lwps.ready_ns",
        "Time in which the LWP was woken and waited for a CPU",
    ),
    (
        "levels.reason",
        "Reason of the wait, as the runtime names it",
    ),
    ("levels.runtime", "Name of the runtime; empty if unknown"),
    (
        "levels.same_cpu",
        "Share of the returns to the CPU that the thread left; null without returns",
    ),
    (
        "levels.same_lwp",
        "Share of the returns to the LWP that the thread left; null without returns",
    ),
    (
        "levels.scheduler_ns",
        "Time in which the LWPs ran on CPUs without a user-level thread",
    ),
    ("levels.switches", "Returns of the thread to an LWP"),
    (
        "levels.lwps.switches",
        "Switches of the runtime to user-level threads on the LWP",
    ),
    (
        "levels.thread",
        "User-level thread, with the id that it has as a thread of the super-trace",
    ),
    ("levels.threads", "Number of user-level threads"),
    (
        "levels.threads_ns",
        "Time in which the LWP ran user-level threads on CPUs",
    ),
    ("levels.ult", "Id that the runtime gave to the thread"),
    (
        "levels.unknown_ns",
        "Time in unknown states, after losses of events",
    ),
    ("levels.waits", "Number of waits"),
    (
        "levels.total.probes",
        "With --compensate: events that programs recorded, within the range",
    ),
    (
        "levels.total.probes_ns",
        "With --compensate: time of these events, which was subtracted from active times",
    ),
    (
        "levels.total.processes",
        "Number of processes with user-level threads",
    ),
    (
        "levels-reactions.longest.begin_ns",
        "Entry of the interrupt that woke the thread, or the wake-up",
    ),
    ("levels-reactions.cpu", "CPU on which the thread acted"),
    (
        "levels-reactions.interrupt_ns",
        "From the entry of the interrupt to the wake-up",
    ),
    (
        "levels-reactions.kernel_ns",
        "From the wake-up until the LWP had a CPU",
    ),
    (
        "levels-reactions.longest.thread",
        "User-level thread, with the id that it has as a thread of the super-trace",
    ),
    (
        "levels-reactions.lwp_ns",
        "From the wake-up by the scheduler until the user-level thread had an LWP",
    ),
    (
        "levels-reactions.part",
        "Part of the reaction: interrupt, kernel, scheduler, lwp, thread; or total",
    ),
    (
        "levels-reactions.scheduler_ns",
        "From the LWP on a CPU until its scheduler woke the user-level thread",
    ),
    (
        "levels-reactions.source",
        "Interrupt or softirq; thread: a wake-up by another thread in the kernel; runtime: by a user-level thread or its scheduler",
    ),
    (
        "levels-reactions.thread",
        "User-level thread, with the id that it has as a thread of the super-trace",
    ),
    (
        "levels-reactions.thread_ns",
        "From the user-level thread on an LWP until it acted",
    ),
    (
        "levels-reactions.total.reactions",
        "Reactions that ended in the range",
    ),
    ("levels-reactions.longest.total_ns", "Whole duration"),
    // memory
    ("memory.added_pages", "Pages that entered the page cache"),
    ("memory.all", "All of the range"),
    ("memory.allocated_bytes", "Bytes used for kernel objects"),
    ("memory.allocated_pages", "Pages allocated"),
    ("memory.balance_pages", "Pages allocated minus pages freed"),
    (
        "memory.batched_pages",
        "Freed pages that were freed together with others",
    ),
    ("memory.compactions", "Times that memory was compacted"),
    (
        "memory.direct_reclaims",
        "Times that the thread reclaimed memory itself",
    ),
    ("memory.distribution.count", "Number of events"),
    ("memory.distribution.of", "allocated or freed"),
    ("memory.event", "allocated, failed or freed"),
    ("memory.failed", "Allocations that got no page"),
    ("memory.freed_objects", "Kernel objects freed"),
    ("memory.freed_pages", "Pages freed"),
    ("memory.kernel_faults", "Page faults of the kernel"),
    (
        "memory.kills",
        "Times that a process was chosen to be killed",
    ),
    ("memory.kswapd_wakes", "Times that kswapd woke"),
    ("memory.objects", "Kernel objects allocated"),
    (
        "memory.other_faults",
        "Page faults of tracers that do not distinguish them",
    ),
    ("memory.page_faults", "Number of page faults"),
    ("memory.reclaimed_pages", "Pages gained by reclaiming"),
    ("memory.removed_pages", "Pages that left the page cache"),
    (
        "memory.requested_bytes",
        "Bytes requested for kernel objects",
    ),
    ("memory.totals.idle", "Part of the idle threads"),
    ("memory.totals.threads", "Part of all other threads"),
    ("memory.totals.unknown", "Part of unknown threads"),
    (
        "memory.totals.what",
        "Key of the column in the other tables",
    ),
    ("memory.user_faults", "Page faults of the program"),
    // net
    (
        "net.a",
        "Side of the connection with the lower address and port",
    ),
    ("net.a_to_b_bytes", "Bytes from A to B"),
    ("net.a_to_b_packets", "Packets from A to B"),
    ("net.b", "Other side of the connection"),
    ("net.b_to_a_bytes", "Bytes from B to A"),
    ("net.b_to_a_packets", "Packets from B to A"),
    ("net.buffer", "Address of the buffer"),
    (
        "net.busy",
        "Packets for which the driver had no room; the kernel retries",
    ),
    ("net.context", "thread, idle, softirq or unknown"),
    (
        "net.dropped",
        "Packets that were dropped, or that the driver refused",
    ),
    ("net.duration_ns", "Time to the driver"),
    ("net.errors", "Packets that the driver refused"),
    ("net.interface", "Name of the network interface"),
    ("net.other_port", "Port of the other side"),
    (
        "net.own_port",
        "Port of the own side, with the host if there are several",
    ),
    ("net.packets", "Number of packets"),
    (
        "net.queued_ns",
        "Time of net_dev_queue, after the origin of the clock",
    ),
    ("net.reason_drops", "Packets dropped for a reason"),
    ("net.received", "Packets received"),
    (
        "net.received_average_bytes",
        "Mean length of received packets; null without packets",
    ),
    (
        "net.received_bytes",
        "Bytes received, without the header of the link layer",
    ),
    (
        "net.received_drops",
        "Packets dropped after they were received",
    ),
    (
        "net.received_max_bytes",
        "Largest length of received packets; null without packets",
    ),
    ("net.received_packets", "Packets received"),
    ("net.resets", "Packets with the flag RST"),
    ("net.resets_received", "Resets received"),
    ("net.resets_sent", "Resets sent"),
    ("net.retransmissions", "Retransmitted segments"),
    ("net.sent", "Packets sent"),
    (
        "net.sent_average_bytes",
        "Mean length of sent packets; null without packets",
    ),
    (
        "net.sent_bytes",
        "Bytes sent, with the header of the link layer",
    ),
    (
        "net.sent_drops",
        "Packets dropped before the driver took them",
    ),
    (
        "net.sent_max_bytes",
        "Largest length of sent packets; null without packets",
    ),
    ("net.sent_packets", "Packets sent"),
    // periods
    ("periods.begin", "Values captured at the begin, by name"),
    ("periods.count", "Number of periods"),
    ("periods.count_average", "Mean number within a parent"),
    (
        "periods.count_deviation",
        "Standard deviation of the number within a parent; null for a single parent",
    ),
    ("periods.count_max", "Largest number within a parent"),
    ("periods.count_min", "Smallest number within a parent"),
    ("periods.cpu", "CPU of the begin; null if unknown"),
    (
        "periods.duration_average_ns",
        "Mean of the total durations within a parent",
    ),
    (
        "periods.duration_deviation_ns",
        "Standard deviation of the total durations within a parent; null for a single parent",
    ),
    (
        "periods.duration_max_ns",
        "Longest total duration within a parent",
    ),
    (
        "periods.duration_min_ns",
        "Shortest total duration within a parent",
    ),
    ("periods.end", "Values captured at the end, by name"),
    ("periods.group", "Captured values of the group, by name"),
    ("periods.parent", "Surrounding definition"),
    ("periods.parent_ns", "Duration of the parent"),
    ("periods.parents", "Finished periods of the parent"),
    ("periods.period", "Path of the definition"),
    (
        "periods.share_average",
        "Mean share of the parent's duration; null if no parent has a duration",
    ),
    (
        "periods.share_deviation",
        "Standard deviation of the share; null for a single parent",
    ),
    (
        "periods.share_max",
        "Largest share of a parent's duration; null if no parent has a duration",
    ),
    (
        "periods.share_min",
        "Smallest share of a parent's duration; null if no parent has a duration",
    ),
    ("periods.total.periods", "Number of finished periods"),
    (
        "periods.total.refused",
        "Periods that were not begun because too many were open; missing without any",
    ),
    (
        "periods.total.ungrouped",
        "Periods in no group because there were too many groups; missing without any",
    ),
    ("periods.unfinished", "Periods that were not finished"),
    // processes
    (
        "processes.active_ns",
        "Time for which its threads ran on the selected CPUs",
    ),
    (
        "processes.begin_ns",
        "Time of its creation, after the origin of the clock; null if not recorded",
    ),
    (
        "processes.by",
        "fork (the name of the parent), exec, rename or dump (the state dump)",
    ),
    ("processes.depth", "Number of ancestors in the tree"),
    (
        "processes.end_ns",
        "Time at which the last of its known threads ended, after the origin of the clock; null if one has not",
    ),
    ("processes.event", "fork, exec, rename or exit"),
    ("processes.id", "Number of the row"),
    ("processes.life_ns", "Length of the life; null if unknown"),
    (
        "processes.longest.parent",
        "Process that forked it; null if unknown",
    ),
    (
        "processes.log.parent",
        "Process that forked it, of fork events; else null",
    ),
    (
        "processes.names",
        "Names of its first thread, in the order of time",
    ),
    (
        "processes.new_name",
        "Name that the event gives; null if it gives none",
    ),
    (
        "processes.parent",
        "id of the row of the parent; null at the top of a tree",
    ),
    (
        "processes.parent_pid",
        "Process that forked it; 0 is the kernel; null if unknown",
    ),
    ("processes.syscalls", "System calls that ended in the range"),
    ("processes.threads", "Number of threads that occurred"),
    ("processes.total.active_ns", "CPU time of all processes"),
    (
        "processes.tree_active_ns",
        "CPU time of the process and all its descendants",
    ),
    (
        "processes.tree_read_bytes",
        "Bytes read by the process and all its descendants",
    ),
    (
        "processes.tree_syscalls",
        "System calls of the process and all its descendants",
    ),
    (
        "processes.tree_written_bytes",
        "Bytes written by the process and all its descendants",
    ),
    // report
    ("report.findings.what", "Finding"),
    ("report.kind", "Kind of operation"),
    (
        "report.total.active_share",
        "Active part of the time of all CPUs",
    ),
    ("report.total.cpus", "Number of CPUs with event records"),
    (
        "report.total.idle_share",
        "Idle part of the time of all CPUs",
    ),
    (
        "report.total.syscalls",
        "System calls that ended in the range",
    ),
    (
        "report.total.unknown_share",
        "Part of the time of all CPUs in which the running thread is unknown",
    ),
    ("report.what", "Name of the operation"),
    // sched
    (
        "sched.average_length",
        "Mean number of threads that waited for the CPU; null if a CPU was not recorded",
    ),
    ("sched.average_wait_ns", "Mean wait; null without waits"),
    ("sched.cpu", "CPU of the switch"),
    ("sched.dead", "Switches of dead threads"),
    (
        "sched.disk_sleep",
        "Switches of threads that wait uninterruptibly",
    ),
    ("sched.from_cpu", "CPU that the thread leaves"),
    (
        "sched.idle",
        "Switches of kernel threads that wait without counting as load",
    ),
    (
        "sched.involuntary",
        "Switches of threads that could have continued",
    ),
    ("sched.kind", "voluntary or involuntary; null if unknown"),
    ("sched.latencies", "Wake-ups that ended with a switch"),
    ("sched.latency_ns", "Time from the wake-up to the switch"),
    (
        "sched.max_length",
        "Largest number of threads that waited for the CPU at once; null if a CPU was not recorded",
    ),
    ("sched.max_wait_ns", "Longest wait; null without waits"),
    ("sched.other", "Switches in another state"),
    ("sched.parked", "Switches of parked threads"),
    (
        "sched.pending",
        "Threads with a wake-up that has not ended at the end of the range",
    ),
    (
        "sched.preempted",
        "Switches of threads that lost the CPU to another",
    ),
    (
        "sched.preemptor",
        "Thread that took the CPU; null if unknown",
    ),
    (
        "sched.priority",
        "Priority, as the kernel counts: -1 deadline, 0 to 99 real time, 100 to 139 others; null if unknown",
    ),
    ("sched.queues.cpu", "Number of the CPU"),
    (
        "sched.ready",
        "Switches of user-level threads whose runtime switched to another",
    ),
    ("sched.reason", "State of the thread that leaves the CPU"),
    ("sched.reasons.switches", "Switches in that state"),
    ("sched.runnable", "Switches of threads that gave way"),
    (
        "sched.sleeping",
        "Switches of threads that wait interruptibly",
    ),
    ("sched.stopped", "Switches of stopped threads"),
    (
        "sched.switch_ns",
        "Time of the switch, after the origin of the clock",
    ),
    ("sched.switches", "Switches from threads"),
    ("sched.to_cpu", "CPU that the thread enters"),
    ("sched.traced", "Switches of threads that a debugger holds"),
    ("sched.unknown", "Switches without a recorded state"),
    ("sched.voluntary", "Switches of threads that began to wait"),
    ("sched.wait_ns", "Sum of the waits in run queues"),
    ("sched.waits", "Number of waits in run queues"),
    (
        "sched.waker",
        "Thread, or the interrupt, softirq or timer as a name; null if unknown",
    ),
    (
        "sched.waker_context",
        "timer, irq, softirq, thread, idle or unknown",
    ),
    (
        "sched.wakeup_ns",
        "Time of the wake-up, after the origin of the clock",
    ),
    ("sched.zombie", "Switches of zombies"),
    // syscalls
    (
        "syscalls.begin_ns",
        "Time of the entry, after the origin of the clock",
    ),
    ("syscalls.duration_ns", "Time from entry to exit"),
    ("syscalls.error", "Name of the error"),
    ("syscalls.errors.count", "Number of calls"),
    ("syscalls.name_errors.count", "Number of calls"),
    (
        "syscalls.name_errors.thread_name",
        "Last name of the threads; null if unknown",
    ),
    (
        "syscalls.name_errors.threads",
        "Number of threads of this name for which the call returned this error",
    ),
    (
        "syscalls.unfinished",
        "Calls that are open at the end of the range",
    ),
    // waits
    ("waits.address", "Address of the futex, hexadecimal"),
    ("waits.again", "Waiting calls that returned EAGAIN"),
    ("waits.block_device_ns", "Time of waits for block devices"),
    ("waits.child_ns", "Time of waits for child processes"),
    (
        "waits.context",
        "thread, timer, block-device, irq N or softirq NAME; null if unknown",
    ),
    ("waits.device_ns", "Time of waits for other devices"),
    ("waits.futex_ns", "Time of waits for futexes"),
    (
        "waits.ipi_ns",
        "Time of waits for inter-processor interrupts",
    ),
    ("waits.kernel_ns", "Time of waits for the kernel"),
    (
        "waits.measure",
        "connect, accept, send, receive or response",
    ),
    (
        "waits.lwp_ns",
        "Time in which the user-level thread could run and had no LWP",
    ),
    ("waits.network_ns", "Time of waits for the network"),
    ("waits.operation", "Operation of the futex call"),
    (
        "waits.peer",
        "Address of the peer, or its family; null if unknown",
    ),
    (
        "waits.preempted_ns",
        "Time in which the thread was runnable and another thread had its CPU",
    ),
    ("waits.runnable_ns", "Time from the wake-up to the switch"),
    ("waits.running_ns", "Time on a CPU"),
    (
        "waits.share",
        "Time of the reason divided by the time of the calls",
    ),
    ("waits.side", "client, server or unknown"),
    ("waits.signal_ns", "Time of waits for signals"),
    ("waits.thread_ns", "Time of waits for other threads"),
    ("waits.threads", "Number of threads that waited"),
    ("waits.time_ns", "Sum of the durations of the calls"),
    ("waits.timeouts", "Waiting calls that returned ETIMEDOUT"),
    ("waits.timer_ns", "Time of waits for timers"),
    (
        "waits.total.ult_waits",
        "Number of waits that the runtimes of user-level threads recorded",
    ),
    ("waits.total_ns", "Time of the calls"),
    ("waits.unknown_ns", "Time of unknown waits"),
    ("waits.user_input_ns", "Time of waits for input of users"),
    (
        "waits.waker_wakes",
        "Number of waits that this thread ended; null if no thread did",
    ),
    ("waits.wakes", "Calls that wake"),
    ("waits.woken", "Threads woken or moved"),
];
