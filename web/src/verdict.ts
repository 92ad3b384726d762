/**
 * The first sentence of the page: how long executions of both groups take, and what explains the
 * difference. In: results of the comparison. Out: pieces of text. Uses nothing of the browser.
 */

import type { Cause } from './engine/cause';
import { SURE } from './engine/compare';
import type { Interval } from './engine/group';
import { pathOf } from './engine/layer';
import { type Contexts, FrameKind, type Kind } from './engine/pack';
import type { SharedDisk } from './engine/shared-disk';
import type { Spread } from './engine/statistics';
import { clean, count, middle, percent, pText, quantity } from './format';

/** A piece of the sentence. `name` is shown as code, `a` and `b` in the colour of the group. */
export type Piece = { text: string; as?: 'name' | 'strong' | 'a' | 'b' };

/**
 * How B differs from A by its filters: all durations above those of A (`slow`), all below (`fast`),
 * or otherwise.
 */
export type Choice = 'slow' | 'fast' | 'other';

/** The choice, from the ranges of the duration. */
export function choiceOf([a, b]: (Interval | undefined)[]): Choice {
  if (a === undefined || b === undefined) return 'other';
  return b.low > a.high ? 'slow' : b.high < a.low ? 'fast' : 'other';
}

/** Input of the sentence. */
export interface Findings {
  kind: Kind | undefined;
  /** Durations of both groups in nanoseconds; null if durations are unknown. */
  durations: [Spread, Spread] | null;
  /** Corrected probability of the difference of durations. */
  chance: number;
  sizes: [number, number];
  /** Whether both groups contain the same executions. */
  isSame: boolean;
  /** Whether neither group has a filter. */
  isUnfiltered: boolean;
  choice: Choice;
  /** Whether the traces show when threads ran. */
  hasTimes: boolean;
  tree: Contexts;
  names: readonly string[];
  /** The context that explains most of the difference of durations. */
  cause: Cause | null;
  /**
   * The significant difference of own time that is greatest; null if no difference is significant.
   */
  greatest: { context: number; difference: number } | null;
}

/** The command that records what the page needs to explain a difference. */
export const RECORD = 'tracebraid record --stacks -- COMMAND';

/** Why no context is known. */
export const WITHOUT_TIMES =
  'Where the time goes is unknown: the trace has no scheduling events (sched_switch) for these executions.';

/** The plural of a regular noun. */
function plural(noun: string): string {
  if (/(s|x|z|ch|sh)$/.test(noun)) return /[^s]s$/.test(noun) ? noun : `${noun}es`;
  return /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
}

const NOUNS: Record<string, [string, string]> = {
  call: ['system call', 'system calls'],
  function: ['function call', 'function calls'],
  span: ['span', 'spans'],
  process: ['process', 'processes'],
};

