/**
 * Texts that separate two groups: threads, hosts, labels and captured texts. By the rules of
 * `analyze/executions/src/texts.rs`: Pearson's chi-squared test of all texts of a column, Fisher's
 * exact test of each text, and Cramér's V corrected for bias.
 *
 * Groups count their texts anyway, so no execution is visited here: the cost of a column depends on
 * the number of its texts.
 */

import { SURE } from './compare';
import type { Group } from './group';
import type { Pack, Source } from './pack';
import { correct, corrected, leastChance, leastChances } from './permutation';
import { chanceOfSquares, coarse, presence, surer } from './statistics';
import type { Table } from './table';

type Both = readonly [Group, Group];

/** A column of texts in two groups. */
export interface TextSeparation {
  /** `thread`, `host`, `label`, or the name of a captured text. */
  name: string;
  /** The column of codes to filter by. */
  column: number;
  /** The text with the least probability; null stands for no text. */
  value: string | null;
  /** Codes of that text. */
  codes: number[];
  /** Share of each group with that text. */
  shares: [number, number];
  /** Cramér's V: 0 is no association, 1 separates the groups. */
  association: number;
  /** Corrected for the number of columns. */
  chance: number;
}

/**
 * Whether to list a column. With many different texts V may be 0 although one text is significant.
 */
export const tells = ({ association, chance }: TextSeparation) => association > 0 || chance < SURE;

/** Position of a code without executions. */
const UNSEEN = 0xffffffff;

/** A text of each execution. */
export interface TextColumn {
  name: string;
  column: number;
  texts: string[];
  /** Position in `texts` by code; `texts.length` stands for no text. */
  places: Uint32Array;
}

/**
 * Positions of codes. Texts are in the order of their first executions; codes with the same text
 * share a position.
 */
function byFirst(
  table: Table,
  column: number,
  textOf: (code: number) => string | null,
): Omit<TextColumn, 'name'> {
  const { codeTable, codes } = table;
  const places = new Uint32Array(codes[column].values.length).fill(UNSEEN);
  const known = new Map<string, number>();
  const none: number[] = [];
  let left = places.length;
  for (let cell = column; cell < codeTable.length && left > 0; cell += codes.length) {
    const code = codeTable[cell];
    if (places[code] !== UNSEEN) continue;
    const text = textOf(code);
    const place = text === null ? 0 : (known.get(text) ?? known.size);
    places[code] = place;
    if (text === null) none.push(code);
    else known.set(text, place);
    left--;
  }
  for (const code of none) places[code] = known.size;
  return { column, texts: [...known.keys()], places };
}

/** All columns of texts, in the terminal's order. */
export function textColumns(table: Table, pack: Pack): TextColumn[] {
  const at = (key: string) => table.codes.findIndex((one) => one.key === key);
  const bySource = (name: string, of: (source: Source) => string | null) => ({
    name,
    ...byFirst(table, at('source'), (code) =>
      code < pack.sources.length ? of(pack.sources[code]) : null,
    ),
  });
  const thread = (code: number) => (code < pack.threads.length ? pack.threads[code] : null);
  return [
    { name: 'thread', ...byFirst(table, at('thread'), thread) },
    bySource('host', ({ host }) => host),
    bySource('label', ({ label }) => label),
    // Columns of captured texts come first, in this order.
    ...pack.texts.map(({ name, values }, column) => {
      const places = Uint32Array.from({ length: values.length + 1 }, (_, code) => code);
      return { name, column, texts: values, places };
    }),
  ];
}

/** Number of a group's executions by text, then without a text. */
export function countsOf({ column, texts, places }: TextColumn, group: Group): Uint32Array {
  const counts = new Uint32Array(texts.length + 1);
  // These counts ignore the filter of this column.
  const all = group.facets[column];
  const allowed = group.allowed.get(column);
  for (let code = 0; code < places.length; code++) {
    if (places[code] === UNSEEN || (allowed !== undefined && allowed[code] !== 1)) continue;
    counts[places[code]] += all[code];
  }
  return counts;
}

