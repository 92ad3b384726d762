import { describe, expect, it } from 'vitest';
import { automatic } from '../src/engine/automatic';
import { axisOf, binInto, fitting, placeOf, rangeOf, UNKNOWN, valueAt } from '../src/engine/axis';
import { between, edgesOf, moved, nudged, resized } from '../src/engine/brush';
import { type Comparison, compare, isSure, ranked, SURE, spreads } from '../src/engine/compare';
import { AROUND, layout, VANISHED } from '../src/engine/flame';
import { Group, ROOM } from '../src/engine/group';
import { forward, inverted, type Layer, pathOf, timesIn } from '../src/engine/layer';
import { orderOf, rank } from '../src/engine/order';
import { decodePack, type Entries, type Pack } from '../src/engine/pack';
import { rowsOf } from '../src/engine/rows';
import { hedges } from '../src/engine/statistics';
import { Table } from '../src/engine/table';
import { quantity, span, ticks } from '../src/format';
import { makePack, random } from '../tools/synthetic.mjs';

function given(seed: number, executions = 400): Pack {
  return decodePack(
    makePack({ executions, metrics: 8, contexts: 120, entries: 10, seed }).bytes.buffer,
  );
}

/** Total times of one execution, by walking up from each entry. */
function plainWhole(
  { rows, context, time }: Entries,
  parent: ArrayLike<number>,
  row: number,
): Map<number, number> {
  const found = new Map<number, number>();
  for (let at = rows[row]; at < rows[row + 1]; at++) {
    for (let here = context[at]; ; here = parent[here]) {
      found.set(here, (found.get(here) ?? 0) + time[at]);
      if (here === 0) break;
    }
  }
  return found;
}

/** Contexts that differ significantly. */
function sure(found: Comparison): number[] {
  return ranked(found, Infinity).filter((at) => isSure(found, at));
}

/** A group computed from scratch. */
function plain(group: Group, layer: Layer) {
  const { table } = group;
  const width = table.codes.length;
  const fails = (one: number): string[] => {
    const failed: string[] = [];
    for (const [column, { low, high }] of group.ranges) {
      const value = table.numbers[column].values[one];
      if (!(value >= low && value <= high)) failed.push(`n${column}`);
    }
    for (const [column, allowed] of group.allowed) {
      if (allowed[table.codeTable[one * width + column]] !== 1) failed.push(`c${column}`);
    }
    return failed;
  };
  const histograms = new Int32Array(table.stride * ROOM);
  const facets = table.codes.map((column) => new Int32Array(column.values.length));
  const members: number[] = [];
  for (let one = 0; one < table.executions; one++) {
    const failed = fails(one);
    if (failed.length === 0) members.push(one);
    const counts = (name: string) =>
      failed.length === 0 || (failed.length === 1 && failed[0] === name);
    table.numbers.forEach((_, column) => {
      if (counts(`n${column}`))
        histograms[column * ROOM + table.bins[one * table.stride + column]]++;
    });
    facets.forEach((facet, column) => {
      if (counts(`c${column}`)) facet[table.codeTable[one * width + column]]++;
    });
  }
  const times = members.map((one) => plainWhole(layer.own, layer.tree.parent, one));
  const whole = (context: number) => times.map((of) => of.get(context) ?? 0);
  return { histograms, facets, members, whole };
}

function check(group: Group, layer: Layer): void {
  group.settle(Infinity);
  const expected = plain(group, layer);
  expect(group.size).toBe(expected.members.length);
  expect(group.own.applied).toBe(expected.members.length);
  expect(group.whole.applied).toBe(expected.members.length);
  expect(group.histograms).toEqual(expected.histograms);
  expect(group.facets).toEqual(expected.facets);
  const order = Uint32Array.from({ length: group.table.executions }, (_, at) => at);
  expect([...group.members(order, false)]).toEqual(expected.members);
  for (
    let context = 0;
    context < layer.tree.count;
    context += group.table.executions > 5000 ? 37 : 7
  ) {
    const values = expected.whole(context);
    const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const [found] = spreads(layer, [group, group], 'whole', context);
    expect(found.present).toBe(values.filter((value) => value > 0).length);
    expect(Math.abs(found.mean - mean)).toBeLessThanOrEqual(1e-9 * mean);
    const deviation = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
    expect(Math.abs(found.deviation - deviation)).toBeLessThanOrEqual(1e-6 * (deviation + 1e-3));
  }
}

