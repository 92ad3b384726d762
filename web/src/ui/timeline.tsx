/** The critical path of an execution as a timeline, and where it is in the trace. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Path } from '../data/source';
import { FrameKind } from '../engine/pack';
import { type State, stateOf } from '../engine/states';
import { clean, count, percent, quantity, ticks } from '../format';
import type { Model } from '../model';
import { momentOf, threadOf } from './executions';
import { fitted, prepared, setFont, useCanvas, useModel, useTopics } from './hooks';
import { currentTheme, stateColour } from './theme';

const ROW = 26;
const AXIS = 22;
const NAMES = 150;
/** Segments in the table for screen readers. */
const MOST = 300;

export function Timeline() {
  const model = useModel();
  useTopics(model, 'view');
  const dialog = useRef<HTMLDialogElement>(null);
  const id = model.shown.execution;
  const row = useMemo(() => (id === null ? -1 : model.pack.id.indexOf(id)), [id, model]);
  useEffect(() => {
    const element = dialog.current;
    if (element === null) return;
    if (id !== null && !element.open) element.showModal();
    if (id === null && element.open) element.close();
  }, [id]);
  return (
    <dialog
      ref={dialog}
      class="timeline"
      aria-label={`Execution ${id ?? ''}`}
      onClose={() => {
        if (model.shown.execution !== null) model.look({ execution: null });
      }}
    >
      {id === null ? null : <Content key={id} model={model} id={id} row={row} />}
    </dialog>
  );
}

function Content({ model, id, row }: { model: Model; id: number; row: number }) {
  const [path, setPath] = useState<Path | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    let isGone = false;
    if (row < 0) setError(`There is no execution ${id} here.`);
    else if (!model.pack.paths) setError('The paths of executions are not kept in this database.');
    else {
      model.source.path(id).then(
        (found) => {
          if (isGone) return;
          const { count: contexts } = model.pack.contexts;
          if (found.segments.some(({ context }) => context >= contexts))
            setError('The path of this execution is not sound.');
          else setPath(found);
        },
        (failed: Error) => !isGone && setError(failed.message),
      );
    }
    return () => {
      isGone = true;
    };
  }, [id, row, model]);
  return (
    <div>
      <header>
        <h2>{`Execution ${id}`}</h2>
        {/* The first button: focus is here when the dialog opens. */}
        <button
          type="button"
          class="close"
          aria-label="Close"
          onClick={(event) => event.currentTarget.closest('dialog')?.close()}
        >
          ×
        </button>
      </header>
      {row < 0 ? null : <Where model={model} row={row} />}
      {path !== null ? <Command text={path.command} /> : null}
      {error !== '' ? (
        <p class="error" role="alert">
          {error}
        </p>
      ) : path === null ? (
        <p class="hint">Asking for its critical path…</p>
      ) : (
        <Chart model={model} path={path} />
      )}
      {row < 0 ? null : <Metrics model={model} row={row} />}
    </div>
  );
}

function Where({ model, row }: { model: Model; row: number }) {
  const { pack } = model;
  const { path, host, label } = pack.sources[pack.source[row]];
  const duration = model.table.numbers[0];
  const facts: [string, string][] = [
    ['trace', clean(path, 300)],
    ['host', clean(host)],
    ['label', clean(label)],
    ['begins', momentOf(model, row)],
    [duration.label, quantity(duration.values[row], duration.unit)],
    ['thread', threadOf(model, row)],
    ...pack.texts.map(({ name, values, codes }): [string, string] => [
      clean(name, 40),
      codes[row] < values.length ? clean(values[codes[row]]) : '(none)',
    ]),
    ['in groups', ['A', 'B'].filter((_, side) => model.groups[side].has(row)).join(' and ') || 'none'],
  ];
  return (
    <dl class="where">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function Command({ text }: { text: string }) {
  const [said, setSaid] = useState('');
  if (text === '') return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('copied');
    } catch {
      // Without the right to do so, it is chosen, for the person to copy.
      const code = document.querySelector('.command code');
      if (code !== null) getSelection()?.selectAllChildren(code);
      setSaid('chosen: copy it with Ctrl+C');
    }
  };
  return (
    <p class="command">
      <code>{clean(text, 2000)}</code>
      <button type="button" onClick={copy}>
        Copy
      </button>
      <span class="hint" aria-live="polite">
        {said}
      </span>
    </p>
  );
}

interface Span {
  begin: number;
  end: number;
  thread: number;
  context: number;
  state: State;
}

