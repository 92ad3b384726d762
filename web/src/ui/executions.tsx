/** Lists of the executions of both groups. */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { NONE, type Source } from '../engine/pack';
import { clean, count, middle, moment, quantity } from '../format';
import type { Model, Side } from '../model';
import { useModel, useTopics } from './hooks';

/** Height of a row: a link in it is a pointer target of 24 pixels. */
const ROW = 24;
/** Rows beyond this number are left out: browsers limit the height of an element. */
const MOST = 700_000;

export function Executions() {
  const model = useModel();
  useTopics(model, 'calm', 'view');
  const { numbers } = model.table;
  const { sort } = model.shown;
  const key = sort.key === '' ? numbers[0]?.key : sort.key;
  return (
    <section id="executions" class="panel executions" aria-label="Executions" tabIndex={-1}>
      <div class="bar">
        <h2>Executions</h2>
        <label>
          {'sorted by '}
          <select
            value={key}
            onChange={(event) =>
              model.look({ sort: { key: event.currentTarget.value, isDown: sort.isDown } })
            }
          >
            {numbers.map((column) => (
              <option key={column.key} value={column.key}>
                {middle(column.label, 60)}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          onClick={() => model.look({ sort: { key: sort.key, isDown: !sort.isDown } })}
        >
          {sort.isDown ? 'largest first' : 'smallest first'}
        </button>
        <span class="hint">Click a number (#) for the critical path.</span>
      </div>
      <div class="lists">
        <List side={0} />
        <List side={1} />
      </div>
    </section>
  );
}

function List({ side }: { side: Side }) {
  const model = useModel();
  const [round, setRound] = useState(0);
  const [top, setTop] = useState(0);
  const box = useRef<HTMLElement>(null);
  const { sort } = model.shown;
  const { numbers } = model.table;
  const column = Math.max(
    0,
    numbers.findIndex(({ key }) => key === sort.key),
  );
  useEffect(() => {
    const renew = () => setRound((one) => one + 1);
    // The groups may have become calm before this effect ran.
    if (model.behind === 0) renew();
    return model.listen('calm', renew);
  }, [model]);
  const group = model.groups[side];
  // Groups change in place, so their identity does not show that they changed.
  const members = useMemo(
    () =>
      round === 0 || numbers.length === 0
        ? new Uint32Array(0)
        : group.members(model.table.orderOf(column).order, sort.isDown),
    [round, column, sort.isDown, group],
  );
  const shown = Math.min(members.length, MOST);
  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const rows = [...members.subarray(first, Math.min(shown, first + 26))];
  const extra = column === 0 ? null : numbers[column];
  const columns = useMemo(() => columnsOf(model), [model]);
  const width = 3 + columns.length + (extra === null ? 0 : 1);
  const name = 'AB'[side];
  const key = (event: KeyboardEvent) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const buttons = [...(box.current?.querySelectorAll<HTMLButtonElement>('button') ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = buttons[at + (event.key === 'ArrowDown' ? 1 : -1)];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  };
  return (
    <div class={`list side-${'ab'[side]}`}>
      <h3>
        <span class="badge">{name}</span>
        {`${count(members.length)} executions`}
        {members.length > MOST ? <small>{`, the first ${count(MOST)}`}</small> : null}
        {first > 0 || first + rows.length < members.length ? (
          <small class="paper-only">
            {`, numbers ${count(first + 1)} to ${count(first + rows.length)} of the list`}
          </small>
        ) : null}
      </h3>
      <section
        class="scroll"
        ref={box}
        tabIndex={0}
        aria-label={`Executions of group ${name}`}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={key}
      >
        <table class="plain" aria-rowcount={members.length + 1}>
          <thead>
            <tr>
              <th scope="col">#</th>
              <th scope="col">{clean(numbers[0]?.label ?? '', 30)}</th>
              {extra === null ? null : <th scope="col">{clean(extra.label, 30)}</th>}
              <th scope="col">begin</th>
              {columns.map(({ name }) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 ? (
              <tr aria-hidden="true" style={{ height: `${first * ROW}px` }}>
                <td colSpan={width} />
              </tr>
            ) : null}
            {rows.map((one, at) => (
              <tr key={one} aria-rowindex={first + at + 2}>
                <td>
                  <button
                    type="button"
                    class="quiet link"
                    data-execution={model.pack.id[one]}
                    onClick={() => model.look({ execution: model.pack.id[one] })}
                  >
                    {model.pack.id[one]}
                  </button>
                </td>
                <td>{quantity(numbers[0].values[one], numbers[0].unit)}</td>
                {extra === null ? null : <td>{quantity(extra.values[one], extra.unit)}</td>}
                <td>{quantity(beginOf(model, one), 'ns')}</td>
                {columns.map(({ name, text, title }) => (
                  <td key={name} title={title(model, one)}>
                    {middle(text(model, one), 40)}
                  </td>
                ))}
              </tr>
            ))}
            {first + rows.length < shown ? (
              <tr aria-hidden="true" style={{ height: `${(shown - first - rows.length) * ROW}px` }}>
                <td colSpan={width} />
              </tr>
            ) : null}
          </tbody>
        </table>
      </section>
    </div>
  );
}

interface Column {
  name: string;
  text: (model: Model, one: number) => string;
  title: (model: Model, one: number) => string;
}

/** Columns of texts that differ between executions. */
function columnsOf(model: Model): Column[] {
  const { thread, source, sources } = model.pack;
  const found: Column[] = [];
  if (thread.some((one) => one !== thread[0]))
    found.push({ name: 'thread', text: threadOf, title: threadOf });
  const traces = new Set(Array.from(new Set(source), (at) => traceText(sources[at])));
  if (traces.size > 1) found.push({ name: 'trace', text: traceOf, title: pathOf });
  return found;
}

function beginOf(model: Model, one: number): number {
  return model.table.numbers.find(({ key }) => key === 'begin')!.values[one];
}

export function threadOf(model: Model, one: number): string {
  const code = model.pack.thread[one];
  return code === NONE ? 'unknown' : clean(model.pack.threads[code]);
}

function pathOf({ pack }: Model, one: number): string {
  return clean(pack.sources[pack.source[one]].path);
}

function traceOf({ pack }: Model, one: number): string {
  return traceText(pack.sources[pack.source[one]]);
}

function traceText({ path, host, label }: Source): string {
  return clean([label, host].filter(Boolean).join(' · ') || path);
}

/** Time of day at which an execution begins. */
export function momentOf(model: Model, one: number): string {
  return moment(model.pack.origin + BigInt(Math.round(model.pack.begin[one])));
}
