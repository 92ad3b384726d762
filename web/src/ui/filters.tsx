/**
 * The filters: a histogram for each metric and a list for each text, with both groups in each.
 * Heights and lengths of bars are shares of a group, on one scale for both.
 */

import { useMemo, useState } from 'preact/hooks';
import { sumOf } from '../engine/shares';
import type { CodeColumn } from '../engine/table';
import { clean, count, middle, percent } from '../format';
import type { Model } from '../model';
import { Histogram } from './histogram';
import { useModel, useTopics } from './hooks';

const SIDES = [0, 1] as const;

/**
 * Sorts keys of filters by the order of the model; new columns come last, added times in contexts
 * first.
 */
function inOrder(model: Model, keys: string[]): string[] {
  const place = new Map(model.order.map((key, at) => [key, at]));
  const added = (key: string) => (/^[ci]\./.test(key) ? -1 : keys.length);
  const placeOf = (key: string) => (added(key) < 0 ? -1 : (place.get(key) ?? keys.length));
  return keys.sort((one, other) => placeOf(one) - placeOf(other));
}

export function Filters() {
  const model = useModel();
  useTopics(model, 'calm', 'view', 'figures');
  const [isAll, setAll] = useState(false);
  const { numbers, codes } = model.table;
  const isPlain = (column: number) => {
    const { range, key } = numbers[column];
    const isFiltered = SIDES.some((side) => model.rangeOf(side, column) !== null);
    return (
      !isFiltered && key !== 'm.duration_ns' && (range.known === 0 || range.low === range.high)
    );
  };
  const columns = new Map<string, { column: number; isCode: boolean }>();
  numbers.forEach(({ key }, column) => {
    if (isAll || !isPlain(column)) columns.set(key, { column, isCode: false });
  });
  codes.forEach(({ key }, column) => {
    const isFiltered = SIDES.some((side) => model.groups[side].allowed.has(column));
    if (isFiltered || hasChoice(model.totalsOf(column))) columns.set(key, { column, isCode: true });
  });
  const keys = inOrder(model, [...columns.keys()]);
  const left = [...numbers.keys()].filter(isPlain).length;
  const isOrdered =
    keys.join('\n') ===
    model
      .bestOrder()
      .filter((key) => columns.has(key))
      .join('\n');
  if (!model.hasFilters) return <section id="filters" hidden />;
  return (
    <section id="filters" class="panel filters" aria-label="Filters" tabIndex={-1}>
      <div class="bar">
        <h2>Filters</h2>
        {isOrdered || !model.isSettled ? null : (
          <button
            type="button"
            onClick={() => model.orderFilters()}
            title="Put the filters that separate the groups best first"
          >
            Sort
          </button>
        )}
        <button
          type="button"
          aria-pressed={model.shown.isTall}
          title="Draw the heights of all bars on a logarithmic scale"
          onClick={() => model.look({ isTall: !model.shown.isTall })}
        >
          log heights
        </button>
      </div>
      <p class="hint">
        Bars are percentages of each group, on one scale. Drag in the upper half of a histogram to
        filter A, in the lower half to filter B.
      </p>
      <div class="rows">
        {keys.map((key) => {
          const { column, isCode } = columns.get(key)!;
          return isCode ? (
            <Checklist key={key} column={column} />
          ) : (
            <Row key={key} column={column} />
          );
        })}
      </div>
      {left > 0 ? (
        <button
          type="button"
          class="quiet more"
          aria-expanded={isAll}
          title="Metrics with the same value in all executions"
          onClick={() => setAll(!isAll)}
        >
          {isAll ? 'Hide' : 'Show'}
          {` ${count(left)} constant ${left === 1 ? 'metric' : 'metrics'}`}
        </button>
      ) : null}
    </section>
  );
}

/** A metric: its name, its scale and the histogram of both groups. */
function Row({ column }: { column: number }) {
  const model = useModel();
  useTopics(model, 'step');
  const { key, label, description, axis, range } = model.table.numbers[column];
  const isLog = axis.scale === 'log';
  return (
    <div class="row" data-row={key}>
      <div class="label" title={clean(description)}>
        <h3 class="name">{clean(label)}</h3>
        {range.high > 0 ? (
          <button
            type="button"
            class="scale"
            aria-pressed={isLog}
            aria-label={`log axis of ${clean(label, 60)}`}
            title={isLog ? 'Use a linear axis' : 'Use a logarithmic axis'}
            onClick={() => model.setScale(column, isLog ? 'linear' : 'log')}
          >
            log
          </button>
        ) : null}
      </div>
      <Histogram column={column} />
    </div>
  );
}

