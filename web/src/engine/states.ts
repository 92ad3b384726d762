/** What a thread does in a segment of a critical path, as its context tells. */

import { pathOf } from './layer';
import { type Contexts, FrameKind } from './pack';

export interface State {
  /** `running`, or the reason why not. */
  state: string;
  /** Function frames of the segment's thread, the outermost first, and who else is told of behind them. */
  stack: number[];
}

/** Reasons of executions during a hand-over. */
const HAND_OVERS = ['queued', 'unknown-hand-over'];

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
  const isReason = (frame: number) => tree.kind[frame] === FrameKind.Reason;
  // A thread's activity while the execution waits for it is not the execution's state.
  const waits = path.find((frame) => isReason(frame) && HAND_OVERS.includes(names[tree.name[frame]]));
  const reason = waits ?? below.find(isReason);
  return { state: reason === undefined ? 'running' : names[tree.name[reason]], stack: below };
}