describe('orders', () => {
  it('are those of a plain sort, with what is unknown at the end', () => {
    const next = random(3);
    const lists = [
      Uint32Array.from({ length: 5000 }, () => next() * 4294967296),
      Uint16Array.from({ length: 300 }, () => next() * 20),
      Float64Array.from({ length: 5000 }, () =>
        next() < 0.1 ? NaN : (next() - 0.5) * 10 ** Math.floor(next() * 300 - 150),
      ),
      Float64Array.from({ length: 500 }, () => (next() < 0.1 ? NaN : Math.floor(next() * 1000))),
      Float64Array.from([0, -0, Infinity, -Infinity, NaN, 1, -1]),
      new Float64Array(0),
      new Float64Array(3).fill(NaN),
    ];
    for (const values of lists) {
      const { order, known } = orderOf(values);
      const plain = Array.from(values.keys()).sort((one, other) => {
        const [a, b] = [values[one], values[other]];
        if (Number.isNaN(a) || Number.isNaN(b))
          return Number(Number.isNaN(a)) - Number(Number.isNaN(b)) || one - other;
        return a < b ? -1 : a > b ? 1 : one - other;
      });
      expect([...order]).toEqual(plain);
      expect(known).toBe([...values].filter((value) => !Number.isNaN(value)).length);
      for (const bound of [values[0], 0, -1, 1e9, 17]) {
        expect(rank(values, { order, known }, bound, false)).toBe(
          [...values].filter((value) => value < bound).length,
        );
        expect(rank(values, { order, known }, bound, true)).toBe(
          [...values].filter((value) => value <= bound).length,
        );
      }
    }
  });
});

