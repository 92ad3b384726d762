/** Keys of the flame graph. */

import { widths } from '../engine/flame';
import type { Model } from '../model';
import type { Drawn } from './flame-picture';
import { goTo } from './hooks';

/** Keys that move the cursor between boxes. */
export function keyIn(event: KeyboardEvent, model: Model, drawn: Drawn | null): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { boxes } = drawn ?? {};
  if (boxes === undefined) return;
  const at = boxes.context.indexOf(model.cursor);
  const { tree } = model.layer;
  const beside = (step: number) => {
    const same = [...boxes.context.keys()]
      .filter((box) => boxes.row[box] === boxes.row[at])
      .sort((one, other) => boxes.x[one] - boxes.x[other]);
    return same[same.indexOf(at) + step];
  };
  const inside = () => {
    const inner = [...boxes.context.keys()].filter(
      (box) => boxes.context[box] !== 0 && tree.parent[boxes.context[box]] === model.cursor,
    );
    return inner.sort((one, other) => boxes.width[other] - boxes.width[one])[0];
  };
  const outer = () => boxes.context.indexOf(tree.parent[model.cursor]);
  const { isFlipped } = model.shown;
  let next: number | undefined;
  if (event.key === 'ArrowLeft') next = beside(-1);
  else if (event.key === 'ArrowRight') next = beside(1);
  else if (event.key === 'ArrowDown') next = isFlipped ? outer() : inside();
  else if (event.key === 'ArrowUp') next = isFlipped ? inside() : outer();
  else if (event.key === 'Home') next = 0;
  else if (event.key === 'Enter') model.zoomTo(model.cursor);
  else return;
  event.preventDefault();
  if (at < 0) next = boxes.context.indexOf(model.shown.zoom);
  if (next !== undefined && next >= 0) {
    model.cursor = boxes.context[next];
    model.look({});
  }
}

/**
 * Contexts within a context from left to right: those that only A has are at the right end, in
 * reverse order.
 */
function within({ layer, whole, shown }: Model, context: number): number[] {
  const { firstChild, children } = layer;
  const { meanA, meanB } = whole;
  const inner = [...children.subarray(firstChild[context], firstChild[context + 1])];
  const means = shown.mode === 'a' ? meanA : meanB;
  const there = inner.filter((at) => means[at] > 0);
  const vanished =
    shown.mode === 'diff' ? inner.filter((at) => meanB[at] === 0 && meanA[at] > 0) : [];
  // Within a context that only A has, all stand from the left.
  return meanB[context] === 0 ? [...there, ...vanished] : [...there, ...vanished.reverse()];
}

/**
 * Zooms by keys that work anywhere: in (to the cursor or the widest frame within), out, and to the
 * frame beside.
 */
export function steer(model: Model, key: 'w' | 'a' | 's' | 'd'): void {
  const { shown } = model;
  const { tree } = model.layer;
  if (key === 's') {
    model.zoomTo(tree.parent[shown.zoom]);
    return;
  }
  if (key === 'w') {
    if (model.cursor !== shown.zoom) {
      model.zoomTo(model.cursor);
      return;
    }
    const { width } = widths(model.layer, model.whole, shown.mode);
    const widest = within(model, shown.zoom).sort((one, other) => width[other] - width[one])[0];
    if (widest !== undefined) model.zoomTo(widest);
    return;
  }
  if (shown.zoom === 0) return;
  const beside = within(model, tree.parent[shown.zoom]);
  const next = beside[beside.indexOf(shown.zoom) + (key === 'd' ? 1 : -1)];
  if (next !== undefined) model.zoomTo(next);
}

/** Adds a filter by the time in the context at the cursor. */
export function filterBy(model: Model): void {
  if (model.cursor === 0) return;
  const key = `${model.shown.isInverted ? 'i' : 'c'}.${model.cursor}`;
  const column = model.addContext(key);
  model.look({});
  if (column >= 0) goTo(model, `[data-histogram="b ${key}"]`);
}
