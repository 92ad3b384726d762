#!/usr/bin/env python3
"""Speed of counting in the layouts of various tracers: million event records per second of CPU time, one thread.

Traces are recorded traces, grown, if they exist, and generated traces; each rate is compared with the best of the same run. The
layouts alternate, round after round, and each rate is the median of the rounds.

  python3 bench/layouts.py               all layouts
  python3 bench/layouts.py --events N    grown to N event records (default: 6 million)
  python3 bench/layouts.py --reports     also cpu and io on many-threads, beside babeltrace2's counter
"""

import argparse
import shutil
import statistics
import subprocess
from pathlib import Path

import common
from common import CACHE, ROOT, SHARED, TARGET, TRACEBRAID, Output, begin, count_events, end, grown, warm

# Layouts that the testkit writes, with their tracers.
GENERATED = {
    "dpdk": "DPDK: 48-bit time, 16-bit id, align 64, no packet sizes",
    "barectf": "barectf's default",
    "natural": "fields aligned to their sizes",
    "natural-large": "LTTng's large header, fields aligned to their sizes",
    "natural-compact": "big-endian, LTTng's compact header, fields aligned to their sizes",
    "big-endian": "big-endian, 64-bit id and time",
    "big-endian-compact": "big-endian, LTTng's compact header",
    "extended": "LTTng's compact header, all ids extended",
    "contexts": "a string among the contexts",
    "bit-packed": "header of fields that are no whole bytes",
    "unaligned": "fields aligned to bytes",
    "timeless": "no time, no id",
}
# Recorded traces: archive below tests/data or shared/traces, directory in it, and description.
ARCHIVES = {
    "lttng-2.13": ("tests/data/kernel-mix-small.tar.xz", "kernel-mix-small/kernel", "LTTng 2.13, kernel"),
    "ust-contexts": ("tests/data/kernel-ust-requests.tar.xz", "kernel-ust-requests/ust", "LTTng-UST with vtid, vpid and procname"),
    "ust-cyg-profile": ("tests/data/ust-cyg-profile.tar.xz", "ust-cyg-profile", "LTTng-UST, functions"),
    "own-probe": ("tests/data/probe-requests.tar.xz", "probe-requests", "this project's recorders"),
    "ctf2-many-threads": ("ctf2/many-threads.tar.xz", "", "CTF 2 as babeltrace2 writes it, kernel"),
    "ctf2-kernel-ust": ("ctf2/kernel-ust-requests.tar.xz", "", "the same, kernel and user space"),
    "ctf2-cyg-profile": ("ctf2/cyg-profile.tar.xz", "", "the same, functions"),
    "ctf2-multi-domains": ("ctf2/multi-domains.tar.xz", "", "the same, several domains"),
}
DIRECTORIES = {
    "many-threads": ("public/many-threads", "LTTng 2.8, kernel, all ids extended"),
    "ros2": ("public/ros2", "ROS 2 (LTTng-UST)"),
    "cyg-profile": ("public/cyg-profile", "LTTng-UST, functions"),
}
IMPORTED = {
    "perf.data": ("tests/data/perf-files.tar.xz", "perf-files/tracepoints.data", "perf.data as it is imported"),
    "trace.dat": ("tests/data/trace-cmd-files.tar.xz", "trace-cmd-files/v7.dat", "trace.dat as it is imported"),
}


