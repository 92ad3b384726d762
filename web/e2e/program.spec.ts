/**
 * The page against the real program with databases of real recordings: page and terminal must
 * agree.
 */

import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from '@playwright/test';
import { type Part, SURE, spreads } from '../src/engine/compare';
import type { Group } from '../src/engine/group';
import type { Layer } from '../src/engine/layer';
import { FrameKind } from '../src/engine/pack';
import { hedges, intervalOf, type Spread } from '../src/engine/statistics';
import type { TextSeparation } from '../src/engine/texts';
import { quantity } from '../src/format';
import { faults } from './access';
import { brush, calm, expect, hash, laneOf, open, picture, size } from './page';
import {
  BUILT,
  type ComparedText,
  callsOf,
  compared,
  dress,
  dressed,
  goes,
  IS_PAGE_OF_DIST,
  STUDIES,
  type Tested,
  test,
  told,
} from './program';

const [CPU, DISK, LOCK, SLEEP, DEVICE] = STUDIES;

/** How the terminal writes frames. */
const WORDS: Record<number, [string, string]> = {
  [FrameKind.Function]: ['', ''],
  [FrameKind.Call]: ['', '()'],
  [FrameKind.Thread]: ['<', '>'],
  [FrameKind.Reason]: ['[', ']'],
  [FrameKind.Detail]: ['[', ']'],
};

/** Frames of each context, as the terminal writes them. */
async function wordsOf(page: Page): Promise<string[][]> {
  return page.evaluate((words) => {
    const { contexts, names } = window.tracebraid.pack;
    const found: string[][] = [[]];
    for (let at = 1; at < contexts.count; at++) {
      const [before, behind] = words[contexts.kind[at]];
      found.push([...found[contexts.parent[at]], `${before}${names[contexts.name[at]]}${behind}`]);
    }
    return found;
  }, WORDS);
}

/** Contexts in the list of the page. */
async function ranked(page: Page): Promise<number[]> {
  const rows = page.locator('table[aria-label="Contexts that differ most"] [data-ranked]');
  return rows.evaluateAll((found) => found.map((row) => Number(row.getAttribute('data-ranked'))));
}

async function sizes(page: Page): Promise<number[]> {
  return [await size(page, 'A'), await size(page, 'B')];
}

/** The visible state of the page, to compare two pages. */
async function seen(page: Page) {
  const table = page.locator('table[aria-label="Contexts that differ most"]');
  return {
    sizes: await sizes(page),
    chips: await page.locator('.heads .chip').allInnerTexts(),
    differences: await table.innerText(),
    slowest: await page.locator('.list.side-b tbody').innerText(),
    verdict: await page.locator('[data-verdict]').innerText(),
    graph: await picture(page.locator('[data-flame] canvas')),
  };
}

/** Means of all contexts with time, by their frames. */
async function means(page: Page): Promise<Map<string, [number, number]>> {
  const words = await wordsOf(page);
  const found = await page.evaluate(() => {
    const { meanA, meanB } = window.tracebraid.rankedBy;
    return [...meanA.keys()].map((at): [number, number] => [meanA[at], meanB[at]]);
  });
  const there = [...found.entries()].filter(([, [a, b]]) => a > 0 || b > 0);
  return new Map(there.map(([at, both]) => [words[at].join('\n'), both]));
}

test('the program carries the page that was built here', async ({ view, request }) => {
  test.info().annotations.push({
    type: 'page',
    description: IS_PAGE_OF_DIST ? 'web/dist' : "the program's",
  });
  const { origin } = await view(CPU);
  const answer = await request.get(origin);
  expect(answer.ok()).toBe(true);
  const page = await answer.text();
  expect(page).toContain('Content-Security-Policy');
  if (!IS_PAGE_OF_DIST && page !== BUILT) {
    throw new Error(
      'The program has another page than web/dist: build it anew, or set TRACEBRAID_PAGE=dist to test that.',
    );
  }
});

