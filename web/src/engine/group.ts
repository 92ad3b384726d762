/**
 * A group of executions: those that pass all of its filters, with histograms and sums by context
 * that are kept up to date.
 *
 * Each filter has a bit, which is set for each execution that fails the filter. When a brush moves,
 * only executions between its old and its new position are visited: they are adjacent in the
 * column's order. A histogram counts the executions that pass all filters but its own, so that it
 * also shows the values outside the brush.
 *
 * Sums by context cost more than histograms, so added and removed executions wait in a list
 * (`Tally`) that is processed as time allows: own times first, from which all means follow; then
 * total times, for deviations.
 */

import { type Layer, Whole } from './layer';
import { rank } from './order';
import { addOwn, addWhole } from './sums';
import type { Table } from './table';
import { Tally } from './tally';

/** Cells of a column in `histograms`: one for each possible byte. */
export const ROOM = 256;

export interface Interval {
  low: number;
  high: number;
}

/** The group of all executions as plain data, to be sent by a worker. */
export interface GroupState {
  histograms: Int32Array;
  facets: Int32Array[];
  /** Sums of own times by context. */
  own: Float64Array;
}

/** Sums of times by context of one group. */
export interface GroupSums {
  own: Tally;
  whole: Tally;
  settle(deadline: number): boolean;
}

export class Group {
  size: number;
  /** By column of numbers, `ROOM` counts each. */
  readonly histograms: Int32Array;
  /** By column of codes, a count for each code. */
  readonly facets: Int32Array[];
  /** Filters by column of numbers. */
  readonly ranges = new Map<number, Interval>();
  /** Filters by column of codes: 1 for each code that passes. */
  readonly allowed = new Map<number, Uint8Array>();
  /** Sums of own times and of total times. */
  own: Tally;
  whole: Tally;
  /** By execution: bits of the filters that it fails. */
  private readonly fails: Uint32Array;
  private readonly bits = new Map<number, number>();
  private readonly places = new Map<number, [number, number]>();

  constructor(
    readonly table: Table,
    layer: Layer,
    /** The group without filters, whose sums are copied instead of computed again. */
    private readonly all: Group | null = null,
    /** Precomputed state of the group of all executions. */
    made?: GroupState,
  ) {
    const { executions, stride, codes } = table;
    this.fails = new Uint32Array(executions);
    this.size = executions;
    [this.own, this.whole] = Group.tallies(layer, executions);
    if (made !== undefined) {
      ({ histograms: this.histograms, facets: this.facets } = made);
      this.own.begin(made.own);
      this.whole.restart(this.fails);
    } else if (all === null) {
      this.histograms = new Int32Array(stride * ROOM);
      this.facets = codes.map((column) => new Int32Array(column.values.length));
      for (let one = 0; one < executions; one++) this.count(one, 1);
      this.own.restart(this.fails);
      this.whole.restart(this.fails);
    } else {
      this.histograms = all.histograms.slice();
      this.facets = all.facets.map((counts) => counts.slice());
      this.own.copy(all.own);
      this.whole.copy(all.whole);
    }
  }

  private static tallies(layer: Layer, executions: number): [Tally, Tally] {
    const { count } = layer.tree;
    const whole = new Whole(layer);
    return [
      new Tally(count, executions, (sums, one, sign) => addOwn(sums, layer.own, one, sign)),
      new Tally(count, executions, (sums, one, sign) => addWhole(sums, whole, one, sign)),
    ];
  }

  /** State of a group without filters whose own sums are complete. */
  state(): GroupState {
    const { histograms, facets } = this;
    return { histograms, facets, own: this.own.sums };
  }

  /** Starts again with another tree of contexts. */
  setLayer(layer: Layer): void {
    [this.own, this.whole] = Group.tallies(layer, this.table.executions);
    this.own.restart(this.fails);
    this.whole.restart(this.fails);
  }

  has(execution: number): boolean {
    return this.fails[execution] === 0;
  }

  hasSameMembers(other: Group): boolean {
    if (this.size !== other.size) return false;
    for (let one = 0; one < this.fails.length; one++)
      if (this.has(one) !== other.has(one)) return false;
    return true;
  }

  /** Number of executions whose times are not yet added or removed. */
  get behind(): number {
    return Math.max(this.own.behind, this.whole.behind);
  }

  isFiltered(): boolean {
    return this.bits.size > 0;
  }

