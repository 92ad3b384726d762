#!/usr/bin/env python3
"""Measures the overhead of recording, compared with other tools, in one run; each round begins with another scenario.

Prints Markdown tables. Tracing the kernel requires root; rows that are missing without it are listed.

  python3 bench/record/run.py                        all measurements (half an hour and more)
  python3 bench/record/run.py --only probes,calls    parts: probes, calls, events, cost, stacks, gpu, programs
  python3 bench/record/run.py --runs 5               5 runs of each program and scenario instead of 20
  python3 bench/record/run.py --programs prime,redis only some programs
  python3 bench/record/run.py --save FILE            also write the tables to a file
"""

import argparse
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import calls
import common
import cost
import events
import gpu
import probes
import programs
import stacks

PARTS = {
    "probes": lambda arguments, out: probes.measure(min(arguments.runs, 9), out),
    "calls": lambda arguments, out: calls.measure(min(arguments.runs, 9), out),
    "events": lambda arguments, out: events.measure(min(arguments.runs, 9), out),
    "cost": lambda arguments, out: cost.measure(min(arguments.runs, 9), out),
    "stacks": lambda arguments, out: stacks.measure(min(arguments.runs, 5), out),
    "gpu": lambda arguments, out: gpu.measure(min(arguments.runs, 9), out),
    "programs": lambda arguments, out: programs.measure(arguments.runs, arguments.programs, out),
}


def names(known):
    def parse(text):
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}")
        return chosen
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=names(PARTS), default=list(PARTS))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--programs", type=names(programs.KINDS), default=list(programs.KINDS))
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    # Servers and daemons are then ended, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out = common.Output()
    out(f"{common.today()}, {common.machine()}; `bench/record/run.py {' '.join(sys.argv[1:])}`\n")
    for part in arguments.only:
        PARTS[part](arguments, out)
        if arguments.save:
            out.save(arguments.save)


if __name__ == "__main__":
    main()