describe('groups', () => {
  it('are the same step by step as from scratch', () => {
    for (const seed of [1, 2, 3]) {
      const pack = given(seed);
      const table = new Table(pack);
      const layer = forward(pack);
      const all = new Group(table, layer);
      if (seed > 1) all.settle(Infinity);
      const group = new Group(table, layer, all);
      const next = random(seed + 100);
      check(group, layer);
      for (let step = 0; step < 60; step++) {
        const dice = next();
        const column = Math.floor(next() * table.numbers.length);
        const { range, values } = table.numbers[column];
        if (dice < 0.15) group.setRange(column, null);
        else if (dice < 0.7) {
          const ends = [next(), next()]
            .sort((one, other) => one - other)
            .map((part) => range.low + part * (range.high - range.low));
          const [low, high] = next() < 0.3 ? [values[3], values[5]] : ends;
          group.setRange(column, { low, high });
        } else if (dice < 0.9) {
          const code = Math.floor(next() * table.codes.length);
          const allowed = Uint8Array.from(table.codes[code].values, () => (next() < 0.6 ? 1 : 0));
          group.setAllowed(code, next() < 0.3 ? null : allowed);
        } else group.reset();
        // Sums may be incomplete over several steps.
        if (next() < 0.4) group.settle(0, () => 1);
        if (next() < 0.5) check(group, layer);
      }
      group.reset();
      check(group, layer);
      expect(group.size).toBe(pack.executions);
    }
  });

  it('leave no trace of great times in sums', () => {
    const pack = given(9, 300);
    const times = pack.entries.time as Uint32Array;
    for (let at = 0; at < times.length; at += 3) times[at] = 4_000_000_000 / 40;
    const table = new Table(pack);
    const layer = forward(pack);
    const [worn, fresh] = [new Group(table, layer), new Group(table, layer)];
    const range = table.numbers[0].range;
    for (let step = 0; step < 200; step++) {
      worn.setRange(0, {
        low: range.low + (step % 17) * 1e6,
        high: range.high - (step % 13) * 1e6,
      });
      worn.settle(Infinity);
    }
    fresh.setRange(0, worn.ranges.get(0)!);
    fresh.settle(Infinity);
    for (let context = 0; context < layer.tree.count; context++) {
      const [one, other] = spreads(layer, [worn, fresh], 'whole', context);
      expect(one.mean).toBe(other.mean);
      expect(Math.abs(one.deviation - other.deviation)).toBeLessThanOrEqual(1e-9 * other.deviation);
    }
  });

  it('are the same on each way to their sums: step by step, from nothing, from all', () => {
    const pack = given(11, 20000);
    const table = new Table(pack);
    const layer = forward(pack);
    const all = new Group(table, layer);
    all.settle(Infinity);
    const group = new Group(table, layer, all);
    const { order } = table.orderOf(0);
    const at = (part: number) =>
      table.numbers[0].values[order[Math.floor(part * (order.length - 1))]];
    for (const [low, high] of [
      [0, 0.99],
      [0.99, 1],
      [0.01, 1],
      [0.3, 0.6],
      [0.31, 0.62],
      [0, 1],
      [0.5, 0.5],
    ]) {
      group.setRange(0, { low: at(low), high: at(high) });
      group.settle(0, () => 1);
      group.setRange(3, { low: 0, high: 1500 });
      check(group, layer);
      group.setRange(3, null);
      check(group, layer);
    }
    group.reset();
    check(group, layer);
  });

  it('have as many filters as there are columns, with other scales and columns of times in contexts', () => {
    const pack = given(4);
    const table = new Table(pack);
    const layer = forward(pack);
    const group = new Group(table, layer);
    const context = 6;
    const column = table.addNumber({
      key: 'c.6',
      label: 'x',
      unit: 'ns',
      description: '',
      values: timesIn(layer, context),
      context,
    });
    group.recount(column);
    check(group, layer);
    for (let one = 0; one < table.numbers.length; one++) {
      const { low, high } = table.numbers[one].range;
      expect(
        group.setRange(one, { low: low + (high - low) * 0.01, high: high - (high - low) * 0.05 }),
      ).toBe(true);
    }
    check(group, layer);
    for (let one = 0; one < table.numbers.length; one++) {
      if (table.setScale(one, 'log')) group.recount(one);
    }
    check(group, layer);
  });

  it('count the inverted tree as well', () => {
    const pack = given(5);
    const table = new Table(pack);
    const group = new Group(table, forward(pack));
    const layer = inverted(pack);
    group.setRange(0, { low: 0, high: table.numbers[0].range.high / 2 });
    group.setLayer(layer);
    check(group, layer);
    // Own time of a function over all callers.
    const { tree } = layer;
    const outer = [...tree.parent.keys()].filter((at) => at > 0 && tree.parent[at] === 0);
    const sum = outer.reduce(
      (sum, at) => sum + spreads(layer, [group, group], 'whole', at)[0].mean,
      0,
    );
    expect(sum).toBeCloseTo(spreads(layer, [group, group], 'whole', 0)[0].mean, 3);
  });
});

