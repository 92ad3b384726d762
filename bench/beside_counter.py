"""Commands beside babeltrace2's counter on the same trace, in turn, with a warm page cache.

The table contains CPU seconds with one thread, the serial share, the peak memory, and the speed compared with the counter:
measured with one thread, and predicted for 16 threads by the pieces of work (schedule.py).
"""

import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import schedule
from common import Measure, warm

THREADS = 16


def timings(command):
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "timings.json"
        Measure().run([*command, "-j", "1", "--timings", file])
        return json.loads(file.read_text(encoding="utf-8"))


def row(out, name, command, measure, counter):
    share = timings(command)
    ratios = [other / own for other, own in zip(counter.cpu, measure.cpu)]
    ratio = statistics.median(ratios)
    spread = f"{ratio:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    predicted = ratio * schedule.speed_up_of(share, THREADS)
    out.row(name, measure.spread(measure.cpu), f"{share['serial_share'] * 100:.1f} %", f"{max(measure.resident) / 1024:.0f}", spread,
            f"{predicted:.0f}")


def table(out, trace, commands, rounds):
    """Measures commands, by name, that read the trace."""
    warm(trace)
    measures = {name: Measure() for name in commands}
    counter = Measure()
    for _ in range(rounds):
        counter.run(["babeltrace2", trace, "-c", "sink.utils.counter"])
        for name, command in commands.items():
            measures[name].run([*command, "-j", "1"])
    out.head("", "CPU s, one thread", "serial share", "peak RSS, MB", "times the counter", f"with {THREADS} threads (predicted)")
    for name, command in commands.items():
        row(out, name, command, measures[name], counter)
    out.row("babeltrace2's counter", counter.spread(counter.cpu), "", f"{max(counter.resident) / 1024:.0f}", "1", "")
