"""Overhead of recording, compared with perf record and bpftrace, for programs that call, switch, fork, start programs or serve requests.

For each workload there is one setting of the recorder and of each peer, and a target, as a ratio to the same program alone.
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
# One line for each event with its time, thread and main field: the minimum output that records the
# event.
PRINTED_CALLS = """
tracepoint:raw_syscalls:sys_enter { printf("%llu %d %d\\n", nsecs, tid, args->id); }
tracepoint:raw_syscalls:sys_exit { printf("%llu %d %d %d\\n", nsecs, tid, args->id, args->ret); }
"""
PRINTED_SCHEDULING = """
tracepoint:sched:sched_switch { printf("%llu %d %d %d\\n", nsecs, args->prev_pid, args->prev_state, args->next_pid); }
tracepoint:sched:sched_waking { printf("%llu %d %d\\n", nsecs, tid, args->pid); }
tracepoint:sched:sched_wakeup { printf("%llu %d %d\\n", nsecs, tid, args->pid); }
"""
WAYS = ("plain", "tracebraid", "perf record", "bpftrace")
MAKEFILE = "all: $(addprefix job,$(shell seq {jobs}))\njob%: ; @/bin/true\n.PHONY: all\n"
JOBS = 1000
SECONDS = 3


class Compiled:
    """A C program of this folder that prints several figures in nanoseconds."""

    def __init__(self, title, name, rounds, place, settings, wanted):
        self.title, self.name, self.rounds, self.place = title, name, rounds, place
        self.settings, self.wanted = settings, wanted

    def prepare(self, directory):
        self.program = needed(compile_c(directory, self.name))
        return True

    def run(self, start):
        done = start([self.program, self.rounds], capture_output=True, text=True)
        return float(done.stdout.split()[self.place])


class Make:
    """`make -j4` of short programs; seconds."""

    title = f"make -j4 of {JOBS:,} programs, call stacks, s"
    settings = STACKS, CALL_CHAINS, None
    wanted = 1.56

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
    settings = DEFAULT, ALL_EVENTS, None
    wanted = 1.25
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


# Settings of the recorder, of perf record and of bpftrace (None: not measured), and the target: a
# ratio to plain, or a difference.
WORKLOADS = (
    Compiled("getppid, system calls, ns", "calls", 40, 0, (SYSCALLS, CALL_EVENTS, PRINTED_CALLS), "250 ns more"),
    Compiled("getppid, the default, ns", "calls", 40, 0,
             (DEFAULT, ALL_EVENTS, PRINTED_CALLS + PRINTED_SCHEDULING), "300 ns more"),
    Compiled("round trip of two processes, call stacks, ns", "switches", 20, 0, (STACKS, CALL_CHAINS, None), 1.13),
    Compiled("round trip of two processes, the default, ns", "switches", 20, 0,
             (DEFAULT, ALL_EVENTS, PRINTED_CALLS + PRINTED_SCHEDULING), 1.32),
    Compiled("fork and its end, call stacks, ns", "switches", 20, 1, (STACKS, CALL_CHAINS, None), 2.1),
    Make(),
    Nginx(),
)


def recording(way, settings, directory, words):
    """The command line that records `words` with the tool `way`."""
    ours, counters, script = settings
    if way == "tracebraid":
        return under_recorder(ours, directory / "trace", words)
    if way == "perf record":
        return ["perf", "record", "-q", "-o", str(directory / "perf.data"), *counters, "--", *words]
    if way == "bpftrace":
        return ["bpftrace", "-o", str(directory / "printed"), "-c", " ".join(words), "-e", script]
    return words


def starter(way, settings, directory):
    def start(command, background=False, **options):
        words = recording(way, settings, directory, [str(word) for word in command])
        if background:
            return subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return subprocess.run(words, env=environment(), check=True, **options)
    return start


def measure(runs, out):
    out("### Overhead for programs\n")
    if not IS_ROOT:
        left_out(["the overhead for programs"], out)
        return
    missing = [way for way in ("perf record", "bpftrace") if not shutil.which(way.split()[0])]
    if missing:
        out(f"**NOT MEASURED, since it is not installed**: {', '.join(missing)}.\n")
    ways = [way for way in WAYS if way not in missing]
    out("Medians of alternating runs (minimum to maximum), the ratio to plain, and the target, as a ratio to plain or a difference:\n")
    out.head("", *(f"{way}{kind}" for way in ways for kind in (("",) if way == "plain" else ("", ", ratio"))), "wanted", "events lost")
    for workload in WORKLOADS:
        with tempfile.TemporaryDirectory() as name:
            row(workload, ways, runs, Path(name), out)
    out()


def row(workload, ways, runs, directory, out):
    if not workload.prepare(directory):
        out.row(workload.title, "**NOT MEASURED**: a program is missing")
        return
    printed = workload.settings[-1]
    found, lost = {way: [] for way in ways}, 0
    for way in in_turn([way for way in ways if printed or way != "bpftrace"], runs):
        found[way].append(workload.run(starter(way, workload.settings, directory)))
        if way == "tracebraid":
            lost += recorded(directory / "trace")[1]
            shutil.rmtree(directory / "trace")
    plain = statistics.median(found["plain"])
    digits = 0 if plain > 100 else 2
    cells = []
    for way in ways:
        cells.append(spread(found[way], digits) if found[way] else "")
        if way != "plain":
            cells.append(f"{statistics.median(found[way]) / plain:.2f}" if found[way] else "")
    out.row(workload.title, *cells, workload.wanted, lost)
