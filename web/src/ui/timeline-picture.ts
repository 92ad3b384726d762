/** Drawing of a critical path as a timeline. */

import type { Path } from '../data/source';
import { type State, stateOf } from '../engine/states';
import { clean, quantity, ticks } from '../format';
import type { Model } from '../model';
import { fitted, prepared, setFont } from './hooks';
import { currentTheme, inkOn, stateColour } from './theme';

export const ROW = 26;
export const AXIS = 22;
/** Width of the column with names of threads, in pixels. */
export const NAMES = 150;

/** A segment of the path. */
export interface Span {
  begin: number;
  end: number;
  thread: number;
  context: number;
  state: State;
}

export function spansOf(model: Model, path: Path): Span[] {
  const { contexts, names } = model.pack;
  const known = new Map<string, State>();
  return path.segments.map(({ begin, duration, thread, context }) => {
    const key = `${thread} ${context}`;
    let state = known.get(key);
    if (state === undefined) {
      state = stateOf(contexts, names, context, path.threads[thread].name);
      known.set(key, state);
    }
    return { begin, end: begin + duration, thread, context, state };
  });
}

export function threadName(path: Path, thread: number): string {
  const { name, tid, host } = path.threads[thread];
  const hosts = new Set(path.threads.map((one) => one.host));
  if (tid === null) return name === '?' ? 'unknown thread' : clean(name, 60);
  return `${clean(name, 60)} ${tid}${hosts.size > 1 ? ` @${clean(host, 40)}` : ''}`;
}

/** Total time of each state, the longest first. */
export function statesOf(spans: Span[]): [string, number][] {
  const found = new Map<string, number>();
  for (const { state, begin, end } of spans)
    found.set(state.state, (found.get(state.state) ?? 0) + end - begin);
  return [...found].sort((one, other) => other[1] - one[1]);
}

/** Name of a frame; critical paths always refer to the tree of calls. */
export function frameName(model: Model, context: number): string {
  const { contexts, names } = model.pack;
  return clean(names[contexts.name[context]]);
}

export function innermost(model: Model, span: Span): string {
  const { stack } = span.state;
  return stack.length === 0 ? span.state.state : frameName(model, stack[stack.length - 1]);
}

export interface View {
  model: Model;
  path: Path;
  spans: Span[];
  /** Visible range of times. */
  view: [number, number];
  chosen: Span | null;
  hovered: Span | null;
}

type Pen = CanvasRenderingContext2D;

export function draw(canvas: HTMLCanvasElement, shown: View): void {
  const ready = prepared(canvas);
  if (ready === null) return;
  const { pen, width, height } = ready;
  setFont(pen);
  const [low, high] = shown.view;
  const inner = Math.max(1, width - NAMES);
  const xOf = (time: number) => NAMES + ((time - low) / (high - low)) * inner;
  drawNames(pen, shown.path, width);
  pen.save();
  pen.beginPath();
  pen.rect(NAMES, 0, inner, height);
  pen.clip();
  drawAxis(pen, shown.view, width, height, xOf);
  drawSpans(pen, shown, width, xOf);
  pen.restore();
}

function drawNames(pen: Pen, path: Path, width: number): void {
  const theme = currentTheme();
  for (let thread = 0; thread < path.threads.length; thread++) {
    const y = AXIS + thread * ROW;
    pen.fillStyle = theme.line;
    pen.fillRect(0, y + ROW - 1, width, 1);
    pen.fillStyle = theme.text;
    pen.fillText(fitted(pen, threadName(path, thread), NAMES - 12), 4, y + ROW / 2);
  }
}

function drawAxis(
  pen: Pen,
  [low, high]: [number, number],
  width: number,
  height: number,
  xOf: (time: number) => number,
): void {
  const theme = currentTheme();
  for (const mark of ticks(low, high, 'ns', Math.max(2, Math.floor((width - NAMES) / 110)))) {
    const x = xOf(mark);
    pen.fillStyle = theme.line;
    pen.fillRect(x, 0, 1, height);
    pen.fillStyle = theme.soft;
    const text = quantity(mark, 'ns');
    // At the right end the text stands to the left of its line.
    const wide = pen.measureText(text).width + 3;
    pen.fillText(text, x + wide > width ? x - wide : x + 3, AXIS / 2);
  }
}

function drawSpans(pen: Pen, shown: View, width: number, xOf: (time: number) => number): void {
  const { spans, view } = shown;
  let lastX = -1;
  let lastRow = -1;
  for (let at = 0; at < spans.length; at++) {
    const span = spans[at];
    if (span.end < view[0] || span.begin > view[1]) continue;
    const x = Math.max(NAMES - 2, xOf(span.begin));
    const right = Math.min(width + 2, xOf(span.end));
    const next = spans[at + 1];
    if (next !== undefined && next.thread !== span.thread) drawStep(pen, span, next, xOf(span.end));
    // Segments narrower than a pixel are merged.
    if (right - lastX < 0.3 && lastRow === span.thread) continue;
    lastX = right;
    lastRow = span.thread;
    drawSpan(pen, shown, span, x, right);
  }
}

/** Connects two segments in different threads. */
function drawStep(pen: Pen, span: Span, next: Span, x: number): void {
  pen.fillStyle = currentTheme().soft;
  const [from, to] = [Math.min(span.thread, next.thread), Math.max(span.thread, next.thread)];
  pen.fillRect(x - 0.5, AXIS + from * ROW + ROW / 2, 1, (to - from) * ROW);
}

function drawSpan(
  pen: Pen,
  { model, chosen, hovered }: View,
  span: Span,
  x: number,
  right: number,
): void {
  const y = AXIS + span.thread * ROW + 4;
  const width = right - x;
  pen.fillStyle = stateColour(span.state.state);
  pen.globalAlpha = chosen === null || chosen === span ? 1 : 0.75;
  pen.fillRect(x, y, Math.max(0.75, width - (width > 4 ? 0.75 : 0)), ROW - 9);
  pen.globalAlpha = 1;
  if (chosen === span || hovered === span) {
    pen.strokeStyle = currentTheme().focus;
    pen.lineWidth = 1.5;
    pen.strokeRect(x, y, Math.max(1, width - 1), ROW - 9);
  }
  if (width > 40) {
    pen.fillStyle = inkOn(stateColour(span.state.state));
    pen.fillText(fitted(pen, innermost(model, span), width - 8), x + 4, y + (ROW - 9) / 2 + 0.5);
  }
}