for (const study of STUDIES) {
  test(`${study.name}: the cause is on top, in the list and in the flame graph`, async ({
    page,
    view,
  }) => {
    const expected = compared(study.file, study.conditions);
    expect(expected.groups[1].executions).toBe(study.slow);
    await open(page, `${(await view(study)).address}#${study.address}`);
    expect(await sizes(page)).toEqual(expected.groups.map(({ executions }) => executions));
    const words = await wordsOf(page);
    const list = await ranked(page);
    const place = list.findIndex((context) => goes(words[context], study.cause));
    expect(place).toBeGreaterThanOrEqual(0);
    expect(place).toBeLessThan(study.among);
    expect(words[list[0]]).toEqual(expected.contexts[0].context);
    await page.locator('[data-ranked]').nth(place).click();
    await calm(page);
    // Its box is as wide as the graph, in the colour for 3 or more deviations.
    const [colour, full] = await colours(page, words[list[place]].length);
    expect(colour).toBe(full);
    await expect(page.locator('#flame-said')).toContainText('They differ significantly.');
  });
}

/** The colour of the zoomed box at a depth, and the colour of the legend for much more in B. */
async function colours(page: Page, depth: number): Promise<[string, string]> {
  return page.evaluate((row) => {
    const canvas = document.querySelector<HTMLCanvasElement>('[data-flame] canvas')!;
    const ratio = canvas.width / canvas.clientWidth;
    const at = [canvas.width - 8, (row * 19 + 4) * ratio];
    const [r, g, b] = canvas.getContext('2d')!.getImageData(at[0], at[1], 1, 1).data;
    const full = [...document.querySelectorAll('.flame .legend .scale i')].at(-1)!;
    return [`rgb(${r}, ${g}, ${b})`, getComputedStyle(full).backgroundColor];
  }, depth);
}

/**
 * Collects numbers in which page and terminal differ: an assertion for each of very many numbers
 * would be slow.
 */
class Differences {
  readonly found: string[] = [];

  /** Compares a number of the page with one of the terminal. */
  number(found: number, expected: number | null, what: string): void {
    // Tails are computed in different ways; below 1e-30 they need not agree.
    const bound = Math.max(1e-6 * Math.abs(expected ?? Infinity), 1e-30);
    const isSame =
      expected === null ? !Number.isFinite(found) : Math.abs(found - expected) <= bound;
    if (!isSame) this.found.push(`${what}: ${found} in the page, ${expected} in the terminal`);
  }

  test(found: [Spread, Spread], chance: number, expected: Tested, what: string): void {
    for (const side of [0, 1] as const) {
      for (const key of ['executions', 'present', 'mean', 'deviation'] as const) {
        this.number(
          found[side][key],
          expected.groups[side][key],
          `${what}, ${key} of ${'AB'[side]}`,
        );
      }
    }
    this.number(chance, expected.p, `${what}, chance`);
    this.number(hedges(...found), expected.effect, `${what}, effect`);
    const ends = intervalOf(...found) ?? [NaN, NaN];
    for (const end of [0, 1])
      this.number(ends[end], expected.interval?.[end] ?? null, `${what}, interval`);
  }
}

interface Reckoned {
  /** By context. */
  own: [Spread, Spread, chance: number][];
  whole: [Spread, Spread, chance: number][];
  figures: { name: string; groups: [Spread, Spread]; chance: number; higher: number }[];
  texts: TextSeparation[];
}

