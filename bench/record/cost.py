"""What recording costs programs that call, switch, fork, start programs and serve requests, beside perf record.

For each workload there is one setting of the recorder and of its peer, and a target, as a ratio to the same program alone.
"""

import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from recorder import (DEFAULT, IS_ROOT, STACKS, SYSCALLS, compile_c, environment, in_turn, left_out, needed, recorded,
                      spread, under_recorder)

ALL_EVENTS = ["-a", "-e", "sched:*,irq:*,timer:*,block:*,net:*,raw_syscalls:*"]
CALL_EVENTS = ["-a", "-e", "raw_syscalls:*"]
CALL_CHAINS = ["-g"]
WAYS = ("plain", "tracebraid", "perf record")
MAKEFILE = "all: $(addprefix job,$(shell seq {jobs}))\njob%: ; @/bin/true\n.PHONY: all\n"
JOBS = 1000
SECONDS = 3


class Compiled:
    """A C program of this folder that prints several figures in nanoseconds."""

    def __init__(self, title, name, rounds, place, settings):
        self.title, self.name, self.rounds, self.place, self.settings = title, name, rounds, place, settings

    def prepare(self, directory):
        self.program = needed(compile_c(directory, self.name))
        return True

    def run(self, start):
        done = start([self.program, self.rounds], capture_output=True, text=True)
        return float(done.stdout.split()[self.place])


class Make:
    """`make -j4` of short programs; seconds."""

    title = f"make -j4 of {JOBS:,} programs, call stacks, s"
    settings = STACKS, CALL_CHAINS, 1.56

    def prepare(self, directory):
        self.makefile = directory / "Makefile"
        self.makefile.write_text(MAKEFILE.format(jobs=JOBS))
        return shutil.which("make") is not None

    def run(self, start):
        begin = time.perf_counter()
        start(["make", "-s", "-j4", "-f", self.makefile], capture_output=True, text=True)
        return time.perf_counter() - begin


class Nginx:
    """nginx under wrk; microseconds per request, of one worker."""

    title = "nginx, the default, us a request"
    settings = DEFAULT, ALL_EVENTS, 1.25
    port = "18473"

    def prepare(self, directory):
        self.directory = directory / "nginx"
        self.directory.mkdir()
        (self.directory / "index.html").write_text("x" * 1000)
        self.config = self.directory / "nginx.conf"
        self.config.write_text(
            f"daemon off; master_process off; pid {self.directory}/pid; error_log {self.directory}/error;\n"
            f"events {{ }} http {{ access_log off; keepalive_requests 100000000;\n"
            f"server {{ listen 127.0.0.1:{self.port}; root {self.directory}; }} }}\n")
        return all(shutil.which(name) for name in ("nginx", "wrk", "curl"))

    def run(self, start):
        server = start(["nginx", "-c", self.config], background=True)
        try:
            url = f"http://127.0.0.1:{self.port}/index.html"
            deadline = time.monotonic() + 30
            while subprocess.run(["curl", "-s", "-o", "/dev/null", url]).returncode != 0:
                if time.monotonic() > deadline:
                    raise RuntimeError("nginx does not answer")
                time.sleep(0.02)
            done = subprocess.run(["wrk", "-t1", "-c8", f"-d{SECONDS}", url], capture_output=True, text=True)
            return 1e6 / float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)[1])
        finally:
            pid = self.directory / "pid"
            if pid.exists():
                subprocess.run(["kill", "-QUIT", pid.read_text().strip()])
            server.wait(60)


# Settings of the recorder and of its peer, and the ratio that is wanted.
WORKLOADS = (
    Compiled("getppid, system calls, ns", "calls", 40, 0, (SYSCALLS, CALL_EVENTS, 2.1)),
    Compiled("getppid, the default, ns", "calls", 40, 0, (DEFAULT, ALL_EVENTS, 2.3)),
    Compiled("round trip of two processes, call stacks, ns", "switches", 20, 0, (STACKS, CALL_CHAINS, 1.13)),
    Compiled("round trip of two processes, the default, ns", "switches", 20, 0, (DEFAULT, ALL_EVENTS, 1.32)),
    Compiled("fork and its end, call stacks, ns", "switches", 20, 1, (STACKS, CALL_CHAINS, 2.1)),
    Make(),
    Nginx(),
)


def starter(way, settings, directory):
    ours, theirs, _ = settings

    def start(command, background=False, **options):
        words = [str(word) for word in command]
        if way == "tracebraid":
            words = under_recorder(ours, directory / "trace", words)
        elif way == "perf record":
            words = ["perf", "record", "-q", "-o", str(directory / "perf.data"), *theirs, "--", *words]
        if background:
            return subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return subprocess.run(words, env=environment(), check=True, **options)
    return start


def measure(runs, out):
    out("### The cost to programs\n")
    if not IS_ROOT:
        left_out(["the cost to programs"], out)
        return
    ways = [way for way in WAYS if way != "perf record" or shutil.which("perf")]
    out("Medians of runs in turn (the least to the greatest), the ratio to plain, and the ratio that is wanted:\n")
    out.head("", *(f"{way}{kind}" for way in ways for kind in (("",) if way == "plain" else ("", ", ratio"))), "wanted", "events lost")
    for workload in WORKLOADS:
        with tempfile.TemporaryDirectory() as name:
            row(workload, ways, runs, Path(name), out)
    out()


def row(workload, ways, runs, directory, out):
    if not workload.prepare(directory):
        out.row(workload.title, "**NOT MEASURED**: a program is missing")
        return
    found, lost = {way: [] for way in ways}, 0
    for way in in_turn(ways, runs):
        found[way].append(workload.run(starter(way, workload.settings, directory)))
        if way == "tracebraid":
            lost += recorded(directory / "trace")[1]
            shutil.rmtree(directory / "trace")
    plain = statistics.median(found["plain"])
    digits = 0 if plain > 100 else 2
    cells = []
    for way in ways:
        cells.append(spread(found[way], digits))
        if way != "plain":
            cells.append(f"{statistics.median(found[way]) / plain:.2f}")
    out.row(workload.title, *cells, workload.settings[2], lost)
