/** Two groups by context: means, deviations, how sure their difference is. */

import type { Group } from './group';
import type { Layer } from './layer';
import { chanceOf, correct, deviations, leastChance, type Spread } from './statistics';
import { spreadOf } from './sums';

/** By context. */
export interface Comparison {
  meanA: Float64Array;
  meanB: Float64Array;
  /** Corrected for the number of contexts; NaN where neither group was. */
  chance: Float64Array;
  /** Difference by the standard deviation that both groups have in common. */
  deviations: Float64Array;
}

/** Differences with a corrected probability below that are shown as such. */
export const SURE = 0.01;

export type Part = 'own' | 'whole';

/** Both groups of a context. */
export function spreads(groups: readonly [Group, Group], part: Part, context: number): [Spread, Spread] {
  const [a, b] = groups;
  return [spreadOf(a[part], context, a.applied), spreadOf(b[part], context, b.applied)];
}

export function compare(layer: Layer, groups: readonly [Group, Group], part: Part): Comparison {
  const size = layer.tree.count;
  const found = {
    meanA: new Float64Array(size),
    meanB: new Float64Array(size),
    chance: new Float64Array(size).fill(NaN),
    deviations: new Float64Array(size),
  };
  const least = leastChance(groups[0].applied, groups[1].applied);
  for (let context = 0; context < size; context++) {
    const [a, b] = spreads(groups, part, context);
    if (a.present === 0 && b.present === 0) continue;
    found.meanA[context] = a.mean;
    found.meanB[context] = b.mean;
    found.chance[context] = chanceOf(a, b, least);
    found.deviations[context] = deviations(a, b);
  }
  correct(found.chance);
  return found;
}

/** Contexts with the surest differences, of those as sure as each other the greatest. */
export function ranked(found: Comparison, count: number): number[] {
  const contexts: number[] = [];
  for (let at = 0; at < found.chance.length; at++) {
    if (found.chance[at] < SURE && found.meanA[at] !== found.meanB[at]) contexts.push(at);
  }
  const more = (at: number) => Math.abs(found.meanB[at] - found.meanA[at]);
  return contexts
    .sort((one, other) => found.chance[one] - found.chance[other] || more(other) - more(one) || one - other)
    .slice(0, count);
}
