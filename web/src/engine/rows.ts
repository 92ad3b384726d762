/** A histogram in some rows, as a table has them: bins together, and the numbers that are in these. */

import { type Axis, isWholeRange, type Range, valueAt } from './axis';

/** Whole numbers at most that have a row each. */
const SINGLE = 24;
/** Rows of other histograms. */
const ROWS = 10;

export interface Row {
  /** The first bin, and the one behind the last. */
  begin: number;
  end: number;
  /** Of whole numbers the least and the greatest one that it has; else where it begins, and where the next one does. */
  low: number;
  high: number;
}

/** Whether a number is in that bin or in one behind it, by the same reckoning as bins are filled. */
function reaches(axis: Axis, value: number, bin: number): boolean {
  const { bins, low, high } = axis;
  if (axis.scale === 'linear') return (value - low) * (bins / (high - low)) >= bin;
  return value > 0 && value >= valueAt(axis, bin / bins);
}

/** The least whole number from a bin on, which is not the first. */
function wholeFrom(axis: Axis, bin: number): number {
  let value = Math.ceil(valueAt(axis, bin / axis.bins));
  // An edge that is nearly whole may have been rounded to the other side of it.
  while (reaches(axis, value - 1, bin)) value--;
  while (!reaches(axis, value, bin)) value++;
  return value + 0;
}

/** Numbers in the bins from `begin` to `end` (exclusive): of whole numbers the least and the greatest. */
export function boundsOf(axis: Axis, range: Range, begin: number, end: number): { low: number; high: number } {
  const isWhole = isWholeRange(range);
  // The ends also hold numbers outside the axis, such as 0 on a logarithmic one.
  const low = begin === 0 ? range.low : isWhole ? wholeFrom(axis, begin) : valueAt(axis, begin / axis.bins);
  const isLast = end >= axis.bins;
  const high = isLast ? range.high : isWhole ? wholeFrom(axis, end) - 1 : valueAt(axis, end / axis.bins);
  return { low, high };
}

/** Rows of an axis; whole numbers have a row each if they are few. */
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
    // Between two whole numbers there is nothing to tell.
    if (low <= high) rows.push({ begin, end, low, high });
  }
  return rows;
}
