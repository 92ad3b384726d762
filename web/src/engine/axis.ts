/** Axes of histograms: positions of numbers from 0 to 1, and their bins. */

import type { Numbers } from './pack';

export type Scale = 'linear' | 'log';

/** Maximum number of bins. A bin fits into a byte, with one value left for unknown numbers. */
export const BINS = 96;
/** The bin of unknown and infinite numbers, which is not drawn. */
export const UNKNOWN = 255;

export interface Axis {
  scale: Scale;
  /** The ends; on a logarithmic scale `low` is the least number above 0. */
  low: number;
  high: number;
  bins: number;
  /** Part of the width, at the left end, for numbers without a logarithm: 0 and below. */
  zero: number;
  /** Whether each bin holds one whole number, at its centre. */
  isByOne: boolean;
}

/**
 * The range of a column's finite numbers. Infinite numbers have no position on an axis and count as
 * unknown.
 */
export interface Range {
  low: number;
  high: number;
  /** The least number above 0, or infinity. */
  positive: number;
  isWhole: boolean;
  /** Number of executions with a finite number. */
  known: number;
}

/** Range of a column without finite numbers. */
const NOTHING: Range = { low: 0, high: 0, positive: Infinity, isWhole: true, known: 0 };

/**
 * Whether all numbers are whole and small enough that a double can also hold the halves between
 * them.
 */
export function isWholeRange({ isWhole, low, high }: Range): boolean {
  return isWhole && low >= -(2 ** 52) && high <= 2 ** 52;
}

export function rangeOf(values: Numbers): Range {
  if (values instanceof Uint32Array) return wholeRange(values);
  const found = { low: Infinity, high: -Infinity, positive: Infinity, isWhole: true, known: 0 };
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (!Number.isFinite(value)) continue;
    found.known++;
    if (value < found.low) found.low = value;
    if (value > found.high) found.high = value;
    if (value > 0 && value < found.positive) found.positive = value;
    if (found.isWhole && value !== Math.floor(value)) found.isWhole = false;
  }
  return found.known === 0 ? NOTHING : found;
}

/** The range of whole numbers without unknown ones, the usual case. */
function wholeRange(values: Uint32Array): Range {
  let low = 0xffffffff;
  let high = 0;
  let positive = 0xffffffff;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value < low) low = value;
    if (value > high) high = value;
    if (value < positive && value > 0) positive = value;
  }
  const known = values.length;
  if (known === 0) return NOTHING;
  return { low, high, positive: high === 0 ? Infinity : positive, isWhole: true, known };
}

/** Numbers beyond are clamped, since the length of a longer axis would overflow. */
const FARTHEST = Number.MAX_VALUE / 4;

function within(value: number): number {
  return Math.min(FARTHEST, Math.max(-FARTHEST, value));
}

export function axisOf(range: Range, scale: Scale): Axis {
  const low = within(range.low);
  const high = within(range.high);
  if (scale === 'log' && high > 0) {
    const positive = Math.min(range.positive, high);
    // The quotient of numbers that are farther apart would overflow.
    const from = Math.max(positive === high ? high / 2 : positive, high / 1e300);
    return { scale, low: from, high, bins: BINS, zero: low <= 0 ? 4 / BINS : 0, isByOne: false };
  }
  // Few whole numbers: each has its own bin.
  if (isWholeRange(range) && high - low < BINS) {
    return {
      scale: 'linear',
      low: low - 0.5,
      high: high + 0.5,
      bins: Math.max(1, Math.round(high - low) + 1),
      zero: 0,
      isByOne: true,
    };
  }
  // A single number gets an axis with a length above 0, as far as doubles near it differ.
  const end = high > low ? high : low + Math.max(1, Math.abs(low) * 2 ** -40);
  return { scale: 'linear', low, high: end, bins: BINS, zero: 0, isByOne: false };
}

