/** Axes of histograms: where a number stands between the least and the greatest, and in which bin. */

import type { Numbers } from './pack';

export type Scale = 'linear' | 'log';

/** Bins of a histogram at most; their numbers fit into a byte, with one left for what is unknown. */
export const BINS = 96;
/** The bin of what is unknown or infinite: it is not shown. */
export const UNKNOWN = 255;

export interface Axis {
  scale: Scale;
  /** The least and the greatest number; on a logarithmic scale the least above 0. */
  low: number;
  high: number;
  bins: number;
  /** The part at the left that is for numbers from 0 downwards, of which there is no logarithm. */
  zero: number;
  /** Whether each bin is of one whole number, in the middle of it. */
  isByOne: boolean;
}

/** What numbers there are; infinite ones have no place on an axis, they are as good as unknown. */
export interface Range {
  low: number;
  high: number;
  /** The least above 0; infinite if there is none. */
  positive: number;
  isWhole: boolean;
  /** Of how many it is known. */
  known: number;
}

/** Of a column of which nothing is known. */
const NOTHING: Range = { low: 0, high: 0, positive: Infinity, isWhole: true, known: 0 };

/** Whether all numbers are whole ones that can be told from what is half between them. */
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

/** The same of numbers that are whole and known: most are. */
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

/** What lies beyond is held at the ends of an axis, as the length of one that reaches there would be infinite. */
const FARTHEST = Number.MAX_VALUE / 4;

function within(value: number): number {
  return Math.min(FARTHEST, Math.max(-FARTHEST, value));
}

export function axisOf(range: Range, scale: Scale): Axis {
  const low = within(range.low);
  const high = within(range.high);
  if (scale === 'log' && high > 0) {
    const positive = Math.min(range.positive, high);
    // Beyond such a span numbers cannot be divided.
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
  // A single number has some room, as far as there are greater ones beside it.
  const end = high > low ? high : low + Math.max(1, Math.abs(low) * 2 ** -40);
  return { scale: 'linear', low, high: end, bins: BINS, zero: 0, isByOne: false };
}

/** Where a number stands, from 0 to 1; beyond the ends it is held there. */
export function placeOf(axis: Axis, value: number): number {
  if (axis.scale === 'linear') return Math.min(1, Math.max(0, (value - axis.low) / (axis.high - axis.low)));
  if (value <= 0) return 0;
  const part = Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  return axis.zero + (1 - axis.zero) * Math.min(1, Math.max(0, part));
}

/** Which number stands at a place from 0 to 1. */
export function valueAt(axis: Axis, place: number): number {
  if (axis.scale === 'linear') return axis.low + place * (axis.high - axis.low);
  if (place < axis.zero) return 0;
  return axis.low * (axis.high / axis.low) ** ((place - axis.zero) / (1 - axis.zero));
}

/** Gives a column's numbers their bins, some executions at a time. */
export type Binner = (table: Uint8Array, stride: number, column: number, from: number, to: number) => void;

/** Writes the bins of a column's numbers into a table with `stride` columns. */
export function binInto(table: Uint8Array, stride: number, column: number, values: Numbers, axis: Axis): void {
  binner(values, axis)(table, stride, column, 0, values.length);
}

/** The way to bins on an axis. */
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
 * Logarithms are slow: a table by the upper bits of a number gives the bin in which numbers with these bits
 * begin, and the edges of bins tell the rest.
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
    // Numbers that were rounded up to these bits come from just below.
    bits[0] = Math.max(0, (upper << 16) - 1);
    while (bin < count - 1 && float[0] >= edges[bin + 1]) bin++;
    bins[upper] = bin;
  }
  return { edges, bins };
}

/** Whether a logarithmic scale shows a column better: its greatest number is far beyond its middle. */
export function fitting(values: Numbers, range: Range): Scale {
  if (!(range.high > 0) || range.low < 0 || (range.isWhole && range.high - range.low < BINS)) return 'linear';
  const step = Math.max(1, Math.floor(values.length / 1000));
  const sample: number[] = [];
  for (let at = 0; at < values.length; at += step) {
    if (values[at] > 0 && values[at] < Infinity) sample.push(values[at]);
  }
  if (sample.length === 0) return 'linear';
  sample.sort((one, other) => one - other);
  const middle = sample[sample.length >> 1];
  return range.high > 30 * middle || middle > 30 * sample[Math.floor(sample.length * 0.02)] ? 'log' : 'linear';
}
