"""Tables 1 and 2 of the TraceCompare paper (Doray and Dagenais 2016, 5.2) with today's programs.

Each program runs in five scenarios: alone; with all system calls traced; with call stacks; with
call stacks and the events that critical paths need (the default groups of kernel events of `record`:
scheduling, interrupts, timers, disks, network); with all those events and all system calls. The
times exclude the recorder's start and end.
"""

import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from common import committed_trace
from recorder import (IS_ROOT, SCENARIOS, compile_c, environment, in_turn, is_possible, left_out, needed, recorded,
                      under_recorder)
from servers import Postgres, Redis, postgres_programs

TREE = "/usr/share"


class Program:
    """A program that runs to its end, timed from within the recording."""

    NEEDS = ()

    def __init__(self, directory):
        self.directory = directory
        self.timed = needed(compile_c(directory, "timed"))

    def before(self):
        """Prepares a run."""

    def run(self, options, trace):
        self.before()
        seconds = self.directory / "seconds"
        command = under_recorder(options, trace, [self.timed, seconds, *self.command()])
        subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)
        return float(seconds.read_text())


class Prime(Program):
    TITLE = "prime"

    def __init__(self, directory):
        super().__init__(directory)
        self.program = needed(compile_c(directory, "prime"))

    def command(self):
        return [self.program, "1600000"]


class Babeltrace(Program):
    NEEDS = ("babeltrace2",)
    TITLE = "babeltrace2"

    def command(self):
        return ["babeltrace2", committed_trace()]


class Find(Program):
    NEEDS = ("find",)
    TITLE = "find" if IS_ROOT else "find, in the page cache"

    def command(self):
        return ["find", TREE, "-type", "f", "-size", "+100M"]

    def before(self):
        """Drops the page cache, if this process may, except the program itself."""
        if IS_ROOT:
            Path("/proc/sys/vm/drop_caches").write_text("3")
        subprocess.run(["find", "/dev/null"], stdout=subprocess.DEVNULL, check=True)


KINDS = {"prime": Prime, "babeltrace2": Babeltrace, "find": Find, "redis": Redis, "postgres": Postgres}


def is_there(kind):
    has_server = kind is not Postgres or postgres_programs()
    return has_server and all(shutil.which(program) for program in kind.NEEDS)


def measure(runs, names, out):
    out("### Programs\n")
    kinds = [KINDS[name] for name in names if is_there(KINDS[name])]
    absent = [name for name in names if not is_there(KINDS[name])]
    if absent:
        out(f"**NOT MEASURED, since they are not installed**: {', '.join(absent)}.\n")
    scenarios = [name for name, options in SCENARIOS.items() if is_possible(options)]
    left_out([name for name in SCENARIOS if name not in scenarios], out)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        programs = {kind.TITLE: kind(directory) for kind in kinds}
        results = {(scenario, title): ([], []) for scenario in scenarios for title in programs}
        for scenario in in_turn(scenarios, runs):
            for title, program in programs.items():
                seconds, counts = results[scenario, title]
                trace = directory / "trace"
                seconds.append(program.run(SCENARIOS[scenario], trace))
                if SCENARIOS[scenario]:
                    counts.append(recorded(trace))
                shutil.rmtree(trace, ignore_errors=True)
    show(results, scenarios, list(programs), runs, out)


def show(results, scenarios, titles, runs, out):
    out(f"Seconds, mean and standard deviation of {runs} runs:\n")
    out.head("", *titles)
    for scenario in scenarios:
        columns = [results[scenario, title][0] for title in titles]
        out.row(scenario, *(f"{statistics.mean(column):.3f} ± {deviation(column):.3f}" for column in columns))
    out("\nExcess over the base in percent, of means (of medians, of the fastest runs):\n")
    out.head("", *titles)
    for scenario in scenarios[1:]:
        out.row(scenario, *(overhead(results, scenario, scenarios[0], title) for title in titles))
    out("\nEvents recorded per run (mean), and lost in all runs:\n")
    out.head("", *titles)
    for scenario in scenarios[1:]:
        columns = [results[scenario, title][1] for title in titles]
        out.row(scenario, *(f"{statistics.mean(events for events, _ in column):,.0f}, "
                            f"{sum(lost for _, lost in column):,}" for column in columns))
    out()


def deviation(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def overhead(results, scenario, base, title):
    more = [100 * (kind(results[scenario, title][0]) / kind(results[base, title][0]) - 1)
            for kind in (statistics.mean, statistics.median, min)]
    return f"{more[0]:+.1f} ({more[1]:+.1f}, {more[2]:+.1f})"
