/** Where the boxes of a flame graph stand. */

import type { Comparison } from './compare';
import type { Layer } from './layer';
import type { Contexts } from './pack';

export type Mode = 'diff' | 'a' | 'b';

/** Boxes of a graph; places are parts of its width. */
export interface Boxes {
  count: number;
  context: Uint32Array;
  row: Uint16Array;
  x: Float64Array;
  width: Float64Array;
  /** 1: around what is shown; 2: only group A was there. */
  flag: Uint8Array;
  rows: number;
  /** Whether there are deeper rows. */
  isCut: boolean;
  /** Nanoseconds that the width stands for. */
  total: number;
}

export const AROUND = 1;
export const VANISHED = 2;

/** Rows that are drawn at most, and how many of them are for what is around the zoomed context. */
const MAX_ROWS = 300;
const MAX_AROUND = 60;

/**
 * Widths: of a context the mean of the group (B where groups are compared), and, where they are compared, what only A has below it. Such
 * time has boxes of its own, as wide as A's mean, beside those of B: `vanished` tells which these are.
 */
export function widths(layer: Layer, whole: Comparison, mode: Mode): { width: Float64Array; vanished: Float64Array } {
  const { count, parent } = layer.tree;
  const vanished = new Float64Array(count);
  if (mode !== 'diff') return { width: mode === 'a' ? whole.meanA : whole.meanB, vanished };
  const width = new Float64Array(count);
  for (let at = count - 1; at >= 0; at--) {
    const [a, b] = [whole.meanA[at], whole.meanB[at]];
    // All that is below it vanished too, and is counted with it.
    if (b === 0) vanished[at] = a;
    width[at] = b + vanished[at];
    if (at !== 0 && !(whole.meanB[parent[at]] === 0)) vanished[parent[at]] += vanished[at];
  }
  return { width, vanished };
}

/** A box as a line of a table. */
export interface Line {
  box: number;
  /** How deep it stands, from 1 on. */
  level: number;
  /** Its place among the boxes beside it, from 1 on, and how many these are. */
  place: number;
  of: number;
}

/** The widest boxes in the order of the tree: what is within a box follows it, the widest first. */
export function outline(tree: Contexts, boxes: Boxes, most: number): Line[] {
  const { context, width, row } = boxes;
  const wider = (one: number, other: number) =>
    width[other] - width[one] || row[one] - row[other] || context[one] - context[other];
  const chosen = [...context.keys()].sort(wider).slice(0, most);
  const inner = new Map<number, number[]>();
  let first: number | undefined;
  for (const box of chosen) {
    if (row[box] === 0) first ??= box;
    else {
      const around = tree.parent[context[box]];
      const beside = inner.get(around);
      if (beside === undefined) inner.set(around, [box]);
      else beside.push(box);
    }
  }
  const lines: Line[] = [];
  const stack: Line[] = first === undefined ? [] : [{ box: first, level: 1, place: 1, of: 1 }];
  for (let line = stack.pop(); line !== undefined; line = stack.pop()) {
    lines.push(line);
    const within = inner.get(context[line.box]) ?? [];
    for (let at = within.length - 1; at >= 0; at--) {
      stack.push({ box: within[at], level: line.level + 1, place: at + 1, of: within.length });
    }
  }
  return lines;
}

export interface Place {
  mode: Mode;
  /** The context that fills the width. */
  zoom: number;
  /** Boxes narrower than that part of the width are left out. */
  least: number;
}

export function layout(layer: Layer, whole: Comparison, { mode, zoom, least }: Place): Boxes {
  const { tree, firstChild, children, depth } = layer;
  const { width, vanished } = widths(layer, whole, mode);
  const total = width[zoom];
  const context: number[] = [];
  const row: number[] = [];
  const x: number[] = [];
  const w: number[] = [];
  const flag: number[] = [];
  const firstRow = Math.max(0, depth[zoom] - MAX_AROUND);
  let isCut = false;
  const push = (at: number, place: number, part: number, flags: number) => {
    context.push(at);
    row.push(depth[at] - firstRow);
    x.push(place);
    w.push(part);
    flag.push(flags);
  };
  for (let at = zoom; depth[at] > firstRow; ) {
    at = tree.parent[at];
    push(at, 0, 1, AROUND);
  }
  let rows = depth[zoom] + 1 - firstRow;
  if (total > 0) {
    const stack: [number, number][] = [[zoom, 0]];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [at, place] = next;
      const isVanished = mode === 'diff' && whole.meanB[at] === 0;
      push(at, place, width[at] / total, isVanished ? VANISHED : 0);
      rows = Math.max(rows, depth[at] + 1 - firstRow);
      if (depth[at] + 1 - firstRow >= MAX_ROWS) {
        isCut ||= firstChild[at] < firstChild[at + 1];
        continue;
      }
      let inner = place;
      let ghosts = place + width[at] / total;
      // Beside each other from the left, what vanished from the right: what is left between is its own time.
      for (let child = firstChild[at]; child < firstChild[at + 1]; child++) {
        const of = children[child];
        const part = width[of] / total;
        const isGhost = mode === 'diff' && vanished[of] > 0 && whole.meanB[of] === 0 && !isVanished;
        if (isGhost) ghosts -= part;
        if (part >= least) stack.push([of, isGhost ? ghosts : inner]);
        if (!isGhost) inner += part;
      }
    }
  }
  return {
    count: context.length,
    context: Uint32Array.from(context),
    row: Uint16Array.from(row),
    x: Float64Array.from(x),
    width: Float64Array.from(w),
    flag: Uint8Array.from(flag),
    rows,
    isCut,
    total,
  };
}
