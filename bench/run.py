#!/usr/bin/env python3
"""Compares tracebraid with other tools in one run, on the same traces, with a warm page cache.

Prints Markdown tables: CPU seconds (user and system), wall time, events per second of CPU time,
and the ratio to babeltrace2's counter of the same run; each as the median with the spread.

  python3 bench/run.py                       the committed kernel trace, grown to 6 and 45 million
  python3 bench/run.py --trace DIR           another kernel trace, grown to the same sizes
  python3 bench/run.py --events 6000000      only one size
  python3 bench/run.py --save FILE           also write the tables to a file
"""

import argparse
import shutil
import statistics
import subprocess
from pathlib import Path

import common
from common import TARGET, TRACEBRAID, Measure, beside_each_other, count_events, grown, size_of, warm

BENCH = TARGET / "tracebraid-bench"
ASK = TARGET / "tracebraid-bench-history"
PATHS = TARGET / "tracebraid-bench-paths"
EXECUTIONS = TARGET / "tracebraid-bench-executions"
# The work of a CPU in a reading call, during which it may switch to another thread.
READS = (
    'read : syscall_entry_read : '
    'syscall_exit_read && cpu == $begin.cpu'
)


REPORTS = (
    "count", "cpu", "io", "syscalls", "sched", "irq", "disk", "net", "memory", "processes", "files", "waits", "report",
)


def commands(trace):
    rows = []
    if shutil.which("babeltrace2"):
        rows.append(("babeltrace2, counter", ["babeltrace2", trace, "-c", "sink.utils.counter"], 1))
    if shutil.which("babeltrace"):
        rows.append(("babeltrace 1.5, dummy", ["babeltrace", "-o", "dummy", trace], 1))
    for report in REPORTS:
        for threads in (1, 2):
            rows.append((f"tracebraid {report} -j {threads}", [TRACEBRAID, report, "-j", str(threads), trace], 7))
    for threads in (1, 2):
        build = [TRACEBRAID, "history", "build", "-j", str(threads), trace, "-o", history_of(trace)]
        rows.append((f"tracebraid history build -j {threads}", build, 5))
    return rows


def history_of(trace):
    return trace.with_name(trace.name + ".history")


# Suffix of the output file of a second program.
OTHER = ".other"


def with_one_thread(command):
    """The command twice, each time with one thread and a separate output file."""
    one = [*command]
    one[one.index("-j") + 1] = "1"
    other = [*one]
    if "-o" in other:
        at = other.index("-o") + 1
        other[at] = other[at].with_name(other[at].name + OTHER)
    return [one, other]


def side_by_side(trace, events, out):
    rows = [(name, command, runs, Measure()) for name, command, runs in commands(trace)]
    pairs = {name: [] for name, *_ in rows if name.endswith("-j 2")}
    # Rounds, not runs in a row, so that a disturbance affects all commands.
    for round_number in range(max(runs for _, _, runs, _ in rows)):
        for name, command, runs, measure in rows:
            if round_number < runs:
                measure.run(command)
                if name in pairs:
                    pairs[name].append(beside_each_other(with_one_thread(command)))
    for _, command, _, measure in rows:
        measure.watch(command)
    # Of the files written side by side, one is queried later.
    other = history_of(trace)
    other.with_name(other.name + OTHER).unlink(missing_ok=True)
    peer = next((statistics.median(m.cpu) for name, _, _, m in rows if name == "babeltrace2, counter"), None)
    out(f"| {events:,} events | CPU s (spread) | wall s (spread) | M events/s of CPU | x babeltrace2 "
        "| efficiency | of the machine | peak RSS | peak anonymous |")
    out("|---|---|---|---|---|---|---|---|---|")
    walls = {name: statistics.median(m.wall) for name, _, _, m in rows}
    for name, _, _, m in rows:
        cpu = statistics.median(m.cpu)
        ratio = f"{peer / cpu:.1f}" if peer else "-"
        one = walls.get(name.replace("-j 2", "-j 1"))
        # "of the machine": the efficiency of two unrelated programs that run at the same time.
        ours, machines = "", ""
        if name in pairs:
            ours = f"{one / (2 * walls[name]):.2f}"
            machines = f"{one / statistics.median(pairs[name]):.2f}"
        out(f"| {name} | {m.spread(m.cpu)} | {m.spread(m.wall)} | {events / cpu / 1e6:.1f} | {ratio} "
            f"| {ours} | {machines} | {max(m.resident) / 1024:.1f} MiB | {max(m.anonymous) / 1024:.1f} MiB |")
    out("")
    return peer