describe('comparison', () => {
  const pack = given(6, 3000);
  const table = new Table(pack);
  const layer = forward(pack);
  const groups: [Group, Group] = [new Group(table, layer), new Group(table, layer)];
  groups[0].setAllowed(0, Uint8Array.from([1, 0, 0, 0]));
  groups[1].setAllowed(0, Uint8Array.from([0, 1, 0, 0]));
  for (const group of groups) group.settle(Infinity);
  const own = compare(layer, groups, 'own');
  const whole = compare(layer, groups, 'whole');
  const nameOf = (context: number) => pack.names[pack.contexts.name[context]];

  it('finds the planted cause first', () => {
    const [first, second] = ranked(own, 2);
    expect([nameOf(first), nameOf(second)].sort()).toEqual(['copy_tree', 'sda']);
    expect(pathOf(layer.tree, first).map(nameOf)).toContain('query_database');
    expect(own.deviations[first]).toBeGreaterThan(2);
    const [a, b] = spreads(layer, groups, 'own', first);
    expect(hedges(a, b)).toBeGreaterThan(2);
  });

  it('finds nothing between halves of the same', () => {
    const halves: [Group, Group] = [new Group(table, layer), new Group(table, layer)];
    const source = table.codes.findIndex(({ key }) => key === 'source');
    halves[0].setAllowed(source, Uint8Array.from([1, 0, 0]));
    halves[1].setAllowed(source, Uint8Array.from([0, 1, 0]));
    for (const half of halves) half.settle(Infinity);
    expect(sure(compare(layer, halves, 'own'))).toEqual([]);
  });

  it('lays out boxes so that own time and children fill each, and shows what vanished', () => {
    for (const mode of ['a', 'b', 'diff'] as const) {
      const boxes = layout(layer, whole, { mode, zoom: 0, least: 0 });
      const at = new Map<number, number>();
      for (let box = 0; box < boxes.count; box++) at.set(boxes.context[box], box);
      const { firstChild, children } = layer;
      const source = mode === 'a' ? own.meanA : own.meanB;
      for (let box = 0; box < boxes.count; box++) {
        const context = boxes.context[box];
        let sum = 0;
        for (let child = firstChild[context]; child < firstChild[context + 1]; child++) {
          const inner = at.get(children[child]);
          if (inner === undefined) continue;
          expect(boxes.x[inner]).toBeGreaterThanOrEqual(boxes.x[box] - 1e-9);
          expect(boxes.x[inner] + boxes.width[inner]).toBeLessThanOrEqual(
            boxes.x[box] + boxes.width[box] + 1e-9,
          );
          sum += boxes.width[inner];
        }
        const mine = boxes.flag[box] === VANISHED ? own.meanA[context] : source[context];
        expect(sum + mine / boxes.total).toBeCloseTo(boxes.width[box], 9);
      }
      const vanished = [...boxes.flag.keys()].filter((box) => boxes.flag[box] === VANISHED);
      expect(vanished.length > 0).toBe(mode === 'diff');
      if (mode === 'diff')
        expect(vanished.map((box) => nameOf(boxes.context[box]))).toContain('legacy_template');
    }
    const context = layer.tree.parent[ranked(own, 1)[0]];
    const zoomed = layout(layer, whole, { mode: 'diff', zoom: context, least: 0 });
    expect(zoomed.flag[0]).toBe(AROUND);
    expect(zoomed.total).toBeCloseTo(
      whole.meanB[context] +
        [...zoomed.flag.keys()]
          .filter(
            (box) =>
              zoomed.flag[box] === VANISHED &&
              !(
                zoomed.flag[zoomed.context.indexOf(layer.tree.parent[zoomed.context[box]])] ===
                VANISHED
              ),
          )
          .reduce((sum, box) => sum + whole.meanA[zoomed.context[box]], 0),
      3,
    );
  });
});

