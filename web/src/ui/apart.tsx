/** Metrics and texts that differ between the groups. */

import { useState } from 'preact/hooks';
import { SURE } from '../engine/compare';
import { type TextSeparation, tells } from '../engine/texts';
import { clean, count, marked, middle, percent, quantity, signed } from '../format';
import type { Model, Side } from '../model';
import { goTo, useModel, useTopics } from './hooks';

/** Number of rows before more are asked for. */
const AT_ONCE = 10;

export function Apart() {
  const model = useModel();
  useTopics(model, 'figures');
  const texts = model.texts.filter(tells);
  if (model.separations.length === 0 && texts.length === 0) return null;
  // Many metrics push the texts out of sight.
  const sure = texts.filter((of) => of.chance < SURE).length;
  return (
    <section class="panel figures" aria-label="Metrics that differ">
      <div class="bar">
        <h2>Metrics that differ</h2>
        {sure > 0 && model.separations.length > 0 ? (
          <button type="button" class="quiet link" onClick={() => goTo(model, '.texts button')}>
            {sure === 1 ? '1 text also differs' : `${count(sure)} texts also differ`}
          </button>
        ) : null}
      </div>
      <Metrics />
      <Texts texts={texts} />
    </section>
  );
}

/** The first rows of a list, or all, and a button that shows the others. */
function useFirst<T>(all: T[]) {
  const [isAll, setAll] = useState(false);
  const left = all.length - AT_ONCE;
  const more =
    left > 0 ? (
      <button type="button" class="quiet more" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
        {isAll ? 'Fewer' : `${count(left)} more`}
      </button>
    ) : null;
  return { shown: isAll ? all : all.slice(0, AT_ONCE), more };
}

/** The head of a table: titles of columns, some with an explanation. */
function Head({ columns }: { columns: [string, string?][] }) {
  return (
    <thead>
      <tr>
        {columns.map(([title, meaning]) => (
          <th key={title} scope="col" title={meaning}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Metrics() {
  const model = useModel();
  const { numbers } = model.table;
  const { shown, more } = useFirst(model.separations);
  if (shown.length === 0) return null;
  return (
    <>
      <table class="plain" aria-label="Metrics by how well they separate the groups">
        <Head
          columns={[
            ['metric'],
            [
              'P(B\u00a0>\u00a0A)',
              'Probability that an execution of B has a larger value than one of A',
            ],
            ['A'],
            ['B'],
            ['B − A'],
            ['p'],
          ]}
        />
        <tbody>
          {shown.map((of) => {
            const { key, label, unit, description } = numbers[of.column];
            const [a, b] = of.groups;
            return (
              <tr key={key} class={of.chance < SURE ? '' : 'doubtful'}>
                <td>
                  <button
                    type="button"
                    class="quiet"
                    title={clean(description)}
                    onClick={() => goTo(model, `[data-histogram="b ${CSS.escape(key)}"]`)}
                  >
                    {clean(label)}
                  </button>
                </td>
                <td>{`${Math.round(100 * of.higher)} %`}</td>
                <td>{known(a.mean, quantity(a.mean, unit))}</td>
                <td>{known(b.mean, quantity(b.mean, unit))}</td>
                <td>{known(b.mean - a.mean, signed(b.mean - a.mean, unit))}</td>
                <td>{marked(of.chance)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {more}
    </>
  );
}

function Texts({ texts }: { texts: TextSeparation[] }) {
  const model = useModel();
  const { shown, more } = useFirst(texts);
  if (shown.length === 0) return null;
  return (
    <>
      <table class="plain texts" aria-label="Texts that differ">
        <Head
          columns={[
            ['text and the value that differs most'],
            ['of A', 'Share of A with this value'],
            ['of B', 'Share of B with this value'],
            ['V', "Cramér's V: 0 = no association, 1 = the text separates the groups"],
            ['p'],
          ]}
        />
        <tbody>
          {shown.map((of) => (
            <TextRow key={`${of.column} ${of.name}`} model={model} of={of} />
          ))}
        </tbody>
      </table>
      {more}
    </>
  );
}

/**
 * A text with its value that differs most. A button filters the group that has the value more often
 * by it.
 */
function TextRow({ model, of }: { model: Model; of: TextSeparation }) {
  const { key, values } = model.table.codes[of.column];
  const side: Side = of.shares[0] > of.shares[1] ? 0 : 1;
  const allowed = model.groups[side].allowed.get(of.column);
  const isChosen = allowed !== undefined && isOnly(allowed, of.codes);
  const value = of.value ?? '(none)';
  const choose = () => {
    const only = new Uint8Array(values.length);
    for (const code of of.codes) only[code] = 1;
    model.setAllowed(side, of.column, isChosen ? null : only);
  };
  return (
    <tr class={of.chance < SURE ? '' : 'doubtful'}>
      <td>
        <button
          type="button"
          class="quiet"
          title="Go to the list of values"
          onClick={() => goTo(model, `[data-checklist="${CSS.escape(key)}"] input`)}
        >
          {clean(of.name)}
        </button>
        <small>
          <button
            type="button"
            class="quiet link"
            aria-pressed={isChosen}
            title={`${clean(value)}\n${isChosen ? 'Remove this filter' : `Keep only executions with this value in ${'AB'[side]}`}`}
            onClick={choose}
          >
            {middle(value, 80)}
          </button>
        </small>
      </td>
      <td>{percent(of.shares[0], 1)}</td>
      <td>{percent(of.shares[1], 1)}</td>
      <td>{of.association.toFixed(2)}</td>
      <td>{marked(of.chance)}</td>
    </tr>
  );
}

/** Whether exactly these codes pass. */
function isOnly(allowed: Uint8Array, codes: number[]): boolean {
  let count = 0;
  for (const one of allowed) count += one;
  return count === codes.length && codes.every((code) => allowed[code] === 1);
}

/** The text of a number; `-` if it is not finite. */
function known(value: number, text: string): string {
  return Number.isFinite(value) ? text : '-';
}
