import { describe, expect, it } from 'vitest';
import { causeOf } from '../src/engine/cause';
import { compare, isSure, ranked } from '../src/engine/compare';
import { Separating } from '../src/engine/figures';
import { Group } from '../src/engine/group';
import { forward, type Layer } from '../src/engine/layer';
import { type Contexts, decodePack, FrameKind, type Kind } from '../src/engine/pack';
import { Table } from '../src/engine/table';
import {
  choiceOf,
  contextWords,
  type Findings,
  namedContext,
  nounsOf,
  verdict,
  verdictText,
} from '../src/verdict';
import { makePack } from '../tools/synthetic.mjs';

const {
  Function: FUNCTION,
  Call: CALL,
  Thread: THREAD,
  Reason: REASON,
  Detail: DETAIL,
} = FrameKind;

type Frame = [kind: FrameKind, name: string];

/** A tree from paths; frames that paths share are one. */
function treeOf(...paths: Frame[][]): {
  tree: Contexts;
  names: string[];
  layer: Layer;
  ends: number[];
} {
  const names = [''];
  const parent = [0];
  const kind: number[] = [FrameKind.Root];
  const name = [0];
  const known = new Map<string, number>();
  const ends = paths.map((path) =>
    path.reduce((around, [of, text]) => {
      const key = `${around} ${of} ${text}`;
      const found = known.get(key);
      if (found !== undefined) return found;
      if (!names.includes(text)) names.push(text);
      parent.push(around);
      kind.push(of);
      name.push(names.indexOf(text));
      known.set(key, parent.length - 1);
      return parent.length - 1;
    }, 0),
  );
  const tree = {
    count: parent.length,
    parent: Uint32Array.from(parent),
    kind: Uint8Array.from(kind),
    name: Uint32Array.from(name),
  };
  const firstChild = new Uint32Array(tree.count + 1);
  const children: number[] = [];
  for (let at = 0; at < tree.count; at++) {
    firstChild[at] = children.length;
    for (let child = 1; child < tree.count; child++) if (parent[child] === at) children.push(child);
  }
  firstChild[tree.count] = children.length;
  return {
    tree,
    names,
    ends,
    layer: { tree, firstChild, children: Uint32Array.from(children) } as unknown as Layer,
  };
}

const PREFIX: Frame[] = [
  [FUNCTION, '_start'],
  [FUNCTION, 'main'],
  [FUNCTION, 'handle'],
];
const DISK: Frame[] = [
  ...PREFIX,
  [CALL, 'fdatasync'],
  [REASON, 'block-device'],
  [DETAIL, 'vdc'],
  [THREAD, 'diskwriter'],
];

const REQUEST: Kind = {
  name: 'request',
  definition: '# A request.\nperiod request : a : b',
  executions: 400,
};
const MS = 1e6;

const spread = (executions: number, mean: number) => ({
  executions,
  present: executions,
  mean,
  deviation: 1,
});

/** Findings of 200 and 25 requests, of which those of B wait for a disk. */
function given(change: Partial<Findings> = {}): Findings {
  const { tree, names, ends } = treeOf(DISK);
  return {
    kind: REQUEST,
    durations: [spread(200, 3.4 * MS), spread(25, 263 * MS)],
    chance: 1e-9,
    sizes: [200, 25],
    isSame: false,
    isUnfiltered: false,
    choice: 'slow',
    hasTimes: true,
    tree,
    names,
    cause: { context: ends[0], difference: 220 * MS, share: 220 / 259.6, contexts: 1, disk: null },
    greatest: { context: ends[0], difference: 220 * MS },
    ...change,
  };
}

const text = (change: Partial<Findings> = {}) => verdictText(verdict(given(change)));

