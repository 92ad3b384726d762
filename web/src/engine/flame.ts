/** Layout of the flame graph. */

import type { Comparison } from './compare';
import type { Layer } from './layer';
import type { Contexts } from './pack';

export type Mode = 'diff' | 'a' | 'b';

/** Boxes of a graph; positions and widths are parts of its width. */
export interface Boxes {
  count: number;
  context: Uint32Array;
  row: Uint16Array;
  x: Float64Array;
  width: Float64Array;
  /** `AROUND`, `VANISHED` or 0. */
  flag: Uint8Array;
  rows: number;
  /** Whether deeper rows were left out. */
  isCut: boolean;
  /** Mean time that the full width stands for, in nanoseconds. */
  total: number;
}

export const AROUND = 1;
export const VANISHED = 2;

/** Maximum number of rows, and of rows for frames that enclose the zoomed context. */
const MAX_ROWS = 300;
const MAX_AROUND = 60;

/**
 * Width by context: the mean of the group, and where groups are compared, the mean of B plus the
 * time below that only A has. Such time gets boxes of its own, as wide as A's mean; `vanished` is
 * its amount.
 */
export function widths(
  layer: Layer,
  whole: Comparison,
  mode: Mode,
): { width: Float64Array; vanished: Float64Array } {
  const { count, parent } = layer.tree;
  const vanished = new Float64Array(count);
  if (mode !== 'diff') return { width: mode === 'a' ? whole.meanA : whole.meanB, vanished };
  const width = new Float64Array(count);
  for (let at = count - 1; at >= 0; at--) {
    const [a, b] = [whole.meanA[at], whole.meanB[at]];
    // Contexts below have vanished as well; their time is part of this one's.
    if (b === 0) vanished[at] = a;
    width[at] = b + vanished[at];
    if (at !== 0 && !(whole.meanB[parent[at]] === 0)) vanished[parent[at]] += vanished[at];
  }
  return { width, vanished };
}

/** A box as a row of a table. */
export interface Line {
  box: number;
  /** Depth, from 1. */
  level: number;
  /** Position among its siblings, from 1, and their number. */
  place: number;
  of: number;
}

/** The widest boxes in depth-first order, siblings by width. */
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
  /** The context that fills the whole width. */
  zoom: number;
  /** Boxes narrower than this part of the width are left out. */
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
      // Children of B stand from the left, vanished ones from the right; the gap between them is
      // own time.
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
