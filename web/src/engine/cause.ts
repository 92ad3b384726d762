/** The calling context that explains most of the difference between two groups. */

import { SURE } from './compare';
import type { Layer } from './layer';
import { type Contexts, FrameKind } from './pack';
import { type SharedDisk, sharedDisk } from './shared-disk';

/** Mean total times of both groups by context. */
export interface WholeTimes {
  meanA: Float64Array;
  meanB: Float64Array;
  /** Corrected probability of the difference; null where it was not tested. */
  chance: Float64Array | null;
}

export interface Cause {
  /**
   * The context; of several contexts that end in the same frame, the one with the greatest share.
   */
  context: number;
  /** Mean of B minus mean of A, in nanoseconds. */
  difference: number;
  /** Part of the difference between the groups: 1 is all of it. */
  share: number;
  /** Number of contexts that end in this frame and are added up. */
  contexts: number;
  /** The disk that most paths below a system call or function wait for. */
  disk: SharedDisk | null;
}

/** Part of the difference that the deepest context on the path should keep. */
const WANTED = 0.8;
/** Part of the difference below which a context is not a cause. */
const LEAST = 0.5;

const DESCRIPTIVE: readonly number[] = [
  FrameKind.Call,
  FrameKind.Thread,
  FrameKind.Reason,
  FrameKind.Detail,
];

/** Parts of the total difference: positive where a context differs in the same direction. */
class Shares {
  constructor(
    private readonly times: WholeTimes,
    private readonly total: number,
  ) {}

  of(context: number): number {
    return (this.times.meanB[context] - this.times.meanA[context]) / this.total;
  }

  isSure(context: number): boolean {
    return this.times.chance === null || this.times.chance[context] < SURE;
  }
}

/** The path from the root that follows the child with the greatest share. */
function chainOf({ firstChild, children }: Layer, shares: Shares): number[] {
  const chain = [0];
  for (let at = 0; ; ) {
    let best = -1;
    for (let child = firstChild[at]; child < firstChild[at + 1]; child++) {
      const context = children[child];
      if (best < 0 || shares.of(context) > shares.of(best)) best = context;
    }
    if (best < 0 || shares.of(best) < LEAST || !shares.isSure(best)) return chain;
    chain.push(best);
    at = best;
  }
}

/**
 * Whether a context is informative: it has a wait, a call or a thread on its path, or most of the
 * difference is its own time.
 */
function isTelling(
  { tree, firstChild, children }: Layer,
  shares: Shares,
  context: number,
): boolean {
  for (let at = context; at !== 0; at = tree.parent[at])
    if (DESCRIPTIVE.includes(tree.kind[at])) return true;
  if (context === 0) return false;
  let inner = 0;
  for (let child = firstChild[context]; child < firstChild[context + 1]; child++)
    inner += shares.of(children[child]);
  return shares.of(context) - inner >= LEAST;
}

/**
 * Calls, reasons, details and threads that together make up most of the difference, wherever they
 * occur: several call paths may lead to the same disk. A frame within another one of its name is
 * not counted again.
 */
function byFrame(tree: Contexts, names: readonly string[], shares: Shares): Cause | null {
  const sums = new Map<string, { share: number; context: number; contexts: number }>();
  const keyOf = (at: number) => `${tree.kind[at]} ${names[tree.name[at]]}`;
  for (let context = 1; context < tree.count; context++) {
    const share = shares.of(context);
    if (share === 0 || !DESCRIPTIVE.includes(tree.kind[context])) continue;
    const key = keyOf(context);
    let around = tree.parent[context];
    while (around !== 0 && keyOf(around) !== key) around = tree.parent[around];
    if (around !== 0) continue;
    const sum = sums.get(key) ?? { share: 0, context, contexts: 0 };
    if (share > shares.of(sum.context)) sum.context = context;
    sum.share += share;
    sum.contexts++;
    sums.set(key, sum);
  }
  // Of frames with about the same share the innermost is the most precise.
  const depthOf = (at: number) => {
    let depth = 0;
    for (let around = at; around !== 0; around = tree.parent[around]) depth++;
    return depth;
  };
  let best: Cause | null = null;
  for (const { share, context, contexts } of sums.values()) {
    if (share < LEAST || share > 1.2) continue;
    const isBetter =
      best === null ||
      share > best.share + 0.02 ||
      (share > best.share - 0.02 && depthOf(context) > depthOf(best.context));
    if (isBetter) best = { context, difference: 0, share, contexts, disk: null };
  }
  return best;
}

/**
 * The context that explains most of the difference, or null if no context explains half of it. The
 * search descends from the root as long as one context keeps 80 % of the difference (50 %, if only
 * functions around the cause keep 80 %). A threshold below 50 % would name a context although
 * others together weigh more.
 */
export function causeOf(
  layer: Layer,
  names: readonly string[],
  times: WholeTimes,
  total: number,
): Cause | null {
  if (!(Math.abs(total) > 0)) return null;
  const shares = new Shares(times, total);
  const chain = chainOf(layer, shares);
  const { kind } = layer.tree;
  const of = (context: number): Cause => ({
    context,
    difference: times.meanB[context] - times.meanA[context],
    share: shares.of(context),
    contexts: 1,
    disk:
      kind[context] === FrameKind.Call || kind[context] === FrameKind.Function
        ? sharedDisk(layer.tree, names, context, (at) => shares.of(at))
        : null,
  });
  for (const least of [WANTED, LEAST]) {
    const context = chain.filter((at) => shares.of(at) >= least).at(-1) ?? 0;
    if (isTelling(layer, shares, context)) return of(context);
  }
  const found = byFrame(layer.tree, names, shares);
  return found === null ? null : { ...found, difference: found.share * total };
}
