/** What executions can be filtered by: numbers with an axis, and codes (texts, sources, threads). */

import { type Axis, axisOf, binInto, fitting, type Range, rangeOf, type Scale } from './axis';
import { type Order, orderOf } from './order';
import { NONE, type Numbers, type Pack } from './pack';

export interface NumberColumn {
  /** Stays the same over sessions: stands in addresses. */
  key: string;
  label: string;
  unit: string;
  description: string;
  values: Numbers;
  range: Range;
  /** The scale that fits by itself. */
  fitting: Scale;
  axis: Axis;
  /** The context whose time it is. */
  context: number | null;
}

export interface CodeColumn {
  key: string;
  label: string;
  /** By code; the last is of executions that have none. */
  values: string[];
  hasNone: boolean;
}

/** Numbers that can be added later: times in contexts. */
export const SPARE = 8;

export class Table {
  readonly executions: number;
  readonly numbers: NumberColumn[] = [];
  readonly codes: CodeColumn[] = [];
  /** Columns of `bins`; each execution's bins lie beside each other, so that one visit loads them all. */
  readonly stride: number;
  readonly bins: Uint8Array;
  /** Codes of each execution beside each other. */
  readonly codeTable: Uint32Array;
  private readonly orders = new Map<number, Order>();

  constructor(pack: Pack) {
    this.executions = pack.executions;
    this.stride = (pack.metrics.length + 1 + SPARE + 3) & ~3;
    this.bins = new Uint8Array(this.executions * this.stride);
    for (const { name, unit, description, values } of pack.metrics) {
      this.addNumber({ key: `m.${name}`, label: label(name), unit, description, values, context: null });
    }
    const description = 'when it began, from the first one on';
    const first = pack.begin.reduce((least, begin) => Math.min(least, begin), Infinity);
    const begin = Number.isFinite(first) && first !== 0 ? pack.begin.map((one) => one - first) : pack.begin;
    this.addNumber({ key: 'begin', label: 'begin', unit: 'ns', description, values: begin, context: null }, 'linear');
    this.codeTable = this.fillCodes(pack);
  }

  private fillCodes(pack: Pack): Uint32Array {
    const sources = pack.sources.map(({ path, host, label }) => label || (host ? `${host}: ${path}` : path));
    const given: [string, string, string[], Uint16Array | Uint32Array][] = [
      ...pack.texts.map((one): [string, string, string[], Uint32Array] => [`t.${one.name}`, one.name, one.values, one.codes]),
      ['source', 'source', sources, pack.source],
      ['thread', 'thread', pack.threads, pack.thread],
    ];
    const table = new Uint32Array(this.executions * given.length);
    given.forEach(([key, label, values, codes], place) => {
      let hasNone = false;
      for (let at = 0, cell = place; at < codes.length; at++, cell += given.length) {
        const isNone = codes[at] === NONE;
        if (isNone) hasNone = true;
        table[cell] = isNone ? values.length : codes[at];
      }
      this.codes.push({ key, label, values: [...values, '(none)'], hasNone });
    });
    return table;
  }

  /** Adds a column of numbers; -1 if there is no room. */
  addNumber(given: Omit<NumberColumn, 'range' | 'axis' | 'fitting'>, scale?: Scale): number {
    const place = this.numbers.length;
    if (place >= this.stride) return -1;
    const range = rangeOf(given.values);
    const fits = scale ?? fitting(given.values, range);
    const axis = axisOf(range, fits);
    this.numbers.push({ ...given, range, fitting: fits, axis });
    binInto(this.bins, this.stride, place, given.values, axis);
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

/** `duration_ns` is `duration`: the unit is shown with the numbers. */
function label(name: string): string {
  return name.replace(/_(ns|bytes)$/, '').replaceAll('_', ' ');
}
