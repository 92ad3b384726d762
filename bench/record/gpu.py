"""Tables 2 to 5 of the paper on LTTng CLUST (Couturier and Dagenais 2015) on the OpenCL device of this machine.

Each figure is that of a program: it prints the time of a call, or of an iteration, in each of its samples, whose median
counts.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from common import TARGET
from recorder import DEFAULT, IS_ROOT, compile_c, environment, in_turn, left_out, recorded, spread, under_recorder

LIBRARY = TARGET / "libtracebraid_gpu.so"
CALLS = ["--kernel", "none", "--syscalls", "none", "--gpu"]
BASE, LOADED, QUIET = "base", "loaded, without a session", "loaded, nothing recorded"
RECORDED, EXPORTED, KERNEL = "recorded by the layer", "recorded by exported functions", "recorded, and the kernel around"
# PoCL's thread runs on the same CPU or another one: the time of a command then differs twofold, at random.
PINNED = ["taskset", "-c", "1" if os.cpu_count() > 1 else "0"]
# What starts the program, and options of `record`.
WAYS = {
    BASE: ([], None),
    LOADED: (["env", f"LD_PRELOAD={LIBRARY}"], None),
    QUIET: (["env", f"LD_PRELOAD={LIBRARY}", f"OPENCL_LAYERS={LIBRARY}", "TRACEBRAID_SESSION={session}"], None),
    RECORDED: ([], CALLS),
    EXPORTED: (["env", "-u", "OPENCL_LAYERS"], CALLS),
    KERNEL: ([], [*DEFAULT, "--gpu"]),
}
# Calls of a sample, and samples.
LOOPS = [(1, 100), (100, 100), (10_000, 50), (100_000, 10)]
BYTES = [4, 40, 400, 4_000, 40_000, 400_000]
# Width and height of the image, iterations of a sample, and samples.
IMAGES = [(1, 1, 100, 20), (10, 1, 100, 20), (10, 10, 100, 20), (10, 100, 100, 20), (100, 100, 100, 20),
          (1000, 100, 50, 10), (1280, 720, 10, 10), (1920, 1080, 10, 10)]


class Measurement:
    """Runs of a program in several ways."""

    def __init__(self, directory, ways, runs):
        self.directory, self.ways, self.runs = directory, ways, runs
        self.session = directory / "session"
        self.lost = 0

    def median(self, way, command):
        """The median of the samples of one run."""
        before, options = WAYS[way]
        trace = self.directory / "trace"
        self.session.mkdir()
        (self.session / "probe.conf").write_text("disable = *\n")
        command = [*PINNED, *(word.format(session=self.session) for word in before), *(str(word) for word in command)]
        command = under_recorder(options, trace, command)
        variables = {**environment(), "POCL_CACHE_DIR": str(self.directory)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        if options is not None:
            self.lost += recorded(trace)[1]
            shutil.rmtree(trace)
        shutil.rmtree(self.session)
        return statistics.median(float(line) for line in done.stdout.split())

    def table(self, title, name, cases, out):
        """A row for each case: the figures of all settings, and the difference of the medians to the first
        setting."""
        out(f"{title}:\n")
        out.head(name, *self.ways)
        for case, command in cases:
            found = {way: [] for way in self.ways}
            for way in in_turn(self.ways, self.runs):
                found[way].append(self.median(way, command))
            out.row(case, *self.cells(list(found.values())))
        out()

    def cells(self, ways):
        base = statistics.median(ways[0])
        digits = 0 if base > 1000 else 1
        yield spread(ways[0], digits)
        for figures in ways[1:]:
            yield f"{spread(figures, digits)}, **{statistics.median(figures) - base:+.{digits}f}**"


def measure(runs, out):
    out("### OpenCL\n")
    if not LIBRARY.is_file():
        out(f"**NOT MEASURED, since it is not built**: {LIBRARY.name}.\n")
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        calls, image = (compile_c(directory, program, ["-lOpenCL"]) for program in ("opencl_calls", "opencl_image"))
        if not calls or not image:
            out("**NOT MEASURED, since OpenCL is not installed.**\n")
            return
        measure_programs(calls, image, directory, runs, out)


def measure_programs(calls, image, directory, runs, out):
    out("Nanoseconds on one CPU, median (minimum to maximum) of the runs, and the difference of the median to the base.\n")
    both = Measurement(directory, [BASE, LOADED, QUIET, RECORDED, EXPORTED], runs)
    both.table("A call of clGetPlatformIDs (table 2 of the paper)", "calls of a sample",
               [(f"{count:,}", [calls, samples, count]) for count, samples in LOOPS], out)
    both.table("A blocking clEnqueueReadBuffer (table 3)", "bytes",
               [(f"{size:,}", [calls, 20, 500, size]) for size in BYTES], out)
    left_out([] if IS_ROOT else [KERNEL], out)
    images = Measurement(directory, [BASE, LOADED, RECORDED, *([KERNEL] if IS_ROOT else [])], runs)
    images.table("14 calls and 2 commands that make an image (tables 4 and 5)", "pixels",
                 [(f"{width:,} x {height:,}", [image, samples, iterations, width, height])
                  for width, height, iterations, samples in IMAGES], out)
    out(f"Events lost: {both.lost + images.lost}.\n")
