/** The differential flame graph. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { SURE } from '../engine/compare';
import { AROUND, type Boxes, layout, VANISHED } from '../engine/flame';
import { FrameKind } from '../engine/pack';
import { count, percent, quantity } from '../format';
import type { Model } from '../model';
import { Crumbs, Facts, kindOf, spoken } from './facts';
import { fitted, prepared, setFont, useCanvas, useModel, useTopics } from './hooks';
import { colourOf, currentTheme, type Theme } from './theme';

const ROW = 19;

/** Keeps what was drawn for as long as nothing changes, for the pointer and the keyboard. */
interface Drawn {
  boxes: Boxes;
  width: number;
}

/** Stripes for what only A has. */
const patterns = new Map<string, CanvasPattern | string>();
function stripes(pen: CanvasRenderingContext2D, theme: Theme): CanvasPattern | string {
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

function yOf(row: number, rows: number, isFlipped: boolean): number {
  return (isFlipped ? rows - 1 - row : row) * ROW;
}

/** Whether text on a colour is better dark. */
function inkOn(colour: string, theme: Theme): string {
  const found = /^#(..)(..)(..)$/.exec(colour);
  const [r, g, b] = found
    ? found.slice(1).map((one) => Number.parseInt(one, 16))
    : (colour.match(/\d+/g) ?? []).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#16202c' : theme.isDark ? '#eef2f6' : '#ffffff';
}

function draw(canvas: HTMLCanvasElement, model: Model, hovered: number | null): Drawn | null {
  const ready = prepared(canvas);
  if (ready === null) return null;
  const { pen, width, height } = ready;
  const { shown, layer, found } = model;
  const theme = currentTheme();
  const boxes = layout(layer, model.whole, { mode: shown.mode, zoom: shown.zoom, least: 0.4 / width });
  const { deviations, chance } = model.coloured;
  setFont(pen);
  const pins = new Set(shown.pins);
  let ink = '';
  for (let box = 0; box < boxes.count; box++) {
    const context = boxes.context[box];
    const x = boxes.x[box] * width;
    const w = boxes.width[box] * width;
    const y = yOf(boxes.row[box], boxes.rows, shown.isFlipped);
    const flag = boxes.flag[box];
    const isDim = found !== null && found[context] === 0;
    let colour: string;
    if (shown.mode === 'diff') colour = colourOf(deviations[context], chance[context] < SURE);
    else colour = theme.kinds[layer.tree.kind[context]] ?? theme.plain;
    pen.globalAlpha = isDim ? 0.28 : flag === AROUND ? 0.6 : 1;
    // A gap to the next one, unless there would be nothing left.
    const wide = w > 2 ? w - 1 : w;
    if (flag === VANISHED) {
      pen.fillStyle = theme.panel;
      pen.fillRect(x, y, wide, ROW - 1);
      pen.fillStyle = stripes(pen, theme);
      pen.fillRect(x, y, wide, ROW - 1);
      if (w > 3) {
        pen.strokeStyle = theme.less[1];
        pen.strokeRect(x + 0.5, y + 0.5, wide - 1, ROW - 2);
      }
      colour = theme.panel;
    } else {
      pen.fillStyle = colour;
      pen.fillRect(x, y, wide, ROW - 1);
    }
    if (shown.mode === 'diff' && w > 5 && isMarked(layer.tree.kind[context]) && flag !== VANISHED) {
      // What is no function: an edge in the colour of its kind.
      pen.fillStyle = edgeOf(layer.tree.kind[context], theme);
      pen.fillRect(x, y, 3, ROW - 1);
    }
    if (w > 26) {
      ink = flag === VANISHED ? theme.text : inkOn(colour, theme);
      if (isDim || flag === AROUND) {
        // What is faint has a ground like the panel's.
        ink = isDim ? theme.soft : theme.text;
        pen.globalAlpha = 1;
      }
      const text = fitted(pen, labelOf(model, context), w - 10);
      if (flag === VANISHED && text !== '') {
        pen.fillStyle = theme.panel;
        pen.globalAlpha = isDim ? 0.28 : 0.85;
        pen.fillRect(x + 3, y + 2, Math.min(wide - 6, pen.measureText(text).width + 6), ROW - 5);
        pen.globalAlpha = isDim ? 0.28 : 1;
      }
      pen.fillStyle = ink;
      pen.fillText(text, x + 6, y + ROW / 2);
    }
    pen.globalAlpha = 1;
    if (found !== null && !isDim && w > 1) frameOf(pen, x, y, wide, theme.focus, 1);
    if (pins.has(context) && w > 2) {
      pen.fillStyle = theme.focus;
      pen.beginPath();
      pen.moveTo(x + wide, y);
      pen.lineTo(x + wide - Math.min(8, w), y);
      pen.lineTo(x + wide, y + 8);
      pen.fill();
    }
  }
  ghostsAround(pen, model, boxes, width);
  for (let box = 0; box < boxes.count; box++) {
    const isCursor = boxes.context[box] === model.cursor && document.activeElement === canvas.parentElement;
    if (boxes.context[box] !== hovered && !isCursor) continue;
    const y = yOf(boxes.row[box], boxes.rows, shown.isFlipped);
    frameOf(pen, boxes.x[box] * width, y, Math.max(2, boxes.width[box] * width - 1), theme.focus, isCursor ? 2 : 1.25);
  }
  if (boxes.total === 0) {
    pen.fillStyle = theme.soft;
    const group = shown.mode === 'a' ? 'A' : 'B';
    const text =
      model.groups[shown.mode === 'a' ? 0 : 1].size === 0
        ? `Group ${group} is empty.`
        : `Group ${group} was never here.`;
    pen.fillText(text, 8, Math.min(height - 10, yOf(0, 1, false) + ROW * 1.6));
  }
  return { boxes, width };
}

/** In the boxes around what vanished: the part of their width that is A's only. */
function ghostsAround(pen: CanvasRenderingContext2D, model: Model, boxes: Boxes, width: number): void {
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
    for (let row = boxes.row[box] - 1; row >= last; row--) {
      pen.fillRect(boxes.x[box] * width, yOf(row, boxes.rows, shown.isFlipped) + ROW - 6, w > 2 ? w - 1 : w, 5);
    }
  }
  pen.globalAlpha = 1;
}

