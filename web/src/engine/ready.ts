/**
 * The work before the page can show executions: decoding the pack, bins and codes of all columns,
 * the order of durations, histograms and sums of all executions. A worker does it and transfers the
 * result, so the result is plain data.
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

/** Reports the current step, and its completed part from 0 to 1, if known. */
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

/** The buffers of all arrays of numbers, to be transferred instead of copied. */
export function buffersOf(ready: Ready): ArrayBuffer[] {
  const found = new Set<ArrayBuffer>();
  const seen = new Set<object>();
  const look = (value: unknown) => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    if (ArrayBuffer.isView(value)) {
      if (value.buffer instanceof ArrayBuffer) found.add(value.buffer);
    } else if (value instanceof Map) value.forEach(look);
    // Lists of texts have no buffers and may be very long.
    else if (!Array.isArray(value) || typeof value[0] !== 'string')
      Object.values(value).forEach(look);
  };
  look(ready);
  return [...found];
}