/** Position of a number from 0 to 1, clamped to the ends. */
export function placeOf(axis: Axis, value: number): number {
  if (axis.scale === 'linear')
    return Math.min(1, Math.max(0, (value - axis.low) / (axis.high - axis.low)));
  if (value <= 0) return 0;
  const part = Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  return axis.zero + (1 - axis.zero) * Math.min(1, Math.max(0, part));
}

/** The number at a position from 0 to 1. */
export function valueAt(axis: Axis, place: number): number {
  if (axis.scale === 'linear') return axis.low + place * (axis.high - axis.low);
  if (place < axis.zero) return 0;
  return axis.low * (axis.high / axis.low) ** ((place - axis.zero) / (1 - axis.zero));
}

/** Writes the bins of executions `from` to `to` into a table. */
export type Binner = (
  table: Uint8Array,
  stride: number,
  column: number,
  from: number,
  to: number,
) => void;

/** Writes the bins of a column's numbers into a table with `stride` columns. */
export function binInto(
  table: Uint8Array,
  stride: number,
  column: number,
  values: Numbers,
  axis: Axis,
): void {
  binner(values, axis)(table, stride, column, 0, values.length);
}

/** The function that computes bins on an axis. */
export function binner(values: Numbers, axis: Axis): Binner {
  const { bins, low } = axis;
  const last = bins - 1;
  if (axis.scale === 'linear') {
    const factor = bins / (axis.high - low);
    return (table, stride, column, from, to) => {
      for (let at = from, cell = from * stride + column; at < to; at++, cell += stride) {
        const value = values[at];
        if (!Number.isFinite(value)) table[cell] = UNKNOWN;
        else {
          const bin = (value - low) * factor;
          table[cell] = bin >= last ? last : bin <= 0 ? 0 : bin;
        }
      }
    };
  }
  const guess = guesses(axis);
  const float = new Float32Array(1);
  const bits = new Uint32Array(float.buffer);
  return (table, stride, column, from, to) => {
    for (let at = from, cell = from * stride + column; at < to; at++, cell += stride) {
      const value = values[at];
      if (!Number.isFinite(value)) table[cell] = UNKNOWN;
      else if (value <= 0) table[cell] = 0;
      else {
        float[0] = value;
        let bin = guess.bins[bits[0] >>> 16];
        while (bin < last && value >= guess.edges[bin + 1]) bin++;
        table[cell] = bin;
      }
    }
  };
}

/**
 * Avoids a logarithm for each number: a table by the upper 16 bits of a float gives the bin in
 * which numbers with these bits begin; a comparison with the edges of bins gives the exact one.
 */
function guesses(axis: Axis): { edges: Float64Array; bins: Uint8Array } {
  const { bins: count, zero } = axis;
  const edges = Float64Array.from({ length: count + 1 }, (_, bin) => valueAt(axis, bin / count));
  const first = Math.round(zero * count);
  const bins = new Uint8Array(0x8000);
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  let bin = first;
  for (let upper = 0; upper < bins.length; upper++) {
    // Rounding to a float may have raised a number to these bits.
    bits[0] = Math.max(0, (upper << 16) - 1);
    while (bin < count - 1 && float[0] >= edges[bin + 1]) bin++;
    bins[upper] = bin;
  }
  return { edges, bins };
}

/**
 * The scale that suits a column: logarithmic if the greatest number is more than 30 times the
 * median, or the median more than 30 times the second percentile (of a sample of 1,000).
 */
export function fitting(values: Numbers, range: Range): Scale {
  if (!(range.high > 0) || range.low < 0 || (range.isWhole && range.high - range.low < BINS))
    return 'linear';
  const step = Math.max(1, Math.floor(values.length / 1000));
  const sample: number[] = [];
  for (let at = 0; at < values.length; at += step) {
    if (values[at] > 0 && values[at] < Infinity) sample.push(values[at]);
  }
  if (sample.length === 0) return 'linear';
  sample.sort((one, other) => one - other);
  const middle = sample[sample.length >> 1];
  return range.high > 30 * middle || middle > 30 * sample[Math.floor(sample.length * 0.02)]
    ? 'log'
    : 'linear';
}
