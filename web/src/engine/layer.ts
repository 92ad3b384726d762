/**
 * A tree of contexts with the own time of each execution in each context. Total times follow from
 * the tree.
 *
 * The tree is that of the calls (`forward`), or that of the callers (`inverted`): from the
 * innermost frame outwards, so that all time of a function is in one context, wherever it was
 * called from.
 */

import { type Contexts, type Entries, FrameKind, type Pack } from './pack';

export interface Layer {
  tree: Contexts;
  /** Offsets of each context's children in `children`, where siblings are sorted by name. */
  firstChild: Uint32Array;
  children: Uint32Array;
  depth: Uint16Array;
  own: Entries;
  /** The innermost context that always has the same total time. */
  same: Uint32Array;
  /** The context that encloses the chain of contexts with the same total time. */
  outer: Uint32Array;
}

/** Sorts children by name, so that boxes do not swap positions while groups change. */
function childrenOf(
  tree: Contexts,
  names: string[],
): Pick<Layer, 'firstChild' | 'children' | 'depth'> {
  const { count, parent, name, kind } = tree;
  const byName = Uint32Array.from(names.keys()).sort((one, other) =>
    names[one] < names[other] ? -1 : names[one] > names[other] ? 1 : one - other,
  );
  const rank = new Uint32Array(names.length);
  for (let at = 0; at < byName.length; at++) rank[byName[at]] = at;
  const order = Uint32Array.from({ length: Math.max(0, count - 1) }, (_, at) => at + 1).sort(
    (one, other) => rank[name[one]] - rank[name[other]] || kind[one] - kind[other] || one - other,
  );
  const firstChild = new Uint32Array(count + 1);
  const depth = new Uint16Array(count);
  for (let at = 1; at < count; at++) {
    firstChild[parent[at] + 1]++;
    depth[at] = depth[parent[at]] + 1;
  }
  for (let at = 0; at < count; at++) firstChild[at + 1] += firstChild[at];
  const next = firstChild.slice(0, count);
  const children = new Uint32Array(Math.max(0, count - 1));
  for (const one of order) children[next[parent[one]]++] = one;
  return { firstChild, children, depth };
}

/**
 * Finds chains of contexts with the same total time: frames without own time around a single other
 * frame. `same` is the innermost context of each chain, `outer` the context that encloses the chain
 * (itself at the root).
 */
function chainsOf(own: Entries, { parent, count }: Contexts): Pick<Layer, 'same' | 'outer'> {
  const isUsed = new Uint8Array(count);
  for (let at = 0; at < own.context.length; at++) isUsed[own.context[at]] = 1;
  const inner = new Uint32Array(count);
  const inside = new Uint32Array(count);
  for (let at = count - 1; at > 0; at--) {
    if (isUsed[at] === 0 && inside[at] === 0) continue;
    inside[parent[at]]++;
    inner[parent[at]] = at;
  }
  const same = new Uint32Array(count);
  const outer = new Uint32Array(count);
  for (let at = count - 1; at >= 0; at--)
    same[at] = isUsed[at] === 0 && inside[at] === 1 ? same[inner[at]] : at;
  for (let at = 0; at < count; at++) {
    const around = parent[at];
    // Parents come first, so the context around a chain is known from its outermost frame.
    outer[at] = same[around] === same[at] ? (at === 0 ? at : outer[around]) : around;
  }
  // A chain that begins at the root is not enclosed.
  for (let at = 0; at < count; at++) if (same[0] === same[at]) outer[at] = at;
  return { same, outer };
}

/** Total times of one execution, one for each chain of `same`. */
export class Whole {
  /** Contexts of the last execution asked for, and total times by context. */
  count = 0;
  readonly contexts: Uint32Array;
  readonly times: Float64Array;
  private readonly stamps: Int32Array;
  private readonly starts: Uint32Array;
  private round = 0;

