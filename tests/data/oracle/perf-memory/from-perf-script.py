#!/usr/bin/env python3
"""Computes what `memory` should say of a trace of perf, from the text of

    perf script --ns -F comm,pid,tid,cpu,time,event,trace -i perf.data

on standard input, and knows nothing of CTF. Writes JSON: for each thread how much it did. Made for
traces in which no event was lost.
"""
import collections
import json
import re
import sys

LINE = re.compile(
    r"^\s*.*?\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[\d+\]\s+\d+\.\d{9}:\s+(?P<event>[\w:]+):\s*(?P<rest>.*)$"
)
ONES = {
    "kmem:mm_page_free_batched": "batched_pages",
    "kmem:kfree": "freed_objects",
    "exceptions:page_fault_user": "user_faults",
    "exceptions:page_fault_kernel": "kernel_faults",
    "filemap:mm_filemap_add_to_page_cache": "added_pages",
    "filemap:mm_filemap_delete_from_page_cache": "removed_pages",
}


def field(text, name):
    return int(re.search(rf"\b{name}=(\w+)", text)[1], 0)


threads = collections.defaultdict(collections.Counter)
for line in sys.stdin:
    match = LINE.match(line)
    assert match, line
    counts, event, rest = threads[match["tid"]], match["event"], match["rest"]
    if event in ("kmem:mm_page_alloc", "kmem:mm_page_free"):
        what = "allocated_pages" if event.endswith("alloc") else "freed_pages"
        counts[what] += 1 << field(rest, "order")
    elif event == "kmem:kmalloc":
        counts["objects"] += 1
        counts["requested_bytes"] += field(rest, "bytes_req")
        counts["allocated_bytes"] += field(rest, "bytes_alloc")
    elif event in ONES:
        counts[ONES[event]] += 1
json.dump({tid: counts for tid, counts in threads.items() if counts}, sys.stdout, indent=1, sort_keys=True)
print()
