/** A histogram as a table with few rows: ranges of bins with their numbers. */

import { type Axis, isWholeRange, type Range, valueAt } from './axis';

/** Maximum number of whole numbers with a row each. */
const SINGLE = 24;
/** Number of rows of other histograms. */
const ROWS = 10;

export interface Row {
  /** The first bin, and the one after the last. */
  begin: number;
  end: number;
  /**
   * Whole numbers: the least and the greatest. Others: where the range begins, and where the next
   * one begins.
   */
  low: number;
  high: number;
}

/** Whether a number is in this bin or a later one, by the arithmetic that fills bins. */
function reaches(axis: Axis, value: number, bin: number): boolean {
  const { bins, low, high } = axis;
  if (axis.scale === 'linear') return (value - low) * (bins / (high - low)) >= bin;
  return value > 0 && value >= valueAt(axis, bin / bins);
}

/** The least whole number in a bin (not the first one) or later. */
function wholeFrom(axis: Axis, bin: number): number {
  let value = Math.ceil(valueAt(axis, bin / axis.bins));
  // Rounding may have moved an edge that is nearly whole to its other side.
  while (reaches(axis, value - 1, bin)) value--;
  while (!reaches(axis, value, bin)) value++;
  return value + 0;
}

/**
 * Numbers in the bins from `begin` to `end` (exclusive): of whole numbers the least and the
 * greatest.
 */
export function boundsOf(
  axis: Axis,
  range: Range,
  begin: number,
  end: number,
): { low: number; high: number } {
  const isWhole = isWholeRange(range);
  // The ends also hold numbers outside the axis, such as 0 on a logarithmic one.
  const low =
    begin === 0 ? range.low : isWhole ? wholeFrom(axis, begin) : valueAt(axis, begin / axis.bins);
  const isLast = end >= axis.bins;
  const high = isLast
    ? range.high
    : isWhole
      ? wholeFrom(axis, end) - 1
      : valueAt(axis, end / axis.bins);
  return { low, high };
}

/** Rows of an axis. A few whole numbers have a row each. */
export function rowsOf(axis: Axis, range: Range): Row[] {
  if (range.known === 0) return [];
  const isWhole = isWholeRange(range);
  const isFew = isWhole && range.high - range.low < SINGLE;
  const parts = isFew ? axis.bins : Math.min(ROWS, axis.bins);
  const rows: Row[] = [];
  for (let part = 0; part < parts; part++) {
    const begin = Math.floor((part * axis.bins) / parts);
    const end = Math.floor(((part + 1) * axis.bins) / parts);
    const { low, high } = boundsOf(axis, range, begin, end);
    // A bin between two whole numbers is empty.
    if (low <= high) rows.push({ begin, end, low, high });
  }
  return rows;
}
