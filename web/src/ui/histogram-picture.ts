/** A histogram with its brush as a picture. */

import { type Axis, placeOf } from '../engine/axis';
import { edgesOf } from '../engine/brush';
import { ROOM } from '../engine/group';
import { logTicks, quantity, ticks } from '../format';
import type { Model, Side } from '../model';
import { fitted, prepared, setFont } from './hooks';
import { currentTheme } from './theme';

/** Room below for the axis. */
const AXIS = 15;
/** Room at both sides, so that brushes at the ends can be taken. */
export const MARGIN = 6;

type Pen = CanvasRenderingContext2D;

/** Where the bars stand. */
interface Plot {
  pen: Pen;
  axis: Axis;
  unit: string;
  counts: Int32Array;
  width: number;
  inner: number;
  /** Where bars stand on. */
  floor: number;
  isTall: boolean;
}

export function drawHistogram(canvas: HTMLCanvasElement, model: Model, side: Side, column: number): void {
  const ready = prepared(canvas);
  if (ready === null) return;
  const { pen, width, height } = ready;
  const { axis, unit } = model.table.numbers[column];
  const counts = model.groups[side].histograms.subarray(column * ROOM, column * ROOM + axis.bins);
  const plot = {
    pen,
    axis,
    unit,
    counts,
    width,
    inner: width - 2 * MARGIN,
    floor: height - AXIS,
    isTall: model.shown.isTall,
  };
  const range = model.rangeOf(side, column);
  if (range === null) {
    pen.fillStyle = currentTheme().groups[side];
    pen.globalAlpha = 0.72;
    drawBars(plot);
    pen.globalAlpha = 1;
  } else drawBrushed(plot, side, edgesOf(model.table.numbers[column], range));
  drawAxis(plot);
}

function drawBars({ pen, axis, counts, inner, floor, isTall }: Plot): void {
  let most = 1;
  for (const count of counts) most = Math.max(most, count);
  const heightOf = (count: number) => (isTall ? Math.log1p(count) / Math.log1p(most) : count / most) * (floor - 4);
  pen.beginPath();
  for (let bin = 0; bin < axis.bins; bin++) {
    if (counts[bin] === 0) continue;
    const from = Math.round(MARGIN + (bin * inner) / axis.bins);
    const to = Math.round(MARGIN + ((bin + 1) * inner) / axis.bins);
    // What is there is seen, however little.
    const bar = Math.max(1.5, heightOf(counts[bin]));
    pen.rect(from, floor - bar, Math.max(1, to - from - (to - from > 3 ? 1 : 0)), bar);
  }
  pen.fill();
}

/** All bars pale, those within the range in the group's colour, and the range with its edges. */
function drawBrushed(plot: Plot, side: Side, edges: [number, number]): void {
  const { pen, inner, floor } = plot;
  const theme = currentTheme();
  const [low, high] = edges.map((place) => MARGIN + place * inner);
  pen.fillStyle = theme.pale;
  drawBars(plot);
  pen.fillStyle = theme.groups[side];
  pen.globalAlpha = 0.12;
  pen.fillRect(low, 0, Math.max(1, high - low), floor);
  pen.globalAlpha = 1;
  pen.save();
  pen.beginPath();
  pen.rect(low - 0.5, 0, Math.max(2, high - low + 1), floor);
  pen.clip();
  drawBars(plot);
  pen.restore();
  for (const edge of [low, high]) {
    pen.fillRect(Math.round(edge) - 0.75, 0, 1.5, floor);
    pen.beginPath();
    pen.roundRect(Math.round(edge) - 3, floor / 2 - 7, 6, 14, 2.5);
    pen.fill();
  }
}

function marksOf({ axis, unit, inner }: Plot): number[] {
  const most = Math.max(2, Math.floor(inner / 70));
  if (axis.scale === 'linear') {
    const marks = ticks(axis.low, axis.high, unit, most);
    // Where each number has its bin there is nothing between two of them.
    return axis.isByOne ? marks.filter(Number.isInteger) : marks;
  }
  const marks = logTicks(axis.low, axis.high, unit, most);
  return axis.zero > 0 ? [0, ...marks] : marks;
}

function drawAxis(plot: Plot): void {
  const { pen, axis, unit, width, inner, floor } = plot;
  const theme = currentTheme();
  pen.fillStyle = theme.line;
  pen.fillRect(MARGIN, floor, inner, 1);
  setFont(pen);
  pen.fillStyle = theme.soft;
  let free = -Infinity;
  for (const mark of marksOf(plot)) {
    const isZero = mark === 0 && axis.zero > 0;
    const x = MARGIN + inner * (isZero ? 0.5 / axis.bins : placeOf(axis, mark));
    const text = quantity(mark, unit);
    const half = pen.measureText(text).width / 2;
    const left = Math.min(width - 2 * half - 1, Math.max(1, x - half));
    pen.fillRect(x, floor, 1, 3);
    if (left < free + 8) continue;
    pen.fillText(fitted(pen, text, 80), left, floor + 9);
    free = left + 2 * half;
  }
}
