"""Takes screenshots of the program in a terminal, as SVG.

Usage: take.py PROGRAM TRACES TO
       take.py PROGRAM DIRECTORY TO.svg COMMAND [COLUMNS]

Each command of SCREENS runs in a terminal of its own; its picture is TO/NAME.svg.
Traces are named as below TRACES. With a COMMAND, only that one, which runs in DIRECTORY, in a
terminal of COLUMNS (130) columns.
"""

import os
import pathlib
import pty
import re
import shlex
import struct
import sys
import termios
from fcntl import ioctl

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 100
WIDE = 130
LINES = 40

SCREENS = {
    "report": "tracebraid report kernel-mix-small",
    "cpu": "tracebraid cpu --top 8 kernel-mix-small",
    "io": "tracebraid io --top 6 kernel-mix-small",
    "files": "tracebraid files --top 10 kernel-mix-small",
    "processes": "tracebraid processes --top 25 kernel-mix-small",
    "syscalls": "tracebraid syscalls --top 6 kernel-mix-small",
    "syscalls-freq": "tracebraid syscalls --view freq --syscall openat kernel-mix-small",
    "sched-top": "tracebraid sched --view top --top 8 kernel-mix-small",
    "irq": "tracebraid irq kernel-mix-small",
    "disk": "tracebraid disk --top 6 kernel-mix-small",
    "waits": "tracebraid waits --top 8 kernel-ust-requests",
    "critical-path": "tracebraid critical-path --longest 'f*sync' --top 1 kernel-ust-requests",
    "history": "tracebraid history report kernel-mix-small.history 'cpu/*/state' 'disk/*/depth'",
    "sync": "tracebraid sync twohost-client twohost-server",
}

# Screens with lines that are not broken: commands to copy.
WIDER = {"report"}

# Commands that run first: they make the input of others.
BEFORE = ["tracebraid history build kernel-mix-small -o kernel-mix-small.history"]

# As the usual form, but without a font from the network.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def run(program, traces, command, columns=COLUMNS):
    """The output of the command on a terminal with a number of columns."""
    words = shlex.split(command)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(traces)
        os.execv(program, words)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
    drawn = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # The other side is closed.
            break
        if not chunk:
            break
        drawn += chunk
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{command} failed: {drawn.decode(errors='replace')}")
    return drawn.decode()


def lines_of(drawn):
    """The lines that stay: progress bars draw over theirs, and erase them."""
    kept = []
    for line in drawn.replace("\r\n", "\n").split("\n"):
        line = line.rsplit("\r", 1)[-1]
        kept.append(re.sub(r"\x1b\[\??[0-9;]*[A-HJKhlsu]", "", line))
    return "\n".join(kept).strip("\n")


def take(program, traces, command, path, columns=COLUMNS):
    """Writes what the command draws as a picture."""
    text = Text.from_ansi(lines_of(run(program, traces, command, columns)))
    console = Console(width=columns, record=True, file=open(os.devnull, "w"), color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    console.print(text, no_wrap=True, crop=False)
    svg = console.export_svg(title=command, theme=MONOKAI, code_format=FORMAT, unique_id=path.stem)
    path.write_text("\n".join(line.rstrip() for line in svg.split("\n")))
    print(path)


def main(program, traces, to, command=None, columns=WIDE):
    program = os.path.abspath(program)
    to = pathlib.Path(to)
    if command is not None:
        take(program, traces, command, to, int(columns))
        return
    for before in BEFORE:
        run(program, traces, before)
    for name, command in SCREENS.items():
        columns = WIDE if name in WIDER else COLUMNS
        take(program, traces, command, to / f"{name}.svg", columns)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5, 6):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