function frameOf(pen: CanvasRenderingContext2D, x: number, y: number, w: number, colour: string, line: number): void {
  pen.strokeStyle = colour;
  pen.lineWidth = line;
  pen.strokeRect(x + line / 2, y + line / 2, Math.max(0.5, w - line), ROW - 1 - line);
  pen.lineWidth = 1;
}

const EDGES: Record<number, string> = {
  [FrameKind.Call]: '#b08a1e',
  [FrameKind.Thread]: '#8460ad',
  [FrameKind.Reason]: '#b4483c',
  [FrameKind.Detail]: '#7c7c74',
};

/** Frames of functions, and the root, are nothing special. */
function isMarked(kind: number): boolean {
  return kind !== FrameKind.Function && kind !== FrameKind.Root;
}

function edgeOf(kind: number, theme: Theme): string {
  return EDGES[kind] ?? theme.soft;
}

function labelOf(model: Model, context: number): string {
  return context === 0 ? 'all executions' : model.nameOf(context);
}

export function Flame() {
  const model = useModel();
  useTopics(model, 'view', 'calm');
  const drawn = useRef<Drawn | null>(null);
  const [rows, setRows] = useState(8);
  const [hovered, setHovered] = useState<number | null>(null);
  const [tip, setTip] = useState<{ x: number; y: number } | null>(null);
  const wasRows = useRef(rows);
  const canvas = useCanvas(model, ['sums', 'view'], (element) => {
    drawn.current = draw(element, model, hovered);
    const needed = drawn.current?.boxes.rows ?? 8;
    // While groups change the graph only grows: it would jump otherwise.
    if (needed > wasRows.current || (needed !== wasRows.current && model.behind === 0)) {
      wasRows.current = needed;
      setRows(needed);
    }
  });
  const boxAt = (event: MouseEvent): number | null => {
    const now = drawn.current;
    if (now === null) return null;
    const area = canvas.current!.getBoundingClientRect();
    const x = (event.clientX - area.left) / area.width;
    const line = Math.floor((event.clientY - area.top) / ROW);
    const row = model.shown.isFlipped ? now.boxes.rows - 1 - line : line;
    for (let box = now.boxes.count - 1; box >= 0; box--) {
      const { boxes } = now;
      if (boxes.row[box] === row && x >= boxes.x[box] && x < boxes.x[box] + Math.max(boxes.width[box], 1 / now.width)) {
        return boxes.context[box];
      }
    }
    return null;
  };
  const move = (event: PointerEvent) => {
    const found = boxAt(event);
    setHovered(found);
    setTip(found === null ? null : { x: event.clientX, y: event.clientY });
  };
  const leave = () => {
    setHovered(null);
    setTip(null);
  };
  const click = (event: MouseEvent) => {
    const found = boxAt(event);
    if (found === null) return;
    if (event.shiftKey) model.pin(found);
    else model.zoomTo(found);
  };
  const { shown } = model;
  const isCut = drawn.current?.boxes.isCut === true;
  return (
    <section class="panel flame" aria-label="Flame graph">
      <Bar />
      <div class="graph">
        <div
          class="boxes"
          role="application"
          tabIndex={0}
          data-flame
          aria-label="Flame graph of calling contexts. Arrows move, Enter zooms in, Escape zooms out, p pins, f filters."
          aria-describedby="flame-said"
          style={{ height: `${rows * ROW}px` }}
          onFocus={() => model.look({})}
          onBlur={() => model.look({})}
          onKeyDown={(event) => keyIn(event, model, drawn.current)}
        >
          <canvas ref={canvas} aria-hidden="true" onPointerMove={move} onPointerLeave={leave} onClick={click} />
        </div>
      </div>
      {isCut ? <p class="hint">Deeper frames are left out; zoom in to see them.</p> : null}
      <p id="flame-said" class="unseen" aria-live="polite">
        {spoken(model, model.cursor)}
      </p>
      {tip !== null && hovered !== null ? <Tip model={model} context={hovered} at={tip} /> : null}
      <Selected />
      <Shares boxes={drawn.current?.boxes ?? null} />
      {shown.search !== '' ? (
        <p class="unseen" aria-live="polite">
          {foundText(model)}
        </p>
      ) : null}
    </section>
  );
}

