/** Call paths as text. */

import { pathOf } from '../engine/layer';
import { GAP } from '../engine/ways';
import type { Model } from '../model';

/**
 * Enclosing frames that distinguish a context: ` in block-device « commit`, where « leaves frames
 * out. It is not an ellipsis, which would mean that a name was cut.
 */
export function aroundText(model: Model, frames: number[]): string {
  let text = '';
  frames.forEach((frame, at) => {
    if (frame !== GAP)
      text += `${at === 0 ? ' in ' : frames[at - 1] === GAP ? ' « ' : ' ‹ '}${model.nameOf(frame)}`;
  });
  return text;
}

/** The whole call path of a context, the outermost frame first. */
export function wayText(model: Model, context: number): string {
  return pathOf(model.layer.tree, context)
    .map((at) => model.nameOf(at))
    .join(' › ');
}
