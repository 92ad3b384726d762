/**
 * Sums over the executions of a group, by context: how many were there, their times, and the squares of these.
 *
 * Executions come and go while somebody drags a brush, so what is added must be gone without a trace when it is taken
 * away. Counts and sums of whole nanoseconds are exact in a double; squares are not, so each step's rounding error is kept beside the sum.
 */

import type { Whole } from './layer';
import type { Entries } from './pack';
import type { Spread } from './statistics';

/** Cells of a context: present, sum, squares, and what squares were rounded by. */
const CELLS = 4;

export function emptySums(contexts: number): Float64Array {
  return new Float64Array(contexts * CELLS);
}

/** Adds the entries of an execution, or takes them away (`sign` -1). */
export function addOwn(sums: Float64Array, { rows, context, time }: Entries, row: number, sign: number): void {
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

/** The same for all within each context. */
export function addWhole(sums: Float64Array, whole: Whole, row: number, sign: number): void {
  whole.ask(row);
  const { contexts, times, count } = whole;
  for (let at = 0; at < count; at++) {
    const cell = contexts[at] * CELLS;
    const value = times[contexts[at]];
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

/** Sums of times with all within each context, from those of contexts themselves. */
export function totals(sums: Float64Array, parent: Uint32Array, into: Float64Array): void {
  const count = parent.length;
  for (let at = 0; at < count; at++) into[at] = sums[at * CELLS + 1];
  for (let at = count - 1; at > 0; at--) into[parent[at]] += into[at];
}

/** What a product of two numbers was rounded by (Dekker). */
function rounding(one: number, other: number, rounded: number): number {
  if (!(Math.abs(rounded) < 1e280)) return 0;
  const a = 134217729 * one;
  const oneHigh = a - (a - one);
  const oneLow = one - oneHigh;
  const b = 134217729 * other;
  const otherHigh = b - (b - other);
  const otherLow = other - otherHigh;
  return oneLow * otherLow - (rounded - oneHigh * otherHigh - oneLow * otherHigh - oneHigh * otherLow);
}

/** Of how many executions a context has times. */
export function presentIn(sums: Float64Array, context: number): number {
  return sums[context * CELLS];
}

/** Standard deviation of a context's times over so many executions. */
export function deviationOf(sums: Float64Array, context: number, executions: number): number {
  const cell = context * CELLS;
  if (executions < 2 || sums[cell] === 0) return 0;
  const sum = sums[cell + 1];
  const all = executions * sums[cell + 2];
  const square = sum * sum;
  // The difference of two numbers that may be nearly the same: with what they were rounded by.
  const low = rounding(executions, sums[cell + 2], all) - rounding(sum, sum, square) + executions * sums[cell + 3];
  return Math.sqrt(Math.max(0, all - square + low) / (executions * (executions - 1)));
}

/** Mean and deviation of a context's times over so many executions. */
export function spreadOf(sums: Float64Array, context: number, executions: number): Spread {
  const present = presentIn(sums, context);
  const isThere = executions > 0 && present > 0;
  const mean = isThere ? sums[context * CELLS + 1] / executions : 0;
  return { executions, present: isThere ? present : 0, mean, deviation: deviationOf(sums, context, executions) };
}
