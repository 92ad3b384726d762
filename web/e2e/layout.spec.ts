/** Layout: the first screen, filters, histograms of both groups, narrow screens, paper. */

import type { Page } from '@playwright/test';
import { makePack } from '../tools/synthetic.mjs';
import {
  brush,
  calm,
  EXECUTIONS,
  expect,
  hash,
  laneOf,
  open,
  openAll,
  picture,
  size,
  test,
  withHeader,
} from './page';

/** Keys of the filters in their order. */
async function rows(page: Page): Promise<string[]> {
  return page
    .locator('.filters [data-row], .filters [data-checklist]')
    .evaluateAll((all) =>
      all.map((row) => row.getAttribute('data-row') ?? row.getAttribute('data-checklist') ?? ''),
    );
}

/** The focused histogram, or the text of the focused element. */
const focused = (page: Page) =>
  page.evaluate(
    () =>
      document.activeElement?.getAttribute('data-histogram') ?? document.activeElement?.textContent,
  );

test('verdict, flame graph and filters are on the first screen', async ({ page, alone }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await open(page, alone);
  await expect(page.locator('[data-verdict]')).toBeInViewport({ ratio: 1 });
  await expect(page.locator('[data-verdict]')).toContainText(
    /^Slow requests \(30\) take [\d.]+ m?s on average instead of/,
  );
  await expect(page.locator('.graph')).toBeInViewport({ ratio: 0.9 });
  await expect(page.locator('[data-ranked]').first()).toBeInViewport({ ratio: 1 });
  await expect(page.locator('[data-histogram="b m.duration_ns"]')).toBeInViewport({ ratio: 1 });
  // Colours are those of own time: frames that only call others are grey.
  await expect(page.locator('.flame select')).toHaveValue('own');
  // Filters stay in sight while the page scrolls, and can be hidden.
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await expect(page.locator('#filters h2')).toBeInViewport();
  await page.evaluate(() => scrollTo(0, 0));
  const wide = await page.locator('.graph').evaluate((graph) => graph.clientWidth);
  await page.click('button:text-is("Hide filters")');
  await expect(page.locator('#filters')).toBeHidden();
  expect(await page.locator('.graph').evaluate((graph) => graph.clientWidth)).toBeGreaterThan(wide);
  // A link to a filter shows the filters again.
  await page.locator('.figures tbody button').first().click();
  await expect(page.locator('[data-histogram="b m.duration_ns"]')).toBeFocused();
  // On narrower screens the filters are below, one click away.
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.click('button:text-is("Go to filters")');
  await expect(page.locator('[data-histogram="b m.duration_ns"]')).toBeInViewport();
});

test('filters are ordered by how well they separate, and keep their places while they are used', async ({
  page,
  alone,
}) => {
  await open(page, alone);
  const order = await rows(page);
  expect(order[0]).toBe('m.duration_ns');
  // Columns that separate the planted groups come before others.
  for (const best of ['m.waiting_ns', 't.cause', 'm.switches']) {
    expect(order.indexOf(best)).toBeLessThan(order.indexOf('t.route'));
    expect(order.indexOf(best)).toBeLessThan(order.indexOf('begin'));
  }
  await brush(page, 'a m.running_ns', 0.3, 0.8);
  await calm(page);
  expect(await rows(page)).toEqual(order);
  const sort = page.locator('.filters button:text-is("Sort")');
  if ((await sort.count()) > 0) {
    await sort.click();
    expect(await rows(page)).not.toEqual(order);
    await expect(sort).toHaveCount(0);
  }
});

test('a histogram shows both groups on one scale, with the counts of the bin at the pointer', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  await brush(page, 'b m.switches', 3.1 / 9, 1);
  await calm(page);
  const counts = page.locator('[data-rows="m.switches"] tr:nth-child(3) td');
  const [a, b] = await counts.allInnerTexts();
  for (const group of ['a', 'b']) {
    const { x, y } = await laneOf(page, `${group} m.switches`);
    await page.mouse.move(x(2.5 / 9), y);
    const tip = page.locator('[role=tooltip]');
    await expect(tip).toContainText(/^2A: /);
    for (const [name, text] of [
      ['A', a],
      ['B', b],
    ]) {
      const [, counted, share] = /^([\d,]+) \((.*)\)$/.exec(text)!;
      await expect(tip).toContainText(
        new RegExp(`${name}: ${counted} executions?, ${share} of [\\d,]+`),
      );
    }
  }
  await page.mouse.move(5, 5);
  await expect(page.locator('[role=tooltip]')).toHaveCount(0);
  // Each half brushes its own group.
  const lower = await size(page, 'B');
  await brush(page, 'a m.waiting_ns', 0.5, 1);
  await calm(page);
  expect(await size(page, 'A')).toBeLessThan(EXECUTIONS);
  expect(await size(page, 'B')).toBe(lower);
  expect(hash(page)).toMatch(/a=m\.waiting_ns.*&b=m\.switches/);
});

