/**
 * Takes the screenshots of docs/tutorial: `node tools/tutorial.mjs PROGRAM DATABASE FOLDER`. PROGRAM
 * exports the data, the page is that of `dist`.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium as browserType } from '@playwright/test';
import { withDataOf } from './alone.mjs';
import { ARGUMENTS, chromium } from './chromium.mjs';

const PAGE = new URL('../dist/index.html', import.meta.url);
const SIZE = { width: 1400, height: 605 };
/** The groups of the tutorial: requests of less than 10 ms, and of more than 12 ms. */
const GROUPS = 'a=m.duration_ns%3A0%3A10e6&b=m.duration_ns%3A12e6%3A1e9';

const [program, database, to] = process.argv.slice(2);
if (to === undefined) throw new Error('usage: tutorial.mjs PROGRAM DATABASE FOLDER');
const folder = mkdtempSync(join(tmpdir(), 'tutorial-'));
const browser = await browserType.launch({ executablePath: chromium(), args: ARGUMENTS });
try {
  const file = join(folder, 'page.html');
  const stdio = ['ignore', 'ignore', 'inherit'];
  execFileSync(program, ['view', database, '--export', file], { stdio });
  writeFileSync(file, withDataOf(readFileSync(PAGE, 'utf8'), readFileSync(file, 'utf8')));
  const tab = await browser.newPage({ viewport: SIZE, colorScheme: 'light' });
  tab.on('pageerror', (error) => {
    throw error;
  });
  await tab.goto(`${pathToFileURL(file).href}#${GROUPS}`);
  await tab.waitForSelector('[data-flame]');
  await tab.waitForFunction(() => window.tracebraid.isSettled);
  const drawn = () =>
    tab.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
  await drawn();
  await tab.screenshot({ path: join(to, 'page.png') });
  await tab.click('.list.side-b [data-execution] >> nth=0');
  await tab.waitForSelector('[data-timeline]');
  await drawn();
  await tab.locator('dialog[open]').screenshot({ path: join(to, 'path.png') });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
