/** Drawing of the flame graph. */

import { SURE } from '../engine/compare';
import { AROUND, type Boxes, layout, VANISHED, widths } from '../engine/flame';
import { FrameKind } from '../engine/pack';
import type { Model } from '../model';
import { fitted, prepared, setFont } from './hooks';
import { colourOf, currentTheme, inkOn, type Theme } from './theme';

/**
 * Height of a row in pixels. Smaller than a pointer target should be, so that deep stacks fit: the
 * table below the graph leads to the same contexts.
 */
export const ROW = 19;

/** The boxes drawn last, for the pointer and the keyboard. */
export interface Drawn {
  boxes: Boxes;
  width: number;
}

/** A box in pixels. */
interface Box {
  context: number;
  x: number;
  y: number;
  /** Width with and without the gap to the next box; narrow boxes have no gap. */
  width: number;
  wide: number;
  flag: number;
  isDim: boolean;
}

type Pen = CanvasRenderingContext2D;

/** Opacity of boxes that do not match the search. */
const DIM = 0.28;

export function draw(
  canvas: HTMLCanvasElement,
  model: Model,
  hovered: number | null,
): Drawn | null {
  const ready = prepared(canvas);
  if (ready === null) return null;
  const { pen, width } = ready;
  const { shown, found } = model;
  const boxes = layout(model.layer, model.whole, {
    mode: shown.mode,
    zoom: shown.zoom,
    least: 0.4 / width,
  });
  setFont(pen);
  const pins = new Set(shown.pins);
  const boxAt = (at: number): Box => {
    const w = boxes.width[at] * width;
    return {
      context: boxes.context[at],
      x: boxes.x[at] * width,
      y: yOf(boxes.row[at], boxes.rows, shown.isFlipped),
      width: w,
      wide: w > 2 ? w - 1 : w,
      flag: boxes.flag[at],
      isDim: found !== null && found[boxes.context[at]] === 0,
    };
  };
  for (let at = 0; at < boxes.count; at++) drawBox(pen, model, boxAt(at), pins);
  ghostsAround(pen, model, boxes, width);
  const hasFocus = document.activeElement === canvas.parentElement;
  for (let at = 0; at < boxes.count; at++) {
    const isCursor = hasFocus && boxes.context[at] === model.cursor;
    if (boxes.context[at] === hovered || isCursor) {
      const box = boxAt(at);
      frameOf(
        pen,
        { ...box, wide: Math.max(2, box.wide) },
        currentTheme().focus,
        isCursor ? 2 : 1.25,
      );
    }
  }
  return { boxes, width };
}

function drawBox(pen: Pen, model: Model, box: Box, pins: Set<number>): void {
  const theme = currentTheme();
  const { context, flag, isDim, width } = box;
  pen.globalAlpha = isDim ? DIM : flag === AROUND ? 0.6 : 1;
  const kind = model.layer.tree.kind[context];
  const colour = fill(pen, model, box, kind);
  if (model.shown.mode === 'diff' && width > 5 && flag !== VANISHED && EDGES[kind] !== undefined) {
    pen.fillStyle = EDGES[kind];
    pen.fillRect(box.x, box.y, 3, ROW - 1);
  }
  if (width > 26) write(pen, box, labelOf(model, context), colour);
  pen.globalAlpha = 1;
  if (model.found !== null && !isDim && width > 1) frameOf(pen, box, theme.focus, 1);
  if (pins.has(context) && width > 2) corner(pen, box, theme.focus);
}

/** Fills a box; returns its colour. */
function fill(
  pen: Pen,
  model: Model,
  { context, x, y, width, wide, flag }: Box,
  kind: number,
): string {
  const theme = currentTheme();
  if (flag === VANISHED) {
    pen.fillStyle = theme.panel;
    pen.fillRect(x, y, wide, ROW - 1);
    pen.fillStyle = stripes(pen, theme);
    pen.fillRect(x, y, wide, ROW - 1);
    if (width > 3) {
      pen.strokeStyle = theme.less[1];
      pen.strokeRect(x + 0.5, y + 0.5, wide - 1, ROW - 2);
    }
    return theme.panel;
  }
  const { deviations, chance } = model.coloured;
  const isDifference = model.shown.mode === 'diff';
  const colour = isDifference
    ? colourOf(deviations[context], chance[context] < SURE)
    : (theme.kinds[kind] ?? theme.plain);
  pen.fillStyle = colour;
  pen.fillRect(x, y, wide, ROW - 1);
  return colour;
}