test('bars of both groups have one scale, whatever the sizes of the groups', async ({
  page,
  alone,
}) => {
  await open(page, alone);
  expect([await size(page, 'A'), await size(page, 'B')]).toEqual([1500, 30]);
  const row = page.locator('[data-row="m.switches"]');
  const shares = await row.locator('tbody tr').evaluateAll((rows) =>
    rows.map((of) =>
      [...of.querySelectorAll('td')].map((cell) => {
        const text = /\(([\d.]+) %\)/.exec(cell.textContent ?? '');
        return Number(text?.[1] ?? 0);
      }),
    ),
  );
  // Pixels from the middle line up and down, in the middle of each bin.
  const heights = await row.locator('canvas').evaluate((canvas: HTMLCanvasElement, bins) => {
    const pen = canvas.getContext('2d')!;
    const ratio = canvas.width / canvas.clientWidth;
    const [left, right, middle] = [42, 8, 40];
    const isInk = (x: number, y: number) =>
      pen.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data[3] > 200;
    return Array.from({ length: bins }, (_, bin) => {
      const x = left + ((bin + 0.5) / bins) * (canvas.clientWidth - left - right);
      return [-1, 1].map((way) => {
        let height = 0;
        while (height < middle && isInk(x, middle + (way < 0 ? -1 - height : 1.5 + height)))
          height++;
        return height;
      });
    });
  }, shares.length);
  const scales = shares.flatMap((of, bin) =>
    of.flatMap((share, side) => (share > 8 ? [heights[bin][side] / share] : [])),
  );
  expect(scales.length).toBeGreaterThan(4);
  // Heights are whole pixels, at least 3.
  expect(Math.max(...scales) / Math.min(...scales)).toBeLessThan(1.4);
});

test('lists leave out values without executions, and distinguish traces of one label', async ({
  page,
  openPack,
}) => {
  const pack = makePack({ executions: 300, contexts: 60, hostile: false });
  const threads: string[] = pack.header.threads;
  const sources: { path: string; host: string }[] = pack.header.sources;
  await openPack(
    withHeader(pack, {
      threads: [...threads, 'never-ran'],
      sources: sources.map((source) => ({ ...source, label: 'v1' })),
    }),
  );
  const valuesOf = (key: string) =>
    page.locator(`[data-checklist="${key}"] .value`).allInnerTexts();
  expect((await valuesOf('thread')).sort()).toEqual(['(none)', ...threads].sort());
  expect((await valuesOf('source')).sort()).toEqual(
    sources.map(({ path, host }) => `v1: ${host}: ${path}`).sort(),
  );
});

test('each histogram is one tab stop; keys go to the other group and move edges', async ({
  page,
  alone,
}) => {
  await openAll(page, alone);
  expect(await page.locator('.filters [role=slider][tabindex="0"]').count()).toBe(
    await page.locator('.filters [data-row]').count(),
  );
  const [upper, lower] = ['a', 'b'].map((group) =>
    page.locator(`[data-histogram="${group} m.switches"]`),
  );
  await lower.focus();
  await page.keyboard.press('ArrowUp');
  await expect(upper).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(lower).toBeFocused();
  const text = () => lower.getAttribute('aria-valuetext');
  await page.keyboard.press('ArrowRight');
  await calm(page);
  expect(await text()).toBe('2 to 6');
  await page.keyboard.press('ArrowRight');
  await calm(page);
  expect(await text()).toBe('3 to 7');
  // Enter chooses the lower edge, then the upper one, then the range.
  const before = await picture(lower);
  await page.keyboard.press('Enter');
  await expect(lower).toHaveAttribute('aria-valuetext', 'lower edge: 3 to 7');
  await expect.poll(() => picture(lower)).not.toBe(before);
  await page.keyboard.press('ArrowLeft');
  await expect(lower).toHaveAttribute('aria-valuetext', 'lower edge: 2 to 7');
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowLeft');
  await expect(lower).toHaveAttribute('aria-valuetext', 'upper edge: 2 to 6');
  await page.keyboard.press('End');
  await expect(lower).toHaveAttribute('aria-valuetext', 'upper edge: 2 to 8');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Home');
  await expect(lower).toHaveAttribute('aria-valuetext', '0 to 6');
  await page.keyboard.press('Delete');
  await expect(lower).toHaveAttribute('aria-valuetext', 'all');
  // The next tab stops are the scale of the next filter and its histogram.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  expect(await focused(page)).not.toMatch(/ m\.switches$/);
});

