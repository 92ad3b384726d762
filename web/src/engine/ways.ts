/** What tells contexts with the same name apart: frames on the ways around them. */

import type { Contexts } from './pack';

/** Stands for frames that are left out. */
export const GAP = -1;

/** A context and what is around it, outwards; the root is the last one. */
function outwards(tree: Contexts, context: number): number[] {
  const way = [context];
  for (let at = context; at !== 0; at = tree.parent[at]) way.push(tree.parent[at]);
  return way;
}

/**
 * For each of some contexts the frames around it that are shown with it, outwards: the next one; and where others have the same name
 * and the same next one, those by which the ways differ first. `GAP` stands for what is left out.
 */
export function ways(tree: Contexts, names: readonly string[], contexts: readonly number[]): Map<number, number[]> {
  const isLike = (one: number, other: number) =>
    tree.kind[one] === tree.kind[other] && names[tree.name[one]] === names[tree.name[other]];
  const all = [...new Set(contexts)].map((context) => outwards(tree, context));
  const found = new Map<number, number[]>();
  for (const way of all) {
    const shown = new Set<number>(way.length > 2 ? [1] : []);
    for (const other of all) {
      if (other === way) continue;
      const most = Math.min(way.length, other.length);
      let place = 0;
      while (place < most && isLike(way[place], other[place])) place++;
      // One that differs by its own name, or by what is next around it, is told apart already.
      if (place > 1 && place < way.length) shown.add(place);
    }
    const places = [...shown].sort((one, other) => one - other);
    const frames: number[] = [];
    places.forEach((place, at) => {
      if (at > 0 && place > places[at - 1] + 1) frames.push(GAP);
      frames.push(way[place]);
    });
    found.set(way[0], frames);
  }
  return found;
}
