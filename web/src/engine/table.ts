/** The columns to filter by: numbers with an axis, and codes (texts, sources, threads). */

import {
  type Axis,
  axisOf,
  type Binner,
  binInto,
  binner,
  fitting,
  type Range,
  rangeOf,
  type Scale,
} from './axis';
import { type Order, orderOf } from './order';
import { NONE, type Numbers, type Pack } from './pack';

export interface NumberColumn {
  /** Identifies the column in addresses, so it never changes. */
  key: string;
  label: string;
  unit: string;
  description: string;
  values: Numbers;
  range: Range;
  /** The scale that suits the values. */
  fitting: Scale;
  axis: Axis;
  /** The context whose time it is; null for metrics. */
  context: number | null;
}

export interface CodeColumn {
  key: string;
  label: string;
  /** By code; the last value stands for executions without the text. */
  values: string[];
}

/** Maximum number of columns added later: times in contexts. */
export const SPARE = 8;

/** Number of executions whose bins are filled together. */
const BLOCK = 2048;

type Given = Omit<NumberColumn, 'range' | 'axis' | 'fitting'>;

function columnOf(given: Given, scale?: Scale): NumberColumn {
  const range = rangeOf(given.values);
  const fits = scale ?? fitting(given.values, range);
  return { ...given, range, fitting: fits, axis: axisOf(range, fits) };
}

/** Begin of executions, relative to the first one. */
function beginOf({ begin }: Pack): NumberColumn {
  let first = Infinity;
  for (let at = 0; at < begin.length; at++) if (begin[at] < first) first = begin[at];
  const values = new Float64Array(begin.length);
  const from = Number.isFinite(first) ? first : 0;
  for (let at = 0; at < begin.length; at++) values[at] = begin[at] - from;
  const description = 'begin, relative to the first execution';
  return columnOf(
    { key: 'begin', label: 'begin', unit: 'ns', description, values, context: null },
    'linear',
  );
}

/** A table as plain data, to be sent by a worker. */
export interface TableState {
  numbers: NumberColumn[];
  codes: CodeColumn[];
  bins: Uint8Array;
  codeTable: Uint32Array;
  orders: Map<number, Order>;
}

export class Table {
  readonly executions: number;
  readonly numbers: NumberColumn[] = [];
  readonly codes: CodeColumn[] = [];
  /**
   * Length of a row of `bins`. The bins of an execution are adjacent, so that one visit loads them
   * all.
   */
  readonly stride: number;
  readonly bins: Uint8Array;
  /** Codes by execution and column. */
  readonly codeTable: Uint32Array;
  private readonly orders: Map<number, Order>;

  /** Builds the table of a pack, or takes it from a worker (`made`). */
  constructor(pack: Pack, made?: TableState) {
    this.executions = pack.executions;
    this.stride = (pack.metrics.length + 1 + SPARE + 3) & ~3;
    this.orders = made?.orders ?? new Map();
    if (made !== undefined) {
      ({
        numbers: this.numbers,
        codes: this.codes,
        bins: this.bins,
        codeTable: this.codeTable,
      } = made);
      return;
    }
    this.bins = new Uint8Array(this.executions * this.stride);
    for (const { name, unit, description, values } of pack.metrics) {
      this.numbers.push(
        columnOf({
          key: `m.${name}`,
          label: label(name),
          unit,
          description,
          values,
          context: null,
        }),
      );
    }
    this.numbers.push(beginOf(pack));
    this.fillBins(this.numbers.map(({ values, axis }) => binner(values, axis)));
    this.codeTable = this.fillCodes(pack);
  }

  state(): TableState {
    const { numbers, codes, bins, codeTable, orders } = this;
    return { numbers, codes, bins, codeTable, orders };
  }

  /** Fills all columns for a block of executions at a time, whose rows then stay in the cache. */
  private fillBins(binners: Binner[]): void {
    for (let from = 0; from < this.executions; from += BLOCK) {
      const to = Math.min(this.executions, from + BLOCK);
      for (let column = 0; column < binners.length; column++)
        binners[column](this.bins, this.stride, column, from, to);
    }
  }

  private fillCodes(pack: Pack): Uint32Array {
    const labels = pack.sources.map(({ label }) => label);
    const sources = pack.sources.map(({ path, host, label }) => {
      // Traces with the same label are distinguished by their paths.
      const isAlone = labels.indexOf(label) === labels.lastIndexOf(label);
      const place = host ? `${host}: ${path}` : path;
      if (label === '') return place;
      return isAlone ? label : `${label}: ${place}`;
    });
    const given: [string, string, string[], Uint16Array | Uint32Array][] = [
      ...pack.texts.map((one): [string, string, string[], Uint32Array] => [
        `t.${one.name}`,
        one.name,
        one.values,
        one.codes,
      ]),
      ['source', 'source', sources, pack.source],
      ['thread', 'thread', pack.threads, pack.thread],
    ];
    const table = new Uint32Array(this.executions * given.length);
    given.forEach(([key, label, values, codes], place) => {
      for (let at = 0, cell = place; at < codes.length; at++, cell += given.length)
        table[cell] = codes[at] === NONE ? values.length : codes[at];
      this.codes.push({ key, label, values: [...values, '(none)'] });
    });
    return table;
  }

  /** Adds a column of numbers. Returns its index, or -1 if there are too many. */
  addNumber(given: Given): number {
    const place = this.numbers.length;
    if (place >= this.stride) return -1;
    const column = columnOf(given);
    this.numbers.push(column);
    binInto(this.bins, this.stride, place, column.values, column.axis);
    return place;
  }

  setScale(column: number, scale: Scale): boolean {
    const of = this.numbers[column];
    const axis = axisOf(of.range, scale);
    if (axis.scale === of.axis.scale) return false;
    of.axis = axis;
    binInto(this.bins, this.stride, column, of.values, axis);
    return true;
  }

  orderOf(column: number): Order {
    let found = this.orders.get(column);
    if (found === undefined) {
      found = orderOf(this.numbers[column].values);
      this.orders.set(column, found);
    }
    return found;
  }

  hasOrder(column: number): boolean {
    return this.orders.has(column);
  }
}

/** Name without its unit (`duration_ns` is `duration`): numbers show the unit. */
function label(name: string): string {
  return name.replace(/_(ns|bytes)$/, '').replaceAll('_', ' ');
}