/** Keys that move the cursor between boxes. */
export function keyIn(event: KeyboardEvent, model: Model, drawn: Drawn | null): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { boxes } = drawn ?? {};
  if (boxes === undefined) return;
  const at = boxes.context.indexOf(model.cursor);
  const { tree } = model.layer;
  const beside = (step: number) => {
    const same = [...boxes.context.keys()]
      .filter((box) => boxes.row[box] === boxes.row[at])
      .sort((one, other) => boxes.x[one] - boxes.x[other]);
    return same[same.indexOf(at) + step];
  };
  const inside = () => {
    const inner = [...boxes.context.keys()].filter(
      (box) => boxes.context[box] !== 0 && tree.parent[boxes.context[box]] === model.cursor,
    );
    return inner.sort((one, other) => boxes.width[other] - boxes.width[one])[0];
  };
  const outer = () => boxes.context.indexOf(tree.parent[model.cursor]);
  const { isFlipped } = model.shown;
  let next: number | undefined;
  if (event.key === 'ArrowLeft') next = beside(-1);
  else if (event.key === 'ArrowRight') next = beside(1);
  else if (event.key === 'ArrowDown') next = isFlipped ? outer() : inside();
  else if (event.key === 'ArrowUp') next = isFlipped ? inside() : outer();
  else if (event.key === 'Home') next = 0;
  else if (event.key === 'Enter') model.zoomTo(model.cursor);
  else return;
  event.preventDefault();
  if (at < 0) next = boxes.context.indexOf(model.shown.zoom);
  if (next !== undefined && next >= 0) {
    model.cursor = boxes.context[next];
    model.look({});
  }
}