describe('the verdict', () => {
  it('names mean durations, the cause and its share', () => {
    expect(text()).toBe(
      'Slow requests (25) take 263 ms on average instead of 3.4 ms; 220 ms of the difference (85 %) is spent in fdatasync(), waiting for disk vdc, which diskwriter uses.',
    );
    expect(namedContext(given())).toBe(given().cause!.context);
  });

  it('of fast executions says where they save time', () => {
    const [a, b] = [spread(25, 263 * MS), spread(200, 3.4 * MS)];
    const cause = { ...given().cause!, difference: -220 * MS };
    expect(text({ choice: 'fast', durations: [a, b], sizes: [25, 200], cause })).toMatch(
      /^Fast requests \(200\) take 3.4 ms on average instead of 263 ms; 220 ms of the difference \(85 %\) is spent in fdatasync/,
    );
  });

  it('of groups that a brush on another metric chose names both groups', () => {
    expect(text({ choice: 'other' })).toMatch(
      /^Requests in B \(25\) take 263 ms on average, those in A \(200\) 3.4 ms; 220 ms of/,
    );
  });

  it('without a significant difference says so, with p', () => {
    expect(text({ chance: 0.12, greatest: null, cause: null })).toBe(
      'No significant difference: requests in B (25) take 263 ms on average, those in A (200) 3.4 ms (p = 12 %).',
    );
    expect(text({ chance: 0.12, greatest: null })).not.toContain('fdatasync');
  });

  it('without a difference of durations still names a context that differs', () => {
    expect(text({ chance: 0.5, cause: null })).toBe(
      'No significant difference of durations: requests in B (25) take 263 ms on average, those in A (200) 3.4 ms (p = 50 %). The calling context that differs most: 220 ms more in B in fdatasync(), waiting for disk vdc, which diskwriter uses.',
    );
  });

  it('of too few executions draws no conclusion', () => {
    expect(
      text({ sizes: [200, 1], chance: 1, durations: [spread(200, 3 * MS), spread(1, 9 * MS)] }),
    ).toBe(
      'Too few executions to compare. Slow requests (1) take 9 ms on average instead of 3 ms. Both groups need at least 2.',
    );
  });

  it('of equal and of empty groups compares nothing', () => {
    expect(text({ isSame: true, isUnfiltered: true, sizes: [400, 400] })).toMatch(
      /^Both groups contain all 400 requests\./,
    );
    expect(text({ isSame: true, sizes: [25, 25] })).toMatch(
      /^Both groups contain the same 25 requests\./,
    );
    expect(text({ isSame: true, sizes: [1, 1] })).toMatch(
      /^Both groups contain the same 1 request\./,
    );
    expect(text({ sizes: [0, 25] })).toBe('Group A is empty: no request passes its filters.');
    expect(text({ sizes: [200, 0] })).toMatch(/^Group B is empty/);
    for (const one of [{ isSame: true }, { sizes: [200, 0] as [number, number] }])
      expect(namedContext(given(one))).toBe(0);
  });

  it('without kernel events says what is unknown, and how to record it', () => {
    const unknown = text({ hasTimes: false, cause: null, greatest: null });
    expect(unknown).toMatch(
      /^Slow requests \(25\) take 263 ms on average instead of 3.4 ms\. Where the time goes is unknown/,
    );
    expect(unknown).toContain('sched_switch');
    expect(unknown).toContain('tracebraid record --stacks -- COMMAND');
    const unsure = text({ hasTimes: false, cause: null, greatest: null, chance: 0.3 });
    expect(unsure).toMatch(/^No significant difference: .* Where the time goes is unknown/);
    expect(text({ durations: null, cause: null, greatest: null })).toMatch(
      /^Durations are unknown/,
    );
  });

  it('without one cause names the greatest difference', () => {
    expect(
      text({ cause: null, greatest: { context: given().greatest!.context, difference: 30 * MS } }),
    ).toMatch(
      /3.4 ms\. No calling context explains half of the difference\. The calling context that differs most: 30 ms more in B in fdatasync\(\)/,
    );
  });

  it('says when a cause is on several call paths, or is more than the difference', () => {
    const { context } = given().cause!;
    expect(
      text({ cause: { context, difference: 300 * MS, share: 1.15, contexts: 3, disk: null } }),
    ).toMatch(
      /300 ms, more than the difference, is spent in fdatasync\(\).* uses, on 3 call paths\.$/,
    );
  });

  it('calls executions by the name of their kind', () => {
    const kind = (name: string, keyword = 'period') => ({
      name,
      definition: `# Words.\n${keyword} ${name} : *`,
      executions: 1,
    });
    expect(nounsOf(REQUEST)).toEqual(['request', 'requests']);
    expect(nounsOf(kind('query'))).toEqual(['query', 'queries']);
    expect(nounsOf(kind('batch'))).toEqual(['batch', 'batches']);
    expect(nounsOf(kind('day'))).toEqual(['day', 'days']);
    expect(nounsOf(kind('disk_write'))).toEqual(['disk write', 'disk writes']);
    expect(nounsOf(kind('requests'))[1]).toBe('requests');
    expect(nounsOf(kind('GET /*'))).toEqual([
      'execution of kind “GET /*”',
      'executions of kind “GET /*”',
    ]);
    expect(nounsOf(kind('all', 'call'))[1]).toBe('system calls of kind “all”');
    expect(nounsOf(kind('f*', 'function'))[0]).toBe('function call of kind “f*”');
    expect(nounsOf(undefined)).toEqual(['execution', 'executions']);
    expect(text({ kind: kind('frame') })).toMatch(/^Slow frames \(25\)/);
    expect(text({ kind: undefined })).toMatch(/^Slow executions \(25\)/);
  });

  it('knows slow and fast groups by their ranges', () => {
    const range = (low: number, high: number) => ({ low, high });
    expect(choiceOf([range(1, 2), range(3, 4)])).toBe('slow');
    expect(choiceOf([range(3, 4), range(1, 2)])).toBe('fast');
    expect(choiceOf([range(1, 3), range(3, 4)])).toBe('other');
    expect(choiceOf([undefined, range(3, 4)])).toBe('other');
  });
});

