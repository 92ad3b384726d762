#!/usr/bin/env python3
"""Reads a trace of many GPU commands with `gpu` and with babeltrace2's counter, in turn, with a warm page cache.

Prints a Markdown table: CPU seconds with one thread, the serial share, the peak memory, and the speed of `gpu` compared with the
counter: measured with one thread, and predicted for 16 threads by the serial share (bench/schedule.py).

  python3 bench/devices.py                       10 million commands in 100 queues (1.6 GB in the build's cache)
  python3 bench/devices.py --commands 1000000    fewer
  python3 bench/devices.py --before PROGRAM      also with another build of the program
  python3 bench/devices.py --save FILE           also write the table to a file
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import common
import schedule
from common import CACHE, TARGET, TRACEBRAID, Measure, Output, warm

THREADS = 16


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


def timings(program, trace):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "timings.json"
        command = [program, "gpu", "-j", "1", "--timings", file, trace]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(file.read_text(encoding="utf-8"))


def row(out, name, program, measure, counter, trace):
    share = timings(program, trace)
    cpu = statistics.median(measure.cpu)
    ratios = [other / own for other, own in zip(counter.cpu, measure.cpu)]
    ratio = statistics.median(ratios)
    spread = f"{ratio:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    predicted = ratio * schedule.speed_up_of(share, THREADS)
    memory = max(measure.resident) / 1024
    out(f"| {name} | {measure.spread(measure.cpu)} | {share['serial_share'] * 100:.1f} % | {memory:.0f} | {spread} | {predicted:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=10_000_000)
    parser.add_argument("--queues", type=int, default=100)
    parser.add_argument("--before", type=Path, help="another build of the program to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    trace = written(args.commands, args.queues)
    warm(trace)
    programs = {"gpu": TRACEBRAID, **({"gpu before": args.before} if args.before else {})}
    measures = {name: Measure() for name in programs}
    counter = Measure()
    for _ in range(args.rounds):
        counter.run(["babeltrace2", trace, "-c", "sink.utils.counter"])
        for name, program in programs.items():
            measures[name].run([program, "gpu", "-j", "1", trace])
    out = Output()
    out(f"{common.today()}, {common.machine()}, {args.rounds} rounds, {args.commands} commands, {args.queues} queues\n")
    out.head("", "CPU s, one thread", "serial share", "peak RSS, MB", "times the counter", f"with {THREADS} threads (predicted)")
    for name, program in programs.items():
        row(out, name, program, measures[name], counter, trace)
    out(f"| babeltrace2's counter | {counter.spread(counter.cpu)} | | {max(counter.resident) / 1024:.0f} | 1 | |")
    if args.save:
        out.save(args.save)


if __name__ == "__main__":
    main()
