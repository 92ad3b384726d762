/**
 * Metrics that separate two groups, by the rules of `separations` in
 * `analyze/executions/src/groups.rs`.
 */

import type { Group } from './group';
import type { Order } from './order';
import type { Numbers } from './pack';
import { correct, leastChance, Runs, type Tail, twoSidedTail } from './permutation';
import { coarse, type Spread, surer } from './statistics';
import type { Table } from './table';

type Both = readonly [Group, Group];

/** A metric in two groups. */
export interface Separation {
  column: number;
  groups: [Spread, Spread];
  /**
   * Probability of so great a difference by chance, corrected for the number of metrics. It is that
   * of ranks alone where means are infinite or overflow.
   */
  chance: number;
  /** Probability that an execution of B has more than one of A, ties counting one half. */
  higher: number;
}

/** Bits of groups A and B in `membership`. */
const IN = [1, 2] as const;

/**
 * The groups of each execution, as bits. Metrics read them many times, so they are computed once,
 * into contiguous memory.
 */
export function membership(groups: Both, executions: number): Uint8Array {
  const bits = new Uint8Array(executions);
  for (let one = 0; one < executions; one++) {
    bits[one] = (groups[0].has(one) ? IN[0] : 0) | (groups[1].has(one) ? IN[1] : 0);
  }
  return bits;
}

/** Mean and deviation of a metric over the executions of a group with a known value. */
export function spreadOf(values: Numbers, bits: Uint8Array, bit: number): Spread {
  let executions = 0;
  let sum = 0;
  for (let one = 0; one < bits.length; one++) {
    if ((bits[one] & bit) === 0) continue;
    const value = values[one];
    if (Number.isNaN(value)) continue;
    executions++;
    sum += value;
  }
  if (!Number.isFinite(sum)) return runningSpread(values, bits, bit);
  const mean = executions === 0 ? 0 : sum / executions;
  let squares = 0;
  for (let one = 0; one < bits.length; one++) {
    if ((bits[one] & bit) === 0) continue;
    const away = values[one] - mean;
    if (!Number.isNaN(away)) squares += away * away;
  }
  const deviation = executions < 2 ? 0 : Math.sqrt(squares / (executions - 1));
  return { executions, present: executions, mean, deviation };
}

/**
 * Mean and deviation of numbers whose sum overflows, by a running mean (Welford 1962), like the
 * terminal. The mean is infinite or NaN only if a number is infinite. The division for each number
 * is why it is not the normal path.
 */
function runningSpread(values: Numbers, bits: Uint8Array, bit: number): Spread {
  let executions = 0;
  let mean = 0;
  let squares = 0;
  for (let one = 0; one < bits.length; one++) {
    if ((bits[one] & bit) === 0 || Number.isNaN(values[one])) continue;
    executions++;
    const fromMean = values[one] - mean;
    mean += fromMean / executions;
    squares += fromMean * (values[one] - mean);
  }
  const deviation = executions < 2 ? 0 : Math.sqrt(squares / (executions - 1));
  return { executions, present: executions, mean, deviation };
}

/** Two groups of numbers, compared with all other choices of B: as `numbers` in `statistics.rs`. */
export interface Compared {
  byMean: Tail;
  byRanks: Tail;
  /** Probability that a number of B is greater than one of A, ties counting one half. */
  higher: number;
  /** Number of values other than the most frequent one. */
  differing: number;
}

/** Compares the numbers of a metric in both groups, in two passes through its order. */
export function numbersOf(values: Numbers, { order, known }: Order, bits: Uint8Array): Compared {
  const counts = [0, 0];
  for (let at = 0; at < known; at++) {
    counts[0] += bits[order[at]] & 1;
    counts[1] += bits[order[at]] >> 1;
  }
  const all = counts[0] + counts[1];
  const [numbers, ranks] = [new Runs(all), new Runs(all)];
  let [sum, rankSum, frequent, placed] = [0, 0, 0, 0];
  let value = NaN;
  let a = 0;
  let b = 0;
  const end = () => {
    const count = a + b;
    if (count === 0) return;
    const rank = placed + (count + 1) / 2;
    numbers.push(value, count);
    ranks.push(rank, count);
    sum += value * b;
    rankSum += rank * b;
    frequent = Math.max(frequent, count);
    placed += count;
  };
  for (let at = 0; at < known; at++) {
    const one = order[at];
    if (bits[one] === 0) continue;
    if (values[one] !== value) {
      end();
      value = values[one];
      a = b = 0;
    }
    a += bits[one] & 1;
    b += bits[one] >> 1;
  }
  end();
  const above = rankSum - (counts[1] * (counts[1] + 1)) / 2;
  return {
    byMean: numbers.tail(counts[1], sum),
    byRanks: ranks.tail(counts[1], rankSum),
    higher: counts.includes(0) ? 0.5 : above / (counts[0] * counts[1]),
    differing: all - frequent,
  };
}

/** A metric with its uncorrected probability and the least probability that its test can give. */
interface Uncorrected extends Separation {
  least: number;
}

function separation(table: Table, bits: Uint8Array, column: number): Uncorrected {
  const { values } = table.numbers[column];
  const compared = numbersOf(values, table.orderOf(column), bits);
  const [a, b] = IN.map((bit) => spreadOf(values, bits, bit));
  const least = leastChance(a.executions, b.executions, compared.differing);
  const isEnough = a.executions > 1 && b.executions > 1;
  const found = isEnough ? surer(twoSidedTail(compared.byMean), twoSidedTail(compared.byRanks)) : 1;
  return { column, groups: [a, b], chance: Math.max(found, least), least, higher: compared.higher };
}

/** Tests metrics in steps: with many executions each test takes longer than a frame. */
export class Separating {
  private readonly found: Uncorrected[] = [];
  private readonly bits: Uint8Array;

  constructor(
    private readonly table: Table,
    groups: Both,
    /** Number of metrics: they are the first columns. */
    private readonly figures: number,
  ) {
    this.bits = membership(groups, table.executions);
  }

  /** Sorts or tests the next metric. Returns whether all are tested. */
  step(): boolean {
    const { found, figures, table, bits } = this;
    const column = found.length;
    if (column < figures) {
      if (table.hasOrder(column)) found.push(separation(table, bits, column));
      else table.orderOf(column);
    }
    return found.length >= figures;
  }

  /** The result of one column, also if it does not separate the groups. */
  of(column: number): Separation | null {
    return this.corrected().find((one) => one.column === column) ?? null;
  }

  private corrected(): Separation[] {
    const chances = Float64Array.from(this.found, ({ chance }) => chance);
    correct(
      chances,
      Float64Array.from(this.found, ({ least }) => least),
    );
    return this.found.map(({ column, groups, higher }, at) => ({
      column,
      groups,
      higher,
      chance: chances[at],
    }));
  }

  /**
   * Metrics that separate the groups, the best first; of equally good ones the most significant
   * first.
   */
  ranked(): Separation[] {
    const apart = (one: Separation) => Math.abs(one.higher - 0.5);
    return this.corrected()
      .filter((one) => one.higher !== 0.5)
      .sort((one, other) => apart(other) - apart(one) || coarse(one.chance) - coarse(other.chance));
  }
}