  /** Adds an execution to all histograms, or removes it (`sign` -1). */
  private count(one: number, sign: number): void {
    const { stride, bins, codeTable, numbers } = this.table;
    const { histograms, facets } = this;
    const columns = numbers.length;
    let cell = one * stride;
    for (let column = 0, base = 0; column < columns; column++, base += ROOM)
      histograms[base + bins[cell++]] += sign;
    cell = one * facets.length;
    for (let column = 0; column < facets.length; column++)
      facets[column][codeTable[cell++]] += sign;
  }

  /** Saves the counts of the column whose filter changes: its own histogram ignores the filter. */
  private saved(dimension: number): () => void {
    const { stride } = this.table;
    if (dimension >= stride) {
      const counts = this.facets[dimension - stride].slice();
      return () => this.facets[dimension - stride].set(counts);
    }
    const counts = this.histograms.slice(dimension * ROOM, (dimension + 1) * ROOM);
    return () => this.histograms.set(counts, dimension * ROOM);
  }

  /**
   * Counts an execution that fails only the filter of `bit`: it belongs to that column's histogram
   * alone.
   */
  private countIn(bit: number, one: number, sign: number): void {
    const { stride, bins, codeTable } = this.table;
    const dimension = this.dimensions[31 - Math.clz32(bit)];
    if (dimension < stride)
      this.histograms[dimension * ROOM + bins[one * stride + dimension]] += sign;
    else
      this.facets[dimension - stride][codeTable[one * this.facets.length + dimension - stride]] +=
        sign;
  }

  /** Column of the filter of each bit; columns of codes follow those of numbers. */
  private readonly dimensions: number[] = new Array(32).fill(-1);

  /** The bit of a column's filter; 0 if all 32 are in use. */
  private bitOf(dimension: number): number {
    let bit = this.bits.get(dimension);
    if (bit !== undefined) return bit;
    const free = this.dimensions.indexOf(-1);
    if (free < 0) return 0;
    bit = (1 << free) >>> 0;
    this.dimensions[free] = dimension;
    this.bits.set(dimension, bit);
    return bit;
  }

  private release(dimension: number): void {
    const bit = this.bits.get(dimension);
    if (bit === undefined) return;
    this.bits.delete(dimension);
    this.dimensions[31 - Math.clz32(bit)] = -1;
  }

  /** An execution begins to pass a filter (`sign` 1) or ceases to (-1). */
  private flip(one: number, bit: number, sign: number): void {
    const others = this.fails[one] & ~bit;
    this.fails[one] = sign > 0 ? others : (others | bit) >>> 0;
    if (others === 0) {
      this.size += sign;
      this.count(one, sign);
      this.wait(one);
    } else if ((others & (others - 1)) === 0) this.countIn(others >>> 0, one, sign);
  }

  private wait(one: number): void {
    this.own.wait(one);
    this.whole.wait(one);
  }

  /**
   * Sets or removes the filter of a column of numbers. The range includes both ends. Returns false
   * if there are too many filters.
   */
  setRange(column: number, range: Interval | null): boolean {
    const { table } = this;
    const bit = this.bitOf(column);
    if (bit === 0) return false;
    const order = table.orderOf(column);
    const { values } = table.numbers[column];
    const [from, to] = this.places.get(column) ?? [0, table.executions];
    let begin = 0;
    let end = table.executions;
    if (range !== null) {
      begin = rank(values, order, range.low, false);
      end = Math.max(begin, rank(values, order, range.high, true));
    }
    const restore = this.saved(column);
    // Executions between the old ends and the new ones are added or removed.
    const parts: [number, number, number][] = [
      [from, Math.min(to, begin), -1],
      [Math.max(from, end), to, -1],
      [begin, Math.min(end, from), 1],
      [Math.max(begin, to), end, 1],
    ];
    const moved = parts.reduce((sum, [low, high]) => sum + Math.max(0, high - low), 0);
    if (moved > 1000 && (moved > 2 * (end - begin) || moved > table.executions / 3))
      this.rebuild(order.order, parts, bit, begin, end);
    else {
      for (const [low, high, sign] of parts) {
        for (let at = low; at < high; at++) this.flip(order.order[at], bit, sign);
      }
    }
    restore();
    if (range === null) {
      this.ranges.delete(column);
      this.places.delete(column);
      this.release(column);
    } else {
      this.ranges.set(column, range);
      this.places.set(column, [begin, end]);
    }
    return true;
  }

