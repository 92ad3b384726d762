import { describe, expect, it } from 'vitest';
import { Group } from '../src/engine/group';
import { forward } from '../src/engine/layer';
import { decodePack, NONE, type Pack } from '../src/engine/pack';
import { correct, leastChance } from '../src/engine/permutation';
import { chanceOfSquares, erfc, presence } from '../src/engine/statistics';
import { Table } from '../src/engine/table';
import {
  association,
  type Counts,
  chiSquared,
  countsOf,
  distance,
  surest,
  TextWork,
  textColumns,
} from '../src/engine/texts';
import { makePack, random } from '../tools/synthetic.mjs';

/** Counts of two groups by text, without executions that have no text. */
function counts(by: [number, number][], sizes: [number, number]): Counts {
  return { a: by.map(([a]) => a), b: by.map(([, b]) => b), sizes };
}

function given(executions: number, seed = 1): { pack: Pack; table: Table; groups: [Group, Group] } {
  const pack = decodePack(
    makePack({ executions, metrics: 7, contexts: 60, entries: 6, seed }).bytes.buffer,
  );
  return make(pack);
}

function make(pack: Pack): { pack: Pack; table: Table; groups: [Group, Group] } {
  const table = new Table(pack);
  const layer = forward(pack);
  return { pack, table, groups: [new Group(table, layer), new Group(table, layer)] };
}

function ranked(pack: Pack, table: Table, groups: [Group, Group]) {
  const work = new TextWork(textColumns(table, pack), groups);
  while (!work.step());
  return work.ranked();
}

/** The text of an execution, as in the terminal. */
function textOf(pack: Pack, name: string, one: number): string | null {
  if (name === 'host') return pack.sources[pack.source[one]].host;
  if (name === 'label') return pack.sources[pack.source[one]].label;
  if (name === 'thread') return pack.thread[one] === NONE ? null : pack.threads[pack.thread[one]];
  const { values, codes } = pack.texts.find((text) => text.name === name)!;
  return codes[one] === NONE ? null : values[codes[one]];
}

