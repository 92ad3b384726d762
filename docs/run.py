#!/usr/bin/env python3
"""Runs the command lines of README.md and of the pages in docs.

In:  pages (default: README.md and docs/**/*.md); the program TRACEBRAID (default: the debug build).
Out: page:line, command and output of each failure; the blocks that did not run, with their reasons.
Exit: 0 if all that could run did, 1 if a block failed or a page is not written as below, 2 for
wrong usage.

A fenced block with the language `sh` holds commands that run as they stand. The blocks of a page
run from its top, in one bash, in a directory of the page's own, with the program as `tracebraid`
on the PATH. A command fails by `set -e`; in a pipeline, the first failing command counts, except
for one that writes to a pipe which its reader has closed (`| head`).

A marker in the line before a block says that it cannot run everywhere:

    <!-- needs: root -->        only where all the names are met, see NEEDS; any other name is
                                that of a program, or `python:` and that of a module
    <!-- not run: REASON -->    only its reader can run it
    <!-- later: OPTION -->      the program does not have the option yet; --later runs the block

The marker `<!-- output -->` before a block of another language: the block is the whole output of
the `sh` block before it. A line `...` stands for any lines, `...` within a line for any characters.
--update writes outputs without `...` anew. --fixtures DIR puts the fixtures into a new directory.

FIXTURES, and each archive of tests/data and case study, are in the directory of a page that names
them. Fixtures are links: a page writes beside them, not into them.
"""

import argparse
import concurrent.futures
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Seconds. The longest page takes 10.
PAGE_LIMIT = 60
WORKERS = 2
# Of a block's output in a report.
LINES_SHOWN = 40

STUDY = "docs/case-studies/disk-contention"
# name in a page's directory: (archive or file of the repository, path in the archive)
FIXTURES = {
    "kernel-trace": ("tests/data/kernel-mix-small.tar.xz", "kernel-mix-small"),
    "kernel-trace.tar.xz": ("tests/data/kernel-mix-small.tar.xz", None),
    "requests": (f"{STUDY}/recording.tar.xz", "disk-contention"),
    "requests.debug": (f"{STUDY}/recording.tar.xz", "disk-contention.debug"),
    "requests.periods": (f"{STUDY}/requests.periods", None),
    "requests.db": (f"{STUDY}/requests.db", None),
    "trace.fxt": ("fuzz/corpus/import/fxt-64", None),
    "perf.data": ("tests/data/perf-chains.tar.xz", "perf-chains/chains.data"),
    "trace.dat": ("tests/data/trace-cmd-files.tar.xz", "trace-cmd-files/v7.dat"),
    "twohost-client": ("tests/data/twohost.tar.xz", "twohost-client"),
    "twohost-server": ("tests/data/twohost.tar.xz", "twohost-server"),
    # For pages whose commands run at the root of the repository.
    "docs/": ("docs", None),
    "record/": ("record", None),
    "tests/": ("tests", None),
}
FENCE = re.compile(r"^( *)(`{3,})\s*(\S*)(.*)$")
MARKER = re.compile(r"^\s*<!--\s*(needs|not run|later|output)(?::\s*(.*?))?\s*-->\s*$")
INDENTED = re.compile(r"^( {4}|\t)(\$ |sudo )*tracebraid ")
# The ERR trap: what failed goes to descriptor 9. 141 is the status of a writer that SIGPIPE ended.
PROLOGUE = (
    "set -E -o pipefail; trap 'tb_status=$?; [ $tb_status = 141 ] || "
    '{ echo "$LINENO $tb_status" >&9; exit $tb_status; }\' ERR'
)


class Mistake(Exception):
    """A page that is not written as the head of this file says."""

    def __init__(self, page, line, text):
        super().__init__(f"{page}:{line}: {text}")


class Block:
    """A fenced block: its language, the line of its first text, its texts, its marker."""

    def __init__(self, language, line, indent, marker):
        self.language, self.line, self.indent, self.marker = language, line, indent, marker
        self.lines = []


