#!/usr/bin/env python3
"""Scaling of the reports: the serial share of their CPU time, and the resulting speed-up.

Each command runs with one thread and `--timings`; bench/schedule.py replays its pieces on more
threads, with the start and the end of the program on one thread. The tables also contain measured
efficiencies: with two threads (or --threads, if the machine has more CPUs), and of two unrelated
programs that run at the same time; and the ratio of the CPU time to that of another build, whose
runs alternate.

  python3 bench/scaling.py                           all commands, on the committed kernel trace and,
                                                     if they exist, on redis and many-threads, grown
                                                     to 6 and 45 million events
  python3 bench/scaling.py TRACE...                  on these traces, unchanged
  python3 bench/scaling.py TRACE --only files,waits  only these commands
  python3 bench/scaling.py TRACE --only gpu          on a trace of tracebraid-bench-devices
  python3 bench/scaling.py TRACE --only levels       on a recording of user-level threads; also
                                                     "levels merge", "levels reactions"
  python3 bench/scaling.py TRACE --before PROGRAM    compare with another build of the program
  python3 bench/scaling.py TRACE --threads 2,4,8,16  measure with these numbers of threads
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import common
import schedule
from common import SHARED, TRACEBRAID, Output, beside_each_other, grown, size_of, warm

PREDICTED = (2, 4, 8, 16, 32, 64)
COMMANDS = {
    **{report: [report] for report in (
        "count", "cpu", "irq", "memory", "disk", "net", "processes", "syscalls", "io", "sched", "files", "waits",
        "report")},
    "critical-path": ["critical-path", "--longest", "*"],
    "history build": ["history", "build"],
    "executions build": ["executions", "build", "--call", "read"],
    "gpu": ["gpu"],
    "levels": ["levels"],
    "levels merge": ["levels", "merge"],
    "levels reactions": ["levels", "reactions"],
}
# Commands that need other events than those of the kernel: only with --only.
OTHER = {"gpu", "levels", "levels merge", "levels reactions"}


class Runs:
    """Runs of a command of a program on a trace."""

    def __init__(self, program, name, trace, directory):
        self.program, self.name, self.trace, self.directory = program, name, trace, Path(directory)

    def command(self, threads, number=0, extra=()):
        command = [self.program, *COMMANDS[self.name], self.trace, "-j", str(threads), *extra]
        if self.name.endswith(("build", "merge")):
            output = self.directory / f"{self.name.replace(' ', '-')}-{number}"
            if self.name == "levels merge":
                # Its output must not exist.
                shutil.rmtree(output, ignore_errors=True)
            command += ["-o", output]
        return command

    def once(self, threads, extra=()):
        """CPU seconds and wall seconds."""
        start = time.perf_counter()
        with subprocess.Popen([str(part) for part in self.command(threads, extra=extra)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{self.command(threads)}: exit code {process.returncode}")
        return usage.ru_utime + usage.ru_stime, time.perf_counter() - start

    def timings(self):
        file = self.directory / "timings.json"
        self.once(1, ["--timings", file])
        return json.loads(file.read_text(encoding="utf-8"))

    def pair(self):
        return beside_each_other([self.command(1, number) for number in range(2)])


def line(runs, before, threads, rounds):
    timings = runs.timings()
    cpu, ratio, walls, pairs = [], [], {number: [] for number in (1, *threads)}, []
    for _ in range(rounds):
        for number, wall in walls.items():
            used, length = runs.once(number)
            wall.append(length)
            if number == 1:
                cpu.append(used)
                if before:
                    ratio.append(used / before.once(1)[0])
        pairs.append(runs.pair())
    one = statistics.median(walls[1])
    measured = " ".join(f"{one / statistics.median(walls[number]) / number:.2f}" for number in threads)
    machine = one / statistics.median(pairs)
    predicted = " | ".join(f"{schedule.speed_up_of(timings, number):.1f}" for number in PREDICTED)
    beside = f"{statistics.median(ratio):.2f} ({min(ratio):.2f}-{max(ratio):.2f})" if ratio else "-"
    serial = timings["serial_share"]
    return (f"| {runs.name} | {statistics.median(cpu):.3f} | {beside} | {serial * 100:.1f} % | {timings['outside_s']:.3f} "
            f"| {predicted} | {measured} | {machine:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", metavar="TRACE", type=Path)
    parser.add_argument("--events", type=int, action="append", help="grow the default traces to N events (default: 6 and 45 million)")
    parser.add_argument("--only", help="only these commands, separated by commas")
    parser.add_argument("--before", type=Path, help="another build of the program to compare with")
    parser.add_argument("--threads", default="2", help="numbers of threads to measure with, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", type=Path, help="also write the tables to this file")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else [name for name in COMMANDS if name not in OTHER]
    threads = [int(number) for number in args.threads.split(",")]
    out = Output()
    out(f"{common.today()}, {common.machine()}, {args.rounds} rounds\n")
    for trace in args.traces or usual_traces(args.events or [6_000_000, 45_000_000]):
        warm(trace)
        out(f"{trace.name}, {size_of(trace) / 1e6:.0f} MB; efficiency measured with {args.threads} threads\n")
        out.head("command", "CPU s", "beside before", "serial share", "outside s",
                 *(f"x {number}" for number in PREDICTED), "efficiency", "of the machine")
        with tempfile.TemporaryDirectory() as directory:
            for name in names:
                runs = Runs(TRACEBRAID, name, trace, directory)
                before = args.before and Runs(args.before, name, trace, directory)
                out(line(runs, before, threads, args.rounds))
        out()
    if args.save:
        out.save(args.save)


def usual_traces(sizes):
    """The default traces that exist."""
    sources = {"kernel-mix-small": common.committed_trace(), "many-threads": SHARED / "public/many-threads"}
    archive = SHARED / "ours/kernel-redis.tar.xz"
    redis = common.CACHE / "traces/kernel-redis"
    if archive.exists() and not redis.exists():
        redis.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xJf", archive, "-C", redis.parent], check=True)
    sources["kernel-redis"] = redis
    for name, source in sources.items():
        if not source.exists():
            print(f"SKIPPED: {source} does not exist; {name} is not measured\n")
    return [grown(source, name, events) for events in sizes for name, source in sources.items() if source.exists()]


if __name__ == "__main__":
    main()
