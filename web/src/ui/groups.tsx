/** The filters: two columns, of histograms and of lists to check. */

import { useMemo, useState } from 'preact/hooks';
import type { CodeColumn } from '../engine/table';
import { clean, count, percent, quantity } from '../format';
import type { Side } from '../model';
import { Histogram } from './histogram';
import { useModel, useTopics } from './hooks';

const SIDES = [0, 1] as const;

export function Groups() {
  const model = useModel();
  useTopics(model, 'calm', 'view');
  const [isAll, setAll] = useState(false);
  const { numbers, codes } = model.table;
  const isPlain = (column: number) => {
    const { range, key } = numbers[column];
    const isFiltered = SIDES.some((side) => model.rangeOf(side, column) !== null);
    return !isFiltered && key !== 'm.duration_ns' && (range.known === 0 || range.low === range.high);
  };
  const shown = [...numbers.keys()].filter((column) => isAll || !isPlain(column));
  // Times in contexts stand in front: somebody has just asked for them.
  shown.sort((one, other) => Number(numbers[other].context !== null) - Number(numbers[one].context !== null));
  const chosen = [...codes.keys()].filter((column) => codes[column].values.length > 2 || codes[column].hasNone);
  const left = numbers.length - [...numbers.keys()].filter((column) => !isPlain(column)).length;
  return (
    <section class="panel groups" aria-label="Groups">
      <div class="heads">
        <h2>Groups</h2>
        <Head side={0} />
        <Head side={1} />
      </div>
      <section class="filters" tabIndex={0} aria-label="Filters">
        {shown.map((column) => (
          <div class="row" key={numbers[column].key}>
            <Label column={column} />
            <Histogram side={0} column={column} />
            <Histogram side={1} column={column} />
          </div>
        ))}
        {chosen.map((column) => (
          <div class="row codes" key={codes[column].key}>
            <div class="label">
              <span class="name">{clean(codes[column].label, 40)}</span>
            </div>
            <Checklist side={0} column={column} />
            <Checklist side={1} column={column} />
          </div>
        ))}
        {left > 0 ? (
          <button type="button" class="quiet more" onClick={() => setAll(!isAll)}>
            {isAll ? 'Hide what is the same for all' : `Show ${left} more, which are the same for all executions`}
          </button>
        ) : null}
      </section>
    </section>
  );
}

function Head({ side }: { side: Side }) {
  const model = useModel();
  useTopics(model, 'step', 'view');
  const group = model.groups[side];
  const { executions } = model.table;
  const name = 'AB'[side];
  return (
    <div class={`head side-${'ab'[side]}`}>
      <h3>
        <span class="badge">{name}</span>
        <output data-size={name} aria-label={`Executions in group ${name}`}>
          {count(group.size)}
        </output>
        <small>{` executions · ${percent(group.size, executions)}`}</small>
      </h3>
      <div class="chips">
        {[...group.ranges].map(([column, range]) => {
          const { label, unit, key } = model.table.numbers[column];
          return (
            <Chip
              key={key}
              text={`${clean(label, 30)} ${quantity(range.low, unit)} – ${quantity(range.high, unit)}`}
              onClose={() => model.setRange(side, column, null, true)}
            />
          );
        })}
        {[...group.allowed].map(([column, allowed]) => {
          const { label, values, key } = model.table.codes[column];
          const few = chosenText(values, allowed);
          return (
            <Chip key={key} text={`${clean(label, 30)}: ${few}`} onClose={() => model.setAllowed(side, column, null)} />
          );
        })}
        {group.isFiltered() ? (
          <button type="button" class="quiet" onClick={() => model.resetSide(side)}>
            Clear {name}
          </button>
        ) : (
          <span class="hint">{side === 0 ? 'all; drag on a histogram to choose' : 'all'}</span>
        )}
      </div>
    </div>
  );
}

