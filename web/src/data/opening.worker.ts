/** Prepares a pack in a worker, so that the page stays responsive. */

import { buffersOf, prepare } from '../engine/ready';
import type { Asked, Told } from './opening';
import { Unpacking } from './unpack';

const tell = (told: Told, transfer: Transferable[] = []) => postMessage(told, { transfer });

let unpacking: Unpacking | null = null;

async function take(asked: Asked): Promise<void> {
  if ('letters' in asked) {
    unpacking ??= new Unpacking();
    unpacking.add(asked.letters);
    return;
  }
  const bytes = 'bytes' in asked ? asked.bytes : await (unpacking ?? new Unpacking()).end();
  const ready = prepare(bytes, (what) => tell({ what }));
  tell({ ready }, buffersOf(ready));
}

addEventListener('message', ({ data }: MessageEvent<Asked>) => {
  take(data).catch((error: unknown) =>
    tell({ error: error instanceof Error ? error.message : String(error) }),
  );
});
