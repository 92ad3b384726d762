"""Duration of a fold on N threads, from the times of its pieces (`--timings FILE`).

Replays analyze/engine/src/schedule.rs: a free thread plays a slice of time if one is waiting, or
else folds the next chunk unless too many are in progress; the thread that completes the piece for
which the merge is waiting merges that piece and all that follow. Rows of the report are computed in
parallel.

>>> chunk = {"fold_ns": 100, "merge_ns": 0}
>>> fold = {"chunks": [chunk] * 8, "slices": [], "plan_ns": 0, "finish_ns": 0}
>>> [speed_up([fold], threads) for threads in (1, 2, 4, 8, 16)]
[1.0, 2.0, 4.0, 8.0, 8.0]
>>> fold["finish_ns"] = 800
>>> round(speed_up([fold], 8), 2)
1.78
>>> fold["rows_ns"], fold["finish_ns"] = 800, 0
>>> speed_up([fold], 8)
8.0
>>> piece = {"after_chunk": 0, "after_slice": None, "play_ns": 100, "compose_ns": 0}
>>> beside = {**fold, "rows_ns": 0, "slices": [piece] * 8}
>>> chain = {**beside, "slices": [{**piece, "after_slice": number - 1 if number else None} for number in range(8)]}
>>> [speed_up([fold], 16) for fold in (beside, chain)]
[8.0, 1.7777777777777777]
>>> fold["rows_ns"], fold["finish_ns"] = 0, 800
>>> chunk["merge_ns"] = 100
>>> speed_up([fold], 1)
1.0
"""

import heapq
from collections import deque

# Maximum number of chunks and slices in progress for each thread: AHEAD in schedule.rs.
AHEAD = 4


def cpu_ns(fold):
    """CPU time of all pieces in nanoseconds."""
    chunks = sum(chunk["fold_ns"] + chunk["merge_ns"] for chunk in fold["chunks"])
    slices = sum(piece["play_ns"] + piece["compose_ns"] for piece in fold["slices"])
    return fold["plan_ns"] + chunks + slices + fold.get("rows_ns", 0) + fold["finish_ns"]


class Board:
    """The remaining and the completed work of a fold."""

    def __init__(self, fold, threads):
        self.chunks, self.slices = fold["chunks"], fold["slices"]
        self.ahead = threads * AHEAD
        self.next_chunk = self.merged = 0
        self.folded, self.played, self.pending = set(), set(), deque()
        # Slices are numbered in the order in which they arise, and are composed in that order.
        self.numbered, self.composed = [], 0
        self.after_chunk, self.after_slice = {}, {}
        for place, piece in enumerate(self.slices):
            if (before := piece.get("after_slice")) is None:
                self.after_chunk.setdefault(piece["after_chunk"], []).append(place)
            else:
                self.after_slice.setdefault(before, []).append(place)

    def add(self, places):
        for place in places:
            self.pending.append(len(self.numbered))
            self.numbered.append(place)

    def turn(self):
        """The next piece of work; None if no piece is ready."""
        if self.pending:
            number = self.pending.popleft()
            return self.slices[self.numbered[number]]["play_ns"], (self.played, number)
        is_ahead = (self.next_chunk >= self.merged + self.ahead
                    or len(self.numbered) >= self.composed + self.ahead)
        if self.next_chunk < len(self.chunks) and not is_ahead:
            number = self.next_chunk
            self.next_chunk += 1
            return self.chunks[number]["fold_ns"], (self.folded, number)
        return None

    def step(self):
        """Takes the next piece to merge; returns its time and the slices that follow from it, or None if it is not ready."""
        if self.composed in self.played:
            self.played.remove(self.composed)
            place = self.numbered[self.composed]
            self.composed += 1
            return self.slices[place]["compose_ns"], self.after_slice.get(place, ())
        if self.merged in self.folded:
            self.folded.remove(self.merged)
            self.merged += 1
            return self.chunks[self.merged - 1]["merge_ns"], self.after_chunk.get(self.merged - 1, ())
        return None

    def is_done(self):
        return self.merged == len(self.chunks) and self.composed == len(self.slices)


def wall_ns(fold, threads):
    """Wall time of a fold in nanoseconds."""
    board = Board(fold, threads)
    # End times of the running pieces: working threads, of which at most one merges.
    events, idle, now, order = [], threads, 0, 0
    is_merging = False
    while not board.is_done() or events:
        while idle and (turn := board.turn()) is not None:
            length, piece = turn
            heapq.heappush(events, (now + length, order, piece))
            order, idle = order + 1, idle - 1
        now, _, (kind, what) = heapq.heappop(events)
        if kind is None:
            is_merging = False
            board.add(what)
        else:
            kind.add(what)
        # The thread whose piece has just ended continues with the merge, unless another thread is merging.
        step = None if is_merging else board.step()
        if step is None:
            idle += 1
        else:
            is_merging = True
            heapq.heappush(events, (now + step[0], order, (None, step[1])))
            order += 1
    return fold["plan_ns"] + now + fold.get("rows_ns", 0) / threads + fold["finish_ns"]


def speed_up(folds, threads, besides_ns=0):
    """Speed-up of a command's consecutive folds, plus further CPU time of a single thread."""
    wall = sum(wall_ns(fold, threads) for fold in folds)
    return (sum(map(cpu_ns, folds)) + besides_ns) / (wall + besides_ns)


def speed_up_of(timings, threads):
    """Speed-up of a command including start and end of the program, from the document of `--timings`.

    >>> fold = {"chunks": [{"fold_ns": 10**9, "merge_ns": 0}] * 8, "slices": [], "plan_ns": 0, "finish_ns": 0}
    >>> timings = {"folds": [fold], "serial_work": [{"name": "index", "cpu_ns": 10**9}], "outside_s": 1}
    >>> round(speed_up_of(timings, 8), 2)
    3.33
    """
    besides_ns = sum(work["cpu_ns"] for work in timings["serial_work"]) + timings["outside_s"] * 1e9
    return speed_up(timings["folds"], threads, besides_ns)


if __name__ == "__main__":
    import doctest

    raise SystemExit(doctest.testmod().failed)
