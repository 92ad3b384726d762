import { describe, expect, it } from 'vitest';
import { axisOf, binInto, rangeOf } from '../src/engine/axis';
import type { Boxes } from '../src/engine/flame';
import { outline } from '../src/engine/flame';
import type { Contexts, Numbers } from '../src/engine/pack';
import { rowsOf } from '../src/engine/rows';
import { GAP, ways } from '../src/engine/ways';
import { span } from '../src/format';
import { random } from '../tools/synthetic.mjs';

/** Rows with the number of values in their bins. */
function counted(values: Numbers, scale: 'linear' | 'log') {
  const range = rangeOf(values);
  const axis = axisOf(range, scale);
  const bins = new Uint8Array(values.length);
  binInto(bins, 1, 0, values, axis);
  return rowsOf(axis, range).map((row) => ({
    ...row,
    count: [...bins].filter((bin) => bin >= row.begin && bin < row.end).length,
  }));
}

describe('rows of a histogram', () => {
  it('are one for each whole number where these are few', () => {
    const values = Uint32Array.of(0, 0, 0, 2, 1, 0);
    for (const scale of ['linear', 'log'] as const) {
      const rows = counted(values, scale);
      expect(rows.map(({ low, high, count }) => [low, high, count])).toEqual([
        [0, 0, 4],
        [1, 1, 1],
        [2, 2, 1],
      ]);
      expect(rows.map(({ low, high }) => span(low, high, ''))).toEqual(['0', '1', '2']);
    }
    // A column with one value.
    expect(
      counted(Uint32Array.of(7, 7), 'linear').map(({ low, high, count }) => [low, high, count]),
    ).toEqual([[7, 7, 2]]);
    expect(counted(new Uint32Array(0), 'linear')).toEqual([]);
    expect(counted(Float64Array.of(NaN), 'linear')).toEqual([]);
  });

  it('tell of each whole number in which of them it is counted', () => {
    const next = random(21);
    const lists = [
      ...[1, 5, 23, 24, 60, 95, 96, 97, 1000, 4_000_000].map((size) =>
        Uint32Array.from({ length: 400 }, () => Math.floor(next() * (size + 1))),
      ),
      Float64Array.from({ length: 400 }, () => Math.floor(next() * 300) - 40),
      Float64Array.from({ length: 400 }, () => 1e12 + Math.floor(next() * 1000)),
      Float64Array.from({ length: 400 }, () => Math.floor(2 ** (next() * 52))),
    ];
    for (const values of lists) {
      for (const scale of ['linear', 'log'] as const) {
        const rows = counted(values, scale);
        let last = -Infinity;
        for (const { low, high, count } of rows) {
          expect(low).toBeGreaterThan(last);
          expect(Number.isInteger(low) && Number.isInteger(high)).toBe(true);
          expect([...values].filter((value) => value >= low && value <= high).length).toBe(count);
          last = high;
        }
        expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(values.length);
        expect(rows.length).toBeLessThanOrEqual(24);
      }
    }
  });

  it('of other numbers begin where the ones before end, and have digits enough to tell so', () => {
    const next = random(22);
    for (const values of [
      Float64Array.from({ length: 300 }, () => next() * 10 - 2),
      Float64Array.from({ length: 300 }, () => 1e9 * (1 + next() * 1e-6) + 0.5),
      Float64Array.from([1e300, 1e-300, 5, Infinity, -Infinity, 0.5]),
    ]) {
      for (const scale of ['linear', 'log'] as const) {
        const rows = counted(values, scale);
        expect(rows.length).toBe(10);
        expect(rows[0].low).toBe(rangeOf(values).low);
        for (let at = 1; at < rows.length; at++) expect(rows[at].low).toBe(rows[at - 1].high);
        expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(
          values.filter(Number.isFinite).length,
        );
      }
    }
    expect(span(1e9, 1e9 + 100, 'ns')).toBe('1 s to 1.0000001 s');
    expect(span(5, 9, '')).toBe('5 to 9');
  });
});

