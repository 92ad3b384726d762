/**
 * All that takes time before the page can show executions: reading the pack, bins and codes of all columns, the order of durations, and
 * histograms and sums of all executions. It is made in a worker and handed over, so it is plain data.
 */

import { Group, type GroupState } from './group';
import { forward, type Layer } from './layer';
import { decodePack, type Pack } from './pack';
import { Table, type TableState } from './table';

export interface Ready {
  pack: Pack;
  table: TableState;
  layer: Layer;
  all: GroupState;
}

/** Current step, and its completed part from 0 to 1, if known. */
export type Progress = (what: string, part?: number) => void;

/** Prepares a pack, or throws a `PackError`. */
export function prepare(bytes: ArrayBuffer, progress: Progress): Ready {
  progress('Reading executions');
  return prepared(decodePack(bytes), progress);
}

export function prepared(pack: Pack, progress: Progress = () => {}): Ready {
  progress('Arranging executions');
  const table = new Table(pack);
  const duration = table.numbers.findIndex(({ key }) => key === 'm.duration_ns');
  if (duration >= 0 && pack.executions > 0) table.orderOf(duration);
  progress('Adding up times');
  const layer = forward(pack);
  const all = new Group(table, layer);
  all.settleOwn(Infinity);
  return { pack, table: table.state(), layer, all: all.state() };
}

/** The memory of all numbers in it, to be transferred instead of copied. */
export function buffersOf(ready: Ready): ArrayBuffer[] {
  const found = new Set<ArrayBuffer>();
  const seen = new Set<object>();
  const look = (value: unknown) => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    if (ArrayBuffer.isView(value)) {
      if (value.buffer instanceof ArrayBuffer) found.add(value.buffer);
    } else if (value instanceof Map) value.forEach(look);
    // Texts have no numbers, and there may be very many.
    else if (!Array.isArray(value) || typeof value[0] !== 'string') Object.values(value).forEach(look);
  };
  look(ready);
  return [...found];
}
