/**
 * Probability of the sum of a group's values in a random group: a double saddlepoint approximation,
 * by the rules of `analyze/executions/src/permutation.rs` (with sources), so that page and terminal
 * agree.
 */

/** The sum of a group compared with those of all groups of its size. */
export interface Tail {
  isMore: boolean;
  /**
   * Probability of a sum at least as far from the expected one on the same side; 1 where nothing
   * can be inferred.
   */
  chance: number;
}

const UNKNOWN: Tail = { isMore: false, chance: 1 };

/** Standard deviations within which a sum counts as the expected one. */
const NEAR = 0.8;
const STEPS = 100;
/** Maximum change of the log odds in a step. */
const LONGEST = 2;
/** Log odds beyond which a value is certainly drawn or not drawn. */
const CERTAIN = 20;
/** Error of the log probability at which the iteration ends. */
const CLOSE = 1e-10;

const TAU = 2 * Math.PI;

/** The two-sided probability. */
export const twoSidedTail = ({ chance }: Tail) => Math.min(1, 2 * chance);

const softplus = (x: number) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** Probability of the most probable number of a distribution with that variance. */
const exactly = (variance: number) => 1 / Math.max(1, Math.sqrt(TAU * variance));

/**
 * The values of two groups together, as numbers with counts. Reused: a comparison has one for each
 * context.
 */
export class Pool {
  private values = new Float64Array(64);
  private counts = new Float64Array(64);
  private scaled = new Float64Array(64);
  private length = 0;
  private last = NaN;
  private gap = 0;
  private shift = 0;
  private tilt = 0;
  private ofCount = 0;
  private ofSum = 0;
  private mean = 0;

  clear(): void {
    this.length = 0;
    this.last = NaN;
    this.gap = 0;
  }

  private put(value: number, count: number): void {
    if (this.length === this.values.length) {
      const grown = (from: Float64Array) => {
        const to = new Float64Array(2 * from.length);
        to.set(from);
        return to;
      };
      this.values = grown(this.values);
      this.counts = grown(this.counts);
      this.scaled = new Float64Array(this.values.length);
    }
    this.values[this.length] = value;
    this.counts[this.length++] = count;
  }

  /**
   * Adds `count` values with a mean (at least that of the values before) and a standard deviation.
   */
  push(mean: number, deviation: number, count: number): void {
    if (count <= 0) return;
    if (mean - this.last > this.gap) this.gap = mean - this.last;
    this.last = mean;
    if (deviation > 0) {
      const away = deviation * Math.sqrt(3);
      this.put(mean - away, count / 6);
      this.put(mean, (count * 2) / 3);
      this.put(mean + away, count / 6);
    } else this.put(mean, count);
  }

  /** Position of a sum of `drawn` of these values among the sums of all choices of as many. */
  tail(drawn: number, sum: number): Tail {
    const { values, counts, scaled, length } = this;
    let all = 0;
    let total = 0;
    for (let at = 0; at < length; at++) {
      all += counts[at];
      total += values[at] * counts[at];
    }
    const mean = total / all;
    let squares = 0;
    for (let at = 0; at < length; at++)
      squares += counts[at] * (values[at] - mean) * (values[at] - mean);
    const variance = squares / all;
    const far = sum - drawn * mean;
    if (!(drawn > 0 && drawn < all && variance > 0 && variance < Infinity && Number.isFinite(far)))
      return UNKNOWN;
    const isMore = far > 0;
    const deviation = isMore ? Math.sqrt(variance) : -Math.sqrt(variance);
    const away = far / deviation;
    if (away < NEAR * Math.sqrt((drawn * (all - drawn)) / Math.max(1, all - 1)))
      return { isMore, chance: 1 };
    for (let at = 0; at < length; at++) scaled[at] = (values[at] - mean) / deviation;
    this.shift = Math.log(drawn / (all - drawn));
    this.tilt = 0;
    for (let step = 0; step < STEPS; step++) if (this.step(drawn, away) < CLOSE) break;
    return { isMore, chance: this.chance(all, drawn, away, this.gap / Math.abs(deviation)) };
  }

  /** A step of Newton's method; returns the gain. */
  private step(wanted: number, away: number): number {
    const { scaled, counts, length } = this;
    let drawn = -wanted;
    let sum = -away;
    let weights = 0;
    let means = 0;
    let squares = 0;
    for (let at = 0; at < length; at++) {
      const value = scaled[at];
      const part = 1 / (1 + Math.exp(-this.shift - this.tilt * value));
      const expected = counts[at] * part;
      const weight = expected * (1 - part);
      drawn += expected;
      sum += expected * value;
      weights += weight;
      means += weight * value;
      squares += weight * value * value;
    }
    const mean = means / weights;
    const spread = squares - means * mean;
    if (!(weights > 0 && spread > 0)) return 0;
    this.ofCount = weights;
    this.ofSum = spread;
    this.mean = mean;
    const rest = sum - drawn * mean;
    const tilt = -rest / spread;
    const shift = -drawn / weights - tilt * mean;
    let part = 1;
    for (let at = 0; at < length; at++) {
      const odds = this.shift + this.tilt * scaled[at];
      const change = shift + tilt * scaled[at];
      const size = Math.abs(change);
      const beyond = Math.abs(odds) - CERTAIN;
      if (beyond > 0) {
        if (odds * change <= 0) part = Math.min(part, (LONGEST + beyond) / size);
      } else if (size * part > LONGEST) part = LONGEST / size;
    }
    this.shift += part * shift;
    this.tilt += part * tilt;
    return (drawn * drawn) / weights + (rest * rest) / spread;
  }