  constructor(private readonly layer: Layer) {
    const size = layer.tree.count;
    this.contexts = new Uint32Array(size);
    this.times = new Float64Array(size);
    this.stamps = new Int32Array(size);
    this.starts = new Uint32Array(size);
  }

  /** Computes the times of an execution. */
  ask(row: number): void {
    const { contexts, times, stamps, starts } = this;
    const { outer } = this.layer;
    const { rows, context, time } = this.layer.own;
    if (this.round === 0x7fffffff) {
      stamps.fill(0);
      this.round = 0;
    }
    const round = ++this.round;
    const last = rows[row + 1];
    let end = 0;
    let runs = 0;
    for (let at = rows[row]; at < last; at++) {
      let here: number = context[at];
      if (stamps[here] === round) {
        times[here] += time[at];
        continue;
      }
      starts[runs++] = end;
      stamps[here] = round;
      times[here] = time[at];
      contexts[end++] = here;
      here = outer[here];
      while (stamps[here] !== round) {
        stamps[here] = round;
        times[here] = 0;
        contexts[end++] = here;
        here = outer[here];
      }
    }
    // A run goes outwards until a context of an earlier run. In reverse order each context is
    // complete before its time is added to the enclosing one.
    let until = end;
    for (let run = runs - 1; run >= 0; run--) {
      for (let at = starts[run]; at < until; at++) {
        const here = contexts[at];
        const around = outer[here];
        if (around !== here) times[around] += times[here];
      }
      until = starts[run];
    }
    this.count = end;
  }
}

function layer(tree: Contexts, own: Entries, names: string[]): Layer {
  return { tree, ...childrenOf(tree, names), ...chainsOf(own, tree), own };
}

/** The tree of calls, as it was recorded. */
export function forward(pack: Pack): Layer {
  return layer(pack.contexts, pack.entries, pack.names);
}

/** The tree of callers. */
export function inverted(pack: Pack): Layer {
  const { contexts, entries } = pack;
  const parent = [0];
  const kind: number[] = [FrameKind.Root];
  const name = [0];
  const known = new Map<string, number>();
  const mapped = new Uint32Array(contexts.count);
  const isUsed = new Uint8Array(contexts.count);
  for (let at = 0; at < entries.context.length; at++) isUsed[entries.context[at]] = 1;
  for (let context = 0; context < contexts.count; context++) {
    if (isUsed[context] === 0) continue;
    let at = 0;
    for (let frame = context; frame !== 0; frame = contexts.parent[frame]) {
      const key = `${at} ${contexts.kind[frame]} ${contexts.name[frame]}`;
      let inner = known.get(key);
      if (inner === undefined) {
        inner = parent.length;
        known.set(key, inner);
        parent.push(at);
        kind.push(contexts.kind[frame]);
        name.push(contexts.name[frame]);
      }
      at = inner;
    }
    mapped[context] = at;
  }
  const tree = {
    count: parent.length,
    parent: Uint32Array.from(parent),
    kind: Uint8Array.from(kind),
    name: Uint32Array.from(name),
  };
  const context = Uint32Array.from(entries.context, (one) => mapped[one]);
  return layer(tree, { rows: entries.rows, context, time: entries.time }, pack.names);
}

/** Contexts from the outermost frame to the given one, without the root. */
export function pathOf(tree: Contexts, context: number): number[] {
  const path: number[] = [];
  for (let at = context; at !== 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

/** Total time of each execution in a context. */
export function timesIn(layer: Layer, context: number): Float64Array {
  const { parent, count } = layer.tree;
  const isWithin = new Uint8Array(count);
  isWithin[context] = 1;
  for (let at = context + 1; at < count; at++) isWithin[at] = isWithin[parent[at]];
  const { rows, context: of, time } = layer.own;
  const times = new Float64Array(rows.length - 1);
  for (let row = 0; row < times.length; row++) {
    let sum = 0;
    for (let at = rows[row]; at < rows[row + 1]; at++) if (isWithin[of[at]] === 1) sum += time[at];
    times[row] = sum;
  }
  return times;
}
