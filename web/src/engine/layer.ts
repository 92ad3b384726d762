/**
 * A tree of contexts with the times of executions in it: in each context itself, and in each with all within it.
 *
 * The tree is that of the calls (`forward`), or that of the callers (`inverted`): from the innermost frame outwards, so that the
 * time of one function stands together wherever it was called from.
 */

import { type Contexts, type Entries, FrameKind, type Indices, type Pack } from './pack';

export interface Layer {
  tree: Contexts;
  /** Children of each context lie one behind the other in `children`, by name. */
  firstChild: Uint32Array;
  children: Uint32Array;
  depth: Uint16Array;
  own: Entries;
  whole: Entries;
}

/** Above that many entries there is not memory enough for a page. */
const MAX_ENTRIES = 400_000_000;

/** Orders children by name, so that boxes keep their places while groups change. */
function childrenOf(tree: Contexts, names: string[]): Pick<Layer, 'firstChild' | 'children' | 'depth'> {
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

/** For each execution the contexts that it was in or around which it was, with the time in all within each. */
function wholeOf(own: Entries, tree: Contexts): Entries {
  const { parent, count } = tree;
  const executions = own.rows.length - 1;
  const stamp = new Int32Array(count).fill(-1);
  const rows = new Uint32Array(executions + 1);
  let total = 0;
  for (let row = 0; row < executions; row++) {
    for (let at = own.rows[row]; at < own.rows[row + 1]; at++) {
      let here: number = own.context[at];
      while (stamp[here] !== row) {
        stamp[here] = row;
        total++;
        here = parent[here];
      }
    }
    rows[row + 1] = total;
    if (total > MAX_ENTRIES) throw new RangeError('There are too many times in contexts for a page.');
  }
  const context: Indices = count <= 0x10000 ? new Uint16Array(total) : new Uint32Array(total);
  const time = own.time instanceof Uint32Array && isSmall(own) ? new Uint32Array(total) : new Float64Array(total);
  const scratch = new Float64Array(count);
  const starts = new Uint32Array(count + 1);
  stamp.fill(-1);
  let end = 0;
  for (let row = 0; row < executions; row++) {
    const begin = end;
    let runs = 0;
    for (let at = own.rows[row]; at < own.rows[row + 1]; at++) {
      let here: number = own.context[at];
      if (stamp[here] !== row) starts[runs++] = end;
      while (stamp[here] !== row) {
        stamp[here] = row;
        scratch[here] = 0;
        context[end++] = here;
        here = parent[here];
      }
      scratch[own.context[at]] += own.time[at];
    }
    // Each run goes outwards and ends beside a context of an earlier run: the last run first, all have their times in time.
    let until = end;
    for (let run = runs - 1; run >= 0; run--) {
      for (let at = starts[run]; at < until; at++) {
        const here = context[at];
        time[at] = scratch[here];
        if (here !== 0) scratch[parent[here]] += scratch[here];
      }
      until = starts[run];
    }
    if (until !== begin) throw new Error('runs do not join');
  }
  return { rows, context, time };
}

/** Whether the times of each execution add up to less than 2^32. */
function isSmall({ rows, time }: Entries): boolean {
  for (let row = 0; row + 1 < rows.length; row++) {
    let sum = 0;
    for (let at = rows[row]; at < rows[row + 1]; at++) sum += time[at];
    if (sum > 0xffffffff) return false;
  }
  return true;
}

function layer(tree: Contexts, own: Entries, names: string[]): Layer {
  return { tree, ...childrenOf(tree, names), own, whole: wholeOf(own, tree) };
}

/** The tree of calls. */
export function forward(pack: Pack): Layer {
  return layer(pack.contexts, pack.entries, pack.names);
}

/** The tree of callers; `from` tells for each context of it one of the tree of calls that ends in its frame. */
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

/** Frames of a context, the outermost first, without the root. */
export function pathOf(tree: Contexts, context: number): number[] {
  const path: number[] = [];
  for (let at = context; at !== 0; at = tree.parent[at]) path.push(at);
  return path.reverse();
}

/** Of each execution the time in a context with all within it. */
export function timesIn(layer: Layer, context: number): Float64Array {
  const { parent, count } = layer.tree;
  const isWithin = new Uint8Array(count);
  isWithin[context] = 1;
  for (let at = context + 1; at < count; at++) isWithin[at] = isWithin[parent[at]] | (at === context ? 1 : 0);
  const { rows, context: of, time } = layer.own;
  const times = new Float64Array(rows.length - 1);
  for (let row = 0; row < times.length; row++) {
    let sum = 0;
    for (let at = rows[row]; at < rows[row + 1]; at++) if (isWithin[of[at]] === 1) sum += time[at];
    times[row] = sum;
  }
  return times;
}