def blocks_of(page, text):
    """All fenced blocks of a page."""
    found, block, fence, before = [], None, None, ""
    for number, line in enumerate(text.split("\n"), 1):
        opened = FENCE.match(line)
        if block is None and opened:
            fence = opened[2]
            if not opened[3]:
                raise Mistake(page, number, "a block without a language: sh, text, json, ...")
            marker = marker_of(page, number - 1, before)
            block = Block(opened[3], number + 1, len(opened[1]), marker)
        elif block is not None and line.strip() == fence:
            found.append(block)
            block, line = None, ""
        elif block is None and INDENTED.match(line) and not before.strip():
            raise Mistake(page, number, "commands in an indented block, which do not run: use ```sh")
        elif block is not None:
            block.lines.append(line[block.indent :] if line[: block.indent].isspace() else line)
        before = line
    if block is not None:
        raise Mistake(page, block.line - 1, "a fenced block that has no end")
    return found


def marker_of(page, number, line):
    """(kind, value) of the marker in a line, or None."""
    found = MARKER.match(line)
    if found is None:
        if re.match(r"\s*<!--\s*(needs|not run|later|output)\b", line):
            known = "<!-- needs: NAMES -->, <!-- not run: REASON -->, <!-- later: OPTION -->"
            raise Mistake(page, number, f"unknown marker; known: {known}, <!-- output -->")
        return None
    kind, value = found[1], found[2] or ""
    if not value and kind != "output":
        raise Mistake(page, number, f"marker without a value: <!-- {kind}: ... -->")
    return kind, value


@functools.lru_cache(maxsize=None)
def is_met(name, program):
    """Whether this machine has what blocks with `needs: NAME` need."""
    if name.startswith("python:"):
        return importlib.util.find_spec(name.removeprefix("python:")) is not None
    return NEEDS.get(name, lambda _: shutil.which(name) is not None)(program)