/** Results of the page for all contexts, metrics and texts. */
async function reckoned(page: Page): Promise<Reckoned> {
  const { same, sums, chances, figures, texts } = await page.evaluate(() => {
    const model = window.tracebraid;
    const { groups, layer, rankedBy, whole, pack, separations, texts } = model;
    const tally = ({ sums, applied }: Group['own']) => ({ sums: [...sums], applied });
    return {
      same: [...layer.same],
      sums: groups.map((group) => ({ own: tally(group.own), whole: tally(group.whole) })),
      chances: { own: [...rankedBy.chance], whole: [...whole.chance] },
      figures: separations.map((one) => ({ ...one, name: pack.metrics[one.column].name })),
      texts,
    };
  });
  const [layer, groups] = [{ same }, sums] as unknown as [Layer, [Group, Group]];
  const all = (part: Part) =>
    chances[part].map((chance, at): [Spread, Spread, number] => [
      ...spreads(layer, groups, part, at),
      chance,
    ]);
  return { own: all('own'), whole: all('whole'), figures, texts };
}

/**
 * Only the texts of the page, since transferring the sums of thousands of contexts takes seconds.
 */
async function textsOf(page: Page): Promise<TextSeparation[]> {
  return page.evaluate(() => window.tracebraid.texts);
}

/** Compares the texts of the page with those of the terminal. */
function compareTexts(
  found: TextSeparation[],
  expected: ComparedText[],
  differences: Differences,
): void {
  const what = ({ name, value }: { name: string; value: string | null }) => [name, value];
  expect(found.map(what)).toEqual(expected.map(({ text, value }) => [text, value]));
  for (const [at, one] of expected.entries()) {
    const { association, chance, shares } = found[at];
    differences.number(association, one.cramers_v, `${one.text}, V`);
    differences.number(chance, one.p, `${one.text}, p`);
    differences.number(Number(chance < SURE), Number(one.p < SURE), `${one.text}, sure`);
    for (const side of [0, 1])
      differences.number(shares[side], one.groups[side].share, `${one.text}, of ${'AB'[side]}`);
  }
}

for (const study of STUDIES) {
  test(`${study.name}: groups, contexts, metrics and texts are those of tracebraid compare`, async ({
    page,
    view,
  }) => {
    const { address } = await view(study);
    for (const conditions of [null, study.conditions]) {
      await page.goto('about:blank');
      await open(page, conditions === null ? address : `${address}#${study.address}`);
      const words = (await wordsOf(page)).map((frames) => frames.join('\n'));
      const found = await reckoned(page);
      const differences = new Differences();
      for (const part of ['own', 'whole'] as const) {
        const expected = compared(study.file, conditions, ...(part === 'whole' ? ['--whole'] : []));
        const by = new Map(
          found[part]
            .map((one, at) => [words[at], one] as const)
            .filter(([, one]) => !Number.isNaN(one[2])),
        );
        expect(by.size).toBe(expected.contexts.length);
        for (const one of expected.contexts) {
          const [a, b, chance] = by.get(one.context.join('\n'))!;
          const what = `${part} ${one.context.at(-1)}`;
          differences.test([a, b], chance, one, what);
          differences.number(Number(chance < SURE), Number(one.is_significant), `${what}, sure`);
        }
        const telling = expected.metrics.filter(({ superiority }) => superiority !== 0.5);
        expect(found.figures.map(({ name }) => name)).toEqual(telling.map(({ metric }) => metric));
        for (const [at, one] of telling.entries()) {
          differences.test(found.figures[at].groups, found.figures[at].chance, one, one.metric);
          differences.number(found.figures[at].higher, one.superiority, one.metric);
        }
        compareTexts(found.texts, expected.texts, differences);
      }
      expect(differences.found).toEqual([]);
      // The page lists the contexts of the terminal, in its order.
      const { contexts, metrics } = compared(study.file, conditions);
      const last = contexts.map(({ is_significant }) => is_significant).lastIndexOf(true);
      const listed = contexts
        .filter(({ difference }) => difference !== 0)
        .slice(0, Math.min(20, Math.max(5, last + 1)));
      expect((await ranked(page)).map((at) => words[at])).toEqual(
        listed.map(({ context }) => context.join('\n')),
      );
      // Rows that are not significant keep their rank, marked and pale.
      const marks = await page
        .locator('table[aria-label="Contexts that differ most"] tbody tr')
        .evaluateAll((rows) =>
          rows.map((row) => [row.className, row.lastElementChild?.textContent?.startsWith('~')]),
        );
      expect(marks).toEqual(
        listed.map(({ is_significant }) => (is_significant ? ['', false] : ['doubtful', true])),
      );
      const rows = page.locator(
        'table[aria-label="Metrics by how well they separate the groups"] tbody tr',
      );
      const telling = metrics.filter(({ superiority }) => superiority !== 0.5).slice(0, 10);
      const texts = await rows.evaluateAll((all) =>
        all.map((row) => [...row.children].map((cell) => cell.textContent)),
      );
      expect(texts.map(([name, more]) => [name, more])).toEqual(
        telling.map(({ metric, superiority }) => [
          metric.replace(/_(ns|bytes)$/, '').replaceAll('_', ' '),
          `${Math.round(100 * superiority)} %`,
        ]),
      );
      await rows.locator('button').first().click();
      await expect(page.locator(`[data-histogram="b m.${telling[0].metric}"]`)).toBeFocused();
    }
  });
}