  private chance(all: number, drawn: number, away: number, greatest: number): number {
    const { scaled, counts, length, shift, tilt, mean } = this;
    const odds = Math.log(drawn / (all - drawn));
    let power = -(shift - odds) * drawn - tilt * away;
    let cubes = 0;
    let squares = 0;
    const none = softplus(odds);
    for (let at = 0; at < length; at++) {
      const here = shift + tilt * scaled[at];
      power += counts[at] * (softplus(here) - none);
      const part = 1 / (1 + Math.exp(-here));
      const far = Math.abs(scaled[at] - mean);
      const square = counts[at] * part * (1 - part) * far * far;
      squares += square;
      cubes += square * far;
    }
    const gap = Math.min(greatest, cubes / squares);
    const bound = Math.exp(Math.min(0, power));
    // Ratio of the probabilities of drawing exactly that number: with tilted odds, and with equal
    // odds.
    const count = exactly(this.ofCount) / exactly(drawn * (1 - drawn / all));
    const step = gap > 0 ? (1 - Math.exp(-tilt * gap)) / gap : tilt;
    const beyond = step * Math.sqrt(TAU * this.ofSum);
    return Math.min(1, (bound * count) / Math.max(1, beyond));
  }
}

/** A run takes one eighth of the values between it and the nearer end. */
const RUN = 8;

/**
 * Values in ascending order, gathered in runs: single values at both ends, longer runs towards the
 * middle.
 */
export class Runs {
  private readonly pool = new Pool();
  private placed = 0;
  private first = 0;
  private count = 0;
  private left = 0;
  private sum = 0;
  private squares = 0;

  constructor(private readonly all: number) {}

  /** Adds a value `count` times. Values must be ascending. */
  push(value: number, count: number): void {
    let rest = count;
    while (rest > 0) {
      if (this.left === 0) {
        this.end();
        this.first = value;
        const fromEnd = Math.min(this.placed, Math.max(0, this.all - this.placed - 1));
        this.left = Math.max(1, Math.floor(fromEnd / RUN));
      }
      const taken = Math.min(rest, this.left);
      const fromFirst = value - this.first;
      this.count += taken;
      this.sum += taken * fromFirst;
      this.squares += taken * fromFirst * fromFirst;
      this.left -= taken;
      this.placed += taken;
      rest -= taken;
    }
  }

  private end(): void {
    if (this.count > 0) {
      const mean = this.sum / this.count;
      const deviation = Math.sqrt(Math.max(0, this.squares / this.count - mean * mean));
      this.pool.push(this.first + mean, deviation, this.count);
    }
    this.count = this.sum = this.squares = 0;
  }

  tail(drawn: number, sum: number): Tail {
    this.end();
    this.left = 0;
    return this.pool.tail(drawn, sum);
  }
}

/**
 * The least probability that a test can give if `differing` values of both groups are not the most
 * frequent one.
 */
export function leastChance(one: number, other: number, differing: number): number {
  const all = one + other;
  const few = Math.min(one, other);
  let chance = 2;
  for (let place = 0; place < Math.min(few, differing) && chance >= 1e-30; place++)
    chance *= (few - place) / (all - place);
  return Math.min(1, chance);
}

/** The same for each number of differing values, up to where it no longer matters. */
export function leastChances(one: number, other: number): (differing: number) => number {
  const all = one + other;
  const few = Math.min(one, other);
  const known = [2];
  for (let place = 0; place < few && known[place] >= 1e-30; place++)
    known.push((known[place] * (few - place)) / (all - place));
  return (differing) => Math.min(1, known[Math.min(differing, known.length - 1)]);
}

/** Tolerance for equal probabilities with different rounding. */
const ROUNDED = 1 + 1e-9;

/**
 * Corrects a probability for those tests that can give one as small; `least` is in ascending order.
 */
export function corrected(chance: number, least: ArrayLike<number>): number {
  let low = 0;
  let high = least.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (least[middle] <= chance * ROUNDED) low = middle + 1;
    else high = middle;
  }
  return Math.min(1, chance * Math.max(1, low));
}

/**
 * Corrects probabilities in place for the tests that can give one as small (Tarone 1990); NaN was
 * not tested.
 */
export function correct(chances: Float64Array, least: Float64Array): void {
  const sorted = least.filter((_, at) => !Number.isNaN(chances[at])).sort();
  for (let at = 0; at < chances.length; at++)
    if (!Number.isNaN(chances[at])) chances[at] = corrected(chances[at], sorted);
}
