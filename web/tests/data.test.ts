import { describe, expect, it } from 'vitest';
import { fromAddress, initial, toAddress } from '../src/data/address';
import { pathFrom } from '../src/data/source';
import { forward, pathOf } from '../src/engine/layer';
import { decodePack, FrameKind } from '../src/engine/pack';
import { stateOf } from '../src/engine/states';
import {
  chance,
  clean,
  digits,
  fittedTo,
  logTicks,
  middle,
  moment,
  percent,
  quantity,
  signed,
  ticks,
} from '../src/format';
import { makePack, random } from '../tools/synthetic.mjs';

describe('addresses', () => {
  it('say all that is shown', () => {
    const shown = initial();
    shown.kind = 2;
    shown.isChosen = true;
    shown.filters[0].ranges.set('m.a;b:c=d&e', { low: -1.5, high: Infinity });
    shown.filters[1].ranges.set('begin', { low: 0, high: 1e-7 });
    shown.filters[1].codes.set('t.</script>', [0, 3, 7]);
    shown.scales.set('m.x y', 'log');
    shown.isTall = shown.isFlipped = shown.isInverted = true;
    shown.mode = 'a';
    shown.part = 'own';
    shown.zoom = 17;
    shown.search = 'a & b = "c" # d %';
    shown.pins = [4, 9];
    shown.execution = 0;
    shown.contexts = ['c.7', 'i.3'];
    shown.sort = { key: 'm.x y', isDown: false };
    expect(fromAddress(`#${toAddress(shown)}`)).toEqual(shown);
    expect(toAddress(initial())).toBe('');
    expect(fromAddress('')).toEqual(initial());
  });

  it('tell groups of all executions from groups that nobody has chosen', () => {
    const shown = initial();
    shown.zoom = 3;
    expect(fromAddress(toAddress(shown)).isChosen).toBe(false);
    shown.isChosen = true;
    expect(toAddress(shown)).toBe('a=all&zoom=3');
    expect(fromAddress(toAddress(shown))).toEqual(shown);
    // A group without filters is omitted beside a filtered one.
    shown.filters[1].codes.set('thread', [1]);
    expect(toAddress(shown)).toBe('b=thread%3D1&zoom=3');
    expect(fromAddress(toAddress(shown))).toEqual(shown);
  });

  it('are harmless whatever they say', () => {
    const next = random(5);
    const letters = '#&=;:.,%0123456789abkmx-_\u0000é';
    for (let round = 0; round < 5000; round++) {
      let text = 'a=m.x%3A1%3A2&zoom=4';
      for (let at = 0; at < 6; at++) {
        const place = Math.floor(next() * text.length);
        text =
          text.slice(0, place) +
          letters[Math.floor(next() * letters.length)] +
          text.slice(place + (next() < 0.5 ? 1 : 0));
      }
      const found = fromAddress(text);
      for (const { ranges } of found.filters)
        for (const { low, high } of ranges.values()) expect(low <= high).toBe(true);
      expect(Number.isSafeInteger(found.zoom)).toBe(true);
    }
  });
});

describe('abbreviated texts', () => {
  const room = (letters: number) => (text: string) => fittedTo(text, letters * 7, () => 7);

  it('have one ellipsis where they are cut off', () => {
    expect(room(9)('handle_request')).toBe('handle_r…');
    expect(room(14)('handle_request')).toBe('handle_request');
    expect(room(3)('handle_request')).toBe('ha…');
    expect(room(2)('handle_request')).toBe('');
    // A text that was cut before does not get a second ellipsis.
    expect(room(9)('worker…… 4711')).toBe('worker…');
    expect(room(11)('worker 7 … 4711')).toBe('worker 7…');
    expect(clean('a very long name', 6)).toBe('a very…');
    expect(clean('a very long name', 7)).toBe('a very…');
    expect(clean('one… and more', 4)).toBe('one…');
  });
});