describe('bins', () => {
  it('are those of their edges, on both scales', () => {
    const next = random(12);
    for (const values of [
      Float64Array.from({ length: 3000 }, () => (next() < 0.1 ? NaN : 10 ** (next() * 12 - 3))),
      Uint32Array.from({ length: 3000 }, () => (next() < 0.1 ? 0 : next() * 4294967296)),
      Uint32Array.from({ length: 500 }, () => 1000 + next() * 20),
      Float64Array.from({ length: 500 }, () => 1e9 * (1 + next() * 1e-6)),
      Float64Array.from([1e300, 1e-300, 5, Infinity, 0, -3]),
    ]) {
      for (const scale of ['linear', 'log'] as const) {
        const axis = axisOf(rangeOf(values), scale);
        const table = new Uint8Array(values.length * 3);
        binInto(table, 3, 1, values, axis);
        for (let at = 0; at < values.length; at++) {
          const value = values[at];
          const bin = table[3 * at + 1];
          if (!Number.isFinite(value)) expect(bin).toBe(UNKNOWN);
          else {
            expect(bin).toBeLessThan(axis.bins);
            expect(
              Math.abs(
                bin - Math.min(axis.bins - 1, Math.floor(placeOf(axis, value) * axis.bins + 1e-9)),
              ),
            ).toBeLessThanOrEqual(
              Math.abs(value) > 1e38 || (value > 0 && value < 1e-37) ? 1000 : 1,
            );
            if (
              scale === 'log' &&
              value > 0 &&
              bin > 0 &&
              bin < axis.bins - 1 &&
              value < 1e38 &&
              value > Math.max(1e-37, axis.low)
            ) {
              expect(value).toBeGreaterThanOrEqual(valueAt(axis, bin / axis.bins) * (1 - 1e-12));
              expect(value).toBeLessThanOrEqual(valueAt(axis, (bin + 1) / axis.bins) * (1 + 1e-12));
            }
          }
        }
      }
    }
  });
});

describe('infinite and very large numbers', () => {
  const lists = [
    [Infinity],
    [-Infinity, NaN],
    [Infinity, -Infinity, 5],
    [Infinity, 1, 2, 3, -Infinity],
    [0.5, 1e300, Infinity],
    [1e300, 1e300],
    [-1e300, 1e300],
    [Number.MAX_VALUE, -Number.MAX_VALUE, 1],
    [2 ** 53, 2 ** 53],
    [2 ** 60, 2 ** 60 + 256],
  ];

  it('leave axes, brushes, bins and rows finite', () => {
    for (const list of lists) {
      const values = Float64Array.from(list);
      const finite = list.filter(Number.isFinite);
      const range = rangeOf(values);
      expect(range.known).toBe(finite.length);
      for (const scale of ['linear', 'log', fitting(values, range)] as const) {
        const axis = axisOf(range, scale);
        const of = { axis, range };
        const about = `${list} ${scale}`;
        expect([axis.low, axis.high, axis.high - axis.low].every(Number.isFinite), about).toBe(
          true,
        );
        expect(axis.high, about).toBeGreaterThan(axis.low);
        const bins = new Uint8Array(list.length);
        binInto(bins, 1, 0, values, axis);
        list.forEach((value, at) => {
          if (Number.isFinite(value)) expect(bins[at], about).toBeLessThan(axis.bins);
          else expect(bins[at], about).toBe(UNKNOWN);
        });
        const brushes = [between(of, 0, 1), between(of, 0.25, 0.75), between(of, 0.9, 1)];
        for (const one of brushes.slice()) {
          brushes.push(
            moved(of, one, 0.3),
            resized(of, one, 'low', 0.1),
            nudged(of, one, -0.01, 'high'),
          );
        }
        for (const one of brushes) {
          expect(
            Number.isFinite(one.low) && one.low <= one.high && one.high < Infinity,
            about,
          ).toBe(true);
          expect(
            edgesOf(of, one).every((place) => place >= 0 && place <= 1),
            about,
          ).toBe(true);
        }
        const all = brushes[0];
        expect(
          finite.every((value) => value >= all.low && value <= all.high),
          about,
        ).toBe(true);
        const texts = rowsOf(axis, range).map(({ low, high }) => span(low, high, 'ns'));
        texts.push(...ticks(axis.low, axis.high, 'ns', 4).map((mark) => quantity(mark, 'ns')));
        for (const text of texts) expect(text, about).not.toMatch(/∞|NaN|unknown/);
      }
    }
  });

  it('come and go with groups, infinite ones in no bin', () => {
    for (const list of lists) {
      const pack = decodePack(
        makePack({ executions: 60, metrics: 9, contexts: 60, entries: 6 }).bytes.buffer,
      );
      const values = Float64Array.from({ length: 60 }, (_, one) => list[one % list.length]);
      pack.metrics[6] = { ...pack.metrics[6], values };
      const table = new Table(pack);
      const group = new Group(table, forward(pack));
      const { axis, range } = table.numbers[6];
      const finite = values.filter(Number.isFinite).length;
      const counted = () =>
        group.histograms
          .subarray(6 * ROOM, 6 * ROOM + axis.bins)
          .reduce((all, one) => all + one, 0);
      expect(counted()).toBe(finite);
      group.setRange(6, between({ axis, range }, 0, 1));
      expect(group.size).toBe(finite);
      group.setRange(6, { low: -Infinity, high: Infinity });
      expect(group.size).toBe(values.filter((value) => !Number.isNaN(value)).length);
      group.setRange(6, null);
      expect(group.size).toBe(60);
      expect(counted()).toBe(finite);
    }
  });
});

