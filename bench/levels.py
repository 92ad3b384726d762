#!/usr/bin/env python3
"""Repeats Tables 1 and 2 of Danjean, Wacrenier and Namyst (2005): the cost of probes, and the overhead of recording user-level threads.

Table 2 runs the programs of `examples` in turn without a recorder, with probes that record nothing, with the context switches of user-level
threads and kernel, with all scheduling events, and with all events (functions of program and thread library, system calls). The binary is
always the same. Wall time suffers from other processes on the machine; CPU time is that of the program, with that of the kernel on its behalf.
Requires root.

The last table compares `levels merge` with babeltrace2's counter on the same recordings: of the program with most threads, with all
events, and others on request.

  python3 bench/levels.py                     9 rounds
  python3 bench/levels.py --rounds 3          fewer
  python3 bench/levels.py --height 10 --grid 300   smaller trees and systems
  python3 bench/levels.py --merge TRACE       only `levels merge`, of this recording and others that follow
  python3 bench/levels.py --save FILE         also write the tables to a file
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import beside_counter
import common
from common import ROOT, TARGET, TRACEBRAID, Output, count_events, size_of

sys.path.insert(0, str(ROOT / "bench/record"))

from recorder import IS_ROOT, compile_c, environment, in_turn, left_out, needed, recorded, spread, under_recorder

PRELOADED = {"LD_PRELOAD": TARGET / "libtracebraid_modules.so"}
# Cycles on a Xeon of 2.8 GHz.
PAPER_CYCLES = {"PROF_IN": 260, "getpid": 1900, "printf": 672}
MEANINGS = {
    "PROF_IN": "`PROF_IN`: an event with the name of a function",
    "ult_switch": "`ult_switch`: two numbers",
    "ult_block": "`ult_block`: a number and a word",
    "getpid": "system call `getpid`",
    "printf": "`printf(\"test\")`, buffered",
    "counter": "reading the cycle counter",
}

KERNEL_SWITCHES = ["--kernel", "sched", "--syscalls", "none"]
# Options of `record`, and the overhead in the paper for sumtime and SuperLU_MT, in percent.
LEVELS = {
    "none": (None, "", ""),
    "probes that record nothing": (["--kernel", "none", "--syscalls", "none", "--probes", "none:*"], "", ""),
    "context switches": ([*KERNEL_SWITCHES, "--probes", "tracebraid:ult_switch"], 23, 1.8),
    "all scheduling": ([*KERNEL_SWITCHES, "--probes", "tracebraid:ult_*", "--probes", "tracebraid:lwp_*"], "", ""),
    "all events": (["--syscalls", "all", "--probes", "*"], 80, 4.6),
}


def costs(program, variables):
    done = subprocess.run([program], env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return {name: float(figure) for name, figure in map(str.split, done.stdout.splitlines())}


def table_1(rounds, out):
    ways = {"without the library": None, "disabled": "none:*", "recorded": "tracebraid:*"}
    found = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as name:
        program = needed(compile_c(Path(name), "levels", ["-I", ROOT / "record/probe/include"]))
        for way in in_turn(ways, rounds):
            session = Path(name) / "session"
            session.mkdir()
            (session / "probe.conf").write_text(f"enable = {ways[way]}\n")
            variables = {"TRACEBRAID_SESSION": str(session), **PRELOADED} if ways[way] else {}
            found[way].append(costs(program, variables))
            shutil.rmtree(session)
    out("### Table 1: cost of a probe\n")
    out.head("ns", *ways, "in the paper, cycles")
    for name, meaning in MEANINGS.items():
        cells = [spread([figures[name] for figures in found[way]]) for way in ways]
        out.row(meaning, *cells, PAPER_CYCLES.get(name, ""))
    recorded_costs = {name: statistics.median(figures[name] for figures in found["recorded"]) for name in MEANINGS}
    ratios = [f"{recorded_costs['PROF_IN'] / recorded_costs[name]:.2f} times {name} (paper: {260 / PAPER_CYCLES[name]:.2f})"
              for name in ("getpid", "printf")]
    out(f"\nA recorded `PROF_IN` costs {' and '.join(ratios)}.\n")


class Run:
    """Figures of one program at one level."""

    def __init__(self):
        self.wall, self.cpu, self.events, self.bytes, self.lost = [], [], 0, 0, 0

    def add(self, command, options, directory):
        trace = directory / "trace"
        done = subprocess.run(under_recorder(options, trace, command), env=environment(), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bench: {command} ended with {done.returncode}: {done.stderr}")
        found = re.search(r", ([\d.]+) s, CPU ([\d.]+) s", done.stdout)
        self.wall.append(float(found[1]))
        self.cpu.append(float(found[2]))
        if options is not None:
            self.events, lost = recorded(trace)
            self.bytes = size_of(trace)
            self.lost += lost
            shutil.rmtree(trace)


def percent(values, others):
    ratios = [value / other for value, other in zip(values, others)]
    shown = [f"{100 * (ratio - 1):+.1f}" for ratio in (statistics.median(ratios), min(ratios), max(ratios))]
    return f"{shown[0]} % ({shown[1]} to {shown[2]})"


def table_2(rounds, programs, out):
    out("### Table 2: overhead of recording\n")
    if not IS_ROOT:
        left_out(["the overhead for programs with user-level threads"], out)
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        subprocess.run(["make", "-s", "-C", ROOT / "examples", f"OUT={directory}"], check=True)
        for place, (program, arguments) in enumerate(programs.items()):
            runs = {level: Run() for level in LEVELS}
            for level in in_turn(LEVELS, rounds):
                runs[level].add([directory / program, *arguments], LEVELS[level][0], directory)
            rows(program, arguments, runs, place, out)


def rows(program, arguments, runs, place, out):
    out(f"`{program} {' '.join(arguments)}`:\n")
    out.head("recorded", "s", "CPU s", "overhead", "of CPU time", "in the paper", "events", "MB", "MB/s", "events lost")
    plain = runs["none"]
    for level, run in runs.items():
        cells = [spread(run.wall, 3), spread(run.cpu, 3)]
        if run is plain:
            out.row(level, *cells, *[""] * 7)
            continue
        paper = LEVELS[level][1 + place]
        size = run.bytes / 1e6
        out.row(level, *cells, percent(run.wall, plain.wall), percent(run.cpu, plain.cpu), paper and f"+{paper} %",
                f"{run.events:,}", f"{size:.2f}", f"{size / statistics.median(run.wall):.1f}", run.lost)
    out()


def merge(rounds, recordings, out):
    out(f"### `levels merge` beside babeltrace2's counter, {rounds} rounds\n")
    with tempfile.TemporaryDirectory() as name:
        for recording in recordings or [merged_recording(Path(name), out)]:
            if recording:
                out(f"`{recording.name}`, {count_events(recording):,} event records, {size_of(recording) / 1e6:.0f} MB:\n")
                command = [TRACEBRAID, "levels", "merge", recording, "-o", Path(name) / "levels"]
                beside_counter.table(out, recording, {"`levels merge`": command}, rounds)
                out()


def merged_recording(directory, out):
    """All events of a program with 327,670 threads."""
    if not IS_ROOT:
        left_out(["`levels merge`"], out)
        return None
    trace = directory / "sumtime-recording"
    subprocess.run(["make", "-s", "-C", ROOT / "examples", f"OUT={directory}"], check=True)
    command = [directory / "sumtime", "height=14", "rounds=10", "lwps=2"]
    subprocess.run(under_recorder(LEVELS["all events"][0], trace, command), env=environment(), check=True, stdout=subprocess.DEVNULL)
    return trace


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--height", type=int, default=14, help="of the tree of threads")
    parser.add_argument("--grid", type=int, default=700, help="side of the grid whose equations are solved")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="TRACE", help="only measure `levels merge`, of these recordings")
    parser.add_argument("--merge-rounds", type=int, default=5)
    parser.add_argument("--save", type=Path, help="also write the tables to this file")
    args = parser.parse_args()
    if not args.merge and not PRELOADED["LD_PRELOAD"].is_file():
        sys.exit(f"bench: {PRELOADED['LD_PRELOAD']} has not been built")
    out = Output()
    out(f"{common.today()}, {common.machine()}, {args.merge_rounds if args.merge else args.rounds} rounds in turn, medians (minimum to maximum)\n")
    if not args.merge:
        table_1(args.rounds, out)
        programs = {"sumtime": [f"height={args.height}", "lwps=2"], "solver": [f"grid={args.grid}", "lwps=2"]}
        table_2(args.rounds, programs, out)
    merge(args.merge_rounds, args.merge, out)
    if args.save:
        out.save(args.save)


if __name__ == "__main__":
    main()
