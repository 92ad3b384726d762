/** Two groups by context: means, deviations, how sure their difference is. */

import type { Group } from './group';
import type { Layer } from './layer';
import { chanceOf, correct, deviations, leastChance, type Spread } from './statistics';
import { deviationOf, presentIn, spreadOf, totals } from './sums';

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
export function spreads(layer: Layer, groups: readonly [Group, Group], part: Part, context: number): [Spread, Spread] {
  const at = part === 'own' ? context : layer.same[context];
  const of = ({ own, whole }: Group) => (part === 'own' ? own : whole);
  const [a, b] = groups;
  return [spreadOf(of(a).sums, at, of(a).applied), spreadOf(of(b).sums, at, of(b).applied)];
}

/** Mean times in contexts, themselves or with all within them. */
function means(layer: Layer, { own }: Group, part: Part): Float64Array {
  const found = new Float64Array(layer.tree.count);
  if (part === 'whole') totals(own.sums, layer.tree.parent, found);
  else for (let at = 0; at < found.length; at++) found[at] = own.sums[at * 4 + 1];
  const count = Math.max(1, own.applied);
  for (let at = 0; at < found.length; at++) found[at] /= count;
  return found;
}

/** Means are those of all executions whose own times are known, deviations those of the ones whose whole times are. */
export function compare(layer: Layer, groups: readonly [Group, Group], part: Part): Comparison {
  const size = layer.tree.count;
  const [meanA, meanB] = groups.map((group) => means(layer, group, part));
  const chance = new Float64Array(size).fill(NaN);
  const differ = new Float64Array(size);
  const least = leastChance(groups[0].own.applied, groups[1].own.applied);
  const [one, other] = groups.map((group) => (part === 'own' ? group.own : group.whole));
  const a = { executions: groups[0].own.applied, present: 0, mean: 0, deviation: 0 };
  const b = { executions: groups[1].own.applied, present: 0, mean: 0, deviation: 0 };
  for (let context = 0; context < size; context++) {
    if (meanA[context] === 0 && meanB[context] === 0) continue;
    const at = part === 'own' ? context : layer.same[context];
    // A chain of contexts with the same times is reckoned once; each context of it counts in the correction.
    if (at < context) throw new Error('a chain goes outwards');
    a.mean = meanA[context];
    b.mean = meanB[context];
    a.deviation = presentIn(one.sums, at) === 0 ? 0 : deviationOf(one.sums, at, one.applied);
    b.deviation = presentIn(other.sums, at) === 0 ? 0 : deviationOf(other.sums, at, other.applied);
    chance[context] = chanceOf(a, b, least);
    differ[context] = deviations(a, b);
  }
  correct(chance);
  return { meanA, meanB, chance, deviations: differ };
}

/** Contexts that differ surely, those with the greatest differences first. */
export function ranked(found: Comparison, count: number): number[] {
  const contexts: number[] = [];
  for (let at = 0; at < found.chance.length; at++) {
    if (found.chance[at] < SURE && found.meanA[at] !== found.meanB[at]) contexts.push(at);
  }
  const more = (at: number) => Math.abs(found.meanB[at] - found.meanA[at]);
  return contexts.sort((one, other) => more(other) - more(one) || one - other).slice(0, count);
}
