/** The groups that are taken when none are asked for: those of `tracebraid compare`. */

import type { Interval } from './group';
import { rank } from './order';
import type { Table } from './table';

export interface Automatic {
  column: number;
  /** Of A, around the median; of B, the slowest. */
  ranges: [Interval, Interval];
  /** How many executions are in these: more than asked for where others are just as long. */
  sizes: [number, number];
}

/** The half around the median, and the slowest hundredth (five at least, if there are twenty). */
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
  const size = ({ low, high }: Interval) => rank(values, order, high, true) - rank(values, order, low, false);
  return { column, ranges, sizes: [size(ranges[0]), size(ranges[1])] };
}