/** Maximum number of values shown. */
const MOST = 60;

/** Whether executions have different values. */
function hasChoice(totals: Int32Array): boolean {
  const first = totals.findIndex((one) => one > 0);
  return first >= 0 && totals.some((one, code) => one > 0 && code > first);
}

/** Codes that executions have and whose texts contain the wanted text. */
function matches({ values }: CodeColumn, totals: Int32Array, wanted: string): Uint32Array {
  const found = new Uint32Array(values.length);
  const text = wanted.toLowerCase();
  let count = 0;
  for (let code = 0; code < values.length; code++) {
    if (totals[code] > 0 && (text === '' || values[code].toLowerCase().includes(text)))
      found[count++] = code;
  }
  return found.subarray(0, count);
}

/** A text: each value with a box to check for A and one for B. */
function Checklist({ column }: { column: number }) {
  const model = useModel();
  useTopics(model, 'step');
  const [wanted, setWanted] = useState('');
  const of = model.table.codes[column];
  // The search must not run with each step of a brush: there may be a text for each execution.
  const all = useMemo(() => matches(of, model.totalsOf(column), wanted), [of, wanted]);
  const shown = [...all.subarray(0, MOST)];
  const counts = SIDES.map((side) => model.groups[side].facets[column]);
  const totals = counts.map((of) => Math.max(1, sumOf(of)));
  // One scale for both groups.
  const longest = Math.max(
    1e-9,
    ...SIDES.flatMap((side) => shown.map((code) => counts[side][code] / totals[side])),
  );
  const toggle = (side: 0 | 1, code: number) => {
    const allowed = model.groups[side].allowed.get(column);
    const next = allowed === undefined ? new Uint8Array(of.values.length) : allowed.slice();
    // The first checked box selects its value alone.
    next[code] = allowed === undefined || next[code] === 0 ? 1 : 0;
    const isNone = next.every((one) => one === 0);
    model.setAllowed(side, column, isNone ? null : next);
  };
  const name = clean(of.label, 60);
  const box = (side: 0 | 1, code: number) => {
    const allowed = model.groups[side].allowed.get(column);
    const isChecked = allowed !== undefined && allowed[code] === 1;
    const found = counts[side][code];
    const total = totals[side];
    return (
      <label class={`side-${'ab'[side]}${allowed !== undefined && !isChecked ? ' off' : ''}`}>
        <input
          type="checkbox"
          checked={isChecked}
          aria-label={`${name} = ${clean(of.values[code])}, group ${'AB'[side]}: ${count(found)} executions`}
          onChange={() => toggle(side, code)}
        />
        <span class="share" aria-hidden="true">
          <i style={{ width: `${(100 * found) / total / longest}%` }} />
        </span>
        <span class="number" title={`${count(found)} of ${count(total)} executions`}>
          {percent(found, total)}
        </span>
      </label>
    );
  };
  return (
    <fieldset class="row checklist" data-checklist={of.key}>
      <legend>
        <span class="name">{clean(of.label)}</span>
      </legend>
      {of.values.length > 12 ? (
        <input
          type="search"
          placeholder="Search values"
          aria-label={`Search values of ${name}`}
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      ) : null}
      <div class="values">
        <div class="value-head" aria-hidden="true">
          <span />
          <span class="of-a">of A</span>
          <span class="of-b">of B</span>
        </div>
        {shown.map((code) => (
          <div class="value-row" key={code}>
            <span class="value" title={clean(of.values[code])}>
              {middle(of.values[code], 80)}
            </span>
            {box(0, code)}
            {box(1, code)}
          </div>
        ))}
        {all.length > MOST ? (
          <span class="hint">{`${count(all.length - MOST)} more values; search to find them`}</span>
        ) : null}
        {all.length === 0 ? (
          <span class="hint">No value contains “{clean(wanted, 40)}”.</span>
        ) : null}
      </div>
    </fieldset>
  );
}
