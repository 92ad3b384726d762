/** A histogram with a brush. */

import { useMemo, useRef, useState } from 'preact/hooks';
import { type Brushed, between, edgesOf, moved, nudged, resized } from '../engine/brush';
import { type Interval, ROOM } from '../engine/group';
import { rowsOf } from '../engine/rows';
import { count, percent, quantity, span } from '../format';
import type { Side } from '../model';
import { drawHistogram, MARGIN } from './histogram-picture';
import { useCanvas, useModel, useTopics } from './hooks';

/** How near an edge is taken. */
const NEAR = 6;

type Grip = { kind: 'new' | 'move' | 'low' | 'high'; start: number; range: Interval | null; isMoved: boolean };

export function Histogram({ side, column }: { side: Side; column: number }) {
  const model = useModel();
  const { table } = model;
  const of = table.numbers[column];
  const grip = useRef<Grip | null>(null);
  const [cursor, setCursor] = useState('crosshair');

  const canvas = useCanvas(model, ['step'], (element) => drawHistogram(element, model, side, column));

  const placeAt = (event: PointerEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left - MARGIN) / (box.width - 2 * MARGIN)));
  };
  const gripAt = (place: number): Grip['kind'] => {
    const range = model.rangeOf(side, column);
    if (range === null) return 'new';
    const near = NEAR / Math.max(1, canvas.current!.clientWidth - 2 * MARGIN);
    const [low, high] = edgesOf(of, range);
    if (Math.abs(place - high) <= near) return 'high';
    if (Math.abs(place - low) <= near) return 'low';
    return place > low && place < high ? 'move' : 'new';
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.current!.setPointerCapture(event.pointerId);
    const start = placeAt(event);
    grip.current = { kind: gripAt(start), start, range: model.rangeOf(side, column), isMoved: false };
    model.hold(true);
  };
  const move = (event: PointerEvent) => {
    const place = placeAt(event);
    const held = grip.current;
    if (held === null) {
      const kind = gripAt(place);
      setCursor(kind === 'new' ? 'crosshair' : kind === 'move' ? 'grab' : 'ew-resize');
      return;
    }
    if (!held.isMoved && Math.abs(place - held.start) * canvas.current!.clientWidth < 3) return;
    held.isMoved = true;
    model.setRange(side, column, dragged(of, held, place), false);
  };
  const up = () => {
    const held = grip.current;
    grip.current = null;
    if (held === null) return;
    model.hold(false);
    if (held.isMoved) model.setRange(side, column, model.rangeOf(side, column), true);
    else if (held.kind === 'new' && held.range !== null) model.setRange(side, column, null, true);
  };
  const key = (event: KeyboardEvent) => {
    const step =
      event.key === 'ArrowRight' || event.key === 'ArrowUp'
        ? 1
        : event.key === 'ArrowLeft' || event.key === 'ArrowDown'
          ? -1
          : 0;
    const range = model.rangeOf(side, column);
    const set = (wanted: Interval | null) => model.setRange(side, column, wanted, true);
    if (event.key === 'Delete' || event.key === 'Backspace') set(null);
    else if (event.key === 'Home' || event.key === 'End') {
      // As far to an end as it goes, with the width that it has.
      set(moved(of, range ?? between(of, 0.25, 0.75), event.key === 'Home' ? -1 : 1));
    } else if (step !== 0 && !event.ctrlKey && !event.metaKey) {
      const by = (step * (event.altKey ? 0.2 : 1)) / of.axis.bins;
      set(range === null ? between(of, 0.25, 0.75) : nudged(of, range, by, event.shiftKey));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const name = `${of.label}, group ${'AB'[side]}`;
  return (
    <div class="histogram">
      <Brush side={side} column={column} name={name} onKey={key}>
        <canvas
          ref={canvas}
          aria-hidden="true"
          style={{ cursor }}
          onPointerEnter={() => table.orderOf(column)}
          onPointerDown={down}
          onPointerMove={move}
          onPointerUp={up}
          onPointerCancel={up}
          onLostPointerCapture={up}
        />
      </Brush>
      <Table side={side} column={column} />
    </div>
  );
}

/** The range when what is held has come to a place. */
function dragged(of: Brushed, { kind, start, range }: Grip, place: number): Interval {
  if (kind === 'new' || range === null) return between(of, start, place);
  return kind === 'move' ? moved(of, range, place - start) : resized(of, range, kind, place);
}

/** The part that the keyboard moves, told to those who do not see it. */
function Brush(props: {
  side: Side;
  column: number;
  name: string;
  onKey: (event: KeyboardEvent) => void;
  children: preact.ComponentChildren;
}) {
  const model = useModel();
  useTopics(model, 'step');
  const of = model.table.numbers[props.column];
  const range = model.rangeOf(props.side, props.column);
  const text = range === null ? 'all' : `${quantity(range.low, of.unit)} to ${quantity(range.high, of.unit)}`;
  const [low, high] = range === null ? [0, 1] : edgesOf(of, range);
  return (
    <div
      class="brush"
      role="slider"
      tabIndex={0}
      data-histogram={`${'ab'[props.side]} ${of.key}`}
      aria-label={props.name}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(50 * (low + high))}
      aria-valuetext={text}
      onKeyDown={props.onKey}
    >
      {props.children}
      {range === null ? null : (
        <span class="range" style={{ right: besideText(low, high) }} aria-hidden="true">
          {text}
        </span>
      )}
    </div>
  );
}

/** Where the text of a range ends: in the corner, or before a brush that is there. */
function besideText(low: number, high: number): string {
  return low > 0.35 && low + high > 1 ? `calc(${100 * (1 - low)}% + 10px)` : '8px';
}

/** The histogram in some lines, for screen readers. */
function Table({ side, column }: { side: Side; column: number }) {
  const model = useModel();
  useTopics(model, 'calm');
  const of = model.table.numbers[column];
  const rows = useMemo(() => rowsOf(of.axis, of.range), [of.axis, of.range]);
  const counts = model.groups[side].histograms.subarray(column * ROOM, column * ROOM + of.axis.bins);
  const sum = (begin: number, end: number) => counts.subarray(begin, end).reduce((all, one) => all + one, 0);
  const total = sum(0, of.axis.bins);
  return (
    <table class="unseen" data-rows={`${'ab'[side]} ${of.key}`}>
      <caption>{`${of.label}, group ${'AB'[side]}`}</caption>
      <thead>
        <tr>
          <th scope="col">{of.label}</th>
          <th scope="col">executions</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ begin, end, low, high }) => (
          <tr key={begin}>
            <th scope="row">{span(low, high, of.unit)}</th>
            <td>{`${count(sum(begin, end))} (${percent(sum(begin, end), total)})`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
