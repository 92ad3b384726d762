import { describe, expect, it } from 'vitest';
import {
  chanceOf,
  chanceOfRanks,
  chanceOfTimes,
  correct,
  deviations,
  erfc,
  hedges,
  higher,
  intervalOf,
  leastChance,
  logGamma,
  presence,
  type Ranks,
  type Spread,
  surer,
  twoSided,
} from '../src/engine/statistics';

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
  const front = Math.exp(logGamma((freedom + 1) / 2) - logGamma(freedom / 2)) / Math.sqrt(freedom * Math.PI);
  const density = (x: number) => front * (1 + (x * x) / freedom) ** (-(freedom + 1) / 2);
  const steps = 20000;
  let sum = density(0) + density(t);
  for (let at = 1; at < steps; at++) sum += density((t * at) / steps) * (at % 2 === 1 ? 4 : 2);
  return 1 - (2 * sum * t) / steps / 3;
}

describe('statistics', () => {
  it("gives chances and intervals of Welch's test as scipy 1.16 does", () => {
    const expected: [Spread, Spread, number, [number, number]][] = [
      [one, other, 0.008452732437443369, [7.668882941149821, 47.664450392183554]],
      [few, large, 0.07027845189629994, [-3.5984413954914274, 50.59844139549143]],
    ];
    for (const [a, b, chance, [low, high]] of expected) {
      expect(chanceOf(a, b, 0)).toBeCloseTo(chance, 10);
      const found = intervalOf(a, b)!;
      expect(found[0]).toBeCloseTo(low, 7);
      expect(found[1]).toBeCloseTo(high, 7);
    }
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

  it('cannot tell much from few executions', () => {
    expect(leastChance(3, 3)).toBeCloseTo(0.1, 12);
    expect(leastChance(1, 1)).toBeCloseTo(1, 12);
    expect(leastChance(100, 2000)).toBeLessThan(1e-29);
    expect(leastChance(1e6, 1e6)).toBeLessThan(1e-29);
    const a = { executions: 3, present: 3, mean: 1, deviation: 0 };
    expect(chanceOf(a, { ...a, mean: 2 }, leastChance(3, 3))).toBeCloseTo(0.1, 12);
    expect(chanceOf(a, { ...a, executions: 1 }, 0)).toBe(1);
  });

  it('tells nothing by means that are infinite, or become so, as the terminal does', () => {
    const a = { executions: 3, present: 3, mean: 1, deviation: 1 };
    for (const wrong of [
      { mean: Infinity },
      { mean: -Infinity, deviation: 0 },
      { mean: NaN },
      { mean: Infinity, executions: 1 },
      { deviation: Infinity },
      { deviation: NaN },
      { deviation: 1e300 },
    ]) {
      for (const [one, other] of [
        [a, { ...a, ...wrong }],
        [{ ...a, ...wrong }, a],
        [
          { ...a, ...wrong },
          { ...a, ...wrong },
        ],
      ]) {
        expect(chanceOf(one, other, 0)).toBe(1);
        expect(intervalOf(one, other)).toBe(null);
        expect(hedges(one, other)).toBe(0);
        // What another test tells counts, as one of two.
        expect(surer(chanceOf(one, other, 0), 1e-9)).toBe(2e-9);
      }
    }
    const far = { ...a, mean: -1.7e308, deviation: 0 };
    expect(chanceOf(far, { ...far, mean: 1.7e308 }, 0)).toBe(1);
    expect(chanceOf(a, { ...a, mean: 1e300, deviation: 0 }, 0)).toBe(0);
    // Only the degrees of freedom cannot be reckoned: there is one at least.
    for (const deviation of [1e77, 1e80, 1e150]) {
      const wide = { ...a, mean: deviation, deviation };
      const found = chanceOf(a, wide, 0);
      expect(found).toBeCloseTo(twoSided(Math.sqrt(3), deviation === 1e77 ? 2 : 1), 10);
    }
  });

  it('tells much of few by who was there, as the terminal does', () => {
    const of = (executions: number, present: number): Spread => ({ executions, present, mean: 0, deviation: 0 });
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
    const ways = (all: number, some: number): number => (some === 0 ? 1 : (ways(all - 1, some - 1) * all) / some);
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

  it('takes the surer test as one of two, and who was there only of large differences', () => {
    expect(surer(0.01, 0.3)).toBe(0.02);
    expect(surer(0.7, 0.8)).toBe(1);
    const absent = { executions: 150, present: 0, mean: 0, deviation: 0 };
    const wide = { executions: 5, present: 5, mean: 178003.6, deviation: 213616.97363341707 };
    expect(chanceOf(absent, wide, 0)).toBeGreaterThan(0.1);
    expect(chanceOfTimes(absent, wide, 0)).toBeCloseTo(2 * presence(absent, wide), 12);
    // As many more were there, but for times that differ little.
    const mixed = { executions: 150, present: 72, mean: 1810, deviation: 4816 };
    const like = { executions: 5, present: 5, mean: 3987, deviation: 957 };
    expect(Math.abs(hedges(mixed, like))).toBeLessThan(0.8);
    expect(chanceOfTimes(mixed, like, 0)).toBe(2 * chanceOf(mixed, like, 0));
  });

  it('tells groups apart by ranks, as the terminal does', () => {
    // U is 48 of 64; three twos, two threes and two eights are 36.
    const ranks: Ranks = { counts: [8, 8], above: 48, ties: 36 };
    expect(chanceOfRanks(ranks)).toBeCloseTo(0.102037506, 8);
    expect(higher(ranks)).toBe(0.75);
    expect(chanceOfRanks({ counts: [0, 1], above: 0, ties: 0 })).toBe(1);
    expect(higher({ counts: [0, 1], above: 0, ties: 0 })).toBe(0.5);
    // All are equal: there is no deviation.
    expect(chanceOfRanks({ counts: [4, 3], above: 6, ties: 7 ** 3 - 7 })).toBe(1);
    // Of so few ranks tell no more than that these are all ways to divide them.
    expect(chanceOfRanks({ counts: [3, 3], above: 9, ties: 0 })).toBeCloseTo(0.1, 12);
  });

  it('corrects chances for their number', () => {
    const chances = Float64Array.from([0.01, 0.04, NaN, 0.03, 0.5]);
    correct(chances);
    const expected = [0.04, 0.16 / 3, NaN, 0.16 / 3, 0.5];
    chances.forEach((chance, at) => {
      if (at === 2) expect(chance).toBeNaN();
      else expect(chance).toBeCloseTo(expected[at], 12);
    });
    const equal = Float64Array.from([0.02, 0.02, 0.02, 0.9]);
    correct(equal);
    expect([...equal.slice(0, 3)].every((chance) => Math.abs(chance - 0.08 / 3) < 1e-12)).toBe(true);
  });

  it('measures differences by the spread of both groups', () => {
    const pooled = Math.sqrt((one.deviation ** 2 + other.deviation ** 2) / 2);
    expect(deviations(one, other)).toBeCloseTo((other.mean - one.mean) / pooled, 10);
    expect(hedges(one, other)).toBeCloseTo(((other.mean - one.mean) / pooled) * (1 - 3 / (4 * 28 - 1)), 10);
    expect(deviations({ ...one, deviation: 0 }, { ...other, deviation: 0 })).toBe(Infinity);
    expect(deviations(one, one)).toBe(0);
  });
});
