"""Helpers of the measurements in this directory: compile programs, run them under the recorder, count lost events."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from common import TARGET, TRACEBRAID

PROGRAMS = Path(__file__).resolve().parent / "programs"
IS_ROOT = os.geteuid() == 0
# The defaults of `record`.
DEFAULT = []
SCHEDULING = ["--syscalls", "none"]
SYSCALLS = ["--kernel", "none", "--syscalls", "all"]
STACKS = ["--kernel", "none", "--syscalls", "none", "--stacks"]
CRITICAL_PATH = ["--syscalls", "none", "--stacks"]
EVERYTHING = ["--syscalls", "all", "--stacks"]
# The paper's scenarios, and the defaults of `record --stacks`.
SCENARIOS = {
    "base": None,
    "traditional tracing of system calls": SYSCALLS,
    "stack events": STACKS,
    "stack and critical-path events": CRITICAL_PATH,
    "all events": EVERYTHING,
}


def compile_c(directory, name, options=()):
    """Compiles `programs/NAME.c`; returns the program, or None on failure."""
    program = directory / name
    command = ["cc", "-O2", "-o", program, PROGRAMS / f"{name}.c", "-I", PROGRAMS, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"bench: {name}: {done.stderr.strip()[:300]}", file=sys.stderr)
    return program if done.returncode == 0 else None


def needed(program):
    return program or sys.exit("bench: cannot measure without that program")


def is_possible(options):
    """True if the scenario can be recorded here: recording the kernel and counting context switches need root."""
    return options is None or IS_ROOT


def left_out(names, out):
    """Prints which rows are missing in the table that follows."""
    if names:
        out(f"**NOT MEASURED, requires root**: {', '.join(names)}.\n")


def under_recorder(options, directory, command):
    """The command line that records `command` with these options of `record` into the directory."""
    if options is None:
        return [str(part) for part in command]
    return [str(part) for part in (TRACEBRAID, "record", "--quiet", "-o", directory, *options, "--", *command)]


def environment():
    return {**os.environ, "TRACEBRAID_LIBRARIES": str(TARGET)}


def recorded(directory):
    """Numbers of recorded and of lost events."""
    done = subprocess.run([TRACEBRAID, "count", directory, "--format", "json"], capture_output=True, text=True,
                          check=True)
    count = json.loads(done.stdout)
    return count["events"], count["discarded_events"]


def in_turn(names, rounds):
    """Names round by round, each round beginning with another name, so that a disturbance affects all."""
    names = list(names)
    for number in range(rounds):
        at = number % len(names)
        yield from names[at:] + names[:at]


def spread(values, digits=1):
    """Median, minimum and maximum."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
