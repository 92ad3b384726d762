import { describe, expect, it } from 'vitest';
import { scaleOf, sharesOf } from '../src/engine/shares';

const SMALL = [1, 9, 0, 15];
const LARGE = [1100, 100, 40, 10];

describe('shares of a group', () => {
  it('add up to 1, and are 0 without executions', () => {
    expect([...sharesOf(SMALL)]).toEqual([0.04, 0.36, 0, 0.6]);
    expect(sharesOf(LARGE).reduce((sum, one) => sum + one)).toBeCloseTo(1);
    expect([...sharesOf([0, 0])]).toEqual([0, 0]);
  });
});

describe('the scale of both groups', () => {
  it('ends at a round share above all bars', () => {
    expect(scaleOf([SMALL, LARGE], false).top).toBe(1);
    expect(scaleOf([SMALL, SMALL], false).top).toBeCloseTo(0.6);
    expect(scaleOf([[1, 99, ...Array(99).fill(100)], [1]], false).top).toBe(1);
    expect(scaleOf([Array(96).fill(5), Array(96).fill(1)], false).top).toBeCloseTo(0.015);
    expect(scaleOf([[0], []], false).top).toBe(1);
  });

  it('gives equal shares equal heights, whatever the sizes of the groups', () => {
    const tenfold = SMALL.map((one) => 10 * one);
    for (const isLog of [false, true]) {
      const { heightOf } = scaleOf([SMALL, tenfold], isLog);
      const [small, large] = [SMALL, tenfold].map((of) => [...sharesOf(of)].map(heightOf));
      small.forEach((height, bin) => {
        expect(height).toBeCloseTo(large[bin]);
      });
      expect(Math.max(...small)).toBeLessThanOrEqual(1);
      expect(heightOf(0)).toBe(0);
    }
  });

  it('on a logarithmic scale shows one execution of a large group', () => {
    const rare = [1, 100_000];
    expect(scaleOf([rare, SMALL], false).heightOf(sharesOf(rare)[0])).toBeLessThan(0.001);
    expect(scaleOf([rare, SMALL], true).heightOf(sharesOf(rare)[0])).toBeGreaterThan(0.05);
  });
});