describe('numbers for people', () => {
  it('have three digits and fitting units', () => {
    expect(quantity(1234567, 'ns')).toBe('1.23 ms');
    expect(quantity(999.9, 'ns')).toBe('1 µs');
    expect(quantity(61e9, 'ns')).toBe('61 s');
    expect(quantity(0, 'ns')).toBe('0 ns');
    expect(quantity(1536, 'bytes')).toBe('1.5 KiB');
    expect(quantity(1234567, '')).toBe('1,234,567');
    expect(quantity(NaN, 'ns')).toBe('unknown');
    expect(quantity(-Infinity, 'ns')).toBe('−∞');
    expect(quantity(1e300, '')).toBe('1.00e+300');
    expect(signed(-2500, 'ns')).toBe('−2.5 µs');
    expect(digits(Infinity)).toBe('∞');
    expect(percent(1, 3)).toBe('33 %');
    expect(percent(1, 1e6)).toBe('< 0.01 %');
    expect(percent(999, 1000)).toBe('99.9 %');
    expect(chance(0)).toBe('< 10⁻³⁰');
    expect(chance(4e-7)).toBe('< 10⁻⁶');
    expect(chance(0.0123)).toBe('1.2 %');
    expect(moment(1790000000000000123n)).toBe('2026-09-21 14:13:20.000000123 UTC');
    expect(moment(10n ** 23n)).toContain('ns');
  });

  it('stand at round places on axes', () => {
    expect(ticks(0, 1e6, 'ns', 5)).toEqual([0, 200000, 400000, 600000, 800000, 1e6]);
    expect(ticks(0, 4096, 'bytes', 4)).toEqual([0, 1024, 2048, 3072, 4096]);
    expect(ticks(5, 5, '', 5)).toEqual([]);
    expect(logTicks(30, 2e4, '', 4)).toEqual([100, 1000, 10000]);
    expect(logTicks(1, 100, '', 20)).toEqual([1, 2, 5, 10, 20, 50, 100]);
    expect(logTicks(1, 2 ** 40, 'bytes', 5).length).toBeLessThanOrEqual(6);
  });

  it('show names without what turns them around', () => {
    expect(middle('a short name', 20)).toBe('a short name');
    expect(middle('the beginning and the end', 11)).toBe('the b…e end');
    expect(middle('x'.repeat(500), 60).length).toBe(60);
    expect(middle('a\u202eb', 60)).toBe('a\ufffdb');
    expect(clean('a\u202eb\u0000c\nd')).toBe('a\ufffdb\ufffdc\ufffdd');
    expect(clean('x'.repeat(500)).length).toBe(201);
  });
});

describe('paths', () => {
  const made = makePack({ executions: 200, contexts: 80 });
  const pack = decodePack(made.bytes.buffer);

  it('add up to the duration, with states from contexts', () => {
    for (let row = 0; row < 200; row++) {
      const path = pathFrom(JSON.parse(JSON.stringify(made.pathOf(row))));
      expect(path.segments.reduce((sum, { duration }) => sum + duration, 0)).toBe(
        pack.metrics[0].values[row],
      );
      for (const { thread, context } of path.segments) {
        const { state, stack } = stateOf(
          pack.contexts,
          pack.names,
          context,
          path.threads[thread].name,
        );
        expect(state).not.toBe('');
        for (const frame of stack) expect(pathOf(pack.contexts, context)).toContain(frame);
      }
    }
  });

  it('tell that an execution waits for a thread, whatever that does meanwhile', () => {
    const names = ['', 'queued', 'worker', 'block-device', 'unknown-hand-over'];
    const tree = {
      ...pack.contexts,
      parent: Uint32Array.from([0, 0, 1, 2, 0]),
      kind: Uint8Array.from([
        FrameKind.Root,
        FrameKind.Reason,
        FrameKind.Thread,
        FrameKind.Reason,
        FrameKind.Reason,
      ]),
      name: Uint32Array.from([0, 1, 2, 3, 4]),
    };
    const states = [1, 2, 3, 4].map((context) => stateOf(tree, names, context, 'worker').state);
    expect(states).toEqual(['queued', 'queued', 'queued', 'unknown-hand-over']);
  });

  it('tell the reason below the thread itself', () => {
    const layer = forward(pack);
    const named = (name: string) => pack.names.indexOf(name);
    const find = (name: string) =>
      [...layer.tree.name.keys()].filter((at) => at > 0 && layer.tree.name[at] === named(name));
    const [disk] = find('sda');
    const [copy] = find('copy_tree');
    const [preempter] = find('cc1plus');
    const of = (context: number, thread: string) =>
      stateOf(pack.contexts, pack.names, context, thread);
    expect(of(disk, 'worker-1').state).toBe('block-device');
    // The other thread ran, so its state is below its own name.
    expect(of(copy, 'backup').state).toBe('running');
    expect(of(copy, 'backup').stack.map((frame) => pack.names[pack.contexts.name[frame]])).toEqual([
      'copy_tree',
    ]);
    // The thread that has the CPU is below the reason: the execution's thread does not run.
    expect(of(preempter, 'worker-1').state).toBe('preempted');
    // A thread of the kernel without its CPU.
    expect(of(copy, 'backup/0:1H').state).toBe('running');
  });

  it('are refused where they are not sound', () => {
    const good = () => JSON.parse(JSON.stringify(made.pathOf(3)));
    expect(() => pathFrom(good())).not.toThrow();
    for (const change of [
      (path: Record<string, unknown>) => delete path.segments,
      (path: Record<string, unknown>) => (path.segments = [[0, 1, 99, 0]]),
      (path: Record<string, unknown>) => (path.segments = [[0, -1, 0, 0]]),
      (path: Record<string, unknown>) => (path.segments = [7]),
      (path: Record<string, unknown>) => (path.begin_ns = 5),
      (path: Record<string, unknown>) => (path.execution = 'x'),
    ]) {
      const path = good();
      change(path);
      expect(() => pathFrom(path)).toThrow(/is damaged/);
    }
    expect(() => pathFrom(null)).toThrow(/is damaged/);
  });
});
