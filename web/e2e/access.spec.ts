/** Tests axe, pointer targets and overflow of the page in each state, at three widths. */

import type { Page } from '@playwright/test';
import { makePack } from '../tools/synthetic.mjs';
import { faults, smallTargets } from './access';
import { calm, expect, open, openAll, test, withoutTimes } from './page';

/** Widths in pixels, with the colours in which the page is tested there: contrasts of colours hardly
 * depend on the width, and axe takes most of the time of all tests. */
const WIDTHS = {
  1440: ['light', 'dark'],
  1024: ['light'],
  390: ['dark'],
} as const;

/** Findings on the current state of the page, in the colours of its width. */
async function complaints(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  const width = page.viewportSize()!.width as keyof typeof WIDTHS;
  for (const colorScheme of WIDTHS[width]) {
    await page.emulateMedia({ colorScheme });
    await calm(page);
    for (const one of [...(await faults(page)), ...(await smallTargets(page))])
      found.push(`${name}, ${colorScheme}: ${one}`);
  }
  const [wide, room] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  if (wide > room) found.push(`${name}: the page is ${wide} pixels wide`);
  return found;
}

/** States of a page with two groups; each state begins with a new page. */
const STATES: Record<string, (page: Page) => Promise<void>> = {
  groups: async () => {},
  'search, pin, zoom and the table': async (page) => {
    await page.fill('#search', 'query');
    await page.locator('[data-ranked]').first().click();
    await page.keyboard.press('p');
    await page.locator('.flame summary').click();
  },
  'group B alone, inverted, log heights': async (page) => {
    await page.click('button:text-is("B")');
    await page.click('label.check:has-text("Invert")');
    await page.click('button:text-is("log heights")');
  },
  help: (page) => page.keyboard.press('?'),
  timeline: async (page) => {
    await page.locator('.list.side-b [data-execution]').first().click();
    await page.waitForSelector('[data-timeline]');
    await page.locator('dialog summary', { hasText: 'Show as table' }).click();
  },
};

for (const width of Object.keys(WIDTHS).map(Number)) {
  test.describe(`at ${width} pixels`, () => {
    test.use({ viewport: { width, height: 900 } });

    for (const [name, reach] of Object.entries(STATES)) {
      test(`axe finds nothing, and targets have 24 pixels: ${name}`, async ({ page, alone }) => {
        await open(page, alone);
        await reach(page);
        expect(await complaints(page, name)).toEqual([]);
      });
    }

    test('axe finds nothing: no groups, one group, an empty group, paper', async ({
      page,
      alone,
    }) => {
      await openAll(page, alone);
      expect(await complaints(page, 'no groups')).toEqual([]);
      for (const range of ['5e6:1e12', '1:2']) {
        await page.goto('about:blank');
        await open(page, `${alone}#b=m.duration_ns:${range}`);
        expect(await complaints(page, range)).toEqual([]);
      }
      await page.emulateMedia({ media: 'print', colorScheme: 'light' });
      await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
      expect(await faults(page)).toEqual([]);
    });

    test('axe finds nothing: no kernel events', async ({ page, openPack }) => {
      await openPack(withoutTimes(makePack({ executions: 200, contexts: 60 })));
      expect(await complaints(page, 'no kernel events')).toEqual([]);
      await page.locator('.list.side-b [data-execution]').first().click();
      await page.waitForSelector('dialog[open] [data-unknown]');
      expect(await complaints(page, 'unknown path')).toEqual([]);
    });
  });
}
