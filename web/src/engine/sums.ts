/**
 * Sums over the executions of a group by context, as in `analyze/executions/src/sums.rs`: number of
 * executions with time, their times, squares of times, and numbers and sums of times by octave.
 *
 * A brush adds and removes executions, so each addition must be exactly reversible. Counts and sums
 * of whole nanoseconds are exact in a double. Squares are not, so the rounding error of each step
 * is kept beside the sum.
 */

import type { Whole } from './layer';
import type { Entries } from './pack';
import type { Pool } from './permutation';
import type { Spread } from './statistics';

/** Times below 2^11 ns (2 µs) are one octave. */
const FIRST = 10;
/** Times of 2^35 ns (34 s) and more are one octave. */
const OCTAVES = 26;
/**
 * Offset of the octaves in the cells of a context, after executions, sum, squares, and rounding
 * errors of squares.
 */
const OCTAVE = 4;
const CELLS = OCTAVE + 2 * OCTAVES;
/** Maximum ratio of standard deviation to mean within an octave. */
const WIDEST = 0.57;

/** The octave of a time above 0. */
export function octaveOf(time: number): number {
  const exponent = time < 0x80000000 ? 31 - Math.clz32(time) : 63 - Math.clz32(time / 0x100000000);
  return Math.min(OCTAVES - 1, Math.max(0, exponent - FIRST));
}

/** Adds a time to the cells of a context, or removes it (`sign` -1). */
function add(sums: Float64Array, cell: number, value: number, sign: number): void {
  const square = sign * (value * value);
  const old = sums[cell + 2];
  const sum = old + square;
  const taken = sum - old;
  sums[cell] += sign;
  sums[cell + 1] += sign * value;
  sums[cell + 2] = sum;
  sums[cell + 3] += old - (sum - taken) + (square - taken);
  const octave = cell + OCTAVE + 2 * octaveOf(value);
  sums[octave] += sign;
  sums[octave + 1] += sign * value;
}

export function emptySums(contexts: number): Float64Array {
  return new Float64Array(contexts * CELLS);
}

/** Adds the own times of an execution, or removes them (`sign` -1). */
export function addOwn(
  sums: Float64Array,
  { rows, context, time }: Entries,
  row: number,
  sign: number,
): void {
  const end = rows[row + 1];
  for (let at = rows[row]; at < end; at++) add(sums, context[at] * CELLS, time[at], sign);
}

/** Adds the total times of an execution, or removes them (`sign` -1). */
export function addWhole(sums: Float64Array, whole: Whole, row: number, sign: number): void {
  whole.ask(row);
  const { contexts, times, count } = whole;
  for (let at = 0; at < count; at++) add(sums, contexts[at] * CELLS, times[contexts[at]], sign);
}

/** Sum of a context's times. */
export function sumIn(sums: Float64Array, context: number): number {
  return sums[context * CELLS + 1];
}

/** Fills a pool with the times of a context in two groups, as `pool` in `sums.rs`. */
export function fill(
  pool: Pool,
  a: Float64Array,
  b: Float64Array,
  context: number,
  executions: number,
): void {
  const cell = context * CELLS;
  pool.clear();
  pool.push(0, 0, executions - a[cell] - b[cell]);
  let between = 0;
  let ofMany = 0;
  for (let octave = cell + OCTAVE; octave < cell + CELLS; octave += 2) {
    const count = a[octave] + b[octave];
    if (count === 0) continue;
    const sum = a[octave + 1] + b[octave + 1];
    const square = (sum * sum) / count;
    between += square;
    if (count > 1) ofMany += square;
  }
  const squares = a[cell + 2] + a[cell + 3] + (b[cell + 2] + b[cell + 3]);
  const relative =
    ofMany > 0 ? Math.min(WIDEST, Math.sqrt(Math.max(0, (squares - between) / ofMany))) : 0;
  for (let octave = cell + OCTAVE; octave < cell + CELLS; octave += 2) {
    const count = a[octave] + b[octave];
    if (count === 0) continue;
    const mean = (a[octave + 1] + b[octave + 1]) / count;
    pool.push(mean, count > 1 ? relative * mean : 0, count);
  }
}

/** Sums of total times from sums of own times. */
export function totals(sums: Float64Array, parent: Uint32Array, into: Float64Array): void {
  const count = parent.length;
  for (let at = 0; at < count; at++) into[at] = sums[at * CELLS + 1];
  for (let at = count - 1; at > 0; at--) into[parent[at]] += into[at];
}

/** Rounding error of a product (Dekker 1971). */
function rounding(one: number, other: number, rounded: number): number {
  if (!(Math.abs(rounded) < 1e280)) return 0;
  const a = 134217729 * one;
  const oneHigh = a - (a - one);
  const oneLow = one - oneHigh;
  const b = 134217729 * other;
  const otherHigh = b - (b - other);
  const otherLow = other - otherHigh;
  return (
    oneLow * otherLow - (rounded - oneHigh * otherHigh - oneLow * otherHigh - oneHigh * otherLow)
  );
}

/** Number of executions with time in a context. */
export function presentIn(sums: Float64Array, context: number): number {
  return sums[context * CELLS];
}

/** Standard deviation of a context's times over a number of executions. */
export function deviationOf(sums: Float64Array, context: number, executions: number): number {
  const cell = context * CELLS;
  if (executions < 2 || sums[cell] === 0) return 0;
  const sum = sums[cell + 1];
  const all = executions * sums[cell + 2];
  const square = sum * sum;
  // Both terms may be nearly equal: their rounding errors must not be lost.
  const low =
    rounding(executions, sums[cell + 2], all) -
    rounding(sum, sum, square) +
    executions * sums[cell + 3];
  return Math.sqrt(Math.max(0, all - square + low) / (executions * (executions - 1)));
}

/** Mean and deviation of a context's times over a number of executions. */
export function spreadOf(sums: Float64Array, context: number, executions: number): Spread {
  const present = presentIn(sums, context);
  const isThere = executions > 0 && present > 0;
  const mean = isThere ? sums[context * CELLS + 1] / executions : 0;
  return {
    executions,
    present: isThere ? present : 0,
    mean,
    deviation: deviationOf(sums, context, executions),
  };
}