describe('words for a context', () => {
  const words = (...path: Frame[]) => {
    const { tree, names, ends } = treeOf([...PREFIX, ...path]);
    return verdictText(contextWords(tree, names, ends[0]));
  };

  it('name calls, reasons, devices and threads', () => {
    expect(words([FUNCTION, 'compute'])).toBe('in compute');
    expect(words([CALL, 'read'], [REASON, 'pipe'])).toBe('in read(), waiting for a pipe');
    expect(words([CALL, 'nanosleep'], [REASON, 'timer'])).toBe(
      'in nanosleep(), sleeping until a timer expires',
    );
    expect(
      words([REASON, 'preempted'], [THREAD, 'cc1plus'], [FUNCTION, 'parse'], [FUNCTION, 'fold']),
    ).toBe('in handle, preempted by cc1plus, which runs fold (called by parse)');
    expect(words([REASON, 'runnable'], [THREAD, 'cc1plus'])).toBe(
      'in handle, waiting for a CPU used by cc1plus',
    );
    expect(words([REASON, 'runnable'], [DETAIL, 'idle CPU'])).toBe(
      'in handle, waiting until an idle CPU wakes up',
    );
    expect(words([CALL, 'futex'], [THREAD, 'worker'], [FUNCTION, 'compact'])).toBe(
      'in futex(), waiting for worker, which runs compact',
    );
    expect(words([REASON, 'device'], [DETAIL, 'eth0'])).toBe(
      'in handle, waiting for a device (eth0)',
    );
    expect(words([REASON, 'a new reason'])).toBe('in handle, waiting (a new reason)');
  });

  it('go from thread to thread', () => {
    expect(
      words(
        [REASON, 'network'],
        [THREAD, 'postgres'],
        [FUNCTION, 'LockAcquire'],
        [CALL, 'epoll_wait'],
        [THREAD, 'postgres'],
        [FUNCTION, 'ExecScan'],
        [FUNCTION, '[postgres+0x4f]'],
      ),
    ).toBe(
      'in handle, waiting over the network for postgres, which is in epoll_wait(), waiting for another postgres, which runs ExecScan',
    );
    expect(
      words(
        [REASON, 'network'],
        [THREAD, 'db'],
        [FUNCTION, 'XLogFlush'],
        [FUNCTION, 'pg_usleep'],
        [CALL, 'pselect6'],
        [REASON, 'timer'],
      ),
    ).toBe(
      'in handle, waiting over the network for db, which is in pselect6() (called by pg_usleep in XLogFlush), sleeping until a timer expires',
    );
    expect(words(...DISK.slice(3), [FUNCTION, 'write_log'], [FUNCTION, 'flush_log'])).toBe(
      'in fdatasync(), waiting for disk vdc, which diskwriter uses in flush_log (called by write_log)',
    );
  });

  it('shorten long names in the middle', () => {
    const long = words([FUNCTION, `begin_${'x'.repeat(200)}_end`]);
    expect(long).toMatch(/^in begin_x+…x+_end$/);
    expect(long.length).toBeLessThan(70);
  });
});