def can_record(*command):
    """Whether a recorder works here: root may be missing, or refused by the kernel. Its last option
    takes the path of its output."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as directory:
        run = [*command, f"{directory}/trace", "--", "true"]
        return subprocess.run(run, capture_output=True, cwd=directory).returncode == 0


def has_postgresql(_program):
    """PostgreSQL installed as Debian has it, or unpacked by scripts/programs."""
    roots = [pathlib.Path("/"), ROOT / ".cache/programs"]
    found = (path for root in roots for path in root.glob("usr/lib/postgresql/*/bin/postgres"))
    return shutil.which("postgres") is not None or any(found)


def has_libraries(program):
    """The library of probes, where `make install` or cargo puts it."""
    return (libraries_of(program) / "libtracebraid_probe.so").exists()


def libraries_of(program):
    """The directory of the libraries that belong to a program.

    A build for tests leaves them in `deps`, beside the program.
    """
    given = os.environ.get("TRACEBRAID_LIBRARIES")
    beside = pathlib.Path(program).resolve().parent
    if given:
        return pathlib.Path(given)
    is_beside = (beside / "libtracebraid_probe.so").exists()
    return beside if is_beside else beside / "deps"


NEEDS = {
    "libtracebraid_probe": has_libraries,
    "root": lambda program: os.geteuid() == 0
    and can_record(program, "record", "-q", "--kernel", "sched", "-o"),
    "perf": lambda _: can_record("perf", "record", "-a", "-e", "sched:sched_switch", "-o"),
    "trace-cmd": lambda _: can_record("trace-cmd", "record", "-e", "sched_switch", "-o"),
    "postgresql": has_postgresql,
}


def reason_not_to_run(block, options):
    """Why a block does not run here, or None."""
    kind, value = block.marker or (None, None)
    if kind == "not run":
        return f"only its reader can: {value}"
    if kind == "later" and not options.later:
        return f"the program does not have {value} yet"
    if kind == "needs":
        names = value.replace(",", " ").split()
        unmet = [name for name in names if not is_met(name, options.program)]
        if unmet:
            return f"needs {', '.join(unmet)}"
    return None


class Fixtures:
    """Files of the repository, unpacked at most once each, below one directory."""

    def __init__(self, directory):
        self.directory = directory
        self.lock = threading.Lock()
        self.table = dict(FIXTURES)
        for archive in (ROOT / "tests/data").glob("*.tar.xz"):
            name = archive.name.removesuffix(".tar.xz")
            self.table.setdefault(name, (f"tests/data/{archive.name}", name))
        # It is `requests`, and pages unpack it under this name.
        del self.table["disk-contention"]

    def unpacked(self, archive):
        """The directory with the content of an archive."""
        into = self.directory / archive.replace("/", "_")
        with self.lock:
            if not into.exists():
                into.mkdir()
                subprocess.run(["tar", "-xJf", ROOT / archive, "-C", into], check=True)
        return into

    def put(self, text, directory):
        """Into the directory of a page: each fixture that its commands name."""
        for name in self.table:
            end = "" if name.endswith("/") else r"(?![\w-])(?!\.\w)"
            if not re.search(rf"(?<![\w./-])(?:\./)?{re.escape(name)}{end}", text):
                continue
            if f"{name}.tar.xz" in text and f"{name}.tar.xz" not in self.table:
                continue  # The page unpacks it itself.
            self.put_one(name, directory)

    def put_one(self, name, directory):
        """One fixture."""
        source, inside = self.table[name]
        path = directory / name.rstrip("/")
        if inside is not None:
            os.symlink(self.unpacked(source) / inside, path)
        elif (ROOT / source).is_dir():
            os.symlink(ROOT / source, path)
        else:
            shutil.copyfile(ROOT / source, path)


class Result:
    """Failures of a page as text; (line, reason) of blocks not run; the number of blocks run."""

    def __init__(self, page):
        self.page, self.failures, self.left_out = page, [], []
        self.ran, self.seconds, self.text = 0, 0.0, None


def script_of(blocks):
    """The blocks as one bash script, each line where it is in the page; each block's output goes to
    a file named by its line."""
    lines = []
    for block in blocks:
        lines += [""] * (block.line - 2 - len(lines))
        prologue = f"{PROLOGUE}; " if block is blocks[0] else ""
        lines.append(f'{prologue}exec >"$TB_OUT/{block.line}" 2>&1')
        lines += block.lines
    return "\n".join(lines) + "\n"


# Process groups of the pages that run. Each is a session of its own, so that its end ends them all;
# a signal to this program does not reach them.
running = set()


def end_group(group):
    """Ends all processes of a group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def interrupted(number, _frame):
    """Ends the pages, and this program without waiting for its threads."""
    for group in list(running):
        end_group(group)
    os._exit(128 + number)


