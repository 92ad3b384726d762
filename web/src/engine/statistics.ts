/**
 * Statistics of two groups, by the rules of `analyze/executions/src/statistics.rs`, so that page
 * and terminal agree: intervals of Welch's and Student's tests, Fisher's exact test of presence,
 * Hedges' g.
 */

/** Times of a group's executions in a context, or values of a metric. */
export interface Spread {
  executions: number;
  /** Number of executions with time in the context. */
  present: number;
  /** Mean over all executions; absent ones count as 0. */
  mean: number;
  /** Sample standard deviation. */
  deviation: number;
}

/**
 * Rounds to six digits: page and terminal sum in different orders, but must rank equal values
 * equally.
 */
export function coarse(number: number): number {
  return Number(number.toPrecision(6));
}

/**
 * Above this number of degrees of freedom Student's distribution is computed from the normal one.
 */
const MANY = 400;

/** Natural logarithm of the gamma function, by Stirling's series. */
export function logGamma(value: number): number {
  let shift = 0;
  let at = value;
  while (at < 12) {
    shift -= Math.log(at);
    at += 1;
  }
  const inverse = 1 / (at * at);
  const series =
    1 / 12 -
    inverse *
      (1 / 360 -
        inverse *
          (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188 - (inverse * 691) / 360360))));
  return shift + (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + series / at;
}