test('texts that tell groups apart are those of tracebraid compare, and filter by what tells most', async ({
  page,
  view,
}, testInfo) => {
  const file = callsOf(testInfo.outputPath());
  const { address } = await view({ file });
  const differences = new Differences();
  // Ranges of durations in nanoseconds, of A and of B.
  for (const [a, b] of [
    [
      [0, 99_999],
      [1_000_000, 1e12],
    ],
    [
      [0, 1500],
      [1501, 3000],
    ],
    [
      [5_000_000, 1e12],
      [0, 1e12],
    ],
    [
      [1598, 1599],
      [2_000_000_000, 1e12],
    ],
    [
      [109, 200],
      [300_000, 400_000],
    ],
  ]) {
    await page.goto('about:blank');
    await open(page, `${address}#a=m.duration_ns:${a.join(':')}&b=m.duration_ns:${b.join(':')}`);
    const range = ([low, high]: number[]) => `duration_ns >= ${low} && duration_ns <= ${high}`;
    const expected = compared(file, [range(a), range(b)]);
    expect(await sizes(page)).toEqual(expected.groups.map(({ executions }) => executions));
    compareTexts(await textsOf(page), expected.texts, differences);
    const rows = page.locator('table[aria-label="Texts that differ"] tbody tr');
    const telling = expected.texts.filter(({ cramers_v, p }) => cramers_v > 0 || p < 0.01);
    const shown = await rows.evaluateAll((all) =>
      all.map((row) => [...row.querySelectorAll('button')].map((one) => one.textContent)),
    );
    expect(shown).toEqual(telling.map(({ text, value }) => [text, value ?? '(none)']));
  }
  expect(differences.found).toEqual([]);
  // With a filter by a text both agree again.
  await open(page, `${address}#a=m.duration_ns:0:99999&b=m.duration_ns:1000000:1000000000000`);
  const rows = page.locator('table[aria-label="Texts that differ"] tbody tr');
  const ranges: [string, string] = ['duration_ns <= 99999', 'duration_ns >= 1000000'];
  const [most] = compared(file, ranges).texts;
  await rows.first().locator('button').nth(1).click();
  await calm(page);
  // The filter applies to the group with the greater share.
  ranges[most.groups[1].share > most.groups[0].share ? 1 : 0] +=
    ` && ${most.text} == ${most.value}`;
  const left = compared(file, ranges);
  expect(await sizes(page)).toEqual(left.groups.map(({ executions }) => executions));
  compareTexts(await textsOf(page), left.texts, differences);
  expect(differences.found).toEqual([]);
});

