/** The groups that the page opens with: those of `tracebraid compare`. */

import type { Interval } from './group';
import { rank } from './order';
import type { Table } from './table';

export interface Automatic {
  column: number;
  /** Of A, the half around the median; of B, the slowest executions. */
  ranges: [Interval, Interval];
  /** Sizes of the groups: larger than intended where other executions are exactly as long. */
  sizes: [number, number];
}

/**
 * The half around the median, and the slowest 1 % (at least five, if there are twenty). Null if no
 * duration is known.
 */
export function automatic(table: Table, key: string): Automatic | null {
  const column = table.numbers.findIndex((one) => one.key === key);
  if (column < 0) return null;
  const order = table.orderOf(column);
  const { values } = table.numbers[column];
  const count = order.known;
  if (count === 0) return null;
  const quarter = Math.floor(count / 4);
  const slow = Math.max(Math.ceil(count / 100), Math.min(5, quarter));
  const of = (begin: number, end: number): Interval => ({
    low: values[order.order[begin]],
    high: values[order.order[end - 1]],
  });
  const ranges: [Interval, Interval] = [of(quarter, count - quarter), of(count - slow, count)];
  const size = ({ low, high }: Interval) =>
    rank(values, order, high, true) - rank(values, order, low, false);
  return { column, ranges, sizes: [size(ranges[0]), size(ranges[1])] };
}
