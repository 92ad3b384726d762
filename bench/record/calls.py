"""Overhead of recording for a system call that does not block."""

import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from recorder import (EVERYTHING, STACKS, SYSCALLS, compile_c, environment, in_turn, is_possible, left_out, needed,
                      recorded, spread, under_recorder)

WAYS = {"plain": None, "stacks": STACKS, "all system calls": SYSCALLS, "both, and the kernel around": EVERYTHING}
ROUNDS = 20
# Ptrace stops the program at each call.
PEERS = {
    "strace -f -c": (["strace", "-f", "-c", "-o", "/dev/null"], 2),
    "perf trace": (["perf", "trace", "-o", "/dev/null"], 20),
}


def figures(command):
    done = subprocess.run([str(part) for part in command], env=environment(), capture_output=True, text=True)
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 2:
        return None
    return [float(word) for word in words]


def measure(runs, out):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        program = needed(compile_c(directory, "calls"))
        ways = [way for way, options in WAYS.items() if is_possible(options)]
        peers = [peer for peer, (command, _) in PEERS.items() if shutil.which(command[0])]
        results = {way: [] for way in ways + peers}
        lost = {way: 0 for way in ways}
        for way in in_turn(results, runs):
            if way in PEERS:
                command, rounds = PEERS[way]
                results[way].append(figures([*command, program, rounds]))
                continue
            trace = directory / "trace"
            results[way].append(figures(under_recorder(WAYS[way], trace, [program, ROUNDS])))
            if WAYS[way]:
                lost[way] += recorded(trace)[1]
                shutil.rmtree(trace)
        show(results, lost, [way for way in WAYS if way not in ways], out)


def show(results, lost, missing, out):
    out("### A system call that does not block\n")
    left_out(missing, out)
    out.head("ns per call", "getppid", "more than plain", "read of 1 byte", "more than plain", "events lost")
    plain = [statistics.median(column) for column in zip(*results["plain"])]
    for way, runs in results.items():
        runs = [run for run in runs if run]
        if not runs:
            out.row(way, "did not run", "", "", "", "")
            continue
        getppid, read = zip(*runs)
        more = [f"{statistics.median(column) - base:+.1f}" for column, base in zip((getppid, read), plain)]
        out.row(way, spread(getppid), more[0], spread(read), more[1], lost.get(way, ""))
    out()