test('contexts are told apart by frames around them, the outermost first', async ({
  page,
  view,
}) => {
  const around: string[] = [];
  for (const study of STUDIES) {
    const { address } = await view(study);
    await open(page, `${address}#${study.address}`);
    around.push(...(await page.locator('.ranking [data-ranked] small').allInnerTexts()));
  }
  // Each mark for omitted frames is between two separators; two marks are never adjacent.
  expect(around.some((text) => text.includes(' › … › '))).toBe(true);
  for (const text of around) {
    expect(text.replaceAll(' › … › ', ' › ')).not.toContain('…');
    expect(text).not.toContain('… › …');
  }
});

test('what is said of the groups is in sight beside the graph', async ({ page, view }) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  const { address } = await view(LOCK);
  await open(page, `${address}#${LOCK.address}`);
  await page.locator('.middle').evaluate((element) => element.scrollIntoView());
  const figures = page.locator('.figures');
  await expect(figures).toBeInViewport({ ratio: 0.5 });
  await page.locator('[data-ranked]').first().click();
  await page.keyboard.press('p');
  await expect(page.locator('.pin button').first()).toBeInViewport();
  await expect(page.locator('[data-ranked]').first()).toBeInViewport();
  // Nothing is wider than the page.
  for (const width of [1280, 700, 420]) {
    await page.setViewportSize({ width, height: 800 });
    await calm(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      width,
    );
  }
});

test('lists of executions have no columns that are the same in all lines', async ({
  page,
  view,
}) => {
  const heads = page.locator('.list.side-b thead th');
  await open(page, (await view(CPU)).address);
  await expect(heads).toHaveText(['#', 'duration', 'begin']);
});

test('the text of a brush is not on it', async ({ page, view }) => {
  await open(page, (await view(CPU)).address);
  const row = page.locator('[data-row="m.running_ns"]');
  for (const [from, to] of [
    [0.05, 0.3],
    [0.45, 0.6],
    [0.8, 1],
  ]) {
    await page.locator('[data-histogram="b m.running_ns"]').press('Delete');
    await brush(page, 'b m.running_ns', from, to);
    await calm(page);
    const text = (await row.locator('.ranges').boundingBox())!;
    const picture = (await row.locator('canvas').boundingBox())!;
    expect(text.y).toBeGreaterThanOrEqual(picture.y + picture.height);
    expect(text.x).toBeGreaterThanOrEqual(picture.x);
  }
});

/** Conditions of the terminal for the ranges of the page. */
async function conditionsOf(page: Page): Promise<[string, string]> {
  return page.evaluate(() => {
    const { groups, table } = window.tracebraid;
    const text = (side: 0 | 1) =>
      [...groups[side].ranges]
        .map(([column, { low, high }]) => [
          table.numbers[column].key.replace(/^m\./, ''),
          low,
          high,
        ])
        .map(([name, low, high]) => `${name} >= ${low} && ${name} <= ${high}`)
        .join(' && ');
    return [text(0), text(1)];
  });
}

test('a brush changes the other histograms and the graph, to what the terminal says of the same range', async ({
  page,
  view,
}) => {
  await open(page, (await view(DISK)).address);
  const before = await seen(page);
  const other = page.locator('[data-histogram="a m.block_device_ns"]');
  const was = await picture(other);
  await brush(page, 'a m.running_ns', 0.1, 0.3);
  await calm(page);
  expect(await picture(other)).not.toBe(was);
  const after = await seen(page);
  expect(after.graph).not.toBe(before.graph);
  expect(after.sizes[0]).toBeLessThan(before.sizes[0]);
  expect(after.sizes[0]).toBeGreaterThan(1);
  expect(after.sizes[1]).toBe(before.sizes[1]);
  const conditions = await conditionsOf(page);
  expect(conditions[0]).toContain('running_ns >= ');
  const expected = compared(DISK.file, conditions);
  expect(after.sizes).toEqual(expected.groups.map(({ executions }) => executions));
  const found = await means(page);
  for (const { context, groups } of expected.contexts) {
    expect(found.get(context.join('\n'))![0]).toBeCloseTo(groups[0].mean, 5);
  }
});

