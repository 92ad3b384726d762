import { describe, expect, it } from 'vitest';
import { membership, numbersOf, Separating, spreadOf } from '../src/engine/figures';
import { Group } from '../src/engine/group';
import { forward } from '../src/engine/layer';
import { orderOf } from '../src/engine/order';
import { decodePack, type Pack } from '../src/engine/pack';
import { Table } from '../src/engine/table';
import { makePack } from '../tools/synthetic.mjs';

function given(
  seed: number,
  executions: number,
): { pack: Pack; table: Table; groups: [Group, Group] } {
  const pack = decodePack(
    makePack({ executions, metrics: 9, contexts: 60, entries: 6, seed }).bytes.buffer,
  );
  // Some values are unknown.
  const values = Float64Array.from(pack.metrics[3].values, (value, at) =>
    at % 7 === 2 ? NaN : value,
  );
  pack.metrics[3] = { ...pack.metrics[3], values };
  const table = new Table(pack);
  const layer = forward(pack);
  return { pack, table, groups: [new Group(table, layer), new Group(table, layer)] };
}

/** Known values of a metric in a group. */
function members(table: Table, group: Group, column: number): number[] {
  const { values } = table.numbers[column];
  return [...values].filter((value, one) => group.has(one) && !Number.isNaN(value));
}