/** Zooming from anywhere: in to the widest inside or the cursor, out, and beside. */
export function steer(model: Model, key: 'w' | 'a' | 's' | 'd'): void {
  const { layer, shown } = model;
  const { tree, firstChild, children } = layer;
  const means = shown.mode === 'a' ? model.whole.meanA : model.whole.meanB;
  if (key === 's') {
    model.zoomTo(tree.parent[shown.zoom]);
    return;
  }
  const within = (of: number) =>
    [...children.subarray(firstChild[of], firstChild[of + 1])].filter((at) => means[at] > 0);
  if (key === 'w') {
    if (model.cursor !== shown.zoom) {
      model.zoomTo(model.cursor);
      return;
    }
    const widest = within(shown.zoom).sort((one, other) => means[other] - means[one])[0];
    if (widest !== undefined) model.zoomTo(widest);
    return;
  }
  if (shown.zoom === 0) return;
  const beside = within(tree.parent[shown.zoom]);
  const next = beside[beside.indexOf(shown.zoom) + (key === 'd' ? 1 : -1)];
  if (next !== undefined) model.zoomTo(next);
}

function foundText(model: Model): string {
  const { found, layer, shown } = model;
  if (found === null) return '';
  const means = shown.mode === 'a' ? model.whole.meanA : model.whole.meanB;
  let contexts = 0;
  let sum = 0;
  const isWithin = new Uint8Array(found.length);
  for (let at = 1; at < found.length; at++) {
    const isInside = isWithin[layer.tree.parent[at]] === 1;
    if (found[at] === 1) {
      contexts++;
      if (!isInside) sum += means[at];
    }
    isWithin[at] = isInside || found[at] === 1 ? 1 : 0;
  }
  return `${count(contexts)} found, ${percent(sum, means[0])} of the time in ${shown.mode === 'a' ? 'A' : 'B'}`;
}

function Bar() {
  const model = useModel();
  useTopics(model, 'view', 'calm');
  const { shown } = model;
  const mode = (of: 'diff' | 'a' | 'b', text: string) => (
    <button type="button" aria-pressed={shown.mode === of} onClick={() => model.setMode(of)}>
      {text}
    </button>
  );
  return (
    <div class="bar">
      <h2>Where the time goes</h2>
      <fieldset class="choice">
        <legend class="unseen">What is shown</legend>
        {mode('diff', 'Difference')}
        {mode('a', 'A')}
        {mode('b', 'B')}
      </fieldset>
      <input
        type="search"
        id="search"
        placeholder="Search frames  ( / )"
        aria-label="Search frames"
        value={shown.search}
        onInput={(event) => model.setSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          model.setSearch('');
          event.currentTarget.blur();
          event.stopPropagation();
        }}
      />
      <span class="gap" />
      {shown.mode === 'diff' && !shown.isInverted ? (
        <label class="check" title="Colours tell about time in a frame itself, not within it">
          <input
            type="checkbox"
            checked={shown.part === 'own'}
            onChange={(event) => model.setPart(event.currentTarget.checked ? 'own' : 'whole')}
          />
          colour own time
        </label>
      ) : null}
      <label class="check" title="From the innermost frames outwards: who called them">
        <input
          type="checkbox"
          checked={shown.isInverted}
          onChange={(event) => model.setInverted(event.currentTarget.checked)}
        />
        invert
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={shown.isFlipped}
          onChange={(event) => model.look({ isFlipped: event.currentTarget.checked })}
        />
        root below
      </label>
      <div class="second">
        <Legend />
        {shown.search !== '' ? (
          <span class="hint" data-found>
            {foundText(model)}
          </span>
        ) : null}
      </div>
    </div>
  );
}

function Legend() {
  const model = useModel();
  const theme = currentTheme();
  if (model.shown.mode !== 'diff') {
    const kinds: [number, string][] = [
      [FrameKind.Function, 'function'],
      [FrameKind.Call, 'system call'],
      [FrameKind.Thread, 'thread'],
      [FrameKind.Reason, 'reason'],
      [FrameKind.Detail, 'detail'],
    ];
    return (
      <div class="legend">
        {kinds.map(([kind, name]) => (
          <span key={kind}>
            <i style={{ background: theme.kinds[kind] }} />
            {name}
          </span>
        ))}
      </div>
    );
  }
  return (
    <div
      class="legend"
      title="Difference by the standard deviation of both groups. Grey: a corrected chance of 1 % or more."
    >
      <span>width: mean of B</span>
      <span class="scale">
        less in B
        {[-3, -2, -1].map((at) => (
          <i key={at} style={{ background: colourOf(at, true) }} />
        ))}
        <i style={{ background: theme.plain }} />
        {[1, 2, 3].map((at) => (
          <i key={at} style={{ background: colourOf(at, true) }} />
        ))}
        more in B
      </span>
      <span>(±3 deviations; grey: may be chance)</span>
      <span>
        <i class="striped" />
        only in A
      </span>
    </div>
  );
}

