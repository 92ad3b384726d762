#!/usr/bin/env python3
"""Reads a trace of many GPU commands with `gpu` and with babeltrace2's counter, in turn, with a warm page cache.

Prints a Markdown table (bench/beside_counter.py).

  python3 bench/devices.py                       10 million commands in 100 queues (1.6 GB in the build's cache)
  python3 bench/devices.py --commands 1000000    fewer
  python3 bench/devices.py --before PROGRAM      also with another build of the program
  python3 bench/devices.py --save FILE           also write the table to a file
"""

import argparse
import shutil
import subprocess
from pathlib import Path

import beside_counter
import common
from common import CACHE, TARGET, TRACEBRAID, Output


def written(commands, queues):
    """The trace, written once."""
    target = CACHE / "bench" / f"devices-{commands}-{queues}"
    if not target.exists():
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        subprocess.run([TARGET / "tracebraid-bench-devices", part, str(commands), str(queues)], check=True)
        part.rename(target)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=10_000_000)
    parser.add_argument("--queues", type=int, default=100)
    parser.add_argument("--before", type=Path, help="another build of the program to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    trace = written(args.commands, args.queues)
    programs = {"gpu": TRACEBRAID, **({"gpu before": args.before} if args.before else {})}
    out = Output()
    out(f"{common.today()}, {common.machine()}, {args.rounds} rounds, {args.commands} commands, {args.queues} queues\n")
    beside_counter.table(out, trace, {name: [program, "gpu", trace] for name, program in programs.items()}, args.rounds)
    if args.save:
        out.save(args.save)


if __name__ == "__main__":
    main()
