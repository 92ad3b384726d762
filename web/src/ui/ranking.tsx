/** Where the groups differ most. */

import { type Comparison, SURE } from '../engine/compare';
import { ways } from '../engine/ways';
import { chance, quantity, signed } from '../format';
import type { Topic } from '../model';
import { WITHOUT_TIMES } from './flame-picture';
import { useModel, useTopics } from './hooks';
import { colourOf } from './theme';
import { aroundText, wayText } from './way-text';

export function Ranking() {
  const model = useModel();
  const { ranking, rankedBy } = model;
  const topics: Topic[] = ranking.length === 0 ? ['calm', 'view', 'step'] : ['calm', 'view'];
  useTopics(model, ...topics);
  const around = ways(model.layer.tree, model.pack.names, [...ranking, ...model.unsure]);
  return (
    <section class="panel ranking" aria-label="Where the groups differ most">
      <h2>Where the groups differ most</h2>
      {ranking.length === 0 || rankedBy === undefined ? (
        <p class="hint">
          {!model.hasTimes
            ? `${WITHOUT_TIMES} Figures and texts are compared below.`
            : model.groups.some((group) => group.isFiltered())
              ? model.behind > 0
                ? 'Comparing…'
                : 'No context differs surely (corrected chance below 1 %).'
              : 'Both groups are the same. Choose executions above, or take the slowest 1 %.'}
        </p>
      ) : (
        <Contexts contexts={ranking} around={around} by={rankedBy} label="Differences that are sure" />
      )}
      {model.unsure.length > 0 && rankedBy !== undefined ? (
        <div class="unsure">
          <h3>{`${ranking.length > 0 ? 'Greater, but not sure' : 'Not sure'}: too few executions, or too mixed`}</h3>
          <Contexts contexts={model.unsure} around={around} by={rankedBy} label="Differences that are not sure" />
        </div>
      ) : null}
    </section>
  );
}

interface Listed {
  contexts: number[];
  /** The frames that are shown with each. */
  around: Map<number, number[]>;
  by: Comparison;
  label: string;
}

function Contexts({ contexts, around, by, label }: Listed) {
  const model = useModel();
  const { shown } = model;
  return (
    <table class="plain" aria-label={label}>
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
        {contexts.map((context) => (
          <tr key={context} aria-current={context === shown.zoom}>
            <td>
              <button
                type="button"
                class="quiet"
                data-ranked={context}
                title={wayText(model, context)}
                onClick={() => model.zoomTo(context)}
              >
                <i class="swatch" style={{ background: colourOf(by.deviations[context], by.chance[context] < SURE) }} />
                {model.nameOf(context)}
                <small>{aroundText(model, around.get(context) ?? [])}</small>
              </button>
            </td>
            <td>{quantity(by.meanA[context], 'ns')}</td>
            <td>{quantity(by.meanB[context], 'ns')}</td>
            <td>{signed(by.meanB[context] - by.meanA[context], 'ns')}</td>
            <td>{chance(by.chance[context])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
