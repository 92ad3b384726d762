"""Cost of a probe, compared with LTTng-UST's tracepoint if liblttng-ust-dev and lttng-tools are installed.

A run's figure is the median of a thousand rounds; the tables show the median of the runs, the minimum and the
maximum. LTTNG_PREFIX names a directory with the peer's usr/include and usr/lib, if it is not installed in the system.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, TARGET
from recorder import compile_c, in_turn, needed, spread

PREFIX = os.environ.get("LTTNG_PREFIX", "")
MACHINE = f"{os.uname().machine}-linux-gnu"
PEER = ["-I", f"{PREFIX}/usr/include", "-I", f"{PREFIX}/usr/include/{MACHINE}", "-L", f"{PREFIX}/usr/lib/{MACHINE}",
        f"-Wl,-rpath-link,{PREFIX}/usr/lib/{MACHINE}", "-llttng-ust", "-ldl"]
OURS = ["-I", ROOT / "record/probe/include", "-L", TARGET, "-ltracebraid_probe", f"-Wl,-rpath,{TARGET}"]
COLUMNS = ["enabled", "disabled", "the empty loop", "the cycle counter alone"]


def run(program, variables):
    output = subprocess.run([program], env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return [float(word) for word in output.stdout.split()]


def tracebraid(program, directory, mode):
    session = directory / f"session-{mode}"
    session.mkdir()
    (session / "probe.conf").write_text(f"mode = {mode}\nenable = bench:enabled\n")
    figures = run(program, {"TRACEBRAID_SESSION": str(session)})
    shutil.rmtree(session)
    return figures


class Lttng:
    """A private session daemon, and a session that records one of the two tracepoints."""

    def __init__(self, directory):
        self.output = directory / "lttng-trace"
        self.environment = {"LTTNG_HOME": str(directory), "LTTNG_UST_REGISTER_TIMEOUT": "5000"}
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={**os.environ, **self.environment})
        if PREFIX:
            self.environment["LD_LIBRARY_PATH"] = f"{PREFIX}/usr/lib/{MACHINE}"
        for _ in range(50):
            if self.call("list").returncode == 0:
                break
            time.sleep(0.1)

    def call(self, *arguments):
        return subprocess.run(["lttng", "-n", *arguments], env={**os.environ, **self.environment},
                              capture_output=True, text=True)

    def lttng(self, *arguments):
        done = self.call(*arguments)
        if done.returncode != 0:
            sys.exit(f"lttng {arguments}: {done.stdout} {done.stderr}")

    def measure(self, program):
        self.lttng("create", "bench", f"--output={self.output}")
        self.lttng("enable-channel", "--userspace", "--overwrite", "bench")
        self.lttng("enable-event", "--userspace", "--channel=bench", "bench:enabled")
        self.lttng("start")
        figures = run(program, self.environment)
        self.lttng("destroy", "bench")
        shutil.rmtree(self.output, ignore_errors=True)
        return figures

    def end(self):
        self.daemon.terminate()
        self.daemon.wait()


def measure(runs, out):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ours = needed(compile_c(directory, "tracebraid", OURS))
        theirs = compile_c(directory, "lttng", PEER) if shutil.which("lttng-sessiond") else None
        lttng = Lttng(directory) if theirs else None
        ways = {
            "tracebraid, mode ring": lambda: tracebraid(ours, directory, "ring"),
            "tracebraid, mode grow": lambda: tracebraid(ours, directory, "grow"),
        }
        if lttng:
            ways["LTTng-UST, overwrite mode"] = lambda: lttng.measure(theirs)
        results = {way: [] for way in ways}
        try:
            for way in in_turn(ways, runs):
                results[way].append(ways[way]())
        finally:
            if lttng:
                lttng.end()
    out("### A probe with two integers\n")
    if not lttng:
        out("**NOT MEASURED**: LTTng-UST's tracepoint: install liblttng-ust-dev and lttng-tools.\n")
    out.head("ns per event", *COLUMNS, "enabled less the counter", "disabled less the loop")
    for way, figures in results.items():
        over = [enabled - counter for enabled, _, _, counter in figures]
        off = [disabled - loop for _, disabled, loop, _ in figures]
        out.row(way, *(spread(column, 2) for column in zip(*figures)), spread(over, 2), spread(off, 2))
    out()