describe('tests of texts', () => {
  it('know the tail of the chi-squared distribution', () => {
    // With an even number of degrees of freedom it is a sum of Poisson terms.
    const even = (x: number, freedom: number) => {
      let term = Math.exp(-x / 2);
      let sum = 0;
      for (let n = 0; n < freedom / 2; n++) {
        sum += term;
        term *= x / 2 / (n + 1);
      }
      return sum;
    };
    for (const freedom of [2, 4, 10, 60, 300]) {
      for (const part of [0.1, 0.5, 0.9, 1, 1.1, 1.6, 3]) {
        const x = part * freedom;
        expect(chanceOfSquares(x, freedom) / even(x, freedom)).toBeCloseTo(1, 9);
      }
    }
    for (const x of [0.01, 0.5, 1, 3, 3.5, 20, 200]) {
      expect(chanceOfSquares(x, 1) / erfc(Math.sqrt(x / 2))).toBeCloseTo(1, 10);
    }
    expect(chanceOfSquares(0, 5)).toBe(1);
    expect(chanceOfSquares(1e6, 5)).toBe(0);
    // Very many degrees: the median is nearly the mean.
    expect(chanceOfSquares(100_000 - 2 / 3, 100_000)).toBeCloseTo(0.5, 5);
  });

  it('give the chances of the terminal, texts that few have being one', () => {
    const sizes: [number, number] = [60, 60];
    const three = counts(
      [
        [30, 10],
        [20, 25],
        [10, 25],
      ],
      sizes,
    );
    // With two degrees of freedom the probability is exp(-sum / 2).
    const sum = 10 + 5 / 9 + 45 / 7;
    expect(distance(three)).toBeCloseTo(sum, 10);
    expect(chiSquared(three)).toBeCloseTo(Math.exp(-sum / 2), 12);
    const few = counts(
      [
        [30, 10],
        [25, 41],
        [3, 5],
        [2, 4],
      ],
      sizes,
    );
    const together = counts(
      [
        [30, 10],
        [25, 41],
        [5, 9],
      ],
      sizes,
    );
    expect(chiSquared(few)).toBeCloseTo(chiSquared(together), 14);
    // Too few even together: they are added to the rarest of the others.
    const fewer = counts(
      [
        [30, 10],
        [29, 47],
        [1, 3],
      ],
      sizes,
    );
    expect(chiSquared(fewer)).toBeCloseTo(
      chiSquared(
        counts(
          [
            [31, 13],
            [29, 47],
          ],
          sizes,
        ),
      ),
      14,
    );
    expect(chiSquared(counts([[60, 60]], sizes))).toBe(1);
    expect(association(counts([[60, 60]], sizes))).toBe(0);
  });

  it('take the surest text, of such that are as sure the one that differs most', () => {
    const sizes: [number, number] = [100, 20];
    const by: [number, number][] = [
      [40, 8],
      [60, 2],
      [0, 10],
    ];
    const chances = by.map(([a, b]) =>
      presence(
        { executions: 100, present: a, mean: 0, deviation: 0 },
        { executions: 20, present: b, mean: 0, deviation: 0 },
      ),
    );
    const { place, chance } = surest(counts(by, sizes));
    expect(place).toBe(2);
    expect(chance).toBeCloseTo(3 * Math.min(...chances), 14);
    // A text without executions is not tested; two texts are one test.
    expect(surest(counts([...by, [0, 0]], sizes))).toEqual({ place, chance });
    const two = surest(
      counts(
        [
          [90, 5],
          [10, 15],
        ],
        sizes,
      ),
    );
    expect(two.place).toBe(0);
    expect(surest(counts([[0, 0]], [0, 0]))).toEqual({ place: 1, chance: 1 });
    // Small counts, which are cached in an array, and large ones.
    const large = surest(
      counts(
        [
          [5000, 100],
          [4000, 800],
          [1000, 100],
        ],
        [10_000, 1000],
      ),
    );
    expect([0, 1]).toContain(large.place);
    expect(large.chance).toBeLessThan(1e-100);
  });

  it('count the texts of each execution of a group, whatever its filters are', () => {
    for (const seed of [1, 2, 3]) {
      const { pack, table, groups } = given(400, seed);
      pack.sources.push({ path: 'c', host: null, label: 'v1.2' });
      pack.sources[1].host = pack.sources[0].host;
      pack.source.forEach((_, one) => {
        pack.source[one] = (one * 7) % 3;
      });
      const again = make(pack);
      groups[0] = again.groups[0];
      groups[1] = again.groups[1];
      groups[0].setRange(0, { low: 0, high: table.numbers[0].range.high * 0.5 });
      groups[1].setRange(1, { low: table.numbers[1].range.high * 0.1, high: Infinity });
      // A filter by texts, beside that of another column, and one by traces.
      groups[0].setAllowed(1, Uint8Array.from(pack.texts[1].values, (_, code) => code % 2).slice());
      const some = new Uint8Array(pack.sources.length + 1);
      some[0] = some[2] = 1;
      groups[1].setAllowed(2, some);
      const columns = textColumns(again.table, pack);
      expect(columns.map(({ name }) => name)).toEqual([
        'thread',
        'host',
        'label',
        'cause',
        'route',
      ]);
      for (const column of columns) {
        for (const group of groups) {
          const expected = new Map<string | null, number>();
          for (let one = 0; one < pack.executions; one++) {
            if (!group.has(one)) continue;
            const text = textOf(pack, column.name, one);
            expected.set(text, (expected.get(text) ?? 0) + 1);
          }
          const found = countsOf(column, group);
          const all = [...column.texts, null].map((text, at): [string | null, number] => [
            text,
            found[at],
          ]);
          expect(new Map(all.filter(([, count]) => count > 0))).toEqual(expected);
          expect(new Set(column.texts).size).toBe(column.texts.length);
        }
      }
    }
  });

  it('find the text that a cause goes with, and the codes to filter by it', () => {
    const { pack, table, groups } = given(2000);
    const { high } = table.numbers[0].range;
    groups[0].setRange(0, { low: 0, high: high * 0.3 });
    groups[1].setRange(0, { low: high * 0.5, high });
    const found = ranked(pack, table, groups);
    expect(found.map(({ name }) => name).sort()).toEqual([
      'cause',
      'host',
      'label',
      'route',
      'thread',
    ]);
    const [first] = found;
    expect(first).toMatchObject({ name: 'cause', codes: [expect.any(Number)] });
    expect(first.association).toBeGreaterThan(0.7);
    expect(first.chance).toBeLessThan(1e-12);
    expect(table.codes[first.column].key).toBe('t.cause');
    expect(table.codes[first.column].values[first.codes[0]]).toBe(first.value);
    for (const other of found.slice(1)) expect(other.association).toBeLessThan(first.association);
    // Probabilities are corrected for all columns of texts.
    const plain = found.map((one) => one.chance);
    const sorted = Float64Array.from(plain).sort();
    expect(
      plain.every(
        (chance) =>
          chance >= leastChance(groups[0].size, groups[1].size, groups[0].size + groups[1].size),
      ),
    ).toBe(true);
    expect(sorted[0]).toBe(first.chance);
    // With a filter by that text it separates the groups completely.
    const only = new Uint8Array(table.codes[first.column].values.length);
    for (const code of first.codes) only[code] = 1;
    groups[first.shares[1] > first.shares[0] ? 1 : 0].setAllowed(first.column, only);
    const again = ranked(pack, table, groups).find(({ name }) => name === 'cause')!;
    expect(Math.max(...again.shares)).toBe(1);
    expect(again.association).toBeGreaterThanOrEqual(first.association);
  });

  it('take texts in the order of executions, so that of two that say the same the terminal has the same one', () => {
    const { pack } = given(60);
    pack.threads = ['z', 'never', 'a'];
    pack.thread.forEach((_, one) => {
      pack.thread[one] = one < 30 ? 2 : 0;
    });
    const { table, groups } = make(pack);
    const thread = textColumns(table, pack).find(({ name }) => name === 'thread')!;
    expect(thread.texts).toEqual(['a', 'z']);
    const begin = table.numbers.findIndex(({ key }) => key === 'begin');
    const { values } = table.numbers[begin];
    groups[0].setRange(begin, { low: 0, high: values[29] });
    groups[1].setRange(begin, { low: values[30], high: Infinity });
    const found = ranked(pack, table, groups)[0];
    expect(found).toMatchObject({ name: 'thread', value: 'a', codes: [2], shares: [1, 0] });
    expect(found.association).toBeGreaterThan(0.95);
    // The absence of a text counts as a text.
    pack.thread.forEach((_, one) => {
      if (one >= 30) pack.thread[one] = NONE;
    });
    const none = make(pack);
    none.groups[0].setRange(begin, { low: 0, high: values[0] });
    none.groups[1].setRange(begin, { low: values[1], high: Infinity });
    const last = ranked(pack, none.table, none.groups).find(({ name }) => name === 'thread')!;
    expect(last.value === null ? last.codes : []).toEqual(last.value === null ? [3] : []);
    expect(none.table.codes[last.column].values[3]).toBe('(none)');
  });

  it('say nothing of groups that are empty, the same, or of one execution', () => {
    const { pack, table, groups } = given(50);
    const all = ranked(pack, table, groups);
    expect(all.every(({ association, chance }) => association === 0 && chance === 1)).toBe(true);
    groups[1].setRange(0, { low: -2, high: -1 });
    expect(groups[1].size).toBe(0);
    for (const one of ranked(pack, table, groups)) {
      expect(one).toMatchObject({ association: 0, chance: 1 });
      expect(one.shares.every(Number.isFinite)).toBe(true);
    }
    groups[0].setRange(0, { low: -2, high: -1 });
    for (const one of ranked(pack, table, groups))
      expect(one).toMatchObject({ value: null, shares: [0, 0], chance: 1 });
  });

  it('seldom find random groups to differ', () => {
    const next = random(11);
    const makers: ((number: number) => number)[] = [
      (number) => number % 8,
      (number) => (number % 100 === 0 ? 1 : 0),
      (number) => number,
      (number) => Math.clz32(number | 1),
    ];
    const texts = makers.map((of) =>
      Array.from({ length: 600 }, () => of(Math.floor(next() * 100_000))),
    );
    const index = texts.map((all) => {
      const known = [...new Set(all)];
      return all.map((one) => known.indexOf(one));
    });
    let wrong = 0;
    for (let round = 0; round < 200; round++) {
      const isB = Array.from({ length: 600 }, () => next() < 0.1);
      const size = isB.filter(Boolean).length;
      const chances = Float64Array.from(index, (codes) => {
        const a = new Uint32Array(Math.max(...codes) + 1);
        const b = new Uint32Array(a.length);
        codes.forEach((code, one) => {
          (isB[one] ? b : a)[code]++;
        });
        const of: Counts = { a, b, sizes: [600 - size, size] };
        return Math.min(1, 2 * Math.min(chiSquared(of), surest(of).chance));
      });
      correct(chances, new Float64Array(chances.length));
      if (chances.some((chance) => chance < 0.01)) wrong++;
    }
    // One in a hundred is expected.
    expect(wrong).toBeLessThanOrEqual(6);
  });

  it('take a while of very many texts in parts, and find nothing in what is another one each time', () => {
    const { pack } = given(200_000);
    const values = Array.from({ length: pack.executions }, (_, one) => `request ${one}`);
    pack.texts.push({ name: 'id', values, codes: Uint32Array.from(values, (_, one) => one) });
    const { table, groups } = make(pack);
    const { high } = table.numbers[0].range;
    groups[0].setRange(0, { low: 0, high: high * 0.3 });
    groups[1].setRange(0, { low: high * 0.5, high });
    const work = new TextWork(textColumns(table, pack), groups);
    let longest = 0;
    let steps = 0;
    for (let isDone = false; !isDone; steps++) {
      const begin = performance.now();
      isDone = work.step();
      longest = Math.max(longest, performance.now() - begin);
    }
    expect(steps).toBeGreaterThan(work.ranked().length * 2);
    expect(longest).toBeLessThan(1000);
    const id = work.ranked().find(({ name }) => name === 'id')!;
    expect(id.association).toBeLessThan(0.01);
    expect(id.chance).toBeGreaterThan(0.5);
  });
});