/** Number of executions by text in both groups. */
export interface Counts {
  a: ArrayLike<number>;
  b: ArrayLike<number>;
  sizes: [number, number];
}

/** Texts with a lower expected count in a group are not tested by themselves. */
const ENOUGH = 5;

/** Term of the chi-squared statistic for a text in one group. */
function away(found: number, both: number, size: number, all: number): number {
  const expected = (both * size) / all;
  return expected > 0 ? ((found - expected) * (found - expected)) / expected : 0;
}

/** The chi-squared statistic. */
export function distance({ a, b, sizes }: Counts): number {
  const all = Math.max(1, sizes[0] + sizes[1]);
  let sum = 0;
  for (let at = 0; at < a.length; at++) {
    const both = a[at] + b[at];
    sum += away(a[at], both, sizes[0], all) + away(b[at], both, sizes[1], all);
  }
  return sum;
}

/** Probability of such shares by chance (chi-squared test). */
export function chiSquared({ a, b, sizes }: Counts): number {
  const all = Math.max(1, sizes[0] + sizes[1]);
  const isEnough = (both: number) =>
    (both * sizes[0]) / all >= ENOUGH && (both * sizes[1]) / all >= ENOUGH;
  const tested: [number, number][] = [];
  // Rare texts are added up.
  const few: [number, number] = [0, 0];
  for (let at = 0; at < a.length; at++) {
    if (isEnough(a[at] + b[at])) tested.push([a[at], b[at]]);
    else {
      few[0] += a[at];
      few[1] += b[at];
    }
  }
  if (isEnough(few[0] + few[1])) tested.push(few);
  else if (tested.length > 0) {
    const least = tested.reduce((one, other) =>
      other[0] + other[1] < one[0] + one[1] ? other : one,
    );
    least[0] += few[0];
    least[1] += few[1];
  }
  if (tested.length < 2) return 1;
  const found = distance({
    a: tested.map(([one]) => one),
    b: tested.map(([, other]) => other),
    sizes,
  });
  return chanceOfSquares(found, tested.length - 1);
}

/** Cramér's V, corrected for its bias. */
export function association(counts: Counts): number {
  const { a, b, sizes } = counts;
  const all = sizes[0] + sizes[1];
  let texts = 0;
  for (let at = 0; at < a.length; at++) if (a[at] + b[at] > 0) texts++;
  if (sizes.includes(0) || texts < 2 || all < 3) return 0;
  const byChance = (rows: number) => (rows - 1) / (all - 1);
  const square = distance(counts) / all - byChance(texts);
  const narrower = (rows: number) => rows - (rows - 1) * byChance(rows);
  const most = Math.min(narrower(2) - 1, narrower(texts) - 1);
  return most > 0 ? Math.min(1, Math.sqrt(Math.max(0, square) / most)) : 0;
}

/** Pairs of counts below this are cached in an array: most texts of a long list are rare. */
const SMALL = 64;

/** Probabilities with a greater ratio differ after rounding to six digits. */
const NEAR = 1.0001;

/** Fisher's test with a cache, since many texts have the same counts. */
class Presence {
  private readonly small = new Float64Array(SMALL * SMALL).fill(-1);
  private readonly others = new Map<number, number>();

  constructor(private readonly sizes: [number, number]) {}

  of(a: number, b: number): number {
    if (a < SMALL && b < SMALL) {
      const at = a * SMALL + b;
      if (this.small[at] < 0) this.small[at] = this.tested(a, b);
      return this.small[at];
    }
    const key = a * (this.sizes[1] + 1) + b;
    let known = this.others.get(key);
    if (known === undefined) {
      known = this.tested(a, b);
      this.others.set(key, known);
    }
    return known;
  }

  private tested(a: number, b: number): number {
    const of = (present: number, executions: number) => ({
      executions,
      present,
      mean: 0,
      deviation: 0,
    });
    return presence(of(a, this.sizes[0]), of(b, this.sizes[1]));
  }
}

