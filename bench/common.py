"""Code shared by all measurements: paths, resource use of commands, a description of the machine, Markdown output."""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
BUILT = Path(subprocess.check_output([ROOT / "scripts/target"], text=True).strip())
# Build of the program: release, tuned (by `make tuned`) or quick (by `cargo build --profile
# quick`).
PROFILE = os.environ.get("BENCH_PROFILE", "release")
# The directory of the other build results: only the program is ever tuned.
TARGET = BUILT / ("release" if PROFILE == "tuned" else PROFILE)
TRACEBRAID = BUILT / PROFILE / "tracebraid"


def committed_trace():
    """The committed kernel trace, unpacked once."""
    trace = CACHE / "traces" / "kernel-mix-small"
    if not trace.exists():
        trace.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xJf", ROOT / "tests/data/kernel-mix-small.tar.xz", "-C", trace.parent], check=True)
    return trace


# Traces that are too large for the repository, or not ours; used if they exist.
SHARED = ROOT.parent / "shared/traces"


def grown(source, name, events):
    """The trace grown to at least `events` events, created once."""
    target = CACHE / "bench" / f"{name}-{events}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        testkit = TARGET / "tracebraid-testkit"
        subprocess.run([testkit, "grow", source, part, "--events", str(events)], check=True)
        part.rename(target)
    return target


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                  if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}"


def today():
    return time.strftime("%Y-%m-%d")


class Measure:
    """CPU seconds, wall seconds and peak memory (KiB) of several runs of a command."""

    def __init__(self):
        self.cpu, self.wall, self.resident, self.anonymous = [], [], [], []

    def run(self, command):
        start = time.perf_counter()
        with begin(command) as process:
            usage = end(process, command)
        wall = time.perf_counter() - start
        self.cpu.append(usage.ru_utime + usage.ru_stime)
        self.wall.append(wall)
        self.resident.append(usage.ru_maxrss)

    def watch(self, command):
        """Measures the peak of anonymous memory in a separate run, since sampling takes CPU time."""
        with begin(command) as process:
            peak = [0]
            watcher = threading.Thread(target=watch_anonymous, args=(process.pid, peak))
            watcher.start()
            end(process, command)
            watcher.join()
        self.anonymous.append(peak[0])

    def spread(self, values):
        return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def beside_each_other(commands):
    """Wall seconds until the last of several concurrent commands ends."""
    start = time.perf_counter()
    processes = [begin(command) for command in commands]
    for process, command in zip(processes, commands):
        end(process, command)
    return time.perf_counter() - start


def begin(command):
    if "-o" in command:
        # The removal of an earlier output must not be measured.
        existing = Path(command[command.index("-o") + 1])
        if existing.is_dir():
            shutil.rmtree(existing)
        else:
            existing.unlink(missing_ok=True)
    parts = [str(part) for part in command]
    return subprocess.Popen(parts, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def end(process, command):
    """Waits for the process; returns its resource use."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, command))} ended with {process.returncode}")
    return usage


def watch_anonymous(pid, peak):
    """Samples a process's anonymous memory until it ends."""
    path = f"/proc/{pid}/status"
    while True:
        try:
            with open(path, encoding="ascii") as status:
                lines = [line for line in status if line.startswith("RssAnon")]
        except (FileNotFoundError, ProcessLookupError):
            return
        if not lines:
            return
        peak[0] = max(peak[0], int(lines[0].split()[1]))
        time.sleep(0.003)


def warm(trace):
    for path in sorted(trace.rglob("*")):
        if path.is_file():
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def size_of(trace):
    """Size of all its files in bytes."""
    return sum(path.stat().st_size for path in trace.rglob("*") if path.is_file())


def count_events(trace):
    output = subprocess.run([TRACEBRAID, "count", trace, "--format", "json"], check=True, capture_output=True)
    return json.loads(output.stdout)["events"]


class Output:
    """Prints lines at once, and can save them."""

    def __init__(self):
        self.lines = []

    def __call__(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def row(self, *cells):
        self("| " + " | ".join(str(cell) for cell in cells) + " |")

    def head(self, *cells):
        self.row(*cells)
        self("|" + "---|" * len(cells))

    def save(self, path):
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