def unpacked(archive):
    """The directory of an archive, unpacked once; None, with a message, if the archive does not exist."""
    path = ROOT / archive if archive.startswith("tests/") else SHARED / archive
    if not path.exists():
        print(f"SKIPPED: {path} does not exist; its layout is not measured\n")
        return None
    directory = CACHE / "bench/unpacked" / archive.replace("/", "-").removesuffix(".tar.xz")
    if not directory.exists():
        part = directory.with_name(directory.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        subprocess.run(["tar", "-xJf", path, "-C", part], check=True)
        part.rename(directory)
    return directory


def imported(name, archive, inner, events):
    """A recording of another tool, imported and grown."""
    directory = unpacked(archive)
    if directory is None:
        return None
    trace = CACHE / "bench/unpacked" / f"imported-{name}"
    if not trace.exists():
        subprocess.run([TRACEBRAID, "import", directory / inner, "-o", trace], check=True, stdout=subprocess.DEVNULL)
    return grown(trace, f"imported-{name}", events)


def generated(name, events):
    target = CACHE / "bench" / f"layout-{name}-{events}"
    if not target.exists():
        subprocess.run([TARGET / "tracebraid-testkit", "layout", name, target, "--events", str(events)], check=True)
    return target


def traces(events):
    """Names, traces and their descriptions; prints a message for missing traces."""
    found = {}
    for name, (archive, inner, about) in ARCHIVES.items():
        directory = unpacked(archive)
        found[name] = (directory and grown(directory / inner, name, events), about)
    for name, (place, about) in DIRECTORIES.items():
        source = SHARED / place
        if not source.exists():
            print(f"SKIPPED: {source} does not exist; its layout is not measured\n")
            continue
        found[name] = (grown(source, name, events), about)
    for name, (archive, inner, about) in IMPORTED.items():
        found[name] = (imported(name, archive, inner, events), about)
    for name, about in GENERATED.items():
        found[name] = (generated(name, events), about)
    return {name: (trace, about) for name, (trace, about) in found.items() if trace}


def cpu_seconds(command):
    with begin(command) as process:
        usage = end(process, command)
    return usage.ru_utime + usage.ru_stime


def rates(events, rounds, out):
    found = traces(events)
    for trace, _ in found.values():
        warm(trace)
    seconds = {name: [] for name in found}
    for _ in range(rounds):
        for name, (trace, _) in found.items():
            seconds[name].append(cpu_seconds([TRACEBRAID, "count", "-j", "1", trace]))
    counts = {name: count_events(trace) for name, (trace, _) in found.items()}
    rate = {name: counts[name] / statistics.median(times) / 1e6 for name, times in seconds.items()}
    best = max(rate.values())
    out.head("layout", "event records", "million/s", "spread", "of the best")
    for name, million in sorted(rate.items(), key=lambda item: -item[1]):
        low, high = (counts[name] / edge(seconds[name]) / 1e6 for edge in (max, min))
        out.row(f"{found[name][1]} ({name})", f"{counts[name]:,}", f"{million:.0f}", f"{low:.0f}-{high:.0f}", f"{million / best:.2f}")
    out()


def reports(events, rounds, out):
    """cpu and io on many-threads, alternating with babeltrace2's counter."""
    source = SHARED / DIRECTORIES["many-threads"][0]
    if not source.exists() or not shutil.which("babeltrace2"):
        print("SKIPPED: many-threads or babeltrace2 is missing\n")
        return
    trace = grown(source, "many-threads", events)
    warm(trace)
    ratios = {"cpu": [], "io": []}
    for _ in range(rounds):
        peer = cpu_seconds(["babeltrace2", trace, "-c", "sink.utils.counter"])
        for report, found in ratios.items():
            found.append(peer / cpu_seconds([TRACEBRAID, report, "-j", "1", trace]))
    out.head("report on many-threads", "x babeltrace2's counter", "spread")
    for report, found in ratios.items():
        out.row(report, f"{statistics.median(found):.1f}", f"{min(found):.1f}-{max(found):.1f}")
    out()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("--save", type=Path, help="also write the tables to this file")
    args = parser.parse_args()
    out = Output()
    out(f"{common.today()}, {common.machine()}, {args.rounds} rounds\n")
    rates(args.events, args.rounds, out)
    if args.reports:
        reports(args.events, args.rounds, out)
    if args.save:
        out.save(args.save)


if __name__ == "__main__":
    main()