test('search and zoom by the keyboard, in real stacks', async ({ page, view }) => {
  await open(page, (await view(DISK)).address);
  await page.keyboard.press('/');
  await expect(page.locator('#search')).toBeFocused();
  await page.keyboard.type('flush_log');
  await expect(page.locator('[data-found]')).toContainText(/^[1-9]\d* found, \d/);
  await page.keyboard.press('Escape');
  await expect(page.locator('#search')).toHaveValue('');
  await expect(page.locator('#search')).not.toBeFocused();
  const current = page.locator('.crumbs [aria-current=true]');
  for (const name of ['_start', '__libc_start_main_impl', '__libc_start_call_main', 'main']) {
    await page.keyboard.press('w');
    await expect(current).toHaveText(name);
  }
  await page.keyboard.press('w');
  await expect(current).toHaveText('handle_request');
  // A frame that only A has comes after those of B.
  await page.keyboard.press('d');
  await expect(current).toHaveText('sleep_until');
  await page.keyboard.press('w');
  await expect(current).toHaveText('__GI___clock_nanosleep');
  await page.keyboard.press('s');
  await page.keyboard.press('a');
  await expect(current).toHaveText('handle_request');
  await page.keyboard.press('s');
  await expect(current).toHaveText('main');
  await page.keyboard.press('Escape');
  await calm(page);
  expect(hash(page)).not.toContain('zoom');
});

test('a link shows the same in another tab, and in another browser that knows the token', async ({
  page,
  view,
  context,
  browser,
}) => {
  const server = await view(DISK);
  await open(page, server.address);
  await brush(page, 'b m.running_ns', 0, 0.6);
  await page.locator('[data-ranked]').first().click();
  await calm(page);
  const expected = await seen(page);
  expect(page.url()).not.toContain(server.token);
  const tab = await context.newPage();
  await open(tab, page.url());
  expect(await seen(tab)).toEqual(expected);
  const { viewport } = test.info().project.use;
  const elsewhere = await browser.newContext({ viewport: viewport ?? null });
  await dress(elsewhere, server.origin);
  const stranger = await elsewhere.newPage();
  await open(stranger, `${server.address}${hash(page)}`);
  expect(await seen(stranger)).toEqual(expected);
  await elsewhere.close();
});

test('an execution opens the critical path that the terminal shows', async ({ page, view }) => {
  await open(page, (await view(DISK)).address);
  const [slowest] = JSON.parse(
    told('executions', 'list', DISK.file, '--top', '1', '--format', 'json'),
  );
  const first = page.locator('.list.side-b [data-execution]').first();
  await expect(first).toHaveText(String(slowest.id));
  await first.click();
  const dialog = page.locator('dialog.timeline');
  await expect(dialog.locator('[data-timeline]')).toBeVisible();
  const shown = JSON.parse(
    told('executions', 'show', DISK.file, String(slowest.id), '--top', '0', '--format', 'json'),
  );
  await expect(dialog.locator('code')).toHaveText(shown.command);
  await expect(dialog.locator('.legend')).toContainText('block-device');
  await dialog.locator('summary', { hasText: 'Show as table' }).click();
  const rows = dialog.locator('.shares tbody tr');
  expect(shown.steps.length).toBeGreaterThan(3);
  await expect(rows).toHaveCount(shown.steps.length);
  const frames = await rows.locator('td:nth-child(5)').allInnerTexts();
  // A segment without frames has the state of its thread.
  for (const [at, { context }] of shown.steps.entries()) {
    const innermost = (context.at(-1) ?? 'running').replace(/^[[<](.*)[\]>]$|\(\)$/, '$1');
    expect(frames[at]).toBe(innermost);
  }
});

