import { describe, expect, it } from 'vitest';
import { axisOf, rangeOf, type Scale } from '../src/engine/axis';
import {
  type Brushed,
  between,
  edgesOf,
  highAt,
  lowAt,
  moved,
  nudged,
  resized,
} from '../src/engine/brush';
import { random } from '../tools/synthetic.mjs';

function brushed(values: number[], scale: Scale): Brushed {
  const range = rangeOf(Float64Array.from(values));
  return { range, axis: axisOf(range, scale) };
}

const FEW = [0, 1, 2, 3, 5, 8];
const MANY = [17, 1000, 123_456, 4_000_000_000];
const WHOLE: [string, Brushed][] = [
  ['few', brushed(FEW, 'linear')],
  ['few, from 0 on, logarithmic', brushed(FEW, 'log')],
  ['few below 0', brushed([-4, -2, 0, 3], 'linear')],
  ['great ones that differ little', brushed([1e12 + 3, 1e12 + 9], 'linear')],
  ['many', brushed(MANY, 'linear')],
  ['many, logarithmic', brushed(MANY, 'log')],
];

describe('a brush on whole numbers', () => {
  it('has whole ends, wherever it is drawn, moved and resized', () => {
    const next = random(21);
    for (const [name, of] of WHOLE) {
      const sound = (range: { low: number; high: number }) => {
        expect(
          Number.isInteger(range.low) && Number.isInteger(range.high),
          `${name}: ${range.low}, ${range.high}`,
        ).toBe(true);
        expect(range.low).toBeLessThanOrEqual(range.high);
        expect(range.low).toBeGreaterThanOrEqual(of.range.low);
        expect(range.high).toBeLessThanOrEqual(of.range.high);
        expect(Object.is(range.low, -0) || Object.is(range.high, -0)).toBe(false);
        return range;
      };
      for (let round = 0; round < 300; round++) {
        const range = sound(between(of, next(), next()));
        sound(moved(of, range, next() * 2 - 1));
        sound(resized(of, range, 'low', next()));
        sound(resized(of, range, 'high', next()));
        sound(
          nudged(
            of,
            range,
            (next() - 0.5) / 10,
            (['whole', 'low', 'high'] as const)[Math.floor(3 * next())],
          ),
        );
      }
    }
  });

  it('takes each number that it touches, with its edges beside these', () => {
    const of = brushed(FEW, 'linear');
    // Nine cells; from within that of 2 to within that of 4.
    expect(between(of, 2.6 / 9, 4.1 / 9)).toEqual({ low: 2, high: 4 });
    expect(between(of, 4.1 / 9, 2.6 / 9)).toEqual({ low: 2, high: 4 });
    expect(between(of, 3.2 / 9, 3.4 / 9)).toEqual({ low: 3, high: 3 });
    const [from, to] = edgesOf(of, { low: 2, high: 4 });
    expect([from, to].map((place) => place * 9)).toEqual([
      expect.closeTo(2, 9),
      expect.closeTo(5, 9),
    ]);
    // All of the axis is all of the numbers.
    expect(between(of, 0, 1)).toEqual({ low: 0, high: 8 });
  });

  it('is the same again between its own edges, and keeps the end that is not drawn', () => {
    const next = random(22);
    for (const [name, of] of WHOLE) {
      for (let round = 0; round < 200; round++) {
        const range = between(of, next(), next());
        const [from, to] = edgesOf(of, range);
        if (of.axis.scale === 'linear')
          expect([lowAt(of, from), highAt(of, to)], name).toEqual([range.low, range.high]);
        expect(resized(of, range, 'low', from * next()).high, name).toBe(range.high);
        expect(resized(of, range, 'high', to + (1 - to) * next()).low, name).toBe(range.low);
      }
    }
  });

  it('has as many numbers while it is moved, and stops at the ends', () => {
    const of = brushed(FEW, 'linear');
    const range = { low: 2, high: 4 };
    for (const [by, low] of [
      [0.4 / 9, 2],
      [0.6 / 9, 3],
      [-1.2 / 9, 1],
      [1, 6],
      [-1, 0],
    ]) {
      expect(moved(of, range, by)).toEqual({ low, high: low + 2 });
    }
    // A range from an address may exceed the ends.
    expect(moved(of, { low: -50, high: 1e12 }, 0.3)).toEqual({ low: 0, high: 8 });
  });

  it('becomes the other end where one is drawn beyond it', () => {
    const of = brushed(FEW, 'linear');
    expect(resized(of, { low: 2, high: 4 }, 'low', 6.5 / 9)).toEqual({ low: 4, high: 6 });
    expect(resized(of, { low: 2, high: 4 }, 'high', 0.5 / 9)).toEqual({ low: 0, high: 2 });
    expect(resized(of, { low: 2, high: 4 }, 'high', 2.0 / 9)).toEqual({ low: 2, high: 2 });
  });

  it('goes on by one number at least when keys move it', () => {
    for (const [name, of] of WHOLE) {
      let range = { low: of.range.low, high: of.range.low + 1 };
      for (let step = 0; step < 3; step++) {
        const further = nudged(of, range, 0.2 / of.axis.bins, 'whole');
        expect(further.low, name).toBeGreaterThan(range.low);
        range = further;
      }
      const wider = nudged(of, range, 0.2 / of.axis.bins, 'high');
      expect([wider.low, wider.high > range.high], name).toEqual([range.low, true]);
      const narrower = nudged(
        of,
        { low: range.low, high: range.low + 2 },
        -0.2 / of.axis.bins,
        'high',
      );
      expect([narrower.low, narrower.high < range.low + 2], name).toEqual([range.low, true]);
    }
    const of = brushed(FEW, 'linear');
    expect(nudged(of, { low: 7, high: 8 }, 1 / 9, 'whole')).toEqual({ low: 7, high: 8 });
    expect(nudged(of, { low: 3, high: 3 }, -1 / 9, 'high')).toEqual({ low: 3, high: 3 });
  });
});

describe('a brush on other numbers', () => {
  it('takes them as they come', () => {
    const of = brushed([0.25, 10.5], 'linear');
    const range = between(of, 0.5, 0.25);
    expect(range.low).toBeCloseTo(0.25 + 0.25 * 10.25, 9);
    expect(range.high).toBeCloseTo(0.25 + 0.5 * 10.25, 9);
    const far = moved(of, range, 9);
    expect(far.high).toBe(10.5);
    expect(far.high - far.low).toBeCloseTo(0.25 * 10.25, 9);
    expect(between(of, 0, 1)).toEqual({ low: 0.25, high: 10.5 });
    expect(nudged(of, range, 0.01, 'high').high).toBeCloseTo(range.high + 0.1025, 9);
  });
});