describe('what is not sure', () => {
  const found = (differences: number[], chance: number[]): Comparison => ({
    meanA: Float64Array.from(differences, (one) => Math.max(0, -one)),
    meanB: Float64Array.from(differences, (one) => Math.max(0, one)),
    chance: Float64Array.from(chance),
    deviations: new Float64Array(differences.length),
  });

  it('stands in its place by size, down to the last difference that is sure', () => {
    const one = found(
      [50, -80, 67000, 0, -70, 90, -81, 80],
      [1e-6, 1e-6, 0.3, 1, 0.4, 0.011, 0.9, 0.5],
    );
    expect(ranked(one, 20)).toEqual([2, 5, 6, 1, 7, 4, 0]);
    expect(ranked(one, 2)).toEqual([2, 5]);
    expect(sure(one)).toEqual([1, 0]);
    // Only selected contexts; at least five.
    expect(ranked(one, 20, (at) => at !== 0 && at !== 2)).toEqual([5, 6, 1, 7, 4]);
  });

  it('is all where nothing is sure, and nothing where nothing differs', () => {
    expect(ranked(found([5, -6, 0, 7], [SURE, 0.5, 1, 1]), 5)).toEqual([3, 1, 0]);
    expect(ranked(found([0, 0], [1, NaN]), 5)).toEqual([]);
  });

  it('is the cause that only few executions have', () => {
    const pack = given(6, 3000);
    const table = new Table(pack);
    const layer = forward(pack);
    const groups: [Group, Group] = [new Group(table, layer), new Group(table, layer)];
    groups[0].setAllowed(0, Uint8Array.from([1, 0, 0, 0]));
    // The first one with the planted cause.
    const begin = table.numbers.findIndex(({ key }) => key === 'begin');
    const slow = [...table.codeTable.keys()].filter(
      (cell) => cell % table.codes.length === 0 && table.codeTable[cell] === 1,
    );
    const second = table.numbers[begin].values[slow[0] / table.codes.length];
    groups[1].setAllowed(0, Uint8Array.from([0, 1, 0, 0]));
    groups[1].setRange(begin, { low: 0, high: second });
    for (const group of groups) group.settle(Infinity);
    expect(groups[1].size).toBe(1);
    const own = compare(layer, groups, 'own');
    const nameOf = (context: number) => pack.names[pack.contexts.name[context]];
    expect(ranked(own, 5).map(nameOf)).toContain('sda');
    expect(sure(own).map(nameOf)).not.toContain('sda');
  });
});

