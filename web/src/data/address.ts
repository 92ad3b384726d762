/** State of the view, as the part of the address after `#`. */

import type { Scale } from '../engine/axis';
import type { Part } from '../engine/compare';
import type { Mode } from '../engine/flame';
import type { Interval } from '../engine/group';

/** The filters of a group, by the keys of columns. */
export interface Filters {
  ranges: Map<string, Interval>;
  /** Codes that pass the filter. */
  codes: Map<string, number[]>;
}

export interface Shown {
  kind: number;
  /** Whether groups are chosen; if not, the page opens with those of `compare`. */
  isChosen: boolean;
  filters: [Filters, Filters];
  /** Scales other than the suitable ones. */
  scales: Map<string, Scale>;
  /** Whether the heights of histograms are logarithmic. */
  isTall: boolean;
  mode: Mode;
  /** Colours show own time or total time. */
  part: Part;
  /** Whether the root is at the bottom. */
  isFlipped: boolean;
  /** Whether the tree is that of callers. */
  isInverted: boolean;
  zoom: number;
  search: string;
  pins: number[];
  execution: number | null;
  /** Columns of times in contexts: `c.7` in the tree of calls, `i.7` in that of callers. */
  contexts: string[];
  sort: { key: string; isDown: boolean };
}

export function initial(): Shown {
  const filters = (): Filters => ({ ranges: new Map(), codes: new Map() });
  return {
    kind: 0,
    isChosen: false,
    filters: [filters(), filters()],
    scales: new Map(),
    isTall: false,
    mode: 'diff',
    part: 'own',
    isFlipped: false,
    isInverted: false,
    zoom: 0,
    search: '',
    pins: [],
    execution: null,
    contexts: [],
    sort: { key: '', isDown: true },
  };
}

const encode = encodeURIComponent;

function filtersText({ ranges, codes }: Filters): string {
  const parts: string[] = [];
  for (const [key, { low, high }] of ranges) parts.push(`${encode(key)}:${low}:${high}`);
  for (const [key, allowed] of codes) parts.push(`${encode(key)}=${allowed.join('.')}`);
  return parts.join(';');
}

/**
 * Value of `a` where neither group has a filter: an empty address means the groups of `compare`.
 */
const ALL = 'all';

function isAll({ ranges, codes }: Filters): boolean {
  return ranges.size === 0 && codes.size === 0;
}

export function toAddress(shown: Shown): string {
  const start = initial();
  const parts: string[] = [];
  const put = (key: string, value: string) => {
    if (value !== '') parts.push(`${key}=${encode(value)}`);
  };
  put('k', shown.kind === start.kind ? '' : String(shown.kind));
  put('ctx', shown.contexts.join(','));
  put('a', shown.isChosen && shown.filters.every(isAll) ? ALL : filtersText(shown.filters[0]));
  put('b', filtersText(shown.filters[1]));
  put('scale', [...shown.scales].map(([key, scale]) => `${encode(key)}:${scale}`).join(';'));
  put('tall', shown.isTall ? '1' : '');
  put('mode', shown.mode === start.mode ? '' : shown.mode);
  put('colour', shown.part === start.part ? '' : shown.part);
  put('flip', shown.isFlipped ? '1' : '');
  put('inv', shown.isInverted ? '1' : '');
  put('zoom', shown.zoom === 0 ? '' : String(shown.zoom));
  put('find', shown.search);
  put('pins', shown.pins.join(','));
  put('x', shown.execution === null ? '' : String(shown.execution));
  put('sort', shown.sort.key === '' ? '' : `${shown.sort.isDown ? '-' : ''}${shown.sort.key}`);
  return parts.join('&');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

function index(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : null;
}

function indices(text: string | undefined, separator: string): number[] {
  const found = (text ?? '').split(separator).map((one) => index(one));
  return [...new Set(found.filter((one): one is number => one !== null))];
}

function number(text: string | undefined): number | null {
  if (text === undefined || text === '') return null;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

function filtersFrom(text: string | undefined): Filters {
  const found: Filters = { ranges: new Map(), codes: new Map() };
  for (const part of (text ?? '').split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0) {
      found.codes.set(decode(part.slice(0, equals)), indices(part.slice(equals + 1), '.'));
      continue;
    }
    const [key, low, high] = part.split(':');
    const [from, to] = [number(low), number(high)];
    if (key !== '' && from !== null && to !== null && from <= to)
      found.ranges.set(decode(key), { low: from, high: to });
  }
  return found;
}

/** Parses an address. Addresses are untrusted: invalid parts keep their initial values. */
export function fromAddress(hash: string): Shown {
  const given = new Map<string, string>();
  for (const part of hash.replace(/^#/, '').split('&')) {
    const equals = part.indexOf('=');
    if (equals > 0) given.set(part.slice(0, equals), decode(part.slice(equals + 1)));
  }
  const start = initial();
  const scales = new Map<string, Scale>();
  for (const part of (given.get('scale') ?? '').split(';')) {
    const [key, scale] = part.split(':');
    if (scale === 'linear' || scale === 'log') scales.set(decode(key), scale);
  }
  const mode = given.get('mode');
  const sort = given.get('sort') ?? '';
  return {
    kind: index(given.get('k')) ?? 0,
    isChosen: given.has('a') || given.has('b'),
    filters: [filtersFrom(given.get('a')), filtersFrom(given.get('b'))],
    scales,
    isTall: given.get('tall') === '1',
    mode: mode === 'a' || mode === 'b' ? mode : 'diff',
    part: given.get('colour') === 'whole' ? 'whole' : 'own',
    isFlipped: given.get('flip') === '1',
    isInverted: given.get('inv') === '1',
    zoom: index(given.get('zoom')) ?? 0,
    search: given.get('find') ?? '',
    pins: indices(given.get('pins'), ','),
    execution: index(given.get('x')),
    contexts: (given.get('ctx') ?? '').split(',').filter((one) => /^[ci]\.\d{1,10}$/.test(one)),
    sort: sort === '' ? start.sort : { key: sort.replace(/^-/, ''), isDown: sort.startsWith('-') },
  };
}
