/**
 * What the page shows, and how it changes: filters of both groups, and how they are looked at.
 *
 * Brushes move more often than a screen is drawn, so what is asked for is done once a frame: histograms at once, sums by
 * context as far as the frame's time goes, and the rest in the next ones. Whatever draws listens to some of the topics.
 */

import { type Filters, initial, type Shown, toAddress } from './data/address';
import type { DataSource } from './data/source';
import { type Automatic, automatic } from './engine/automatic';
import type { Scale } from './engine/axis';
import { causeOf } from './engine/cause';
import { type Compared, type Comparison, compare, isSure, type Part, ranked, SURE } from './engine/compare';
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

/** Milliseconds of a frame for sums by context. */
const BUDGET = 14;
/** The same while no brush moves. */
const STILL = 32;
/** Milliseconds between pictures of sums that are not complete, while no brush moves. */
const PICTURES = 120;
/** Milliseconds of calm before what is slower is done: lists, tables, the address. */
const CALM = 150;
/** Milliseconds between parts of work that nobody waits for. */
const PAUSE = 30;
/** Contexts in the list of those that differ most. */
const RANKED = 20;

export type Side = 0 | 1;

/**
 * `step`: groups changed; `sums`: their sums by context, too; `view`: how it is looked at; `calm`: nothing moves any more;
 * `figures`: which figures and texts tell the groups apart is known.
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
  /** All executions. */
  private readonly all: Group;
  layer: Layer;
  shown: Shown = initial();
  /** The comparison of times with all within, which gives widths; of colours' part. */
  whole!: Comparison;
  coloured!: Comparison;
  /** Contexts in which the groups differ most, significant or not. */
  ranking: number[] = [];
  rankedBy!: Comparison;
  /** Which figures tell the groups apart, the best first; of the groups as they were when nothing moved for the last time. */
  separations: Separation[] = [];
  /** The same of texts. */
  texts: TextSeparation[] = [];
  /** The first sentence of the page, of the groups for which metrics and texts were tested last. */
  verdict: Piece[] = [];
  /** The context that the verdict names, in the tree of calls; 0 if it names none. */
  cause = 0;
  /** Columns of the filters, those that separate the groups best first: keys of numbers and of codes. */
  order: string[] = [];
  /** Whether the filters are shown. It is not in the address: a link is about the groups. */
  hasFilters = true;
  /** Contexts whose names have the searched text; null if none is searched. */
  found: Uint8Array | null = null;
  /** How long the last frames took, in ms. */
  readonly frames: number[] = [];
  /** What the keyboard points at in the flame graph. */
  cursor = 0;
  /** Why something that was asked for was not done. */
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
  /** Whether figures have been tested since groups changed. */
  private isSeparated = false;
  private isDiscrete = false;
  /** Whether filters are ordered anew with the next test of metrics: after a brush rows keep their places. */
  private isUnordered = true;
  /** A drag is in progress: its current state is not one to return to. */
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
    this.groups = [new Group(this.table, this.layer, this.all), new Group(this.table, this.layer, this.all)];
    this.refresh();
    this.restore(wanted);
  }

  /** Nobody looks at it any more: the address is another one's. */
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

  /** Number of times that topics came up: a component that began to listen late has missed some. */
  roundOf(topics: readonly Topic[]): number {
    return topics.reduce((sum, topic) => sum + (this.rounds.get(topic) ?? 0), 0);
  }

  private emit(topic: Topic): void {
    this.rounds.set(topic, (this.rounds.get(topic) ?? 0) + 1);
    for (const listener of [...(this.listeners.get(topic) ?? [])]) listener();
  }

  // What is done once a frame.

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
    // While nobody drags there is more time, and pictures of what is not complete are needed less often.
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
   * Works on sums until that time: first what gives means in both groups, the one with less to do before the other, each with
   * a half of the time at least. Groups without filters wait for the sums of all.
   */
  private settle(deadline: number): boolean {
    const filtered = this.groups.filter((group) => group.isFiltered()).sort((one, other) => one.behind - other.behind);
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

  /** Sums of all that nobody waits for yet are made when there is nothing else to do. */
  private later(): void {
    if (this.all.behind === 0 || this.isClosed) return;
    clearTimeout(this.laterTimer);
    this.laterTimer = window.setTimeout(() => {
      if (this.isScheduled || this.isClosed) return;
      this.all.settle(performance.now() + BUDGET / 2);
      this.later();
    }, PAUSE);
  }

  /** Executions whose times are not in the sums yet. */
  get behind(): number {
    return this.groups.reduce((sum, group) => sum + (group.isFiltered() ? group.behind : this.all.behind), 0);
  }

  /** Inverted, the own time of a box is that of its outermost caller: colours show everything within it. */
  private get colouredPart(): Part {
    return this.shown.isInverted ? 'whole' : this.shown.part;
  }

  private refresh(): void {
    // Of a group of whose executions none is reckoned yet nothing can be said: what was known stays.
    const isBlank = this.groups.some((group) => group.size > 0 && group.own.applied === 0);
    if (isBlank && this.whole !== undefined && this.whole.meanA.length === this.layer.tree.count) return;
    this.whole = compare(this.layer, this.groups, 'whole');
    this.coloured = this.colouredPart === 'whole' ? this.whole : compare(this.layer, this.groups, 'own');
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
    const settle = () => a.settle(performance.now() + BUDGET) && b.settle(performance.now() + BUDGET);
    return { groups: [a, b], settle };
  }

  /** Ranks contexts by their own time; in the tree of callers functions, wherever they were called from. */
  private rank(): void {
    const own = this.shown.isInverted ? this.whole : compare(this.layer, this.groups, 'own');
    this.rankedBy = own;
    const { depth } = this.layer;
    const isWanted = (at: number) => !this.shown.isInverted || depth[at] === 1;
    this.ranking = ranked(own, RANKED, isWanted);
  }

  /** Tests metrics and texts, some at a time: with very many executions each takes longer than a frame. */
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

  /** Input of the verdict: what the comparison found. */
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
        greatest === undefined ? null : { context: greatest, difference: own.meanB[greatest] - own.meanA[greatest] },
    };
  }

  /** The column of durations; -1 if there is none. */
  private get durations(): number {
    return this.table.numbers.findIndex(({ key }) => key === 'm.duration_ns');
  }

  /** Keys of filters by how well they separate the groups now: significant ones first, by probability or Cramér's V. */
  bestOrder(): string[] {
    const scores = new Map<string, [isSure: boolean, score: number]>();
    for (const { column, higher, chance } of this.separations) {
      scores.set(this.table.numbers[column].key, [chance < SURE, Math.abs(2 * higher - 1)]);
    }
    for (const { column, association, chance } of this.texts) {
      const { key } = this.table.codes[column];
      const known = scores.get(key);
      if (known === undefined || known[1] < association) scores.set(key, [chance < SURE, association]);
    }
    // Added times in contexts have just been asked for; durations are what is compared.
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

  /** Asks for a range; it is set with the next frame. */
  setRange(side: Side, column: number, range: Interval | null, isDiscrete: boolean): void {
    this.wanted.set(`${side} ${column}`, [side, column, range]);
    this.changed(isDiscrete);
  }

  /** Which range is or will be. */
  rangeOf(side: Side, column: number): Interval | null {
    const wanted = this.wanted.get(`${side} ${column}`);
    return wanted !== undefined ? wanted[2] : (this.groups[side].ranges.get(column) ?? null);
  }

  private applyRange(side: Side, column: number, range: Interval | null): void {
    const group = this.groups[side];
    const { key } = this.table.numbers[column];
    if (range === null && !group.ranges.has(column)) return;
    if (!group.setRange(column, range)) {
      this.said = 'There are too many filters.';
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

  /** The half in the middle and the slowest executions; null if durations are not known. */
  get automatic(): Automatic | null {
    if (this.automaticOnes === undefined) this.automaticOnes = automatic(this.table, 'm.duration_ns');
    return this.automaticOnes;
  }

  /** The slowest hundredth against the half in the middle. */
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
    if (this.table.setScale(column, scale)) for (const group of [this.all, ...this.groups]) group.recount(column);
    if (scale === fitting) this.shown.scales.delete(key);
    else this.shown.scales.set(key, scale);
    this.changed(true);
  }

  // Times in contexts, as columns.

  private layerOf(isInverted: boolean): Layer {
    if (!isInverted) return this.layers[0];
    this.layers[1] ??= inverted(this.pack);
    return this.layers[1];
  }

  /** Adds the time in a context as a number to filter by; -1 if there is no room or it is none. */
  addContext(key: string): number {
    const known = this.table.numbers.findIndex((column) => column.key === key);
    if (known >= 0) return known;
    const layer = this.layerOf(key.startsWith('i.'));
    const context = Number(key.slice(2));
    if (!(context >= 0 && context < layer.tree.count)) return -1;
    const values = timesIn(layer, context);
    const label = `in ${this.nameIn(layer, context)}`;
    const description = 'time in this context with all within it';
    const column = this.table.addNumber({ key, label, unit: 'ns', description, values, context });
    if (column < 0) {
      this.said = `There is room for ${SPARE} contexts only.`;
      this.emit('view');
      return -1;
    }
    this.shown.contexts.push(key);
    for (const group of [this.all, ...this.groups]) group.recount(column);
    this.changed(true);
    return column;
  }

  // How it is looked at.

  /** Changes what is shown without changing groups. */
  look(change: Partial<Pick<Shown, 'mode' | 'part' | 'isFlipped' | 'isTall' | 'pins' | 'sort' | 'execution'>>): void {
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
    this.look({ pins: pins.includes(context) ? pins.filter((one) => one !== context) : [...pins, context].slice(-20) });
  }

  setSearch(search: string): void {
    // Back returns to the view before a search, not to what was typed on the way.
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

  /** Makes the address tell what is seen now. */
  tell(): string {
    this.writeAddress();
    return location.href;
  }

  /** Begins or ends a drag: until the end the address stays as it was before. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
  }

  /** Writes a step that waits for the page to become calm, so that what follows is a step of its own. */
  private flush(): void {
    if (this.isDiscrete) this.writeAddress();
  }

  private writeAddress(): void {
    // A dialog may close after the page has switched kinds: the address then belongs to another model.
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

  /** Shows what an address says. */
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
    const of = (side: Side): Filters => ({ ranges: new Map([[key, automatic.ranges[side]]]), codes: new Map() });
    return [of(0), of(1)];
  }

  private restoreFilters(side: Side, given: Filters): void {
    const group = this.groups[side];
    const { numbers, codes } = this.table;
    numbers.forEach(({ key }, column) => {
      const range = given.ranges.get(key) ?? null;
      const old = group.ranges.get(column) ?? null;
      if (range?.low !== old?.low || range?.high !== old?.high) this.applyRange(side, column, range);
    });
    codes.forEach(({ key, values }, column) => {
      const wanted = given.codes.get(key);
      if (wanted === undefined && !group.allowed.has(column)) return;
      const allowed = wanted === undefined ? null : new Uint8Array(values.length);
      for (const code of wanted ?? []) if (allowed !== null && code < allowed.length) allowed[code] = 1;
      this.setAllowed(side, column, allowed);
    });
  }
}
