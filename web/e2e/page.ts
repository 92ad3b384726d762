/**
 * Shared by tests: a server, pages without errors in the console, and functions that use the page.
 */

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test as base, expect, type Locator, type Page } from '@playwright/test';
import type { Model } from '../src/model';
import { aloneFrom } from '../tools/alone.mjs';
import { serve } from '../tools/serve.mjs';
import { makePack } from '../tools/synthetic.mjs';

declare global {
  interface Window {
    /** The page publishes its model for tests. */
    tracebraid: Model;
  }
}

export const EXECUTIONS = 3000;

interface Served {
  origin: string;
  address: string;
}

type Pack = ReturnType<typeof makePack>;

interface Fixtures {
  quiet: undefined;
  /** Opens an exported page with a pack. */
  openPack: (pack: Pack) => Promise<void>;
}

export const test = base.extend<Fixtures, { served: Served; alone: string }>({
  served: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the pattern
    async ({}, use) => {
      const kinds = [
        { name: 'request', definition: 'a', executions: EXECUTIONS },
        { name: 'job', definition: 'b', executions: 100 },
      ];
      const packs = [
        makePack({ executions: EXECUTIONS, contexts: 200 }),
        makePack({ executions: 100, contexts: 60, seed: 5 }),
      ];
      const again = packs.map((pack, kind) => withHeader(pack, { kinds, kind }));
      const { origin, address, stop } = await serve(again);
      await use({ origin, address });
      stop();
    },
    { scope: 'worker' },
  ],
  alone: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the pattern
    async ({}, use) => {
      const file = join(mkdtempSync(join(tmpdir(), 'tracebraid-web-')), 'page.html');
      writeFileSync(file, aloneFrom(makePack({ executions: EXECUTIONS, contexts: 200 })));
      await use(pathToFileURL(file).href);
    },
    { scope: 'worker' },
  ],
  openPack: async ({ page }, use, testInfo) => {
    await use(async (pack) => {
      const file = testInfo.outputPath('pack.html');
      writeFileSync(file, aloneFrom(pack));
      await open(page, pathToFileURL(file).href);
    });
  },
  quiet: [
    async ({ page }, use, testInfo) => {
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(String(error.stack)));
      page.on('dialog', (dialog) => {
        complaints.push(`a dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on('console', (message) => {
        // Some tests expect that a request is refused.
        if (message.type() !== 'error' || /Failed to load resource/.test(message.text())) return;
        if (/policy refuses/.test(testInfo.title) && /Content Security Policy/.test(message.text()))
          return;
        complaints.push(message.text());
      });
      await use(undefined);
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

/** A pack without recorded times and critical paths, as from a trace without sched_switch. */
export function withoutTimes(pack: Pack): Pack {
  const sections = structuredClone(pack.header.sections) as Record<
    string,
    [string, number, number]
  >;
  const base = 12 + new DataView(pack.bytes.buffer).getUint32(8, true);
  new Uint32Array(pack.bytes.buffer, base + sections.rows[1], pack.header.executions + 1).fill(0);
  sections.context[2] = 0;
  sections.time[2] = 0;
  const path = (one: number) => ({ ...pack.pathOf(one), threads: [], segments: [], command: null });
  return { ...withHeader(pack, { sections }), pathOf: path } as Pack;
}

/** A pack with a changed header. */
export function withHeader(pack: Pack, change: Record<string, unknown>): Pack {
  const { bytes } = pack;
  const length = new DataView(bytes.buffer).getUint32(8, true);
  const header = { ...pack.header, ...change };
  const json = new TextEncoder().encode(JSON.stringify(header));
  const padded = new Uint8Array(((12 + json.length + 7) & ~7) - 12).fill(32);
  padded.set(json);
  const made = new Uint8Array(12 + padded.length + bytes.length - 12 - length);
  made.set(bytes.subarray(0, 8));
  new DataView(made.buffer).setUint32(8, padded.length, true);
  made.set(padded, 12);
  made.set(bytes.subarray(12 + length), 12 + padded.length);
  return { ...pack, bytes: made, header };
}

export async function open(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.waitForSelector('[data-flame]');
  await calm(page);
}

/** Opens the page without filters: all executions are in both groups. */
export async function openAll(page: Page, address: string): Promise<void> {
  await open(page, `${address}#a=all`);
}

/**
 * Waits until nothing moves any more, the address has been written and all changes are on the
 * screen.
 */
export async function calm(page: Page): Promise<void> {
  await page.waitForFunction(() => window.tracebraid?.isSettled === true);
  // Renderings follow in the next frame, effects after it.
  await page.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))),
      ),
  );
}

/** Number of executions in a group, as the page shows it. */
export async function size(page: Page, group: 'A' | 'B'): Promise<number> {
  return Number((await page.locator(`[data-size=${group}]`).innerText()).replaceAll(',', ''));
}

/** The position of a histogram's half on the screen, and x coordinates on it. */
export async function laneOf(page: Page, histogram: string) {
  // Rows move when a range appears or goes, and when the verdict gets longer.
  await calm(page);
  const lane = page.locator(`[data-histogram="${histogram}"]`);
  await lane.scrollIntoViewIfNeeded();
  const box = (await lane.boundingBox())!;
  const [left, right] = [box.x + 42, box.x + box.width - 8];
  return { left, right, y: box.y + 20, x: (part: number) => left + part * (right - left) };
}

/** Drags on a histogram from one part of its width to another. */
export async function brush(
  page: Page,
  histogram: string,
  from: number,
  to: number,
): Promise<void> {
  const { x, y } = await laneOf(page, histogram);
  await page.mouse.move(x(from), y);
  await page.mouse.down();
  for (let step = 1; step <= 6; step++)
    await page.mouse.move(x(from + ((to - from) * step) / 6), y);
  await page.mouse.up();
}

/** The checkbox of a value in a list. */
export function valueBox(page: Page, group: 'a' | 'b', value: string, list = ''): Locator {
  const within =
    list === '' ? page.locator('.filters') : page.locator(`[data-checklist="${list}"]`);
  return within.locator('.value-row', { hasText: value }).locator(`.side-${group} input`);
}

/** A screenshot of an element. */
export async function picture(of: Locator): Promise<string> {
  return (await of.screenshot()).toString('base64');
}

export const hash = (page: Page) => new URL(page.url()).hash;
export { expect };
