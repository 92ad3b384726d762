import { describe, expect, it } from 'vitest';
import {
  correct,
  corrected,
  leastChance,
  leastChances,
  Pool,
  Runs,
} from '../src/engine/permutation';
import {
  deviations,
  erfc,
  hedges,
  intervalOf,
  logGamma,
  presence,
  type Spread,
  surer,
  twoSided,
} from '../src/engine/statistics';
import { emptySums, fill, octaveOf } from '../src/engine/sums';
import { random } from '../tools/synthetic.mjs';

function spread(values: number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    executions: values.length,
    present: values.length,
    mean,
    deviation: Math.sqrt(squares / (values.length - 1)),
  };
}

const one = spread([275, 210, 190, 236, 170, 179, 169, 201, 219, 226, 231, 196, 190, 217, 214]);
const other = spread([271, 220, 208, 234, 234, 235, 258, 220, 248, 202, 219, 221, 229, 300, 239]);
const few = spread([3, 5, 4]);
const large = spread([10, 30, 20, 50]);

/** Student's two-sided probability by Simpson's rule on its density: slow and plain. */
function plain(t: number, freedom: number): number {
  const front =
    Math.exp(logGamma((freedom + 1) / 2) - logGamma(freedom / 2)) / Math.sqrt(freedom * Math.PI);
  const density = (x: number) => front * (1 + (x * x) / freedom) ** (-(freedom + 1) / 2);
  const steps = 20000;
  let sum = density(0) + density(t);
  for (let at = 1; at < steps; at++) sum += density((t * at) / steps) * (at % 2 === 1 ? 4 : 2);
  return 1 - (2 * sum * t) / steps / 3;
}

/** Number of values drawn, their sum, and its probability. */
const TAILS: [number, number, number][] = [
  [20, 3e7, 0.10538825018588216],
  [20, 1.2e8, 2.6818558382453573e-6],
  [100, 9e7, 0.015366250677826033],
  [903, 1e6, 1.1227658074538367e-16],
  [903, 2.9e8, 0.004035162454842522],
];
const OF_RUNS = 0.0001900306820220669;

