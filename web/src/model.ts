/**
 * State of the page: the filters of both groups, and the view of them.
 *
 * Brushes move more often than the screen is refreshed, so requests are collected and served once a
 * frame: histograms at once, sums by context as far as the frame's time allows, the rest in the
 * next frames. Components listen to topics.
 */

import { type Filters, initial, type Shown, toAddress } from './data/address';
import type { DataSource } from './data/source';
import { type Automatic, automatic } from './engine/automatic';
import type { Scale } from './engine/axis';
import { causeOf } from './engine/cause';
import {
  type Compared,
  type Comparison,
  compare,
  isSure,
  type Part,
  ranked,
  SURE,
} from './engine/compare';
import { Separating, type Separation } from './engine/figures';
import type { Mode } from './engine/flame';
import { Group, type Interval } from './engine/group';
import { inverted, type Layer, timesIn } from './engine/layer';
import { FrameKind, type Pack } from './engine/pack';
import type { Ready } from './engine/ready';
import { SPARE, Table } from './engine/table';
import { type TextColumn, type TextSeparation, TextWork, textColumns } from './engine/texts';
import { clean } from './format';
import { choiceOf, type Findings, namedContext, type Piece, verdict } from './verdict';

/** Milliseconds of a frame for sums by context while a brush moves. */
const BUDGET = 14;
/** Milliseconds of a frame for sums by context while nothing moves. */
const STILL = 32;
/** Milliseconds between drawings of incomplete sums while nothing moves. */
const PICTURES = 120;
/** Milliseconds without change before the slower work: lists, tables, the address. */
const CALM = 150;
/** Milliseconds between parts of background work. */
const PAUSE = 30;
/** Maximum length of the list of contexts that differ most. */
const RANKED = 20;

export type Side = 0 | 1;

/**
 * `step`: groups changed; `sums`: sums by context changed, too; `view`: the view of the groups
 * changed; `calm`: nothing moves any more; `figures`: metrics and texts have been tested.
 */
export type Topic = 'step' | 'sums' | 'view' | 'calm' | 'figures';

/** Sums of both groups by the tree of calls. */
interface Forward {
  groups: readonly [Compared, Compared];
  settle(): boolean;
}

export class Model {
  readonly table: Table;
  groups: [Group, Group];
  /** The group of all executions. */
  private readonly all: Group;
  layer: Layer;
  shown: Shown = initial();
  /** Comparison of total times, which give widths, and of the times that colours show. */
  whole!: Comparison;
  coloured!: Comparison;
  /** Contexts in which the groups differ most, significant or not. */
  ranking: number[] = [];
  rankedBy!: Comparison;
  /**
   * Metrics that separate the groups, the best first; of the groups as they were when nothing moved
   * last.
   */
  separations: Separation[] = [];
  /** Texts that separate the groups, the best first. */
  texts: TextSeparation[] = [];
  /** The first sentence of the page, of the groups for which metrics and texts were tested last. */
  verdict: Piece[] = [];
  /** The context that the verdict names, in the tree of calls; 0 if it names none. */
  cause = 0;
  /**
   * Columns of the filters, those that separate the groups best first: keys of numbers and of
   * codes.
   */
  order: string[] = [];
  /** Whether the filters are shown. It is not in the address: a link is about the groups. */
  hasFilters = true;
  /** Contexts whose names contain the searched text; null without a search. */
  found: Uint8Array | null = null;
  /** Durations of the last frames in ms, for the benchmark. */
  readonly frames: number[] = [];
  /** The context at the keyboard's cursor in the flame graph. */
  cursor = 0;
  /** Message about a request that was refused. */
  said = '';

  private readonly listeners = new Map<Topic, Set<() => void>>();
  private readonly rounds = new Map<Topic, number>();
  private readonly layers: [Layer, Layer | null];
  private readonly wanted = new Map<string, [Side, number, Interval | null]>();
  private isScheduled = false;
  private isChanged = false;
  private calmTimer = 0;
  private lastSums = 0;
  private laterTimer = 0;
  private figuresTimer = 0;
  /** Whether metrics and texts have been tested since groups changed. */
  private isSeparated = false;
  private isDiscrete = false;
  /**
   * Whether the next test of metrics orders the filters. A brush does not: rows would move below
   * the pointer.
   */
  private isUnordered = true;
  /** A drag is in progress: its intermediate states are not steps of the Back button. */
  private isHeld = false;
  private isClosed = false;
  private automaticOnes: Automatic | null | undefined;
  private textColumns: TextColumn[] | undefined;