describe('figures', () => {
  it('are ranked as each number beside each other one', () => {
    for (const seed of [1, 2, 3]) {
      const { pack, table, groups } = given(seed, 240);
      // Groups that have executions in common, and ones that have none.
      groups[0].setRange(0, { low: 0, high: table.numbers[0].range.high * 0.6 });
      groups[1].setRange(1, { low: table.numbers[1].range.high * 0.05 * seed, high: Infinity });
      for (let column = 0; column < pack.metrics.length; column++) {
        const [one, other] = groups.map((group) => members(table, group, column));
        const { values } = table.numbers[column];
        const bits = membership(groups, pack.executions);
        const found = numbersOf(values, table.orderOf(column), bits);
        let above = 0;
        for (const b of other) for (const a of one) above += a < b ? 1 : a === b ? 0.5 : 0;
        const counts = new Map<number, number>();
        for (const value of [...one, ...other]) counts.set(value, (counts.get(value) ?? 0) + 1);
        expect(found.higher).toBeCloseTo(above / (one.length * other.length), 12);
        expect(found.differing).toBe(one.length + other.length - Math.max(...counts.values()));
        const mean = one.reduce((sum, value) => sum + value, 0) / one.length;
        const squares = one.reduce((sum, value) => sum + (value - mean) ** 2, 0);
        const spread = spreadOf(values, bits, 1);
        expect(spread.executions).toBe(one.length);
        expect(spread.mean).toBeCloseTo(mean, 6);
        expect(Math.abs(spread.deviation - Math.sqrt(squares / (one.length - 1)))).toBeLessThan(
          1e-9 * spread.deviation + 1e-9,
        );
      }
    }
  });

  it('that tell the groups apart come first, those that tell nothing are left out', () => {
    const { pack, table, groups } = given(4, 900);
    (pack.metrics[5].values as Uint32Array).fill(7);
    const { high } = table.numbers[0].range;
    groups[0].setRange(0, { low: 0, high: high * 0.2 });
    groups[1].setRange(0, { low: high * 0.4, high });
    const work = new Separating(table, groups, pack.metrics.length);
    // Two steps for each metric; durations are sorted already.
    for (let step = 2; step < 2 * pack.metrics.length; step++) expect(work.step()).toBe(false);
    expect(work.step()).toBe(true);
    const found = work.ranked();
    expect(found[0]).toMatchObject({ column: 0, higher: 1 });
    expect(found[0].chance).toBeLessThan(1e-6);
    expect(found.map(({ column }) => column)).not.toContain(5);
    const apart = found.map((one) => Math.abs(one.higher - 0.5));
    expect(apart).toEqual([...apart].sort((one, other) => other - one));
  });

  it('with infinite or too large numbers in a group are told apart by ranks alone', () => {
    const { pack } = given(4, 900);
    const durations = Float64Array.from(pack.metrics[0].values);
    const high = durations.reduce((most, value) => Math.max(most, value));
    /** Tests one metric alone; the groups are ranges of the durations in the second column. */
    const tested = (of: (duration: number, one: number) => number) => {
      pack.metrics = [
        { ...pack.metrics[0], name: 'added', values: durations.map(of) },
        { ...pack.metrics[0] },
      ];
      pack.metrics[1].values = durations;
      const table = new Table(pack);
      const groups: [Group, Group] = [
        new Group(table, forward(pack)),
        new Group(table, forward(pack)),
      ];
      groups[0].setRange(1, { low: 0, high: high * 0.2 });
      groups[1].setRange(1, { low: high * 0.4, high });
      const separating = new Separating(table, groups, 1);
      while (!separating.step());
      const values = groups.map((group) => members(table, group, 0));
      return { found: separating.ranked()[0], groups, values };
    };
    const { groups } = tested((duration) => duration);
    const inB = durations.findIndex((_, one) => groups[1].has(one));
    const outside = durations.findIndex((_, one) => groups.every((group) => !group.has(one)));
    for (const value of [Infinity, -Infinity, 1e300, -1e300]) {
      const { found, values } = tested((duration, one) => (one === inB ? value : duration));
      // All pairs of numbers.
      let above = 0;
      for (const b of values[1]) for (const a of values[0]) above += a < b ? 1 : a === b ? 0.5 : 0;
      const counts: [number, number] = [values[0].length, values[1].length];
      expect(found.higher).toBe(above / (counts[0] * counts[1]));
      const bits = membership(groups, durations.length);
      const plain = numbersOf(durations, orderOf(durations), bits);
      // Only the test by ranks is significant.
      expect(found.chance).toBeLessThan(1e-6);
      expect(found.chance).toBeGreaterThanOrEqual(plain.byRanks.chance);
      expect(Number.isFinite(found.groups[0].mean)).toBe(true);
      // Executions in neither group do not matter.
      const elsewhere = tested((duration, one) => (one === outside ? value : duration)).found;
      expect(elsewhere.groups).toEqual(tested((duration) => duration).found.groups);
    }
    // All executions of B are infinite, none of A.
    const { found } = tested((duration) => (duration > high * 0.3 ? Infinity : duration));
    expect(found.higher).toBe(1);
    expect(found.chance).toBeLessThan(1e-6);
    // Both infinities in both groups are not significant.
    const mixed = tested((_, one) => (one % 2 === 0 ? Infinity : -Infinity)).found;
    expect(mixed === undefined || mixed.chance > 0.01).toBe(true);
  });

  it('whose sums are too large for a number have the mean that they have', () => {
    const values = Float64Array.from([1.5e308, 1.2e308, 1.5e308, NaN, 7]);
    const bits = Uint8Array.from([1, 3, 1, 1, 2]);
    const one = spreadOf(values, bits, 1);
    expect(one.executions).toBe(3);
    expect(one.mean / 1.4e308).toBeCloseTo(1, 12);
    expect(one.deviation).toBe(Infinity);
    expect(spreadOf(values, bits, 2).mean / 0.6e308).toBeCloseTo(1, 12);
    // As in the terminal: equal numbers have no deviation.
    const same = Float64Array.from([1.5e308, 1.5e308, 1.5e308]);
    expect(spreadOf(same, Uint8Array.of(1, 1, 1), 1)).toEqual({
      executions: 3,
      present: 3,
      mean: 1.5e308,
      deviation: 0,
    });
    const infinite = spreadOf(Float64Array.from([1, Infinity, 2]), Uint8Array.of(1, 1, 1), 1);
    expect(Number.isFinite(infinite.mean) || Number.isFinite(infinite.deviation)).toBe(false);
  });

  it('tell nothing of groups that are the same, or empty', () => {
    const { pack, table, groups } = given(5, 50);
    const ranked = () => {
      const work = new Separating(table, groups, pack.metrics.length);
      while (!work.step());
      return work.ranked();
    };
    expect(ranked()).toEqual([]);
    groups[1].setRange(0, { low: -2, high: -1 });
    expect(groups[1].size).toBe(0);
    expect(ranked()).toEqual([]);
    expect(new Separating(table, groups, 0).step()).toBe(true);
  });
});
