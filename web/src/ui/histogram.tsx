/** A histogram of both groups, each with a brush: A in the upper half, B in the lower one. */

import type { RefObject } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { type Brushed, between, edgesOf, moved, nudged, type Part, resized } from '../engine/brush';
import { type Interval, ROOM } from '../engine/group';
import { boundsOf, rowsOf } from '../engine/rows';
import { sumOf } from '../engine/shares';
import { clean, count, percent, quantity, span } from '../format';
import type { Model, Side } from '../model';
import { drawHistogram, LEFT, RIGHT } from './histogram-picture';
import { Tip, useCanvas, useModel, useTopics } from './hooks';

/**
 * Pixels on each side of an edge that take the edge: 24 in all, the least size of a pointer target.
 */
const NEAR = 12;
/** Pixels of movement below which a press is a click. */
const CLICK = 3;

const SIDES = [0, 1] as const;

type Grip = {
  kind: 'new' | 'move' | 'low' | 'high';
  start: number;
  range: Interval | null;
  isMoved: boolean;
};

/** The lane and the part of its brush that the keyboard moves. */
interface Focus {
  side: Side;
  part: Part;
}

export function Histogram({ column }: { column: number }) {
  const model = useModel();
  useTopics(model, 'step');
  const of = model.table.numbers[column];
  // One tab stop for each histogram: Up and Down go from one lane to the other.
  const [focus, setFocus] = useState<Focus>({ side: 1, part: 'whole' });
  const [hasFocus, setHasFocus] = useState(false);
  const [pointer, setPointer] = useState<{ x: number; y: number; bin: number } | null>(null);
  // Each rendering draws it, and each step renders.
  const canvas = useCanvas(model, [], (element) =>
    drawHistogram(element, model, column, hasFocus && focus.part !== 'whole' ? focus : null),
  );
  const ranges = SIDES.map((side) => model.rangeOf(side, column));
  // The same element at each rendering, so that steps do not render the table.
  const table = useMemo(() => <Table column={column} />, [column]);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot lay out its children on top of each other
    <div class="histogram" role="group" aria-label={clean(of.label, 60)}>
      <div class="picture">
        <canvas ref={canvas} aria-hidden="true" />
        {SIDES.map((side) => (
          <Lane
            key={side}
            side={side}
            column={column}
            canvas={canvas}
            focus={focus}
            onFocus={(next) => {
              setFocus(next);
              setHasFocus(true);
            }}
            onBlur={() => setHasFocus(false)}
            onPoint={setPointer}
          />
        ))}
      </div>
      {ranges.some((range) => range !== null) ? (
        <p class="ranges" aria-hidden="true">
          {SIDES.map((side) => (
            <span key={side} class={`of-${'ab'[side]}`}>
              {ranges[side] === null ? '' : `${'AB'[side]} ${rangeText(of, ranges[side])}`}
            </span>
          ))}
        </p>
      ) : null}
      {pointer === null ? null : <BinTip model={model} column={column} at={pointer} />}
      {table}
    </div>
  );
}

function rangeText({ unit }: { unit: string }, { low, high }: Interval): string {
  return `${quantity(low, unit)} to ${quantity(high, unit)}`;
}

interface LaneProps {
  side: Side;
  column: number;
  canvas: RefObject<HTMLCanvasElement | null>;
  focus: Focus;
  onFocus: (focus: Focus) => void;
  onBlur: () => void;
  onPoint: (at: { x: number; y: number; bin: number } | null) => void;
}

const PARTS: Part[] = ['whole', 'low', 'high'];
const PART_NAMES: Record<Part, string> = { whole: '', low: 'lower edge: ', high: 'upper edge: ' };

