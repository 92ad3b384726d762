#!/usr/bin/env python3
"""Computes what `cpu` and `io` should say of a trace of perf, from the text of

    perf script --ns -F comm,pid,tid,cpu,time,event,trace -i perf.data

on standard input, and knows nothing of CTF. Writes JSON. Made for x86-64, for traces in which no
event was lost, and for the calls that the recorded program makes.
"""
import json
import re
import sys

LINE = re.compile(
    r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<s>\d+)\.(?P<ns>\d{9}):\s+"
    r"(?P<event>[\w:]+):\s*(?P<rest>.*)$"
)
SWITCH = re.compile(r"prev_pid=(\d+) .* next_comm=.* next_pid=(\d+)")
FORK = re.compile(r"comm=.* pid=(\d+) child_comm=.* child_pid=(\d+)")
ENTRY = re.compile(r"NR (-?\d+) \((.*)\)")
EXIT = re.compile(r"NR (-?\d+) = (-?\w+)")
READ, WRITTEN = 1, 2
CALLS = {0: ("read", READ), 1: ("write", WRITTEN), 17: ("pread64", READ), 44: ("sendto", WRITTEN), 45: ("recvfrom", READ)}
OTHER_IO = {18, 19, 20, 40, 46, 47, 275, 276, 278, 295, 296, 299, 307, 326, 327, 328}
CLOSE, SOCKET, CLONE, FORKS, FCNTL, OPENAT, CLONE3 = 3, 41, 56, (57, 58), 72, 257, 435
OTHER_OPENS = {2, 32, 33, 43, 85, 213, 253, 272, 282, 283, 284, 288, 289, 290, 291, 292, 294, 319, 436, 437}
CLOEXEC, CLONE_FILES = 0x80000, 0x400


def signed(text):
    value = int(text, 0)
    return value - (1 << 64) if value >= 1 << 63 else value


def parse(lines):
    for line in lines:
        match = LINE.match(line)
        assert match, line
        time = int(match["s"]) * 10**9 + int(match["ns"])
        yield time, int(match["cpu"]), int(match["pid"]), int(match["tid"]), match["event"], match["rest"]


def cpu(events):
    """Time of CPUs and threads, from one switch to the next; the last one's to the end."""
    end = max(event[0] for event in events)
    cpus, threads = {}, {}

    def ran(state, until):
        tid, since = state["current"]
        state["idle" if tid == 0 else "active"] += until - since
        if tid:
            threads[tid] = threads.get(tid, 0) + until - since

    for time, number, _, _, event, rest in events:
        if event != "sched:sched_switch":
            continue
        before, after = map(int, SWITCH.search(rest).groups())
        state = cpus.setdefault(number, {"active": 0, "idle": 0, "switches": 0, "current": None})
        if state["current"]:
            assert state["current"][0] == before, rest
            ran(state, time)
        state["current"] = (after, time)
        state["switches"] += 1
    for state in cpus.values():
        ran(state, end)
        del state["current"]
    return cpus, threads


def io(events, pids):
    """Calls by thread, call and type of descriptor. A table of descriptors is a dictionary: who
    shares it has the same one."""
    open_calls, tables, rows = {}, {}, {}
    unstarted = 0

    def table(tid):
        # Threads that were there before: those of one process have one table.
        return tables.setdefault(tid, tables.setdefault(pids.get(tid, tid), {}))

    def done(tid, number, arguments, result):
        if number == OPENAT and result >= 0:
            table(tid)[result] = ("file", bool(arguments[2] & CLOEXEC))
        elif number == SOCKET and result >= 0:
            family = {1: "unix", 2: "network", 10: "network", 17: "network"}.get(arguments[0], "socket")
            table(tid)[result] = (family, bool(arguments[1] & CLOEXEC))
        elif number == FCNTL and result >= 0:
            assert arguments[1] not in (0, 2, 1030), "this program does not copy descriptors so"
        assert number not in OTHER_IO and (number not in OTHER_OPENS or result < 0), number

    for time, _, _, tid, event, rest in events:
        if event == "raw_syscalls:sys_enter":
            number, arguments = ENTRY.match(rest).groups()
            arguments = [int(argument, 16) for argument in arguments.split(", ")]
            kind = table(tid).get(arguments[0], ("unknown",))[0]
            open_calls[tid] = (int(number), arguments, time, kind)
            if int(number) == CLOSE:
                table(tid).pop(arguments[0], None)
        elif event == "raw_syscalls:sys_exit":
            number, result = EXIT.match(rest).groups()
            number, result = int(number), signed(result)
            entry = open_calls.pop(tid, None)
            if entry is None or entry[0] != number:
                unstarted += number in CALLS
                continue
            _, arguments, began, kind = entry
            done(tid, number, arguments, result)
            if number in CALLS:
                name, way = CALLS[number]
                row = rows.setdefault((tid, name, kind), [0, 0, 0, 0, 0, 0])
                row[0] += 1
                row[1] += result < 0
                row[2] += max(result, 0) if way == READ else 0
                row[3] += max(result, 0) if way == WRITTEN else 0
                row[4] += time - began
                row[5] = max(row[5], time - began)
        elif event == "sched:sched_process_fork":
            parent, child = map(int, FORK.search(rest).groups())
            number, arguments = open_calls.get(parent, (None, None))[:2]
            if number == CLONE:
                shares = bool(arguments[0] & CLONE_FILES)
            else:
                shares = pids.get(parent) == pids.get(child)
            tables[child] = table(parent) if shares else dict(table(parent))
        elif event == "sched:sched_process_exec":
            tables[tid] = {fd: what for fd, what in table(tid).items() if not what[1]}
    names = ["calls", "errors", "read_bytes", "written_bytes", "latency_ns", "longest_latency_ns"]
    rows = [
        {"tid": tid, "call": name, "type": kind, **dict(zip(names, row))} for (tid, name, kind), row in sorted(rows.items())
    ]
    return rows, unstarted


def main():
    events = list(parse(sys.stdin))
    # -1: a thread that is no more.
    pids = {tid: pid for _, _, pid, tid, _, _ in events if tid > 0}
    cpus, threads = cpu(events)
    calls, unstarted = io(events, pids)
    found = {
        "events": len(events),
        "begin_ns": min(event[0] for event in events),
        "end_ns": max(event[0] for event in events),
        "cpus": cpus,
        "threads": [{"tid": tid, "pid": pids.get(tid), "active_ns": time} for tid, time in sorted(threads.items())],
        "io": calls,
        "unstarted": unstarted,
    }
    json.dump(found, sys.stdout, indent=1)
    print()


main()
