/** Frames that distinguish contexts with the same name. */

import type { Contexts } from './pack';

/** Stands for frames left out. */
export const GAP = -1;

/** A context and its enclosing frames outwards; the root is last. */
function outwards(tree: Contexts, context: number): number[] {
  const way = [context];
  for (let at = context; at !== 0; at = tree.parent[at]) way.push(tree.parent[at]);
  return way;
}

/**
 * For each context the enclosing frames to show with it, outwards: its parent; and, where another
 * context has the same name and parent, the first frame by which their paths differ.
 */
export function ways(
  tree: Contexts,
  names: readonly string[],
  contexts: readonly number[],
): Map<number, number[]> {
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
      // Contexts with different names or parents are distinguished already.
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
