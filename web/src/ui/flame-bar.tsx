/** The bar above the flame graph: modes, search, legend. */

import type { Part } from '../engine/compare';
import { FrameKind } from '../engine/pack';
import { count, percent } from '../format';
import type { Model } from '../model';
import { useModel, useTopics } from './hooks';
import { colourOf, currentTheme } from './theme';

export function foundText(model: Model): string {
  const { found, layer, shown } = model;
  if (found === null) return '';
  const means = shown.mode === 'a' ? model.whole.meanA : model.whole.meanB;
  let contexts = 0;
  let sum = 0;
  const isWithin = new Uint8Array(found.length);
  for (let at = 1; at < found.length; at++) {
    const isInside = isWithin[layer.tree.parent[at]] === 1;
    if (found[at] === 1) {
      contexts++;
      if (!isInside) sum += means[at];
    }
    isWithin[at] = isInside || found[at] === 1 ? 1 : 0;
  }
  return `${count(contexts)} found, ${percent(sum, means[0])} of the time in ${shown.mode === 'a' ? 'A' : 'B'}`;
}

const TITLE = 'Where the time goes';

export function Bar() {
  const model = useModel();
  useTopics(model, 'view', 'calm');
  const { shown } = model;
  if (!model.hasTimes)
    return (
      <div class="bar">
        <h2>{TITLE}</h2>
      </div>
    );
  const mode = (of: 'diff' | 'a' | 'b', text: string) => (
    <button type="button" aria-pressed={shown.mode === of} onClick={() => model.setMode(of)}>
      {text}
    </button>
  );
  return (
    <div class="bar">
      <h2>{TITLE}</h2>
      <fieldset class="choice">
        <legend class="unseen">Groups shown</legend>
        {mode('diff', 'Difference')}
        {mode('a', 'A')}
        {mode('b', 'B')}
      </fieldset>
      <input
        type="search"
        id="search"
        placeholder="Search frames  ( / )"
        aria-label="Search frames"
        value={shown.search}
        onInput={(event) => model.setSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          model.setSearch('');
          event.currentTarget.blur();
          event.stopPropagation();
        }}
      />
      <span class="gap" />
      <div class="checks">
        {shown.mode === 'diff' && !shown.isInverted ? (
          <label class="check">
            {'Colour by '}
            <select
              value={shown.part}
              onChange={(event) => model.setPart(event.currentTarget.value as Part)}
            >
              <option value="own">own time</option>
              <option value="whole">total time</option>
            </select>
          </label>
        ) : null}
        <label class="check" title="Bottom-up: innermost frames first, their callers below them">
          <input
            type="checkbox"
            checked={shown.isInverted}
            onChange={(event) => model.setInverted(event.currentTarget.checked)}
          />
          Invert call stacks
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={shown.isFlipped}
            onChange={(event) => model.look({ isFlipped: event.currentTarget.checked })}
          />
          Root at the bottom
        </label>
      </div>
      <div class="second">
        <Legend />
        {shown.search !== '' ? (
          <span class="hint" data-found>
            {foundText(model)}
          </span>
        ) : null}
      </div>
    </div>
  );
}

function Legend() {
  const model = useModel();
  const theme = currentTheme();
  if (model.shown.mode !== 'diff') {
    const kinds: [number, string][] = [
      [FrameKind.Function, 'function'],
      [FrameKind.Call, 'system call'],
      [FrameKind.Thread, 'thread'],
      [FrameKind.Reason, 'wait reason'],
      [FrameKind.Detail, 'detail'],
    ];
    return (
      <div class="legend">
        {kinds.map(([kind, name]) => (
          <span key={kind}>
            <i style={{ background: theme.kinds[kind] }} />
            {name}
          </span>
        ))}
      </div>
    );
  }
  return (
    <div
      class="legend"
      title="Colour: difference of the means divided by the pooled standard deviation (SD). Grey: p of 1 % or more, or no own time."
    >
      <span>Width: mean time in B.</span>
      <span class="scale">
        {`Colour: ${model.shown.isInverted || model.shown.part === 'whole' ? 'total' : 'own'} time, less in B (−3 SD)`}
        {[-3, -2, -1].map((at) => (
          <i key={at} style={{ background: colourOf(at, true) }} />
        ))}
        <i style={{ background: theme.plain }} />
        {[1, 2, 3].map((at) => (
          <i key={at} style={{ background: colourOf(at, true) }} />
        ))}
        more in B (+3 SD)
      </span>
      <span>
        <i style={{ background: theme.plain }} />
        no significant difference
      </span>
      <span>
        <i class="striped" />
        only in A
      </span>
    </div>
  );
}
