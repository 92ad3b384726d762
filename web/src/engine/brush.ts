/**
 * Positions of the edges of a brush, and the range between two positions.
 *
 * Each whole number has a cell, from half below it to half above it. A brush covers whole cells, so
 * that its ends are possible numbers and its edges lie between them. Other numbers are used as they
 * are.
 */

import { type Axis, isWholeRange, placeOf, type Range, valueAt } from './axis';
import type { Interval } from './group';

/** A column with its axis. Positions are from 0 to 1. */
export interface Brushed {
  axis: Axis;
  range: Range;
}

/** Possible rounding error of a number computed from a position. */
function slack(value: number): number {
  return 1e-6 + 1e-14 * Math.abs(value);
}

function held({ range }: Brushed, value: number): number {
  // The sum turns -0 into 0.
  return Math.min(range.high, Math.max(range.low, value)) + 0;
}

/** The least number of a range that begins at a position. */
export function lowAt(of: Brushed, place: number): number {
  // The ends of the axis must be exact: rounding could exclude the extreme values.
  if (place <= 0) return of.range.low;
  const value = valueAt(of.axis, place);
  return isWholeRange(of.range) ? held(of, Math.floor(value + 0.5 + slack(value))) : value;
}

/** The greatest number of a range that ends at a position. */
export function highAt(of: Brushed, place: number): number {
  if (place >= 1) return of.range.high;
  const value = valueAt(of.axis, place);
  return isWholeRange(of.range) ? held(of, Math.ceil(value - 0.5 - slack(value))) : value;
}

/** Positions of the edges. */
export function edgesOf({ axis, range }: Brushed, { low, high }: Interval): [number, number] {
  const half = isWholeRange(range) ? 0.5 : 0;
  return [placeOf(axis, low - half), placeOf(axis, high + half)];
}

/** The range between two positions, in any order. */
export function between(of: Brushed, one: number, other: number): Interval {
  const low = lowAt(of, Math.min(one, other));
  return { low, high: Math.max(low, highAt(of, Math.max(one, other))) };
}

/**
 * A range with one end dragged to a position. Dragged past the other end, it becomes the other end.
 */
export function resized(
  of: Brushed,
  range: Interval,
  end: 'low' | 'high',
  place: number,
): Interval {
  const [from, to] = edgesOf(of, range);
  const { low, high } = range;
  if (end === 'high') {
    return place >= from
      ? { low, high: Math.max(low, highAt(of, place)) }
      : { low: lowAt(of, place), high: low };
  }
  return place <= to
    ? { low: Math.min(high, lowAt(of, place)), high }
    : { low: high, high: highAt(of, place) };
}

/** A range moved by a part of the axis, as far as possible. */
export function moved(of: Brushed, range: Interval, by: number): Interval {
  const { axis } = of;
  const [from, to] = edgesOf(of, range);
  const step = Math.min(1 - to, Math.max(-from, by));
  if (axis.scale !== 'linear' || !isWholeRange(of.range))
    return between(of, from + step, to + step);
  // Whole numbers keep their count. A range from an address may exceed the column's ends.
  const [low, high] = [held(of, range.low), held(of, range.high)];
  const wanted = Math.round(step * (axis.high - axis.low));
  const shift = Math.min(of.range.high - high, Math.max(of.range.low - low, wanted));
  return { low: low + shift, high: high + shift };
}

/** The part of a brush that keys move. */
export type Part = 'whole' | 'low' | 'high';

/** A range moved or resized at one edge by keys: by at least one whole number. */
export function nudged(of: Brushed, range: Interval, by: number, part: Part): Interval {
  const [from, to] = edgesOf(of, range);
  if (part !== 'whole') {
    const [edge, least, most] = part === 'high' ? [to, from, 1] : [from, 0, to];
    const found = resized(of, range, part, Math.min(most, Math.max(least, edge + by)));
    if (found[part] !== range[part] || !isWholeRange(of.range)) return found;
    const next = { ...range, [part]: range[part] + Math.sign(by) };
    return next.low < of.range.low || next.high > of.range.high || next.high < next.low
      ? range
      : next;
  }
  const found = moved(of, range, by);
  if ((found.high !== range.high && found.low !== range.low) || !isWholeRange(of.range))
    return found;
  const [low, high] = [range.low + Math.sign(by), range.high + Math.sign(by)];
  return low < of.range.low || high > of.range.high ? range : { low, high };
}
