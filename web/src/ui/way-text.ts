/** Call paths as text. */

import { pathOf } from '../engine/layer';
import { GAP } from '../engine/ways';
import type { Model } from '../model';

/**
 * Enclosing frames that distinguish a context, the outermost first: `in kworker › … › vdc`, where …
 * stands for frames left out.
 */
export function aroundText(model: Model, frames: number[]): string {
  if (frames.length === 0) return '';
  const inwards = [...frames].reverse();
  return ` in ${inwards.map((frame) => (frame === GAP ? '…' : model.nameOf(frame))).join(' › ')}`;
}

/** The whole call path of a context, the outermost frame first. */
export function wayText(model: Model, context: number): string {
  return pathOf(model.layer.tree, context)
    .map((at) => model.nameOf(at))
    .join(' › ');
}
