/** Which figures tell the groups apart. */

import { SURE } from '../engine/compare';
import { chance, clean, quantity, signed } from '../format';
import { useModel, useTopics } from './hooks';

/** Figures that are shown. */
const FIGURES = 10;

export function Figures() {
  const model = useModel();
  useTopics(model, 'figures');
  const { numbers } = model.table;
  const shown = model.separations.slice(0, FIGURES);
  if (shown.length === 0) return null;
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
                <td>{quantity(a.mean, unit)}</td>
                <td>{quantity(b.mean, unit)}</td>
                <td>{signed(b.mean - a.mean, unit)}</td>
                <td>{chance(of.chance)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** Goes to the histogram of a figure in group B. */
function goTo(key: string): void {
  const histogram = document.querySelector<HTMLElement>(`[data-histogram="b ${CSS.escape(key)}"]`);
  histogram?.scrollIntoView({ block: 'nearest' });
  histogram?.focus();
}
