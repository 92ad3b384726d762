/** Numbers of a context in both groups. */

import { type Part, SURE, spreads } from '../engine/compare';
import { pathOf } from '../engine/layer';
import { FrameKind } from '../engine/pack';
import { hedges, intervalOf, type Spread } from '../engine/statistics';
import { count, digits, percent, pText, quantity, signed } from '../format';
import type { Model } from '../model';

const KINDS: Record<number, string> = {
  [FrameKind.Function]: 'function',
  [FrameKind.Call]: 'system call',
  [FrameKind.Thread]: 'thread',
  [FrameKind.Reason]: 'wait reason',
  [FrameKind.Detail]: 'detail',
  [FrameKind.Root]: 'executions',
};

export function kindOf(model: Model, context: number): string {
  return KINDS[model.layer.tree.kind[context]] ?? 'executions';
}

/** Whether a difference is significant, in words. */
function verdict(a: Spread, b: Spread, chanceOf: number): string {
  if (a.executions < 2 || b.executions < 2) return 'too few executions';
  if (Number.isNaN(chanceOf)) return '';
  if (chanceOf >= SURE) return `not significant (${pText(chanceOf)})`;
  return pText(chanceOf);
}

function Rows({ model, context, part }: { model: Model; context: number; part: Part }) {
  const [a, b] = spreads(model.layer, model.groups, part, context);
  const comparison =
    part === 'whole' ? model.whole : model.shown.part === 'own' ? model.coloured : model.rankedBy;
  const interval = intervalOf(a, b);
  const more = b.mean - a.mean;
  const row = (name: string, of: Spread) => (
    <tr>
      <th scope="row">{name}</th>
      <td>{quantity(of.mean, 'ns')}</td>
      <td>{`± ${quantity(of.deviation, 'ns')}`}</td>
      <td>{`${count(of.present)} of ${count(of.executions)}`}</td>
    </tr>
  );
  const size = hedges(a, b);
  return (
    <tbody>
      <tr class="part">
        <th colSpan={4} scope="rowgroup">
          {part === 'whole' ? 'total time' : 'own time'}
        </th>
      </tr>
      {row('A', a)}
      {row('B', b)}
      <tr>
        <th scope="row">B − A</th>
        <td>{signed(more, 'ns')}</td>
        <td colSpan={2}>
          {interval === null
            ? ''
            : `95 % CI: ${signed(interval[0], 'ns')} … ${signed(interval[1], 'ns')}`}
        </td>
      </tr>
      <tr>
        <th scope="row">effect</th>
        <td>{size === 0 ? '' : `g = ${size < 0 ? '−' : ''}${digits(Math.abs(size))}`}</td>
        <td colSpan={2}>
          {comparison === undefined ? '' : verdict(a, b, comparison.chance[context])}
        </td>
      </tr>
    </tbody>
  );
}

/**
 * Means, deviations and counts of both groups; the difference with its 95 % interval and its
 * significance.
 */
export function Facts({ model, context }: { model: Model; context: number }) {
  const isOwn = !model.shown.isInverted && context !== 0;
  return (
    <table class="facts">
      <thead>
        <tr>
          <th class="unseen" scope="col">
            group
          </th>
          <th scope="col">mean</th>
          <th scope="col">deviation</th>
          <th scope="col">present</th>
        </tr>
      </thead>
      <Rows model={model} context={context} part="whole" />
      {isOwn ? <Rows model={model} context={context} part="own" /> : null}
    </table>
  );
}

/** The frames of a context from the outermost inwards, each a button that zooms to it. */
export function Crumbs({ model, context }: { model: Model; context: number }) {
  const path = pathOf(model.layer.tree, context);
  // The middle of a deep path is left out.
  const isLong = path.length > 12;
  const shown = isLong ? [...path.slice(0, 4), -1, ...path.slice(-7)] : path;
  return (
    <nav class="crumbs" aria-label="Path of frames">
      <button type="button" class="quiet" onClick={() => model.zoomTo(0)}>
        all
      </button>
      {shown.map((at) =>
        at < 0 ? (
          <span key="gap">{`› … ${path.length - 11} more `}</span>
        ) : (
          <span key={at}>
            {' › '}
            <button
              type="button"
              class="quiet"
              aria-current={at === context}
              title={kindOf(model, at)}
              onClick={() => model.zoomTo(at)}
            >
              {model.nameOf(at)}
            </button>
          </span>
        ),
      )}
    </nav>
  );
}

/** A context in one line, for screen readers. */
export function spoken(model: Model, context: number): string {
  const [a, b] = spreads(model.layer, model.groups, 'whole', context);
  const [wa, wb] = spreads(model.layer, model.groups, 'whole', 0);
  const sure = model.whole.chance[context] < SURE;
  return (
    `${model.nameOf(context)}, ${kindOf(model, context)}. A ${quantity(a.mean, 'ns')} (${percent(a.mean, wa.mean)}), ` +
    `B ${quantity(b.mean, 'ns')} (${percent(b.mean, wb.mean)}). ${sure ? 'They differ significantly.' : 'No significant difference.'}`
  );
}
