"""What all measurements share: where things are, the machine in words, Markdown that is shown and kept."""

import os
import platform
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# Of the program: tuned is what `make tuned` made, quick what `cargo build --profile quick` made.
PROFILE = os.environ.get("BENCH_PROFILE", "release")
# Where the other things are that were built: only the program is ever tuned.
TARGET = BUILT / ("release" if PROFILE == "tuned" else PROFILE)
TRACEBRAID = BUILT / PROFILE / "tracebraid"


def committed_trace():
    """The committed kernel trace, unpacked once."""
    trace = CACHE / "traces" / "kernel-mix-small"
    if not trace.exists():
        trace.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xJf", ROOT / "tests/data/kernel-mix-small.tar.xz", "-C", trace.parent], check=True)
    return trace


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                  if line.startswith("model name")), "unknown")
    return f"{model}, {os.cpu_count()} CPUs, Linux {platform.release()}"


def today():
    return time.strftime("%Y-%m-%d")


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
