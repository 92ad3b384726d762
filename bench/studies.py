#!/usr/bin/env python3
"""Measures the cost of building executions, on recordings of the case studies, in one run, with a warm page cache.

Records each study anew, with more executions than its test has, and prints a Markdown row for each: babeltrace2's counter, and
`executions build` with one thread and with all threads; each as the median of five with the spread. Names of functions are cached by
a first build, which is measured separately: it unpacks debug information, which happens once for each program.

  sudo python3 bench/studies.py                      all studies
  sudo python3 bench/studies.py cpu-contention       some
  sudo python3 bench/studies.py --executions 1000    smaller ones
  sudo python3 bench/studies.py --save FILE          also write the table to a file
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import common
from common import ROOT, TRACEBRAID, Measure, count_events, size_of, warm

STUDIES = ROOT / "docs/case-studies"
RUNS = 5
# Exit code of a study's script that cannot run here.
CANNOT = 3


def recorded(study, executions, directory):
    """Records a study anew; returns the trace, or None if that is impossible here."""
    environment = {**os.environ, "TRACEBRAID": str(TRACEBRAID), "STUDY_EXECUTIONS": str(executions)}
    done = subprocess.run([STUDIES / study / "run", directory], env=environment, capture_output=True, text=True)
    if done.returncode == CANNOT:
        print(f"bench: {study} is left out: {done.stderr.strip()}", file=sys.stderr)
        return None
    if done.returncode != 0:
        sys.exit(f"bench: {study} ended with {done.returncode}: {done.stderr}")
    return directory / "trace"


def build(study, trace, database, threads):
    return [TRACEBRAID, "executions", "build", "-j", str(threads), trace, "-o", database,
            "--file", STUDIES / study / "requests.periods"]


def row(study, trace, directory, out):
    database = directory / "measured.db"
    threads = os.cpu_count()
    commands = [build(study, trace, database, 1), build(study, trace, database, threads)]
    if shutil.which("babeltrace2"):
        commands.append(["babeltrace2", trace, "-c", "sink.utils.counter"])
    measures = [Measure() for _ in commands]
    warm(trace)
    first = Measure()
    for turn in range(RUNS):
        os.environ["TRACEBRAID_CACHE"] = str(directory / f"names-{turn}")
        first.run(commands[1])
    # Rounds, not runs in a row, so that a disturbance affects all commands.
    for _ in range(RUNS):
        for command, measure in zip(commands, measures):
            measure.run(command)
    one, all_threads, *peer = measures
    cells = [study, f"{count_events(trace):,}", f"{size_of(trace) / 2**20:.1f} MiB"]
    cells += [cell for m in peer for cell in (m.spread(m.cpu), m.spread(m.wall))] or ["-", "-"]
    for measure in (one, all_threads):
        cells += [measure.spread(measure.cpu), measure.spread(measure.wall)]
        cells.append(f"{statistics.median(peer[0].wall) / statistics.median(measure.wall):.1f}" if peer else "-")
    cells += [first.spread(first.wall)]
    size = database.stat().st_size
    cells += [f"{size / 2**10:.0f} KiB", f"{size * 100 / size_of(trace):.1f} %"]
    out.row(*cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*")
    parser.add_argument("--executions", type=int, default=int(os.environ.get("STUDY_EXECUTIONS") or 3000))
    parser.add_argument("--save", type=Path)
    arguments = parser.parse_args()
    # Other studies are not built from their recording directly.
    studies = arguments.studies or sorted(path.parent.name for path in STUDIES.glob("*/requests.periods"))
    out = common.Output()
    out(f"{common.today()}, {common.machine()}, {arguments.executions:,} executions of each study\n")
    out.head("study", "events", "trace", "babeltrace2: CPU s (spread)", "wall s (spread)",
             "build -j 1: CPU s (spread)", "wall s (spread)", "x babeltrace2",
             f"build -j {os.cpu_count()}: CPU s (spread)", "wall s (spread)", "x babeltrace2", "the first one: wall s (spread)",
             "database", "of the trace")
    for study in studies:
        with tempfile.TemporaryDirectory(prefix="tracebraid-studies-") as directory:
            # Servers give up root.
            os.chmod(directory, 0o755)
            trace = recorded(study, arguments.executions, Path(directory))
            if trace is not None:
                row(study, trace, Path(directory), out)
    if arguments.save:
        out.save(arguments.save)


if __name__ == "__main__":
    main()