/** Continued fraction of the incomplete beta function, by Lentz's algorithm. */
function betaFraction(a: number, b: number, x: number): number {
  const tiny = 1e-300;
  const hold = (value: number) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / hold(1 - ((a + b) * x) / (a + 1));
  let result = d;
  for (let m = 1; m < 1000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / hold(1 + even * d);
    c = hold(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / hold(1 + odd * d);
    c = hold(1 + odd / c);
    const step = d * c;
    result *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return result;
}

/**
 * Regularized incomplete beta function. `rest` is 1 - x, computed by the caller without
 * cancellation.
 */
function beta(a: number, b: number, x: number, rest: number): number {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const front = Math.exp(
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(rest),
  );
  if (x < (a + 1) / (a + b + 2)) return (front * betaFraction(a, b, x)) / a;
  return 1 - (front * betaFraction(b, a, rest)) / b;
}

/** Complementary error function, for numbers of 0 and above. */
export function erfc(value: number): number {
  if (value > 27.3) return 0;
  if (value < 2) {
    let term = value;
    let sum = value;
    for (let n = 1; n < 100; n++) {
      term *= (-value * value) / n;
      const part = term / (2 * n + 1);
      sum += part;
      if (Math.abs(part) < 1e-17 * Math.abs(sum)) break;
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = value;
  for (let n = 60; n >= 1; n--) fraction = value + n / 2 / fraction;
  return Math.exp(-value * value) / (Math.sqrt(Math.PI) * fraction);
}

/** Two-sided tail probability of Student's t. */
export function twoSided(t: number, freedom: number): number {
  if (!Number.isFinite(t)) return 0;
  if (freedom > MANY) {
    // Hill's expansion (1970): the normal deviate with the same tail probability.
    const a = freedom - 0.5;
    const b = 48 * a * a;
    let y = a * Math.log1p((t * t) / freedom);
    const z = Math.sqrt(y);
    y = ((((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b) + y + 3) / b + 1;
    return erfc((y * z) / Math.SQRT2);
  }
  const square = t * t;
  return beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square));
}

/** Maximum number of terms; a million texts need fewer. */
const TERMS = 100_000;

/** Upper tail probability of the chi-squared distribution. */
export function chanceOfSquares(sum: number, freedom: number): number {
  const [a, x] = [freedom / 2, sum / 2];
  if (!(x > 0)) return 1;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    // Series of the lower incomplete gamma function.
    let term = 1 / a;
    let below = term;
    for (let n = 1; n < TERMS && term > 1e-17 * below; n++) {
      term *= x / (a + n);
      below += term;
    }
    return Math.max(0, 1 - front * below);
  }
  // Continued fraction of the upper incomplete gamma function, by Lentz's algorithm.
  let b = x + 1 - a;
  let c = 1e300;
  let d = 1 / b;
  let result = d;
  for (let n = 1; n < TERMS; n++) {
    const part = -n * (n - a);
    b += 2;
    d = 1 / (part * d + b);
    c = b + part / c;
    const step = c * d;
    result *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return Math.min(1, front * result);
}

/** The value that Student's t exceeds on both sides together with a probability of 5 %. */
export function reach95(freedom: number): number {
  let low = 1.9;
  let high = 13;
  for (let step = 0; step < 60 && high - low > 1e-13 * high; step++) {
    const middle = (low + high) / 2;
    if (twoSided(middle, freedom) > 0.05) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Standard errors of the difference of two means and their degrees of freedom. */
interface Errors {
  more: number;
  welch: [error: number, freedom: number];
  student: [error: number, freedom: number];
}

/** Null for fewer than two executions, and where means or squares are not finite. */
function errorsOf(a: Spread, b: Spread): Errors | null {
  const [one, other] = [a.deviation * a.deviation, b.deviation * b.deviation];
  const parts = [one / a.executions, other / b.executions];
  const more = b.mean - a.mean;
  const welch = parts[0] + parts[1];
  if (a.executions < 2 || b.executions < 2 || !Number.isFinite(more) || !Number.isFinite(welch))
    return null;
  const freedom =
    (welch * welch) / (parts[0] ** 2 / (a.executions - 1) + parts[1] ** 2 / (b.executions - 1));
  const free = a.executions + b.executions - 2;
  const common = (one * (a.executions - 1)) / free + (other * (b.executions - 1)) / free;
  const student = common * (1 / a.executions + 1 / b.executions);
  return {
    more,
    // The freedom is NaN or infinite if its terms overflow.
    welch: [Math.sqrt(welch), freedom > 1 ? Math.min(freedom, 1e15) : 1],
    student: [Math.sqrt(student), free],
  };
}

/**
 * The 95 % interval of the difference, the wider one of both tests; null if unknown. Welch's test
 * allows for different deviations of the groups, Student's for groups too small to show theirs.
 */
export function intervalOf(a: Spread, b: Spread): [number, number] | null {
  const found = errorsOf(a, b);
  if (found === null) return null;
  const { more, welch, student } = found;
  const reach = ([error, freedom]: [number, number]) =>
    error === 0 ? 0 : reach95(freedom) * error;
  const widest = Math.max(reach(welch), reach(student));
  return [more - widest, more + widest];
}

/** Difference of means divided by the pooled standard deviation; 0 if unknown. */
export function deviations(a: Spread, b: Spread): number {
  const free = Math.max(0, a.executions - 1) + Math.max(0, b.executions - 1);
  const more = b.mean - a.mean;
  if (free < 1 || more === 0) return 0;
  const squares =
    a.deviation * a.deviation * Math.max(0, a.executions - 1) +
    b.deviation * b.deviation * Math.max(0, b.executions - 1);
  const spread = Math.sqrt(squares / free);
  return Number.isFinite(more) && Number.isFinite(spread) ? more / spread : 0;
}

/** Hedges' g: `deviations` corrected for small groups. */
export function hedges(a: Spread, b: Spread): number {
  const free = Math.max(0, a.executions - 1) + Math.max(0, b.executions - 1);
  const found = deviations(a, b);
  return free > 1 ? found * Math.max(0, 1 - 3 / Math.max(3, 4 * free - 1)) : found;
}

/** The smaller of two probabilities, corrected for two tests. */
export function surer(one: number, other: number): number {
  return Math.min(1, 2 * Math.min(one, other));
}

/** Natural logarithm of the binomial coefficient. */
function logWays(all: number, some: number): number {
  return logGamma(all + 1) - logGamma(some + 1) - logGamma(all - some + 1);
}

/**
 * Probability of so different shares of present executions in two groups by chance (Fisher's exact
 * test).
 */
export function presence(a: Spread, b: Spread): number {
  const [drawn, found] = [b.executions, b.present];
  const [all, have] = [a.executions + drawn, a.present + found];
  const isKnown = a.present <= a.executions && found <= drawn;
  if (!isKnown || a.executions === 0 || drawn === 0) return 1;
  let term = Math.exp(
    logWays(have, found) + logWays(all - have, drawn - found) - logWays(all, drawn),
  );
  const isMany = found * all >= have * drawn;
  // Sums the terms at least as far from the expectation, until they no longer matter.
  let sum = 0;
  for (let at = found; term > sum * 1e-9; at += isMany ? 1 : -1) {
    sum += term;
    const absent = all - have + at - drawn;
    term *= isMany
      ? ((have - at) * (drawn - at)) / ((at + 1) * (absent + 1))
      : (at * absent) / ((have - at + 1) * (drawn - at + 1));
  }
  return Math.min(1, 2 * sum);
}
