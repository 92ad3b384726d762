/**
 * Heights of the bars of two histograms on one scale. A bar is a share of its group, since groups
 * differ in size (1,250 and 25 executions). Counts on one scale would make the smaller group
 * invisible; with a scale for each group, equal heights would not be equal shares.
 */

export type Counts = ArrayLike<number>;

/** Values at which an axis may end, times a power of ten. */
const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

export function sumOf(counts: Counts): number {
  let sum = 0;
  for (let bin = 0; bin < counts.length; bin++) sum += counts[bin];
  return sum;
}

/** Share of each bin; all are 0 if nothing was counted. */
export function sharesOf(counts: Counts): Float64Array {
  const total = sumOf(counts);
  return Float64Array.from(counts, (one) => (total === 0 ? 0 : one / total));
}

/** Rounds a share up to a value of `ROUND` times a power of ten, at most 1. */
function roundedUp(share: number): number {
  const power = 10 ** Math.floor(Math.log10(share));
  const step = ROUND.find((one) => one * power >= share * (1 - 1e-9)) ?? 10;
  return Math.min(1, step * power);
}

export interface ShareScale {
  /** The share at the end of the axis. */
  top: number;
  /** Height of a share, as a part of the axis. */
  heightOf(share: number): number;
}

/**
 * The scale for both groups. On a logarithmic scale, a bar of one execution in the larger group is
 * still visible.
 */
export function scaleOf(groups: readonly Counts[], isLog: boolean): ShareScale {
  let most = 0;
  for (const counts of groups) for (const share of sharesOf(counts)) most = Math.max(most, share);
  const top = most === 0 ? 1 : roundedUp(most);
  if (!isLog) return { top, heightOf: (share) => share / top };
  const fine = Math.max(1, ...groups.map(sumOf));
  return { top, heightOf: (share) => Math.log1p(share * fine) / Math.log1p(top * fine) };
}
