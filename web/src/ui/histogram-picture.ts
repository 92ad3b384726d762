/**
 * A histogram of both groups as a picture: bars of A stand on the middle line, bars of B hang from
 * it. Both have one axis of values and one scale of heights, in percent of the group.
 */

import { type Axis, placeOf } from '../engine/axis';
import { edgesOf, type Part } from '../engine/brush';
import { ROOM } from '../engine/group';
import { type ShareScale, scaleOf, sharesOf } from '../engine/shares';
import { logTicks, percent, quantity, ticks } from '../format';
import type { Model, Side } from '../model';
import { fitted, prepared, setFont } from './hooks';
import { currentTheme } from './theme';

/** Pixels on the left for shares, and on the right, so that a brush at the end can be taken. */
export const LEFT = 42;
export const RIGHT = 8;
/** Pixels of each half, and of the axis below. */
export const HALF = 40;
const AXIS = 16;
/** Height of the picture. */
export const HEIGHT = 2 * HALF + AXIS;

type Pen = CanvasRenderingContext2D;

const SIDES = [0, 1] as const;

interface Plot {
  pen: Pen;
  axis: Axis;
  unit: string;
  width: number;
  inner: number;
  scale: ShareScale;
}

/** The bars of one group. */
interface Bars {
  side: Side;
  shares: Float64Array;
  /** Edges of the range of the group in this column. */
  edges: [number, number] | null;
}

export function drawHistogram(
  canvas: HTMLCanvasElement,
  model: Model,
  column: number,
  focus: { side: Side; part: Part } | null,
): void {
  const ready = prepared(canvas);
  if (ready === null) return;
  const { pen, width } = ready;
  const of = model.table.numbers[column];
  const { axis, unit } = of;
  const counts = SIDES.map((side) =>
    model.groups[side].histograms.subarray(column * ROOM, column * ROOM + axis.bins),
  );
  const plot: Plot = {
    pen,
    axis,
    unit,
    width,
    inner: Math.max(1, width - LEFT - RIGHT),
    scale: scaleOf(counts, model.shown.isTall),
  };
  setFont(pen);
  for (const side of SIDES) {
    const range = model.rangeOf(side, column);
    const edges = range === null ? null : edgesOf(of, range);
    const bars: Bars = { side, shares: sharesOf(counts[side]), edges };
    if (edges === null) {
      pen.fillStyle = currentTheme().groups[side];
      drawBars(plot, bars);
    } else drawBrushed(plot, bars, edges, focus?.side === side ? focus.part : 'whole');
    drawScale(plot, bars);
  }
  drawAxis(plot);
}

function drawBars({ pen, axis, inner, scale }: Plot, { side, shares }: Bars): void {
  const room = HALF - 4;
  pen.beginPath();
  for (let bin = 0; bin < axis.bins; bin++) {
    if (shares[bin] === 0) continue;
    const from = Math.round(LEFT + (bin * inner) / axis.bins);
    const to = Math.round(LEFT + ((bin + 1) * inner) / axis.bins);
    // A single execution among thousands is still seen.
    const height = Math.max(1.5, scale.heightOf(shares[bin]) * room);
    pen.rect(
      from,
      side === 0 ? HALF - height : HALF + 1,
      Math.max(1, to - from - (to - from > 3 ? 1 : 0)),
      height,
    );
  }
  pen.fill();
}

/** All bars pale, those within the range in the group's colour, and the range with its edges. */
function drawBrushed(plot: Plot, bars: Bars, edges: [number, number], part: Part): void {
  const { pen, inner } = plot;
  const theme = currentTheme();
  const colour = theme.groups[bars.side];
  const top = bars.side === 0 ? 0 : HALF + 1;
  const [low, high] = edges.map((place) => LEFT + place * inner);
  pen.fillStyle = theme.pale;
  drawBars(plot, bars);
  pen.fillStyle = colour;
  pen.globalAlpha = 0.14;
  pen.fillRect(low, top, Math.max(1, high - low), HALF - 1);
  pen.globalAlpha = 1;
  pen.save();
  pen.beginPath();
  pen.rect(low - 0.5, top, Math.max(2, high - low + 1), HALF);
  pen.clip();
  drawBars(plot, bars);
  pen.restore();
  for (const [edge, name] of [
    [low, 'low'],
    [high, 'high'],
  ] as const) {
    pen.fillStyle = part === name ? theme.focus : colour;
    const wide = part === name ? 5 : 3;
    pen.fillRect(Math.round(edge) - 0.75, top, 1.5, HALF - 1);
    pen.beginPath();
    pen.roundRect(Math.round(edge) - wide, top + HALF / 2 - 8, 2 * wide, 15, 2.5);
    pen.fill();
  }
}

/**
 * On the left: the share at the end of the axis, and its group. The label of a brushed group is `A`
 * instead of `of A`, since its bars include executions outside the range, which are not in A.
 */
function drawScale({ pen, scale }: Plot, { side, edges }: Bars): void {
  const theme = currentTheme();
  const y = side === 0 ? 6 : 2 * HALF - 5;
  pen.textAlign = 'right';
  pen.fillStyle = theme.soft;
  pen.fillText(percent(scale.top, 1), LEFT - 6, y);
  pen.fillStyle = theme.line;
  pen.fillRect(LEFT - 4, side === 0 ? 4 : 2 * HALF - 3, 4, 1);
  pen.fillStyle = theme.groupText[side];
  const name = 'AB'[side];
  const middle = side === 0 ? HALF / 2 + 3 : HALF + HALF / 2 - 2;
  pen.fillText(edges === null ? `of ${name}` : name, LEFT - 6, middle);
  pen.textAlign = 'left';
}

function marksOf({ axis, unit, inner }: Plot): number[] {
  const most = Math.max(2, Math.floor(inner / 70));
  if (axis.scale === 'linear') {
    const marks = ticks(axis.low, axis.high, unit, most);
    // A bin for each whole number: there is nothing between two of them.
    return axis.isByOne ? marks.filter(Number.isInteger) : marks;
  }
  const marks = logTicks(axis.low, axis.high, unit, most);
  return axis.zero > 0 ? [0, ...marks] : marks;
}

function drawAxis(plot: Plot): void {
  const { pen, axis, unit, width, inner } = plot;
  const theme = currentTheme();
  const floor = 2 * HALF;
  pen.fillStyle = theme.soft;
  pen.fillRect(LEFT, HALF, inner, 1);
  pen.fillStyle = theme.line;
  pen.fillRect(LEFT, floor, inner, 1);
  pen.fillStyle = theme.soft;
  let free = -Infinity;
  for (const mark of marksOf(plot)) {
    const isZero = mark === 0 && axis.zero > 0;
    const x = LEFT + inner * (isZero ? 0.5 / axis.bins : placeOf(axis, mark));
    const text = quantity(mark, unit);
    const half = pen.measureText(text).width / 2;
    const left = Math.min(width - 2 * half - 1, Math.max(1, x - half));
    pen.fillRect(x, floor, 1, 3);
    if (left < free + 8) continue;
    pen.fillText(fitted(pen, text, 80), left, floor + 10);
    free = left + 2 * half;
  }
}