/** The keyword of a definition, which follows lines of comment: `period`, `call`, … */
function keywordOf({ definition }: Kind): string {
  const line = definition.split('\n').find((one) => !/^\s*(#|$)/.test(one)) ?? '';
  return /^\w+/.exec(line)?.[0] ?? '';
}

/** The noun for executions of a kind, for one and for several. Only plain words have a plural. */
export function nounsOf(kind: Kind | undefined): [string, string] {
  if (kind === undefined) return ['execution', 'executions'];
  const name = clean(kind.name, 60);
  const known = NOUNS[keywordOf(kind)];
  if (known !== undefined)
    return [`${known[0]} of kind “${name}”`, `${known[1]} of kind “${name}”`];
  if (/^[a-z]+([ _-][a-z]+)*$/i.test(kind.name)) {
    const words = kind.name.replaceAll('_', ' ');
    return [words, plural(words)];
  }
  return [`execution of kind “${name}”`, `executions of kind “${name}”`];
}

/** A frame of a context. */
interface Frame {
  kind: number;
  name: string;
}

/** The activity of one thread on the path: its functions, a system call, and why it waits. */
interface Stay {
  thread: string | null;
  functions: string[];
  call: string | null;
  reason: string | null;
  detail: string | null;
}

function stayOf(thread: string | null): Stay {
  return { thread, functions: [], call: null, reason: null, detail: null };
}

/** Splits a path at its threads. */
function staysOf(frames: Frame[]): Stay[] {
  const stays = [stayOf(null)];
  for (const { kind, name } of frames) {
    const stay = stays[stays.length - 1];
    if (kind === FrameKind.Thread) stays.push(stayOf(name));
    else if (kind === FrameKind.Call) stay.call = name;
    else if (kind === FrameKind.Reason) stay.reason = name;
    else if (kind === FrameKind.Detail) stay.detail = name;
    else stay.functions.push(name);
  }
  return stays;
}

/** Informative functions: neither addresses without a name nor functions of the C library. */
function speaking(functions: string[]): string[] {
  const named = functions.filter(
    (name) => !/^(\[|_|0x)/.test(name) && !/^(main|start_thread|clone3?)$/.test(name),
  );
  // A recursive function is named once.
  return named.filter((name, at) => name !== named[at - 1]);
}

const name = (text: string): Piece => ({ text: middle(text, 60), as: 'name' });
const call = (text: string): Piece => ({ text: `${middle(text, 58)}()`, as: 'name' });
const say = (text: string): Piece => ({ text });

/** Words for wait reasons; those that depend on the next thread are in `waitOf`. */
const WAITS: Record<string, string> = {
  timer: 'sleeping until a timer expires',
  futex: 'waiting for a lock (futex)',
  'user-input': 'waiting for input from a user',
  device: 'waiting for a device',
  ipi: 'waiting for an interrupt of another CPU',
  child: 'waiting for a child process',
  signal: 'waiting for a signal',
  thread: 'waiting for another thread',
  lwp: 'waiting for an LWP',
  kernel: 'waiting for the kernel',
  pipe: 'waiting for a pipe',
  'work-queue': 'waiting for a work queue',
  queued: 'queued',
  interrupted: 'interrupted',
  'unknown-hand-over': 'handed over in an unknown way',
  'still-waiting': 'in a wait without a recorded end',
  unknown: 'in an unknown state',
};

/** Why a thread does not run, and the thread that it waits for. */
function waitOf({ reason, detail }: Stay, next: Piece[] | null): Piece[] {
  const after = (text: string) => (next === null ? [] : [say(text), ...next]);
  switch (reason) {
    case null:
      return next === null ? [] : [say('waiting for '), ...next];
    case 'preempted':
      return [say('preempted'), ...after(' by ')];
    case 'runnable':
      if (detail === 'idle CPU') return [say('waiting until an idle CPU wakes up')];
      return [say('waiting for a CPU'), ...after(' used by ')];
    case 'block-device': {
      const disk =
        detail === null ? [say('waiting for a disk')] : [say('waiting for disk '), name(detail)];
      return next === null ? disk : [...disk, say(', which '), ...next, say(' uses')];
    }
    case 'network':
      return next === null
        ? [say('waiting for the network')]
        : [say('waiting over the network for '), ...next];
  }
  const device = detail === null ? [] : [say(' ('), name(detail), say(')')];
  return [say(WAITS[reason] ?? `waiting (${clean(reason, 40)})`), ...device, ...after(', for ')];
}

/**
 * `(called by f in g)`: the enclosing functions, the innermost first. Two at most: the sentence is
 * not a stack.
 */
function callersOf(functions: string[]): Piece[] {
  const around = functions.slice(-2).reverse();
  return around.flatMap((one, at) => [
    say(at === 0 ? ' (called by ' : ' in '),
    name(one),
    say(at === around.length - 1 ? ')' : ''),
  ]);
}

/** The system call or function in which a thread is, with its callers if asked for. */
function placeOf(stay: Stay, hasCallers: boolean): Piece[] {
  const named = speaking(stay.functions);
  if (stay.call !== null)
    return [say('in '), call(stay.call), ...(hasCallers ? callersOf(named) : [])];
  const inner = named.at(-1) ?? stay.functions.at(-1);
  return inner === undefined
    ? []
    : [say('in '), name(inner), ...(hasCallers ? callersOf(named.slice(0, -1).slice(-1)) : [])];
}

/** `in read(), waiting for disk sda`: where a thread is, and why it does not run. */
function stateOf(stay: Stay, next: Piece[] | null, hasCallers: boolean): Piece[] {
  const [place, wait] = [placeOf(stay, hasCallers), waitOf(stay, next)];
  return place.length > 0 && wait.length > 0 ? [...place, say(', '), ...wait] : [...place, ...wait];
}

/**
 * The words for a context: where the executions are, what they wait for, and what that thread does.
 */
export function contextWords(tree: Contexts, names: readonly string[], context: number): Piece[] {
  const frames = pathOf(tree, context).map((at) => ({
    kind: tree.kind[at],
    name: names[tree.name[at]],
  }));
  const stays = staysOf(frames);
  const pieces: Piece[] = [];
  stays.forEach((stay, at) => {
    const [before, next] = [stays[at - 1], stays[at + 1]];
    const isRepeated = next !== undefined && next.thread === stay.thread;
    const other =
      next === undefined
        ? null
        : [...(isRepeated ? [say('another ')] : []), name(next.thread ?? '')];
    const state = stateOf(stay, other, next === undefined && before !== undefined);
    if (state.length === 0) return;
    const isWaiting = stay.reason !== null || stay.call !== null || next !== undefined;
    if (before === undefined)
      pieces.push(...(state.length > 0 ? state : [say('outside known functions')]));
    // The stack below a disk is that of the request to the disk, not that of a running thread.
    else if (before.reason === 'block-device') pieces.push(say(' '), ...state);
    else if (isWaiting) pieces.push(say(', which is '), ...state);
    else pieces.push(say(', which runs '), ...state.slice(1));
  });
  return pieces.length > 0 ? pieces : [say('outside known functions')];
}

/** `5 requests`, `1 request`. */
function counted(size: number, [one, several]: [string, string]): string {
  return `${count(size)} ${size === 1 ? one : several}`;
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const strong = (text: string): Piece => ({ text, as: 'strong' });

/** How long the executions of both groups take. */
function durationsOf(given: Findings, [a, b]: [Spread, Spread]): Piece[] {
  const { choice, sizes } = given;
  const [, several] = nounsOf(given.kind);
  const [ofA, ofB] = [quantity(a.mean, 'ns'), quantity(b.mean, 'ns')];
  if (choice !== 'other') {
    return [
      strong(`${choice === 'slow' ? 'Slow' : 'Fast'} ${several}`),
      say(` (${count(sizes[1])}) take `),
      { text: ofB, as: 'b' },
      say(' on average instead of '),
      { text: ofA, as: 'a' },
    ];
  }
  return [
    { text: `${capital(several)} in B`, as: 'b' },
    say(` (${count(sizes[1])}) take `),
    { text: ofB, as: 'b' },
    say(' on average, those in '),
    { text: 'A', as: 'a' },
    say(` (${count(sizes[0])}) `),
    { text: ofA, as: 'a' },
  ];
}

/** The disk at the end of the paths below a system call, and the thread that uses it. */
function diskWords(disk: SharedDisk | null): Piece[] {
  if (disk === null) return [];
  const { user } = disk;
  const waiting = [say(', waiting for disk '), name(disk.name)];
  if (user === null) return waiting;
  // A share of 95 % or more is reported as the whole time.
  const part = user.share < 0.95 ? ` for ${percent(user.share, 1)} of that time` : '';
  return [...waiting, say(', which '), name(user.name), say(` uses${part}`)];
}

/** The cause with its part of the difference. */
function causeWords(
  { tree, names }: Findings,
  { context, difference, share, contexts, disk }: Cause,
): Piece[] {
  const amount = quantity(Math.abs(difference), 'ns');
  // More than all of it: executions of B spend less time in other contexts.
  const part =
    share > 1.05
      ? [strong(amount), say(', more than the difference, is spent ')]
      : [strong(amount), say(` of the difference (${percent(Math.min(1, share), 1)}) is spent `)];
  return [
    ...part,
    ...contextWords(tree, names, context),
    ...diskWords(disk),
    say(contexts > 1 ? `, on ${count(contexts)} call paths.` : '.'),
  ];
}

function greatestWords({ tree, names, greatest }: Findings): Piece[] {
  if (greatest === null) return [];
  const { context, difference } = greatest;
  const more = `${quantity(Math.abs(difference), 'ns')} ${difference > 0 ? 'more' : 'less'} in B`;
  return [
    say(' The calling context that differs most: '),
    strong(more),
    say(' '),
    ...contextWords(tree, names, context),
    say('.'),
  ];
}

/** Why no cause is named. */
function unknownTimes(): Piece[] {
  return [say(` ${WITHOUT_TIMES} Record them with `), name(RECORD), say('.')];
}

/** The sentence, in pieces. */
export function verdict(given: Findings): Piece[] {
  const { sizes, durations } = given;
  const nouns = nounsOf(given.kind);
  for (const side of [0, 1] as const) {
    if (sizes[side] === 0)
      return [say(`Group ${'AB'[side]} is empty: no ${nouns[0]} passes its filters.`)];
  }
  if (given.isSame) {
    const all = given.isUnfiltered
      ? `all ${counted(sizes[0], nouns)}`
      : `the same ${counted(sizes[0], nouns)}`;
    return [
      say(
        `Both groups contain ${all}. Choose a range in a histogram for one of them, or compare the slowest 1 % with the middle half.`,
      ),
    ];
  }
  if (durations === null || durations.some(({ executions }) => executions === 0)) {
    return [
      say(`Durations are unknown: no end was recorded for these ${nouns[1]}.`),
      ...greatestWords(given),
    ];
  }
  const isFew = sizes.some((size) => size < 2);
  const isSure = !isFew && given.chance < SURE;
  const found = durationsOf(given, durations);
  if (isFew) {
    return [
      say('Too few executions to compare. '),
      ...found,
      say('. Both groups need at least 2.'),
      ...(given.hasTimes ? [] : unknownTimes()),
    ];
  }
  if (!isSure) {
    const why = Number.isNaN(given.chance) ? '' : ` (${pText(given.chance)})`;
    const differs = given.hasTimes ? greatestWords(given) : unknownTimes();
    const head =
      given.greatest === null
        ? 'No significant difference: '
        : 'No significant difference of durations: ';
    const plainly = durationsOf({ ...given, choice: 'other' }, durations);
    plainly[0] = { text: `${nouns[1]} in B`, as: 'b' };
    return [strong(head), ...plainly, say(`${why}.`), ...differs];
  }
  if (!given.hasTimes) return [...found, say('.'), ...unknownTimes()];
  if (given.cause === null) {
    return [
      ...found,
      say('. No calling context explains half of the difference.'),
      ...greatestWords(given),
    ];
  }
  return [...found, say('; '), ...causeWords(given, given.cause)];
}

/** The context that the sentence is about; 0 if it names none. */
export function namedContext({ cause, greatest, hasTimes, isSame, sizes }: Findings): number {
  if (!hasTimes || isSame || sizes.includes(0)) return 0;
  return cause?.context ?? greatest?.context ?? 0;
}

/** The sentence as plain text. */
export function verdictText(pieces: Piece[]): string {
  return pieces.map(({ text }) => text).join('');
}
