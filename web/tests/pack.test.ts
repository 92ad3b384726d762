import { describe, expect, it } from 'vitest';
import { decodePack, PackError } from '../src/engine/pack';
import { makePack, pack, random } from '../tools/synthetic.mjs';

const small = () => makePack({ executions: 50, metrics: 8, contexts: 60, entries: 8 });

describe('decoding', () => {
  it('gives what was packed', () => {
    const { bytes, header } = small();
    const found = decodePack(bytes.buffer);
    expect(found.executions).toBe(50);
    expect(found.metrics.map(({ name }) => name)).toEqual(
      header.metrics.map(({ name }: { name: string }) => name),
    );
    expect(found.origin).toBe(1790000000000000000n);
    const { rows, time } = found.entries;
    for (let row = 0; row < 50; row++) {
      let sum = 0;
      for (let at = rows[row]; at < rows[row + 1]; at++) sum += time[at];
      expect(sum).toBe(found.metrics[0].values[row]);
    }
  });

  it('says what is wrong', () => {
    const wrong = (
      change: (header: Record<string, never> & { sections: Record<string, unknown> }) => void,
    ) => {
      const { bytes } = small();
      const length = new DataView(bytes.buffer).getUint32(8, true);
      const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
      const sections = Object.entries(
        header.sections as Record<string, [string, number, number]>,
      ).map(([name, [type, offset, size]]) => {
        const View = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array }[
          type
        ]!;
        return { name, array: new View(bytes.slice(12 + length + offset).buffer, 0, size) };
      });
      const arrays = Object.fromEntries(sections.map(({ name, array }) => [name, array]));
      header.sections = arrays;
      change(header);
      header.sections = {};
      const again = pack(
        header,
        Object.entries(arrays).map(([name, array]) => ({ name, array })),
      );
      return () => decodePack(again.buffer);
    };
    // biome-ignore lint/suspicious/noExplicitAny: broken headers have no type
    const broken = (change: (header: any) => void) => expect(wrong(change));
    broken(() => {}).not.toThrow();
    broken((h) => (h.version = 2)).toThrow(/version is 2/);
    broken((h) => (h.executions = 49)).toThrow(/elements instead of 49/);
    broken((h) => (h.executions = -1)).toThrow(/not a count/);
    broken((h) => (h.names = 'x')).toThrow(/not a list/);
    broken((h) => (h.names[0] = 7)).toThrow(/not a string/);
    broken((h) => (h.names = [])).toThrow(/name that does not exist/);
    broken((h) => (h.origin_ns = '1e99')).toThrow(/origin_ns/);
    broken((h) => delete h.sections.rows).toThrow(/section rows is missing/);
    broken((h) => (h.sections.parent[1] = 1)).toThrow(/parent of context 1/);
    broken((h) => (h.sections.context[0] = 60000)).toThrow(/not in order/);
    broken((h) => (h.sections.context[1] = h.sections.context[0])).toThrow(/not in order/);
    broken((h) => (h.sections.time[0] = 0)).toThrow(/a time of execution 0 is 0/);
    broken((h) => (h.sections.rows[3] = 1)).toThrow(/ends before/);
    broken((h) => (h.sections.rows[50] = 1)).toThrow(/do not cover all/);
    broken((h) => (h.sections.source[3] = 9)).toThrow(/source of execution 3/);
    broken((h) => (h.sections['text:0'][3] = 9)).toThrow(/text 0 of execution 3/);
    broken((h) => (h.sections.thread[3] = 99)).toThrow(/thread of execution 3/);
  });

  it('stands whatever bytes', () => {
    const { bytes } = small();
    const next = random(7);
    for (let round = 0; round < 3000; round++) {
      let copy = bytes.slice();
      for (let flips = 0; flips < 1 + (round % 4); flips++) {
        // Mostly the header, which contains all offsets.
        const at = Math.floor(next() * (next() < 0.7 ? 2000 : copy.length));
        copy[at] =
          next() < 0.5 ? copy[at] ^ (1 << Math.floor(next() * 8)) : Math.floor(next() * 256);
      }
      if (next() < 0.2) copy = copy.slice(0, Math.floor(next() * copy.length));
      try {
        decodePack(copy.buffer);
      } catch (error) {
        if (!(error instanceof PackError)) throw error;
      }
    }
  });
});
