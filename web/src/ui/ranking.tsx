/** Where the groups differ most, and what was pinned. */

import { type Comparison, SURE } from '../engine/compare';
import { pathOf } from '../engine/layer';
import { GAP, ways } from '../engine/ways';
import { chance, clean, quantity, signed } from '../format';
import type { Model, Topic } from '../model';
import { Facts } from './facts';
import { useModel, useTopics } from './hooks';
import { colourOf } from './theme';

export function Ranking() {
  const model = useModel();
  const { ranking, rankedBy, shown } = model;
  const topics: Topic[] = ranking.length === 0 ? ['calm', 'view', 'step'] : ['calm', 'view'];
  useTopics(model, ...topics);
  const around = ways(model.layer.tree, model.pack.names, [...ranking, ...model.unsure, ...shown.pins]);
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
        <Contexts contexts={ranking} around={around} by={rankedBy} label="Differences that are sure" />
      )}
      {model.unsure.length > 0 && rankedBy !== undefined ? (
        <div class="unsure">
          <h3>{`${ranking.length > 0 ? 'Greater, but not sure' : 'Not sure'}: too few executions, or too mixed`}</h3>
          <Contexts contexts={model.unsure} around={around} by={rankedBy} label="Differences that are not sure" />
        </div>
      ) : null}
      <Separations />
      {shown.pins.length > 0 ? (
        <div class="pins">
          <h2>Pinned</h2>
          {shown.pins.map((context) => (
            <div class="pin" key={context}>
              <button type="button" class="quiet" title={wayText(model, context)} onClick={() => model.zoomTo(context)}>
                {model.nameOf(context)}
                <small>{aroundText(model, around.get(context) ?? [])}</small>
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

/** Figures that are shown. */
const FIGURES = 10;

/** Which figures tell the groups apart. */
function Separations() {
  const model = useModel();
  useTopics(model, 'figures');
  const { numbers } = model.table;
  const shown = model.separations.slice(0, FIGURES);
  if (shown.length === 0) return null;
  return (
    <div class="figures">
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
    </div>
  );
}

/** Goes to the histogram of a figure in group B. */
function goTo(key: string): void {
  const histogram = document.querySelector<HTMLElement>(`[data-histogram="b ${CSS.escape(key)}"]`);
  histogram?.scrollIntoView({ block: 'nearest' });
  histogram?.focus();
}

/**
 * The frames around that tell a context apart: ` in block-device « commit`, where « leaves frames out. No ellipsis: the browser puts one
 * where a line is full, and two of them behind each other would look like a mistake.
 */
function aroundText(model: Model, frames: number[]): string {
  let text = '';
  frames.forEach((frame, at) => {
    if (frame !== GAP) text += `${at === 0 ? ' in ' : frames[at - 1] === GAP ? ' « ' : ' ‹ '}${model.nameOf(frame)}`;
  });
  return text;
}

/** The whole way to a context, the outermost frame first. */
function wayText(model: Model, context: number): string {
  return pathOf(model.layer.tree, context)
    .map((at) => model.nameOf(at))
    .join(' › ');
}
