/** Calling contexts in which the groups differ most. */

import { type Comparison, isSure } from '../engine/compare';
import { ways } from '../engine/ways';
import { marked, quantity, signed } from '../format';
import type { Topic } from '../model';
import { WITHOUT_TIMES } from '../verdict';
import { useModel, useTopics } from './hooks';
import { colourOf } from './theme';
import { aroundText, wayText } from './way-text';

export function Ranking() {
  const model = useModel();
  const { ranking, rankedBy } = model;
  const topics: Topic[] = ranking.length === 0 ? ['calm', 'view', 'step'] : ['calm', 'view'];
  useTopics(model, ...topics);
  const empty = model.groups.findIndex(({ size }) => size === 0);
  const around = ways(model.layer.tree, model.pack.names, ranking);
  return (
    <section
      id="differences"
      class="panel ranking"
      aria-label="Where the groups differ most"
      tabIndex={-1}
    >
      <h2>Where the groups differ most</h2>
      {!model.hasTimes ? (
        <p class="hint">{`${WITHOUT_TIMES} Metrics and texts are compared below.`}</p>
      ) : empty >= 0 ? (
        <p class="hint">{`Group ${'AB'[empty]} is empty.`}</p>
      ) : ranking.length === 0 || rankedBy === undefined ? (
        <p class="hint">
          {model.behind > 0
            ? 'Comparing…'
            : model.groups.some((group) => group.isFiltered())
              ? 'No calling context differs.'
              : 'Both groups contain all executions.'}
        </p>
      ) : (
        <>
          <Contexts contexts={ranking} around={around} by={rankedBy} />
          <Doubtful contexts={ranking} by={rankedBy} />
        </>
      )}
    </section>
  );
}

/** The number of rows that are not significant. */
function Doubtful({ contexts, by }: { contexts: number[]; by: Comparison }) {
  const doubtful = contexts.filter((at) => !isSure(by, at)).length;
  if (doubtful === 0) return null;
  const what =
    doubtful === contexts.length
      ? 'No difference is significant'
      : `~ not significant: ${doubtful} of ${contexts.length}`;
  return <p class="hint">{`${what} (p of 1 % or more).`}</p>;
}

interface Listed {
  contexts: number[];
  /** Enclosing frames shown with each context. */
  around: Map<number, number[]>;
  by: Comparison;
}

function Contexts({ contexts, around, by }: Listed) {
  const model = useModel();
  const { shown } = model;
  return (
    <table class="plain" aria-label="Contexts that differ most">
      <thead>
        <tr>
          <th scope="col">{shown.isInverted ? 'frame' : 'context, own time'}</th>
          <th scope="col">A</th>
          <th scope="col">B</th>
          <th scope="col">B − A</th>
          <th scope="col">p</th>
        </tr>
      </thead>
      <tbody>
        {contexts.map((context) => (
          <tr
            key={context}
            class={isSure(by, context) ? '' : 'doubtful'}
            aria-current={context === shown.zoom}
          >
            <td>
              <button
                type="button"
                class="quiet"
                data-ranked={context}
                title={wayText(model, context)}
                onClick={() => model.zoomTo(context)}
              >
                <i
                  class="swatch"
                  style={{ background: colourOf(by.deviations[context], isSure(by, context)) }}
                />
                {model.nameOf(context)}
                <small>{aroundText(model, around.get(context) ?? [])}</small>
              </button>
            </td>
            <td>{quantity(by.meanA[context], 'ns')}</td>
            <td>{quantity(by.meanB[context], 'ns')}</td>
            <td>{signed(by.meanB[context] - by.meanA[context], 'ns')}</td>
            <td>{marked(by.chance[context])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
