/** Prepares a pack for display: in a worker, or in the page if workers are refused. */

import { type Progress, prepare, type Ready } from '../engine/ready';
import OpeningWorker from './opening.worker?worker&inline';
import { PIECE, Unpacking } from './unpack';

/** A pack as received: bytes, or base64 of a data block. */
export type Given = ArrayBuffer | string;

/** Messages to the worker: pieces of base64 and an end, or all bytes. */
export type Asked = { letters: string } | { end: true } | { bytes: ArrayBuffer };

/** Messages from the worker. */
export type Told = { what: string } | { ready: Ready } | { error: string };

/** Lets the browser draw before a long task. */
function breath(): Promise<void> {
  return new Promise((done) => setTimeout(done, 0));
}

/** Passes a pack on, base64 in pieces. */
async function handOver(
  given: Given,
  take: (asked: Asked) => void,
  progress: Progress,
): Promise<void> {
  if (typeof given !== 'string') return take({ bytes: given });
  for (let at = 0; at < given.length; at += PIECE) {
    progress('Unpacking', at / given.length);
    await breath();
    take({ letters: given.slice(at, at + PIECE) });
  }
  take({ end: true });
}

function worker(): Worker | null {
  try {
    return new OpeningWorker();
  } catch {
    // The browser refuses workers from blobs.
    return null;
  }
}

async function here(given: Given, progress: Progress): Promise<Ready> {
  let bytes: ArrayBuffer | null = null;
  const unpacking = new Unpacking();
  await handOver(
    given,
    (asked) => {
      if ('letters' in asked) unpacking.add(asked.letters);
      if ('bytes' in asked) bytes = asked.bytes;
    },
    progress,
  );
  bytes ??= await unpacking.end();
  await breath();
  return prepare(bytes, progress);
}

export async function makeReady(given: Given, progress: Progress): Promise<Ready> {
  const beside = worker();
  if (beside === null) return here(given, progress);
  try {
    return await new Promise<Ready>((done, fail) => {
      beside.onmessage = ({ data }: MessageEvent<Told>) => {
        if ('ready' in data) done(data.ready);
        else if ('error' in data) fail(new Error(data.error));
        else progress(data.what);
      };
      beside.onerror = (event) => {
        event.preventDefault();
        fail(
          new Error(
            `The executions cannot be read: ${event.message || 'the browser is out of memory'}.`,
          ),
        );
      };
      const take = (asked: Asked) =>
        beside.postMessage(asked, 'bytes' in asked ? [asked.bytes] : []);
      handOver(given, take, progress).catch(fail);
    });
  } finally {
    beside.terminate();
  }
}