def text_side_by_side(trace, events, out):
    """print, compared with babeltrace2's text output, both to /dev/null."""
    rows = [("tracebraid print", [TRACEBRAID, "print", trace], 3)]
    if shutil.which("babeltrace2"):
        rows.insert(0, ("babeltrace2, text", ["babeltrace2", trace], 1))
    out(f"| {events:,} events as text | CPU s (spread) | M events/s of CPU | x babeltrace2's text |")
    out("|---|---|---|---|")
    peer = None
    for name, command, runs in rows:
        m = Measure()
        for _ in range(runs):
            m.run(command)
        cpu = statistics.median(m.cpu)
        peer = peer or cpu
        out(f"| {name} | {m.spread(m.cpu)} | {events / cpu / 1e6:.2f} | {peer / cpu:.1f} |")
    out("")


def in_memory(trace, peer_rate, out):
    """Loops without a counterpart in other tools, measured by the program tracebraid-bench."""
    lines = subprocess.run([BENCH, trace], check=True, capture_output=True, text=True).stdout.splitlines()
    out("| in one thread, best of 5 | GB/s | M events/s | x babeltrace2's counter |")
    out("|---|---|---|---|")
    for line in lines:
        name, size, events, seconds = line.split("\t")
        size, events, seconds = int(size), int(events), float(seconds)
        rate = events / seconds
        if name.startswith("metadata"):
            out(f"| {name} ({size:,} bytes) | {seconds * 1e3:.1f} ms | | |")
            continue
        ratio = f"{rate / peer_rate:.0f}" if events and peer_rate else ""
        out(f"| {name} | {size / seconds / 1e9:.2f} | {rate / 1e6:.1f} | {ratio} |" if events
            else f"| {name} | {size / seconds / 1e9:.2f} | | |")
    out("")


def questions(trace, out):
    """Query times and size of a history."""
    history = history_of(trace)
    lines = subprocess.run([ASK, history], check=True, capture_output=True, text=True).stdout.splitlines()
    size = size_of(trace)
    share = history.stat().st_size * 100 / size
    out(f"Its history has {history.stat().st_size:,} bytes, {share:.1f} % of the trace's {size:,}.\n")
    out("| ms | median | 99 % | most |")
    out("|---|---|---|---|")
    for line in lines:
        name, *figures = line.split("\t")
        cells = [f"{float(figure) / 1000:.2f}" if figure else "" for figure in figures]
        out(f"| {name} | {' | '.join(cells)} |" if cells[1] else f"| {name}: {figures[0]} | | | |")
    out("")


def paths(trace, peer, out):
    """The execution graph and 10,000 critical paths, compared with reading by babeltrace2."""
    lines = subprocess.run([PATHS, trace], check=True, capture_output=True, text=True).stdout.splitlines()
    figures = [line.split("\t") for line in lines]
    out("| wall, best of 5 | s | fraction of babeltrace2's counter |")
    out("|---|---|---|")
    times = [(name, float(seconds)) for name, seconds in figures[:3]]
    times += [("graph and paths, 1 thread", times[0][1] + times[2][1])]
    for name, seconds in times:
        out(f"| {name} | {seconds:.3f} | {f'1/{peer / seconds:.1f}' if peer else ''} |")
    for name, count in figures[3:]:
        out(f"| {name}: {int(count):,} | | |")
    out("")


def executions(trace, peer, out):
    """Executions in one pass and in two passes, compared with reading by babeltrace2."""
    lines = subprocess.run([EXECUTIONS, trace, READS], check=True, capture_output=True, text=True).stdout.splitlines()
    figures = [line.split("\t") for line in lines]
    out("| wall, best of 5 | s | fraction of babeltrace2's counter |")
    out("|---|---|---|")
    for name, seconds in figures[:4]:
        out(f"| executions, {name} | {float(seconds):.3f} | {f'1/{peer / float(seconds):.1f}' if peer else ''} |")
    for name, count in figures[4:]:
        out(f"| {name}: {int(count):,} | | |")
    out("")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--events", type=int, action="append")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--no-text", action="store_true")
    arguments = parser.parse_args()
    source = arguments.trace or common.committed_trace()
    out = common.Output()
    out(f"{common.today()}, {common.machine()}, trace {source.name}\n")
    for events in arguments.events or [6_000_000, 45_000_000]:
        trace = grown(source, source.name, events)
        warm(trace)
        exact = count_events(trace)
        peer = side_by_side(trace, exact, out)
        questions(trace, out)
        paths(trace, peer, out)
        executions(trace, peer, out)
        if events <= 10_000_000:
            in_memory(trace, exact / peer if peer else None, out)
            if not arguments.no_text:
                text_side_by_side(trace, exact, out)
    if arguments.save:
        out.save(arguments.save)


if __name__ == "__main__":
    main()
