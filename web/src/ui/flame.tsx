/** The differential flame graph. */

import { useRef, useState } from 'preact/hooks';
import type { Boxes } from '../engine/flame';
import type { Model } from '../model';
import { RECORD } from '../verdict';
import { Crumbs, Facts, kindOf, spoken } from './facts';
import { Bar, foundText } from './flame-bar';
import { filterBy, keyIn } from './flame-keys';
import { type Drawn, draw, labelOf, ROW, totalOf } from './flame-picture';
import { Shares } from './flame-table';
import { Tip, useCanvas, useModel, useTopics } from './hooks';
import { WithoutTimes } from './unknown';

export function Flame() {
  const model = useModel();
  useTopics(model, 'view', 'calm');
  const drawn = useRef<Drawn | null>(null);
  const [rows, setRows] = useState(8);
  const [hovered, setHovered] = useState<number | null>(null);
  const [tip, setTip] = useState<{ x: number; y: number } | null>(null);
  const wasRows = useRef(rows);
  const graph = useRef<HTMLDivElement>(null);
  const revealed = useRef('');
  const canvas = useCanvas(model, ['sums', 'view'], (element) => {
    drawn.current = draw(element, model, hovered);
    const needed = drawn.current?.boxes.rows ?? 8;
    // While groups change the graph only grows: it would jump otherwise.
    if (needed > wasRows.current || (needed !== wasRows.current && model.behind === 0)) {
      wasRows.current = needed;
      setRows(needed);
    }
    const { cursor, shown } = model;
    const wanted = `${cursor} ${shown.zoom} ${shown.isFlipped}`;
    if (wanted !== revealed.current && needed <= rows && drawn.current !== null) {
      revealed.current = wanted;
      if (graph.current !== null)
        reveal(graph.current, drawn.current.boxes, cursor, shown.isFlipped);
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
      if (
        boxes.row[box] === row &&
        x >= boxes.x[box] &&
        x < boxes.x[box] + Math.max(boxes.width[box], 1 / now.width)
      ) {
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
  const isEmpty = model.behind === 0 && totalOf(model) === 0;
  const isCut = drawn.current?.boxes.isCut === true;
  return (
    <section class="panel flame" aria-label="Flame graph">
      <Bar />
      {isEmpty ? <EmptyGraph /> : null}
      <div class="graph" ref={graph}>
        <div
          id="flame"
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
          <canvas
            ref={canvas}
            aria-hidden="true"
            onPointerMove={move}
            onPointerLeave={leave}
            onClick={click}
          />
        </div>
      </div>
      {isCut ? <p class="hint">Deeper frames are not drawn; zoom in to see them.</p> : null}
      {model.hasTimes && !model.hasFunctions ? <WithoutFunctions /> : null}
      <p id="flame-said" class="unseen" aria-live="polite">
        {spoken(model, model.cursor)}
      </p>
      {tip !== null && hovered !== null ? (
        <FrameTip model={model} context={hovered} at={tip} />
      ) : null}
      {model.hasTimes ? (
        <>
          <Selected />
          <Shares boxes={drawn.current?.boxes ?? null} />
        </>
      ) : null}
      {shown.search !== '' ? (
        <p class="unseen" aria-live="polite">
          {foundText(model)}
        </p>
      ) : null}
    </section>
  );
}

/** Deep frames are below the visible part of the graph: scrolls until the cursor is visible. */
function reveal(graph: HTMLElement, boxes: Boxes, context: number, isFlipped: boolean): void {
  const box = boxes.context.indexOf(context);
  if (box < 0) return;
  const top = (isFlipped ? boxes.rows - 1 - boxes.row[box] : boxes.row[box]) * ROW;
  const isSeen = top >= graph.scrollTop && top + ROW <= graph.scrollTop + graph.clientHeight;
  if (!isSeen) graph.scrollTop = top - graph.clientHeight / 4;
}

/** Why the graph is empty. */
function EmptyGraph() {
  const model = useModel();
  const side = model.shown.mode === 'a' ? 0 : 1;
  const group = `Group ${'AB'[side]}`;
  if (model.groups[side].size === 0) return <p class="hint">{`${group} is empty.`}</p>;
  if (!model.hasTimes) return <WithoutTimes />;
  return <p class="hint">{`${group} spent no time in ${model.nameOf(model.shown.zoom)}.`}</p>;
}

function WithoutFunctions() {
  return (
    <p class="hint">
      Functions are unknown: the trace has no call stacks. Record them with <code>{RECORD}</code>
    </p>
  );
}

function FrameTip({
  model,
  context,
  at,
}: {
  model: Model;
  context: number;
  at: { x: number; y: number };
}) {
  useTopics(model, 'sums');
  return (
    <Tip at={at}>
      <strong>{labelOf(model, context)}</strong>
      <small>{` ${kindOf(model, context)}`}</small>
      <Facts model={model} context={context} />
    </Tip>
  );
}

/** The path of the frame at the cursor, and the actions on that frame. */
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
        <button
          type="button"
          disabled={cursor === 0}
          aria-pressed={isPinned}
          onClick={() => model.pin(cursor)}
        >
          {isPinned ? 'Unpin' : 'Pin'}
        </button>
        <button type="button" disabled={cursor === 0} onClick={() => filterBy(model)}>
          Filter by its time
        </button>
      </span>
    </div>
  );
}
