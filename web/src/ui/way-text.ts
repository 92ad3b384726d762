/** Ways to contexts as text. */

import { pathOf } from '../engine/layer';
import { GAP } from '../engine/ways';
import type { Model } from '../model';

/**
 * The frames around that tell a context apart: ` in block-device « commit`, where « leaves frames out. No ellipsis: the browser puts one
 * where a line is full, and two of them behind each other would look like a mistake.
 */
export function aroundText(model: Model, frames: number[]): string {
  let text = '';
  frames.forEach((frame, at) => {
    if (frame !== GAP) text += `${at === 0 ? ' in ' : frames[at - 1] === GAP ? ' « ' : ' ‹ '}${model.nameOf(frame)}`;
  });
  return text;
}

/** The whole way to a context, the outermost frame first. */
export function wayText(model: Model, context: number): string {
  return pathOf(model.layer.tree, context)
    .map((at) => model.nameOf(at))
    .join(' › ');
}
