/**
 * The disk that most paths below a context wait for. For example, fdatasync() waits for kworker and
 * for the journal's thread, which both wait for the same disk. No single path has most of the time,
 * so the search for the deepest context ends at fdatasync().
 */

import { type Contexts, FrameKind } from './pack';

export interface SharedDisk {
  name: string;
  /** The thread that uses the disk for at least half of the time; null if no thread does. */
  user: { name: string; share: number } | null;
}

/** Minimum share of the context's time that is spent waiting for the disk. */
const WANTED = 0.8;
/** Minimum share of the context's time for which the named thread uses the disk. */
const LEAST = 0.5;

const DISK_WAIT = 'block-device';

type Sums = Map<string, number>;

function add(sums: Sums, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}

function greatest(sums: Sums): [string, number] {
  let best: [string, number] = ['', 0];
  for (const [key, sum] of sums) if (sum > best[1]) best = [key, sum];
  return best;
}

/** `amountOf` returns the difference of the total times of a context. */
export function sharedDisk(
  { count, parent, kind, name }: Contexts,
  names: readonly string[],
  context: number,
  amountOf: (context: number) => number,
): SharedDisk | null {
  const all = amountOf(context);
  /** For each context within: the outermost disk on its path, or 0. */
  const around = new Uint32Array(count);
  const isWithin = new Uint8Array(count);
  isWithin[context] = 1;
  const disks: Sums = new Map();
  const users = new Map<string, Sums>();
  for (let at = context + 1; at < count; at++) {
    const outer = parent[at];
    if (isWithin[outer] === 0) continue;
    isWithin[at] = 1;
    around[at] = around[outer];
    const text = names[name[at]];
    // A disk within another one has been counted with it.
    if (around[at] === 0) {
      const isWait = kind[outer] === FrameKind.Reason && names[name[outer]] === DISK_WAIT;
      if (!isWait || kind[at] !== FrameKind.Detail) continue;
      around[at] = at;
      add(disks, text, amountOf(at) / all);
    } else if (around[outer] === outer && kind[at] === FrameKind.Thread) {
      const disk = names[name[outer]];
      const sums: Sums = users.get(disk) ?? new Map();
      add(sums, text, amountOf(at) / all);
      users.set(disk, sums);
    }
  }
  const [disk, share] = greatest(disks);
  if (share < WANTED) return null;
  const [user, used] = greatest(users.get(disk) ?? new Map());
  return { name: disk, user: used < LEAST ? null : { name: user, share: used } };
}
