/** Axes of histograms: where a number stands between the least and the greatest, and in which bin. */

import type { Numbers } from './pack';

export type Scale = 'linear' | 'log';

/** Bins of a histogram at most; their numbers fit into a byte, with one left for what is unknown. */
export const BINS = 96;
/** The bin of what is unknown: it is not shown. */
export const UNKNOWN = 255;

export interface Axis {
  scale: Scale;
  /** The least and the greatest number; on a logarithmic scale the least above 0. */
  low: number;
  high: number;
  bins: number;
  /** The part at the left that is for numbers from 0 downwards, of which there is no logarithm. */
  zero: number;
}

/** What numbers there are. */
export interface Range {
  low: number;
  high: number;
  /** The least above 0; infinite if there is none. */
  positive: number;
  isWhole: boolean;
  /** Of how many it is known. */
  known: number;
}

export function rangeOf(values: Numbers): Range {
  const found = { low: Infinity, high: -Infinity, positive: Infinity, isWhole: true, known: 0 };
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (Number.isNaN(value)) continue;
    found.known++;
    if (value < found.low) found.low = value;
    if (value > found.high) found.high = value;
    if (value > 0 && value < found.positive) found.positive = value;
    if (found.isWhole && value !== Math.floor(value)) found.isWhole = false;
  }
  return found;
}

/** Infinite bounds cannot be drawn. */
function finite(value: number, otherwise: number): number {
  if (Number.isFinite(value)) return value;
  return value === Infinity ? Number.MAX_VALUE / 4 : value === -Infinity ? -Number.MAX_VALUE / 4 : otherwise;
}

export function axisOf(range: Range, scale: Scale): Axis {
  const low = range.known > 0 ? finite(range.low, 0) : 0;
  const high = range.known > 0 ? finite(range.high, 1) : 1;
  if (scale === 'log' && high > 0) {
    const positive = Math.min(finite(range.positive, high), high);
    const from = positive === high ? high / 2 : positive;
    return { scale, low: from, high, bins: BINS, zero: low <= 0 ? 4 / BINS : 0 };
  }
  // Few whole numbers: each has its own bin.
  if (range.isWhole && high - low < BINS) {
    return { scale: 'linear', low: low - 0.5, high: high + 0.5, bins: Math.max(1, Math.round(high - low) + 1), zero: 0 };
  }
  return { scale: 'linear', low, high: high > low ? high : low + 1, bins: BINS, zero: 0 };
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

/** Writes the bins of a column's numbers into a table with `stride` columns. */
export function binInto(table: Uint8Array, stride: number, column: number, values: Numbers, axis: Axis): void {
  const { bins, low, zero } = axis;
  const last = bins - 1;
  if (axis.scale === 'linear') {
    const factor = bins / (axis.high - low);
    for (let at = 0, cell = column; at < values.length; at++, cell += stride) {
      const value = values[at];
      if (value !== value) table[cell] = UNKNOWN;
      else {
        const bin = (value - low) * factor;
        table[cell] = bin >= last ? last : bin <= 0 ? 0 : bin;
      }
    }
    return;
  }
  const offset = zero * bins;
  const factor = ((1 - zero) * bins) / Math.log(axis.high / low);
  const base = offset - Math.log(low) * factor;
  for (let at = 0, cell = column; at < values.length; at++, cell += stride) {
    const value = values[at];
    if (value !== value) table[cell] = UNKNOWN;
    else if (value <= 0) table[cell] = 0;
    else {
      const bin = base + Math.log(value) * factor;
      table[cell] = bin >= last ? last : bin <= offset ? offset : bin;
    }
  }
}

/** Whether a logarithmic scale shows a column better: its greatest number is far beyond its middle. */
export function fitting(values: Numbers, range: Range): Scale {
  if (!(range.high > 0) || range.low < 0 || (range.isWhole && range.high - range.low < BINS)) return 'linear';
  const step = Math.max(1, Math.floor(values.length / 1000));
  const sample: number[] = [];
  for (let at = 0; at < values.length; at += step) if (values[at] > 0) sample.push(values[at]);
  if (sample.length === 0) return 'linear';
  sample.sort((one, other) => one - other);
  const middle = sample[sample.length >> 1];
  return range.high > 30 * middle || middle > 30 * sample[Math.floor(sample.length * 0.02)] ? 'log' : 'linear';
}
