/** A dialog with an execution: its trace and time, its critical path as a timeline, its metrics. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Path } from '../data/source';
import { clean, quantity } from '../format';
import type { Model } from '../model';
import { RECORD } from '../verdict';
import { momentOf, threadOf } from './executions';
import { useModel, useTopics } from './hooks';
import { Chart } from './timeline-chart';

export function Timeline() {
  const model = useModel();
  useTopics(model, 'view');
  const dialog = useRef<HTMLDialogElement>(null);
  const id = model.shown.execution;
  const row = useMemo(() => (id === null ? -1 : model.pack.id.indexOf(id)), [id, model]);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (element === null) return;
    if (id !== null && !element.open) element.showModal();
    if (id === null && element.open) element.close();
  }, [id]);
  const close = () => {
    if (model.shown.execution !== null) model.look({ execution: null });
  };
  return (
    <dialog
      ref={dialog}
      class="timeline"
      aria-label={`Execution ${id ?? ''}`}
      // The close event is a later task: the next action would still find the execution in the
      // address.
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
      onClose={close}
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
    if (row < 0) setError(`There is no execution ${id} of this kind.`);
    else if (!model.pack.paths)
      setError('Critical paths are unknown: this page was made without them.');
    else {
      model.source.path(id).then(
        (found) => {
          if (isGone) return;
          const { count: contexts } = model.pack.contexts;
          if (found.segments.some(({ context }) => context >= contexts))
            setError('The critical path of this execution is damaged.');
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
        {/* The first button has the focus when the dialog opens. */}
        <button
          type="button"
          class="close"
          aria-label="Close"
          onClick={() => model.look({ execution: null })}
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
        <p class="hint">Loading the critical path…</p>
      ) : path.segments.length === 0 ? (
        <p class="hint" data-unknown>
          The critical path is unknown: the trace has no scheduling events (sched_switch) during
          this execution, or the thread of the execution is unknown. Record them with{' '}
          <code>{RECORD}</code>
        </p>
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
    ['host', clean(host ?? '')],
    ['label', clean(label)],
    ['begin', momentOf(model, row)],
    [duration.label, quantity(duration.values[row], duration.unit)],
    ['thread', threadOf(model, row)],
    ...pack.texts.map(({ name, values, codes }): [string, string] => [
      clean(name, 40),
      codes[row] < values.length ? clean(values[codes[row]]) : '(none)',
    ]),
    [
      'in group',
      ['A', 'B'].filter((_, side) => model.groups[side].has(row)).join(' and ') || 'none',
    ],
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
      // Without access to the clipboard the text is selected instead.
      const code = document.querySelector('.command code');
      if (code !== null) getSelection()?.selectAllChildren(code);
      setSaid('selected: copy it with Ctrl+C');
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

function Metrics({ model, row }: { model: Model; row: number }) {
  const { numbers } = model.table;
  const zeros = numbers.filter(({ values }) => values[row] === 0);
  return (
    <details class="shares" open>
      <summary>All metrics</summary>
      <dl class="where">
        {numbers
          .filter(({ values }) => values[row] !== 0)
          .map(({ key, label, unit, values }) => (
            <div key={key}>
              <dt>{clean(label, 60)}</dt>
              <dd>{quantity(values[row], unit)}</dd>
            </div>
          ))}
      </dl>
      {zeros.length === 0 ? null : (
        <p class="hint">{`0: ${zeros.map(({ label }) => clean(label, 60)).join(', ')}`}</p>
      )}
    </details>
  );
}