function write(
  pen: Pen,
  { x, y, width, wide, flag, isDim }: Box,
  label: string,
  colour: string,
): void {
  const theme = currentTheme();
  const text = fitted(pen, label, width - 10);
  if (text === '') return;
  if (flag === VANISHED) {
    // Text on stripes needs a plain background.
    pen.fillStyle = theme.panel;
    pen.globalAlpha = isDim ? DIM : 0.85;
    pen.fillRect(x + 3, y + 2, Math.min(wide - 6, pen.measureText(text).width + 6), ROW - 5);
  }
  pen.globalAlpha = 1;
  // Faint boxes are nearly as light (or dark) as the panel.
  pen.fillStyle = isDim ? theme.soft : flag === 0 ? inkOn(colour) : theme.text;
  pen.fillText(text, x + 6, y + ROW / 2);
}

/** Marks a pinned box. */
function corner(pen: Pen, { x, y, width, wide }: Box, colour: string): void {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(x + wide, y);
  pen.lineTo(x + wide - Math.min(8, width), y);
  pen.lineTo(x + wide, y + 8);
  pen.fill();
}

function frameOf(pen: Pen, { x, y, wide }: Box, colour: string, line: number): void {
  pen.strokeStyle = colour;
  pen.lineWidth = line;
  pen.strokeRect(x + line / 2, y + line / 2, Math.max(0.5, wide - line), ROW - 1 - line);
  pen.lineWidth = 1;
}

/**
 * Mean time that the width of the graph stands for, in nanoseconds; 0 if there is nothing to draw.
 */
export function totalOf(model: Model): number {
  return widths(model.layer, model.whole, model.shown.mode).width[model.shown.zoom];
}

function yOf(row: number, rows: number, isFlipped: boolean): number {
  return (isFlipped ? rows - 1 - row : row) * ROW;
}

/** Patterns for boxes that only A has, by colour. */
const patterns = new Map<string, CanvasPattern | string>();
function stripes(pen: Pen, theme: Theme): CanvasPattern | string {
  const known = patterns.get(theme.less[1]);
  if (known !== undefined) return known;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const ink = tile.getContext('2d')!;
  ink.strokeStyle = theme.less[1];
  ink.lineWidth = 1.6;
  ink.beginPath();
  for (const at of [-8, 0, 8]) {
    ink.moveTo(at - 1, 9);
    ink.lineTo(at + 9, -1);
  }
  ink.stroke();
  const made = pen.createPattern(tile, 'repeat') ?? theme.less[0];
  patterns.set(theme.less[1], made);
  return made;
}

/**
 * Hatches the lower edge of the boxes that enclose a vanished one: that part of their width is only
 * A's.
 */
function ghostsAround(pen: Pen, model: Model, boxes: Boxes, width: number): void {
  const { shown, layer } = model;
  if (shown.mode !== 'diff') return;
  const theme = currentTheme();
  const rowOf = new Map<number, number>();
  for (let box = 0; box < boxes.count; box++) rowOf.set(boxes.context[box], boxes.row[box]);
  pen.fillStyle = stripes(pen, theme);
  pen.globalAlpha = 0.5;
  for (let box = 0; box < boxes.count; box++) {
    if (boxes.flag[box] !== VANISHED) continue;
    const parent = layer.tree.parent[boxes.context[box]];
    if (model.whole.meanB[parent] === 0 || boxes.context[box] === shown.zoom) continue;
    const last = rowOf.get(shown.zoom) ?? 0;
    const w = boxes.width[box] * width;
    // Narrower ones would be specks.
    if (w < 2) continue;
    for (let row = boxes.row[box] - 1; row >= last; row--) {
      pen.fillRect(boxes.x[box] * width, yOf(row, boxes.rows, shown.isFlipped) + ROW - 6, w - 1, 5);
    }
  }
  pen.globalAlpha = 1;
}

/** Colours of the left edges of boxes that are not functions. */
const EDGES: Record<number, string> = {
  [FrameKind.Call]: '#b08a1e',
  [FrameKind.Thread]: '#8460ad',
  [FrameKind.Reason]: '#b4483c',
  [FrameKind.Detail]: '#7c7c74',
};

export function labelOf(model: Model, context: number): string {
  return context === 0 ? 'all executions' : model.nameOf(context);
}