/** The texts that are allowed: by name if they are few. */
function chosenText(values: string[], allowed: Uint8Array): string {
  const names: string[] = [];
  let chosen = 0;
  for (let code = 0; code < allowed.length; code++) {
    if (allowed[code] === 1 && ++chosen <= 2) names.push(clean(values[code], 24));
  }
  return chosen > 2 ? `${count(chosen)} of ${count(values.length)}` : names.join(', ') || 'none';
}

function Chip({ text, onClose }: { text: string; onClose: () => void }) {
  return (
    <span class="chip">
      {text}
      <button type="button" aria-label={`Take away filter ${text}`} onClick={onClose}>
        ×
      </button>
    </span>
  );
}

function Label({ column }: { column: number }) {
  const model = useModel();
  useTopics(model, 'step');
  const { label, description, axis, range } = model.table.numbers[column];
  const isLog = axis.scale === 'log';
  return (
    <div class="label" title={clean(description)}>
      <span class="name">{clean(label, 60)}</span>
      {range.high > 0 ? (
        <button
          type="button"
          class="quiet scale"
          aria-pressed={isLog}
          aria-label={`Logarithmic scale of ${clean(label, 60)}`}
          title={isLog ? 'Logarithmic scale; click for linear' : 'Linear scale; click for logarithmic'}
          onClick={() => model.setScale(column, isLog ? 'linear' : 'log')}
        >
          {isLog ? 'log' : 'lin'}
        </button>
      ) : null}
    </div>
  );
}

/** Entries of a list that are shown at once. */
const MOST = 60;

/** The codes whose texts have that in them. */
function matches({ values, hasNone }: CodeColumn, wanted: string): Uint32Array {
  const found = new Uint32Array(values.length);
  const text = wanted.toLowerCase();
  const end = hasNone ? values.length : values.length - 1;
  let count = 0;
  for (let code = 0; code < end; code++) {
    if (text === '' || values[code].toLowerCase().includes(text)) found[count++] = code;
  }
  return found.subarray(0, count);
}

function Checklist({ side, column }: { side: Side; column: number }) {
  const model = useModel();
  useTopics(model, 'step');
  const [wanted, setWanted] = useState('');
  const of = model.table.codes[column];
  const group = model.groups[side];
  const counts = group.facets[column];
  const allowed = group.allowed.get(column) ?? null;
  // There may be a text for each execution: what is looked for is not looked for with each step of a brush.
  const all = useMemo(() => matches(of, wanted), [of, wanted]);
  const shown = [...all.subarray(0, MOST)];
  const most = Math.max(1, ...shown.map((code) => counts[code]));
  const toggle = (code: number) => {
    const next = allowed === null ? new Uint8Array(of.values.length) : allowed.slice();
    // The first one that is chosen is chosen alone.
    if (allowed === null) next[code] = 1;
    else next[code] = next[code] === 1 ? 0 : 1;
    const isNone = next.every((one) => one === 0);
    model.setAllowed(side, column, isNone ? null : next);
  };
  const group_ = `${clean(of.label, 40)}, group ${'AB'[side]}`;
  return (
    <fieldset class={`checklist side-${'ab'[side]}`} data-checklist={`${'ab'[side]} ${of.key}`}>
      <legend class="unseen">{group_}</legend>
      {of.values.length > 12 ? (
        <input
          type="search"
          placeholder="find a value"
          aria-label={`Find a value of ${group_}`}
          value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
      ) : null}
      <div class="values">
        {shown.map((code) => (
          <label key={code} class={allowed !== null && allowed[code] === 0 ? 'off' : ''} title={clean(of.values[code])}>
            <input type="checkbox" checked={allowed !== null && allowed[code] === 1} onChange={() => toggle(code)} />
            <span class="value">{clean(of.values[code], 60)}</span>
            <span class="bar" aria-hidden="true">
              <i style={{ width: `${(100 * counts[code]) / most}%` }} />
            </span>
            <span class="number">{count(counts[code])}</span>
          </label>
        ))}
        {all.length > MOST ? <span class="hint">{`and ${count(all.length - MOST)} more`}</span> : null}
      </div>
    </fieldset>
  );
}
