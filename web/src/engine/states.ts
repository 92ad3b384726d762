/** What a thread does in a segment of a critical path, as its context tells. */

import { pathOf } from './layer';
import { type Contexts, FrameKind } from './pack';

export interface State {
  /** `running`, or the reason why not. */
  state: string;
  /** Function frames of the segment's thread, the outermost first, and who else is told of behind them. */
  stack: number[];
}

/** Names of threads of the kernel stand in contexts without their CPU. */
function isSame(frame: string, thread: string): boolean {
  return frame === thread || (frame !== '' && thread.startsWith(`${frame}/`));
}

/** The state in a context of a thread with that name. */
export function stateOf(tree: Contexts, names: string[], context: number, thread: string): State {
  const path = pathOf(tree, context);
  let begin = 0;
  path.forEach((frame, at) => {
    if (tree.kind[frame] === FrameKind.Thread && isSame(names[tree.name[frame]], thread)) begin = at + 1;
  });
  const below = path.slice(begin);
  const reason = below.find((frame) => tree.kind[frame] === FrameKind.Reason);
  return { state: reason === undefined ? 'running' : names[tree.name[reason]], stack: below };
}
