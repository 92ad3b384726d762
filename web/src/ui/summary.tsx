/** The top of the page: the verdict, and both groups with their filters as chips. */

import { clean, count, middle, percent, quantity } from '../format';
import type { Side } from '../model';
import type { Piece } from '../verdict';
import { goToFilters, useModel, useTopics } from './hooks';

export function Summary() {
  return (
    <section class="panel summary" aria-label="Result">
      <Verdict />
      <div class="heads">
        <Head side={0} />
        <Head side={1} />
        <span class="to-filters">
          <CauseButton />
          <FiltersButton />
        </span>
      </div>
    </section>
  );
}

/**
 * The first sentence. It changes only when nothing has moved for a moment, so a screen reader hears
 * one sentence for each brush; until then it is marked as out of date.
 */
function Verdict() {
  const model = useModel();
  useTopics(model, 'figures', 'step');
  const isStale = !model.isVerdictKnown;
  return (
    <p
      id="verdict"
      class={isStale ? 'verdict stale' : 'verdict'}
      role="status"
      aria-busy={isStale}
      data-verdict
    >
      {model.verdict.length === 0 ? 'Comparing…' : <Words pieces={model.verdict} />}
    </p>
  );
}

export function Words({ pieces }: { pieces: Piece[] }) {
  return (
    <>
      {pieces.map(({ text, as }, at) => {
        const key = `${at} ${text}`;
        if (as === 'name') return <code key={key}>{text}</code>;
        if (as === 'strong') return <strong key={key}>{text}</strong>;
        if (as === 'a' || as === 'b')
          return (
            <strong key={key} class={`of-${as}`}>
              {text}
            </strong>
          );
        return text;
      })}
    </>
  );
}

/** Zooms to the context that the verdict names. */
function CauseButton() {
  const model = useModel();
  useTopics(model, 'figures', 'view', 'step');
  if (model.cause === 0 || !model.isVerdictKnown || model.shown.isInverted) return null;
  return (
    <button type="button" onClick={() => model.zoomTo(model.cause)}>
      Show in the flame graph
    </button>
  );
}

/** Hides the filters where they stand beside the graph, and leads to them where they are below. */
function FiltersButton() {
  const model = useModel();
  useTopics(model, 'view');
  return (
    <>
      <button
        type="button"
        class="beside-only"
        aria-expanded={model.hasFilters}
        aria-controls="filters"
        onClick={() => model.showFilters(!model.hasFilters)}
      >
        {model.hasFilters ? 'Hide filters' : 'Show filters'}
      </button>
      <button type="button" class="below-only" onClick={() => goToFilters(model)}>
        Go to filters
      </button>
    </>
  );
}

function Head({ side }: { side: Side }) {
  const model = useModel();
  useTopics(model, 'step', 'view');
  const group = model.groups[side];
  const { executions } = model.table;
  const name = 'AB'[side];
  return (
    <div class={`head side-${'ab'[side]}`}>
      <h2>
        <span class="badge">{name}</span>
        <output data-size={name} aria-label={`Executions in group ${name}`}>
          {count(group.size)}
        </output>
        <small>{` executions · ${percent(group.size, executions)}`}</small>
      </h2>
      <div class="chips">
        {[...group.ranges].map(([column, range]) => {
          const { label, unit, key } = model.table.numbers[column];
          return (
            <Chip
              key={key}
              text={`${middle(label, 40)} ${quantity(range.low, unit)} – ${quantity(range.high, unit)}`}
              onClose={() => model.setRange(side, column, null, true)}
            />
          );
        })}
        {[...group.allowed].map(([column, allowed]) => {
          const { label, values, key } = model.table.codes[column];
          const few = chosenText(values, allowed);
          return (
            <Chip
              key={key}
              text={`${middle(label, 40)}: ${few}`}
              onClose={() => model.setAllowed(side, column, null)}
            />
          );
        })}
        {group.isFiltered() ? (
          <button type="button" class="quiet" onClick={() => model.resetSide(side)}>
            Clear {name}
          </button>
        ) : (
          <span class="hint">no filter</span>
        )}
      </div>
    </div>
  );
}

/** The values that pass a filter: names of one or two, else their number. */
function chosenText(values: string[], allowed: Uint8Array): string {
  const names: string[] = [];
  let chosen = 0;
  for (let code = 0; code < allowed.length; code++) {
    if (allowed[code] === 1 && ++chosen <= 2) names.push(middle(values[code], 40));
  }
  return chosen > 2 ? `${count(chosen)} of ${count(values.length)}` : names.join(', ') || 'none';
}

function Chip({ text, onClose }: { text: string; onClose: () => void }) {
  return (
    <span class="chip">
      <span>{clean(text)}</span>
      <button
        type="button"
        aria-label={`Remove filter ${clean(text)}`}
        title="Remove this filter"
        onClick={onClose}
      >
        ×
      </button>
    </span>
  );
}
