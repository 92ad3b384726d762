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
    const isLast = end === axis.bins;
    // At the very ends are what the axis has no room for (0 on a logarithmic one), too.
    const low = begin === 0 ? range.low : isWhole ? wholeFrom(axis, begin) : valueAt(axis, begin / axis.bins);
    const high = isLast ? range.high : isWhole ? wholeFrom(axis, end) - 1 : valueAt(axis, end / axis.bins);
    // Between two whole numbers there is nothing to tell.
    if (low <= high) rows.push({ begin, end, low, high });
  }
  return rows;
}