test('an exported page shows the same from a file, without the server', async ({
  page,
  view,
  context,
}) => {
  const server = await view(CPU);
  await open(page, `${server.address}#${CPU.address}`);
  const expected = await seen(page);
  const state = hash(page);
  const waiting = page.waitForEvent('download');
  await page.click('button:text-is("Export")');
  const download = await waiting;
  expect(download.suggestedFilename()).toBe('requests.db.html');
  const folder = mkdtempSync(join(tmpdir(), 'tracebraid-web-'));
  const [button, command] = ['button.html', 'command.html'].map((name) => join(folder, name));
  copyFileSync(await download.path(), button);
  told('view', CPU.file, '--export', command);
  expect(readFileSync(button, 'utf8')).toBe(readFileSync(command, 'utf8'));
  writeFileSync(button, dressed(readFileSync(button, 'utf8')));
  const alone = await context.newPage();
  const asked: string[] = [];
  alone.on('request', (one) => asked.push(one.url()));
  await open(alone, `${pathToFileURL(button).href}${state}`);
  expect(await seen(alone)).toEqual(expected);
  const states: string[] = [];
  for (const shown of [page, alone]) {
    await shown.locator('.list.side-b [data-execution]').first().click();
    states.push(await shown.locator('dialog.timeline .legend').innerText());
  }
  expect(states[0]).toContain('running');
  expect(states[1]).toBe(states[0]);
  expect(asked.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
});

test('who has no token or a wrong one sees nothing', async ({ page, view }) => {
  const { origin, token } = await view(CPU);
  const answers: number[] = [];
  page.on('response', (answer) => {
    if (answer.url().includes('/api/')) answers.push(answer.status());
  });
  for (const address of [origin, `${origin}?token=wrong`, `${origin}?token=${token.slice(1)}`]) {
    await page.goto(address);
    await expect(page.locator('[role=alert]')).toContainText('the token is wrong or missing');
    await expect(page.locator('[data-flame]')).toHaveCount(0);
  }
  expect(answers).toEqual([401, 401, 401]);
});

for (const scheme of ['light', 'dark'] as const) {
  test(`axe has no findings in a real comparison (${scheme})`, async ({ page, view }) => {
    test.setTimeout(600_000);
    await page.emulateMedia({ colorScheme: scheme });
    await open(page, `${(await view(SLEEP)).address}#${SLEEP.address}`);
    expect(await faults(page)).toEqual([]);
    await page.locator('.flame summary').click();
    await page.locator('.list.side-b [data-execution]').first().click();
    await page.waitForSelector('[data-timeline]');
    expect(await faults(page)).toEqual([]);
  });
}

/** Words of the cause that the first sentence must contain, in this order. */
const CAUSES = new Map<string, RegExp>([
  [
    CPU.name,
    /^Slow steps .* preempted by controller, which runs compute \(called by rebuild_index\)\.$/,
  ],
  [
    DISK.name,
    /^Slow requests .* in pread64\(\), waiting for disk loop0, which logger uses in flush_log/,
  ],
  [
    LOCK.name,
    /^Slow orders .* waiting over the network for postgres, .* waiting for another postgres, which runs ExecScan/,
  ],
  [
    SLEEP.name,
    /^Slow lines .* for postgres, which is in pselect6\(\) \(called by pg_usleep in XLogFlush\), sleeping/,
  ],
  [DEVICE.name, /^Slow frames .* in futex\(\), waiting for a device \(render_preview\)\.$/],
]);

for (const study of STUDIES) {
  test(`${study.name}: the first sentence names the cause, with the numbers of tracebraid compare`, async ({
    page,
    view,
    context,
  }, testInfo) => {
    const { address } = await view(study);
    const sentence = page.locator('[data-verdict]');
    for (const conditions of [null, study.conditions]) {
      await page.goto('about:blank');
      await open(page, conditions === null ? address : `${address}#${study.address}`);
      const text = await sentence.innerText();
      expect(text).toMatch(CAUSES.get(study.name)!);
      const { metrics, groups, contexts } = compared(study.file, conditions, '--whole');
      const duration = metrics.find(({ metric }) => metric === 'duration_ns')!;
      const [a, b] = duration.groups.map(({ mean }) => quantity(mean, 'ns'));
      expect(text).toContain(`(${groups[1].executions}) take ${b} on average instead of ${a}; `);
      // The share is that of a context in the terminal's table.
      const [, more, share] = /; ([\d.]+ \wi?s) of the difference \((\d+) %\)/.exec(text)!;
      const same = contexts.filter(({ difference }) => quantity(difference, 'ns') === more);
      expect(same.length).toBeGreaterThan(0);
      expect(
        same.map(
          ({ difference }) =>
            Math.abs((100 * difference) / duration.difference - Number(share)) < 1,
        ),
      ).toContain(true);
      expect(Number(share)).toBeGreaterThanOrEqual(50);
      // Its context is the one that the button shows.
      await page.click('button:text-is("Show in the flame graph")');
      await calm(page);
      const way = (await wordsOf(page))[Number(/zoom=(\d+)/.exec(hash(page))![1])];
      expect(study.cause.filter((frame) => !way.includes(frame)).length).toBeLessThanOrEqual(1);
    }
    // An exported page has the same sentence.
    const file = testInfo.outputPath('page.html');
    told('view', study.file, '--export', file);
    writeFileSync(file, dressed(readFileSync(file, 'utf8')));
    const alone = await context.newPage();
    await open(alone, `${pathToFileURL(file).href}#${study.address}`);
    await expect(alone.locator('[data-verdict]')).toHaveText(await sentence.innerText());
  });
}

test('the sentence follows groups that a brush chooses, and rests while it moves', async ({
  page,
  view,
}) => {
  await open(page, (await view(DISK)).address);
  const sentence = page.locator('[data-verdict]');
  const before = await sentence.innerText();
  await page.evaluate(() => {
    const seen: string[] = [];
    Object.assign(window, { seen });
    const element = document.querySelector('[data-verdict]')!;
    const look = () => seen.push(element.textContent ?? '');
    new MutationObserver(look).observe(element, {
      childList: true,
      subtree: true,
      characterData: true,
    });
  });
  const { x, y } = await laneOf(page, 'b m.running_ns');
  await page.mouse.move(x(0.5), y);
  await page.mouse.down();
  for (let step = 1; step <= 20; step++) await page.mouse.move(x(0.5 + step / 50), y);
  await expect(sentence).toHaveAttribute('aria-busy', /true|false/);
  await page.mouse.up();
  await page.locator('[data-histogram="b m.duration_ns"]').press('Delete');
  await calm(page);
  await expect(sentence).toHaveAttribute('aria-busy', 'false');
  expect(await sentence.innerText()).not.toBe(before);
  await expect(sentence).toContainText(/[Rr]equests in B \(\d+\) take [\d.]+ [mµn]?s on average/);
  // There is not a sentence for each of the twenty steps, not even on a slow machine.
  const seen = await page.evaluate(
    () => new Set((window as unknown as { seen: string[] }).seen).size,
  );
  expect(seen).toBeLessThanOrEqual(10);
  await page.click('button:text-is("Reset")');
  await calm(page);
  await expect(sentence).toContainText('Both groups contain all 300 requests.');
  // Inverting the graph does not change the sentence.
  await page.click('button:has-text("Slowest 1 %")');
  await calm(page);
  await expect(sentence).toHaveText(before);
  await page.click('label.check:has-text("Invert")');
  await calm(page);
  await page.click('button:text-is("Swap A and B")');
  await calm(page);
  await expect(sentence).toContainText(
    /^Fast requests \(150\).* of the difference \(90 %\) is spent in pread64\(\)/,
  );
});
