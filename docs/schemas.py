#!/usr/bin/env python3
"""Checks the JSON schemas in docs/reference/schemas against the program.

In:  docs/reference/schemas/*.json; the program TRACEBRAID (default: the debug build).
Out: `documents: FAILED: path: mistake`; the cases that did not run, with their reasons.
Exit: 0 without mistakes, 1 with mistakes, 2 for wrong usage.

- Schemas of REPORTS are what `tracebraid schema` prints. --update writes them.
- Each property has a description, and only keywords are used that this validator knows.
- The outputs of CASES match their schemas. Objects have `additionalProperties: false`, so a new key
  is a mistake until its schema has it.

The validator is part of this file, since Python's standard library has none. It knows the keywords
that the schemas use.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import run

SCHEMAS = run.ROOT / "docs/reference/schemas"
# Rows of each table: enough for all kinds of rows, few enough to be validated in moments.
ROWS = "60"

REPORTS = (
    "cpu disk files gpu io irq levels levels-reactions memory net periods processes report sched syscalls waits".split()
)
VIEWS = ["--view", "stats,top,log,freq"]
SELECTED = ["--from", "+0.2s", "--to", "+50ms"]
ALL_FIXTURES = {
    "kernel-trace",
    "kernel-discarded",
    "kernel-ust-requests",
    "opencl-calls",
    "perf-memory",
    "perf-queues",
    "perf.data",
    "trace.dat",
    "requests",
    "requests.db",
    "requests.debug",
    "requests.periods",
    "twohost-client",
    "twohost-server",
    "user-level",
    "ust-cyg-profile",
}
NESTED = ["--period", "request : syscall_entry_* : syscall_exit_* && tid == $begin.tid"]
GROUPS = ["--a", "duration < 10ms", "--b", "duration > 50ms"]
GATES = [
    f"--fail-if={condition}"
    for condition in ("block_device > 5ms", "ctx.pread64 > 1s", "duration > 5%")
]

# Of which each report is made; that of several hosts, too.
TRACES = ("kernel-trace", "kernel-discarded", "perf-memory", "perf-queues", "trace.dat")
# (schema, arguments besides --format json). For REPORTS, see `cases`.
CASES = [
    ("count", ["kernel-discarded"]),
    ("count", ["--filter", "sched_switch && next_tid == 0", *SELECTED, "kernel-trace"]),
    ("info", ["--events", "--counts", "kernel-trace", "kernel-discarded"]),
    ("info", ["twohost-client", "requests"]),
    ("stacks", ["--debug-dir", "requests.debug", "requests"]),
    ("stacks", ["perf.data"]),
    ("print", ["--limit", "200", "kernel-trace"]),
    ("print", ["--limit", "200", "requests"]),
    ("print", ["--limit", "200", "--symbols", "ust-cyg-profile"]),
    ("critical-path", ["--longest", "f*sync", "--top", "3", "requests"]),
    ("critical-path", ["--longest", "read", "--top", "3", "twohost-client", "twohost-server"]),
    ("executions-info", ["requests.db"]),
    ("executions-list", ["--top", ROWS, "requests.db"]),
    ("executions-show", ["requests.db", "17"]),
    ("executions-export", ["requests.db"]),
    ("compare", [*GROUPS, *GATES, "requests.db"]),
    ("compare", ["requests.db"]),
    ("history-info", ["trace.history"]),
    ("history-query", ["trace.history", "cpu/*/*", "--at", "+1s"]),
    ("history-query", ["trace.history", "cpu/*/state", *SELECTED]),
    ("history-query", ["trace.history", "cpu/*/state", "--samples", "5"]),
    ("history-report", ["trace.history", "cpu/*", "disk/*"]),
    ("history-report", ["trace.history", "cpu/*/state", "--together"]),
    ("sync", ["twohost-client", "twohost-server"]),
    ("sql", ["requests.db", "SELECT * FROM segments LIMIT 5"]),
    ("sql", ["kernel-trace", "SELECT *, NULL, x'00', 1e999 FROM events LIMIT 5"]),
]
# A program with probes, in a session of the background.
PROBED = "import tracebraid, time; tracebraid.probe('shop:order', number=1); time.sleep(60)"


def cases():
    """(schema, command line) of all cases that only read fixtures."""
    top = ["--top", ROWS]
    for report in REPORTS:
        views = [] if report == "report" else VIEWS
        if report == "gpu":
            yield report, [report, *top, "opencl-calls"]
            continue
        if report.startswith("levels"):
            yield report, [*report.split("-"), *top, "user-level"]
            continue
        if report == "periods":
            definitions = ["--file", "requests.periods", "--freq-series", "--group-by", "cpu"]
            yield report, [report, *views, *top, *definitions, "requests"]
            yield report, [report, *views, *top, *NESTED, *SELECTED, "kernel-trace"]
            continue
        for trace in TRACES:
            yield report, [report, *views, *top, trace]
        yield report, [report, *views, *top, "twohost-client", "twohost-server"]
        if report != "report":
            by = {"irq": "cpu", "memory": "process"}.get(report, "all")
            yield report, [report, "--by", by, *top, "kernel-trace"]
        if report == "io":
            yield report, [report, "--view", "top,log", *top, "kernel-trace"]
    for schema, arguments in CASES:
        command = [schema] if schema == "critical-path" else schema.split("-")
        yield schema, [*command, *arguments]


class Schema:
    """A schema with its validator."""

    # Keywords that do not constrain.
    NOTES = {"$schema", "$defs", "title", "description", "x-unit"}

    def __init__(self, path):
        self.path = path
        self.root = json.loads(path.read_text())

    def mistakes(self, value, schema=None, place="output"):
        """Mistakes in a value."""
        schema = self.root if schema is None else schema
        if "$ref" in schema:
            yield from self.mistakes(value, self.target(schema["$ref"]), place)
        if "type" in schema:
            kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(is_kind(value, kind) for kind in kinds):
                yield f"{place} is {json.dumps(value)[:60]}, not of type {', '.join(kinds)}"
                return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{place} is {json.dumps(value)[:60]}, not one of {schema['enum']}"
        if "anyOf" in schema:
            found = [list(self.mistakes(value, each, place)) for each in schema["anyOf"]]
            if all(found):
                yield from min(found, key=len)
        if isinstance(value, list) and "items" in schema:
            for at, item in enumerate(value):
                yield from self.mistakes(item, schema["items"], f"{place}[{at}]")
        if isinstance(value, dict):
            yield from self.mistakes_of_object(value, schema, place)

    def mistakes_of_object(self, value, schema, place):
        """Mistakes in the members of an object."""
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for key in schema.get("required", []):
            if key not in value:
                yield f"{place}.{key} is missing"
        for key, member in value.items():
            inside = f"{place}.{key}"
            if key in properties:
                yield from self.mistakes(member, properties[key], inside)
            elif others is False:
                yield f"{inside} is not in the schema"
            elif others is not True:
                yield from self.mistakes(member, others, inside)

    def target(self, reference):
        """The schema that a reference names."""
        return self.root["$defs"][reference.removeprefix("#/$defs/")]

    def faults(self, schema=None, place="schema"):
        """Mistakes in the schema itself."""
        schema = self.root if schema is None else schema
        known = {"$ref", "type", "enum", "anyOf", "items", "properties", "required"}
        unknown = set(schema) - known - self.NOTES - {"additionalProperties"}
        if unknown:
            yield f"{place}: unknown keywords: {', '.join(sorted(unknown))}"
        if "properties" in schema and "additionalProperties" not in schema:
            yield f"{place}: additionalProperties is missing"
        for key, inner in schema.get("properties", {}).items():
            if not inner.get("description"):
                yield f"{place}.{key}: the description is missing"
            yield from self.faults(inner, f"{place}.{key}")
        others = schema.get("additionalProperties")
        inners = [schema.get("items"), others, *schema.get("anyOf", [])]
        for inner in inners + list(schema.get("$defs", {}).values()):
            if isinstance(inner, dict):
                yield from self.faults(inner, place)


def is_kind(value, kind):
    """Whether a value has a type of JSON Schema."""
    if isinstance(value, bool):
        return kind == "boolean"
    kinds = {
        "null": type(None),
        "integer": int,
        "number": (int, float),
        "string": str,
        "array": list,
        "object": dict,
    }
    return kind in kinds and isinstance(value, kinds[kind])


class Checker:
    """Runs the program in a directory with all fixtures."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.schemas = {path.stem: Schema(path) for path in sorted(SCHEMAS.glob("*.json"))}
        self.failures, self.skipped, self.outputs = [], [], set()

    def fail(self, schema, text):
        """Notes a mistake."""
        self.failures.append(f"docs/reference/schemas/{schema}.json: {text}")

    def output(self, *arguments, **more):
        """The standard output of the program."""
        command = [self.program, *arguments]
        result = subprocess.run(
            command, cwd=self.directory, capture_output=True, text=True, timeout=60, **more
        )
        # 4: a gate of `compare` failed.
        if result.returncode not in (0, 4):
            raise RuntimeError(f"{' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def check(self, schema, arguments, **more):
        """Runs one case."""
        self.outputs.add(schema)
        line = " ".join(["tracebraid", *arguments])
        try:
            text = self.output(*arguments, "--format", "json", **more)
            values = text.splitlines() if schema == "print" else [text]
            found = [
                mistake
                for value in values
                for mistake in self.schemas[schema].mistakes(json.loads(value))
            ]
        except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
            found = [str(error)]
        for mistake in found[:5]:
            self.fail(schema, f"{line}: {mistake}")

    def check_generated(self):
        """Compares the schemas of reports."""
        for report in REPORTS:
            path = SCHEMAS / f"{report}.json"
            if not path.exists() or path.read_text() != self.output("schema", report):
                self.fail(report, "not up to date; renew it: python3 docs/schemas.py --update")

    def check_sessions(self):
        """`status`, `list` and `probes`, of a session with a program with probes."""
        libraries = str(run.libraries_of(self.program))
        environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": str(self.directory),
            "PYTHONPATH": f"{run.ROOT}/record/python",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRACEBRAID_LIBRARIES": libraries,
        }
        if not run.has_libraries(self.program):
            self.skipped.append("probes: needs libtracebraid_probe")
            self.outputs.add("probes")
        command = [sys.executable, "-c", PROBED]
        options = ["--kernel", "none", "--syscalls", "none", "--probes", "shop:*"]
        self.output("start", "shop", *options, "-o", "shop", "--", *command, env=environment)
        try:
            for arguments in (["status"], ["list"]):
                self.check("status", arguments, env=environment)
            if run.has_libraries(self.program):
                for _ in range(100):
                    if "shop:order" in self.output("probes", "shop", env=environment):
                        break
                    time.sleep(0.05)
                self.check("probes", ["probes", "shop"], env=environment)
        finally:
            self.output("stop", "shop", env=environment)

    def check_all(self):
        """All checks."""
        for name, schema in self.schemas.items():
            for fault in schema.faults():
                self.fail(name, fault)
        self.check_generated()
        self.output("history", "build", "kernel-trace", "-o", "trace.history")
        with concurrent.futures.ThreadPoolExecutor(run.WORKERS) as pool:
            for _ in pool.map(lambda case: self.check(*case), cases()):
                pass
        self.check_sessions()
        for name in sorted(set(self.schemas) - self.outputs):
            self.fail(name, "no output is compared with it: add one to CASES")


def main():
    """The command line."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--update", action="store_true", help="write the schemas of reports")
    options = parser.parse_args()
    program = os.path.realpath(os.environ.get("TRACEBRAID") or run.default_program())
    if not os.access(program, os.X_OK):
        parser.error(f"{program} is no program: build it (cargo build), or set TRACEBRAID")
    with tempfile.TemporaryDirectory(prefix="schemas-") as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "fixtures").mkdir()
        (scratch / "work").mkdir()
        checker = Checker(program, scratch / "work")
        if options.update:
            for report in REPORTS:
                (SCHEMAS / f"{report}.json").write_text(checker.output("schema", report))
            return 0
        fixtures = run.Fixtures(scratch / "fixtures")
        for name in ALL_FIXTURES:
            fixtures.put_one(name, checker.directory)
        checker.check_all()
    for reason in checker.skipped:
        print(f"documents: SKIPPED: {reason}")
    for failure in sorted(checker.failures):
        print(f"documents: FAILED: {failure}")
    return 1 if checker.failures else 0


if __name__ == "__main__":
    sys.exit(main())