def run_script(script, directory, scratch, options):
    """The exit status of a script, None if it took longer than PAGE_LIMIT; failures are in
    `scratch/failed`. All processes that the script began are ended."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("XDG_") and name not in ("COLUMNS", "PAGER")
    }
    libraries = str(libraries_of(options.program))
    environment |= {
        # As `make install` would put them where compilers and Python look.
        "C_INCLUDE_PATH": f"{ROOT}/record/probe/include",
        "LIBRARY_PATH": libraries,
        "LD_LIBRARY_PATH": libraries,
        "PYTHONPATH": f"{ROOT}/record/python",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRACEBRAID_LIBRARIES": libraries,
        "HOME": f"{scratch}/home",
        "XDG_RUNTIME_DIR": f"{scratch}/run",
        "TMPDIR": f"{scratch}/tmp",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        # Tables must fit into a page.
        "TRACEBRAID_COLUMNS": "80",
        "TB_OUT": f"{scratch}/out",
        "PATH": f"{options.programs}:{os.environ['PATH']}",
    }
    with open(scratch / "out/0", "w") as errors:
        process = subprocess.Popen(
            ["bash", "-c", 'exec 9>"$1"; exec bash "$2"', "bash", scratch / "failed", script],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        running.add(process.pid)
        try:
            return process.wait(timeout=PAGE_LIMIT)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_group(process.pid)
            process.wait()
            running.discard(process.pid)
            # Recorders in the background are not in the group.
            for session in (scratch / "run/tracebraid").glob("*.sock"):
                stop = [options.program, "stop", session.stem]
                subprocess.run(stop, env=environment, capture_output=True, timeout=PAGE_LIMIT)


def command_at(block, number):
    """The command of a block that contains a line of the page, with its continuation lines."""
    first = last = min(max(number - block.line, 0), len(block.lines) - 1)
    while first > 0 and block.lines[first - 1].endswith("\\"):
        first -= 1
    while last + 1 < len(block.lines) and block.lines[last].endswith("\\"):
        last += 1
    return block.line + first, "\n".join(block.lines[first : last + 1])


def failure_of(page, runnable, scratch, status):
    """The failure of a page's script as text."""
    outputs = [block for block in runnable if (scratch / f"out/{block.line}").exists()]
    block = outputs[-1] if outputs else runnable[0]
    failed = (scratch / "failed").read_text().split("\n")[0].split()
    number = int(failed[0]) if failed else block.line
    what = f"exit status {failed[1] if failed else status}"
    if status is None:
        what = f"the page takes more than {PAGE_LIMIT} s; this block did not end"
    line, command = command_at(block, number)
    output = (scratch / f"out/{block.line}").read_text(errors="replace") if outputs else ""
    output += (scratch / "out/0").read_text(errors="replace")
    shown = output.rstrip("\n").split("\n")
    if len(shown) > LINES_SHOWN:
        shown = [f"({len(shown) - LINES_SHOWN} lines before)", *shown[-LINES_SHOWN:]]
    lines = [f"$ {text}" for text in command.split("\n")] + shown
    return f"{page}:{line}: {what}" + "".join(f"\n    {text}" for text in lines)


def is_output(lines, output):
    """Whether a block of a page is an output, with its `...`."""
    pattern = "\n".join(lines).rstrip()
    pattern = re.escape(pattern).replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, output.rstrip(), re.DOTALL) is not None


def check_outputs(result, blocks, runnable, scratch, options):
    """Compares (or, with --update, replaces) the blocks that are outputs."""
    last, replaced = None, {}
    for block in blocks:
        if block.language == "sh":
            last = block
        elif block.marker == ("output", ""):
            if last is None:
                raise Mistake(result.page, block.line - 2, "an output without commands before it")
            if last not in runnable:
                continue
            output = (scratch / f"out/{last.line}").read_text(errors="replace")
            output = "\n".join(line.rstrip() for line in output.split("\n")).rstrip("\n")
            if is_output(block.lines, output):
                continue
            if options.update and not any("..." in line for line in block.lines):
                replaced[block.line] = (len(block.lines), output.split("\n"))
            else:
                shown = "\n".join(f"    {line}" for line in output.split("\n")[:LINES_SHOWN])
                what = f"not the output of line {last.line}, which is:\n{shown}"
                result.failures.append(f"{result.page}:{block.line}: {what}")
    if replaced:
        lines = (ROOT / result.page).read_text().split("\n")
        for line in sorted(replaced, reverse=True):
            count, output = replaced[line]
            lines[line - 1 : line - 1 + count] = output
        (ROOT / result.page).write_text("\n".join(lines))


def run_page(page, fixtures, options):
    """Runs one page."""
    result, since = Result(page), time.monotonic()
    try:
        blocks = blocks_of(page, (ROOT / page).read_text())
        runnable = []
        for block in blocks:
            if block.language != "sh":
                continue
            for number, line in enumerate(block.lines, block.line):
                if line.startswith("$ "):
                    raise Mistake(page, number, "a prompt in commands: leave `$ ` out")
            reason = reason_not_to_run(block, options)
            if reason is None:
                runnable.append(block)
            else:
                result.left_out.append((block.line, reason))
        if runnable:
            with tempfile.TemporaryDirectory(prefix="page-") as scratch:
                run_blocks(result, blocks, runnable, pathlib.Path(scratch), fixtures, options)
    except Mistake as mistake:
        result.failures.append(str(mistake))
    result.seconds = time.monotonic() - since
    return result