/**
 * The position of the text with the least probability, and that probability corrected for the
 * number of texts. Of equally significant texts it is the one whose shares differ most.
 */
export function surest({ a, b, sizes }: Counts): { place: number; chance: number } {
  const known = new Presence(sizes);
  let place = a.length;
  let chance = Infinity;
  let rounded = Infinity;
  let most = 0;
  let texts = 0;
  for (let at = 0; at < a.length; at++) {
    if (a[at] + b[at] === 0) continue;
    texts++;
    const found = known.of(a[at], b[at]);
    if (found > chance * NEAR) continue;
    const near = coarse(found);
    if (near > rounded) continue;
    const apart = coarse(Math.abs(a[at] / Math.max(1, sizes[0]) - b[at] / Math.max(1, sizes[1])));
    if (near === rounded && apart <= most) continue;
    [place, chance, rounded, most] = [at, found, near, apart];
  }
  if (texts === 0) return { place, chance: 1 };
  const leastOf = leastChances(...sizes);
  const least = new Float64Array(texts);
  let put = 0;
  for (let at = 0; at < a.length; at++)
    if (a[at] + b[at] > 0) least[put++] = leastOf(a[at] + b[at]);
  // Two texts are complementary: there is one test.
  return { place, chance: corrected(chance, texts === 2 ? least.subarray(0, 1) : least.sort()) };
}

/** A column with its uncorrected probability and the least probability that its test can give. */
interface Uncorrected extends TextSeparation {
  least: number;
}

/** Tests one column, in several steps. */
function* tested(of: TextColumn, groups: Both): Generator<void, Uncorrected> {
  const sizes: [number, number] = [groups[0].size, groups[1].size];
  const counts: Counts = { a: countsOf(of, groups[0]), b: countsOf(of, groups[1]), sizes };
  yield;
  const { place, chance: byOne } = surest(counts);
  yield;
  const chance = surer(chiSquared(counts), byOne);
  yield;
  const codes: number[] = [];
  for (let code = 0; code < of.places.length; code++)
    if (of.places[code] === place) codes.push(code);
  let frequent = 0;
  for (let at = 0; at < counts.a.length; at++)
    frequent = Math.max(frequent, counts.a[at] + counts.b[at]);
  const least = leastChance(...sizes, sizes[0] + sizes[1] - frequent);
  return {
    name: of.name,
    column: of.column,
    value: of.texts[place] ?? null,
    codes,
    shares: [
      (counts.a[place] ?? 0) / Math.max(1, sizes[0]),
      (counts.b[place] ?? 0) / Math.max(1, sizes[1]),
    ],
    association: association(counts),
    chance: Math.max(chance, least),
    least,
  };
}

/** Tests columns in steps: with very many texts each test takes longer than a frame. */
export class TextWork {
  private readonly found: Uncorrected[] = [];
  private running: Generator<void, Uncorrected> | null = null;

  constructor(
    private readonly columns: TextColumn[],
    private readonly groups: Both,
  ) {}

  /** Does a part of the work. Returns whether all columns are tested. */
  step(): boolean {
    const { found, columns } = this;
    if (found.length < columns.length) {
      this.running ??= tested(columns[found.length], this.groups);
      const { done, value } = this.running.next();
      if (done === true) {
        found.push(value);
        this.running = null;
      }
    }
    return found.length >= columns.length;
  }

  /** All columns, significant ones first, then by Cramér's V. */
  ranked(): TextSeparation[] {
    const chances = Float64Array.from(this.found, ({ chance }) => chance);
    correct(
      chances,
      Float64Array.from(this.found, ({ least }) => least),
    );
    const all = this.found.map(
      ({ least: _, ...one }, at): TextSeparation => ({ ...one, chance: chances[at] }),
    );
    const order = (one: TextSeparation, other: TextSeparation) =>
      coarse(other.association) - coarse(one.association);
    const sure = all.filter(({ chance }) => chance < SURE);
    const other = all.filter(({ chance }) => !(chance < SURE));
    return [...sure.sort(order), ...other.sort(order)];
  }
}