function Tip({ model, context, at }: { model: Model; context: number; at: { x: number; y: number } }) {
  useTopics(model, 'sums');
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const { offsetWidth, offsetHeight } = element;
    element.style.left = `${Math.max(4, Math.min(at.x + 14, innerWidth - offsetWidth - 8))}px`;
    const isBelow = at.y + 18 + offsetHeight < innerHeight;
    element.style.top = `${isBelow ? at.y + 18 : Math.max(4, at.y - offsetHeight - 10)}px`;
  });
  return (
    <div class="tip" ref={box} role="tooltip">
      <strong>{labelOf(model, context)}</strong>
      <small>{` ${kindOf(model, context)}`}</small>
      <Facts model={model} context={context} />
    </div>
  );
}

/** What is zoomed to or pointed at, with what can be done with it. */
function Selected() {
  const model = useModel();
  useTopics(model, 'view', 'calm');
  const { cursor, shown } = model;
  const isPinned = shown.pins.includes(cursor);
  return (
    <div class="selected">
      <Crumbs model={model} context={cursor} />
      <span class="actions">
        {cursor !== shown.zoom ? (
          <button type="button" onClick={() => model.zoomTo(cursor)}>
            Zoom in
          </button>
        ) : null}
        {shown.zoom !== 0 ? (
          <button type="button" onClick={() => model.zoomTo(model.layer.tree.parent[shown.zoom])}>
            Zoom out
          </button>
        ) : null}
        <button type="button" disabled={cursor === 0} aria-pressed={isPinned} onClick={() => model.pin(cursor)}>
          {isPinned ? 'Unpin' : 'Pin'}
        </button>
        <button type="button" disabled={cursor === 0} onClick={() => filterBy(model)}>
          Filter by time in it
        </button>
      </span>
    </div>
  );
}

/** Adds a histogram of the time in the context at the cursor. */
export function filterBy(model: Model): void {
  if (model.cursor === 0) return;
  const key = `${model.shown.isInverted ? 'i' : 'c'}.${model.cursor}`;
  const column = model.addContext(key);
  model.look({});
  if (column >= 0) {
    requestAnimationFrame(() => {
      const found = document.querySelector<HTMLElement>(`[data-histogram="b ${key}"]`);
      found?.scrollIntoView({ block: 'nearest' });
      found?.focus();
    });
  }
}

/** The graph as a table, for those who do not see it. */
function Shares({ boxes }: { boxes: Boxes | null }) {
  const model = useModel();
  const [isShown, setShown] = useState(false);
  const wide =
    boxes === null
      ? []
      : [...boxes.context.keys()].sort(
          (one, other) => boxes.width[other] - boxes.width[one] || boxes.row[one] - boxes.row[other],
        );
  return (
    <details class="shares" onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>Show as table</summary>
      {isShown && boxes !== null ? (
        <table class="plain">
          <caption class="unseen">The widest boxes of the flame graph</caption>
          <thead>
            <tr>
              <th scope="col">frame</th>
              <th scope="col">kind</th>
              <th scope="col">depth</th>
              <th scope="col">A</th>
              <th scope="col">B</th>
              <th scope="col">differ</th>
            </tr>
          </thead>
          <tbody>
            {wide.slice(0, 100).map((box) => {
              const context = boxes.context[box];
              return (
                <tr key={context}>
                  <td>
                    <button type="button" class="quiet" onClick={() => model.zoomTo(context)}>
                      {labelOf(model, context)}
                    </button>
                  </td>
                  <td>{kindOf(model, context)}</td>
                  <td>{boxes.row[box]}</td>
                  <td>{quantity(model.whole.meanA[context], 'ns')}</td>
                  <td>{quantity(model.whole.meanB[context], 'ns')}</td>
                  <td>{model.whole.chance[context] < SURE ? 'yes' : 'not surely'}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      ) : null}
    </details>
  );
}