  readonly pack: Pack;

  constructor(
    ready: Ready,
    readonly source: DataSource,
    wanted: Shown,
  ) {
    this.pack = ready.pack;
    this.table = new Table(ready.pack, ready.table);
    this.layers = [ready.layer, null];
    this.layer = this.layers[0];
    this.all = new Group(this.table, this.layer, null, ready.all);
    this.groups = [
      new Group(this.table, this.layer, this.all),
      new Group(this.table, this.layer, this.all),
    ];
    this.refresh();
    this.restore(wanted);
  }

  /** Ends all timers. The address then belongs to another model. */
  close(): void {
    clearTimeout(this.calmTimer);
    clearTimeout(this.laterTimer);
    clearTimeout(this.figuresTimer);
    this.listeners.clear();
    this.isClosed = true;
  }

  listen(topic: Topic, listener: () => void): () => void {
    let listeners = this.listeners.get(topic);
    if (listeners === undefined) {
      listeners = new Set();
      this.listeners.set(topic, listeners);
    }
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Number of emissions of topics, by which a late listener detects that it missed one. */
  roundOf(topics: readonly Topic[]): number {
    return topics.reduce((sum, topic) => sum + (this.rounds.get(topic) ?? 0), 0);
  }

  private emit(topic: Topic): void {
    this.rounds.set(topic, (this.rounds.get(topic) ?? 0) + 1);
    for (const listener of [...(this.listeners.get(topic) ?? [])]) listener();
  }

  // Work of each frame.

  schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => this.frame());
  }

  private frame(): void {
    this.isScheduled = false;
    if (this.isClosed) return;
    const begin = performance.now();
    for (const [side, column, range] of this.wanted.values()) this.applyRange(side, column, range);
    this.wanted.clear();
    const isMoved = this.isChanged;
    this.isChanged = false;
    if (isMoved) this.emit('step');
    const before = this.behind;
    // Without a drag there is more time, and incomplete sums need fewer drawings.
    const budget = isMoved ? BUDGET : STILL;
    const isSettled = this.settle(Math.max(begin + budget, performance.now() + BUDGET / 2));
    if (isMoved || (before > 0 && (isSettled || begin - this.lastSums > PICTURES))) {
      this.lastSums = begin;
      this.refresh();
      this.emit('sums');
    }
    this.frames.push(performance.now() - begin);
    if (this.frames.length === 1) performance.mark('drawn');
    if (this.frames.length > 2000) this.frames.splice(0, 1000);
    if (!isSettled) this.schedule();
    else {
      this.becomeCalm();
      this.later();
    }
  }

  /**
   * Works on sums until a time: first on own times, which give all means, starting with the group
   * that has less to do; each group gets at least half of the time. Groups without filters wait for
   * the sums of all executions.
   */
  private settle(deadline: number): boolean {
    const filtered = this.groups
      .filter((group) => group.isFiltered())
      .sort((one, other) => one.behind - other.behind);
    const half = () => (filtered.length < 2 ? deadline : (performance.now() + deadline) / 2);
    const [few, many] = [filtered[0], filtered[filtered.length - 1]];
    if (few !== undefined) {
      const isOwn = few.settleOwn(half());
      if (!many.settleOwn(deadline) || !isOwn) return false;
      const isWhole = few.settleWhole(half());
      if (!many.settleWhole(deadline) || !isWhole) return false;
    }
    if (filtered.length === 2) return true;
    if (this.all.behind > 0 && !this.all.settle(deadline)) return false;
    for (const group of this.groups) {
      if (group.isFiltered() || group.behind === 0) continue;
      group.own.copy(this.all.own);
      group.whole.copy(this.all.whole);
    }
    return true;
  }

  /** Completes the sums of all executions when there is nothing else to do. */
  private later(): void {
    if (this.all.behind === 0 || this.isClosed) return;
    clearTimeout(this.laterTimer);
    this.laterTimer = window.setTimeout(() => {
      if (this.isScheduled || this.isClosed) return;
      this.all.settle(performance.now() + BUDGET / 2);
      this.later();
    }, PAUSE);
  }

  /** Number of executions whose times are not in the sums yet. */
  get behind(): number {
    return this.groups.reduce(
      (sum, group) => sum + (group.isFiltered() ? group.behind : this.all.behind),
      0,
    );
  }

  /** In the inverted tree own time belongs to the outermost callers, so colours show total time. */
  private get colouredPart(): Part {
    return this.shown.isInverted ? 'whole' : this.shown.part;
  }

  private refresh(): void {
    // While no execution of a group is in its sums, the previous comparison stays.
    const isBlank = this.groups.some((group) => group.size > 0 && group.own.applied === 0);
    if (isBlank && this.whole !== undefined && this.whole.meanA.length === this.layer.tree.count)
      return;
    this.whole = compare(this.layer, this.groups, 'whole');
    this.coloured =
      this.colouredPart === 'whole' ? this.whole : compare(this.layer, this.groups, 'own');
  }

  private becomeCalm(): void {
    clearTimeout(this.calmTimer);
    this.calmTimer = window.setTimeout(() => {
      this.calmTimer = 0;
      if (this.behind > 0 || this.isScheduled || this.isClosed) return;
      this.rank();
      this.emit('calm');
      this.writeAddress();
      if (this.isSeparated) return;
      this.textColumns ??= textColumns(this.table, this.pack);
      const figures = new Separating(this.table, this.groups, this.pack.metrics.length);
      this.separate(figures, new TextWork(this.textColumns, this.groups), this.forward());
    }, CALM);
  }

  /** Whether all work is done and nothing waits for a frame or a timer. */
  get isSettled(): boolean {
    return !this.isScheduled && this.calmTimer === 0 && this.behind === 0 && this.isSeparated;
  }

  /** The verdict is about call paths, so an inverted graph does not change it. */
  private forward(): Forward {
    if (!this.shown.isInverted) return { groups: this.groups, settle: () => true };
    const [a, b] = this.groups.map((group) => group.sumsBy(this.layers[0]));
    const settle = () =>
      a.settle(performance.now() + BUDGET) && b.settle(performance.now() + BUDGET);
    return { groups: [a, b], settle };
  }

  /** Ranks contexts by own time; in the inverted tree functions by all their time. */
  private rank(): void {
    const own = this.shown.isInverted ? this.whole : compare(this.layer, this.groups, 'own');
    this.rankedBy = own;
    const { depth } = this.layer;
    const isWanted = (at: number) => !this.shown.isInverted || depth[at] === 1;
    this.ranking = ranked(own, RANKED, isWanted);
  }

  /**
   * Tests metrics and texts, some at a time: with very many executions each takes longer than a
   * frame.
   */
  private separate(figures: Separating, texts: TextWork, forward: Forward): void {
    clearTimeout(this.figuresTimer);
    if (this.isScheduled || this.isClosed) return;
    const end = performance.now() + BUDGET;
    const step = () => figures.step() && texts.step() && forward.settle();
    let isDone = step();
    while (!isDone && performance.now() < end) isDone = step();
    if (!isDone) {
      this.figuresTimer = window.setTimeout(() => this.separate(figures, texts, forward), PAUSE);
      return;
    }
    this.isSeparated = true;
    this.separations = figures.ranked();
    this.texts = texts.ranked();
    const findings = this.findings(figures, forward.groups);
    this.verdict = verdict(findings);
    this.cause = namedContext(findings);
    if (this.isUnordered) this.orderFilters();
    this.emit('figures');
  }

  /** Input of the verdict. */
  private findings(figures: Separating, groups: Forward['groups']): Findings {
    const [layer] = this.layers;
    const { pack, shown } = this;
    const column = this.durations;
    const duration = column < 0 ? null : figures.of(column);
    const total = duration === null ? 0 : duration.groups[1].mean - duration.groups[0].mean;
    const isForward = !shown.isInverted;
    const whole = isForward ? this.whole : compare(layer, groups, 'whole');
    const own = isForward ? this.rankedBy : compare(layer, groups, 'own');
    const greatest = ranked(own, RANKED).find((at) => isSure(own, at));
    return {
      kind: pack.kinds[pack.kind],
      durations: duration?.groups ?? null,
      chance: duration?.chance ?? NaN,
      sizes: [this.groups[0].size, this.groups[1].size],
      isSame: this.groups[0].hasSameMembers(this.groups[1]),
      isUnfiltered: this.groups.every((group) => !group.isFiltered()),
      choice: choiceOf(this.groups.map((group) => group.ranges.get(column))),
      hasTimes: this.hasTimes,
      tree: layer.tree,
      names: pack.names,
      cause: causeOf(layer, pack.names, whole, total),
      greatest:
        greatest === undefined
          ? null
          : { context: greatest, difference: own.meanB[greatest] - own.meanA[greatest] },
    };
  }

  /** The column of durations, or -1. */
  private get durations(): number {
    return this.table.numbers.findIndex(({ key }) => key === 'm.duration_ns');
  }

  /**
   * Keys of filters by how well they separate the groups now: significant ones first, by
   * probability or Cramér's V.
   */
  bestOrder(): string[] {
    const scores = new Map<string, [isSure: boolean, score: number]>();
    for (const { column, higher, chance } of this.separations) {
      scores.set(this.table.numbers[column].key, [chance < SURE, Math.abs(2 * higher - 1)]);
    }
    for (const { column, association, chance } of this.texts) {
      const { key } = this.table.codes[column];
      const known = scores.get(key);
      if (known === undefined || known[1] < association)
        scores.set(key, [chance < SURE, association]);
    }
    // Added times in contexts are first, then durations.
    const first = ({ key, context }: { key: string; context?: number | null }) =>
      context !== null && context !== undefined ? 2 : key === 'm.duration_ns' ? 1 : 0;
    const columns = [...this.table.numbers, ...this.table.codes];
    const scoreOf = (key: string) => scores.get(key) ?? [false, -1];
    return columns
      .sort((one, other) => {
        const [oneScore, otherScore] = [scoreOf(one.key), scoreOf(other.key)];
        return (
          first(other) - first(one) ||
          Number(otherScore[0]) - Number(oneScore[0]) ||
          Number(otherScore[1]) - Number(oneScore[1])
        );
      })
      .map(({ key }) => key);
  }

  /** Whether the verdict is about the groups as they are now. */
  get isVerdictKnown(): boolean {
    return this.isSeparated;
  }

  showFilters(hasFilters: boolean): void {
    if (hasFilters === this.hasFilters) return;
    this.hasFilters = hasFilters;
    this.emit('view');
  }

  /** Puts the filters in their best order. */
  orderFilters(): void {
    this.isUnordered = false;
    this.order = this.bestOrder();
    this.emit('view');
  }

  private changed(isDiscrete: boolean): void {
    this.said = '';
    this.isSeparated = false;
    clearTimeout(this.figuresTimer);
    this.isChanged = true;
    this.isDiscrete ||= isDiscrete;
    this.schedule();
  }

  // Filters.

  /** Number of executions by code of a column, regardless of the filters. */
  totalsOf(column: number): Int32Array {
    return this.all.facets[column];
  }

  /** Requests a range, which the next frame sets. */
  setRange(side: Side, column: number, range: Interval | null, isDiscrete: boolean): void {
    this.wanted.set(`${side} ${column}`, [side, column, range]);
    this.changed(isDiscrete);
  }

  /** The range of a column, including a requested one. */
  rangeOf(side: Side, column: number): Interval | null {
    const wanted = this.wanted.get(`${side} ${column}`);
    return wanted !== undefined ? wanted[2] : (this.groups[side].ranges.get(column) ?? null);
  }

  private applyRange(side: Side, column: number, range: Interval | null): void {
    const group = this.groups[side];
    const { key } = this.table.numbers[column];
    if (range === null && !group.ranges.has(column)) return;
    if (!group.setRange(column, range)) {
      this.said = 'A group can have 32 filters. Remove one of them first.';
      return;
    }
    if (range === null) this.shown.filters[side].ranges.delete(key);
    else this.shown.filters[side].ranges.set(key, range);
  }

  setAllowed(side: Side, column: number, allowed: Uint8Array | null): void {
    const group = this.groups[side];
    const { key } = this.table.codes[column];
    if (!group.setAllowed(column, allowed)) return;
    const codes = this.shown.filters[side].codes;
    if (allowed === null) codes.delete(key);
    else
      codes.set(
        key,
        [...allowed.keys()].filter((code) => allowed[code] === 1),
      );
    this.changed(true);
  }

  resetSide(side: Side): void {
    this.isUnordered = true;
    this.groups[side].reset();
    this.shown.filters[side] = { ranges: new Map(), codes: new Map() };
    this.changed(true);
  }

  reset(): void {
    this.resetSide(0);
    this.resetSide(1);
    this.shown.zoom = 0;
    this.setSearch('');
  }

  swap(): void {
    this.isUnordered = true;
    this.groups = [this.groups[1], this.groups[0]];
    this.shown.filters = [this.shown.filters[1], this.shown.filters[0]];
    this.changed(true);
  }

  /** The groups that the page opens with; null if durations are unknown. */
  get automatic(): Automatic | null {
    if (this.automaticOnes === undefined)
      this.automaticOnes = automatic(this.table, 'm.duration_ns');
    return this.automaticOnes;
  }

  /** Chooses the groups that the page opens with. */
  chooseAutomatic(): void {
    const { automatic } = this;
    if (automatic === null) return;
    for (const side of [0, 1] as const) {
      this.resetSide(side);
      this.setRange(side, automatic.column, automatic.ranges[side], true);
    }
  }

  setScale(column: number, scale: Scale): void {
    const { key, fitting } = this.table.numbers[column];
    if (this.table.setScale(column, scale))
      for (const group of [this.all, ...this.groups]) group.recount(column);
    if (scale === fitting) this.shown.scales.delete(key);
    else this.shown.scales.set(key, scale);
    this.changed(true);
  }

  // Times in contexts as columns.

  private layerOf(isInverted: boolean): Layer {
    if (!isInverted) return this.layers[0];
    this.layers[1] ??= inverted(this.pack);
    return this.layers[1];
  }

  /**
   * Adds the time in a context as a column. Returns its index, or -1 for an unknown context or too
   * many columns.
   */
  addContext(key: string): number {
    const known = this.table.numbers.findIndex((column) => column.key === key);
    if (known >= 0) return known;
    const layer = this.layerOf(key.startsWith('i.'));
    const context = Number(key.slice(2));
    if (!(context >= 0 && context < layer.tree.count)) return -1;
    const values = timesIn(layer, context);
    const label = `in ${this.nameIn(layer, context)}`;
    const description = 'total time in this context';
    const column = this.table.addNumber({ key, label, unit: 'ns', description, values, context });
    if (column < 0) {
      this.said = `Times in ${SPARE} contexts can be filters, and all are in use. To remove them, open the page without the part of its address after #.`;
      this.emit('view');
      return -1;
    }
    this.shown.contexts.push(key);
    for (const group of [this.all, ...this.groups]) group.recount(column);
    this.changed(true);
    return column;
  }

  // The view.

  /** Changes the view without changing groups. */
  look(
    change: Partial<
      Pick<Shown, 'mode' | 'part' | 'isFlipped' | 'isTall' | 'pins' | 'sort' | 'execution'>
    >,
  ): void {
    this.flush();
    Object.assign(this.shown, change);
    if (change.part !== undefined) this.refresh();
    this.emit('view');
    this.isDiscrete = true;
    this.writeAddress();
    if (change.isTall !== undefined || change.sort !== undefined) {
      this.emit('step');
      this.emit('calm');
    }
  }

  setMode(mode: Mode): void {
    this.look({ mode });
  }

  setPart(part: Part): void {
    this.look({ part });
  }

  setInverted(isInverted: boolean): void {
    if (isInverted === this.shown.isInverted) return;
    this.useLayer(isInverted);
    this.shown.zoom = 0;
    this.shown.pins = [];
    this.cursor = 0;
    this.setSearch(this.shown.search);
    this.changed(true);
    this.emit('view');
  }

  private useLayer(isInverted: boolean): void {
    this.shown.isInverted = isInverted;
    this.layer = this.layerOf(isInverted);
    for (const group of [this.all, ...this.groups]) group.setLayer(this.layer);
    this.refresh();
    this.ranking = [];
  }

  zoomTo(context: number): void {
    this.cursor = context;
    if (context !== this.shown.zoom) {
      this.flush();
      this.shown.zoom = context;
      this.isDiscrete = true;
      this.writeAddress();
    }
    this.emit('view');
  }

  pin(context: number): void {
    const { pins } = this.shown;
    this.look({
      pins: pins.includes(context)
        ? pins.filter((one) => one !== context)
        : [...pins, context].slice(-20),
    });
  }

  setSearch(search: string): void {
    // Back returns to the view before the search, not to parts of the typed text.
    if ((search === '') !== (this.shown.search === '')) this.isDiscrete = true;
    this.shown.search = search;
    this.found = null;
    const wanted = search.trim().toLowerCase();
    if (wanted !== '') {
      const { count, name } = this.layer.tree;
      const isFound = this.pack.names.map((one) => one.toLowerCase().includes(wanted));
      this.found = new Uint8Array(count);
      for (let at = 1; at < count; at++) if (isFound[name[at]]) this.found[at] = 1;
    }
    this.emit('view');
    this.becomeCalm();
  }

  nameIn(layer: Layer, context: number): string {
    const { tree } = layer;
    if (context === 0) return 'all';
    const name = clean(this.pack.names[tree.name[context]]);
    return tree.kind[context] === FrameKind.Call ? `${name}()` : name;
  }

  nameOf(context: number): string {
    return this.nameIn(this.layer, context);
  }

  // The address.

  /** Updates the address and returns it. */
  tell(): string {
    this.writeAddress();
    return location.href;
  }

  /** Begins or ends a drag. During a drag the address does not change. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
  }

  /** Writes a pending step to the history, so that the next change is a step of its own. */
  private flush(): void {
    if (this.isDiscrete) this.writeAddress();
  }

  private writeAddress(): void {
    // A dialog may close after another kind was opened: the address then belongs to another model.
    if (this.isHeld || this.isClosed) return;
    const text = toAddress(this.shown);
    if (text === location.hash.replace(/^#/, '')) {
      this.isDiscrete = false;
      return;
    }
    const url = `${location.pathname}${location.search}${text === '' ? '' : `#${text}`}`;
    if (this.isDiscrete) history.pushState(null, '', url);
    else history.replaceState(null, '', url);
    this.isDiscrete = false;
  }

  /** Restores the state of an address. */
  restore(given: Shown): void {
    this.isUnordered = true;
    if (given.isInverted !== this.shown.isInverted) this.useLayer(given.isInverted);
    for (const key of given.contexts) this.addContext(key);
    const { numbers } = this.table;
    this.wanted.clear();
    const filters = (given.isChosen ? null : this.automaticFilters()) ?? given.filters;
    for (const side of [0, 1] as const) this.restoreFilters(side, filters[side]);
    numbers.forEach((column, at) => {
      const scale = given.scales.get(column.key) ?? column.fitting;
      if (scale !== column.axis.scale) this.setScale(at, scale);
    });
    const { count } = this.layer.tree;
    Object.assign(this.shown, {
      ...given,
      kind: this.pack.kind,
      isChosen: true,
      contexts: this.shown.contexts,
      filters: this.shown.filters,
      scales: this.shown.scales,
      zoom: given.zoom < count ? given.zoom : 0,
      pins: given.pins.filter((context) => context > 0 && context < count),
      sort: numbers.some(({ key }) => key === given.sort.key) ? given.sort : initial().sort,
    });
    this.cursor = this.shown.zoom;
    this.refresh();
    this.setSearch(given.search);
    this.changed(false);
    this.isDiscrete = false;
  }

  /** False if no execution has recorded times. */
  get hasTimes(): boolean {
    return this.pack.entries.context.length > 0;
  }

  /** False if no call stack of an execution was recorded. */
  get hasFunctions(): boolean {
    return this.pack.contexts.kind.includes(FrameKind.Function);
  }

  private automaticFilters(): [Filters, Filters] | null {
    const { automatic } = this;
    if (automatic === null) return null;
    const { key } = this.table.numbers[automatic.column];
    const of = (side: Side): Filters => ({
      ranges: new Map([[key, automatic.ranges[side]]]),
      codes: new Map(),
    });
    return [of(0), of(1)];
  }

  private restoreFilters(side: Side, given: Filters): void {
    const group = this.groups[side];
    const { numbers, codes } = this.table;
    numbers.forEach(({ key }, column) => {
      const range = given.ranges.get(key) ?? null;
      const old = group.ranges.get(column) ?? null;
      if (range?.low !== old?.low || range?.high !== old?.high)
        this.applyRange(side, column, range);
    });
    codes.forEach(({ key, values }, column) => {
      const wanted = given.codes.get(key);
      if (wanted === undefined && !group.allowed.has(column)) return;
      const allowed = wanted === undefined ? null : new Uint8Array(values.length);
      for (const code of wanted ?? [])
        if (allowed !== null && code < allowed.length) allowed[code] = 1;
      this.setAllowed(side, column, allowed);
    });
  }
}