function spansOf(model: Model, path: Path): Span[] {
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

function threadName(path: Path, thread: number): string {
  const { name, tid, host } = path.threads[thread];
  const hosts = new Set(path.threads.map((one) => one.host));
  return `${clean(name, 60)} ${tid}${hosts.size > 1 ? ` @${clean(host, 40)}` : ''}`;
}

function Chart({ model, path }: { model: Model; path: Path }) {
  const spans = useMemo(() => spansOf(model, path), [model, path]);
  const end = useMemo(() => spans.reduce((most, span) => Math.max(most, span.end), 1), [spans]);
  const [view, setView] = useState<[number, number]>([0, end]);
  const [hovered, setHovered] = useState<{ span: Span; x: number; y: number } | null>(null);
  const [chosen, setChosen] = useState<Span | null>(null);
  const held = useRef<{ x: number; view: [number, number] } | null>(null);
  const height = AXIS + path.threads.length * ROW;
  const states = useMemo(() => {
    const found = new Map<string, number>();
    for (const { state, begin, end } of spans) found.set(state.state, (found.get(state.state) ?? 0) + end - begin);
    return [...found].sort((one, other) => other[1] - one[1]);
  }, [spans]);

  /** Never beyond the ends, never less than a nanosecond. */
  const go = (low: number, high: number) => {
    const width = Math.min(end, Math.max(10, high - low));
    const begin = Math.min(end - width, Math.max(0, low));
    setView([begin, begin + width]);
  };
  const zoom = (factor: number, at: number) => {
    const [low, high] = view;
    go(at - (at - low) * factor, at + (high - at) * factor);
  };
  const pan = (part: number) => go(view[0] + part * (view[1] - view[0]), view[1] + part * (view[1] - view[0]));

  const canvas = useCanvas(model, [], (element) => {
    const ready = prepared(element);
    if (ready === null) return;
    const { pen, width } = ready;
    const theme = currentTheme();
    setFont(pen);
    const [low, high] = view;
    const inner = Math.max(1, width - NAMES);
    const xOf = (time: number) => NAMES + ((time - low) / (high - low)) * inner;
    path.threads.forEach((_, thread) => {
      const y = AXIS + thread * ROW;
      pen.fillStyle = theme.line;
      pen.fillRect(0, y + ROW - 1, width, 1);
      pen.fillStyle = theme.text;
      pen.fillText(fitted(pen, threadName(path, thread), NAMES - 12), 4, y + ROW / 2);
    });
    pen.save();
    pen.beginPath();
    pen.rect(NAMES, 0, inner, height);
    pen.clip();
    for (const mark of ticks(low, high, 'ns', Math.max(2, Math.floor(inner / 110)))) {
      const x = xOf(mark);
      pen.fillStyle = theme.line;
      pen.fillRect(x, 0, 1, height);
      pen.fillStyle = theme.soft;
      pen.fillText(quantity(mark, 'ns'), x + 3, AXIS / 2);
    }
    let lastX = -1;
    let lastRow = -1;
    spans.forEach((span, at) => {
      if (span.end < low || span.begin > high) return;
      const x = Math.max(NAMES - 2, xOf(span.begin));
      const right = Math.min(width + 2, xOf(span.end));
      const y = AXIS + span.thread * ROW + 4;
      const next = spans[at + 1];
      if (next !== undefined && next.thread !== span.thread) {
        // The path goes on in another thread.
        pen.fillStyle = theme.soft;
        const [from, to] = [Math.min(span.thread, next.thread), Math.max(span.thread, next.thread)];
        pen.fillRect(xOf(span.end) - 0.5, AXIS + from * ROW + ROW / 2, 1, (to - from) * ROW);
      }
      // Many that are narrower than a pixel are one.
      if (right - lastX < 0.3 && lastRow === span.thread) return;
      lastX = right;
      lastRow = span.thread;
      pen.fillStyle = stateColour(span.state.state);
      pen.globalAlpha = chosen === null || chosen === span ? 1 : 0.75;
      pen.fillRect(x, y, Math.max(0.75, right - x - (right - x > 4 ? 0.75 : 0)), ROW - 9);
      pen.globalAlpha = 1;
      if (chosen === span || hovered?.span === span) {
        pen.strokeStyle = theme.focus;
        pen.lineWidth = 1.5;
        pen.strokeRect(x, y, Math.max(1, right - x - 1), ROW - 9);
      }
      if (right - x > 40) {
        pen.fillStyle = '#ffffff';
        pen.fillText(fitted(pen, innermost(model, span), right - x - 8), x + 4, y + (ROW - 9) / 2 + 0.5);
      }
    });
    pen.restore();
  });

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
    const same = spans.filter((span) => span.thread === thread && span.begin - near <= time && span.end + near >= time);
    return same.find((span) => span.begin <= time && span.end >= time) ?? same[0] ?? null;
  };
  const move = (event: PointerEvent) => {
    if (held.current !== null && event.buttons === 1) {
      const [low, high] = held.current.view;
      const by = ((event.clientX - held.current.x) / Math.max(1, canvas.current!.clientWidth - NAMES)) * (high - low);
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
        aria-label="Timeline of threads. W and S zoom, A and D pan, up and down go from segment to segment."
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
      <div class="told" aria-live="polite">
        {told === null ? (
          <p class="hint">
            Point at a segment, or click one, for its reason and its stack. Ctrl and the wheel zoom, dragging pans.
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
              <th scope="col">at</th>
              <th scope="col">for</th>
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
        {spans.length > MOST ? <p class="hint">{`and ${count(spans.length - MOST)} more`}</p> : null}
      </details>
    </div>
  );
}

/** Timelines are always of the tree of calls. */
function frameName(model: Model, context: number): string {
  const { contexts, names } = model.pack;
  return clean(names[contexts.name[context]]);
}

function innermost(model: Model, span: Span): string {
  const { stack } = span.state;
  return stack.length === 0 ? span.state.state : frameName(model, stack[stack.length - 1]);
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
        {span.state.stack.length === 0 ? <li class="hint">no stack is known</li> : null}
      </ol>
    </div>
  );
}

function Metrics({ model, row }: { model: Model; row: number }) {
  return (
    <details class="shares" open>
      <summary>All figures</summary>
      <dl class="where">
        {model.table.numbers.map(({ key, label, unit, values }) => (
          <div key={key}>
            <dt>{clean(label, 60)}</dt>
            <dd>{quantity(values[row], unit)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
