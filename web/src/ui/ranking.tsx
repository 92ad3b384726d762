/** Where the groups differ most, and what was pinned. */

import { SURE } from '../engine/compare';
import { chance, quantity, signed } from '../format';
import type { Topic } from '../model';
import { Facts } from './facts';
import { useModel, useTopics } from './hooks';
import { colourOf } from './theme';

export function Ranking() {
  const model = useModel();
  const { ranking, rankedBy, shown } = model;
  const topics: Topic[] = ranking.length === 0 ? ['calm', 'view', 'step'] : ['calm', 'view'];
  useTopics(model, ...topics);
  return (
    <section class="panel ranking" aria-label="Where the groups differ most">
      <h2>Where the groups differ most</h2>
      {ranking.length === 0 || rankedBy === undefined ? (
        <p class="hint">
          {model.groups.some((group) => group.isFiltered())
            ? model.behind > 0
              ? 'Comparing…'
              : 'No context differs surely (corrected chance below 1 %).'
            : 'Both groups are the same. Choose executions above, or take the slowest 1 %.'}
        </p>
      ) : (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{shown.isInverted ? 'frame' : 'context, own time'}</th>
              <th scope="col">A</th>
              <th scope="col">B</th>
              <th scope="col">B − A</th>
              <th scope="col">chance</th>
            </tr>
          </thead>
          <tbody>
            {ranking.map((context) => (
              <tr key={context} aria-current={context === shown.zoom}>
                <td>
                  <button
                    type="button"
                    class="quiet"
                    data-ranked={context}
                    title={way(context)}
                    onClick={() => model.zoomTo(context)}
                  >
                    <i
                      class="swatch"
                      style={{ background: colourOf(rankedBy.deviations[context], rankedBy.chance[context] < SURE) }}
                    />
                    {model.nameOf(context)}
                    <small>{around(context)}</small>
                  </button>
                </td>
                <td>{quantity(rankedBy.meanA[context], 'ns')}</td>
                <td>{quantity(rankedBy.meanB[context], 'ns')}</td>
                <td>{signed(rankedBy.meanB[context] - rankedBy.meanA[context], 'ns')}</td>
                <td>{chance(rankedBy.chance[context])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {shown.pins.length > 0 ? (
        <div class="pins">
          <h2>Pinned</h2>
          {shown.pins.map((context) => (
            <div class="pin" key={context}>
              <button type="button" class="quiet" onClick={() => model.zoomTo(context)}>
                {model.nameOf(context)}
                <small>{around(context)}</small>
              </button>
              <button
                type="button"
                class="quiet"
                aria-label={`Unpin ${model.nameOf(context)}`}
                onClick={() => model.pin(context)}
              >
                ×
              </button>
              <Facts model={model} context={context} />
            </div>
          ))}
        </div>
      ) : null}
    </section>
  );

  /** The frame around, by which contexts with the same name are told apart. */
  function around(context: number): string {
    const outer = model.layer.tree.parent[context];
    return outer === 0 ? '' : ` in ${model.nameOf(outer)}`;
  }

  /** All frames around, the innermost first. */
  function way(context: number): string {
    const names: string[] = [];
    for (let at = context; at !== 0; at = model.layer.tree.parent[at]) names.push(model.nameOf(at));
    return names.join(' < ');
  }
}
