/** Which figures tell two groups apart: as `separations` in `analyze/executions/src/groups.rs` has it. */

import type { Group } from './group';
import type { Order } from './order';
import type { Numbers } from './pack';
import { correct, leastChance, Runs, type Tail, twoSidedTail } from './permutation';
import { coarse, type Spread, surer } from './statistics';
import type { Table } from './table';

type Both = readonly [Group, Group];

/** A figure in two groups. */
export interface Separation {
  /** Its column. */
  column: number;
  groups: [Spread, Spread];
  /** Corrected for the number of figures. Where numbers are infinite or too large it is that of ranks alone. */
  chance: number;
  /** How probable it is that an execution of B has more of it than one of A, equal ones being half. */
  higher: number;
}

/** In which groups each execution is: bits. */
const IN = [1, 2] as const;

/** Bits of all executions: read many times, so they are made once, and lie close to each other. */
export function membership(groups: Both, executions: number): Uint8Array {
  const bits = new Uint8Array(executions);
  for (let one = 0; one < executions; one++) {
    bits[one] = (groups[0].has(one) ? IN[0] : 0) | (groups[1].has(one) ? IN[1] : 0);
  }
  return bits;
}

/** Mean and deviation of a figure, of those executions of a group of which it is known. */
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
 * The same of numbers whose sum is infinite, by a mean that runs along (Welford 1962), as the terminal has it: such a mean is infinite, or
 * none, only if a number is; which costs a division each.
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

/** Two groups of numbers, compared with all ways to choose the second one: as `numbers` in `statistics.rs`. */
export interface Compared {
  byMean: Tail;
  byRanks: Tail;
  /** Probability that a number of B is greater than one of A, ties counting one half. */
  higher: number;
  /** Number of values other than the most frequent one. */
  differing: number;
}

/** Numbers of a figure in both groups, in two passes through its order. */
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

/** A figure with its uncorrected probability, and the least one that it can have. */
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

/** Tests one figure after the other, as each takes a while with many executions. */
export class Separating {
  private readonly found: Uncorrected[] = [];
  private readonly bits: Uint8Array;

  constructor(
    private readonly table: Table,
    groups: Both,
    /** How many figures there are: the first columns. */
    private readonly figures: number,
  ) {
    this.bits = membership(groups, table.executions);
  }

  /** Does a part of the work: makes the order of the next figure, or tests it. Whether that was the last. */
  step(): boolean {
    const { found, figures, table, bits } = this;
    const column = found.length;
    if (column < figures) {
      if (table.hasOrder(column)) found.push(separation(table, bits, column));
      else table.orderOf(column);
    }
    return found.length >= figures;
  }

  /** The test of one column, whether it tells anything or not. */
  of(column: number): Separation | null {
    return this.corrected().find((one) => one.column === column) ?? null;
  }

  private corrected(): Separation[] {
    const chances = Float64Array.from(this.found, ({ chance }) => chance);
    correct(
      chances,
      Float64Array.from(this.found, ({ least }) => least),
    );
    return this.found.map(({ column, groups, higher }, at) => ({ column, groups, higher, chance: chances[at] }));
  }

  /** Those that tell anything: the best first, of those as good as each other the surest. */
  ranked(): Separation[] {
    const apart = (one: Separation) => Math.abs(one.higher - 0.5);
    return this.corrected()
      .filter((one) => one.higher !== 0.5)
      .sort((one, other) => apart(other) - apart(one) || coarse(one.chance) - coarse(other.chance));
  }
}