def run_blocks(result, blocks, runnable, scratch, fixtures, options):
    """Runs the blocks of a page that can run, and compares outputs."""
    # Servers that give up root use files below.
    scratch.chmod(0o755)
    directory = scratch / pathlib.Path(result.page).stem.lower()
    for each in (directory, *(scratch / name for name in ("out", "home", "run", "tmp"))):
        each.mkdir()
    (scratch / "run").chmod(0o700)
    fixtures.put("\n".join(line for block in runnable for line in block.lines), directory)
    (scratch / "script").write_text(script_of(runnable))
    status = run_script(scratch / "script", directory, scratch, options)
    result.ran = sum((scratch / f"out/{block.line}").exists() for block in runnable)
    if status != 0:
        result.failures.append(failure_of(result.page, runnable, scratch, status))
    else:
        check_outputs(result, blocks, runnable, scratch, options)


def put_all(directory):
    """The fixtures into a new directory, for a reader who tries the commands of a page."""
    (directory / ".unpacked").mkdir(parents=True)
    fixtures = Fixtures(directory / ".unpacked")
    for name in FIXTURES:
        if not name.endswith("/"):
            fixtures.put_one(name, directory)


def prepare_programs(program, directory):
    """A directory for the PATH: `tracebraid`, and for root a `sudo` that keeps the PATH."""
    directory.mkdir()
    os.symlink(program, directory / "tracebraid")
    if os.geteuid() == 0:
        (directory / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (directory / "sudo").chmod(0o755)
    return directory


def default_program():
    """The debug build of the repository."""
    target = subprocess.check_output([ROOT / "scripts/target"], text=True)
    return f"{target.strip()}/debug/tracebraid"


def report(results):
    """Prints the results of all pages; True without failures."""
    left_out = [(result.page, *each) for result in results for each in result.left_out]
    failures = [failure for result in results for failure in result.failures]
    if left_out:
        print(f"documents: SKIPPED: {len(left_out)} blocks of commands")
        for page, line, reason in left_out:
            print(f"  {page}:{line}: {reason}")
    for failure in failures:
        print(f"documents: FAILED: {failure}")
    slowest = max(results, key=lambda result: result.seconds)
    ran = sum(result.ran for result in results)
    print(
        f"documents: {len(results)} pages, {ran} blocks ran, {len(left_out)} did not, "
        f"{len(failures)} failures; slowest: {slowest.page}, {slowest.seconds:.1f} s"
    )
    return not failures


def main():
    """The command line."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("pages", nargs="*", help="pages (default: README.md and docs/**/*.md)")
    parser.add_argument("--later", action="store_true", help="run blocks marked as later, too")
    parser.add_argument("--fixtures", metavar="DIR", help="only put the fixtures into DIR")
    parser.add_argument("--update", action="store_true", help="write the outputs in pages anew")
    options = parser.parse_args()
    if options.fixtures:
        put_all(pathlib.Path(options.fixtures).resolve())
        return 0
    options.program = os.path.realpath(os.environ.get("TRACEBRAID") or default_program())
    if not os.access(options.program, os.X_OK):
        parser.error(f"{options.program} is no program: build it (cargo build), or set TRACEBRAID")
    pages = [pathlib.Path(page).resolve() for page in options.pages]
    pages = pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        if not page.is_file() or ROOT not in page.parents:
            parser.error(f"{page} is no page of this repository")
    names = [str(page.relative_to(ROOT)) for page in pages]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    with tempfile.TemporaryDirectory(prefix="documents-") as scratch:
        scratch = pathlib.Path(scratch)
        options.programs = prepare_programs(options.program, scratch / "programs")
        fixtures = Fixtures(scratch)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            results = list(pool.map(lambda name: run_page(name, fixtures, options), names))
    return 0 if report(results) else 1


if __name__ == "__main__":
    sys.exit(main())