describe('statistics', () => {
  it("gives the wider interval of Welch's and Student's tests", () => {
    // As computed by scipy 1.17: of the first two both are nearly the same, of the others Welch's
    // is wider.
    for (const [a, b, [low, high]] of [
      [one, other, [7.668882941149821, 47.664450392183554]],
      [few, large, [-3.5984413954914274, 50.59844139549143]],
    ] as const) {
      const found = intervalOf(a, b)!;
      expect(found[0]).toBeLessThanOrEqual(low + 1e-6);
      expect(found[1]).toBeGreaterThanOrEqual(high - 1e-6);
      expect(found[0] + found[1]).toBeCloseTo(low + high, 7);
    }
    // A group without a rare value is not exact (the numbers of
    // `intervals_are_the_wider_of_both_tests`).
    const none = spread(new Array(20).fill(0));
    const many = spread(Array.from({ length: 1780 }, (_, at) => (at % 89 === 0 ? 100 : 0)));
    const [low, high] = intervalOf(none, many)!;
    const reach = 1.961287 * 10.5358 * Math.sqrt(1779 / 1798) * Math.sqrt(1 / 20 + 1 / 1780);
    expect((high - low) / 2).toBeCloseTo(reach, 2);
    expect(intervalOf(spread([1, 1, 1]), spread([3, 3, 3]))).toEqual([2, 2]);
  });

  it('agrees with the density of the distribution, on both sides of where the way to reckon changes', () => {
    for (const freedom of [1, 1.7, 5, 30, 399, 401, 5000]) {
      for (const t of [0.1, 0.7, 1.5, 2.5, 4]) {
        const expected = plain(t, freedom);
        expect(Math.abs(twoSided(t, freedom) - expected) / expected).toBeLessThan(1e-6);
      }
    }
    for (const t of [0.5, 3, 9, 20]) {
      const ratio = twoSided(t, 400) / twoSided(t, 400.000001);
      expect(Math.abs(ratio - 1)).toBeLessThan(1e-6);
    }
    expect(twoSided(0, 10)).toBe(1);
    expect(twoSided(Infinity, 1e6)).toBe(0);
  });

  it('knows special functions', () => {
    expect(logGamma(0.5)).toBeCloseTo(Math.log(Math.sqrt(Math.PI)), 13);
    expect(logGamma(11)).toBeCloseTo(Math.log(3628800), 12);
    expect(erfc(0)).toBe(1);
    expect(erfc(1)).toBeCloseTo(0.15729920705028513, 14);
    expect(erfc(2) / 0.004677734981047266).toBeCloseTo(1, 12);
    expect(erfc(5) / 1.5374597944280347e-12).toBeCloseTo(1, 12);
    expect(erfc(1.9999999999) / erfc(2.0000000001)).toBeCloseTo(1, 8);
  });

  it('tells no interval of means that are infinite, or become so, as the terminal does', () => {
    const a = { executions: 3, present: 3, mean: 1, deviation: 1 };
    for (const wrong of [
      { mean: Infinity },
      { mean: -Infinity, deviation: 0 },
      { mean: NaN },
      { deviation: Infinity },
      { deviation: NaN },
      { deviation: 1e300 },
      { executions: 1 },
    ]) {
      const b = { ...a, ...wrong };
      for (const [one, other] of [
        [a, b],
        [b, a],
      ])
        expect(intervalOf(one, other)).toBe(null);
      if (!('executions' in wrong)) expect(hedges(a, b)).toBe(0);
    }
    expect(surer(1, 1e-9)).toBe(2e-9);
    expect(surer(0.7, 0.8)).toBe(1);
  });

  it('tells much of few by who was there, as the terminal does', () => {
    const of = (executions: number, present: number): Spread => ({
      executions,
      present,
      mean: 0,
      deviation: 0,
    });
    // The numbers of `who_was_there_tells_much_of_few` in analyze/executions/src/statistics.rs.
    for (const [a, b, chance] of [
      [of(150, 0), of(5, 3), 3.2857718e-5],
      [of(100, 40), of(30, 9), 0.44018766],
      [of(150, 0), of(5, 5), 2.8631682e-9],
    ] as const) {
      expect(Math.abs(presence(a, b) / chance - 1)).toBeLessThan(1e-3);
      // Which group is the second one does not matter.
      expect(Math.abs(presence(b, a) / presence(a, b) - 1)).toBeLessThan(1e-9);
    }
    expect(presence(of(7, 7), of(3, 3))).toBe(1);
    expect(presence(of(7, 0), of(3, 0))).toBe(1);
    expect(presence(of(0, 0), of(3, 1))).toBe(1);
    expect(presence(of(7, NaN), of(3, 1))).toBe(1);
    expect(presence(of(1e6, 1e6), of(5e5, 499_000))).toBeLessThan(1e-300);
  });

  it('counts who was there as all ways to choose them, one by one', () => {
    const ways = (all: number, some: number): number =>
      some === 0 ? 1 : (ways(all - 1, some - 1) * all) / some;
    for (const [all, drawn, have] of [
      [12, 5, 4],
      [20, 3, 11],
      [9, 9, 2],
    ]) {
      const chanceOfSome = (found: number) =>
        found < 0 || have - found < 0 || drawn - found < 0 || all - have < drawn - found
          ? 0
          : (ways(have, found) * ways(all - have, drawn - found)) / ways(all, drawn);
      for (let found = Math.max(0, drawn + have - all); found <= Math.min(have, drawn); found++) {
        const isMany = found * all >= have * drawn;
        const tail = Array.from({ length: all + 1 }, (_, at) => at).filter((at) =>
          isMany ? at >= found : at <= found,
        );
        const expected = Math.min(1, 2 * tail.reduce((sum, at) => sum + chanceOfSome(at), 0));
        const a = { executions: all - drawn, present: have - found, mean: 0, deviation: 0 };
        const b = { executions: drawn, present: found, mean: 0, deviation: 0 };
        expect(presence(a, b)).toBeCloseTo(drawn === all ? 1 : expected, 6);
      }
    }
  });

  it('has the probabilities of sums that all ways to choose a group give', () => {
    const next = random(4);
    for (let round = 0; round < 24; round++) {
      const values = Float64Array.from(
        { length: 12 },
        () => [next(), Math.exp(4 * next()), next() < 0.4 ? next() : 0][round % 3],
      ).sort();
      const pool = new Pool();
      for (const value of values) pool.push(value, 0, 1);
      for (const drawn of [3, 5, 8]) {
        const sums: number[] = [];
        for (let bits = 0; bits < 1 << 12; bits++) {
          const chosen = values.filter((_, at) => (bits >> at) & 1);
          if (chosen.length === drawn) sums.push(chosen.reduce((sum, value) => sum + value, 0));
        }
        for (let at = 0; at < sums.length; at += 17) {
          const { isMore, chance } = pool.tail(drawn, sums[at]);
          const exact =
            sums.filter((sum) => (isMore ? sum >= sums[at] - 1e-9 : sum <= sums[at] + 1e-9))
              .length / sums.length;
          expect(chance / exact).toBeGreaterThan(0.4);
          if (chance < 1) expect(chance / exact).toBeLessThan(20);
        }
      }
    }
  });

  it('has the same tails as the terminal', () => {
    // From `page_and_terminal_have_the_same_tails` in analyze/executions/src/permutation.rs.
    const pool = new Pool();
    for (const [mean, deviation, count] of [
      [0, 0, 1500],
      [3000, 700, 200],
      [50_000, 11_000, 95],
      [7e6, 0, 1],
      [3e7, 4e6, 10],
    ])
      pool.push(mean, deviation, count);
    for (const [drawn, sum, chance] of TAILS)
      expect(pool.tail(drawn, sum).chance / chance).toBeCloseTo(1, 9);
    const runs = new Runs(1000);
    for (let at = 0; at < 1000; at++) runs.push(at * at, 1);
    expect(runs.tail(30, 1.6e7).chance / OF_RUNS).toBeCloseTo(1, 9);
  });

  it('says nothing of what is all the same, or no number', () => {
    const pool = new Pool();
    for (const [values, drawn, sum] of [
      [[], 1, 1],
      [[3, 3, 3, 3], 2, 6],
      [[1, 2], 0, 0],
      [[1, 2], 2, 3],
      [[2, Infinity], 1, 2],
      [[-1e300, 1, 1e300], 1, 1e300],
    ] as const) {
      pool.clear();
      for (const value of values) pool.push(value, 0, 1);
      expect(pool.tail(drawn, sum)).toEqual({ isMore: false, chance: 1 });
    }
  });

  it('knows which octave a time is in, and leaves no trace of one that was taken away', () => {
    const times = [1, 2047, 2048, 4095, 4096, 2 ** 31 - 1, 2 ** 31, 2 ** 35 - 1, 2 ** 35, 2 ** 53];
    expect(times.map(octaveOf)).toEqual([0, 0, 1, 1, 2, 20, 21, 24, 25, 25]);
    const pool = new Pool();
    fill(pool, emptySums(2), emptySums(2), 1, 7);
    expect(pool.tail(3, 0).chance).toBe(1);
  });

  it('corrects for tests that can be as sure', () => {
    expect(leastChance(6, 6, 6)).toBeCloseTo(2 / 924, 12);
    expect(leastChance(6, 6, 1)).toBe(1);
    expect(leastChance(3, 3, 6)).toBeCloseTo(0.1, 12);
    expect(leastChance(100, 2000, 2000)).toBeLessThan(1e-29);
    const leastOf = leastChances(20, 1786);
    for (const differing of [0, 1, 2, 5, 19, 20, 1000]) {
      expect(leastOf(differing) / Math.max(1e-60, leastChance(20, 1786, differing))).toBeCloseTo(
        1,
        9,
      );
    }
    const chances = Float64Array.from([0.01, 0.04, NaN, 0.5, 0.02]);
    correct(chances, Float64Array.from([0.001, 0.01, 0, 0.5, 0.02]));
    expect([...chances].map((chance) => Number(chance.toFixed(12)))).toEqual([
      0.02,
      0.12,
      NaN,
      1,
      0.06,
    ]);
    expect(corrected(0.4, [])).toBe(0.4);
  });

  it('measures differences by the spread of both groups', () => {
    const pooled = Math.sqrt((one.deviation ** 2 + other.deviation ** 2) / 2);
    expect(deviations(one, other)).toBeCloseTo((other.mean - one.mean) / pooled, 10);
    expect(hedges(one, other)).toBeCloseTo(
      ((other.mean - one.mean) / pooled) * (1 - 3 / (4 * 28 - 1)),
      10,
    );
    expect(deviations({ ...one, deviation: 0 }, { ...other, deviation: 0 })).toBe(Infinity);
    expect(deviations(one, one)).toBe(0);
  });
});
