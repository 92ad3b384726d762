/** The state of a thread in a segment of a critical path, from its context. */

import { pathOf } from './layer';
import { type Contexts, FrameKind } from './pack';

export interface State {
  /** `running`, or the wait reason. */
  state: string;
  /** Frames below the segment's thread, the outermost first. */
  stack: number[];
}

/** Wait reasons of an execution that is handed over between threads. */
const HAND_OVERS = ['queued', 'unknown-hand-over'];

/** Contexts name threads of the kernel without their CPU. */
function isSame(frame: string, thread: string): boolean {
  return frame === thread || (frame !== '' && thread.startsWith(`${frame}/`));
}

/** The state of the thread with that name in a context. */
export function stateOf(tree: Contexts, names: string[], context: number, thread: string): State {
  const path = pathOf(tree, context);
  let begin = 0;
  path.forEach((frame, at) => {
    if (tree.kind[frame] === FrameKind.Thread && isSame(names[tree.name[frame]], thread))
      begin = at + 1;
  });
  const below = path.slice(begin);
  const isReason = (frame: number) => tree.kind[frame] === FrameKind.Reason;
  // While an execution is handed over, the activity of other threads is not its state.
  const waits = path.find(
    (frame) => isReason(frame) && HAND_OVERS.includes(names[tree.name[frame]]),
  );
  const reason = waits ?? below.find(isReason);
  return { state: reason === undefined ? 'running' : names[tree.name[reason]], stack: below };
}