/** The half of a histogram that brushes one group. */
function Lane({ side, column, canvas, focus, onFocus, onBlur, onPoint }: LaneProps) {
  const model = useModel();
  const of = model.table.numbers[column];
  const grip = useRef<Grip | null>(null);
  const [cursor, setCursor] = useState('crosshair');

  const innerWidth = () => Math.max(1, canvas.current!.clientWidth - LEFT - RIGHT);
  const placeAt = (event: PointerEvent): number => {
    const box = canvas.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / innerWidth()));
  };
  const gripAt = (place: number): Grip['kind'] => {
    const range = model.rangeOf(side, column);
    if (range === null) return 'new';
    const [low, high] = edgesOf(of, range);
    const near = NEAR / innerWidth();
    // A third of a narrow brush remains to move it.
    const within = Math.min(near, (high - low) / 3);
    const isNear = (edge: number, inwards: number) =>
      Math.abs(place - edge) <= ((place - edge) * inwards > 0 ? within : near);
    if (isNear(high, -1)) return 'high';
    if (isNear(low, 1)) return 'low';
    return place > low && place < high ? 'move' : 'new';
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    const start = placeAt(event);
    grip.current = {
      kind: gripAt(start),
      start,
      range: model.rangeOf(side, column),
      isMoved: false,
    };
    model.hold(true);
  };
  const move = (event: PointerEvent) => {
    const place = placeAt(event);
    const { bins } = of.axis;
    onPoint({
      x: event.clientX,
      y: event.clientY,
      bin: Math.min(bins - 1, Math.floor(place * bins)),
    });
    const held = grip.current;
    if (held === null) {
      const kind = gripAt(place);
      setCursor(kind === 'new' ? 'crosshair' : kind === 'move' ? 'grab' : 'ew-resize');
      return;
    }
    if (!held.isMoved && Math.abs(place - held.start) * innerWidth() < CLICK) return;
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
    if (event.ctrlKey || event.metaKey) return;
    const range = model.rangeOf(side, column);
    const set = (wanted: Interval | null) => model.setRange(side, column, wanted, true);
    // Shift moves the upper edge, whichever part is chosen.
    const part = event.shiftKey ? 'high' : focus.part;
    const start = between(of, 0.25, 0.75);
    if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const lanes = (
        event.currentTarget as HTMLElement
      ).parentElement?.querySelectorAll<HTMLElement>('[role=slider]');
      lanes?.[event.key === 'ArrowUp' ? 0 : 1]?.focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      onFocus({ side, part: PARTS[(PARTS.indexOf(focus.part) + 1) % PARTS.length] });
    } else if (event.key === 'Delete' || event.key === 'Backspace') set(null);
    else if (event.key === 'Home' || event.key === 'End') {
      const by = event.key === 'Home' ? -1 : 1;
      set(part === 'whole' ? moved(of, range ?? start, by) : nudged(of, range ?? start, by, part));
    } else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      const by = ((event.key === 'ArrowRight' ? 1 : -1) * (event.altKey ? 0.2 : 1)) / of.axis.bins;
      set(range === null ? start : nudged(of, range, by, part));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const range = model.rangeOf(side, column);
  const [low, high] = range === null ? [0, 1] : edgesOf(of, range);
  const isCurrent = focus.side === side;
  const part = isCurrent ? focus.part : 'whole';
  const place = part === 'low' ? low : part === 'high' ? high : (low + high) / 2;
  return (
    <div
      class={`lane side-${'ab'[side]}`}
      style={{ cursor }}
      role="slider"
      tabIndex={isCurrent ? 0 : -1}
      data-histogram={`${'ab'[side]} ${of.key}`}
      aria-label={`${clean(of.label, 60)}, group ${'AB'[side]}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(100 * place)}
      aria-valuetext={range === null ? 'all' : PART_NAMES[part] + rangeText(of, range)}
      onKeyDown={key}
      onFocus={() => onFocus({ side, part: isCurrent ? focus.part : 'whole' })}
      onBlur={onBlur}
      onPointerEnter={() => model.table.orderOf(column)}
      onPointerDown={down}
      onPointerMove={move}
      onPointerUp={up}
      onPointerCancel={up}
      onLostPointerCapture={up}
      onPointerLeave={() => onPoint(null)}
    />
  );
}

/** The range after a drag to a position. */
function dragged(of: Brushed, { kind, start, range }: Grip, place: number): Interval {
  if (kind === 'new' || range === null) return between(of, start, place);
  return kind === 'move' ? moved(of, range, place - start) : resized(of, range, kind, place);
}

/**
 * Counts of a column's bins in a group. They count executions that pass all other filters of the
 * group.
 */
function countsOf(model: Model, side: Side, column: number): Int32Array {
  const { bins } = model.table.numbers[column].axis;
  return model.groups[side].histograms.subarray(column * ROOM, column * ROOM + bins);
}

/** `3 executions, 12 % of 25`. */
function binText(counts: Int32Array, bin: number): string {
  const total = sumOf(counts);
  const noun = counts[bin] === 1 ? 'execution' : 'executions';
  return `${count(counts[bin])} ${noun}, ${percent(counts[bin], total)} of ${count(total)}`;
}

/** The range of the bin below the pointer, with the counts and shares of both groups. */
function BinTip({
  model,
  column,
  at,
}: {
  model: Model;
  column: number;
  at: { x: number; y: number; bin: number };
}) {
  const { axis, range, unit } = model.table.numbers[column];
  const { low, high } = boundsOf(axis, range, at.bin, at.bin + 1);
  if (range.known === 0 || low > high) return null;
  return (
    <Tip at={at}>
      <strong>{span(low, high, unit)}</strong>
      {SIDES.map((side) => (
        <div key={side} class={`of-${'ab'[side]}`}>
          {`${'AB'[side]}: ${binText(countsOf(model, side, column), at.bin)}`}
        </div>
      ))}
    </Tip>
  );
}

/** The histogram in a few lines, for screen readers. */
function Table({ column }: { column: number }) {
  const model = useModel();
  useTopics(model, 'calm');
  const of = model.table.numbers[column];
  const rows = useMemo(() => rowsOf(of.axis, of.range), [of.axis, of.range]);
  const cells = SIDES.map((side) => {
    const counts = countsOf(model, side, column);
    const sum = (begin: number, end: number) => sumOf(counts.subarray(begin, end));
    const total = sumOf(counts);
    return rows.map(
      ({ begin, end }) => `${count(sum(begin, end))} (${percent(sum(begin, end), total)})`,
    );
  });
  const label = clean(of.label, 60);
  return (
    // Tables ignore a small width; the box around clips it.
    <div class="unseen">
      <table data-rows={of.key}>
        <caption>{`${label}, executions by group`}</caption>
        <thead>
          <tr>
            <th scope="col">{label}</th>
            <th scope="col">A</th>
            <th scope="col">B</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ begin, low, high }, at) => (
            <tr key={begin}>
              <th scope="row">{span(low, high, of.unit)}</th>
              <td>{cells[0][at]}</td>
              <td>{cells[1][at]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
