"""Cost of a captured stack, measured by the example `unwinders` of record/unwind."""

import re
import statistics
import subprocess

from common import TARGET
from recorder import spread

EXAMPLE = TARGET / "examples" / "unwinders"
LINE = re.compile(r"(\w+) +(\d+) frames: known +(\d+) ns(?:.*, new +(\d+) ns)?")
# Doray and Dagenais 2016, 5.2.
PAPER = "7", "326"


def measure(runs, out):
    out("### A call stack\n")
    if not EXAMPLE.exists():
        out(f"**NOT MEASURED**: {EXAMPLE} is missing: cargo build --release -p tracebraid-unwind --example unwinders\n")
        return
    results = {}
    for _ in range(runs):
        text = subprocess.run([EXAMPLE], capture_output=True, text=True, check=True).stdout
        for name, frames, known, new in LINE.findall(text):
            known_new = results.setdefault(name, {}).setdefault(int(frames), ([], []))
            known_new[0].append(float(known))
            if new:
                known_new[1].append(float(new))
    out.head("ns per stack", "frames", "frames known", "frames new", "ns a known frame", "ns a new frame")
    for name, depths in results.items():
        per_frame = [slope(depths, column) for column in (0, 1)]
        for frames, (known, new) in sorted(depths.items()):
            out.row(name, frames, spread(known, 0), spread(new, 0) if new else "", *per_frame)
    out.row("the paper's", "", "", "", *PAPER)
    out()


def slope(depths, column):
    """Nanoseconds per frame, from the difference of two depths."""
    (least, short), (most, long) = min(depths.items()), max(depths.items())
    if not short[column] or least == most:
        return ""
    return f"{(statistics.median(long[column]) - statistics.median(short[column])) / (most - least):.1f}"
