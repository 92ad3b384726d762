/** Comparison of two groups by context: means, deviations, significance. */

import type { GroupSums } from './group';
import type { Layer } from './layer';
import { correct, leastChances, Pool, twoSidedTail } from './permutation';
import { deviations, type Spread } from './statistics';
import { deviationOf, fill, presentIn, spreadOf, sumIn, totals } from './sums';
import type { Tally } from './tally';

/** The sums of a group that a comparison needs. */
export type Compared = Pick<GroupSums, 'own' | 'whole'>;

/** Results by context. */
export interface Comparison {
  meanA: Float64Array;
  meanB: Float64Array;
  /**
   * Probability of so great a difference by chance, corrected for the number of contexts that can
   * be as significant; NaN where neither group has time.
   */
  chance: Float64Array;
  /** Difference of means divided by the pooled standard deviation. */
  deviations: Float64Array;
}

/** Significant differences have a corrected probability below this. */
export const SURE = 0.01;

export type Part = 'own' | 'whole';

/** Mean, deviation and counts of a context in both groups. */
export function spreads(
  layer: Layer,
  groups: readonly [Compared, Compared],
  part: Part,
  context: number,
): [Spread, Spread] {
  const at = part === 'own' ? context : layer.same[context];
  const of = ({ own, whole }: Compared) => (part === 'own' ? own : whole);
  const [a, b] = groups;
  return [spreadOf(of(a).sums, at, of(a).applied), spreadOf(of(b).sums, at, of(b).applied)];
}

/** Mean own times, or mean total times, by context. */
function means(layer: Layer, { own }: Compared, part: Part): Float64Array {
  const found = new Float64Array(layer.tree.count);
  if (part === 'whole') totals(own.sums, layer.tree.parent, found);
  else for (let at = 0; at < found.length; at++) found[at] = sumIn(own.sums, at);
  const count = Math.max(1, own.applied);
  for (let at = 0; at < found.length; at++) found[at] /= count;
  return found;
}

class Sample {
  readonly mean: Float64Array;
  /** The sums from which deviations are computed. */
  readonly tally: Tally;
  readonly spread: Spread;

  constructor(layer: Layer, group: Compared, part: Part) {
    this.mean = means(layer, group, part);
    this.tally = part === 'own' ? group.own : group.whole;
    // While sums are incomplete, significance is that of the executions in them.
    const executions = Math.min(group.own.applied, this.tally.applied);
    this.spread = { executions, present: 0, mean: 0, deviation: 0 };
  }

  /**
   * Loads a context into `spread`. `at` is the context with the same times in the sums. Returns
   * false if its deviation is unknown yet.
   */
  look(context: number, at: number): boolean {
    const { spread, tally } = this;
    spread.mean = this.mean[context];
    spread.deviation = deviationOf(tally.sums, at, tally.applied);
    const present = presentIn(tally.sums, at);
    spread.present = present;
    return spread.mean === 0 || present > 0;
  }
}

/**
 * Compares all contexts. Means cover the executions whose own times are summed, deviations those
 * whose total times are. Until all are summed, a context without a deviation has no probability.
 */
export function compare(
  layer: Layer,
  groups: readonly [Compared, Compared],
  part: Part,
): Comparison {
  const size = layer.tree.count;
  const [a, b] = groups.map((group) => new Sample(layer, group, part));
  const chance = new Float64Array(size).fill(NaN);
  const differ = new Float64Array(size);
  const [one, other] = [a.tally, b.tally];
  const all = one.applied + other.applied;
  const leastOf = leastChances(one.applied, other.applied);
  const least = new Float64Array(size);
  // A group of one execution allows no inference.
  const isEnough = one.applied > 1 && other.applied > 1;
  for (let context = 0; context < size; context++) {
    if (a.mean[context] === 0 && b.mean[context] === 0) continue;
    const at = part === 'own' ? context : layer.same[context];
    const isKnown = a.look(context, at);
    if (!b.look(context, at) || !isKnown) continue;
    least[context] = leastOf(a.spread.present + b.spread.present);
    fill(pool, one.sums, other.sums, at, all);
    const found = isEnough ? twoSidedTail(pool.tail(other.applied, sumIn(other.sums, at))) : 1;
    chance[context] = Math.max(found, least[context]);
    differ[context] = deviations(a.spread, b.spread);
  }
  correct(chance, least);
  return { meanA: a.mean, meanB: b.mean, chance, deviations: differ };
}

/** Reused: allocating one for each context would dominate the cost. */
const pool = new Pool();

function difference({ meanA, meanB }: Comparison, at: number): number {
  return Math.abs(meanB[at] - meanA[at]);
}

/** The contexts with the greatest differences, greatest first. */
function greatest(
  found: Comparison,
  count: number,
  isWanted: (context: number) => boolean,
): number[] {
  const contexts: number[] = [];
  for (let at = 0; at < found.chance.length; at++) {
    if (found.meanA[at] !== found.meanB[at] && isWanted(at)) contexts.push(at);
  }
  const more = (at: number) => difference(found, at);
  return contexts.sort((one, other) => more(other) - more(one) || one - other).slice(0, count);
}

/** Minimum number of differences listed. */
const LEAST = 5;

/**
 * Contexts that differ most, the greatest differences first, down to the last significant one;
 * those that are not significant keep their rank.
 */
export function ranked(found: Comparison, count: number, isWanted = (_: number) => true): number[] {
  const contexts = greatest(found, found.chance.length, isWanted);
  let last = contexts.length;
  while (last > 0 && !isSure(found, contexts[last - 1])) last--;
  return contexts.slice(0, Math.min(count, Math.max(last, LEAST)));
}

/** Whether the difference of a context is significant. */
export function isSure(found: Comparison, context: number): boolean {
  return found.chance[context] < SURE;
}
