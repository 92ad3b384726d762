import { describe, expect, it } from 'vitest';
import {
  chanceOf,
  correct,
  deviations,
  erfc,
  hedges,
  intervalOf,
  leastChance,
  logGamma,
  type Spread,
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