describe('the groups at the start', () => {
  /** The same as `typical_and_slow` in analyze/executions/src/groups.rs. */
  const plain = (durations: Uint32Array): [number[], number[]] => {
    const order = [...durations.keys()].sort(
      (one, other) => durations[one] - durations[other] || one - other,
    );
    const count = order.length;
    const slow = Math.max(Math.ceil(count / 100), Math.min(5, Math.floor(count / 4)));
    const quarter = Math.floor(count / 4);
    const sorted = (part: number[]) => part.sort((one, other) => one - other);
    return [sorted(order.slice(quarter, count - quarter)), sorted(order.slice(count - slow))];
  };

  it('are those of the terminal', () => {
    for (const executions of [1, 2, 3, 4, 19, 20, 21, 100, 300, 499, 501, 1000]) {
      const pack = given(17, executions);
      const durations = pack.metrics[0].values as Uint32Array;
      // No two are equally long.
      const places = [...durations.keys()].sort((one, other) => durations[one] - durations[other]);
      for (const [place, one] of places.entries()) durations[one] += place;
      const table = new Table(pack);
      const found = automatic(table, 'm.duration_ns')!;
      const expected = plain(durations);
      expect(found.sizes).toEqual(expected.map(({ length }) => length));
      const layer = forward(pack);
      for (const side of [0, 1] as const) {
        const group = new Group(table, layer);
        group.setRange(found.column, found.ranges[side]);
        const order = Uint32Array.from({ length: executions }, (_, at) => at);
        expect([...group.members(order, false)]).toEqual(expected[side]);
      }
    }
    expect(automatic(new Table(given(17, 300)), 'm.duration_ns')!.sizes[1]).toBe(5);
  });

  it('have what is as long as their ends, too; and are none where durations are not known', () => {
    const pack = given(18, 400);
    (pack.metrics[0].values as Uint32Array).fill(8);
    expect(automatic(new Table(pack), 'm.duration_ns')!.sizes).toEqual([400, 400]);
    expect(automatic(new Table(pack), 'm.other')).toBe(null);
    expect(automatic(new Table(given(18, 0)), 'm.duration_ns')).toBe(null);
  });
});

describe('few executions', () => {
  it('are enough, and none as well', () => {
    for (const executions of [0, 1, 2]) {
      const pack = given(13, executions);
      const table = new Table(pack);
      for (const layer of [forward(pack), inverted(pack)]) {
        const all = new Group(table, layer);
        all.settle(Infinity);
        const group = new Group(table, layer, all);
        for (let column = 0; column < table.numbers.length; column++) {
          table.setScale(column, 'log');
          group.recount(column);
          group.setRange(column, { low: 0, high: Infinity });
        }
        check(group, layer);
        const found = compare(layer, [group, all], 'whole');
        expect(sure(found)).toEqual([]);
        expect(layout(layer, found, { mode: 'diff', zoom: 0, least: 0 }).rows).toBeGreaterThan(0);
      }
    }
  });
});

describe('comparison of what is not all reckoned yet', () => {
  it('says nothing that it does not know', () => {
    const pack = given(14, 20000);
    const table = new Table(pack);
    const layer = forward(pack);
    const halves: [Group, Group] = [new Group(table, layer), new Group(table, layer)];
    const source = table.codes.findIndex(({ key }) => key === 'source');
    halves[0].setAllowed(source, Uint8Array.from([1, 0, 0]));
    halves[1].setAllowed(source, Uint8Array.from([0, 1, 0]));
    for (const half of halves) half.settleOwn(Infinity);
    let isDone = false;
    for (let step = 0; !isDone; step++) {
      // Both halves are from the same population: nothing differs at any time.
      expect(sure(compare(layer, halves, 'whole'))).toEqual([]);
      isDone = halves.map((half) => half.settleWhole(0, () => 1)).every((one) => one);
      expect(step).toBeLessThan(1000);
    }
    expect(sure(compare(layer, halves, 'whole'))).toEqual([]);
  });
});