/** A tree from call paths, the outermost frame first. */
function treeOf(list: string[]): { tree: Contexts; names: string[]; at: (way: string) => number } {
  const names = [''];
  const parent = [0];
  const name = [0];
  const known = new Map<string, number>([['', 0]]);
  for (const way of list) {
    let around = 0;
    let text = '';
    for (const frame of way.split(' ')) {
      text = text === '' ? frame : `${text} ${frame}`;
      if (!known.has(text)) {
        known.set(text, parent.length);
        if (!names.includes(frame)) names.push(frame);
        name.push(names.indexOf(frame));
        parent.push(around);
      }
      around = known.get(text)!;
    }
  }
  const count = parent.length;
  const kind = new Uint8Array(count);
  kind[0] = 255;
  const tree = { count, parent: Uint32Array.from(parent), kind, name: Uint32Array.from(name) };
  return { tree, names, at: (way) => known.get(way)! };
}

describe('contexts with the same name', () => {
  const list = [
    'main commit fsync block vda',
    'main load read block vda',
    'main load read block',
    'work',
    'main x work',
  ];
  const { tree, names, at } = treeOf(list);
  const shown = (...of: string[]) => {
    const found = ways(tree, names, of.map(at));
    return of.map((way) =>
      found
        .get(at(way))!
        .map((frame) => (frame === GAP ? '…' : names[tree.name[frame]]))
        .join(' '),
    );
  };

  it('are told apart by the first frames in which their ways differ', () => {
    expect(shown(list[0], list[2])).toEqual(['block', 'read']);
    expect(shown(list[0], list[1])).toEqual(['block fsync', 'block read']);
    const deep = ['a p q r s t', 'b p q r s t', 'b x q r s t'];
    const made = treeOf(deep);
    const found = ways(made.tree, made.names, deep.map(made.at));
    const texts = deep.map((way) =>
      found
        .get(made.at(way))!
        .map((frame) => (frame === GAP ? '…' : made.names[made.tree.name[frame]]))
        .join(' '),
    );
    expect(texts).toEqual(['s … p a', 's … p b', 's … x']);
  });

  it('have nothing around them where there is nothing', () => {
    expect(shown('work', 'main x work')).toEqual(['', 'x']);
  });
});

describe('the flame graph as lines', () => {
  it('is in the order of the tree, the widest first, with the whole way to each', () => {
    const next = random(8);
    const parent = [0];
    for (let at = 1; at < 300; at++) parent.push(Math.floor(next() * at));
    const width = Float64Array.from(parent, () => next());
    for (let at = 299; at > 0; at--) width[parent[at]] += width[at];
    const row = new Uint16Array(300);
    for (let at = 1; at < 300; at++) row[at] = row[parent[at]] + 1;
    const order = [...parent.keys()].sort(() => next() - 0.5);
    const boxes = {
      count: 300,
      context: Uint32Array.from(order),
      row: Uint16Array.from(order, (at) => row[at]),
      width: Float64Array.from(order, (at) => width[at]),
    } as Boxes;
    const tree = { count: 300, parent: Uint32Array.from(parent) } as Contexts;
    for (const most of [1, 40, 300, 1000]) {
      const lines = outline(tree, boxes, most);
      expect(lines.length).toBe(Math.min(most, 300));
      const way: number[] = [];
      const beside = new Map<number, number[]>();
      for (const { box, level, place, of } of lines) {
        const context = boxes.context[box];
        expect(level).toBe(row[context] + 1);
        way.length = level - 1;
        // The parent is the last earlier line with a lower level.
        if (level > 1) expect(way[level - 2]).toBe(parent[context]);
        way.push(context);
        if (level === 1) continue;
        const list = beside.get(parent[context]) ?? [];
        expect(place).toBe(list.length + 1);
        expect(width[context]).toBeLessThanOrEqual(width[list[list.length - 1]] ?? Infinity);
        list.push(context);
        beside.set(parent[context], list);
        expect(of).toBeGreaterThanOrEqual(list.length);
      }
      for (const { box, of, level } of lines)
        expect(of).toBe(level === 1 ? 1 : beside.get(parent[boxes.context[box]])!.length);
    }
    expect(outline(tree, { ...boxes, count: 0, context: new Uint32Array(0) }, 10)).toEqual([]);
  });
});