describe('the cause', () => {
  const paths: Frame[][] = [
    [...PREFIX, [FUNCTION, 'parse']],
    [...PREFIX, [FUNCTION, 'load'], [CALL, 'read'], [REASON, 'block-device'], [DETAIL, 'sda']],
    [...PREFIX, [FUNCTION, 'store'], [CALL, 'write'], [REASON, 'block-device'], [DETAIL, 'sda']],
  ];
  const { tree, names, layer, ends } = treeOf(...paths);
  /** Whole times from own times. */
  const found = (own: [number, number, number], chance = 1e-6) => {
    const meanB = new Float64Array(tree.count);
    for (const [at, end] of ends.entries()) meanB[end] = own[at];
    for (let at = tree.count - 1; at > 0; at--) meanB[tree.parent[at]] += meanB[at];
    const times = {
      meanA: new Float64Array(tree.count),
      meanB,
      chance: new Float64Array(tree.count).fill(chance),
    };
    return causeOf(layer, names, times, meanB[0]);
  };

  it('is the deepest context that keeps most of the difference', () => {
    expect(found([5, 95, 0])).toMatchObject({ context: ends[1], contexts: 1, difference: 95 });
    expect(found([5, 60, 35])).toMatchObject({ context: ends[1], share: 0.6 });
    expect(found([90, 5, 5])).toMatchObject({ context: ends[0] });
  });

  it('adds up one device that several call paths wait for', () => {
    expect(found([10, 45, 45])).toMatchObject({ contexts: 2, share: 0.9, difference: 90 });
    expect(names[tree.name[found([10, 46, 44])!.context]]).toBe('sda');
  });

  it('of contexts that are not significant by themselves is the frame in which they end', () => {
    expect(found([10, 45, 45], 0.5)).toMatchObject({ contexts: 2, share: 0.9 });
  });

  it('is a system call with the disk at the end of the paths below it, and its user', () => {
    const sync: Frame[] = [...PREFIX, [CALL, 'fdatasync']];
    const disk = (...path: Frame[]): Frame[] => [
      ...sync,
      ...path,
      [REASON, 'block-device'],
      [DETAIL, 'vdc'],
    ];
    const way = treeOf(
      [...disk([THREAD, 'kworker']), [THREAD, 'diskwriter']],
      [...disk([THREAD, 'jbd2']), [THREAD, 'diskwriter'], ...disk().slice(-2)],
      disk([THREAD, 'jbd2']),
      [...sync, [THREAD, 'kworker'], [REASON, 'preempted']],
    );
    const wordsFor = (...own: number[]) => {
      const meanB = new Float64Array(way.tree.count);
      for (const [at, end] of way.ends.entries()) meanB[end] += own[at];
      for (let at = way.tree.count - 1; at > 0; at--) meanB[way.tree.parent[at]] += meanB[at];
      const times = { meanA: new Float64Array(way.tree.count), meanB, chance: null };
      const cause = causeOf(way.layer, way.names, times, meanB[0]);
      return text({ tree: way.tree, names: way.names, cause }).replace(/.* is spent /, '');
    };
    expect(wordsFor(45, 40, 3, 1)).toBe(
      'in fdatasync(), waiting for disk vdc, which diskwriter uses.',
    );
    expect(wordsFor(36, 20, 38, 6)).toBe(
      'in fdatasync(), waiting for disk vdc, which diskwriter uses for 56 % of that time.',
    );
    expect(wordsFor(30, 10, 55, 5)).toBe('in fdatasync(), waiting for disk vdc.');
    expect(wordsFor(25, 15, 30, 30)).toBe('in fdatasync().');
  });

  it('is none where no context has half of the difference', () => {
    const split = treeOf(...['a', 'b', 'c'].map((one): Frame[] => [...PREFIX, [FUNCTION, one]]));
    const meanB = new Float64Array(split.tree.count);
    for (const end of split.ends) meanB[end] = 1;
    for (let at = split.tree.count - 1; at > 0; at--) meanB[split.tree.parent[at]] += meanB[at];
    const times = { meanA: new Float64Array(split.tree.count), meanB, chance: null };
    expect(causeOf(split.layer, split.names, times, 3)).toBeNull();
    expect(causeOf(split.layer, split.names, times, 0)).toBeNull();
  });

  it('of executions is the planted one, in the tree of calls whatever is shown', () => {
    const pack = decodePack(
      makePack({ executions: 2000, contexts: 120, hostile: false }).bytes.buffer,
    );
    const [table, calls] = [new Table(pack), forward(pack)];
    const groups: [Group, Group] = [new Group(table, calls), new Group(table, calls)];
    // The first text is the planted cause.
    groups[0].setAllowed(0, Uint8Array.of(1, 0, 0, 0));
    groups[1].setAllowed(0, Uint8Array.of(0, 0, 1, 0));
    for (const group of groups) group.settle(Infinity);
    const figures = new Separating(table, groups, pack.metrics.length);
    while (!figures.step());
    const { groups: durations, chance } = figures.of(0)!;
    const whole = compare(calls, groups, 'whole');
    const total = durations[1].mean - durations[0].mean;
    const cause = causeOf(calls, pack.names, whole, total)!;
    expect(chance).toBeLessThan(0.01);
    expect(verdictText(contextWords(calls.tree, pack.names, cause.context))).toBe(
      'in futex(), waiting for compactor, which runs compact',
    );
    // Sums by a tree that is made later are the same.
    const later = [groups[0].sumsBy(calls), groups[1].sumsBy(calls)] as const;
    for (const one of later) while (!one.settle(Infinity));
    expect(compare(calls, later, 'whole').meanB).toEqual(whole.meanB);
    const own = compare(calls, groups, 'own');
    expect(ranked(own, 1).every((at) => isSure(own, at))).toBe(true);
    expect(groups[0].hasSameMembers(groups[1])).toBe(false);
    expect(groups[0].hasSameMembers(groups[0])).toBe(true);
  });
});
