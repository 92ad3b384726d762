"""Draws who was on which CPU as SVG, from the switches of a super-trace.

Usage: tracebraid print --format json --name 'sched_switch,reactivity:*' ... | timeline.py TID TO.svg

A row for each CPU. The user-level thread TID is dark, with the number of its LWP; other user-level
threads are light, threads of other programs grey. Other events are marked by their names.
"""

import json
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, ROW, TOP = 1100, 60, 44, 34
FIRST_USER_LEVEL_TID = 100_000_000
DARK, LIGHT, GREY, MARK = "#b4430f", "#bcd3ea", "#d8d8d8", "#1a7f37"


class Timeline:
    def __init__(self, highlighted):
        self.highlighted = highlighted
        # (CPU, begin, end, thread, LWP) and (time, text).
        self.stretches, self.marks = [], []
        self.now, self.begin, self.end = {}, None, None

    def event(self, record):
        time, cpu = record["timestamp"], record.get("cpu")
        self.begin = time if self.begin is None else self.begin
        self.end = time
        if record["name"] != "sched_switch":
            number = record["payload"].get("number")
            self.marks.append((time, f"{record['name'].split(':')[-1]} {number}"))
            return
        fields, lwp = record["payload"], record["common_context"]["lwp"]
        self.leave(cpu, time, fields["prev_tid"], lwp)
        self.now[cpu] = (time, fields["next_tid"])

    def leave(self, cpu, time, tid, lwp):
        begin, _ = self.now.pop(cpu, (self.begin, tid))
        self.stretches.append((cpu, begin, time, tid, lwp))

    def x(self, time):
        return LEFT + (WIDTH - LEFT - 10) * (time - self.begin) / max(self.end - self.begin, 1)

    def box(self, stretch):
        cpu, begin, end, tid, lwp = stretch
        left, right = self.x(begin), self.x(end)
        if tid == 0 or right - left < 0.05:
            return ""
        is_own = tid == self.highlighted
        color = DARK if is_own else LIGHT if tid >= FIRST_USER_LEVEL_TID else GREY
        y = TOP + self.cpus.index(cpu) * ROW
        width = max(right - left, 1.5 if is_own else 0.1)
        parts = [f'<rect x="{left:.2f}" y="{y}" width="{width:.2f}" height="24" fill="{color}"/>']
        if is_own:
            parts.append(f'<text x="{left:.2f}" y="{y + 36}" fill="{DARK}">LWP {lwp}</text>')
        return "".join(parts)

    def mark(self, number, mark):
        time, text = mark
        x, bottom = self.x(time), TOP + len(self.cpus) * ROW
        y = 12 + 12 * (number % 2)
        return (f'<path d="M{x:.2f} {y + 2}V{bottom - 16}" stroke="{MARK}"/>'
                f'<text x="{min(x + 3, WIDTH - 70):.2f}" y="{y}" fill="{MARK}">{escape(text)}</text>')

    def svg(self):
        for cpu, (begin, tid) in list(self.now.items()):
            self.leave(cpu, self.end, tid, -1)
        self.cpus = sorted({stretch[0] for stretch in self.stretches})
        height = TOP + len(self.cpus) * ROW + 26
        # The highlighted thread is drawn last, above its neighbours.
        boxes = sorted(self.stretches, key=lambda of: of[3] == self.highlighted)
        rows = [f'<text x="4" y="{TOP + 16 + place * ROW}">CPU {cpu}</text>'
                for place, cpu in enumerate(self.cpus)]
        span = (self.end - self.begin) / 1e6
        scale = f'<text x="{LEFT}" y="{height - 6}">0</text>' \
                f'<text x="{WIDTH - 60}" y="{height - 6}">{span:.0f} ms</text>'
        body = [*map(self.box, boxes), *(self.mark(*of) for of in enumerate(self.marks))]
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
                + "\n".join([*rows, scale, *filter(None, body)]) + "</svg>\n")


def main(tid, to):
    timeline = Timeline(int(tid))
    for line in sys.stdin:
        timeline.event(json.loads(line))
    with open(to, "w", encoding="utf-8") as file:
        file.write(timeline.svg())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
