#!/usr/bin/env python3
"""What a probe costs, beside LTTng-UST's tracepoint where liblttng-ust-dev and lttng-tools are installed.

Each program is run by turns; a run's figure is the median of a thousand rounds, what is shown is the median of the
runs with the least and the greatest. LTTNG_PREFIX names a directory with the peer's usr/include and usr/lib, if
it is not installed in the system.
"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
PREFIX = os.environ.get("LTTNG_PREFIX", "")
MACHINE = f"{os.uname().machine}-linux-gnu"
PEER = ["-I", f"{PREFIX}/usr/include", "-I", f"{PREFIX}/usr/include/{MACHINE}", "-L", f"{PREFIX}/usr/lib/{MACHINE}",
        f"-Wl,-rpath-link,{PREFIX}/usr/lib/{MACHINE}"]
RUNS = int(os.environ.get("RUNS", "9"))
COLUMNS = ["enabled", "disabled", "empty loop", "cycle counter"]


def compile_program(directory, name, options):
    program = directory / name
    command = ["cc", "-O2", "-o", program, HERE / f"{name}.c", "-I", HERE, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return program if done.returncode == 0 else print(f"{name}: not measured: {done.stderr.strip()[:300]}")


def run(program, environment):
    output = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return [float(word) for word in output.stdout.split()]


def tracebraid(program, directory, mode):
    session = directory / f"session-{mode}"
    session.mkdir()
    (session / "probe.conf").write_text(f"mode = {mode}\nenable = bench:enabled\n")
    figures = run(program, {"TRACEBRAID_SESSION": str(session)})
    shutil.rmtree(session)
    return figures


class Lttng:
    """A session daemon of our own, and a session that records one of the two tracepoints."""

    def __init__(self, directory):
        self.output = directory / "lttng-trace"
        self.daemon = subprocess.Popen(
            ["lttng-sessiond", "--no-kernel", "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.environment = {"LTTNG_UST_REGISTER_TIMEOUT": "5000"}
        if PREFIX:
            self.environment["LD_LIBRARY_PATH"] = f"{PREFIX}/usr/lib/{MACHINE}"
        for attempt in range(50):
            if subprocess.run(["lttng", "-n", "list"], capture_output=True).returncode == 0:
                break
            subprocess.run(["sleep", "0.1"])

    def lttng(self, *arguments):
        done = subprocess.run(["lttng", "-n", *arguments], capture_output=True, text=True)
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


def show(name, runs):
    print(f"{name:24}", end="")
    for column in zip(*runs):
        print(f"  {statistics.median(column):8.2f} ({min(column):.2f} to {max(column):.2f})", end="")
    print()


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        options = ["-I", ROOT / "record/probe/include", "-L", LIBRARIES, "-ltracebraid_probe", f"-Wl,-rpath,{LIBRARIES}"]
        ours = compile_program(directory, "tracebraid", options)
        if not ours:
            sys.exit("build it first: cargo build --release -p tracebraid-probe")
        peer = None
        if shutil.which("lttng-sessiond"):
            peer = compile_program(directory, "lttng", [*PEER, "-llttng-ust", "-ldl"])
        lttng = Lttng(directory) if peer else None
        results = {"tracebraid, ring": [], "tracebraid, grow": [], "LTTng-UST": []}
        try:
            for _ in range(RUNS):
                results["tracebraid, ring"].append(tracebraid(ours, directory, "ring"))
                results["tracebraid, grow"].append(tracebraid(ours, directory, "grow"))
                if lttng:
                    results["LTTng-UST"].append(lttng.measure(peer))
        finally:
            if lttng:
                lttng.end()
        print(f"{'ns per event':24}  " + "  ".join(f"{column:22}" for column in COLUMNS))
        for name, runs in results.items():
            if runs:
                show(name, runs)


main()
