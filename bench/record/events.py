"""Overhead of recording events for a system call, for a round trip between two processes, and for a fork.

`perf record` records the same groups of tracepoints of the whole machine.
"""

import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from recorder import (DEFAULT, IS_ROOT, SCHEDULING, SYSCALLS, compile_c, environment, in_turn, left_out, needed, recorded,
                      spread, under_recorder)

OURS = {
    "tracebraid, all system calls": SYSCALLS,
    "tracebraid, the usual groups": SCHEDULING,
    "tracebraid, both (the default)": DEFAULT,
    "all system calls, with vpid, vtid, procname": [*SYSCALLS, "--context", "vpid,vtid,procname"],
    "all system calls, with a counter": [*SYSCALLS, "--context", "perf:cpu:cpu-clock"],
    "system calls longer than 1 ms": [*SYSCALLS, "--where", "duration > 1ms"],
    "system calls that fail": [*SYSCALLS, "--where", "ret < 0"],
    "system calls of threads of another name": [*SYSCALLS, "--where", "procname == other"],
}
CALLS = "raw_syscalls:*"
GROUPS = "sched:*,irq:*,timer:*,block:*,net:*"
PEERS = {
    "perf record, all system calls": CALLS,
    "perf record, the usual groups": GROUPS,
    "perf record, both": f"{GROUPS},{CALLS}",
}
PLAIN = "plain"
# Programs with their rounds, and the figures that each prints.
PROGRAMS = {"calls": (40, ("getppid", "read of 1 byte")), "switches": (20, ("round trip", "fork and its end"))}


def command_of(way, directory, program):
    if way in OURS:
        return under_recorder(OURS[way], directory / "trace", program)
    if way in PEERS:
        return ["perf", "record", "-q", "-a", "-o", directory / "perf.data", "-e", PEERS[way], "--", *program]
    return program


def figures(command):
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True)
    try:
        return [float(word) for word in done.stdout.split()] if done.returncode == 0 else []
    except ValueError:
        return []


def measure(runs, out):
    out("### Events\n")
    ways = [PLAIN]
    peers = PEERS if shutil.which("perf") else {}
    if IS_ROOT:
        ways += [*OURS, *peers]
    left_out([way for way in (*OURS, *PEERS) if way not in ways], out)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        programs = {name: needed(compile_c(directory, name)) for name in PROGRAMS}
        results = {way: {} for way in ways}
        lost = dict.fromkeys(OURS, 0)
        for way in in_turn(ways, runs):
            for name, (rounds, titles) in PROGRAMS.items():
                found = figures(command_of(way, directory, [programs[name], rounds]))
                for title, figure in zip(titles, found):
                    results[way].setdefault(title, []).append(figure)
                if way in OURS:
                    lost[way] += recorded(directory / "trace")[1]
                    shutil.rmtree(directory / "trace")
    show(results, lost, out)


def show(results, lost, out):
    titles = [title for _, titles in PROGRAMS.values() for title in titles]
    plain = {title: statistics.median(results[PLAIN][title]) for title in titles}
    out("Nanoseconds: the median of the runs (minimum to maximum), and its excess over plain:\n")
    out.head("", *titles, "events lost")
    for way, found in results.items():
        cells = []
        for title in titles:
            values = found.get(title)
            if not values:
                cells.append("did not run")
                continue
            more = f", {statistics.median(values) - plain[title]:+.0f}" if way != PLAIN else ""
            cells.append(spread(values, 0) + more)
        out.row(way, *cells, lost.get(way, ""))
    out()
