/** Which figures tell the groups apart. */

import { useState } from 'preact/hooks';
import { SURE } from '../engine/compare';
import { chance, clean, count, quantity, signed } from '../format';
import { useModel, useTopics } from './hooks';

/** Figures that are shown at once. */
const FIGURES = 10;

export function Figures() {
  const model = useModel();
  useTopics(model, 'figures');
  const [isAll, setAll] = useState(false);
  const { numbers } = model.table;
  const { separations } = model;
  if (separations.length === 0) return null;
  const shown = isAll ? separations : separations.slice(0, FIGURES);
  const left = separations.length - FIGURES;
  return (
    <section class="panel figures" aria-label="What tells the groups apart">
      <h2>What tells them apart</h2>
      <table class="plain" aria-label="Figures that tell the groups apart">
        <thead>
          <tr>
            <th scope="col">figure</th>
            <th scope="col" title="How probable it is that an execution of B has more of it than one of A">
              B has more
            </th>
            <th scope="col">A</th>
            <th scope="col">B</th>
            <th scope="col">B − A</th>
            <th scope="col">chance</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((of) => {
            const { key, label, unit, description } = numbers[of.column];
            const [a, b] = of.groups;
            return (
              <tr key={key} class={of.chance < SURE ? '' : 'doubtful'}>
                <td>
                  <button type="button" class="quiet" title={clean(description)} onClick={() => goTo(key)}>
                    {clean(label, 40)}
                  </button>
                </td>
                <td>{`${Math.round(100 * of.higher)} %`}</td>
                <td>{known(a.mean, quantity(a.mean, unit))}</td>
                <td>{known(b.mean, quantity(b.mean, unit))}</td>
                <td>{known(b.mean - a.mean, signed(b.mean - a.mean, unit))}</td>
                <td>{chance(of.chance)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {left > 0 ? (
        <button type="button" class="quiet more" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
          {isAll ? 'Fewer' : `${count(left)} more`}
        </button>
      ) : null}
    </section>
  );
}

/** What is told of a number; nothing of one that cannot be reckoned. */
function known(value: number, text: string): string {
  return Number.isFinite(value) ? text : '-';
}

/** Goes to the histogram of a figure in group B. */
function goTo(key: string): void {
  const histogram = document.querySelector<HTMLElement>(`[data-histogram="b ${CSS.escape(key)}"]`);
  histogram?.scrollIntoView({ block: 'nearest' });
  histogram?.focus();
}
