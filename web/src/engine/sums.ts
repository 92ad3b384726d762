/**
 * Sums over the executions of a group, by context: how many were there, their times, and the squares of these.
 *
 * Executions come and go while somebody drags a brush, so what is added must be gone without a trace when it is taken
 * away. Counts and sums of whole nanoseconds are exact in a double; squares are not, so each step's rounding error is kept beside the sum.
 */

import type { Entries } from './pack';
import type { Spread } from './statistics';

/** Cells of a context: present, sum, squares, and what squares were rounded by. */
const CELLS = 4;

export function emptySums(contexts: number): Float64Array {
  return new Float64Array(contexts * CELLS);
}

/** Adds the entries of an execution, or takes them away (`sign` -1). */
export function addRow(sums: Float64Array, entries: Entries, row: number, sign: number): void {
  const { rows, context, time } = entries;
  const end = rows[row + 1];
  for (let at = rows[row]; at < end; at++) {
    const cell = context[at] * CELLS;
    const value = time[at];
    const square = sign * (value * value);
    const old = sums[cell + 2];
    const sum = old + square;
    const taken = sum - old;
    sums[cell] += sign;
    sums[cell + 1] += sign * value;
    sums[cell + 2] = sum;
    sums[cell + 3] += old - (sum - taken) + (square - taken);
  }
}

/** The product of two numbers, and what it was rounded by (Dekker). */
function product(one: number, other: number): [number, number] {
  const split = 134217729;
  const high = one * other;
  if (!Number.isFinite(high) || Math.abs(high) > 1e280) return [high, 0];
  const a = split * one;
  const oneHigh = a - (a - one);
  const oneLow = one - oneHigh;
  const b = split * other;
  const otherHigh = b - (b - other);
  const otherLow = other - otherHigh;
  return [high, oneLow * otherLow - (high - oneHigh * otherHigh - oneLow * otherHigh - oneHigh * otherLow)];
}

/** Mean and deviation of a context's times over so many executions. */
export function spreadOf(sums: Float64Array, context: number, executions: number): Spread {
  const cell = context * CELLS;
  const present = sums[cell];
  const sum = sums[cell + 1];
  if (executions === 0 || present === 0) return { executions, present: 0, mean: 0, deviation: 0 };
  let variance = 0;
  if (executions > 1) {
    const [all, allLow] = product(executions, sums[cell + 2]);
    const [square, squareLow] = product(sum, sum);
    const deviations = all - square + (allLow - squareLow + executions * sums[cell + 3]);
    variance = Math.max(0, deviations) / (executions * (executions - 1));
  }
  return { executions, present, mean: sum / executions, deviation: Math.sqrt(variance) };
}

/** Mean time, without the work of a deviation. */
export function meanOf(sums: Float64Array, context: number, executions: number): number {
  return executions === 0 || sums[context * CELLS] === 0 ? 0 : sums[context * CELLS + 1] / executions;
}
