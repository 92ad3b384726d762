/** Which figures and texts tell the groups apart. */

import { useState } from 'preact/hooks';
import { SURE } from '../engine/compare';
import { type TextSeparation, tells } from '../engine/texts';
import { clean, count, marked, percent, quantity, signed } from '../format';
import type { Model, Side } from '../model';
import { useModel, useTopics } from './hooks';

/** Figures, and texts, that are shown at once. */
const AT_ONCE = 10;

export function Apart() {
  const model = useModel();
  useTopics(model, 'figures');
  // What tells nothing is left out.
  const texts = model.texts.filter(tells);
  if (model.separations.length === 0 && texts.length === 0) return null;
  // Behind many figures they are out of sight.
  const sure = texts.filter((of) => of.chance < SURE).length;
  return (
    <section class="panel figures" aria-label="Metrics that differ">
      <div class="bar">
        <h2>Metrics that differ</h2>
        {sure > 0 && model.separations.length > 0 ? (
          <button type="button" class="quiet link" onClick={() => goTo('.texts button')}>
            {sure === 1 ? 'and a text, below' : `and ${count(sure)} texts, below`}
          </button>
        ) : null}
      </div>
      <Figures />
      <Texts texts={texts} />
    </section>
  );
}

/** The first ones of a list, or all; and a button for the others. */
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

/** The head of a table: the title of each column, with an explanation where needed. */
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

function Figures() {
  const model = useModel();
  const { numbers } = model.table;
  const { shown, more } = useFirst(model.separations);
  if (shown.length === 0) return null;
  return (
    <>
      <table class="plain" aria-label="Figures that differ">
        <Head
          columns={[
            ['figure'],
            ['B has more', 'Probability that an execution of B has more than one of A'],
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
                    onClick={() => goTo(`[data-histogram="b ${CSS.escape(key)}"]`)}
                  >
                    {clean(label, 40)}
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
            ['text, strongest value'],
            ['of A', 'Share of A with this text'],
            ['of B', 'Share of B with this text'],
            ['V', "Cramér's V: 0 = no association, 1 = the text separates the groups"],
            ['p'],
          ]}
        />
        <tbody>
          {shown.map((of) => (
            <Telling key={`${of.column} ${of.name}`} model={model} of={of} />
          ))}
        </tbody>
      </table>
      {more}
    </>
  );
}

/** A text, with a button that leaves only executions that have it in the group which it is more of. */
function Telling({ model, of }: { model: Model; of: TextSeparation }) {
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
          title="To the list of all texts"
          onClick={() => goTo(`[data-checklist="b ${CSS.escape(key)}"] input`)}
        >
          {clean(of.name, 40)}
        </button>
        <small>
          <button
            type="button"
            class="quiet link"
            aria-pressed={isChosen}
            title={`${clean(value)}\n${isChosen ? 'Takes that filter away' : `Leaves executions with it alone in ${'AB'[side]}`}`}
            onClick={choose}
          >
            {clean(value, 80)}
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

/** Whether just these codes are allowed. */
function isOnly(allowed: Uint8Array, codes: number[]): boolean {
  let count = 0;
  for (const one of allowed) count += one;
  return count === codes.length && codes.every((code) => allowed[code] === 1);
}

/** What is told of a number; nothing of one that cannot be reckoned. */
function known(value: number, text: string): string {
  return Number.isFinite(value) ? text : '-';
}

/** Goes to what chooses executions by something, or tells of it. */
function goTo(selector: string): void {
  const found = document.querySelector<HTMLElement>(selector);
  // Centered: the related text is above and below.
  found?.scrollIntoView({ block: 'center' });
  found?.focus();
}