test('skip links lead to the parts of the page, and leave the address alone', async ({
  page,
  alone,
}) => {
  await open(page, alone);
  const address = page.url();
  const links = page.locator('.skip a');
  await expect(links).toHaveCount(4);
  for (const [at, target] of ['flame', 'differences', 'filters', 'executions'].entries()) {
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await links.nth(at).focus();
    await expect(links.nth(at)).toBeInViewport({ ratio: 1 });
    await page.keyboard.press('Enter');
    await expect(page.locator(`#${target}`)).toBeFocused();
  }
  expect(page.url()).toBe(address);
  // The links are the first tab stops.
  await page.reload();
  await calm(page);
  await page.keyboard.press('Tab');
  await expect(links.first()).toBeFocused();
});

test('old links without a colour, and with one, are understood', async ({ page, alone }) => {
  for (const [colour, expected] of [
    ['', 'own'],
    ['&colour=own', 'own'],
    ['&colour=whole', 'whole'],
  ]) {
    await page.goto('about:blank');
    await open(page, `${alone}#a=m.duration_ns%3A0%3A2e6&b=m.duration_ns%3A5e6%3A1e9${colour}`);
    await expect(page.locator('.flame select')).toHaveValue(expected);
    expect(await size(page, 'B')).toBeGreaterThan(50);
  }
  expect(hash(page)).toContain('colour=whole');
});

test('at 390 pixels names are wrapped or shortened in the middle, and nothing is cut', async ({
  page,
  alone,
}) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, alone);
  await page.locator('[data-ranked]').first().click();
  await page.keyboard.press('p');
  await calm(page);
  const cut = await page.evaluate(() => {
    const texts = document.querySelectorAll<HTMLElement>(
      '[data-verdict], .chip, .name, .value, .ranking td, .ranking button, .figures td, .figures button, .pin button, .crumbs',
    );
    return [...texts].flatMap((text) => {
      const style = getComputedStyle(text);
      const isCut =
        text.scrollWidth > text.clientWidth + 1 &&
        text.clientWidth > 0 &&
        style.overflowX !== 'visible';
      const { right } = text.getBoundingClientRect();
      const scrolls = text.closest('.figures, .ranking, .pin');
      if (!isCut && style.textOverflow !== 'ellipsis' && (right <= innerWidth || scrolls !== null))
        return [];
      return [`${text.className || text.tagName}: ${text.textContent?.slice(0, 60)}`];
    });
  });
  expect(cut).toEqual([]);
  // A value of 5,000 characters is shortened in the middle, with the first 200 as its title.
  const long = page.locator('[data-checklist="t.route"] .value', { hasText: /^A+…A+$/ });
  await expect(long).toHaveAttribute('title', /^A{100,}…$/);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
});

test('paper has the verdict, the graph and the lists, light and without controls', async ({
  page,
  alone,
}) => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await open(page, alone);
  const graph = page.locator('[data-flame] canvas');
  const dark = await graph.evaluate((canvas: HTMLCanvasElement) => canvas.width);
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  for (const shown of [
    '[data-verdict]',
    '.graph',
    '.ranking table',
    '.figures table',
    '.list.side-b table',
  ])
    await expect(page.locator(shown).first()).toBeVisible();
  for (const hidden of [
    'button:has-text("Slowest 1 %")',
    '#search',
    '#filters',
    '.actions',
    '.skip',
    '.chip button',
  ])
    await expect(page.locator(hidden).first()).toBeHidden();
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('light');
  expect(await graph.evaluate((canvas: HTMLCanvasElement) => canvas.width)).toBeGreaterThan(dark);
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
  const paper = await page.pdf({ format: 'A4' });
  expect(paper.length).toBeGreaterThan(10_000);
});
