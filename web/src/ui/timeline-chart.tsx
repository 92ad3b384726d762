/** The timeline of a critical path: zooming, panning, selecting. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Path } from '../data/source';
import { FrameKind } from '../engine/pack';
import { clean, count, percent, quantity } from '../format';
import type { Model } from '../model';
import { useCanvas } from './hooks';
import { stateColour } from './theme';
import {
  AXIS,
  draw,
  frameName,
  innermost,
  NAMES,
  ROW,
  type Span,
  spansOf,
  statesOf,
  threadName,
} from './timeline-picture';

/** Maximum number of rows of the table. */
const MOST = 300;

export function Chart({ model, path }: { model: Model; path: Path }) {
  const spans = useMemo(() => spansOf(model, path), [model, path]);
  const end = useMemo(() => spans.reduce((most, span) => Math.max(most, span.end), 1), [spans]);
  const [view, setView] = useState<[number, number]>([0, end]);
  const [hovered, setHovered] = useState<{ span: Span; x: number; y: number } | null>(null);
  const [chosen, setChosen] = useState<Span | null>(null);
  const held = useRef<{ x: number; view: [number, number] } | null>(null);
  const height = AXIS + path.threads.length * ROW;
  const states = useMemo(() => statesOf(spans), [spans]);

  /** Shows a range, kept within the ends and at least 10 ns long. */
  const go = (low: number, high: number) => {
    const width = Math.min(end, Math.max(10, high - low));
    const begin = Math.min(end - width, Math.max(0, low));
    setView([begin, begin + width]);
  };
  const zoom = (factor: number, at: number) => {
    const [low, high] = view;
    go(at - (at - low) * factor, at + (high - at) * factor);
  };
  const pan = (part: number) =>
    go(view[0] + part * (view[1] - view[0]), view[1] + part * (view[1] - view[0]));

  const canvas = useCanvas(model, [], (element) =>
    draw(element, { model, path, spans, view, chosen, hovered: hovered?.span ?? null }),
  );

  const timeAt = (event: MouseEvent) => {
    const area = canvas.current!.getBoundingClientRect();
    const part = (event.clientX - area.left - NAMES) / Math.max(1, area.width - NAMES);
    return view[0] + Math.min(1, Math.max(0, part)) * (view[1] - view[0]);
  };
  const spanAt = (event: MouseEvent): Span | null => {
    const area = canvas.current!.getBoundingClientRect();
    if (event.clientX - area.left < NAMES) return null;
    const thread = Math.floor((event.clientY - area.top - AXIS) / ROW);
    const time = timeAt(event);
    const near = ((view[1] - view[0]) / Math.max(1, area.width - NAMES)) * 2;
    const same = spans.filter(
      (span) => span.thread === thread && span.begin - near <= time && span.end + near >= time,
    );
    return same.find((span) => span.begin <= time && span.end >= time) ?? same[0] ?? null;
  };
  const move = (event: PointerEvent) => {
    if (held.current !== null && event.buttons === 1) {
      const [low, high] = held.current.view;
      const by =
        ((event.clientX - held.current.x) / Math.max(1, canvas.current!.clientWidth - NAMES)) *
        (high - low);
      go(low - by, high - by);
      return;
    }
    const span = spanAt(event);
    setHovered(span === null ? null : { span, x: event.clientX, y: event.clientY });
  };
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = (view[0] + view[1]) / 2;
    const letter = event.key.toLowerCase();
    const at = chosen === null ? -1 : spans.indexOf(chosen);
    const choose = (span: Span | undefined) => {
      if (span === undefined) return;
      setChosen(span);
      if (span.begin < view[0] || span.end > view[1]) {
        const width = view[1] - view[0];
        go(span.begin - width / 3, span.begin - width / 3 + width);
      }
    };
    if (letter === 'w' || event.key === '+') zoom(0.7, middle);
    else if (letter === 's' || event.key === '-') zoom(1 / 0.7, middle);
    else if (letter === 'a') pan(-0.2);
    else if (letter === 'd') pan(0.2);
    else if (event.key === 'ArrowLeft') pan(-0.1);
    else if (event.key === 'ArrowRight') pan(0.1);
    else if (event.key === 'ArrowUp') choose(spans[Math.max(0, at - 1)]);
    else if (event.key === 'ArrowDown') choose(spans[at + 1]);
    else if (event.key === 'Home') setView([0, end]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // A wheel handler that prevents scrolling must not be passive.
  const wheel = useRef<(event: WheelEvent) => void>(() => {});
  wheel.current = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, timeAt(event));
  };
  useEffect(() => {
    const element = canvas.current!;
    const listener = (event: WheelEvent) => wheel.current(event);
    element.addEventListener('wheel', listener, { passive: false });
    return () => element.removeEventListener('wheel', listener);
  }, [canvas]);
  const told = chosen ?? hovered?.span ?? null;
  return (
    <div class="chart">
      <div class="legend">
        {states.map(([state, time]) => (
          <span key={state}>
            <i style={{ background: stateColour(state) }} />
            {`${clean(state, 40)} ${quantity(time, 'ns')} (${percent(time, end)})`}
          </span>
        ))}
      </div>
      <div class="bar">
        <button type="button" onClick={() => zoom(0.5, (view[0] + view[1]) / 2)}>
          Zoom in (W)
        </button>
        <button type="button" onClick={() => zoom(2, (view[0] + view[1]) / 2)}>
          Zoom out (S)
        </button>
        <button type="button" onClick={() => pan(-0.3)} aria-label="Earlier (A)">
          ◀ (A)
        </button>
        <button type="button" onClick={() => pan(0.3)} aria-label="Later (D)">
          ▶ (D)
        </button>
        <button type="button" onClick={() => setView([0, end])}>
          All (Home)
        </button>
        <span class="hint" data-view>
          {`${quantity(view[0], 'ns')} – ${quantity(view[1], 'ns')} of ${quantity(end, 'ns')}`}
        </span>
      </div>
      <div
        class="threads"
        role="application"
        tabIndex={0}
        data-timeline
        aria-label="Timeline of threads. W and S zoom, A and D pan, Up and Down go from segment to segment."
        onKeyDown={key}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          style={{ height: `${height}px` }}
          onPointerDown={(event) => {
            held.current = { x: event.clientX, view };
            canvas.current!.setPointerCapture(event.pointerId);
          }}
          onPointerUp={(event) => {
            const start = held.current;
            held.current = null;
            if (start !== null && Math.abs(event.clientX - start.x) < 3) setChosen(spanAt(event));
          }}
          onPointerMove={move}
          onPointerLeave={() => setHovered(null)}
          onDblClick={(event) => zoom(0.4, timeAt(event))}
        />
      </div>
      <div class="segment" aria-live="polite">
        {told === null ? (
          <p class="hint">
            Point at a segment or click it for its wait reason and its stack. Ctrl and the wheel
            zoom, dragging pans.
          </p>
        ) : (
          <Told model={model} path={path} span={told} />
        )}
      </div>
      <details class="shares">
        <summary>Show as table</summary>
        <table class="plain">
          <caption class="unseen">Segments of the critical path</caption>
          <thead>
            <tr>
              <th scope="col">begin</th>
              <th scope="col">duration</th>
              <th scope="col">thread</th>
              <th scope="col">state</th>
              <th scope="col">innermost frame</th>
            </tr>
          </thead>
          <tbody>
            {spans.slice(0, MOST).map((span) => (
              <tr key={span.begin}>
                <td>{quantity(span.begin, 'ns')}</td>
                <td>{quantity(span.end - span.begin, 'ns')}</td>
                <td>{threadName(path, span.thread)}</td>
                <td>{clean(span.state.state, 40)}</td>
                <td>{innermost(model, span)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {spans.length > MOST ? (
          <p class="hint">{`${count(spans.length - MOST)} more segments`}</p>
        ) : null}
      </details>
    </div>
  );
}

const NOTES: Record<number, string> = {
  [FrameKind.Call]: 'system call',
  [FrameKind.Thread]: 'thread',
  [FrameKind.Reason]: 'reason',
  [FrameKind.Detail]: 'detail',
};

function Told({ model, path, span }: { model: Model; path: Path; span: Span }) {
  const { kind } = model.pack.contexts;
  return (
    <div>
      <p>
        <i class="swatch" style={{ background: stateColour(span.state.state) }} />
        <strong>{clean(span.state.state, 60)}</strong>
        {` for ${quantity(span.end - span.begin, 'ns')} at ${quantity(span.begin, 'ns')}, ${threadName(path, span.thread)}`}
      </p>
      <ol class="stack">
        {span.state.stack.map((frame) => (
          <li key={frame}>
            {frameName(model, frame)}
            {NOTES[kind[frame]] === undefined ? null : <small>{` ${NOTES[kind[frame]]}`}</small>}
          </li>
        ))}
        {span.state.stack.length === 0 ? <li class="hint">The stack is unknown.</li> : null}
      </ol>
    </div>
  );
}