  /** Counts from scratch, which is less work where few executions are left or many change. */
  private rebuild(
    order: Uint32Array,
    parts: [number, number, number][],
    bit: number,
    begin: number,
    end: number,
  ): void {
    const { fails } = this;
    for (const [low, high, sign] of parts) {
      for (let at = low; at < high; at++) {
        if (sign > 0) fails[order[at]] &= ~bit;
        else fails[order[at]] |= bit;
      }
    }
    this.histograms.fill(0);
    for (const facet of this.facets) facet.fill(0);
    this.size = 0;
    // Visiting many in the order of memory is faster than in the column's order.
    const isMany = end - begin > fails.length / 8;
    const last = isMany ? fails.length : end;
    for (let at = isMany ? 0 : begin; at < last; at++) {
      const one = isMany ? at : order[at];
      const others = fails[one];
      if ((others & bit) !== 0) continue;
      if (others === 0) {
        this.size++;
        this.count(one, 1);
      } else if ((others & (others - 1)) === 0) this.countIn(others, one, 1);
    }
    this.own.restart(fails);
    this.whole.restart(fails);
  }

  /**
   * Sets or removes the filter of a column of codes. Returns false if there are too many filters.
   */
  setAllowed(column: number, allowed: Uint8Array | null): boolean {
    const { table } = this;
    const dimension = table.stride + column;
    const bit = this.bitOf(dimension);
    if (bit === 0) return false;
    const restore = this.saved(dimension);
    const width = this.facets.length;
    for (let one = 0, cell = column; one < table.executions; one++, cell += width) {
      const passes = allowed === null || allowed[table.codeTable[cell]] === 1;
      const failed = (this.fails[one] & bit) !== 0;
      if (passes === failed) this.flip(one, bit, passes ? 1 : -1);
    }
    restore();
    if (allowed === null) {
      this.allowed.delete(column);
      this.release(dimension);
    } else this.allowed.set(column, allowed);
    return true;
  }

  /** Removes all filters. */
  reset(): void {
    const { all } = this;
    if (all === null) {
      for (const column of [...this.ranges.keys()]) this.setRange(column, null);
      for (const column of [...this.allowed.keys()]) this.setAllowed(column, null);
      return;
    }
    if (!this.isFiltered()) return;
    this.fails.fill(0);
    this.size = this.table.executions;
    this.histograms.set(all.histograms);
    for (let column = 0; column < this.facets.length; column++)
      this.facets[column].set(all.facets[column]);
    for (const dimension of [...this.bits.keys()]) this.release(dimension);
    this.ranges.clear();
    this.allowed.clear();
    this.places.clear();
    this.own.copy(all.own);
    this.whole.copy(all.whole);
  }

  /** Counts a column of numbers again, after it was added or got another axis. */
  recount(column: number): void {
    const { stride, bins, executions } = this.table;
    const counts = this.histograms.subarray(column * ROOM, (column + 1) * ROOM).fill(0);
    const but = ~(this.bits.get(column) ?? 0);
    for (let one = 0, cell = column; one < executions; one++, cell += stride) {
      if ((this.fails[one] & but) === 0) counts[bins[cell]]++;
    }
  }

  /**
   * Processes waiting executions until a time (of `performance.now`). Returns whether all sums are
   * complete.
   */
  settle(deadline: number, now?: () => number): boolean {
    return this.settleOwn(deadline, now) && this.settleWhole(deadline, now);
  }

  settleOwn(deadline: number, now?: () => number): boolean {
    return this.own.settle(this.fails, this.size, this.all?.own ?? null, deadline, now);
  }

  settleWhole(deadline: number, now?: () => number): boolean {
    return this.whole.settle(this.fails, this.size, this.all?.whole ?? null, deadline, now);
  }

  /**
   * Sums by another tree of contexts. `settle` works on them until a time and returns whether they
   * are complete. They do not follow later changes of the group.
   */
  sumsBy(layer: Layer): GroupSums {
    const [own, whole] = Group.tallies(layer, this.table.executions);
    const { fails, size } = this;
    for (const tally of [own, whole]) tally.restart(fails);
    const settle = (deadline: number) =>
      own.settle(fails, size, null, deadline) && whole.settle(fails, size, null, deadline);
    return { own, whole, settle };
  }

  /** Members in the given order, or in reverse. */
  members(order: Uint32Array, isDown: boolean): Uint32Array {
    const found = new Uint32Array(this.size);
    let count = 0;
    const { fails } = this;
    if (isDown) {
      for (let at = order.length - 1; at >= 0; at--)
        if (fails[order[at]] === 0) found[count++] = order[at];
    } else
      for (let at = 0; at < order.length; at++)
        if (fails[order[at]] === 0) found[count++] = order[at];
    return found;
  }
}
